"""Asks the engine. Requests are those of docs/api.md."""
import json
import os

from . import _engine
from ._answers import Answer, Quantity, error_of, flat, json_name, python_name

_shared = None


def _open():
    """The engine, which sees the files that the program sees."""
    global _shared
    if _shared is None:
        import shutil
        import time

        data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
        own = os.path.join(data, "assay")
        overlays = [own] if os.path.isdir(own) else []
        if os.environ.get("ASSAY_CATALOGUE"):
            overlays.append(os.environ["ASSAY_CATALOGUE"])
        program = shutil.which("assay")
        programs = os.path.dirname(os.path.realpath(program)) if program else ""
        _shared = _engine.Engine(overlays, own, programs, time.strftime("%Y-%m-%d"))
    return _shared


def _own_chips(given):
    """A chip as a dict goes into the catalogue: on={"base": "h100-sxm", "memory": {...}, "count": 8} is `own:8`."""
    if not isinstance(given.get("on"), dict):
        return given
    chip = dict(given["on"])
    name, count = chip.pop("id", "own"), chip.pop("count", None)
    catalogue = given.get("catalogue") or {}
    if not isinstance(catalogue, dict):
        raise TypeError("on= as a dict takes other files of a catalogue as a dict, too")
    return {**given, "on": name if count is None else f"{name}:{count}", "catalogue": {**catalogue, f"chips/{name}": chip}}


def _plain(value):
    return f"{float(value)!r}{value.unit}" if isinstance(value, Quantity) else value


def _text(verb, arguments):
    given = _own_chips({json_name(name): value for name, value in arguments.items() if value is not None})
    given = {name: [_plain(one) for one in value] if isinstance(value, (list, tuple)) else _plain(value) for name, value in given.items()}
    return json.dumps({"verb": verb, "arguments": given}, default=os.fspath).encode()


def _received(request, reply):
    text, status, files = reply
    if status not in (0, 3, 4):
        raise error_of(text, request)
    for path, content in files:
        with open(path, "wb") as file:
            file.write(content)
    return Answer(text, request, draw)


def draw(request):
    """The picture of an answer as SVG."""
    text, status, _ = _open().answer(request, _engine.SVG)
    if status not in (0, 3, 4):
        raise error_of(text, request)
    return text.decode()


def ask(verb, arguments=None, **more):
    """The answer to a request: `ask("train", model="gpt2", on="h100-sxm:8")`, or with the `arguments` of another answer."""
    request = _text(verb, {**(arguments or {}), **more})
    return _received(request, _open().answer(request))


def schema(verb=None):
    """The JSON Schema (2020-12) of the requests and answers of a verb, or of all."""
    return json.loads(_engine.schema(verb))


def sweep(requests, threads=None):
    """Answers to many requests, as rows for a table: `pandas.DataFrame(assay.sweep(requests))`.

    A request is `("train", {"model": ..., "on": ...})` or `{"verb": "train", "arguments": {...}}`. A row has the arguments,
    `headline`, `outcome` and each single result under its path (`step_time.estimate`), in base units; where both have a
    name, the result stands. What cannot be answered has `error`. Requests are answered by `threads` threads, all cores by
    default, while Python goes on.
    """
    pairs = [(r["verb"], r.get("arguments") or {}) if isinstance(r, dict) else (r[0], r[1]) for r in requests]
    texts = [_text(verb, arguments) for verb, arguments in pairs]
    replies = _open().answers(texts, threads or os.cpu_count() or 1)
    rows = []
    for (verb, arguments), request, reply in zip(pairs, texts, replies):
        row = {"verb": verb, **{python_name(name): value for name, value in arguments.items()}}
        try:
            answer = _received(request, reply)
            row.update(headline=answer.headline, outcome=answer.outcome, **flat(answer.to_dict()["results"]))
        except ValueError as error:
            row["error"] = str(error)
        rows.append(row)
    return rows
