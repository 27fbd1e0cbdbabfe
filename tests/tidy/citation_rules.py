"""Holds citations of numbered sections against the documents of this repository.

A citation names a document and sections of it: NAME.md section N, NAME.md sections N to N.  Without
a document it means the page it stands in, and in a source the document that was cited last.
"""

import os
import re

FOLDERS = ('src/', 'tests/', 'include/', 'docs/')
NUMBER = r'\d+(?:\.\d+)*'
GAP = r'[\s/#*]+'  # a citation may go on in the next line of a comment
CITATION = re.compile(rf'(?:([\w./-]+\.md)[`)]*{GAP})?\b[Ss]ections?{GAP}'
                      rf'({NUMBER}(?:(?:,|,? and| to){GAP}{NUMBER})*)')
HEADING = re.compile(rf'(?m)^#+ ({NUMBER})\.? ')


def _sections_of_pages(tree):
    """path -> numbers of its headings."""
    return {file.path: set(HEADING.findall(file.text)) for file in tree.files
            if file.path.endswith('.md')}


def _find_page(pages, file, name):
    """The page of that path, from the root or from the file's folder; else one of that name."""
    beside = os.path.normpath(os.path.join(os.path.dirname(file.path), name))
    others = sorted(path for path in pages if path.endswith('/' + name))
    return next((path for path in (name, beside, *others) if path in pages), None)


def _check_file(file, pages):
    own = file.path if pages.get(file.path) else None
    last = None
    for found in CITATION.finditer(file.text):
        line = file.text.count('\n', 0, found.start()) + 1
        name, numbers = found.group(1), re.findall(NUMBER, found.group(2))
        page = _find_page(pages, file, name) if name else own or last
        if page is None:
            message = f'{name} does not exist' if name else 'names no document; write NAME.md'
            yield file.find(line, 'citation', f'section {numbers[0]}: {message}')
            continue
        last = page
        for number in numbers:
            if number not in pages[page]:
                yield file.find(line, 'citation', f'{page} has no section {number}')


def check_citations(tree):
    pages = _sections_of_pages(tree)
    for file in tree.files:
        is_top = '/' not in file.path and file.path.endswith('.md')
        if not file.is_data and (is_top or file.path.startswith(FOLDERS)):
            yield from _check_file(file, pages)


RULES = (check_citations,)
