"""Assay: how long language models take to train and serve, what limits them, and why.

    import assay
    plan = assay.train("llama-3-70b", on="h100-sxm:1024", batch="4Mi")
    plan.step_time.estimate.seconds

There is a function for each command of the program, with its arguments and options; answers are what `assay --format json`
prints. `sweep` takes requests as objects; `ask("sweep", file="grid.toml")` is the program's.
"""
from . import _engine
from ._answers import (
    Answer, Bandwidth, Bytes, Energy, Error, Flop, FlopRate, Frequency, Intensity, InternalError, Interval, Money,
    Power, Quantity, Range, Results, Time, TokenRate, Tokens,
)
from ._ask import ask, schema, sweep
from ._verbs import *  # noqa: F403
from ._verbs import __all__ as _verbs

__version__, __commit__, __catalogue__ = _engine.about()
__all__ = [
    "Answer", "Bandwidth", "Bytes", "Energy", "Error", "Flop", "FlopRate", "Frequency", "Intensity",
    "InternalError", "Interval", "Money", "Power", "Quantity", "Range", "Results", "Time", "TokenRate", "Tokens",
    "ask", "schema", "sweep", *_verbs,
]
