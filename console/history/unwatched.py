"""What a run that nobody watched came to: its log read afterwards, dated by the notes of its keeper, and its GPUs.

Of a run that a console did watch the GPUs' curves are taken alone: where nobody looked, the keeper did. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from console.history.entry import Achieved, Entry, Observed, entry
from console.history.oldlog import Seen, summary
from console.history.samples import Curves
from console.protocol import Growth, RunRecord
from console.state.digest import Digest, Digester

_BUCKETS = 240
_USED, _BUSY, _POWER = 1, 2, 3
"""Places in a sample of `Growth.gpus`."""


def wall_of(record: RunRecord) -> Callable[[float], float]:
    """Return what turns a record's boot times into the host's wall clock."""
    offset_s = record.accepted_wall - record.accepted_bt
    return lambda bt: bt + offset_s


def rebuilt(
    record: RunRecord,
    notes: Sequence[Growth],
    roles: Mapping[str, tuple[int, ...]],
    *,
    known: Entry | None = None,
    log: tuple[Sequence[Seen], int | None, int] | None = None,
    log_end: tuple[Sequence[Seen], int | None, int] | None = None,
) -> tuple[Entry, Curves]:
    """Return the row and the curves of a run that is over.

    `known`: its row, where a console has seen its steps; `log_end` is then what the end of its log tells. `log`: else
    its steps by the host's wall clock, its last checkpoint and its size.
    """
    seen, curves, size_bytes = Observed(), Curves(), known.log_size if known is not None else None
    first_at = known.first_step_wall if known is not None else None
    if log is not None and record.log is not None:
        steps, checkpoint, size_bytes = log
        ended = record.exit.ended_wall if record.exit is not None else None
        row, curves = summary(
            record.log.path, record.name, size_bytes, ended or record.accepted_wall, steps, checkpoint
        )
        achieved = {name: getattr(row, name) for name in Achieved.__struct_fields__}
        seen = Observed(**achieved)
        first_at = row.first_step_wall
    elif known is not None and log_end is not None:
        steps, checkpoint, size_bytes = log_end
        seen = _later(known, steps, checkpoint)
    seen = msgspec.structs.replace(seen, peaks=_peaks(notes))
    if first_at is not None:
        digests = {**curves.digests, **gpu_digests(notes, roles, first_at, wall_of(record))}
        curves = msgspec.structs.replace(curves, digests=digests)
    return msgspec.structs.replace(entry(record, seen), log_size=size_bytes or 0), curves


def _later(known: Entry, steps: Sequence[Seen], checkpoint: int | None) -> Observed:
    """Return what a run still did after it was watched: the console that replaces it looks at the next one already."""
    last = steps[-1].sample if steps else None
    if last is None or last.step is None or last.step < (known.last_step or 0):
        return Observed()
    losses = [each.sample for each in steps if each.sample.loss is not None or each.sample.loss_state is not None]
    return Observed(
        last_step=last.step,
        last_loss=losses[-1].loss if losses else None,
        loss_state=(losses[-1].loss_state or "ok") if losses else None,
        checkpoint_step=checkpoint if checkpoint is not None and checkpoint <= last.step else None,
    )


def _samples(notes: Iterable[Growth]) -> Iterable[Growth]:
    return (note for note in notes if note.k == "gpu" and note.gpus)


def _peaks(notes: Iterable[Growth]) -> dict[str, int]:
    """Return the most bytes that were used of each GPU on which the run had a context at that moment."""
    peaks: dict[str, int] = {}
    for note in _samples(notes):
        for gpu in note.gpus:
            index, used = gpu[0], gpu[_USED] if len(gpu) > _USED else None
            if index in note.held and used is not None:
                peaks[str(index)] = max(used, peaks.get(str(index), 0))
    return peaks


def gpu_digests(
    notes: Iterable[Growth], roles: Mapping[str, tuple[int, ...]], first_at: float, at_of: Callable[[float], float]
) -> dict[str, Digest]:
    """Return per role the most memory, the mean load and the mean power of the run's GPUs, since its first step."""
    names = {index: role for role, indexes in roles.items() for index in indexes}
    digesters: dict[str, Digester] = {}
    for note in _samples(notes):
        since_s, by_role = at_of(note.bt) - first_at, dict[str, list[list[int | None]]]()
        for gpu in note.gpus:
            if gpu[0] is not None and gpu[0] in note.held:
                by_role.setdefault(names.get(gpu[0], "other" if names else "all"), []).append(gpu)
        for role, gpus in by_role.items():
            for name, value in _figures(gpus).items():
                digesters.setdefault(f"{name}:{role}", Digester(capacity=_BUCKETS)).add(since_s, value)
    return {name: digester.digest for name, digester in digesters.items() if digester.digest.buckets}


def _figures(gpus: Sequence[list[int | None]]) -> dict[str, float]:
    memory, busy, power_mw = ([gpu[at] for gpu in gpus if len(gpu) > at] for at in (_USED, _BUSY, _POWER))
    found: dict[str, float] = {}
    if used := [value for value in memory if value is not None]:
        found["memory"] = float(max(used))
    if loads := [value for value in busy if value is not None]:
        found["busy"] = sum(loads) / len(loads)
    if powers := [value for value in power_mw if value is not None]:
        found["power"] = sum(powers) / len(powers) / 1000
    return found
