#!/usr/bin/python3
"""build_docs.py: builds the documentation as a site in build/docs, and checks every link of it.

Pages are README.md, CONTRIBUTING.md, ARCHITECTURE.md, CHANGELOG.md and docs/*.md, and some that are made of what they
describe: the help of every command, the functions of the Python module, the headers of the library, and the notebooks with
what their cells show. The page itself is on the first one where `make site` has built it.
"""
import re
import shutil
import subprocess
import sys
import textwrap
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

top = Path(__file__).resolve().parent.parent
assay = top / "build/release/assay"
source, site = top / "build/docs_source", top / "build/docs"
front = {"README.md": "overview.md", "CONTRIBUTING.md": "contributing.md", "ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md"}
headers = ["src/assay/assay.h", "src/assay/c.h"]


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def gather():
    """Links to files of the repository become links between pages."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(top / "docs", source)
    for name, page in front.items():
        text = re.sub(r"\]\(docs/", "](", (top / name).read_text())
        (source / page).write_text(text)
    for page in source.glob("*.md"):
        text = page.read_text()
        for name, target in front.items():
            text = re.sub(rf"\]\((\.\./)?{name}", f"]({target}", text)
        for header in headers:
            text = text.replace(f"](../{header})", "](cpp.md)")
        page.write_text(text)


def verbs_page():
    text = output(assay, "help")
    parts = ["# All commands\n", "```text", text, "```"]
    for verb in re.findall(r'"([a-z]+)\.request"', output(assay, "schema")):
        if f"## {verb}" not in parts:
            parts += [f"## {verb}", "```text", output(assay, "help", verb), "```"]
    (source / "verbs.md").write_text("\n".join(parts))


def python_page():
    sys.path.insert(0, str(top / "build/release/python"))
    import inspect

    import assay as module

    parts = ["# Python functions\n", "[How to use them](python.md). Every argument may be left out unless the command needs it.\n"]
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isfunction(thing):
            call = textwrap.fill(f"assay.{name}{inspect.signature(thing)}", 110, subsequent_indent="    ")
            parts += [f"## {name}", "```text", call, "", inspect.getdoc(thing) or "", "```"]
    (source / "python_functions.md").write_text("\n".join(parts))


def cpp_page():
    texts = "\n".join(f"## assay/{Path(header).name}\n\n```cpp\n{(top / header).read_text()}```\n" for header in headers)
    (source / "cpp.md").write_text(
        "# C++ and C\n\n`#include <assay/assay.h>`, or `<assay/c.h>` from C, is the whole interface, and all that is installed;"
        f" [install](install.md) says how to link with it.\n\n{texts}"
    )


def notebook_page(path):
    """A notebook as a page: its cells are run here, and the last value of each shows as it would in a notebook."""
    import ast
    import json

    names, parts = {"__name__": "__main__"}, []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        tree = ast.parse(text)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(path), "exec"), names)
        value = eval(compile(ast.Expression(last.value), str(path), "eval"), names) if last else None
        if hasattr(value, "_repr_html_"):
            parts.append(f'<div class="shown">{value._repr_html_()}</div>')
        elif value is not None:
            parts.append(f"```text\n{value!r}\n```")
    (source / f"notebook_{path.stem}.md").write_text("\n\n".join(parts) + "\n")


def live_page():
    """The page with its engine, for the first page of the documents; without them, a sentence that says how to get it."""
    built = (top / "build/site/engine.wasm").exists()
    frame = '<iframe class="live" src="live/index.html" title="Assay, live in this browser"></iframe>' if built else ""
    start = source / "index.md"
    start.write_text(start.read_text().replace("<!-- live page -->", frame or "`assay ui` opens the page in a browser ([the page](page.md))."))
    if built:
        shutil.copytree(top / "build/site", source / "live")


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("id", "name") and value:
                self.names.add(value)
            if key in ("href", "src") and value:
                self.links.append(value)


def check_links():
    pages = {path: Page(path) for path in site.rglob("*.html")}
    faults = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                faults.append(f"{path.relative_to(site)}: nothing at {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                faults.append(f"{path.relative_to(site)}: no such place: {link}")
    print("\n".join(sorted(set(faults))) or f"build/docs: {len(pages)} pages, every link leads somewhere")
    return not faults


gather()
verbs_page()
python_page()
cpp_page()
for notebook in sorted((top / "docs/notebooks").glob("*.ipynb")):
    notebook_page(notebook)
live_page()
subprocess.run(["mkdocs", "build", "--strict", "--quiet", "-f", top / "mkdocs.yml"], check=True)
sys.exit(0 if check_links() else 1)
