"""`compare`: two runs side by side, with what of their difference may be noise."""

from __future__ import annotations

from typing import Any

from console.config import Target
from console.engine import Engine
from console.headless import output
from console.headless.history import differences, log_read, say_unread, say_unwritten
from console.headless.interruption import carried_out
from console.headless.session import can_look, deadline_after, first_word, opened
from console.history.comparing import Comparison, Pair, compare
from console.history.entry import Entry
from console.reasons import ConsoleError, Exit

_GIB = 1024.0**3


def run(name: str, target: Target, *, a: str, b: str, timeout: float | None, as_json: bool) -> int:
    """Carry the command out; return its exit code."""
    return carried_out(_compare(name, target, a, b, timeout, as_json=as_json))


async def _compare(name: str, target: Target, a: str, b: str, timeout_s: float | None, *, as_json: bool) -> int:
    deadline = deadline_after(timeout_s)
    async with opened(name, target) as engine:
        failure: ConsoleError | None = None
        try:
            await first_word(engine, deadline)
            await can_look(engine, deadline)
        except ConsoleError as error:
            failure = error  # the ledger knows them all the same
        found = compare(await engine.archive.run(a), await engine.archive.run(b))
        unread = engine.archive.unread
        if as_json:
            output.emit_json(comparison_json(engine, found, unread))
        else:
            for line in lines(found):
                output.say(line)
        say_unread([_name(each) for each in (found.a, found.b) if each.id in unread])
        say_unwritten(engine)
        if failure is not None:
            for line in output.error_lines(failure):
                output.progress(line)
        return Exit.OK


# -- lines ------------------------------------------------------------------------------------------------------------


def lines(found: Comparison) -> list[str]:
    """Return the comparison as a table, the verdict on the rate as its last words."""
    rows = [("", f"A {_name(found.a)}", f"B {_name(found.b)}", "A - B"), *_rows(found)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    table = [
        "  ".join([row[0].ljust(widths[0]), *(row[column].rjust(widths[column]) for column in (1, 2, 3))]).rstrip()
        for row in rows
    ]
    return [*table, f"noise     {noise_words(found)}", *_differences(found)]


def _name(entry: Entry) -> str:
    return output.one_line(entry.name or entry.id)


def _rows(found: Comparison) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, str, str, str]] = []
    rate = found.rate
    if rate is not None:
        texts = [f"{each.median:.0f} +-{each.mad:.0f}" for each in (rate.a, rate.b)]
        rows.append(("tok/s", texts[0], texts[1], _percent(rate.delta_pct)))
    else:
        rows.append(("tok/s", *_pair_texts(Pair(found.a.steady_tok_s, found.b.steady_tok_s), ".0f"), ""))
    if found.equal_s is not None:
        tokens = found.tokens or Pair(None, None)
        scaled = Pair(*(None if each is None else each / 1e6 for each in (tokens.a, tokens.b)))
        texts = [
            f"~{text}" if is_about and value is not None else text
            for text, is_about, value in zip(
                _pair_texts(scaled, ".1f"), found.tokens_about, (tokens.a, tokens.b), strict=True
            )
        ]
        rows.append((f"Mtokens at {output.span(found.equal_s)}", texts[0], texts[1], _percent(tokens.delta_pct)))
    if found.equal_step is not None and found.loss is not None:
        rows.append(
            (f"loss at step {found.equal_step}", *_pair_texts(found.loss, ".3f"), _signed(found.loss.delta, ".3f"))
        )
    if found.launch_s is not None:
        texts = ["-" if each is None else output.span(each) for each in (found.launch_s.a, found.launch_s.b)]
        rows.append(("launch", texts[0], texts[1], _signed(found.launch_s.delta, ".0f", " s")))
    if found.peak_bytes is not None:
        gib = Pair(*(None if each is None else each / _GIB for each in (found.peak_bytes.a, found.peak_bytes.b)))
        rows.append((f"peak GiB, GPU {found.peak_gpu}", *_pair_texts(gib, ".1f"), _signed(gib.delta, ".1f")))
    for role in found.busy_pct | found.power_w:
        busy, power = found.busy_pct.get(role, Pair(None, None)), found.power_w.get(role, Pair(None, None))
        texts = [f"{_text(x, '.0f')} % / {_text(y, '.0f')} W" for x, y in ((busy.a, power.a), (busy.b, power.b))]
        rows.append((f"{role} busy / W", texts[0], texts[1], _signed(busy.delta, ".0f", " pt")))
    if found.queue_empty_pct is not None:
        queue = found.queue_empty_pct
        rows.append(("queue empty %", *_pair_texts(queue, ".1f"), _signed(queue.delta, ".1f", " pt")))
    return rows


def noise_words(found: Comparison) -> str:
    """Return whether the difference of the rates is one: `+-1.4 %: the difference is beyond it`."""
    rate = found.rate
    if rate is None:
        return "not known: " + _why(found)
    if rate.noise_pct is None:
        return f"not known: {rate.why}"
    word = "the difference is beyond it" if rate.significant else "the difference is within it"
    return f"+-{rate.noise_pct:.1f} %: {word}"


def _why(found: Comparison) -> str:
    if found.unlike:
        return found.unlike
    without = [f"no steady rates of {_name(each)} are kept" for each in (found.a, found.b) if each.steady_tok_s is None]
    return "; ".join(without) or "the steady rates of one are not kept any more"


def _differences(found: Comparison) -> list[str]:
    if found.changes is None:
        return ["differ    not known: of a log alone no settings are kept"]
    if not found.changes:
        return ["differ    nothing in environment, arguments and scripts"]
    return [
        f"{each.kind:<9} " + output.one_line(f"{each.what} {_or_unset(each.now)} | {_or_unset(each.then)}".strip())
        for each in found.changes
    ]


def _or_unset(value: str | None) -> str:
    return "(unset)" if value is None else value


def _text(value: float | None, form: str) -> str:
    return "?" if value is None else format(value, form)


def _pair_texts(pair: Pair, form: str) -> tuple[str, str]:
    return _text(pair.a, form), _text(pair.b, form)


def _signed(value: float | None, form: str, unit: str = "") -> str:
    if value is None:
        return ""
    text = format(value, f"+{form}")
    return (text if float(text) else format(0.0, f"+{form}")) + unit


def _percent(value: float | None) -> str:
    return _signed(value, ".1f", " %")


# -- JSON -------------------------------------------------------------------------------------------------------------


def comparison_json(engine: Engine, found: Comparison, unread: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the comparison as the fields of a JSON object."""
    snapshot, rate = engine.snapshot, found.rate
    whys = {}
    if rate is None:
        whys["tok_s"] = _why(found)
    elif rate.noise is None:
        whys["tok_s.noise_pct"] = rate.why
    if found.tokens is None or found.tokens.delta is None:
        whys["tokens"] = found.unlike or "the curve of one is not known over that time"
    if found.loss is None:
        whys["loss_at_step"] = "the losses of one are not known"
    for field, pair, what in (
        ("launch_s", found.launch_s, "launch"),
        ("peak_bytes", found.peak_bytes, "GPU sample"),
        ("queue_empty_pct", found.queue_empty_pct, "queue"),
    ):
        values = (None, None) if pair is None else (pair.a, pair.b)
        names = [_name(each) for each, value in zip((found.a, found.b), values, strict=True) if value is None]
        if names:
            whys[field] = f"no {what} of {' and '.join(names)} is known"
    for field, each in (("id", found.a), ("b_id", found.b)):
        if each.is_log_only:
            whys[field] = "only its log is known"
    if found.changes is None:
        whys["diff"] = "of a log alone no settings are kept"
    return {
        "target": snapshot.target,
        "run": found.a.name or None,
        "id": None if found.a.is_log_only else found.a.id,
        "a": found.a.name or found.a.id,
        "b": found.b.name or found.b.id,
        "b_id": None if found.b.is_log_only else found.b.id,
        "tok_s": {
            "a": rate.a.median if rate else found.a.steady_tok_s,
            "b": rate.b.median if rate else found.b.steady_tok_s,
            "mad_a": rate.a.mad if rate else found.a.steady_mad,
            "mad_b": rate.b.mad if rate else found.b.steady_mad,
            "n_a": rate.a.n if rate else found.a.steady_n,
            "n_b": rate.b.n if rate else found.b.steady_n,
            "delta_pct": output.rounded(rate.delta_pct, 2) if rate else None,
            "noise_pct": output.rounded(rate.noise_pct, 2) if rate else None,
            "significant": rate.significant if rate else None,
        },
        "log_read": {
            side: log_read(each, is_unread=each.id in unread) for side, each in (("a", found.a), ("b", found.b))
        },
        "aligned": "since_first_step",
        "tokens": {"after_s": found.equal_s, **_pair_json(found.tokens, 0)},
        "loss_at_step": {"step": found.equal_step, **_pair_json(found.loss, 4)} if found.loss else None,
        "launch_s": _pair_json(found.launch_s, 3),
        "peak_bytes": {"gpu": int(found.peak_gpu) if found.peak_gpu else None, **_pair_json(found.peak_bytes, 0)},
        "busy_pct": {role: _pair_json(pair, 1) for role, pair in found.busy_pct.items()},
        "power_w": {role: _pair_json(pair, 1) for role, pair in found.power_w.items()},
        "queue_empty_pct": _pair_json(found.queue_empty_pct, 1),
        "diff": _diff_json(found),
        "why": whys,
        "at": output.utc(snapshot.at),
        "data_age_s": output.rounded(snapshot.ages.link),
    }


def _pair_json(pair: Pair | None, digits: int) -> dict[str, float | None]:
    values = (None, None) if pair is None else (pair.a, pair.b)
    return {
        name: None if value is None else round(value, digits) if digits else round(value)
        for name, value in zip(("a", "b"), values, strict=True)
    }


def _diff_json(found: Comparison) -> dict[str, Any] | None:
    if found.changes is None:
        return None
    turned = differences(found.changes)
    return {
        kind: {name: [now, then] for name, (then, now) in value.items()} if isinstance(value, dict) else value[::-1]
        for kind, value in turned.items()
    }
