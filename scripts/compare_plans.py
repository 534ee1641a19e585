#!/usr/bin/env python3
"""Our plan of each StableHLO program in a folder beside the one its compiler chose, as a table in Markdown.

usage: scripts/compare_plans.py FOLDER [ASSAY]

FOLDER has NAME.mlir[.gz] with one or more compiled programs NAME.*hlo[.gz]. Bytes are what one device receives; of
several compiled programs, the one that receives least counts.
"""
import json
import os
import re
import subprocess
import sys


def answer(assay, program, compiled):
    done = subprocess.run([assay, "run", program, "--against", compiled, "--format", "json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program}: {done.stderr.strip()}")
    return json.loads(done.stdout)["results"]


def collectives(rows, calls):
    return ", ".join(f"{row[calls]:.0f} {row['kind']}/{row['devices']}" for row in rows if row[calls] > 0) or "none"


def main():
    folder, assay = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "build/release/assay"
    files = sorted(os.listdir(folder))
    rows, fewer, more = [], 0, 0
    for file in files:
        name = re.fullmatch(r"([^.]+)\.mlir(\.gz)?", file)
        compiled = [f for f in files if name and re.fullmatch(re.escape(name[1]) + r"\.(h\d+x\d+\.)?hlo(\.gz)?", f)]
        if not compiled:
            continue
        best = min((answer(assay, f"{folder}/{file}", f"{folder}/{one}") for one in compiled),
                   key=lambda results: results["against"]["theirs"]["received"]["value"])
        against = best["against"]
        ours, theirs = (against[side]["received"]["value"] for side in ("ours", "theirs"))
        fewer += ours < 0.99999 * theirs
        more += ours > 1.00001 * theirs
        rows.append(f"| {name[1]} | {best['mesh']} | {ours:,.0f} | {theirs:,.0f} | "
                    f"{collectives(against['collectives'], 'calls')} | {collectives(against['collectives'], 'their_calls')} |")
    print("| program | mesh | bytes, ours | bytes, the compiler's | collectives, ours | the compiler's |")
    print("|---|---|---:|---:|---|---|")
    print("\n".join(rows))
    print(f"\n{len(rows)} programs: ours moves fewer bytes in {fewer}, as many in {len(rows) - fewer - more}, more in {more}.")


if __name__ == "__main__":
    main()
