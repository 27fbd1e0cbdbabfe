"""Holds the includes of src/ and of the public headers against the table in ARCHITECTURE.md.

The table has the columns rank, folder, may include.  An entry is a folder, or a folder with the
headers it is limited to: kv (view.h).  base is allowed everywhere and not listed.  A test may
include what its folder may, and anything of lower rank.
"""

import os
import re

from cpp_rules import quoted_includes
from tree import Finding

PAGE = 'ARCHITECTURE.md'
HEADING = '| rank | folder | may include |'
ENTRY = re.compile(r'(\w+)(?:\s*\(([^)]*)\))?')


class Row:
    def __init__(self, line, rank, may_include):
        self.line = line
        self.rank = rank
        self.may_include = may_include  # folder -> set of headers, empty: all of them

    def allows(self, path):
        folder, _, header = path.partition('/')
        headers = self.may_include.get(folder)
        return headers is not None and (not headers or header in headers)


def parse_table(text):
    """folder -> Row."""
    rows, inside = {}, False
    for number, line in enumerate(text.split('\n'), 1):
        if line.strip() == HEADING:
            inside = True
        elif inside and not line.startswith('|'):
            break
        elif inside and not line.startswith('|-'):
            rank, folder, allowed = [cell.strip() for cell in line.strip('|').split('|')]
            entries = {name: set(re.findall(r'\w+\.h', headers))
                       for name, headers in ENTRY.findall(allowed) if name != 'std'}
            rows[folder] = Row(number, int(rank), entries)
    return rows


def _check_table(tree, rows):
    folders = {file.folder for file in tree.cpp() if file.folder}
    if not rows:
        yield Finding(PAGE, 1, 'include table', f'found no table with the heading {HEADING}')
        return
    for folder in sorted(folders - set(rows)):
        yield Finding(PAGE, 1, 'include table', f'src/{folder} has no row')
    for folder, row in rows.items():
        if folder not in folders:
            yield Finding(PAGE, row.line, 'include table', f'{folder}: src/ has no such folder')
        for other in row.may_include:
            if other not in rows:
                yield Finding(PAGE, row.line, 'include table', f'{folder}: no row for {other}')
            elif rows[other].rank >= row.rank:  # downwards only, so that there is no cycle
                yield Finding(PAGE, row.line, 'include table',
                              f'{folder} (rank {row.rank}) lists {other} (rank '
                              f'{rows[other].rank}); list lower ranks only')


def _may_include(file, path, rows):
    other = path.split('/')[0]
    row = rows.get(file.folder)
    if other in (file.folder, 'base') or row is None or row.allows(path):
        return True
    return file.is_test and (other == 'tests' or other in rows and rows[other].rank < row.rank)


def _exists(tree, file, path):
    beside = f'{os.path.dirname(file.path)}/{path}'
    return (f'src/{path}' in tree.all_paths or f'include/{path}' in tree.all_paths or
            path in tree.all_paths or
            file.path.startswith('tests/') and beside in tree.all_paths)


def check_includes(tree):
    page = tree.named(PAGE)
    rows = parse_table(page.text if page else '')
    yield from _check_table(tree, rows)
    for file in tree.cpp():
        for line, path in quoted_includes(file):
            if not _exists(tree, file, path):
                yield file.find(line, 'include', f'"{path}": no such file under src/')
            elif file.folder and not _may_include(file, path, rows):
                yield file.find(line, 'include', f'{file.folder} may not include {path} '
                                                 f'(table in {PAGE})')


RULES = (check_includes,)
