"""What the figures of a log show where no line says it: NaN, a jump of the loss, an empty queue, a standing download.

Also finds which lines are steps of a training, in whatever words, and how far it has come. Works on formats that the
console does not know, by the shapes that trainers share; `metrics` reads the known ones exactly. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from console.reasons import Reason
from console.state import texts
from console.state.events import LogLine
from console.state.formatrules import parse_number
from console.state.lazy import lazy
from console.state.metrics import Kind, Sample

SPIKE_TIMES: Final = 1.8
"""A loss this many times the usual one has jumped; batches of small models vary by less."""
RECOVERED_TIMES: Final = 1.3
STEADY_TIMES: Final = 1.5
SPIKE_BASE: Final = 50
STARVED_STEPS: Final = 5
NAN_GRADIENTS: Final = 2
GOOD_GRADIENTS: Final = 3
STALLED_BAR_S: Final = 60.0


class Symptom(Struct, frozen=True, kw_only=True):
    reason: Reason
    detail: str
    lines: tuple[LogLine, ...]


class Download(Struct, frozen=True, kw_only=True):
    """A download that is not complete, as the newest line of the log shows it."""

    line: LogLine
    progress: str
    """`1.2G of 55G after 03:10`; what the line says, where it has no bar."""
    stands: bool
    """By its own figures nothing has arrived for a minute."""


class Figures(Struct, frozen=True, kw_only=True):
    """What one step line reports, `nan` and `inf` among it."""

    index: int
    step: int | None = None
    total: int | None = None
    loss: float | None = None
    grad_norm: float | None = None
    queue_min: float | None = None


class Course(Struct, frozen=True, kw_only=True):
    """The steps of a log."""

    figures: tuple[Figures, ...] = ()
    step: int | None = None
    total_steps: int | None = None

    @property
    def steps_at(self) -> tuple[int, ...]:
        return tuple(each.index for each in self.figures)


_NUMBER: Final = r"[-+]?(?:\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?|nan(?:\.0)?|inf(?:inity)?)"
_BAR: Final = lazy(
    r"(?P<label>[^%|]*?)\d{1,3}%\|[^|]*\| *(?P<step>\d[\d,]*) */ *(?P<total>\d[\d,]*) *\[(?P<spent>[\d:]+)<[^\],]*,"
    r" *(?P<rate>[^\],]*)(?P<rest>[^\]]*)\]?"
)
_OTHER_BAR: Final = lazy(
    r"(?i)\b(?:map|load\w*|download\w*|fetch\w*|tokeni\w*|generat\w*|filter\w*|saving|upload\w*|eval\w*|valid\w*"
    r"|test\w*|infer\w*|predict\w*|shard\w*|weights|prepar\w*|prefetch\w*"
    r"|preprocess\w*|pre-?comput\w*|pack\w*|sampling|decod\w*|encod\w*|compil\w*|captur\w*|warm\w*|check\w*"
    r"|convert\w*|merg\w*|cach\w*|copy\w*|extract\w*|num_proc|sanity|resolving|materiali\w*|init\w*|steps? per)\b"
    r"|\.(?:safetensors|bin|json|gguf|pt|parquet|arrow|txt|model)\b"
)
_COUNTER: Final = lazy(
    r"(?i)(?<![\w.])(?P<word>global[_ ]?step|trainer/global_step|num_updates|steps?|iter(?:ation)?s?|updates?|batch"
    r"|epoch)(?:\(\w+\))?['\"]?\s*[:=#\[(|]?\s*\[?(?P<step>\d[\d,]*(?:\.\d+)?)\]?(?:\s*(?:/"
    r"|of)\s*\[?(?P<total>\d[\d,]*))?"
)
_METRIC: Final = lazy(
    rf"(?i)(?<![a-z])(?:\w*loss\w*|ppl|perplexity|bpb|acc(?:uracy)?|tok(?:ens)?(?:/s|_per_sec\w*)|lr|learning_rate"
    rf"|reward\w*|grad[_ ]?norm|samples/s(?:ec)?|elapsed time per iteration[^:]*|tflops?|mfu)['\"]?\s*[:="
    rf"|]?\s*['\"]?{_NUMBER}\b"
)
_NO_STEP: Final = lazy(
    r"(?i)\b(?:best|resum\w+|loaded|restor\w+|starting from|config\w*|namespace|args|error|exception|traceback"
    r"|warning|every|will)\b|=(?:True|False|None)\b"
)
_LOSS: Final = lazy(
    rf"(?i)(?<![\w/.-])(?<!val )(?<!eval )(?<!valid )(?<!test )(?<!best )(?<!validation )(?:train(?:ing)?[_/ ]"
    rf"|(?:(?!val|eval|valid|test|best|dev|aux)[a-z]{{1,16}}[_ ]){{0,3}})?loss(?:/train)?['\"]?\s*[:="
    rf"|]?\s*['\"]?(?P<val>{_NUMBER})(?![\w.])"
)
_GRAD: Final = lazy(
    rf"(?i)(?<![\w])(?:grad(?:ient)?[_ ]?norm|gnorm)['\"]?\s*[:=|]?\s*['\"]?(?P<val>{_NUMBER})(?![\w.])"
)
_QUEUE: Final = lazy(
    r"(?i)\b(?:min_ready|queue_min|pool_size|queue_depth|queue_size|qsize|ready)\s*[=: ]\s*(?P<val>\d+)\b"
)
_MEGATRON: Final = lazy(r"\biteration +\d+/ *\d+ \|")


def course_of(lines: Sequence[LogLine], samples: Mapping[int, Sample]) -> Course:
    """Find the steps; `samples` are those that the known formats gave, by the offset of their line."""
    figures: list[Figures] = []
    total: int | None = None
    for index, line in enumerate(lines):
        sample = samples.get(line.offset)
        if sample is not None and sample.total_steps is not None:
            total = sample.total_steps
        found = _figures(index, line.text, sample)
        if found is not None:
            figures.append(found)
    step, fallback = None, None
    for each in reversed(figures):
        if each.step is not None:
            step = each.step
            fallback = each.total
            break
    return Course(figures=tuple(figures), step=step, total_steps=fallback if fallback is not None else total)


def is_step(text: str) -> bool:
    """Whether a line is a step of a training, by the shapes that trainers share."""
    return _figures(0, text, None) is not None


def _figures(index: int, text: str, sample: Sample | None) -> Figures | None:
    known = sample is not None and sample.kind is Kind.STEP
    bar = _BAR.match(text) if "%|" in text else None
    if bar is not None:
        if not known and (
            _OTHER_BAR.search(bar["label"])
            or bar["step"] == "0"
            or re.search(r"B/s|examples|files", bar["rate"] + bar["rest"])
        ):
            return None
        figures = Figures(index=index, step=_int(bar["step"]), total=_int(bar["total"]))
        return _with_values(figures, bar["label"] + bar["rest"], sample if known else None)
    if not known:
        counter = _COUNTER.search(text)
        if counter is None or _METRIC.search(text) is None or _NO_STEP.search(text):
            return None
        return _with_values(_counted(index, text, counter), text, None)
    assert sample is not None
    return _with_values(Figures(index=index, step=sample.step, total=sample.total_steps), text, sample)


def _counted(index: int, text: str, first: re.Match[str]) -> Figures:
    """The finest counter of the line; an epoch only where there is no other."""
    counters = list(_COUNTER.finditer(text))
    best = next((each for each in counters if each["word"].lower() != "epoch"), first)
    if best["word"].lower() == "epoch" or (best["word"].lower() == "batch" and len(counters) > 1):
        epoch = next((each for each in counters if each["word"].lower() == "epoch"), None)
        if epoch is not None and epoch["total"] is not None and "." not in epoch["step"]:
            return Figures(index=index, step=_int(epoch["step"]), total=_int(epoch["total"]))
        return Figures(index=index)
    epochs = [each for each in counters if each["word"].lower() == "epoch" and each["total"] is not None]
    if epochs and _int(epochs[0]["step"]) != _int(epochs[0]["total"]):
        return Figures(index=index, step=_int(best["step"]))  # its total is that of one epoch
    return Figures(index=index, step=_int(best["step"]), total=_int(best["total"]))


def _with_values(figures: Figures, text: str, sample: Sample | None) -> Figures:
    loss, grad = _value(_LOSS, text), _value(_GRAD, text)
    queue = _value(_QUEUE, text)
    if sample is not None:
        loss = sample.loss if sample.loss is not None else loss
        if sample.loss_state is not None and not (sample.loss is not None and sample.loss == 0):
            loss = math.nan if sample.loss_state == "nan" else math.inf
        grad = sample.grad_norm if sample.grad_norm is not None else grad
        queue = sample.queue_min if sample.queue_min is not None else queue
    return Figures(
        index=figures.index, step=figures.step, total=figures.total, loss=loss, grad_norm=grad, queue_min=queue
    )


def _value(pattern: re.Pattern[str], text: str) -> float | None:
    match = pattern.search(text)
    return (
        parse_number(match["val"].lower().replace("infinity", "inf").replace("nan.0", "nan").rstrip(","))
        if match is not None
        else None
    )


def _int(text: str | None) -> int | None:
    value = parse_number(text) if text is not None else None
    return int(value) if value is not None and math.isfinite(value) else None


# -- symptoms ---------------------------------------------------------------------------------------------------------


def symptoms(lines: Sequence[LogLine], course: Course) -> tuple[Symptom, ...]:
    """Return what the figures show at the end of the log, the worst first."""
    found = (_bad_loss(lines, course), _stalled_download(lines), _starved(lines, course), _spike(lines, course))
    return tuple(each for each in found if each is not None)


def _bad_loss(lines: Sequence[LogLine], course: Course) -> Symptom | None:
    told = [each for each in course.figures if each.loss is not None or _is_bad(each, lines)]
    if not told:
        return None
    if not _is_bad(told[-1], lines):
        return _bad_gradients(lines, told)
    first = len(told) - 1
    while first > 0 and _is_bad(told[first - 1], lines):
        first -= 1
    since = f" since step {texts.count(told[first].step)}" if told[first].step is not None else ""
    return Symptom(reason=Reason.NAN_LOSS, detail=f"the loss is not a number{since}", lines=(lines[told[first].index],))


def _is_bad(figures: Figures, lines: Sequence[LogLine]) -> bool:
    """NaN or infinite; or hidden: written as 0 or not at all while the gradient is NaN."""
    if figures.loss is not None and not math.isfinite(figures.loss):
        return True
    if figures.grad_norm is None or math.isfinite(figures.grad_norm):
        return False
    return figures.loss == 0 or (figures.loss is None and _MEGATRON.search(lines[figures.index].text) is not None)


def _bad_gradients(lines: Sequence[LogLine], told: Sequence[Figures]) -> Symptom | None:
    """NaN gradients at the start are the loss scale finding its place; at the end of a longer run they are not."""
    bad = 0
    for each in reversed(told):
        if each.grad_norm is None or not math.isnan(each.grad_norm):  # infinite ones are how the scale is found
            break
        bad += 1
    if bad < NAN_GRADIENTS or len(told) - bad < GOOD_GRADIENTS:
        return None
    at = told[-bad]
    return Symptom(
        reason=Reason.NAN_LOSS, detail=f"the gradient is not a number in the last {bad} steps", lines=(lines[at.index],)
    )


def _spike(lines: Sequence[LogLine], course: Course) -> Symptom | None:
    told = [each for each in course.figures if each.loss is not None and math.isfinite(each.loss)]
    losses = [each.loss for each in told if each.loss is not None]
    if len(losses) < 4 or min(losses) <= 0.05:
        return None
    for at in range(2, len(losses) - 1):
        base = losses[max(0, at - SPIKE_BASE) : at]
        usual, highest = sorted(base)[len(base) // 2], max(base)
        if highest > STEADY_TIMES * usual or losses[at] < SPIKE_TIMES * highest:
            continue
        after = losses[at:]
        if min(after[-2:]) < RECOVERED_TIMES * usual or sorted(after)[len(after) // 2] < SPIKE_TIMES * usual:
            continue
        step = f" at step {texts.count(told[at].step)}" if told[at].step is not None else ""
        detail = f"loss {usual:.4g} -> {max(after):.4g}{step}, {after[-1]:.4g} at the end"
        return Symptom(
            reason=Reason.LOSS_SPIKE, detail=detail, lines=(lines[told[at - 1].index], lines[told[at].index])
        )
    return None


def _starved(lines: Sequence[LogLine], course: Course) -> Symptom | None:
    told = [each for each in course.figures if each.queue_min is not None][-STARVED_STEPS:]
    if len(told) < STARVED_STEPS or any(each.queue_min for each in told):
        return None
    detail = f"the queue was empty in the last {len(told)} steps"
    return Symptom(reason=Reason.QUEUE_STARVED, detail=detail, lines=(lines[told[0].index], lines[told[-1].index]))


_BYTES_BAR: Final = lazy(
    r"(?P<have>[\d.]+ ?[kKMGT]?i?B?) ?/ ?(?P<want>[\d.]+ ?[kKMGT]?i?B?) *\[(?P<spent>[\d:]+)<(?P<left>[^\],]*),"
    r" *(?P<rate>[^\],]*B/s)"
)
_STALL_WORDS: Final = lazy(
    r"(?i)\bdownload\w*\b.{0,60}\b(?:stalled|stuck|hung|no progress|not progressing|made no progress)\b|\bno (?:data"
    r"|bytes)(?: were)? received for \d+|\b0 (?:bytes|B) received (?:for|in) the last"
)
_NOT_STALLED: Final = lazy(r"(?i)\bno longer|not stalled|resum|retry|timeout[ :=]")
_LAST_BARS: Final = 6


def _stalled_download(lines: Sequence[LogLine]) -> Symptom | None:
    found = download_of(lines)
    if found is None or not found.stands:
        return None
    return Symptom(reason=Reason.DOWNLOAD_STALL, detail=found.progress, lines=(found.line,))


def download_of(lines: Sequence[LogLine]) -> Download | None:
    """Return the download that the newest line shows, unless that is complete."""
    last = _newest_words(lines)
    if not last:
        return None
    if _STALL_WORDS.search(last[-1].text) and not _NOT_STALLED.search(last[-1].text):
        return Download(line=last[-1], progress="the log says that nothing arrives", stands=True)
    bars = [(line, match) for line in last if (match := _last_bar(line.text)) is not None]
    if not bars or bars[-1][0] is not last[-1]:
        return None
    line, bar = bars[-1]
    if bar["have"].rstrip("B") == bar["want"].rstrip("B"):
        return None
    rate = bar["rate"].lstrip()
    stands = rate.startswith("?") or re.match(r"0(?:\.0+)? ?[kMG]?i?B/s", rate) is not None
    frozen = [each for _, each in bars if each["have"] == bar["have"]]
    spent_s = _seconds(bar["spent"])
    stood_s = spent_s - _seconds(frozen[0]["spent"])
    return Download(
        line=line,
        progress=f"{bar['have']} of {bar['want']} after {bar['spent']}",
        stands=(stands and spent_s >= STALLED_BAR_S) or stood_s >= STALLED_BAR_S,
    )


def _newest_words(lines: Sequence[LogLine]) -> list[LogLine]:
    """The newest lines that say anything, at most six, oldest first."""
    found: list[LogLine] = []
    for line in reversed(lines):
        if line.text.strip():
            found.append(line)
            if len(found) == _LAST_BARS:
                break
    return found[::-1]


def _last_bar(text: str) -> re.Match[str] | None:
    found = list(_BYTES_BAR.finditer(text))
    return found[-1] if found else None


def _seconds(clock: str) -> float:
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part or 0)
    return total
