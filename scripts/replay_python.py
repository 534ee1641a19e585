#!/usr/bin/python3
"""replay_python.py FILE...: runs the ```pycon blocks of documents, those of a file in one session, and compares what they
print; ... stands for any text."""
import doctest
import sys
from pathlib import Path

parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
for name in sys.argv[1:]:
    text = Path(name).read_text()
    # Blank lines for everything else, so that a failure names the line of the document.
    shown, kept = False, []
    for line in text.splitlines():
        fence = line.startswith("```")
        kept.append(line if shown and not fence else "")
        shown = line.rstrip() == "```pycon" if fence and not shown else shown and not fence
    test = parser.get_doctest("\n".join(kept) + "\n", {}, name, name, 0)
    if test.examples:
        runner.run(test)
sys.exit(1 if runner.summarize().failed else 0)
