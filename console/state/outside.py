"""What the host itself says, from outside of the container, made evidence: whose GPU memory it is, Xids, kills for
memory.

The helper's word only adds: what was proven inside stands, and where the host may not be looked at nothing changes but
a word on why. A kill is put down to a run by its pid (proven), or by cgroup, name and time (likely). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from console.model import ContainerView, Fact, Severity
from console.protocol import (
    GpusEvent,
    KernelNote,
    OutsideContainer,
    OutsideEvent,
    OutsidePid,
    ProcsEvent,
    WireGpu,
    WireHolder,
)
from console.reasons import Reason
from console.state import events, texts
from console.state.causes import best, find_causes
from console.state.diagnose import Diagnosis
from console.state.events import LogLine
from console.state.target import OutsideFacts, TargetState, is_this_boot

RULE = "host pid in tree"
NEAR_S = 30.0
"""A kill so long before the end may have been its cause: launchers take their time to give up."""
AFTER_S = 5.0
_MOST_PIDS = 512
_MOST_NOTES = 64

_WEAK = frozenset(
    {
        Reason.SIGKILL_UNKNOWN,
        Reason.SIGNALLED,
        Reason.UNKNOWN,
        Reason.EXIT_STATUS,
        Reason.EXIT_WITHOUT_STEP,
        Reason.HOST_OOM,
        Reason.DATALOADER_KILLED,
    }
)
"""Reasons that a kill of one of the run's processes explains."""


# -- taking it in -----------------------------------------------------------------------------------------------------


def outside_said(state: TargetState, said: OutsideEvent) -> TargetState:
    before = state.outside
    rose = _rise(before.event, said)
    facts = replace(
        before,
        event=said,
        at=state.at,
        why="",
        kernel=_merged(before.kernel, said.kernel),
        oom_rose_bt=said.bt if rose else before.oom_rose_bt,
        oom_rise=rose or before.oom_rise,
    )
    return replace(state, outside=facts)


def outside_lost(state: TargetState, event: events.OutsideLost) -> TargetState:
    return replace(state, outside=replace(state.outside, event=None, why=event.detail))


def tree_seen(state: TargetState, procs: ProcsEvent) -> OutsideFacts:
    """Remember which pids the run has had: by them its processes are known in the kernel log."""
    key = state.subject.key if state.subject is not None else ""
    before = state.outside
    ran = before.ran if before.ran_key == key else frozenset[int]()
    pids = ran | {each.pid for each in procs.procs}
    return before if (before.ran_key, ran) == (key, pids) or len(pids) > _MOST_PIDS else replace(
        before, ran_key=key, ran=pids
    )  # fmt: skip


def _rise(before: OutsideEvent | None, now: OutsideEvent) -> int:
    old = before.container.oom_kills if before is not None and before.container is not None else None
    new = now.container.oom_kills if now.container is not None else None
    return max(0, new - old) if old is not None and new is not None else 0


def _merged(before: Sequence[KernelNote], new: Sequence[KernelNote]) -> tuple[KernelNote, ...]:
    """All notes by time; a helper that came anew tells those of the last minutes again, with times a little off."""
    known = [note for note in before if not any(_is_same(note, each) for each in new)]
    return tuple(sorted((*known, *new), key=lambda note: note.bt)[-_MOST_NOTES:])


def _is_same(one: KernelNote, other: KernelNote) -> bool:
    return (one.kind, one.text) == (other.kind, other.text) and abs(one.bt - other.bt) < 1.0


# -- GPUs -------------------------------------------------------------------------------------------------------------


def attributed(state: TargetState, said: GpusEvent) -> GpusEvent:
    """Return the GPUs with whose they are by the host's own pids, and with the Xids of its kernel log."""
    outside, procs = state.outside.event, state.procs.event
    known = {each.pid: each for each in outside.pids} if outside is not None and outside.apart else {}
    tree = {each.pid for each in procs.procs} if procs is not None else set[int]()
    gpus = tuple(_with_xid(state, _attributed(gpu, known, tree)) for gpu in said.gpus)
    if why := _why_not(state):
        gpus = tuple(_with_why(gpu, why) for gpu in gpus)
    found = any(gpu.context and not old.context for gpu, old in zip(gpus, said.gpus, strict=True))
    return replace(said, gpus=gpus, rule=said.rule or (RULE if found else ""))


def _attributed(gpu: WireGpu, known: dict[int, OutsidePid], tree: set[int]) -> WireGpu:
    inside = {each.pid for each in gpu.others if each.seen}
    if not known or not gpu.procs or (gpu.owner == "run" and not gpu.others):
        return gpu
    ours, procs, others, doubt = False, [], [], False
    before = {each.pid: each for each in gpu.others}
    for pid, used in gpu.procs:
        who = known.get(pid)
        if pid in inside or who is None or (pid in tree and gpu.owner == "run"):
            procs.append((pid, used))
            others += [before[pid]] if pid in before else []
            doubt = doubt or (pid not in inside and pid not in tree)
            continue
        mine = who.place == "container" and who.uvm and who.inner in tree
        shown = who.inner if who.place == "container" and who.uvm and who.inner is not None else pid
        procs.append((shown, used))
        ours = ours or mine
        if not mine:
            holder = _holder(who, shown, used)
            doubt = doubt or holder is None
            others.append(holder or before.get(pid) or WireHolder(pid=pid, bytes=used))
    gone = [pid for pid, _ in gpu.procs if pid in known and known[pid].place == "gone"]
    gpu = replace(gpu, procs=tuple(procs), others=tuple(others))
    if ours:
        return replace(gpu, context=True, owner="run", owner_why="")
    if doubt or gpu.owner == "run":
        return gpu
    if len(gone) == len(procs):
        why = f"pid {', '.join(map(str, gone))}, which no process of the host has: a dead context"
        return replace(gpu, context=False, owner="nobody", owner_why=why)
    return replace(gpu, context=False, owner="other", owner_why="")


def _holder(who: OutsidePid, shown: int, used: int | None) -> WireHolder | None:
    """Return a holder that isn't the run's; None where the host can't say who that is."""
    if who.place == "gone":
        return WireHolder(pid=shown, bytes=used, name="nobody", seen=True, place="no such process on the host")
    if not who.uvm or who.place == "unknown":
        return None  # it holds no GPU there: the driver's pid is not the host's
    places = {"container": "in this container", "host": "on the host"}
    place = places.get(who.place) or f"in {who.label or 'another container'}"
    return WireHolder(pid=shown, bytes=used, name=who.name, user=who.user, seen=True, place=place)


def _why_not(state: TargetState) -> str:
    """Why the host itself can't be asked whose memory it is."""
    if state.outside.why:
        return state.outside.why
    return state.outside.event.cannot.get("container", "") if state.outside.event is not None else ""


def _with_why(gpu: WireGpu, why: str) -> WireGpu:
    if gpu.owner not in ("nobody", "unknown", "other") or not (gpu.owner_why or gpu.others):
        return gpu
    return replace(gpu, owner_why=texts.joined(gpu.owner_why, f"the host can't tell, because {why}"))


def _with_xid(state: TargetState, gpu: WireGpu) -> WireGpu:
    notes = [note for note in _since_start(state, "xid") if note.xid is not None and _bus(note.bus) == _bus(gpu.bus)]
    return replace(gpu, xid=notes[-1].xid) if notes and gpu.xid is None else gpu


def _bus(text: str) -> tuple[int, ...] | None:
    """`0000:3b:00` and `00000000:3B:00.0` are the same place."""
    try:
        domain, bus, device = text.split(".")[0].split(":")
        return int(domain, 16), int(bus, 16), int(device, 16)
    except ValueError:
        return None


# -- the container ----------------------------------------------------------------------------------------------------


def container_view(state: TargetState) -> ContainerView | None:
    event, why = state.outside.event, state.outside.why
    if event is None:
        return ContainerView(why=why) if why else None
    told = event.container or OutsideContainer()
    return ContainerView(
        frozen=told.frozen,
        memory_limit_bytes=told.limit,
        memory_used_bytes=told.used,
        oom_kills=told.oom_kills,
        why="; ".join(event.cannot.values()),
    )


# -- the end of a run -------------------------------------------------------------------------------------------------


def with_kernel_word(state: TargetState, found: Diagnosis) -> Diagnosis:
    """Return the diagnosis with what the kernel log has to say of the run's end; it never excuses a failure."""
    if found.is_good:
        return found
    kill, is_proven = _kill(state)
    if kill is not None and (found.reason in _WEAK or (is_proven and _is_main(state, kill))):
        reason = Reason.CGROUP_OOM if kill.limit else Reason.HOST_OOM
        detail = f"{'proven' if is_proven else 'likely'}: {_kill_words(kill)}"
        return replace(
            found, reason=reason, detail=detail, facts=(_fact(kill.text), *_of_container(state), *found.facts)
        )
    notes = [note for note in _since_start(state, "xid") if _is_near_end(state, note) and _is_ours(state, note)]
    causes = [cause for note in notes if (cause := best(find_causes((LogLine(0, note.text),)))) is not None]
    cause = min(causes, key=lambda each: each.trust, default=None)
    if cause is not None and (found.cause is None or cause.trust < found.cause.trust):
        fact = _fact(cause.line.text)
        return replace(found, reason=cause.reason, detail=cause.line.text, facts=(fact, *found.facts))
    if notes:
        return replace(found, facts=(*found.facts, _fact(notes[-1].text, Severity.WARNING)))
    return _with_count(state, found)


def _with_count(state: TargetState, found: Diagnosis) -> Diagnosis:
    """Without a line of the kernel log the container's own count still makes it likely, or says that it can't be."""
    facts, end_bt = state.outside, _ended_bt(state)
    if found.reason is not Reason.SIGKILL_UNKNOWN:
        return found
    if facts.oom_rose_bt is not None and end_bt is not None and -AFTER_S <= end_bt - facts.oom_rose_bt <= NEAR_S:
        detail = f"likely: the container's cgroup counted {texts.plural(facts.oom_rise, 'OOM kill')} near the death"
        return replace(found, reason=Reason.CGROUP_OOM, detail=detail, facts=(*_of_container(state), *found.facts))
    why = facts.why or (facts.event.cannot.get("kernel", "") if facts.event is not None else "")
    if why:
        fact = Fact(label="kernel log", text=f"can't tell, because {why}", severity=Severity.WARNING)
        return replace(found, facts=(*found.facts, fact))
    return found


def _kill(state: TargetState) -> tuple[KernelNote | None, bool]:
    """Return the kill for memory that the run's end goes with, and whether its victim is known to be the run's."""
    near = [note for note in _since_start(state, "oom") if _is_near_end(state, note)]
    mine = [note for note in near if note.inner is not None and (_is_main(state, note) or note.inner in _ran(state))]
    if mine:
        return next((note for note in mine if _is_main(state, note)), mine[0]), True
    strangers = [note for note in near if note.inner is None and note.group]
    return (strangers[-1] if strangers else None), False


def _is_main(state: TargetState, note: KernelNote) -> bool:
    main = state.subject.main if state.subject is not None else None
    return main is not None and note.inner == main.pid


def _ran(state: TargetState) -> frozenset[int]:
    key = state.subject.key if state.subject is not None else ""
    return state.outside.ran if state.outside.ran_key == key else frozenset()


def _kill_words(note: KernelNote) -> str:
    pid = note.inner if note.inner is not None else note.pid
    whose = "" if note.inner is not None else ", as the host counts"
    kind = "cgroup OOM" if note.limit else "the host ran out of memory: kill"
    limit = f", limit of {note.limit}" if note.limit.startswith("/") else ""
    return f"{kind} of pid {pid} ({note.name}{whose}){limit}"


def _of_container(state: TargetState) -> tuple[Fact, ...]:
    container = state.outside.event.container if state.outside.event is not None else None
    if container is None or container.limit is None:
        return ()
    kills = f", {texts.plural(container.oom_kills, 'OOM kill')} so far" if container.oom_kills else ""
    text = f"limit {texts.size(container.limit)}, {texts.size(container.used)} used now{kills}"
    return (Fact(label="container", text=text),)


def _fact(text: str, severity: Severity = Severity.ERROR) -> Fact:
    return Fact(label="kernel log", text=text, severity=severity)


def _is_ours(state: TargetState, note: KernelNote) -> bool:
    """Whether an Xid is of a GPU that the run can see; of all, where no GPU is listed any more."""
    gpus = state.gpus.event.gpus if state.gpus.event is not None else ()
    return not gpus or any(_bus(gpu.bus) == _bus(note.bus) for gpu in gpus)


def _since_start(state: TargetState, kind: str) -> list[KernelNote]:
    """Notes of a kind since the run began; what came before is no word on it."""
    began = _began_bt(state)
    return [note for note in state.outside.kernel if note.kind == kind and (began is None or note.bt >= began)]


def _is_near_end(state: TargetState, note: KernelNote) -> bool:
    end_bt = _ended_bt(state)
    return end_bt is not None and -AFTER_S <= end_bt - note.bt <= NEAR_S


def _began_bt(state: TargetState) -> float | None:
    subject = state.subject
    if subject is None:
        return None
    if subject.record is not None:
        return subject.record.spawned_bt if is_this_boot(state, subject.record) else None
    return subject.hand_start_bt


def _ended_bt(state: TargetState) -> float | None:
    subject = state.subject
    if subject is None:
        return None
    if subject.record is not None:
        end = subject.record.exit
        return end.ended_bt if end is not None and is_this_boot(state, subject.record) else None
    return subject.gone_bt
