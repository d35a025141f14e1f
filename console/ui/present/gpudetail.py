"""One GPU in full: what it is, what holds it back, what broke, and every process on it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from console.model import Gpu, GpuPanel, Process, Snapshot
from console.state.gpunotes import who
from console.ui.present import words
from console.ui.present.frame import title
from console.ui.present.gpucharts import role_of
from console.ui.present.look import Look
from console.ui.present.spans import Line, Role, Span, View, clip, dim, faint, whole_spans
from console.ui.present.words import UNKNOWN


def detail_panel(snapshot: Snapshot, gpu: Gpu, width: int, rows: int, look: Look) -> View:
    """Return at most `rows` rows."""
    facts: list[Sequence[Span]] = [(Span(gpu.role, role_of(gpu.role)),)] if gpu.role else []
    facts += [(dim(words.one_line(fact)),) for fact in (gpu.name, gpu.uuid, gpu.bus) if fact]
    view: list[Line] = [title(f"GPU {gpu.index}", facts, None, width, look)]
    for label, parts in _facts(snapshot, gpu):
        groups = [(Span(words.one_line(part)),) for part in parts if part]
        if groups:
            view.append((Span("  "), faint(f"{label:<8} "), *whole_spans(groups, width - 12, (faint(" · "),))))
    for part in gpu.parts or ():
        own = f"CUDA {part.cuda_index}" if part.cuda_index is not None else "not this run's"
        own = f"{own}, holds a context" if part.context else own
        text = f"{words.gib(part.used_bytes)} of {words.gib(part.total_bytes)} GiB · {own} · {part.name} {part.uuid}"
        view.append((Span("  "), faint(f"{f'part {part.index}':<8} "), Span(clip(words.one_line(text), width - 12))))
    return tuple([*view, *_processes(snapshot, gpu, width)][:rows])


def _facts(snapshot: Snapshot, gpu: Gpu) -> list[tuple[str, list[str]]]:
    total = f" of {words.gib(gpu.total_bytes)} GiB" if gpu.total_bytes else " GiB"
    memory = [f"{words.gib(gpu.used_bytes)}{total}"]
    if gpu.peak_bytes is not None:
        memory.append(f"peak of this run {words.gib(gpu.peak_bytes)}")
    if gpu.reserved_bytes:
        memory.append(f"{words.gib(gpu.reserved_bytes)} kept by the driver")
    ceiling = f" of {gpu.clock_max_mhz:,}" if gpu.clock_max_mhz else ""
    clock = [f"{gpu.clock_mhz:,}{ceiling} MHz" if gpu.clock_mhz is not None else f"{UNKNOWN} MHz"]
    clock.append(UNKNOWN if gpu.throttle is None else f"held back: {gpu.throttle}" if gpu.throttle else "not held back")
    heat = []
    if gpu.temperature_c is not None:
        slows = f", slows itself down at {gpu.hot_at_c}" if gpu.hot_at_c is not None else ""
        heat = [f"{gpu.temperature_c} °C{slows}"]
    if snapshot.gpus.is_kept:
        return [("memory", memory), ("heat", heat), ("whose", [_whose(gpu)])]
    health = [
        f"Xid {gpu.xid}" if gpu.xid is not None else _no_xid(snapshot.gpus.source),
        f"{UNKNOWN if gpu.ecc_errors is None else gpu.ecc_errors} uncorrected memory errors",
        f"{UNKNOWN if gpu.retired is None else gpu.retired} pages or rows retired",
        "more wait for a reset" if gpu.retirement_pending else "",
    ]
    order = f"GPU {gpu.cuda_index} of the run" if gpu.cuda_index is not None else "not visible to the run"
    return [
        ("memory", memory),
        ("clock", [*clock, *heat]),
        ("health", [gpu.lost] if gpu.lost else health),
        ("CUDA", [order, snapshot.gpus.order_why]),
        ("whose", [_whose(gpu)]),
    ]


def _no_xid(source: str) -> str:
    """Of those that report errors as they come silence says something."""
    return "no Xid was seen" if source in ("nvml", "simulated") else f"{UNKNOWN} Xid"


def _whose(gpu: Gpu) -> str:
    told = {"run": "this run's", "other": "not this run's", "free": "nobody's: free", "nobody": "nobody's that is seen"}
    why = f": {gpu.owner_why}" if gpu.owner_why else ""
    return f"{told.get(gpu.owner, 'can not be told')}{why}"


def _processes(snapshot: Snapshot, gpu: Gpu, width: int) -> list[Line]:
    others = {holder.pid: holder for holder in gpu.others}
    ours = {process.pid: process for process in snapshot.processes}
    if not gpu.pids:
        return [(Span("  "), dim(clip(_no_process(snapshot.gpus, gpu), width - 2)))]
    lines: list[Line] = [(faint(f"  {'pid':>8} {'GiB':>7} {'CPU':>8} {'age':>8}  whose"),)]
    held = gpu.held_bytes or {}
    for pid in gpu.pids:
        holder, process = others.get(pid), ours.get(pid)
        text = f"  {pid:>8} {words.gib(held.get(pid)):>7} {_cpu(process):>8} {_age(process):>8}  "
        if holder is not None:
            lines.append((Span(text), Span(clip(words.one_line(who(holder)), width - len(text)), Role.WARN)))
            continue
        command = words.one_line(" ".join(process.argv)) if process is not None else ""
        whose = _OF_OURS.get(gpu.owner, "perhaps this run")
        lines.append((Span(text), dim(clip(f"{whose}  {command}".rstrip(), width - len(text)))))
    return lines


_OF_OURS = {"run": "this run", "other": "not this run, which has this pid, too"}
"""Whose a process is that the driver lists by the pid of one of the run's, by the GPU's owner: a pid proves nothing."""


def _no_process(panel: GpuPanel, gpu: Gpu) -> str:
    if panel.is_kept:
        return "of a run of before no processes are kept"
    return "the driver lists no process here" if gpu.held_bytes is not None else "no process list: the source has none"


def _cpu(process: Process | None) -> str:
    return UNKNOWN if process is None or process.cpu_pct is None else f"{process.cpu_pct:.0f} %"


def _age(process: Process | None) -> str:
    return UNKNOWN if process is None else words.short_duration(process.age_s)
