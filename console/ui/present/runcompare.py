"""A run beside another: what differs in figures and in settings, and the gap between their curves. Pure.

A difference is green or amber where it is one, grey where it may be noise; figures that have no noise of their own are
coloured from a size on that matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from console.history.comparing import SMOOTH_S, Comparison, Pair, Points, curve, gap_curve, smoothed
from console.history.samples import Curves
from console.model import Change
from console.state.series import percentile
from console.ui.plot import Window, decimate
from console.ui.present import words
from console.ui.present.drawing import LABEL_CELLS, Drawing, draw_axes
from console.ui.present.frame import title
from console.ui.present.look import Look
from console.ui.present.runtable import name_of
from console.ui.present.spans import Line, Role, Span, View, cells, clip, dim, faint, strong, wrap

_GIB = 1024.0**3
_LABEL_CELLS = 24
_VALUE_CELLS = 18
_NARROW = 72
BOTH_FROM_ROWS = 14
"""In fewer rows two close curves melt into one: the gap in percent is drawn instead."""
_LEAST_PLOT = 6
_TOKENS_PCT = 1.0
"""From so much on more tokens are a difference: warm-up and pauses are in them, which the rate's noise leaves out."""


class Curve(StrEnum):
    """What the plot shows; `m` goes on to the next that both runs have."""

    TOK_S = "tok_s"
    LOSS = "loss"
    QUEUE = "queue"


_TITLES = {Curve.TOK_S: "tok/s", Curve.LOSS: "loss", Curve.QUEUE: "queue"}


class Beside(Struct, frozen=True, kw_only=True):
    """Two runs with their curves, and how to show them."""

    found: Comparison
    a: Curves
    b: Curves
    curve: Curve = Curve.TOK_S
    by_step: bool = False
    version: int = 0
    """Of what was read: the same one is drawn once."""


def compare_view(beside: Beside, width: int, rows: int, look: Look) -> View:
    """Return figures, differences and plot in at most `rows` rows; the plot goes first when they don't fit."""
    figures = _figures(beside.found, width, look)
    differences = _differences(beside.found, width, look)
    if rows - len(figures) - len(differences) >= _LEAST_PLOT:
        return (*figures, *differences, *_plot(beside, width, rows - len(figures) - len(differences), look))
    room = rows - len(figures)
    if room >= 3 and len(differences) > room:
        differences = (*differences[: room - 1], (faint(f"  {len(differences) - room + 1} more: y copies them all"),))
    return (*figures, *differences)[: max(0, rows)]


# -- figures ----------------------------------------------------------------------------------------------------------


class _Figure(Struct, frozen=True):
    label: str
    a: str
    b: str
    delta: str = ""
    role: Role = Role.DIM


def _figures(found: Comparison, width: int, look: Look) -> View:
    narrow = width < _NARROW
    figures = [_shortened(each) for each in _list(found)] if narrow else _list(found)
    label = max(_LABEL_CELLS if not narrow else 0, *(cells(each.label) + 2 for each in figures))
    value = max(_VALUE_CELLS if not narrow else 0, *(cells(text) + 2 for each in figures for text in (each.a, each.b)))
    delta = 12 if not narrow else 9
    lines: list[Line] = [title("A against B", [(_noise(found, width),)], None, width, look)]
    names = [clip(f"{letter} {name_of(run)}", value - 1) for letter, run in (("A", found.a), ("B", found.b))]
    head: Line = (
        Span(" " * (label + 2)),
        Span(names[0].rjust(value), Role.TARGET),
        Span(names[1].rjust(value), Role.DRAFTER),
        faint("A − B".rjust(delta)),
    )
    lines.append(head)
    for each in figures:
        text = Span(each.delta.rjust(delta), each.role, each.role is Role.WARN)
        lines.append(
            (dim(f"  {each.label}".ljust(label + 2)), Span(each.a.rjust(value)), Span(each.b.rjust(value)), text)
        )
    return tuple(lines)


def _shortened(figure: _Figure) -> _Figure:
    return replace(figure, label=figure.label.replace(", steady 10 min", "").replace("peak memory", "peak"))


def _noise(found: Comparison, width: int) -> Span:
    """Return what is to be said of the noise, in as many words as there is room for."""
    rate = found.rate
    if found.unlike:
        texts, role = [f"the rates can't be compared: {found.unlike}", "the rates can't be compared"], Role.WARN
    elif rate is None:
        missing = [name_of(run) for run in (found.a, found.b) if run.steady_tok_s is None]
        who = " and ".join(missing) or "one of them"
        texts, role = [f"no steady rates of {who} are kept", "no steady rates are kept"], Role.WARN
    elif rate.noise is None or rate.noise_pct is None:
        texts, role = [f"how much is noise is not known: {rate.why}", "noise of the gap not known"], Role.WARN
    else:
        verdict = "it is a difference" if rate.significant else "may be noise alone"
        percent = f"±{rate.noise_pct:.1f} %"
        texts = [
            f"noise of the gap ±{words.count(rate.noise)} tok/s, {percent}: {verdict}",
            f"noise of the gap {percent}: {verdict}",
            f"noise {percent}: {verdict}",
        ]
        role = Role.DIM if rate.significant else Role.WARN
    room = width - cells(" ── A against B   ─ ")
    return Span(next((text for text in texts if cells(text) <= room), texts[-1]), role)


def _list(found: Comparison) -> list[_Figure]:
    figures = [_rate(found)]
    if found.equal_s is not None:
        tokens = found.tokens or Pair(None, None)
        figures.append(
            _Figure(
                f"tokens at {words.whole_duration(found.equal_s)}",
                *_both(tokens, lambda value: f"{value / 1e6:.1f} M"),
                words.percent_change(tokens.delta_pct),
                _judged(tokens.delta_pct, max(_beyond(found), _TOKENS_PCT), more_is=Role.OK),
            )
        )
    if found.loss is not None:
        delta = found.loss.delta
        figures.append(
            _Figure(
                f"loss at step {words.count(found.equal_step)}",
                *_both(found.loss, words.loss),
                _signed(delta, ".3f"),
                _judged(delta, _share(found.loss, 0.002), more_is=Role.WARN),
            )
        )
    if found.launch_s is not None:
        figures.append(
            _Figure("launch", *_both(found.launch_s, words.short_duration), _signed(found.launch_s.delta, ".0f", " s"))
        )
    if found.peak_bytes is not None:
        delta = found.peak_bytes.delta
        figures.append(
            _Figure(
                f"peak memory, GPU {found.peak_gpu}",
                *_both(found.peak_bytes, lambda value: f"{value / _GIB:.1f} GiB"),
                _signed(delta / _GIB if delta is not None else None, ".1f"),
                _judged(delta, _GIB, more_is=Role.WARN),
            )
        )
    figures += _roles(found)
    if found.queue_empty_pct is not None:
        delta = found.queue_empty_pct.delta
        figures.append(
            _Figure(
                "queue empty",
                *_both(found.queue_empty_pct, lambda value: f"{value:.1f} %"),
                _signed(delta, ".1f", " pt"),
                _judged(delta, 1.0, more_is=Role.WARN),
            )
        )
    return figures


def _rate(found: Comparison) -> _Figure:
    rate = found.rate
    if rate is None:
        pair = Pair(found.a.steady_tok_s, found.b.steady_tok_s)
        delta = words.percent_change(pair.delta_pct) if not found.unlike else ""
        return _Figure("tok/s, steady 10 min", *_both(pair, words.count), delta)
    texts = [f"{words.count(each.median)} ±{words.count(each.mad)}" for each in (rate.a, rate.b)]
    role = _judged(rate.delta_pct, _beyond(found), more_is=Role.OK)
    return _Figure("tok/s, steady 10 min", texts[0], texts[1], words.percent_change(rate.delta_pct), role)


def _beyond(found: Comparison) -> float:
    """From where on a difference of rates in percent is none by chance."""
    noise = found.rate.noise_pct if found.rate is not None else None
    return noise if noise is not None else math.inf


def _roles(found: Comparison) -> list[_Figure]:
    figures = []
    for role in found.busy_pct | found.power_w:
        busy, power = found.busy_pct.get(role, Pair(None, None)), found.power_w.get(role, Pair(None, None))
        texts = [_load(load, watts) for load, watts in ((busy.a, power.a), (busy.b, power.b))]
        delta = busy.delta
        name = "GPUs" if role == "all" else f"{words.one_line(role)}s"
        figures.append(
            _Figure(
                f"{name} busy / W",
                texts[0],
                texts[1],
                _signed(delta, ".0f", " pt"),
                _judged(delta, 2.0, more_is=Role.OK),
            )
        )
    return figures


def _load(busy: float | None, watts: float | None) -> str:
    load = words.UNKNOWN if busy is None else f"{busy:.0f} %"
    return f"{load} / {words.UNKNOWN if watts is None else f'{watts:.0f}'}"


def _both(pair: Pair, form: Callable[[float], str]) -> tuple[str, str]:
    a, b = (words.UNKNOWN if value is None else form(value) for value in (pair.a, pair.b))
    return a, b


def _share(pair: Pair, share: float) -> float:
    return abs(pair.b) * share if pair.b is not None else math.inf


def _judged(delta: float | None, from_: float, *, more_is: Role) -> Role:
    if delta is None or abs(delta) <= from_:
        return Role.DIM
    less_is = Role.WARN if more_is is Role.OK else Role.OK
    return more_is if delta > 0 else less_is


def _signed(value: float | None, form: str, unit: str = "") -> str:
    if value is None:
        return ""
    text = format(abs(value), form)
    sign = words.MINUS if value < 0 and float(text) != 0 else "+"
    return f"{sign}{text}{unit}"


# -- settings ---------------------------------------------------------------------------------------------------------


def _differences(found: Comparison, width: int, look: Look) -> View:
    head = title("differences", [(dim("A | B"),)], None, width, look)
    if found.changes is None:
        return (head, (Span("  "), faint(clip("not known: of a log alone no settings are kept", width - 3))))
    if not found.changes:
        return (head, (Span("  "), faint(clip("none in environment, arguments and scripts", width - 3))))
    lines: list[Line] = [head]
    for change in found.changes:
        lines += _change(change, width)
    return tuple(lines)


def _change(change: Change, width: int) -> list[Line]:
    lead: Line = (Span(f"  ~ {change.kind.ljust(6)}", Role.WARN, True),)
    name = words.one_line(change.what.rpartition("/")[2] if change.kind == "file" else change.what)
    values = f"{_value(change.now)} | {_value(change.then)}"
    rows = wrap(f"{name}  {values}" if name else values, max(10, width - 12))
    first = rows[0]
    text: Line = (Span(name), strong(first[len(name) :])) if name and first.startswith(name) else (strong(first),)
    return [(*lead, *text), *((Span(" " * 10), strong(row)) for row in rows[1:])]


def _value(value: str | None) -> str:
    return "unset" if value is None else words.one_line(value) or '""'


# -- the plot ---------------------------------------------------------------------------------------------------------


def shared_curves(a: Mapping[str, object], b: Mapping[str, object]) -> list[Curve]:
    """Return what can be drawn: the curves that both runs have."""
    return [each for each in Curve if each in a and each in b]


def _plot(beside: Beside, width: int, rows: int, look: Look) -> View:
    name = _TITLES[beside.curve]
    both = rows - 3 >= BOTH_FROM_ROWS
    along = "by step" if beside.by_step else "since the first step"
    if beside.curve not in shared_curves(beside.a.digests, beside.b.digests):
        head = title(f"{name} gap", [(dim(along),)], None, width, look)
        return (head, (Span("  "), faint(clip("the curve of one of them is not kept", width - 3))))
    if beside.found.unlike and beside.curve is Curve.TOK_S:
        head = title(name, [(dim(along),)], faint("m metric"), width, look)
        return (head, (Span("  "), faint(clip(f"not drawn: {beside.found.unlike}", width - 3))))
    curves = [curve(each.digests[beside.curve], by_step=beside.by_step) for each in (beside.a, beside.b)]
    smooth = _smoothing(curves)
    canvas, canvas_rows = width - LABEL_CELLS - 3, rows - 3
    if both:
        facts = [(Span("A", Role.TARGET, True), Span(" B", Role.DRAFTER, True)), (dim(along),)]
        drawing = _both_curves([smoothed(points, smooth / 2) for points in curves], canvas, canvas_rows, beside)
    else:
        facts = [(dim(f"A over B, %, {along}, {_smooth_words(smooth, beside)} median"),)]
        drawing = _gap(curves, smooth, canvas, canvas_rows, beside)
    head = title(name if both else f"{name} gap", facts, faint("m metric · x step/time"), width, look)
    if drawing is None:
        return (head, (Span("  "), faint(clip("the two curves have no stretch in common", width - 3))))
    return (head, *draw_axes(drawing, canvas, canvas_rows, look, 1, clock_row=True))


def _smoothing(curves: Sequence[Points]) -> float:
    """Five minutes; of steps or of shorter runs a tenth of what both have."""
    length = min((points[-1][0] - points[0][0] for points in curves if points), default=0.0)
    return min(SMOOTH_S, length / 10)


def _smooth_words(smooth: float, beside: Beside) -> str:
    if beside.by_step:
        return f"{max(1, round(smooth)):,}-step"
    return words.span(smooth).replace("5m", "5 min")


_ROUND_S = tuple(
    unit * factor
    for unit, factors in (
        (1, (1, 2, 5, 10, 15, 30)), (60, (1, 2, 5, 10, 15, 30)), (3600, (1, 2, 3, 6, 12)), (86400, (1, 2, 5, 10, 30)),
    )
    for factor in factors
)  # fmt: skip


def ticks_x(right: float, width: int, *, by_step: bool) -> tuple[float, ...]:
    """Return round places of the x axis, from 0 on and not too close to each other."""
    wanted = right / max(2, min(6, width // 18))
    if by_step:
        base = 10.0 ** math.floor(math.log10(max(wanted, 1.0)))
        step = next((base * factor for factor in (1, 2, 5) if base * factor >= wanted), base * 10)
    else:
        step = float(next((seconds for seconds in _ROUND_S if seconds >= wanted), _ROUND_S[-1]))
    return tuple(step * n for n in range(int(right / step) + 1)) if right / step <= 100 else ()


def label_x(value: float, *, by_step: bool) -> str:
    """`0`, `30 s`, `45m`, `1h 30m`, `18,000`."""
    whole = round(value)
    if by_step or not whole:
        return words.count(whole)
    if whole < 3600 or whole % 3600:
        return words.span(whole) if whole < 60 or whole % 60 or whole > 3600 else f"{whole // 60}m"
    return f"{whole // 3600}h" if whole < 86400 else words.duration(whole)


def _axis(beside: Beside, right: float, width: int) -> dict[str, Any]:
    return {
        "label_x": partial(label_x, by_step=beside.by_step),
        "ticks_x": ticks_x(right, width, by_step=beside.by_step),
    }


def _gap(curves: Sequence[Points], smooth: float, width: int, rows: int, beside: Beside) -> Drawing | None:
    points = gap_curve(curves[0], curves[1], smooth)
    if not points:
        return None
    # By the later half: a slow start of one of them is marked on the edge and doesn't flatten what one looks for.
    values = sorted(value for _, value in points[len(points) // 2 :])
    low, high = min(0.0, percentile(values, 2)), max(0.0, percentile(values, 98))
    margin = max(0.5, (high - low) * 0.6)
    right = max(x for x, _ in points) or 1.0
    window = Window(0.0, right, low - margin, high + margin)
    return Drawing(
        window=window,
        curves=((Role.TARGET, (decimate(points, window, width, rows),)),),
        label=lambda value: f"{value:+.0f}" if high - low > 4 else f"{value:+.1f}",
        baseline=0.0,
        **_axis(beside, right, width),
    )


def _both_curves(curves: Sequence[Points], width: int, rows: int, beside: Beside) -> Drawing | None:
    values = sorted(value for points in curves for _, value in points)
    if not values:
        return None
    low, high = percentile(values, 2), percentile(values, 98)
    margin = max((high - low) * 0.15, abs(high) * 0.01, 1e-9)
    right = max(points[-1][0] for points in curves if points)
    window = Window(0.0, right or 1.0, low - margin, high + margin)
    is_rate = beside.curve is Curve.TOK_S
    return Drawing(
        window=window,
        curves=tuple(
            (role, (decimate(points, window, width, rows),))
            for role, points in zip((Role.DRAFTER, Role.TARGET), reversed(curves), strict=True)
        ),
        label=words.rate if is_rate else lambda value: f"{value:.2f}"[:4],
        **_axis(beside, window.right, width),
    )
