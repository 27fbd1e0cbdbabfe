"""Reads C++ closely enough to measure it: literals and comments blanked, braces told apart.

blank_code() keeps every line and column, so a position found in its result is a position in the
file.  find_functions() gives each function body, or declaration, with its lines, parameters and
nesting.  Macro bodies are not looked into; of an #if with unbalanced branches, the first counts.
"""

import re
from dataclasses import dataclass, field

RAW_STRING = re.compile(r'(?:u8|[uUL])?R"([^()\\\s]{0,16})\(')
TOKEN = re.compile(r'[A-Za-z_]\w*|\d(?:[\w.]|[eEpP][+-])*|"\s*"|\'\s*\'|::|->|&&|\|\||[^\s\w]')
CONTROL = {'if', 'for', 'while', 'switch', 'catch'}
QUALIFIERS = {'noexcept', 'alignas', 'decltype', 'requires', 'explicit', '__attribute__', 'throw'}


def _spaces(text):
    return re.sub(r'[^\n]', ' ', text)


def _literal_end(text, start):
    """Index after the closing quote of the literal that opens at start."""
    quote, i = text[start], start + 1
    while i < len(text) and text[i] not in (quote, '\n'):
        i += 2 if text[i] == '\\' else 1
    return min(i + 1, len(text))


def _comment_end(text, start):
    if text.startswith('/*', start):
        end = text.find('*/', start + 2)
        return len(text) if end < 0 else end + 2
    end = start
    while True:  # a line comment goes on after a backslash
        end = text.find('\n', end)
        if end < 0:
            return len(text)
        if text[end - 1] != '\\':
            return end
        end += 1


def _is_digit_separator(text, i):
    before = re.search(r'\w+$', text[max(0, i - 40):i])
    return bool(before) and before.group()[0].isdigit()


def blank_code(text, keep_comments=False):
    """Same length and lines; comments and the insides of literals are spaces."""
    out, i, done = [], 0, 0

    def replace(start, end, with_text):
        nonlocal i, done
        out.extend([text[done:start], with_text])
        i = done = end

    while i < len(text):
        c = text[i]
        raw = RAW_STRING.match(text, i) if c in 'uULR' and not text[i - 1:i].isalnum() else None
        if raw:
            close = text.find(')' + raw.group(1) + '"', raw.end())
            end = len(text) if close < 0 else close + len(raw.group(1)) + 2
            replace(i, end, '"' + _spaces(text[i + 1:end - 1]) + '"')
        elif text.startswith(('//', '/*'), i):
            end = _comment_end(text, i)
            replace(i, end, text[i:end] if keep_comments else _spaces(text[i:end]))
        elif c == '"' or (c == "'" and not _is_digit_separator(text, i)):
            end = _literal_end(text, i)
            replace(i, end, c + _spaces(text[i + 1:end - 1]) + c)
        else:
            i += 1
    return ''.join(out) + text[done:]


def _directive_lines(lines):
    """Yields (first, last, name) of each preprocessor directive."""
    i = 0
    while i < len(lines):
        match = re.match(r'\s*#\s*(\w*)', lines[i])
        first = i
        if match:
            while lines[i].endswith('\\') and i + 1 < len(lines):
                i += 1
            yield first, i, match.group(1)
        i += 1


def _blank_lines(lines, first, last):
    for i in range(first, last + 1):
        lines[i] = ''


def _balanced(lines):
    text = '\n'.join(lines)
    return text.count('{') == text.count('}') and text.count('(') == text.count(')')


def without_preprocessor(code):
    """Directives blanked, and #else branches too where a branch is not balanced by itself."""
    lines = code.split('\n')
    directives = list(_directive_lines(lines))
    for first, last, _ in directives:
        _blank_lines(lines, first, last)
    open_ifs = []
    for first, last, name in directives:
        if name in ('if', 'ifdef', 'ifndef'):
            open_ifs.append([(last + 1, None)])
        elif name in ('else', 'elif', 'endif') and open_ifs:
            branches = open_ifs[-1]
            branches[-1] = (branches[-1][0], first)
            branches.append((last + 1, None))
            if name == 'endif':
                open_ifs.pop()
                spans = branches[:-1]
                if not all(_balanced(lines[begin:end]) for begin, end in spans):
                    for begin, end in spans[1:]:
                        _blank_lines(lines, begin, end - 1)
    return '\n'.join(lines)


@dataclass
class Token:
    text: str
    line: int


@dataclass
class Function:
    name: str
    first_line: int
    last_line: int
    num_parameters: int
    nesting: int = 0
    has_body: bool = True
    inside_another: bool = False  # a lambda; its nesting is part of its function's

    @property
    def num_lines(self):
        return self.last_line - self.first_line + 1


@dataclass
class Scope:
    """One open brace.  kind: file, namespace, type, enum, function, lambda, block, init."""
    kind: str
    depth: int = 0        # control levels between the function's body and here
    pending: int = 0      # controls without braces that are open in front of this statement
    parens: int = 0
    head: list = field(default_factory=list)  # tokens since the last ; { } of this scope
    function: Function = None

    @property
    def declares(self):
        return self.kind in ('file', 'namespace', 'type')


def tokenize(code):
    line, last, tokens = 1, 0, []
    for match in TOKEN.finditer(code):
        line += code.count('\n', last, match.start())
        last = match.start()
        tokens.append(Token(match.group(), line))
    return tokens


def _top_level(head):
    """The head's tokens outside template brackets; a paren group stays, as one nested list."""
    out, angles, groups = [], 0, []
    for token in head:
        text = token.text
        if groups or (text in '([' and angles == 0):
            if text in '([':
                groups.append([text])
            elif text in ')]':
                done = groups.pop()
                (groups[-1] if groups else out).append(done)
            else:
                groups[-1].append(text)
        elif text == '<' and out and out[-1] not in ('operator', '<'):
            angles += 1
        elif text == '>' and angles:
            angles -= 1
        elif angles == 0:
            out.append(text)
    return out + groups[:1]


def _parameter_group(top):
    """(name, group) of the parameter list among top-level tokens, or None."""
    for i, item in enumerate(top):
        if not isinstance(item, list) or item[0] != '(' or i == 0:
            continue
        before = top[i - 1]
        is_pointer = len(item) > 1 and item[1] == '*'  # void (*name)(...)
        if isinstance(before, list) and before[0] == '(' and before[1:2] == ['*']:
            return ''.join(t for t in before[2:] if isinstance(t, str)), item
        if is_pointer or isinstance(before, str) and before in QUALIFIERS:
            continue
        if before == 'operator' and i + 1 < len(top):  # operator()(...)
            return 'operator()', top[i + 1] if isinstance(top[i + 1], list) else item
        if 'operator' in top[max(0, i - 3):i]:
            return 'operator', item
        if isinstance(before, str) and re.match(r'[A-Za-z_]', before):
            return before, item
    return None


def _count_parameters(group):
    inside = group[1:]
    if not inside or inside == ['void']:
        return 0
    angles = commas = 0
    for i, item in enumerate(inside):
        if item == '<':
            angles += 1
        elif item == '>' and inside[i - 1] != '-':
            angles = max(0, angles - 1)
        elif item == ',' and angles == 0:
            commas += 1
    return commas + 1


def _is_lambda(head):
    """Whether the '{' after head opens a lambda's body: [..] (..)? specifiers."""
    top = _top_level(head)
    i = len(top) - 1
    arrow = next((k for k in range(i, -1, -1) if top[k] == '->'), None)
    if arrow is not None:
        i = arrow - 1
    while i >= 0 and top[i] in ('mutable', 'noexcept', 'constexpr'):
        i -= 1
    if i >= 0 and isinstance(top[i], list) and top[i][0] == '(':
        i -= 1
    is_capture = i >= 0 and isinstance(top[i], list) and top[i][0] == '['
    before = top[i - 1] if is_capture and i > 0 else None
    return is_capture and (before is None or before == 'return' or
                           not re.match(r'[\w\])]', str(before)[:1]))


def _in_init_list(top):
    """Whether the head has come to 'Constructor(...) :'."""
    groups = [i for i, item in enumerate(top) if isinstance(item, list) and item[0] == '(']
    return bool(groups) and ':' in top[groups[0]:]


def _declared_kind(scope):
    """What a '{' opens at file, namespace or class level."""
    top = _top_level(scope.head)
    words = [item for item in top if isinstance(item, str)]
    last = top[-1] if top else ''
    if 'namespace' in words or words == ['extern', '""'] or words[:1] == ['extern'] and '"' in last:
        return 'namespace'
    found = _parameter_group(top)
    if 'enum' in words:
        return 'enum'
    if {'class', 'struct', 'union'} & set(words) and (found is None or last == found[0]):
        return 'type'
    if {'class', 'struct', 'union'} & set(words) and not _ends_like_function(top):
        return 'type'
    if last == '=' or found is None or ('=' in words and 'operator' not in words):
        return 'init'
    if _in_init_list(top) and isinstance(last, str) and re.match(r'\w', last):
        return 'init'
    return 'function'


def _ends_like_function(top):
    last = top[-1] if top else ''
    return isinstance(last, list) or last in ('const', 'noexcept', 'override', 'final')


def _statement_kind(scope):
    """What a '{' opens inside a function."""
    head = [token.text for token in scope.head]
    if not head or head[-1] in ('else', 'do', 'try', ':'):
        return 'block'
    if head[-1] == ')':
        return 'block'
    words = [item for item in _top_level(scope.head) if isinstance(item, str)]
    if 'enum' in words[:2]:
        return 'enum'
    if words[0] in ('struct', 'class', 'union') and '=' not in words:
        return 'type'
    return 'init'


class _Walker:
    def __init__(self, code):
        self.tokens = tokenize(without_preprocessor(code))
        self.scopes = [Scope('file')]
        self.functions = []

    def walk(self):
        for i, token in enumerate(self.tokens):
            scope = self.scopes[-1]
            following = self.tokens[i + 1].text if i + 1 < len(self.tokens) else ''
            if token.text == '{':
                self._open(token)
            elif token.text == '}':
                self._close(token)
            elif token.text == ';' and scope.parens == 0:
                self._end_statement(token)
            else:
                self._within(token, following)
        return self.functions

    def _open(self, token):
        scope = self.scopes[-1]
        if _is_lambda(self._current_argument()):
            kind = 'lambda'
        elif scope.parens > 0 or scope.kind in ('enum', 'init'):
            kind = 'init'
        else:
            kind = _declared_kind(scope) if scope.declares else _statement_kind(scope)
        self._note_depth(scope.depth + scope.pending)
        inner = Scope(kind, depth=scope.depth + scope.pending + (kind in ('block', 'lambda')))
        if kind in ('function', 'lambda'):
            self._begin_function(inner, scope, token)
        self.scopes.append(inner)

    def _begin_function(self, inner, scope, token):
        outer = next((s.function for s in reversed(self.scopes) if s.function), None)
        head = self._current_argument() if inner.kind == 'lambda' else scope.head
        found = _parameter_group(_top_level(head))
        if inner.kind == 'lambda':
            groups = [g for g in _top_level(head) if isinstance(g, list) and g[0] == '(']
            found = ('lambda', groups[-1] if groups else ['('])
        name, group = found
        first = head[0].line if head else token.line
        inner.function = Function(name, first, token.line, _count_parameters(group))
        inner.function.inside_another = inner.kind == 'lambda' and outer is not None
        if inner.kind == 'function' or outer is None:
            inner.depth = 0
        self.functions.append(inner.function)

    def _current_argument(self):
        """The head's tail that belongs to the innermost open parenthesis."""
        head, depth = self.scopes[-1].head, 0
        for i in range(len(head) - 1, -1, -1):
            if head[i].text in ')]':
                depth += 1
            elif head[i].text in '([':
                depth -= 1
            if depth < 0 or (depth == 0 and head[i].text == ','):
                return head[i + 1:]
        return head

    def _close(self, token):
        if len(self.scopes) == 1:
            return
        closed = self.scopes.pop()
        scope = self.scopes[-1]
        if closed.function:
            closed.function.last_line = token.line
        if closed.kind in ('init', 'lambda'):
            scope.head.append(Token('""', token.line))  # stands for the value
        elif closed.kind not in ('type', 'enum'):
            scope.head = []
            scope.pending = 0
        else:
            scope.head = [Token('""', token.line)]

    def _end_statement(self, token):
        scope = self.scopes[-1]
        self._note_depth(scope.depth + scope.pending)
        if scope.declares and scope.head:
            self._declaration(scope, token)
        scope.head = []
        scope.pending = 0

    def _declaration(self, scope, token):
        top = _top_level(scope.head)
        found = _parameter_group(top)
        words = [item for item in top if isinstance(item, str)]
        is_macro = scope.kind != 'type' and top and top[0] == (found or ('',))[0]
        if not found or is_macro or {'using', 'typedef', 'friend', 'return'} & set(words):
            return
        at = top.index(found[1])
        if '=' in top[:at] and found[0] != 'operator':
            return
        self.functions.append(Function(found[0], scope.head[0].line, token.line,
                                       _count_parameters(found[1]), has_body=False))

    def _within(self, token, following):
        scope = self.scopes[-1]
        if token.text in '([':
            scope.parens += 1
        elif token.text in ')]':
            scope.parens = max(0, scope.parens - 1)
        scope.head.append(token)
        if scope.declares:
            if token.text == ':' and scope.head[0].text in ('public', 'private', 'protected'):
                scope.head = []
            return
        is_label = token.text == ':' and scope.head[0].text in ('case', 'default')
        if is_label and scope.parens == 0 and scope.kind in ('block', 'function', 'lambda'):
            scope.head = []
        if scope.parens == 0 and following != '{' and self._ends_control(scope, following):
            scope.pending += 1
            scope.head = []

    @staticmethod
    def _ends_control(scope, following):
        """Whether the head is a whole control statement whose body has no braces."""
        words = [token.text for token in scope.head]
        if words == ['else']:
            return following != 'if'
        if words == ['do']:
            return True
        if words[:1] == ['else']:
            words = words[1:]
        is_control = words[:1] and words[0] in CONTROL
        return bool(is_control) and words[-1] == ')' and following != ';'

    def _note_depth(self, depth):
        for scope in reversed(self.scopes):
            if scope.function:
                scope.function.nesting = max(scope.function.nesting, depth)
                if scope.kind == 'function':
                    return


def find_functions(text):
    """Every function, member function and lambda with a body, and every declaration."""
    return _Walker(blank_code(text)).walk()
