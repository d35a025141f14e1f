"""What is wrong with a GPU, one sentence each: lost, little memory left, hot, slowed down, spinning, others on it.

A condition that comes and goes with the load (a clock, a temperature) must last before it is said. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from console.model import Gpu, GpuHolder, GpuNote, GpuTrouble
from console.protocol import WireGpu
from console.state import texts
from console.state.training import median

HEADROOM_BYTES: Final = 2 * 1024**3
LASTING_S: Final = 5.0
"""Five samples: one of them may fall between two kernels."""
_BUSY_PCT: Final = 95
_SPINNING_SHARE: Final = 0.3
"""Of the power limit: a collective that waits draws 120-180 W of 700, work of any kind twice that and more."""
_SLOWED_SHARE: Final = 0.93
_HOT_MARGIN_C: Final = 3
_UNEVEN_PCT: Final = 15.0
_UNEVEN_SHARE: Final = 0.2
_FOREIGN_BYTES: Final = 512 << 20
"""A context without a tensor takes about so much: less is no use of a GPU."""
_USED_BYTES: Final = 1 << 30
"""What an idle GPU may show as used: the driver's own."""
_MOST_NAMED: Final = 2

# Bits of nvmlDeviceGetCurrentClocksEventReasons, the gravest first.
REASONS: Final = (
    (0x40, "too hot"),
    (0x20, "too hot"),
    (0x80, "power brake"),
    (0x8, "hardware slowdown"),
    (0x4, "power cap"),
    (0x10, "sync boost"),
)
_GRAVE: Final = 0x40 | 0x20 | 0x80 | 0x8
"""These are told against the highest clock, also where all GPUs are slowed down alike."""


def reason_of(mask: int | None) -> str:
    """Return why the clock is held back, or "" where it isn't (or that is not told)."""
    return next((words for bit, words in REASONS if mask and mask & bit), "")


# -- conditions that must last ----------------------------------------------------------------------------------------


def conditions(gpus: Sequence[WireGpu]) -> frozenset[str]:
    """Return what holds in this sample: `hot:3`, `slowed:2`, `spinning:0`."""
    clocks = [gpu.sm_mhz for gpu in gpus if gpu.sm_mhz is not None and gpu.context]
    usual = median(clocks) if len(clocks) > 1 else None
    found = []
    for gpu in gpus:
        if gpu.temp is not None and gpu.hot_at is not None and gpu.temp >= gpu.hot_at - _HOT_MARGIN_C:
            found.append(f"{GpuTrouble.HOT}:{gpu.i}")
        if _should_run_at(gpu, usual) is not None:
            found.append(f"{GpuTrouble.SLOWED}:{gpu.i}")
        if _spins(gpu):
            found.append(f"{GpuTrouble.SPINNING}:{gpu.i}")
    return frozenset(found)


def lasting(before: Mapping[str, float], gpus: Sequence[WireGpu], at: float) -> dict[str, float]:
    """Return since when each condition has held without a break."""
    return {key: before.get(key, at) for key in conditions(gpus)}


def _should_run_at(gpu: WireGpu, usual: float | None) -> float | None:
    """Return the clock that a GPU at work falls short of, or None where it doesn't."""
    if gpu.sm_mhz is None or not gpu.throttle or not reason_of(gpu.throttle) or (gpu.util or 0) < 10:
        return None
    wanted = gpu.sm_max_mhz if gpu.throttle & _GRAVE and gpu.sm_max_mhz else usual
    return wanted if wanted is not None and gpu.sm_mhz < _SLOWED_SHARE * wanted else None


def _spins(gpu: WireGpu) -> bool:
    if not gpu.context or gpu.util is None or gpu.power_mw is None or not gpu.limit_mw:
        return False
    return gpu.util >= _BUSY_PCT and gpu.power_mw < _SPINNING_SHARE * gpu.limit_mw


# -- sentences --------------------------------------------------------------------------------------------------------


def notes(
    wire: Sequence[WireGpu], gpus: Sequence[Gpu], since: Mapping[str, float], busy: Mapping[int, float], at: float
) -> tuple[GpuNote, ...]:
    """Return the sentences, the gravest first. `busy`: smoothed percent by index; `since`: see `lasting`."""
    held = {key for key, began in since.items() if at - began >= LASTING_S}
    clocks = [gpu.sm_mhz for gpu in wire if gpu.sm_mhz is not None and gpu.context]
    usual = median(clocks) if len(clocks) > 1 else None
    found: list[GpuNote] = []
    for raw in wire:
        found += _of_hardware(raw)
    found += _untold(gpus)
    found += _of_others(gpus)
    found += _spinning([gpu for gpu in gpus if f"{GpuTrouble.SPINNING}:{gpu.index}" in held], gpus)
    for raw, gpu in zip(wire, gpus, strict=True):
        found += _of_memory(gpu)
        if f"{GpuTrouble.HOT}:{gpu.index}" in held:
            words = f"GPU {gpu.index} {raw.temp} °C · it slows itself down at {raw.hot_at}"
            found.append(_note(GpuTrouble.HOT, gpu, words))
        wanted = _should_run_at(raw, usual) if f"{GpuTrouble.SLOWED}:{gpu.index}" in held else None
        if wanted is not None and raw.sm_mhz is not None:
            words = f"GPU {gpu.index} clock {raw.sm_mhz:,} of {wanted:,.0f} MHz: {reason_of(raw.throttle)}"
            found.append(_note(GpuTrouble.SLOWED, gpu, words))
    for role in dict.fromkeys(gpu.role for gpu in gpus if gpu.role and gpu.context):
        found += _uneven(role, [gpu for gpu in gpus if gpu.role == role and gpu.context], busy)
    return tuple(sorted(found, key=lambda note: list(GpuTrouble).index(note.kind)))


def _note(kind: GpuTrouble, gpu: Gpu, text: str) -> GpuNote:
    return GpuNote(kind=kind, gpus=(gpu.index,), text=text)


def _of_hardware(raw: WireGpu) -> Iterable[GpuNote]:
    if raw.lost:
        xid = f" (Xid {raw.xid})" if raw.xid is not None else ""
        yield GpuNote(kind=GpuTrouble.LOST, gpus=(raw.i,), text=f"GPU {raw.i}: {raw.lost}{xid}")
        return
    if raw.warning:
        yield GpuNote(kind=GpuTrouble.LOST, gpus=(raw.i,), text=f"GPU {raw.i}: {raw.warning}")
        return
    facts = []
    if raw.xid is not None:
        facts.append(f"Xid {raw.xid}")
    if raw.ecc:
        facts.append(f"{raw.ecc:,} uncorrected memory {'error' if raw.ecc == 1 else 'errors'}")
    if raw.pending:
        facts.append("memory waits for a reset to be taken out of use")
    if facts:
        yield GpuNote(kind=GpuTrouble.ERRORS, gpus=(raw.i,), text=f"GPU {raw.i}: {' · '.join(facts)}")


def _of_memory(gpu: Gpu) -> Iterable[GpuNote]:
    foreign = _foreign(gpu)
    if foreign and gpu.owner in ("run", "other"):
        yield _note(GpuTrouble.FOREIGN, gpu, f"GPU {gpu.index}: {_named(foreign)}, not ours")
    if gpu.owner == "nobody" and gpu.used_bytes is not None:
        words = f"GPU {gpu.index}: {texts.size(gpu.used_bytes)} held by {gpu.owner_why or 'no process that is seen'}"
        yield _note(GpuTrouble.NOBODY, gpu, words)
    if gpu.owner == "run" and gpu.owner_why:
        yield _note(GpuTrouble.UNTOLD, gpu, f"GPU {gpu.index}: {gpu.owner_why}")
    left = gpu.left_bytes
    if left is not None and left < HEADROOM_BYTES and gpu.owner == "run" and not gpu.lost:
        words = f"GPU {gpu.index} peak {texts.gib(gpu.peak_bytes)} of {texts.gib(gpu.total_bytes)} GiB"
        yield _note(GpuTrouble.HEADROOM, gpu, f"{words} · {texts.gib(left)} GiB headroom")


def _foreign(gpu: Gpu) -> list[GpuHolder]:
    found = [each for each in gpu.others if each.bytes is None or each.bytes >= _FOREIGN_BYTES]
    # On a GPU that is the run's a pid that can't be seen may be the run's own, as its host counts.
    return [each for each in found if each.seen or gpu.owner == "other"]


def _of_others(gpus: Sequence[Gpu]) -> Iterable[GpuNote]:
    """One sentence for all GPUs that are others' without a big process to be named."""
    theirs = [gpu for gpu in gpus if gpu.owner == "other" and not _foreign(gpu)]
    known = [gpu.used_bytes for gpu in theirs if gpu.used_bytes is not None]
    if theirs:
        amount = texts.size(sum(known)) if known else "memory"
        indexes = tuple(gpu.index for gpu in theirs)
        text = f"GPU {texts.ranges(indexes)}: {amount} of others, not ours"
        yield GpuNote(kind=GpuTrouble.FOREIGN, gpus=indexes, text=text)


def _untold(gpus: Sequence[Gpu]) -> Iterable[GpuNote]:
    """One sentence for all GPUs whose holders can't be told for the same reason."""
    whys = dict.fromkeys(gpu.owner_why for gpu in gpus if _is_untold(gpu))
    for why in whys:
        indexes = tuple(gpu.index for gpu in gpus if _is_untold(gpu) and gpu.owner_why == why)
        amount = texts.size(sum(gpu.used_bytes or 0 for gpu in gpus if gpu.index in indexes))
        text = f"GPU {texts.ranges(indexes)}: whose {amount} is can't be told: {why}"
        yield GpuNote(kind=GpuTrouble.UNTOLD, gpus=indexes, text=text)


def _is_untold(gpu: Gpu) -> bool:
    return gpu.owner == "unknown" and bool(gpu.owner_why) and (gpu.used_bytes or 0) >= _USED_BYTES and not gpu.lost


def _named(holders: Sequence[GpuHolder]) -> str:
    """`pid 7712 (jupyter, root) holds 1.2 GiB, pid 40002 (not seen from here) holds 3.0 GiB and 2 more`."""
    ranked = sorted(holders, key=lambda each: -(each.bytes or 0))
    told = [f"pid {each.pid} ({who(each)}) holds {texts.size(each.bytes)}" for each in ranked[:_MOST_NAMED]]
    more = f" and {len(ranked) - _MOST_NAMED} more" if len(ranked) > _MOST_NAMED else ""
    return ", ".join(told) + more


def who(holder: GpuHolder) -> str:
    if not holder.seen:
        return "not seen from here"
    return ", ".join(word for word in (holder.name, holder.user, holder.place) if word)


def _spinning(spinning: Sequence[Gpu], gpus: Sequence[Gpu]) -> Iterable[GpuNote]:
    if not spinning:
        return
    ours = [gpu for gpu in gpus if gpu.context]
    whose = "all" if len(spinning) == len(ours) else f"GPU {texts.ranges(gpu.index for gpu in spinning)}"
    watts = median([gpu.power_w for gpu in spinning if gpu.power_w is not None])
    text = f"{whose} 100 % busy at {watts:.0f} W: spinning, not computing · a collective waits?"
    yield GpuNote(kind=GpuTrouble.SPINNING, gpus=tuple(gpu.index for gpu in spinning), text=text)


def _uneven(role: str, gpus: Sequence[Gpu], busy: Mapping[int, float]) -> Iterable[GpuNote]:
    """Say of the one GPU of a role that differs the most by how much; two alone can't tell which is wrong."""
    known = {gpu.index: busy[gpu.index] for gpu in gpus if gpu.index in busy}
    if len(known) >= 3:
        usual = median(list(known.values()))
        odd = max(known, key=lambda index: abs(known[index] - usual))
        if abs(known[odd] - usual) >= _UNEVEN_PCT:
            text = f"GPU {odd} {known[odd]:.0f} % busy, the other {role}s {usual:.0f} %: uneven load?"
            yield GpuNote(kind=GpuTrouble.UNEVEN, gpus=(odd,), text=text)
    used = {gpu.index: gpu.used_bytes for gpu in gpus if gpu.used_bytes}
    if len(used) >= 3:
        middle = median(list(used.values()))
        odd = max(used, key=lambda index: abs(used[index] - middle))
        if abs(used[odd] - middle) >= _UNEVEN_SHARE * middle:
            text = f"GPU {odd} uses {texts.gib(used[odd])} GiB, the other {role}s {texts.gib(middle)}"
            yield GpuNote(kind=GpuTrouble.UNEVEN, gpus=(odd,), text=text)
