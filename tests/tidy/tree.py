"""The files a rule may look at, and what a rule answers with."""

import os
import subprocess
from dataclasses import dataclass, field
from functools import cached_property

import cpp_scan

DATA_FOLDERS = ('models/', 'tests/data/', 'tests/golden/', 'tests/fuzz/corpus/')
SKIPPED_FOLDERS = ('.git', 'build', 'node_modules', '__pycache__')
LIST_COMMAND = ('git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard')
TEXT_LIMIT_BYTES = 1 << 20  # what is larger is data, not text


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f'{self.path}:{self.line}: {self.rule}: {self.message}'


@dataclass
class SourceFile:
    path: str  # from the repository's root, with /
    text: str

    @cached_property
    def lines(self):
        return self.text.split('\n')

    @cached_property
    def code(self):
        return cpp_scan.blank_code(self.text)

    @cached_property
    def functions(self):
        return cpp_scan.find_functions(self.text)

    @property
    def is_cpp(self):
        return self.path.endswith(('.h', '.cc', '.inc'))

    @property
    def is_header(self):
        return self.path.endswith('.h')

    @property
    def is_test(self):
        return self.path.endswith('_test.cc') or self.path.startswith('tests/')

    @property
    def is_data(self):
        return self.path.startswith(DATA_FOLDERS) and not self.path.endswith('.md')

    @property
    def folder(self):
        """The folder of src/ this file belongs to, `deepinfer` for public headers, or ''."""
        parts = self.path.split('/')
        if parts[:2] == ['include', 'deepinfer']:
            return 'deepinfer'
        return parts[1] if parts[0] == 'src' and len(parts) > 2 else ''

    def find(self, line, rule, message):
        return Finding(self.path, line, rule, message)


@dataclass
class Tree:
    files: list
    all_paths: set = field(default_factory=set)  # binary ones too

    def cpp(self):
        return [file for file in self.files if file.is_cpp]

    def named(self, path):
        return next((file for file in self.files if file.path == path), None)


def _tracked(root):
    try:
        done = subprocess.run(LIST_COMMAND, cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in done.stdout.decode().split('\0') if name]


def _walked(root):
    names = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in SKIPPED_FOLDERS]
        names += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return names


def list_paths(root):
    """Tracked and new files; without git, all files outside build folders."""
    names = _tracked(root) or _walked(root)
    return sorted(name for name in set(names) if os.path.isfile(os.path.join(root, name)))


def load(root):
    paths = list_paths(root)
    files = []
    for path in paths:
        full = os.path.join(root, path)
        if os.path.getsize(full) > TEXT_LIMIT_BYTES:
            continue
        with open(full, 'rb') as stream:
            content = stream.read()
        if b'\0' in content:
            continue
        files.append(SourceFile(path, content.decode('utf-8', errors='replace')))
    return Tree(files, set(paths))
