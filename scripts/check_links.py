#!/usr/bin/env python3
"""check_links.py: the links of README.md and the other documents lead to files and headings that exist, and mkdocs.yml
lists every page of docs/."""
import re
import sys
from pathlib import Path

top = Path(__file__).resolve().parent.parent
made = {"verbs.md", "python_functions.md", "cpp.md"}  # by scripts/build_docs.py, which checks links into them
documents = [*top.glob("*.md"), *top.glob("docs/*.md")]


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def headings(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in re.findall(r"^#+ (.*)$", text, re.M))
    return {title.strip().replace(" ", "-") for title in plain}


faults = []
for document in documents:
    name = document.relative_to(top)
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(document.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, place = link.partition("#")
        target = document.parent / path if path else document
        if path in made:
            continue
        if not target.exists():
            faults.append(f"{name}: no file {link}")
        elif place and target.suffix == ".md" and place not in headings(target):
            faults.append(f"{name}: no heading {link}")
listed = (top / "mkdocs.yml").read_text()
faults += [f"{page.relative_to(top)} is not in mkdocs.yml" for page in top.glob("docs/*.md") if f" {page.name}\n" not in listed]
print("\n".join(faults), end="\n" if faults else "")
sys.exit(1 if faults else 0)
