"""Rules for any text: width, blanks, length, leftovers, shell and Python scripts."""

import ast
import os
import re

MAX_COLUMNS = 100
MAX_FUNCTION_LINES = 70
MAX_PARAMETERS = 6
CODE_SUFFIXES = ('.cc', '.h', '.inc', '.py', '.sh', '.cmake', 'CMakeLists.txt', 'Makefile',
                 '.ci/run')
# Put together here, so that this file does not find itself.
LEFTOVER = re.compile(r'\b(' + 'TO' + r'DO\b(?!\(#\d+\))|' +
                      'FIX' + 'ME|' + 'XX' + 'X|HA' + r'CK)\b')
HOME_PATH = re.compile(r'(?<![\w.*}])/(?:home|root|Users|work|workspace|builds|mnt)/')
UPWARD_PATH = re.compile(r'(?<![\w./}*])(?:\.\./)+[\w.-]*')


def _is_code(file):
    return file.path.endswith(CODE_SUFFIXES) and not file.is_data


def check_blanks(tree):
    for file in tree.files:
        if file.is_data or file.path.endswith('LICENSE') or not file.text:
            continue
        for number, line in enumerate(file.lines, 1):
            if line != line.rstrip():
                yield file.find(number, 'blanks', 'ends in blanks')
            if '\t' in line and not (file.path.endswith('Makefile') and line.startswith('\t')):
                yield file.find(number, 'blanks', 'a tab; write spaces')
        if not file.text.endswith('\n'):
            yield file.find(len(file.lines), 'blanks', 'no newline at the end')
        elif file.text.endswith('\n\n'):
            yield file.find(len(file.lines), 'blanks', 'blank lines at the end')


def check_width(tree):
    for file in filter(_is_code, tree.files):
        for number, line in enumerate(file.lines, 1):
            is_link = re.fullmatch(r'\s*(//|#)\s*\S*https?://\S+', line)
            if len(line) > MAX_COLUMNS and not is_link:
                yield file.find(number, 'width', f'{len(line)} columns, at most {MAX_COLUMNS}')


def check_leftovers(tree):
    for file in filter(_is_code, tree.files):
        for number, line in enumerate(file.lines, 1):
            found = LEFTOVER.search(line)
            if found:
                what = 'TO' + 'DO(#n) with the number of an issue'
                yield file.find(number, 'leftover', f'{found.group(1)}; write {what}')


def _leaves_the_repository(file, path):
    return os.path.normpath(os.path.join(os.path.dirname(file.path), path)).startswith('..')


def check_foreign_paths(tree):
    """A clone lies anywhere, alone: no path of one machine, none out of the repository."""
    for file in tree.files:
        for number, line in enumerate(file.lines, 1):
            found = HOME_PATH.findall(line)
            found += [path for path in UPWARD_PATH.findall(line)
                      if _leaves_the_repository(file, path)]
            for path in found:
                yield file.find(number, 'foreign path', f'{path} is outside of this repository')


def check_shell(tree):
    for file in tree.files:
        if not file.lines[0].startswith('#!') or 'sh' not in file.lines[0]:
            continue
        if 'set -euo pipefail' not in file.lines[:20]:
            yield file.find(1, 'shell', 'no line "set -euo pipefail" near the top')


def _python_functions(file):
    for node in ast.walk(ast.parse(file.text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def check_python(tree):
    for file in tree.files:
        if not file.path.endswith('.py'):
            continue
        for node in _python_functions(file):
            length = node.end_lineno - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield file.find(node.lineno, 'function length',
                                f'{node.name}: {length} lines, at most {MAX_FUNCTION_LINES}')
            if len(node.args.args) > MAX_PARAMETERS:
                yield file.find(node.lineno, 'parameters', f'{node.name}: {len(node.args.args)}')


README_LINES = 120
LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')


def check_markdown(tree):
    """Links lead somewhere; a README fits on two pages."""
    folders = {os.path.dirname(path) for path in tree.all_paths}
    folders |= {os.path.dirname(folder) for folder in folders}
    for file in tree.files:
        if not file.path.endswith('.md'):
            continue
        if re.fullmatch(r'README(\.\w+)?\.md', file.path) and len(file.lines) - 1 > README_LINES:
            yield file.find(len(file.lines), 'readme', f'more than {README_LINES} lines')
        for number, line in enumerate(file.lines, 1):
            for target in LINK.findall(line):
                if re.match(r'[a-z]+:|#', target):
                    continue
                base = os.path.dirname(file.path)
                path = os.path.normpath(os.path.join(base, target.split('#')[0]))
                if path not in tree.all_paths and path not in folders:
                    yield file.find(number, 'link', f'{target} does not exist')


RULES = (check_blanks, check_width, check_leftovers, check_foreign_paths, check_shell, check_python,
         check_markdown)
