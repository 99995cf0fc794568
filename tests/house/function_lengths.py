#!/usr/bin/env python3
"""Functions fit a screen: fails on one above 60 lines in src/, from its first line to its closing brace.

A function that is a table (one case, row or line for each of many things) says so with `// a table` on the line of its
opening brace or the line above its first.

usage: function_lengths.py ROOT | function_lengths.py --self-test
"""
import re
import sys

import tree

LIMIT = 60
MARK = re.compile(r"//.*\ba table\b")

# Literals and comments; a raw string before a plain one, a number before its digit separators look like characters.
SKIPPED = re.compile(r'R"(\w*)\((?s:.*?)\)\1"|\b\d[\d\w\']*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*(?s:.*?)\*/')
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()]*$")


def blank(found):
    """As many lines, and nothing that could be a brace."""
    return re.sub(r"[^\n]", " ", found[0])


def functions(text):
    """(name, first line, last line, line of the opening brace) of each function with a body."""
    plain = DIRECTIVE.sub(blank, SKIPPED.sub(blank, text))
    at, head = 0, 0
    while at < len(plain):
        sign = plain[at]
        if sign in ";}":
            head = at + 1
        elif sign == "{":
            before = plain[head:at]
            # A type's head may have parentheses (alignas, a template's argument): what decides is what comes first.
            typed = re.match(r"\s*(?:template\s*<.*>\s*)?(namespace|class|struct|union|enum|extern)\b", before, re.DOTALL)
            if (typed and not re.search(r"\)\s*(const|noexcept|\s)*$", before)) or SCOPE.search(before):
                head = at + 1
            else:
                end = closing(plain, at)
                if "(" in before:
                    first = head + len(before) - len(before.lstrip())
                    name = re.search(r"([\w:~]+|operator\W+)\s*\(", before)
                    yield (name[1] if name else "?", line_of(plain, first), line_of(plain, end), line_of(plain, at))
                    head = end + 1
                at = end
        at += 1


def closing(plain, at):
    depth = 0
    for found in re.compile(r"[{}]").finditer(plain, at):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
    return len(plain) - 1


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def long_functions(text):
    """(name, first line, length) of those above the limit that are not marked as tables."""
    lines = text.splitlines()
    for name, first, last, brace in functions(text):
        length = last - first + 1
        if length > LIMIT and not any(MARK.search(line) for line in lines[max(first - 2, 0):brace]):
            yield name, first, length


def self_test():
    body = "  work();\n" * 58
    def found(text):
        return [(name, length) for name, _, length in long_functions(text)]
    assert found("void a() {\n" + body + "}\n") == []  # 60 lines
    assert found("void a() {\n" + body + "  more();\n}\n") == [("a", 61)]
    assert found("void a(\n    int b) {\n" + body + "}\n") == [("a", 61)]
    assert found("// a table\nvoid a() {\n" + body + body + "}\n") == []
    assert found("void a() {  // a table\n" + body + body + "}\n") == []
    inner = "  int a() const override {\n" + body + body + "  }\n"
    assert found("namespace x {\nclass y final : public z<int(int)> {\n" + inner + "};\n}\n") == [("a", 118)]
    assert found("template <class T>\nstruct y {\n" + inner + "};\n") == [("a", 118)]
    assert found("extern \"C\" {\n" + inner + "}\n") == [("a", 118)]
    short = "  void b() {}\n" * 100
    assert found("namespace x {\nstruct y {\n" + short + "};\n}\n") == []
    assert found("constexpr row rows[] = {\n" + "  {1},\n" * 100 + "};\n") == []  # data
    assert found("y::y(int a) : b_{a}, c_(a) {\n" + body + body + "}\n") != []
    assert found("void a() {\n  f(\"}\", '}', R\"(})\", 1'000);  // }\n" + body + body + "}\n") == [("a", 119)]
    assert found("#define X { \\\n  {\nvoid a() {\n" + body + body + "}\n") == [("a", 118)]
    assert found("auto a = [](int b) {\n" + body + body + "};\n") != []
    print("the self-test bites as it should")


def main():
    if sys.argv[1] == "--self-test":
        self_test()
        return
    count, wrong = 0, []
    for path in tree.code(sys.argv[1]):
        name = path.relative_to(sys.argv[1]).as_posix()
        if not name.startswith("src/") or path.stem.endswith("_test"):
            continue
        text = path.read_text()
        count += len(list(functions(text)))
        wrong += [(name, function, first, length) for function, first, length in long_functions(text)]
    for name, function, first, length in wrong:
        print(f"{name}:{first}: {function} has {length} lines; the limit is {LIMIT}")
    print(f"{count} functions, {len(wrong)} above {LIMIT} lines")
    sys.exit(bool(wrong))


main()
