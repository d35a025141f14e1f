"""What the host itself says changes whose memory it is and why a run has ended; what was proven inside stands."""

from typing import Any

import pytest
from msgspec.structs import replace

from console import config
from console.model import Gpu, Snapshot
from console.protocol import (
    ExitRecord,
    GpusEvent,
    KernelNote,
    LogIdent,
    OutsideContainer,
    OutsideEvent,
    OutsidePid,
    ProcId,
    ProcsEvent,
    RunRecord,
    StateEvent,
    WireGpu,
    WireHolder,
    WireProcess,
)
from console.state import events, machine
from console.state.snapshot import snapshot
from console.state.target import TargetState

_XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4411, name=python3, GPU has fallen off the bus."
_MAIN = WireProcess(pid=8, start=100, argv=("python3", "train.py"))


def _running(exit_: ExitRecord | None = None) -> TargetState:
    """A run with main process 8 that was spawned at 1000 s since boot, alive or ended at 2000 s."""
    state = machine.start("lab", config.Target(host="h", command=("/root/run.sh",)))
    record = RunRecord(
        id="r-1", name="slammed1", boot="b", state="ended" if exit_ else "running", main=ProcId(pid=8, start=100),
        spawned_bt=1000.0, keeper_alive=exit_ is None, main_alive=exit_ is None, alive=exit_ is None, exit=exit_,
        log=LogIdent(path="/l"),
    )  # fmt: skip
    for event in (
        events.LinkWentUp(at=1.0, bt=1500.0, wall=1.0, boot="b"),
        events.HostSaid(at=2.0, state=StateEvent(bt=1501.0, wall=2.0, run=replace(record, exit=None, state="running"))),
        events.ProcsSaid(at=2.1, procs=ProcsEvent(bt=1501.0, procs=(_MAIN, replace(_MAIN, pid=9, start=101)))),
    ):
        state, _ = machine.step(state, event)
    if exit_ is not None:
        state, _ = machine.step(state, events.HostSaid(at=3.0, state=StateEvent(bt=2001.0, wall=3.0, run=record)))
    return state


def _told(state: TargetState, **said: Any) -> TargetState:
    outside = OutsideEvent(bt=1502.0, apart=True, **said)
    return machine.step(state, events.OutsideSaid(at=4.0, outside=outside))[0]


def _gpu(state: TargetState, **fields: Any) -> Gpu:
    wire = WireGpu(i=0, used=20 << 30, total=80 << 30, **{"bus": "00000000:3B:00.0", **fields})
    state, _ = machine.step(state, events.GpusSaid(at=5.0, gpus=GpusEvent(bt=1503.0, source="nvml", gpus=(wire,))))
    (gpu,) = snapshot(state, 5.0).gpus.gpus
    return gpu


def _unseen(*pids: int, owner: str = "unknown") -> dict[str, Any]:
    """A GPU of which the driver lists these pids of the host, as the agent inside tells it."""
    return {
        "procs": tuple((pid, 1 << 30) for pid in pids),
        "others": tuple(WireHolder(pid=pid, bytes=1 << 30) for pid in pids),
        "owner": owner,
    }


def _reason(state: TargetState) -> Any:
    seen: Snapshot = snapshot(state, 6.0)
    assert seen.reason is not None
    return seen.reason


def test_a_host_pid_of_the_run_gives_it_the_gpu_under_its_own_pid() -> None:
    state = _told(_running(), pids=(OutsidePid(pid=4411, place="container", inner=8, uvm=True),))

    gpu = _gpu(state, **_unseen(4411))

    assert (gpu.owner, gpu.context, gpu.pids, gpu.others) == ("run", True, (8,), ())


@pytest.mark.parametrize(
    ("who", "place"),
    [
        (OutsidePid(pid=4411, place="container", inner=77, uvm=True, name="jupyter"), "in this container"),
        (OutsidePid(pid=4411, place="host", uvm=True, name="jupyter"), "on the host"),
        (OutsidePid(pid=4411, place="elsewhere", label="container 201", uvm=True, name="jupyter"), "in container 201"),
        (OutsidePid(pid=4411, place="elsewhere", uvm=True, name="jupyter"), "in another container"),
    ],
)
def test_a_host_pid_of_others_is_named_with_its_place(who: OutsidePid, place: str) -> None:
    gpu = _gpu(_told(_running(), pids=(who,)), **_unseen(4411))

    (holder,) = gpu.others
    assert (gpu.owner, gpu.context) == ("other", False)
    assert (holder.name, holder.place, holder.seen) == ("jupyter", place, True)


def test_memory_of_the_run_beside_that_of_others_is_both() -> None:
    pids = (
        OutsidePid(pid=4411, place="container", inner=9, uvm=True),
        OutsidePid(pid=5000, place="host", uvm=True, name="Xorg"),
    )

    gpu = _gpu(_told(_running(), pids=pids), **_unseen(4411, 5000))

    assert (gpu.owner, gpu.pids, [each.name for each in gpu.others]) == ("run", (9, 5000), ["Xorg"])


def test_a_pid_that_no_process_of_the_host_has_is_a_dead_context() -> None:
    gpu = _gpu(_told(_running(), pids=(OutsidePid(pid=4411, place="gone"),)), **_unseen(4411))

    assert gpu.owner == "nobody"
    assert "pid 4411, which no process of the host has" in gpu.owner_why


@pytest.mark.parametrize(
    "who", [OutsidePid(pid=4411, place="host", uvm=False, name="cron"), OutsidePid(pid=4411, place="unknown")]
)
def test_a_pid_that_uses_no_gpu_on_the_host_or_may_not_be_looked_at_stays_unknown(who: OutsidePid) -> None:
    gpu = _gpu(_told(_running(), pids=(who,)), **_unseen(4411))

    assert (gpu.owner, gpu.context) == ("unknown", None)
    assert [each.seen for each in gpu.others] == [False]


def test_what_was_proven_inside_stands_against_a_process_of_the_host_with_the_same_number() -> None:
    state = _told(_running(), pids=(OutsidePid(pid=8, place="host", uvm=True, name="other"),))

    gpu = _gpu(state, procs=((8, 1 << 30),), owner="run", context=True)

    assert (gpu.owner, gpu.context, gpu.others) == ("run", True, ())


def test_a_host_that_can_not_be_asked_is_told_where_it_matters_and_nowhere_else() -> None:
    lost = events.OutsideLost(at=4.0, detail="the host refuses another session")
    state, _ = machine.step(_running(), lost)

    doubtful = _gpu(state, owner="nobody", owner_why="no process that can be seen from here")
    clear = _gpu(state, owner="run", context=True)

    assert doubtful.owner_why.endswith("the host can't tell, because the host refuses another session")
    assert clear.owner_why == ""
    assert snapshot(state, 5.0).warnings == ()


def test_an_xid_of_the_kernel_log_is_put_to_the_gpu_at_its_place_on_the_bus() -> None:
    state = _told(_running(), kernel=(KernelNote(kind="xid", bt=1400.0, xid=79, bus="0000:3b:00", text=_XID),))

    assert _gpu(state).xid == 79
    assert _gpu(state, bus="00000000:3C:00.0").xid is None


def test_an_xid_from_before_the_run_is_no_word_on_it() -> None:
    state = _told(_running(), kernel=(KernelNote(kind="xid", bt=999.0, xid=79, bus="0000:3b:00", text=_XID),))

    assert _gpu(state).xid is None


def _killed(signal: int = 9, code: int | None = None) -> ExitRecord:
    return ExitRecord(signal=signal if code is None else None, code=code, ended_bt=2000.0, oom="no", all_gone=True)


def _oom(**fields: Any) -> KernelNote:
    known = {"bt": 1999.5, "pid": 4411, "name": "python3", "group": "/lxc.payload.200", "limit": "/lxc.payload.200"}
    return KernelNote(kind="oom", text="oom-kill:constraint=CONSTRAINT_MEMCG", **{**known, **fields})


def test_without_a_word_of_the_host_a_kill_stays_unknown() -> None:
    assert _reason(_running(_killed())).slug == "sigkill_unknown"


def test_an_oom_kill_of_the_main_process_is_proven_by_the_kernel_log() -> None:
    reason = _reason(_told(_running(_killed()), kernel=(_oom(inner=8),)))

    assert reason.slug == "cgroup_oom"
    assert reason.detail == "proven: cgroup OOM of pid 8 (python3), limit of /lxc.payload.200"


def test_a_launcher_that_ends_with_its_worker_is_put_down_to_the_kill_of_that_worker() -> None:
    reason = _reason(_told(_running(_killed(code=1)), kernel=(_oom(inner=9),)))

    assert (reason.slug, reason.detail.split(":")[0]) == ("cgroup_oom", "proven")


def test_a_kill_in_the_container_of_a_process_that_is_not_known_is_likely_only() -> None:
    reason = _reason(_told(_running(_killed()), kernel=(_oom(),)))

    assert (reason.slug, reason.detail.split(":")[0]) == ("cgroup_oom", "likely")


@pytest.mark.parametrize("note", [_oom(inner=55), _oom(inner=8, bt=1900.0), _oom(inner=8, bt=900.0)])
def test_kills_of_others_and_of_another_time_are_not_the_runs(note: KernelNote) -> None:
    assert _reason(_told(_running(_killed()), kernel=(note,))).slug == "sigkill_unknown"


def test_the_containers_count_of_kills_makes_memory_likely_where_the_log_may_not_be_read() -> None:
    state = _told(_running(), container=OutsideContainer(limit=1 << 30, used=1 << 29, oom_kills=2))
    record = RunRecord(
        id="r-1", name="slammed1", boot="b", state="ended", main=ProcId(pid=8, start=100), spawned_bt=1000.0,
        alive=False, keeper_alive=False, exit=replace(_killed(), ended_bt=1502.5),
    )  # fmt: skip
    state = _told(state, container=OutsideContainer(limit=1 << 30, used=1 << 28, oom_kills=3))
    state, _ = machine.step(state, events.HostSaid(at=5.0, state=StateEvent(bt=1503.0, wall=5.0, run=record)))

    reason = _reason(state)

    assert reason.slug == "cgroup_oom"
    assert "counted 1 OOM kill near the death" in reason.detail
    assert "limit 1.0 GiB" in " ".join(fact.text for fact in reason.facts)


def test_an_unreadable_kernel_log_is_told_of_a_kill_that_stays_unknown() -> None:
    reason = _reason(_told(_running(_killed()), cannot={"kernel": "the kernel log can't be read: EPERM"}))

    assert reason.slug == "sigkill_unknown"
    assert "can't tell, because the kernel log can't be read: EPERM" in [fact.text for fact in reason.facts]


def test_an_xid_near_the_end_is_the_first_cause() -> None:
    note = KernelNote(kind="xid", bt=1998.0, xid=79, bus="0000:3b:00", text=_XID)

    reason = _reason(_told(_running(_killed(code=1)), kernel=(note,)))

    assert (reason.slug, reason.detail) == ("gpu_fell_off_bus", _XID)


def test_a_helper_that_comes_anew_tells_the_same_lines_without_doubling_them() -> None:
    state = _told(_running(), kernel=(_oom(),))
    state = _told(state, kernel=(_oom(bt=1999.6),))

    assert len(state.outside.kernel) == 1
