"""A run beside another: what differs in figures and in settings, above the plot of both. Pure.

A difference is green or amber where it is one, grey where it may be noise; figures that have no noise of their own are
coloured from a size on that matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from console.history.comparing import Comparison, Pair
from console.model import Change
from console.ui.present import words
from console.ui.present.frame import title
from console.ui.present.look import Look
from console.ui.present.runplot import Beside, run_plot
from console.ui.present.runtable import name_of
from console.ui.present.spans import Line, Role, Span, View, cells, clip, dim, faint, strong, wrap

_GIB = 1024.0**3
_LABEL_CELLS = 24
_VALUE_CELLS = 18
_NARROW = 72
_LEAST_PLOT = 6
_TOKENS_PCT = 1.0
"""From so much on more tokens are a difference: warm-up and pauses are in them, which the rate's noise leaves out."""


def compare_view(beside: Beside, width: int, rows: int, look: Look) -> View:
    """Return figures, differences and plot in at most `rows` rows; the plot goes first when they don't fit."""
    figures = _figures(beside.found, width, look)
    differences = _differences(beside.found, width, look)
    if rows - len(figures) - len(differences) >= _LEAST_PLOT:
        return (*figures, *differences, *run_plot(beside, width, rows - len(figures) - len(differences), look))
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
                *_tokens(tokens, found.tokens_about),
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
                words.loss_difference(delta) if delta is not None else "",
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


def _tokens(tokens: Pair, about: tuple[bool, bool]) -> tuple[str, str]:
    """Both in one unit; `~` where it is an estimate."""
    most = max((abs(value) for value in (tokens.a, tokens.b) if value is not None), default=0.0)
    unit, digits, mark = (1e9, 1, " B") if most >= 1e11 else (1e6, 1, " M") if most >= 1e6 else (1.0, 0, "")
    a, b = _both(tokens, lambda value: f"{value / unit:,.{digits}f}{mark}")
    return f"~{a}" if about[0] and tokens.a is not None else a, f"~{b}" if about[1] and tokens.b is not None else b


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
