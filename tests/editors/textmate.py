# SPDX-License-Identifier: Apache-2.0
"""The grammar of dsl/editors/vscode in a TextMate engine (the Python package textmate-grammar-python, on Oniguruma as VS Code's is):
what scope each word of a program has. Ends with 77 where the package is missing."""

import json
import sys

try:
    from textmate_grammar.parsers.base import LanguageParser
except ImportError:
    print("SKIPPED: the Python package textmate-grammar-python is not installed")
    sys.exit(77)

PROGRAM = """dim batch = 4  # how many
h = einsum(x, w, "a b, ... -> a")
fn foo(x: f32[batch]) {
  return relu(x) * 2.5e-3
}
output y = foo(h)
"""
EXPECTED = [
    (0, "dim", "keyword.control"), (0, "4", "constant.numeric"), (0, "# how many", "comment.line"),
    (1, "einsum", "support.function"), (1, "=", "keyword.operator"), (1, "b", "variable.parameter.axis"),
    (1, "...", "keyword.operator.ellipsis"), (1, "->", "keyword.operator.arrow"), (1, "a", "string.quoted"),
    (2, "fn", "keyword.control"), (2, "foo", "entity.name.function"), (2, "f32", "storage.type"),
    (3, "return", "keyword.control"), (3, "relu", "support.function"), (3, "2.5e-3", "constant.numeric"),
    (5, "output", "keyword.control"), (5, "foo", "entity.name.function"),
]  # fmt: skip

with open(sys.argv[1]) as file:
    grammar = LanguageParser(json.load(file))
tokens = [(line, text.strip(), scopes) for (line, _), text, scopes in grammar.parse_string(PROGRAM).flatten()]
wrong = [row for row in EXPECTED if not any(l == row[0] and t == row[1] and any(s.startswith(row[2]) for s in scopes) for l, t, scopes in tokens)]
for row in wrong:
    print(f"line {row[0]}: {row[1]!r} has no scope {row[2]}: {[t for t in tokens if t[0] == row[0]]}")
sys.exit(1 if wrong else 0)
