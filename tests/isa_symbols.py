#!/usr/bin/env python3
"""Object files of one instruction set must share no function with other files: the linker keeps one
copy of an inline function, and a processor without the set would run it.

    isa_symbols.py OBJECT...

Of the objects whose path has a folder avx2/ or avx512/, every function that other objects may also
define must be named after that set.
"""
import pathlib
import subprocess
import sys

SETS = ("avx2", "avx512")


def set_of(path):
    return next((s for s in SETS if s in pathlib.Path(path).parts), None)


def shared_functions(path, isa):
    """Weak functions of the object that do not name its set."""
    nm = subprocess.run(["nm", "--demangle", "--defined-only", path], check=True,
                        capture_output=True, text=True)
    for line in nm.stdout.splitlines():
        _, kind, name = line.split(maxsplit=2)
        if kind == "W" and f"{isa}::" not in name:
            yield name


def main():
    objects = [(path, isa) for path in sys.argv[1:] if (isa := set_of(path))]
    if not objects:
        sys.exit("isa_symbols: no object of an instruction set among the arguments")
    findings = 0
    for path, isa in objects:
        for name in shared_functions(path, isa):
            print(f"{path}: compiled for {isa}, but may replace a copy elsewhere: {name}")
            findings += 1
    print(f"isa_symbols: {len(objects)} objects, {findings} findings")
    sys.exit(findings > 0)


if __name__ == "__main__":
    main()
