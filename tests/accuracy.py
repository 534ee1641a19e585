#!/usr/bin/env python3
"""The site of `make accuracy` says what `assay validate` says: two small sets, each row with its request, and what changed."""
import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile

assay = sys.argv[1]
script = pathlib.Path(__file__).parent.parent / "scripts/accuracy.py"
with tempfile.TemporaryDirectory() as folder:
    site = pathlib.Path(folder) / "site"
    words = [script, site, "--assay", assay, "--sets", "h200-static-cache,h200-train"]
    subprocess.run(words, check=True, capture_output=True)
    for name in ("h200-static-cache", "h200-train"):
        answer = json.loads(subprocess.run([assay, "validate", name, "--format", "json"], check=True, capture_output=True).stdout)
        page = (site / f"{name}.html").read_text()
        assert answer["headline"] in page
        for one in answer["results"]["cases"]:
            assert one["id"] in page, one["id"]
        assert page.count("<code>assay ") == answer["results"]["reported"]
        assert f"not predicted: {answer['results']['unanswered']}" in page
    index = (site / "index.html").read_text()
    total = next(s for s in answer["results"]["summary"] if s["group"] == "all")
    assert f"{100 * total['median_ape']:.1f} %" in index
    # The request of a row is a command that gives its prediction.
    first = answer["results"]["cases"][0]
    row = html.unescape(re.search(r"<code>(assay train [^<]*--without-fold \d[^<]*)</code>", page)[1])
    again = json.loads(subprocess.run(row.replace("assay", assay, 1) + " --format json", shell=True, check=True, capture_output=True).stdout)
    value = again["results"]
    for key in first["result"].split("."):
        value = value[key]
    assert value.get("estimate", value)["value"] == first["predicted"]["value"], row
    # A run that was better before says so.
    before = json.loads((site / "accuracy.json").read_text())
    before["h200-train"]["median_ape"] = 0.001
    earlier = pathlib.Path(folder) / "before.json"
    earlier.write_text(json.dumps(before))
    subprocess.run([*words, "--before", earlier], check=True, capture_output=True)
    changed = (site / "index.html").read_text().split("what changed")[1]
    assert "0.1 %" in changed and f"{100 * total['median_ape']:.1f} %" in changed
    wrong = subprocess.run([script, site, "--assay", assay, "--sets", "nothing"], capture_output=True, text=True)
    assert wrong.returncode != 0 and "nothing" in wrong.stderr, wrong.stderr
print("the site agrees with assay validate")
