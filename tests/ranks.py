#!/usr/bin/env python3
"""ranks.py [--path DIR] [--seed N] [--count N]: `assay run` on ranks of MPI against virtual devices, and what goes wrong.

Strategies are drawn by a seed, for 2 to 8 ranks: losses are those of virtual devices and of one device, and every rank
receives the bytes that the program says.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

top = pathlib.Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser()
parser.add_argument("--path", default=top / "build/release", type=lambda text: pathlib.Path(text).resolve())
parser.add_argument("--seed", default=1, type=int)
parser.add_argument("--count", default=9, type=int)
options = parser.parse_args()
assay = options.path / "assay"
# Ranks share the cores of this machine, and tests may run as root, as they do in a container.
environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1", HOME="/nonexistent")
environment.pop("ASSAY_CATALOGUE", None)
faults = []


def run(words, seconds=60):
    """Exit code, stdout and stderr; a run that takes too long is a fault of its own."""
    try:
        done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True,
                              timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, "", "a hang"
    return done.returncode, done.stdout, done.stderr


def ranks(count, words, seconds=60):
    return run(["mpirun", "-n", count, assay, *words], seconds)


def expect(condition, text):
    if not condition:
        faults.append(text)
        print(f"ranks.py: {text}", file=sys.stderr)


# --- random strategies

models = {"llama-3-8b": ["--kv-heads", "2"], "mixtral-8x7b": ["--experts", "4"], "gpt-2": []}
models = {name: words for name, words in models.items()
          if run([assay, "models", name])[0] == 0}
small = ["--layers", "4", "--hidden", "64", "--heads", "4", "--batch", "16seq", "--seq", "16", "--steps", "2"]


def drawn(draw):
    """A model, a strategy as options, and its devices."""
    model = draw.choice(sorted(models))
    words, devices = [], 1
    for axis in draw.sample(["dp", "fsdp", "tp", "cp", "pp"], 3):
        if devices * 2 <= 8 and draw.random() < 0.7:
            words += [f"--{axis}", "2"]
            devices *= 2
    if devices == 1:
        words, devices = ["--tp", "2"], 2
    if "--dp" in words:
        words += ["--zero", draw.choice("0123")]
        if model.startswith("mixtral"):
            words += ["--ep", "2"]
    if "--tp" in words and draw.random() < 0.5:
        words += ["--sequence-parallel"]
    if "--cp" in words and "--tp" not in words and draw.random() < 0.5:
        words += ["--context-scheme", "all-to-all"]
    if "--pp" in words:
        schedule = draw.choice(["gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "dualpipe"])
        words += ["--schedule", schedule] + (["--interleave", "2"] if schedule == "interleaved" else [])
    words += ["--recompute", draw.choice(["none", "selective", "full"])]
    return model, words, devices


def compare(words, devices):
    text = " ".join(words)
    code, plain, error = run([assay, *words, "--check", "--format", "json"])
    expect(code == 0, f"{text}: {error or plain}")
    code, spread, error = ranks(devices, [*words, "--engine", "mpi", "--check", "--format", "json"])
    expect(code == 0, f"{text} on {devices} ranks: {error or spread}")
    if faults:
        return
    one, other = json.loads(plain)["results"], json.loads(spread)["results"]
    for a, b in zip(one["updates"], other["updates"], strict=True):
        expect(abs(a["loss"] - b["loss"]) < 1e-12, f"{text}: losses {a['loss']} and {b['loss']}")
        expect(abs(a["gradient_norm"] - b["gradient_norm"]) < 1e-10, f"{text}: gradient norms differ")
    for key in ["moved", "between_stages"]:
        expect(one[key] == other[key], f"{text}: {key} {one[key]} and {other[key]}")
    expect(abs(other["moved"]["value"] - other["predicted_bytes"]["value"]) <= 1e-9 * other["moved"]["value"],
           f"{text}: ranks received {other['moved']}, the program says {other['predicted_bytes']}")


draw = random.Random(options.seed)
for _ in range(options.count):
    model, strategy, devices = drawn(draw)
    compare(["run", "train", model, *models[model], *small, *strategy], devices)
words = ["run", "serve", "llama-3-8b", "--layers", "2", "--hidden", "64", "--tp", "2", "--dp", "2", "--temperature", "0.9",
         "--speculate", "2", "--requests", "3", "--new-tokens", "5", "--cache", "batch"]
code, spread, error = ranks(4, [*words, "--engine", "mpi", "--check", "--format", "json"])
expect(code == 0 and json.loads(spread)["results"]["tokens_equal"], f"serving on ranks: {error or spread}")

# --- programs written as text

for file in draw.sample(sorted((top / "examples").glob("*.assay")), 7):
    code, plain, error = run([assay, "run", file, "--format", "json"])
    expect(code == 0, f"{file.name}: {error}")
    one = json.loads(plain)["results"]
    if not 2 <= one["devices"] <= 8:
        continue
    code, spread, error = ranks(one["devices"], ["run", file, "--engine", "mpi", "--format", "json"])
    expect(code == 0, f"{file.name} on {one['devices']} ranks: {error or spread}")
    if code == 0:
        other = json.loads(spread)["results"]
        expect(other["engine"] == "mpi" and other["check"]["ok"], f"{file.name} on ranks: {other['check']}")
        for key in ("bytes_moved", "bytes_predicted"):
            expect(abs(one["check"][key]["value"] - other["check"][key]["value"]) < 1e-6, f"{file.name}: {key} differs")
        expect([row["tensor"] for row in one["outputs"]] == [row["tensor"] for row in other["outputs"]], f"{file.name}: shardings differ")


def sharded(draw, dims, axes):
    """Dimensions of a tensor, of which some are split over axes, each over one at most."""
    free = list(axes)
    draw.shuffle(free)
    return ", ".join(dim + (f"_{free.pop()}" if free and draw.random() < 0.6 else "") for dim in dims)


def written(draw):
    """A program in one of the three modes, on a mesh of 2 to 8 devices, and its devices."""
    mesh = draw.choice([{"X": n} for n in range(2, 9)] + [{"X": 2, "Y": 2}, {"X": 3, "Y": 2}, {"X": 2, "Y": 4}])
    devices = 1
    for size in mesh.values():
        devices *= size
    mode = draw.choice(["auto", "explicit", "manual"])
    head = f"mesh {', '.join(f'{axis}={size}' for axis, size in mesh.items())}; dims B={devices}, D={2 * devices}, F={3 * devices}; mode {mode}"
    if mode == "manual":
        return (f"{head}; input x[B_X, D]; s[D] = sum(x, B); t = psum(s, X); u = ppermute(x, X, {draw.randint(-3, 3)}); v[D] = sum(u, B); "
                "v = psum(v, X); result t[D], v[D]; expect t[D] = sum(x, B); expect v[D] = sum(x, B)"), devices
    out = sharded(draw, "BF", mesh)
    pinned = f"[{out}]" if mode == "explicit" or draw.random() < 0.5 else "[B, F]"
    return (f"{head}; input x[{sharded(draw, 'BD', mesh)}]; input w[{sharded(draw, 'DF', mesh)}]; y{pinned} = x * w; z[B, F] = gelu(y); "
            "loss = sum(square(z), B, F); result z, loss" + ("; gradients of loss" if mode == "auto" else "")), devices


for _ in range(options.count):
    text, devices = written(draw)
    code, plain, _ = run([assay, "run", "-e", text, "--format", "json"])
    if code == 1:
        continue  # an explicit program may be ambiguous
    code, spread, error = ranks(devices, ["run", "-e", text, "--engine", "mpi", "--format", "json"])
    expect(code == 0 and json.loads(spread)["results"]["check"]["ok"], f"{text} on {devices} ranks: {error or spread}")
    if code == 0:
        pair = [json.loads(one)["results"]["check"]["bytes_moved"]["value"] for one in (plain, spread)]
        expect(abs(pair[0] - pair[1]) < 1e-6, f"{text}: {pair} bytes moved")

# --- who waits for whom, and what travels beside steps

code, spread, error = ranks(4, ["run", top / "examples/collective_block.assay", "--engine", "mpi", "--overlap", "--format", "json"])
expect(code == 0, f"blocking against overlapped: {error or spread}")
if code == 0:
    overlap = json.loads(spread)["results"]["overlap"]
    expect(overlap["blocking"]["value"] > 0 and 0 <= overlap["hidden_share"] <= 1, f"blocking against overlapped: {overlap}")
    expect(len(overlap["timeline"]["lanes"]) == 12, "each rank has a lane of blocking steps, of steps, and of what is beside them")
words = ["run", "train", "llama-3-8b", *small, "--fsdp", "2", "--tp", "2", "--engine", "mpi", "--format", "json"]
code, spread, error = ranks(4, [*words, "--overlap"])
expect(code == 0, f"a training step, blocking against overlapped: {error or spread}")
if code == 0:
    results = json.loads(spread)["results"]
    expect(len(results["ranks"]) == 4, "every rank says how long it waits")
    for row in results["ranks"]:
        spent = sum(row[key]["value"] for key in row if key != "rank")
        longest = max(step["time"]["value"] for step in results["updates"])
        expect(0 < spent <= 1.2 * longest and row["waiting"]["value"] >= 0, f"the parts of a step are no longer than it: {row}")
    expect(len(results["overlap"]["timeline"]["lanes"]) == 12, "timelines of four ranks")
code, _, error = run([assay, "run", top / "examples/collective_block.assay", "--overlap"])
expect(code == 2 and "only ranks compute while data travel" in error, f"overlap without ranks: {error}")

code, _, error = ranks(2, ["run", top / "examples/ring_attention.assay", "--engine", "mpi"])
expect(code and "the mesh has 4 devices, but there are 2 ranks" in error, f"a program on too few ranks: {error}")
code, text, error = ranks(4, ["run", top / "examples/all_gather.assay", "--engine", "mpi", "--show", "x"])
expect(code or text.count("X=") >= 4, f"what all ranks hold is shown: {error or text}")

# --- what goes wrong

train = ["run", "train", "llama-3-8b", *small, "--engine", "mpi"]
code, _, error = ranks(2, [*train, "--tp", "4"])
expect(code and "the mesh has 4 devices, but there are 2 ranks" in error, f"a wrong number of ranks: {error}")
expect(error.count("error:") == 1, f"one rank speaks for all: {error}")
code, text, error = run([assay, *train])
expect(code == 0 and "on 1 rank" in text, f"without a launcher: {error}")
code, _, error = run([assay, *train, "--tp", "2"])
expect(code and "the mesh has 2 devices, but there is 1 rank" in error, f"without a launcher: {error}")
code, _, error = ranks(2, [*train, "--tp", "2", "--vocabulary", "9"])
expect(code and error.count("error:") == 1, f"bad input is said once: {error}")

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    shutil.copy(assay, folder / "assay")
    code, _, error = run([folder / "assay", *train])
    expect(code and "this engine is not there" in error, f"without the library: {error}")
    code, _, error = run([folder / "assay", "run", "train", "llama-3-8b", *small, "--engine", "cuda"])
    expect(code and "this engine is not there" in error and "install CUDA with cuDNN" in error, f"without CUDA: {error}")
    shutil.copy(options.path / "libassay-mpi.so", folder)
    with open(folder / "assay", "ab") as other:
        other.write(b"x")
    pair = [*train, "--tp", "2"]
    code, _, error = run(["mpirun", "-n", 1, assay, *pair, ":", "-n", 1, folder / "assay", *pair])
    expect(code and "rank 1 has another binary than rank 0" in error, f"unequal binaries: {error}")
    (folder / "chips").mkdir()
    shutil.copy(top / "catalogue/chips/h100-sxm.toml", folder / "chips/h100-sxm.toml")
    (folder / "chips/h100-sxm.toml").write_text((folder / "chips/h100-sxm.toml").read_text() + "# mine\n")
    code, _, error = run(["mpirun", "-n", 1, assay, *pair, ":", "-n", 1, "env", f"ASSAY_CATALOGUE={folder}", assay, *pair])
    expect(code and "rank 1 has another catalogue than rank 0" in error, f"unequal catalogues: {error}")

long = ["--steps", "100000"]
words = " ".join(map(str, [assay, *[word for word in train if word not in ("--steps", "2")], *long, "--tp", "2",
                           "--time-limit", "2s"]))
start = time.monotonic()
code, _, error = run(["mpirun", "-n", 2, "bash", "-c",
                      f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then timeout -s KILL 1 {words}; else {words}; fi'])
expect(code not in (0, None) and time.monotonic() - start < 30, f"a rank that dies: {code} {error}")
code, _, error = run(["mpirun", "-n", 2, "bash", "-c",
                      f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then {words} & sleep 1; kill -STOP $!; wait $!; '
                      f"else {words}; fi"])
expect(code not in (0, None) and "waited 2 s for rank 1 in vain" in error, f"a rank that hangs: {code} {error}")

# Ctrl-C: of the launcher ends all, of one rank stops all after the same step, with what they have so far.
begin = time.monotonic()
launched = subprocess.Popen(["mpirun", "-n", "2", *words.split()], env=environment, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
time.sleep(2)
launched.send_signal(signal.SIGINT)
try:
    launched.wait(timeout=20)
except subprocess.TimeoutExpired:
    launched.kill()
    expect(False, "Ctrl-C does not end the launcher")
expect(launched.returncode != 0, "an interrupted launch says so")
code, text, error = run(["mpirun", "-n", 2, "bash", "-c",
                         f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then timeout -s INT 2 {words} || true; else {words}; fi'])
expect(code == 0 and "interrupted on a rank" in text, f"one rank interrupted: {code} {text} {error}")

# The same of a server.
serve = " ".join(map(str, [assay, "run", "serve", "llama-3-8b", "--layers", "2", "--hidden", "64", "--tp", "2", "--requests",
                           "1000", "--new-tokens", "3000", "--engine", "mpi", "--time-limit", "2s"]))
code, text, error = run(["mpirun", "-n", 2, "bash", "-c",
                         f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then timeout -s INT 2 {serve} || true; else {serve}; fi'])
expect(code == 0 and "interrupted on a rank, where all stopped: 0 of 1000 requests had finished" in " ".join(text.split()),
       f"one rank of a server interrupted: {code} {text[-400:]} {error}")
start = time.monotonic()
code, _, error = run(["mpirun", "-n", 2, "bash", "-c",
                      f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then timeout -s KILL 1 {serve}; else {serve}; fi'])
expect(code not in (0, None) and time.monotonic() - start < 30, f"a rank of a server that dies: {code} {error}")

# GPUs of several ranks: here there are none, or too few libraries.
code, _, error = run([assay, "run", "train", "llama-3-8b", *small, "--engine", "cuda", "--tp", "2"])
expect(code and ("the mesh has 2 devices, but there is 1 rank" in error or "is not there" in error),
       f"GPUs without a launcher: {error}")

print(f"ranks.py: {options.count} strategies, {len(faults)} faults")
sys.exit(1 if faults else 0)
