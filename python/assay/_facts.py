"""What the page says first of a plan: does it fit, how fast is it, what limits it, what to change."""
from ._answers import in_words_of_python


def facts_of(answer):
    results = answer.results
    if answer.inputs.get("verb") not in ("train", "serve") or "memory" not in results or "strategy" not in results:
        return []
    return [_fit(results), *(_training(answer, results) if "step_time" in results else _serving(results))]


def _fit(results):
    memory = results.memory
    verdict = {"fits": "yes", "tight": "perhaps not", "no": "no"}[memory.verdict]
    return "Does it fit?", verdict, f"{memory.total.gibibytes:.1f} of {memory.capacity.gibibytes:.1f} GiB on a chip"


def _training(answer, results):
    step = results.step_time
    yield "How fast is it?", f"{step.estimate!r} per step", repr(step.interval) if "interval" in step else ""
    yield "What limits it?", results.limiter, f"{results.mfu:.1%} of the peak (MFU)"
    fits = results.memory.verdict != "no"
    # Changes of a plan are a search of their own, which a request makes that asks for them.
    changed = answer if "changes" in results or not fits else answer.again(improve=True)
    key = "changes" if fits else "ways_out"
    for change in changed.results[key] if key in changed.results else []:
        if change.memory.verdict == "fits" or not fits:
            gain = f", {change.faster_by:.1%} faster" if fits else ""
            yield "What to change?", in_words_of_python(change.change), f"{change.step_time!r} per step{gain}"
            return
    yield "What to change?", "nothing nearby", "no change of one choice is faster and fits" if fits else ""


def _serving(results):
    served = results.served if "served" in results else results.decode
    time = served.time_per_token if "time_per_token" in served else results.decode.step_time.estimate
    rate = served.output_tokens_per_second if "output_tokens_per_second" in served else results.decode.tokens_per_second
    yield "How fast is it?", f"{time!r} per token", f"{rate!r} of output"
    yield "What limits it?", results.decode.limiter, "of a decode step"
    helps = [row for row in (results.helps if "helps" in results else []) if row.output_gain > 0.005 and row.memory.verdict == "fits"]
    if helps:
        yield "What to change?", in_words_of_python(helps[0].change), f"{helps[0].output_gain:+.1%} output"
    else:
        yield "What to change?", "nothing nearby", ""
