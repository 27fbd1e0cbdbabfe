"""Rules for C++ sources: sizes, banned calls, headers, names of tests."""

import os
import re
from collections import defaultdict

MAX_FUNCTION_LINES = 70
MAX_FUSED_KERNEL_LINES = 150
FUSED_KERNEL = re.compile(r'//\s*tidy: fused kernel: \S+')
MAX_PARAMETERS = 6
MAX_NESTING = 4
MAX_CC_LINES = 600
MAX_TABLE_LINES = 1000  # tests, and tables: *.inc
MAX_HEADER_LINES = 300
MAX_FOLDER_SOURCES = 25

ANY, SHIPPED, HEADER, NETWORK = 'any', 'shipped', 'header', 'network'
NETWORK_FOLDERS = ('tensor', 'kernels', 'model', 'sampling')  # where the same bits are a promise

# (pattern on code without comments and literals, where, what to write instead)
BANNED = [(re.compile(pattern), where, instead) for pattern, where, instead in (
    (r'\bstd::regex\b', ANY, 'PCRE2 (tokenizer/pre_tokenizer.cc) or a hand-written scan'),
    (r'\bstd::(?:cout|cerr|clog)\b', ANY,
     'the Output of apps/output.h for results, base/log.h for the rest'),
    (r'\bstd::endl\b', ANY, "'\\n'"),
    (r'(?<![\w.:>])assert\s*\(', ANY, 'CHECK or DCHECK of base/check.h'),
    (r'(?<!operator )(?<!<)\bnew\b(?!\s*\()', ANY, 'std::make_unique or a container'),
    (r'(?<!operator )(?<!= )\bdelete\b', ANY, 'std::unique_ptr or a container'),
    (r'\b(?:std::)?(?:malloc|calloc|realloc|free)\s*\(', ANY, 'a container or std::unique_ptr'),
    (r'(?<![\w.>])(?:std::)?s?rand\s*\(', ANY, 'Philox of base/random.h'),
    (r'\bstd::(?:mt19937(?:_64)?|minstd_rand|default_random_engine)\b', SHIPPED,
     'Philox of base/random.h: the same bits everywhere'),
    (r'\bstd::(?:uniform_\w+|normal|discrete|bernoulli)_distribution\b', SHIPPED,
     'arithmetic on Philox of base/random.h: libraries differ in distributions'),
    (r'\b(?:strcpy|strncpy|strcat|strncat|strtok|gets)\s*\(', ANY, 'std::string'),
    (r'\b(?:std::)?v?sn?printf\s*\(', ANY, 'fmt::format'),
    (r'\b(?:std::)?ato(?:i|l|ll|f)\s*\(', ANY, 'std::from_chars'),
    (r'\bstd::sto(?:i|l|ll|ul|ull|f|d|ld)\s*\(', SHIPPED, 'std::from_chars: no exceptions'),
    (r'(?<![\w.>])(?:u|nano)?sleep\s*\(|\bsleep_(?:for|until)\s*\(', SHIPPED,
     'a condition variable with a deadline'),
    (r'\bgoto\b', ANY, 'a function that returns'),
    (r'\bthrow\b(?!\s*\()', SHIPPED, 'Status or Result of base/status.h'),
    (r'\b(?:std::)?(?:rand_r|drand48)\s*\(\s*\)', ANY, 'Philox of base/random.h'),
    (r'\busing\s+namespace\s+std\s*;', ANY, 'std:: where it is used'),
    (r'(?m)^using\s+namespace\b', HEADER, 'qualified names'),
    (r'\bstd::(?:source_location|format|expected)\b', ANY,
     '__builtin_LINE(), fmt::format, Result: this toolchain has no such thing'),
    (r'#\s*pragma\s+omp\b', ANY, 'the thread pool of kernels/exec_context.h'),
    (r'#\s*include\s*<(?:iostream|regex|cassert|assert\.h|source_location|expected)>', ANY,
     'nothing of it: see the other rules'),
    (r'\bstd::(?:expm?1?|exp2|log|log2|log10|log1p|pow|sin|cos|tan|tanh|erf|cbrt)f?\s*\(', NETWORK,
     'kernels/math.h or kernels/math64.h: the same bits on every machine'),
    (r'#\s*pragma\s+(?:GCC|clang)\s+optimize|\boptimize\s*\(', ANY, 'flags in CMakeLists.txt'),
)]
BANNED_FLAGS = re.compile(r'-march=native|-mtune=native|-ffast-math|-Ofast|-funsafe-math\S*|'
                          r'-fassociative-math|-freciprocal-math|-fopenmp')
HEAVY_HEADER = re.compile(r'#\s*include\s*[<"]'
                          r'((?:boost/beast|nlohmann|CLI|spdlog)/[^>"]+|simdjson\.h)')
MPI_HEADER = re.compile(r'#\s*include\s*[<"]mpi\.h')
QUOTED_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def _line_of(text, position):
    return text.count('\n', 0, position) + 1


def _max_lines(file):
    if file.is_header:
        return MAX_HEADER_LINES
    return MAX_TABLE_LINES if file.is_test or file.path.endswith('.inc') else MAX_CC_LINES


def check_sizes(tree):
    for file in tree.cpp():
        num_lines = len(file.lines) - 1
        if num_lines > _max_lines(file):
            yield file.find(num_lines, 'file length',
                            f'{num_lines} lines, at most {_max_lines(file)}')
    stems = defaultdict(set)  # x.h, x.cc, x_test.cc are one source
    for file in tree.cpp():
        folder, name = os.path.split(file.path)
        stems[folder].add(re.sub(r'(_slow)?(_test)?\.\w+$', '', name))
    for folder, names in sorted(stems.items()):
        if len(names) > MAX_FOLDER_SOURCES:
            first = min(file.path for file in tree.cpp() if os.path.dirname(file.path) == folder)
            yield tree.named(first).find(1, 'folder size', f'{folder}: {len(names)} sources, '
                                                           f'at most {MAX_FOLDER_SOURCES}')


def _is_fused_kernel(file, function):
    first = function.first_line - 1
    while first > 0 and file.lines[first - 1].lstrip().startswith('//'):
        first -= 1
    return any(FUSED_KERNEL.search(line) for line in file.lines[first:function.last_line])


def check_functions(tree):
    for file in tree.cpp():
        for function in file.functions:
            at, name = function.first_line, function.name
            limit = MAX_FUNCTION_LINES
            if function.num_lines > limit and _is_fused_kernel(file, function):
                limit = MAX_FUSED_KERNEL_LINES
            if function.has_body and function.num_lines > limit:
                yield file.find(at, 'function length',
                                f'{name}: {function.num_lines} lines, at most {limit}')
            if function.num_parameters > MAX_PARAMETERS:
                yield file.find(at, 'parameters', f'{name}: {function.num_parameters}, at most '
                                                  f'{MAX_PARAMETERS}; write a struct')
            if function.nesting > MAX_NESTING and not function.inside_another:
                yield file.find(at, 'nesting', f'{name}: {function.nesting} levels, at most '
                                               f'{MAX_NESTING}')


def _applies(where, file):
    if where == SHIPPED:
        return not file.is_test
    if where == HEADER:
        return file.is_header
    if where == NETWORK:
        return file.folder in NETWORK_FOLDERS and not file.is_test
    return True


def _is_owned_at_once(line):
    """new in the arguments of a smart pointer: the one way to reach a private constructor."""
    return re.search(r'unique_ptr<.*>\s*\w*\(\s*new\b', line)


def _replaces_operator(line):
    """An operator delete of our own gives memory back the only way there is."""
    return line.startswith('void operator delete')


def check_banned(tree):
    for file in tree.cpp():
        for pattern, where, instead in BANNED:
            if not _applies(where, file):
                continue
            for found in pattern.finditer(file.code):
                line = _line_of(file.code, found.start())
                text = file.code.split('\n')[line - 1]
                if found.group() == 'new' and _is_owned_at_once(text):
                    continue
                if 'free' in found.group() and _replaces_operator(text):
                    continue
                yield file.find(line, 'banned', f'{found.group().strip()}; write {instead}')


def check_flags(tree):
    for file in tree.files:
        is_build = file.path.endswith(('CMakeLists.txt', '.cmake', 'CMakePresets.json', 'Makefile'))
        if not is_build:
            continue
        for number, line in enumerate(file.lines, 1):
            found = BANNED_FLAGS.search(line.split('#')[0])
            if found:
                yield file.find(number, 'banned', f'{found.group()}: the same bits on every '
                                                  'machine; name instruction sets per source')


def quoted_includes(file):
    """(line, path) of every #include "path"."""
    return [(_line_of(file.text, m.start(1)), m.group(1)) for m in
            QUOTED_INCLUDE.finditer(file.text) if file.code[m.start(1) - 1] == '"']


def public_headers(tree):
    """Headers that another folder includes, by itself or through another header."""
    by_path = {file.path: file for file in tree.cpp()}
    waiting = [f'src/{path}' for file in tree.cpp() for _, path in quoted_includes(file)
               if file.folder and path.split('/')[0] != file.folder]
    public = set()
    while waiting:
        path = waiting.pop()
        if path in public or path not in by_path or not path.endswith('.h'):
            continue
        public.add(path)
        waiting += [f'src/{name}' for _, name in quoted_includes(by_path[path])]
    return public


def check_headers(tree):
    public = public_headers(tree)
    for file in tree.cpp():
        for found in MPI_HEADER.finditer(file.text):
            if file.folder != 'parallel':
                yield file.find(_line_of(file.text, found.start()), 'banned',
                                'mpi.h; write Communicator (only parallel knows MPI)')
        if not file.is_header:
            continue
        if not re.search(r'(?m)^#pragma once$', file.text):
            yield file.find(1, 'header', 'no #pragma once')
        if not file.text.startswith('//'):
            yield file.find(1, 'header', 'does not open with a comment that says what it is')
        for found in HEAVY_HEADER.finditer(file.text):
            if file.path in public:
                yield file.find(_line_of(file.text, found.start()), 'header',
                                f'{found.group(1)} in a header that other folders include')


TEST_MACRO = re.compile(r'\b(?:TYPED_)?TEST(?:_[FP])?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)')


def _is_sentence(name):
    words = re.findall(r'[A-Z][a-z0-9]*|[A-Z]+(?![a-z])', name)
    return '_' not in name and name[0].isupper() and len(words) >= 2


def check_test_names(tree):
    for file in tree.cpp():
        for found in TEST_MACRO.finditer(file.code):
            suite, name = found.groups()
            line = _line_of(file.code, found.start())
            if not re.fullmatch(r'[A-Z]\w*Test', suite) or '_' in suite:
                yield file.find(line, 'test name', f'suite {suite}; write a class name + Test')
            if not _is_sentence(name) or re.match('Test[A-Z\\d]|Basic|Simple', name) \
                    or re.search(r'Works?$|Test\d*$', name):
                yield file.find(line, 'test name', f'{name}; write a sentence of behaviour, such '
                                                   'as ReleaseOfLastRefFreesTheBlock')


RULES = (check_sizes, check_functions, check_banned, check_flags, check_headers, check_test_names)
