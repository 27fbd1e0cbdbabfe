"""Shows that every rule of the tidy check fires on a bad snippet and is silent on a good one."""

import unittest

import citation_rules
import cpp_rules
import cpp_scan
import include_rules
import text_rules
from tree import SourceFile, Tree


def tree_of(**texts):
    """tree_of(src__a__x_cc='...'): __ stands for /, the last _ for a dot."""
    files = []
    for name, text in texts.items():
        stem, _, suffix = name.replace('__', '/').rpartition('_')
        files.append(SourceFile(f'{stem}.{suffix}', text))
    return Tree(files, {file.path for file in files})


def rules_of(check, tree):
    return [finding.rule for finding in check(tree)]


def body(num_lines):
    return 'void F() {\n' + '  G();\n' * (num_lines - 2) + '}\n'


HEADER = '// What it is.\n#pragma once\n'


class ScanTest(unittest.TestCase):
    def functions(self, text):
        return {f.name: f for f in cpp_scan.find_functions(text)}

    def test_blanking_keeps_lines_and_columns(self):
        text = ('int a; // {\nchar b = \'{\'; /* {\n{ */ auto s = R"x({)" {)x";\n'
                'int n = 1\'000\'000;\n')
        code = cpp_scan.blank_code(text)
        self.assertEqual(len(code), len(text))
        self.assertNotIn('{', code)
        self.assertEqual(code.count('\n'), text.count('\n'))
        self.assertIn("1'000'000;", code)

    def test_line_comment_goes_on_after_backslash(self):
        self.assertNotIn('{', cpp_scan.blank_code('// a \\\n {\nint b;'))

    def test_escaped_quote_does_not_end_a_literal(self):
        self.assertNotIn('{', cpp_scan.blank_code(r'auto s = "\"{"; char c = ' + r"'\''; // {"))

    def test_finds_function_in_namespaces_and_classes(self):
        found = self.functions('namespace a::b {\nclass C : public D<int> {\n public:\n'
                               '  explicit C(int x) : x_{x}, y_(x) {\n    G();\n  }\n'
                               '  int f() const noexcept { return x_; }\n private:\n  int x_{0};\n'
                               '};\n}\n')
        self.assertEqual(set(found), {'C', 'f'})
        self.assertEqual((found['C'].first_line, found['C'].last_line), (4, 6))

    def test_initialisers_are_not_functions(self):
        found = self.functions('constexpr int kA[] = {1, 2};\nstd::map<int, F(int)> m{{1, f}};\n'
                               'struct S { int a = 1; std::vector<int> v{1}; };\n'
                               'enum class E { kA, kB };\nauto x = G({1, 2});\n')
        self.assertEqual([name for name, f in found.items() if f.has_body], [])

    def test_lambda_counts_in_its_function(self):
        found = self.functions('void F() {\n  Run([&](int a, int b) -> int {\n    return a;\n'
                               '  });\n}\nvoid G() {\n}\n')
        self.assertEqual(found['F'].last_line, 5)
        self.assertEqual(found['lambda'].num_parameters, 2)
        self.assertEqual(found['G'].first_line, 6)

    def test_counts_parameters_not_template_arguments(self):
        found = self.functions('void F(std::map<int, int> a, int (*f)(int, int), int b = G(1, 2))'
                               '{}\ntemplate <typename A, typename B>\nvoid H(A a);\n'
                               'struct T { void (*op)(int, int, int); };\n')
        self.assertEqual(found['F'].num_parameters, 3)
        self.assertEqual(found['H'].num_parameters, 1)
        self.assertEqual(found['op'].num_parameters, 3)

    def test_operators_have_parameters(self):
        found = self.functions('bool operator<(const A& a, const A& b) { return a.x < b.x; }\n'
                               'struct C { int operator()(int a) const { return a; } };\n')
        self.assertEqual(found['operator'].num_parameters, 2)
        self.assertEqual(found['operator()'].num_parameters, 1)

    def test_counts_nesting_with_and_without_braces(self):
        flat = self.functions('void F() { if (a) { b(); } else if (c) { d(); } else { e(); } }')
        self.assertEqual(flat['F'].nesting, 1)
        deep = self.functions('void F() {\n for (;;)\n  for (;;) {\n   if (a) b();\n  }\n c();\n}')
        self.assertEqual(deep['F'].nesting, 3)
        cases = self.functions('void F() { switch (a) { case 1: { b(); } default: c(); } }')
        self.assertEqual(cases['F'].nesting, 2)

    def test_unbalanced_branches_count_once(self):
        found = self.functions('#ifdef A\nvoid F() {\n#else\nvoid F(int) {\n#endif\n  G();\n}\n'
                               'void H() {}\n')
        self.assertEqual(found['F'].last_line, 7)
        self.assertEqual(found['H'].first_line, 8)

    def test_macro_bodies_are_skipped(self):
        found = self.functions('#define BEGIN(x) \\\n  if (x) {\nvoid F() {}\n')
        self.assertEqual(set(found), {'F'})


class SizeTest(unittest.TestCase):
    def test_long_function(self):
        self.assertEqual(rules_of(cpp_rules.check_functions, tree_of(src__a__x_cc=body(70))), [])
        self.assertEqual(rules_of(cpp_rules.check_functions, tree_of(src__a__x_cc=body(71))),
                         ['function length'])

    def test_fused_kernel_may_be_longer_with_a_reason(self):
        marked = '// tidy: ' + 'fused kernel: one pass over the rows\n'
        for text, expected in ((marked + body(150), []), (marked + body(151), ['function length']),
                               ('// tidy: ' + 'fused kernel:\n' + body(100), ['function length'])):
            self.assertEqual(rules_of(cpp_rules.check_functions, tree_of(src__a__x_cc=text)),
                             expected)

    def test_many_parameters(self):
        six = 'void F(int a, int b, int c, int d, int e, int f);\n'
        seven = six.replace('int f', 'int f, int g')
        self.assertEqual(rules_of(cpp_rules.check_functions, tree_of(src__a__x_h=six)), [])
        self.assertEqual(rules_of(cpp_rules.check_functions, tree_of(src__a__x_h=seven)),
                         ['parameters'])

    def test_deep_nesting(self):
        deep = 'void F() {\n' + 'if (a) {\n' * 5 + 'b();\n' + '}\n' * 6
        self.assertEqual(rules_of(cpp_rules.check_functions, tree_of(src__a__x_cc=deep)),
                         ['nesting'])

    def test_long_files(self):
        for name, limit in (('src__a__x_cc', 600), ('src__a__x_test_cc', 1000),
                            ('src__a__x_h', 300), ('src__a__x_inc', 1000)):
            good, bad = ('int a;\n' * n for n in (limit, limit + 1))
            self.assertEqual(rules_of(cpp_rules.check_sizes, tree_of(**{name: good})), [])
            self.assertEqual(rules_of(cpp_rules.check_sizes, tree_of(**{name: bad})),
                             ['file length'])

    def test_full_folder(self):
        sources = {f'src__a__x{i}_cc': '\n' for i in range(25)}
        sources['src__a__x1_test_cc'] = '\n'  # belongs to x1
        self.assertEqual(rules_of(cpp_rules.check_sizes, tree_of(**sources)), [])
        sources['src__a__y_h'] = '\n'
        self.assertEqual(rules_of(cpp_rules.check_sizes, tree_of(**sources)), ['folder size'])


class BannedTest(unittest.TestCase):
    BAD = ('std::regex r;', 'std::cerr << 1;', 'a << std::endl;', 'assert(a);', 'auto p = new int;',
           'delete p;', 'free(p);', 'int a = rand();', 'std::mt19937 g;', 'strcpy(a, b);',
           'std::normal_distribution<double> d;', 'snprintf(a, 1, b);', 'int a = atoi(b);',
           'int a = std::stoi(b);', 'usleep(3);', 'std::this_thread::sleep_for(a);', 'goto x;',
           'throw a;', 'double a = drand48();', 'using namespace std;', 'std::format(a);',
           '#pragma omp parallel', '#include <iostream>', '#pragma GCC optimize("O3")')
    GOOD = ('// std::regex', 'auto s = "std::cout";', 'static_assert(a);', 'X(const X&) = delete;',
            'void* operator new(size_t);', 'std::unique_ptr<A> a(new A(b));', 'MyAssert(a);',
            'int random(int);', 'pool.free_list(a);', 'std::from_chars(a, b, c);', '#include <new>',
            'void operator delete(void* p) noexcept { std::free(p); }',
            'fmt::print(stderr, a);', 'void F() noexcept;')

    def test_each_banned_call_fires(self):
        for text in self.BAD:
            with self.subTest(text):
                self.assertEqual(rules_of(cpp_rules.check_banned,
                                          tree_of(src__base__x_cc=text + '\n')), ['banned'])

    def test_every_pattern_has_a_bad_snippet(self):
        bad = self.BAD + ('std::exp(a)', 'using namespace a')
        texts = [cpp_scan.blank_code(text) for text in bad]
        for pattern, _, instead in cpp_rules.BANNED:
            self.assertTrue(any(pattern.search(text) for text in texts), pattern.pattern)
            self.assertTrue(instead)

    def test_good_code_is_left_alone(self):
        for text in self.GOOD:
            with self.subTest(text):
                self.assertEqual(rules_of(cpp_rules.check_banned,
                                          tree_of(src__base__x_cc=text + '\n')), [])

    def test_libm_is_banned_where_bits_count(self):
        text = 'float F(float x) { return std::exp(x); }\n'
        self.assertEqual(rules_of(cpp_rules.check_banned, tree_of(src__kernels__x_cc=text)),
                         ['banned'])
        for name in ('src__apps__x_cc', 'src__kernels__x_test_cc'):
            self.assertEqual(rules_of(cpp_rules.check_banned, tree_of(**{name: text})), [])

    def test_using_namespace_in_a_header(self):
        text = 'using namespace a;\n'
        self.assertEqual(rules_of(cpp_rules.check_banned, tree_of(src__a__x_h=text)), ['banned'])
        self.assertEqual(rules_of(cpp_rules.check_banned, tree_of(src__a__x_cc=text)), [])

    def test_flags_that_change_bits(self):
        for flag in ('-march=' + 'native', '-ffast' + '-math', '-O' + 'fast'):
            self.assertEqual(rules_of(cpp_rules.check_flags,
                                      tree_of(cmake__x_cmake=f'add_compile_options({flag})\n')),
                             ['banned'])
        self.assertEqual(rules_of(cpp_rules.check_flags,
                                  tree_of(cmake__x_cmake='# no -march=' + 'native here\n')), [])


class HeaderTest(unittest.TestCase):
    def test_header_without_guard_or_comment(self):
        self.assertEqual(rules_of(cpp_rules.check_headers, tree_of(src__a__x_h='// A.\nint a;\n')),
                         ['header'])
        self.assertEqual(rules_of(cpp_rules.check_headers,
                                  tree_of(src__a__x_h='#pragma once\nint a;\n')), ['header'])
        self.assertEqual(rules_of(cpp_rules.check_headers, tree_of(src__a__x_h=HEADER)), [])

    def test_heavy_library_in_a_public_header(self):
        heavy = HEADER + '#include <nlohmann/json.hpp>\n'
        through = HEADER + '#include "a/x.h"\n'
        user = '#include "a/y.h"\n'
        self.assertEqual(rules_of(cpp_rules.check_headers, tree_of(src__a__x_h=heavy)), [])
        self.assertEqual(rules_of(cpp_rules.check_headers, tree_of(
            src__a__x_h=heavy, src__a__y_h=through, src__b__z_cc=user)), ['header'])

    def test_mpi_outside_parallel(self):
        text = '#include <mpi.h>\n'
        self.assertEqual(rules_of(cpp_rules.check_headers, tree_of(src__kv__x_cc=text)), ['banned'])
        self.assertEqual(rules_of(cpp_rules.check_headers, tree_of(src__parallel__x_cc=text)), [])


class TestNameTest(unittest.TestCase):
    def check(self, head):
        return rules_of(cpp_rules.check_test_names, tree_of(src__a__x_test_cc=head + ' {}\n'))

    def test_names_are_sentences(self):
        self.assertEqual(self.check('TEST(BlockPoolTest, ReleaseOfLastRefFreesTheBlock)'), [])
        self.assertEqual(self.check('TEST_F(PoolTest, TestsEveryIsaOnce)'), [])
        for name in ('Test1', 'Works', 'PoolWorks', 'snake_case', 'Basic', 'BasicUse', 'Release',
                     'ReleaseTest2'):
            self.assertEqual(self.check(f'TEST(PoolTest, {name})'), ['test name'], name)
        self.assertEqual(self.check('TEST(Pool, ReleasesBlocksOnce)'), ['test name'])


class TextTest(unittest.TestCase):
    def test_blanks(self):
        for text in ('int a; \n', '\tint a;\n', 'int a;', 'int a;\n\n'):
            self.assertEqual(rules_of(text_rules.check_blanks, tree_of(src__a__x_cc=text)),
                             ['blanks'], repr(text))
        self.assertEqual(rules_of(text_rules.check_blanks, tree_of(src__a__x_cc='int a;\n')), [])

    def test_wide_line(self):
        self.assertEqual(rules_of(text_rules.check_width, tree_of(src__a__x_cc='a' * 101 + '\n')),
                         ['width'])
        self.assertEqual(rules_of(text_rules.check_width, tree_of(
            src__a__x_cc='a' * 100 + '\n// https://example.org/' + 'a' * 100 + '\n')), [])

    def test_leftovers(self):
        todo = 'TO' + 'DO'
        for text in (todo + ': later', todo + '(me): later', 'FIX' + 'ME', 'XX' + 'X'):
            self.assertEqual(rules_of(text_rules.check_leftovers,
                                      tree_of(src__a__x_cc=f'// {text}\n')), ['leftover'], text)
        self.assertEqual(rules_of(text_rules.check_leftovers,
                                  tree_of(src__a__x_cc=f'// {todo}(#12): later\n')), [])

    def test_foreign_paths(self):
        for path in ('/' + 'home/x', '../' * 2 + 'x', '"' + '../' * 3 + 'x"'):
            self.assertEqual(rules_of(text_rules.check_foreign_paths,
                                      tree_of(docs__x_md=f'see {path}\n')), ['foreign path'], path)
        for path in ('../' + 'README.md', '/data/x', 'a/home/x'):
            self.assertEqual(rules_of(text_rules.check_foreign_paths,
                                      tree_of(docs__x_md=f'see {path}\n')), [], path)

    def test_shell_without_strict_mode(self):
        self.assertEqual(rules_of(text_rules.check_shell,
                                  tree_of(scripts__x_sh='#!/usr/bin/env bash\ncd x\n')), ['shell'])
        self.assertEqual(rules_of(text_rules.check_shell, tree_of(
            scripts__x_sh='#!/usr/bin/env bash\nset -euo pipefail\n')), [])

    def test_long_python_function(self):
        text = 'def f():\n' + '    g()\n' * 70
        self.assertEqual(rules_of(text_rules.check_python, tree_of(tests__x_py=text)),
                         ['function length'])

    def test_markdown_links_and_length(self):
        self.assertEqual(rules_of(text_rules.check_markdown, tree_of(
            README_md='[a](b.md) [c](https://x.org) [d](#e) [f](README.md#g)\n')), ['link'])
        self.assertEqual(rules_of(text_rules.check_markdown, tree_of(README_md='a\n' * 121)),
                         ['readme'])


# Put together here, so that the rule does not take these snippets for citations.
SECTION = 'sec' + 'tion'


class CitationTest(unittest.TestCase):
    PAGES = {'docs__a_md': '# A\n## 2. Two\n### 2.1 Part\n## 3 Three\n',
             'docs__formats__b_md': '# B\n## 7. Seven\n'}

    def check(self, text, name='src__x__x_h'):
        return [finding.message for finding in
                citation_rules.check_citations(tree_of(**{**self.PAGES, name: text}))]

    def test_sections_that_exist(self):
        for text in (f'// (a.md {SECTION} 2.1)', f'// a.md {SECTION}s 2 and 3.',
                     f'// b.md {SECTION} 7', f'// docs/formats/b.md {SECTION} 7: a',
                     f'// a.md\n// {SECTION}s 2 to 3', f'// a.md {SECTION} 2, b.md {SECTION} 7',
                     f'// a.md and {SECTION}s'):
            self.assertEqual(self.check(text + '\n'), [], text)
        for text in (f'[b.md](formats/b.md) {SECTION} 7', f'`a.md` {SECTION} 2'):
            self.assertEqual(self.check(text + '\n', 'docs__c_md'), [], text)

    def test_sections_that_do_not_exist(self):
        for text in (f'// (a.md {SECTION} 2.2)', f'// a.md {SECTION}s 2 and 4.',
                     f'// a.md {SECTION} 7', f'// a.md\n// {SECTION}s 2, 3, 3.1',
                     f'// {SECTION} 2 of something'):
            self.assertEqual(len(self.check(text + '\n')), 1, text)

    def test_document_that_does_not_exist(self):
        self.assertEqual(self.check(f'// none.md {SECTION} 2\n'),
                         [f'{SECTION} 2: none.md does not exist'])
        self.assertEqual(len(self.check(f'// formats/a.md {SECTION} 2\n')), 1)

    def test_without_a_document_the_page_itself_or_the_last_one_is_meant(self):
        self.assertEqual(self.check(f'// a.md {SECTION} 2\n// {SECTION} 3\n'), [])
        self.assertEqual(len(self.check(f'// b.md {SECTION} 7\n// {SECTION} 3\n')), 1)
        page = f'## 1. One\na.md {SECTION} 2, {SECTION} 1, {SECTION} 3\n'
        self.assertEqual(self.check(page, 'docs__c_md'), ['docs/c.md has no ' + SECTION + ' 3'])

    def test_data_is_not_read(self):
        self.assertEqual(self.check(f'none.md {SECTION} 2\n', 'tests__data__x_txt'), [])


TABLE = '''# Architecture
| rank | folder | may include |
|---|---|---|
| 0 | base | std |
| 1 | io | |
| 2 | kv | io (file.h) |
| 3 | model | kv |
'''


class IncludeTest(unittest.TestCase):
    def check(self, table=TABLE, **texts):
        sources = {'src__base__b_h': HEADER, 'src__io__file_h': HEADER, 'src__io__disk_h': HEADER,
                   'src__kv__k_h': HEADER, 'src__model__m_h': HEADER}
        tree = tree_of(ARCHITECTURE_md=table, **{**sources, **texts})
        return [finding.message for finding in include_rules.check_includes(tree)]

    def test_listed_edges_are_allowed(self):
        self.assertEqual(self.check(src__kv__x_cc='#include "io/file.h"\n#include "base/b.h"\n'
                                                  '#include "kv/k.h"\n'), [])

    def test_unlisted_edge(self):
        self.assertEqual(len(self.check(src__io__x_cc='#include "kv/k.h"\n')), 1)
        self.assertEqual(len(self.check(src__model__x_cc='#include "io/file.h"\n')), 1)

    def test_edge_limited_to_a_header(self):
        self.assertEqual(len(self.check(src__kv__x_cc='#include "io/disk.h"\n')), 1)

    def test_tests_may_include_lower_ranks(self):
        self.assertEqual(self.check(src__model__x_test_cc='#include "io/disk.h"\n'), [])
        self.assertEqual(len(self.check(src__io__x_test_cc='#include "kv/k.h"\n')), 1)

    def test_missing_file(self):
        self.assertEqual(len(self.check(src__kv__x_cc='#include "kv/none.h"\n')), 1)
        self.assertEqual(self.check(src__kv__x_cc='// #include "kv/none.h"\n'), [])

    def test_table_has_a_row_for_each_folder_and_no_other(self):
        self.assertEqual(len(self.check(src__wire__x_h=HEADER)), 1)
        self.assertEqual(len(self.check(table=TABLE + '| 4 | sched | kv |\n')), 1)
        self.assertEqual(len(self.check(table='')), 1)

    def test_table_points_downwards_so_there_is_no_cycle(self):
        table = TABLE.replace('| 1 | io | |', '| 1 | io | model |')
        self.assertEqual(len(self.check(table=table)), 1)


if __name__ == '__main__':
    unittest.main()
