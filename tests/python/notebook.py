#!/usr/bin/python3
"""notebook.py FILE: runs the cells of a notebook in order and shows what a notebook would: each cell's last value."""
import ast
import json
import sys

notebook = json.load(open(sys.argv[1]))
assert notebook["nbformat"] == 4
names = {"__name__": "__main__"}
for number, cell in enumerate(notebook["cells"], 1):
    if cell["cell_type"] != "code":
        continue
    assert not cell["outputs"], f"{sys.argv[1]}, cell {number}, is kept with its output"
    place = f"{sys.argv[1]}, cell {number}"
    tree = ast.parse("".join(cell["source"]), place)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, place, "exec"), names)
    if last:
        value = eval(compile(ast.Expression(last.value), place, "eval"), names)
        assert value is not None
        if hasattr(value, "_repr_html_"):
            assert value._repr_html_().startswith("<")
