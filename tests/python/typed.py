"""What the stubs say of a program; mypy reads this, nothing runs it."""
from typing import Dict, List

import assay

plan = assay.train("llama-3-70b", on="h100-sxm:1024", batch="4Mi", zero=1, explain=True)
seconds: float = plan.step_time.estimate.seconds
high: float = plan.step_time.interval.high.hours
memory: float = plan.memory.total.gibibytes
parallel: int = plan.strategy.tp
again: assay.Answer = assay.train(**plan.alternatives[0].arguments)
raw: bytes = plan.json
bound: str = assay.roofline("bf16[B,8192] @ bf16[8192,8192]", on="h100-sxm").limiter
rows: List[Dict[str, object]] = assay.sweep([("chips", {"id": "tpu-v5e"})], threads=2)
try:
    assay.chips("nonsense")
except assay.Error as error:
    place: str = error.where + error.what + error.hint
assay.train("llama-3-8b", on="h100-sxm:8", zero=7)  # type: ignore[arg-type]
assay.train("llama-3-8b", tpp=8)  # type: ignore[call-arg]
plan.step_time.estimate.bytes  # type: ignore[attr-defined]
