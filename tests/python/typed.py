"""What the stubs say of a program; mypy reads this, nothing runs it."""
from typing import Dict, List, Union

import assay

plan = assay.train("llama-3-70b", on="h100-sxm:1024", batch="4Mi", zero=1, explain=True)
seconds: float = plan.step_time.estimate.seconds
high: float = plan.step_time.interval.high.hours
memory: float = plan.memory.total.gibibytes
parallel: int = plan.strategy.tp
again: assay.Answer = assay.train(**plan.alternatives[0].arguments)
degree: Union[int, str, None] = plan.alternatives[0].arguments["tp"]
longer: assay.Time = plan.step_time.estimate * 2 + assay.Time(milliseconds=3)
other: int = plan.again(tp=4).strategy.tp
own: assay.Answer = assay.train("llama-3-8b", on={"base": "h100-sxm", "count": 8}, batch="64seq", seq=4096)
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
assay.train(**plan.alternatives[0].arguments, tpp=8)  # type: ignore[call-arg]
plan.alternatives[0].arguments["tpp"]  # type: ignore[typeddict-item]
