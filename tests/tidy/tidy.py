#!/usr/bin/env python3
"""Holds the sources to the rules of this project; prints file:line: rule: message.

    python3 tests/tidy/tidy.py [ROOT]

Exit status 1 when a rule is broken.  tidy_test.py shows that each rule fires.
"""

import os
import sys

import citation_rules
import cpp_rules
import include_rules
import text_rules
import tree

RULES = text_rules.RULES + citation_rules.RULES + cpp_rules.RULES + include_rules.RULES


def findings_of(files):
    return sorted(finding for rule in RULES for finding in rule(files))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, '..', '..')
    files = tree.load(root)
    if not files.cpp():
        sys.exit(f'tidy: found no C++ source under {root}')
    findings = findings_of(files)
    for finding in findings:
        print(finding)
    print(f'tidy: {len(RULES)} rules on {len(files.files)} files, {len(findings)} findings')
    sys.exit(1 if findings else 0)


if __name__ == '__main__':
    main()
