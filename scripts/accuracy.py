#!/usr/bin/python3
"""accuracy.py [--data DIR] [--sets NAME,...] [--before FILE] [--assay PROGRAM] FOLDER

Predicts every row of the validation sets and writes FOLDER as a site without a server: errors of each set by source, chip,
model and regime, every row with its request, what was refused and why, what peers say of the same rows, and what changed
since an earlier run (--before its accuracy.json). All figures are those of `assay validate`; this only lays them out."""
import argparse
import html
import json
import pathlib
import re
import subprocess
import sys
import tomllib

TOP = pathlib.Path(__file__).resolve().parent.parent
STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1d2530;background:#fff}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2rem}a{color:#0b57a4}table{border-collapse:collapse;width:100%;font-size:13px}
th,td{padding:.25rem .5rem;border-bottom:1px solid #d9dee5;text-align:right;vertical-align:top}
th:first-child,th.text,td:first-child,td.text{text-align:left}th{cursor:pointer;background:#f2f5f8;position:sticky;top:0}code{font-size:12px}
input{font:inherit;padding:.3rem;width:24rem;max-width:100%}svg{max-width:100%;height:auto}.wide{overflow-x:auto}
@media(prefers-color-scheme:dark){body{background:#14181d;color:#e3e8ee}th{background:#1f262e}th,td{border-color:#333c46}a{color:#7db4f0}figure{background:#fff}}"""
SCRIPT = """for(const t of document.querySelectorAll('table')){const b=t.tBodies[0];
t.tHead.addEventListener('click',e=>{const i=e.target.cellIndex,s=t.dataset.by==i?-1:1;t.dataset.by=s>0?i:'';
const k=r=>{const c=r.cells[i];return c.dataset.v===undefined?c.textContent:+c.dataset.v};
b.append(...[...b.rows].sort((x,y)=>{const a=k(x),c=k(y);return s*(typeof a=='number'&&typeof c=='number'?a-c:String(a).localeCompare(String(c)))}))})}
for(const f of document.querySelectorAll('input'))f.addEventListener('input',()=>{const w=f.value.toLowerCase();
for(const r of document.getElementById(f.dataset.of).tBodies[0].rows)r.hidden=!r.textContent.toLowerCase().includes(w)})"""


def assay(program, *words):
    """The answer of a request; an error ends the run."""
    ran = subprocess.run([program, *words, "--format", "json"], capture_output=True, text=True)
    answer = json.loads(ran.stdout or ran.stderr)
    if "error" in answer:
        raise SystemExit(f"accuracy.py: assay {' '.join(words)}: {answer['error']['what']}")
    return answer


def percent(value, signed=False):
    return ("–", None) if value is None else (f"{100 * value:{'+' if signed else ''}.1f} %", value)


def cell(value):
    if isinstance(value, tuple):
        text, key = value
        return f'<td data-v="{-1e9 if key is None else key}">{text}</td>'
    if isinstance(value, int):
        return f'<td data-v="{value}">{value:,}</td>'
    return f'<td class="text">{value}</td>'


def table(head, rows, name=""):
    body = "".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in rows)
    words = [isinstance(value, str) for value in rows[0]] if rows else [True] * len(head)
    heads = "".join(f"<th{' class=text' if word else ''}>{h}</th>" for h, word in zip(head, words))
    return (f'<div class="wide"><table{f" id={name}" if name else ""}><thead><tr>{heads}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>")


def page(title, body):
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>{html.escape(title)}</title><style>{STYLE}</style><main>{body}</main><script>{SCRIPT}</script></html>\n")


ERRORS = ["rows", "median", "90 % within", "bias", "in interval"]


def errors(one):
    return [one["n"], percent(one["median_ape"]), percent(one["p90_ape"]), percent(one["bias"], True), percent(one["covered"])]


def quantity(value):
    return f"{value['value']:.4g} {value['unit']}".strip(), value["value"]


def set_page(program, name, data, folder):
    """Writes a set's page; its answer and the summaries by trait."""
    words = ["validate", name, *data]
    whole = assay(program, *words)
    results = whole["results"]
    requests = {one["id"]: one["request"] for one in assay(program, *words, "--requests")["results"]["requests"]}
    picture = folder / f"{name}.svg"
    subprocess.run([program, *words, "--output", str(picture)], check=True, stdout=subprocess.DEVNULL)
    body = [f"<p><a href=index.html>all sets</a></p><h1>{name}</h1><p>{html.escape(whole['headline'])}</p>",
            f"<figure>{picture.read_text()}</figure>"]
    picture.unlink()
    for trait in ("source", "hardware", "family", "regime", "group"):
        summary = results["summary"] if trait == "group" else assay(program, *words, "--by", trait)["results"]["summary"]
        if len(summary) > 2 or trait == "group":
            body.append(f"<h2>by {trait}</h2>" + table([trait, *ERRORS], [[html.escape(s["group"]), *errors(s)] for s in summary]))
    rows = []
    for one in results["cases"]:
        low, high = (one.get("interval") or {}).get("low"), (one.get("interval") or {}).get("high")
        rows.append([html.escape(one["id"]), html.escape(one["group"]), html.escape(one["what"]), quantity(one["measured"]),
                     quantity(one["predicted"]), percent(one["error"], True),
                     f"{quantity(low)[0]} .. {quantity(high)[0]}" if low else "",
                     {True: "yes", False: "no", None: ""}[one["covered"]], f"<code>{html.escape(requests.get(one['id'], ''))}</code>"])
    body.append('<h2>every row</h2><p><input data-of="rows" placeholder="only rows with these words" aria-label="filter"></p>' +
                table(["row", "group", "what", "measured", "predicted", "error", "80 % within", "inside", "request"], rows, "rows"))
    body.append(f"<h2>not predicted: {results['unanswered']}</h2>" + table(
        ["why", "rows", "for instance"],
        [[html.escape(one["why"]), one["rows"], html.escape(one["first"])] for one in results.get("unanswered_because") or []]))
    (folder / f"{name}.html").write_text(page(name, "".join(body)))
    return results


def peers_section(known, answers):
    """What peers say of the same rows, beside what `assay validate` says of them."""
    rows = []
    for peer in known["peer"]:
        results = answers.get(peer["set"])
        if not results:
            continue
        ours = [abs(one["error"]) for one in results["cases"] if re.search(peer["rows"], one["id"])]
        if ours:
            source = known["source"][peer["source"]]
            rows.append([peer["name"], f"<a href={peer['set']}.html>{peer['set']}</a>: {html.escape(peer['what'])}", len(ours), percent(peer["mean"]),
                         percent(sum(ours) / len(ours)), f"<a href={source['url']}>{html.escape(source['title'])}</a>"])
    return "<h2>the same rows by others</h2><p>Means of absolute errors, as they were published.</p>" + table(
        ["tool", "rows of", "rows here", "its error", "Assay's", "published in"], rows)


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--data")
    words.add_argument("--sets")
    words.add_argument("--before", type=pathlib.Path)
    words.add_argument("--assay", default=str(TOP / "build/release/assay"))
    given = words.parse_args()
    known = tomllib.loads((TOP / "catalogue/validation/peers.toml").read_text())
    names = given.sets.split(",") if given.sets else known["site"]["sets"] + (known["site"]["with_data"] if given.data else [])
    given.folder.mkdir(parents=True, exist_ok=True)
    data = ["--data", given.data] if given.data else []
    answers = {}
    for name in names:
        print(f"{name} ...", file=sys.stderr)
        answers[name] = set_page(given.assay, name, data, given.folder)
    whole, groups = {}, {}
    for name, results in answers.items():
        summary = {one["group"]: one for one in results["summary"]}
        whole[name] = summary.get("all") or results["summary"][0]
        groups[name] = summary.get("mean of groups") or whole[name]
    version = subprocess.run([given.assay, "--version"], capture_output=True, text=True).stdout.strip()
    body = [f"<h1>How accurate Assay is</h1><p>{html.escape(version)}. Every row is predicted by a fit made without it, and a published "
            f"step by a fit without its whole source. docs/validation.md and docs/inference_validation.md say what the sets are, and what "
            "explains their errors.</p>",
            table(["set", *ERRORS, "median, mean of groups", "in interval, groups", "not predicted"],
                  [[f"<a href={name}.html>{name}</a>", *errors(whole[name]), percent(groups[name]["median_ape"]),
                    percent(groups[name]["covered"]), answers[name]["unanswered"]] for name in names])]
    body.append(peers_section(known, answers))
    if given.before:
        before = json.loads(given.before.read_text())
        body.append("<h2>what changed</h2>" + table(
            ["set", "rows before", "now", "median before", "now", "in interval before", "now"],
            [[name, before[name]["n"], whole[name]["n"], percent(before[name]["median_ape"]), percent(whole[name]["median_ape"]),
              percent(before[name]["covered"]), percent(whole[name]["covered"])] for name in names if name in before]))
    (given.folder / "index.html").write_text(page("How accurate Assay is", "".join(body)))
    (given.folder / "accuracy.json").write_text(json.dumps(whole, indent=1) + "\n")
    print(f"{given.folder}/index.html: {sum(w['n'] for w in whole.values()):,} rows of {len(names)} sets")


if __name__ == "__main__":
    main()
