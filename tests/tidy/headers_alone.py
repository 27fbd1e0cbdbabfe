#!/usr/bin/env python3
"""Compiles each header of src/ by itself, as if it were the first include of a source.

    python3 tests/tidy/headers_alone.py BUILD_DIR/compile_commands.json
    python3 tests/tidy/headers_alone.py --public

Flags come from a source of the header's folder, so that each is seen with its real libraries.
--public compiles the headers of include/ instead, which see the standard library and each other.
"""

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
PUBLIC_FLAGS = ('-std=c++20', '-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Werror', '-Iinclude')
KEPT_FLAGS = ('-D', '-I', '-isystem', '-std', '-W', '-m', '-f')


def flags_of(command):
    """Preprocessor, language and warning flags; no input, no output."""
    words, kept = shlex.split(command), []
    for i, word in enumerate(words):
        if word.startswith(KEPT_FLAGS):
            kept.append(word)
        elif i > 0 and words[i - 1] == '-isystem':
            kept.append(word)
    return kept


def flags_by_folder(database):
    """Folder -> flags, for each folder with a source in the build."""
    by_folder = {}
    with open(database, encoding='utf-8') as stream:
        for entry in json.load(stream):
            folder = os.path.dirname(os.path.relpath(entry['file'], ROOT))
            flags = flags_of(entry['command'])
            if len(flags) > len(by_folder.get(folder, [])):  # tests see more libraries
                by_folder[folder] = flags
    return by_folder


def flags_for(header, by_folder):
    folder = os.path.dirname(header)
    while folder and folder not in by_folder:
        folder = os.path.dirname(folder)
    return by_folder.get(folder) or next(iter(by_folder.values()))


def headers(root):
    found = []
    for folder, _, names in os.walk(os.path.join(ROOT, root)):
        found += [os.path.join(folder, name) for name in names if name.endswith('.h')]
    return sorted(os.path.relpath(path, ROOT) for path in found)


def compile_alone(header, flags):
    """The compiler's complaint, or ''."""
    root = header.split(os.sep)[0]
    source = f'#include "{os.path.relpath(header, root)}"\n'
    command = [os.environ.get('CXX', 'g++'), *flags, '-fsyntax-only', '-x', 'c++', '-']
    done = subprocess.run(command, input=source, capture_output=True, text=True, cwd=ROOT)
    return done.stderr if done.returncode else ''


def main():
    public = sys.argv[1] == '--public'
    by_folder = {'include': PUBLIC_FLAGS} if public else flags_by_folder(sys.argv[1])
    paths = headers('include' if public else 'src')
    if not paths or not by_folder:
        sys.exit('headers_alone: found no header or no compile command')
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda path: compile_alone(path, flags_for(path, by_folder)),
                                   paths))
    failed = [(path, text) for path, text in zip(paths, complaints) if text]
    for path, text in failed:
        print(f'{path}: does not compile alone\n{text}')
    print(f'headers_alone: {len(paths)} headers, {len(failed)} failed')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
