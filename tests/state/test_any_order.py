"""Whatever comes, in whatever order: nothing is claimed without its evidence, nothing raises, no time is negative."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console import config, protocol
from console.model import Snapshot, Stage, StageState, Verdict
from console.protocol import CudaRecord, ExitRecord, HandRun, HostStage, LogIdent, ProcId, RunRecord
from console.reasons import CATALOGUE, Reason
from console.state import events, hostword, machine, outcome
from console.state.formatrules import Kind
from console.state.gpuview import KeptPanel
from console.state.metrics import CheckpointState, Sample
from console.state.snapshot import snapshot
from console.state.subject import TRANSACTION

TIMES = st.floats(-1e7, 1e7) | st.floats(0, 500)
MAYBE = st.none() | TIMES
WORDS = st.sampled_from(["", "2 pids", "nonsense", "no step", "\x1b[31m"])
RUNS = ("r-1", "r-2")
PATHS = ("/log/1", "/log/2")

STAGE = st.builds(
    HostStage,
    state=st.sampled_from(["active", "done", "skipped", "failed", "frobnicated"]),
    began_bt=MAYBE,
    ended_bt=MAYBE,
    evidence=WORDS,
    why=WORDS,
    reason=st.none() | st.sampled_from(["survivors", "who knows"]),
)
PROC = st.builds(ProcId, pid=st.integers(1, 9), start=st.integers(1, 3))
IDENT = st.builds(LogIdent, path=st.sampled_from(PATHS))
END = st.builds(
    ExitRecord,
    code=st.none() | st.sampled_from([0, 1, 126, 127, 137, 999, -1]),
    signal=st.none() | st.sampled_from([1, 9, 11, 15, 64]),
    ended_bt=MAYBE,
    lived_s=MAYBE,
    by=st.none() | st.just("ops1"),
    oom=st.sampled_from(["no", "unknown", "likely", "proven", "perhaps"]),
    all_gone=st.booleans(),
)
CUDA = st.builds(
    CudaRecord,
    contexts=st.lists(st.integers(0, 9), max_size=9).map(tuple),
    expected=st.none() | st.integers(-1, 9),
    rule=WORDS,
    source=st.sampled_from(["nvml", "none", ""]),
    why=WORDS,
    complete_bt=MAYBE,
)
RECORD = st.builds(
    RunRecord,
    id=st.sampled_from(RUNS),
    action=st.sampled_from(["restart", "restart", "stop"]),
    name=st.sampled_from(["", "slammed6"]),
    boot=st.sampled_from(["b1", "b1", "b2", ""]),
    state=st.sampled_from(
        [*sorted(TRANSACTION), "running", "running", "ended", "stopped", "refused", "failed", "interrupted", "dancing"]
    ),
    accepted_bt=st.just(10.0),
    accepted_wall=TIMES,
    log=st.none() | IDENT,
    stages=st.dictionaries(st.sampled_from([*map(str, Stage), "lunch"]), STAGE, max_size=6),
    keeper_alive=st.none() | st.booleans(),
    main=st.none() | PROC,
    alive=st.none() | st.booleans(),
    cuda=st.none() | CUDA,
    exit=st.none() | END,
    reason=st.none() | st.sampled_from(["survivors", "", "who knows"]),
    stopping=st.none() | st.just("ops2"),
    spawned_bt=MAYBE,
    launch_killing=st.none() | STAGE,
)
HAND = st.builds(
    HandRun,
    main=PROC,
    argv=st.just(("python", "train.py")),
    matched=st.just("train.py"),
    age_s=st.none() | st.floats(0, 1e6),
    log=st.none() | IDENT,
)
GPU = st.builds(
    protocol.WireGpu,
    i=st.integers(0, 9),
    used=st.none() | st.integers(0, 10**12),
    total=st.none() | st.integers(0, 10**12),
    util=st.none() | st.integers(0, 100),
    power_mw=st.none() | st.integers(0, 10**6),
    limit_mw=st.none() | st.integers(0, 10**6),
    context=st.none() | st.booleans(),
    owner=st.sampled_from(["run", "other", "free", "nobody", "unknown"]),
)
SAMPLE = st.builds(
    Sample,
    kind=st.sampled_from(Kind),
    format=st.just("dflash"),
    offset=st.integers(0, 10**6),
    at=TIMES,
    step=st.none() | st.integers(0, 30),
    total_steps=st.none() | st.integers(0, 30),
    loss=st.none() | st.floats(-10, 10),
    loss_state=st.sampled_from([None, None, "nan", "inf"]),
    tok_s=st.none() | st.floats(0, 1e6),
    queue_min=st.none() | st.floats(0, 16),
    queue_max=st.none() | st.floats(0, 16),
    checkpoint=st.none() | st.sampled_from(CheckpointState),
    checkpoint_step=st.none() | st.integers(0, 30),
)
LINES = st.lists(
    st.sampled_from(
        [
            "step 1",
            "Killed",
            "Traceback (most recent call last):",
            "ValueError: x",
            "  raise",
            "done training",
            "",
            "\x00",
        ]
    ),
    max_size=6,
).map(lambda found: tuple(events.LogLine(index * 10, text) for index, text in enumerate(found)))
FOLLOW = st.integers(0, 3)

EVENT = st.one_of(
    st.builds(
        events.LinkWentUp,
        at=TIMES,
        bt=TIMES,
        wall=TIMES,
        boot=st.sampled_from(["b1", "b1", "b2"]),
        rtt_s=st.none() | st.floats(0, 9),
    ),
    st.builds(
        events.LinkWentDown, at=TIMES, reason=st.sampled_from(["link_lost", "container_frozen", "what"]), retry_at=MAYBE
    ),
    st.builds(events.LinkRtt, at=TIMES, rtt_s=st.floats(0, 9), bt=TIMES, wall=TIMES),
    *[
        st.builds(
            events.HostSaid,
            at=TIMES,
            state=st.builds(
                protocol.StateEvent,
                bt=TIMES,
                wall=TIMES,
                run=st.none() | RECORD,
                hand=st.lists(HAND, max_size=2).map(tuple) | st.just(()),
                last=st.lists(RECORD, max_size=2).map(tuple),
                lock=st.none() | st.builds(protocol.LockHolder, operator=st.just("ops2"), since_bt=MAYBE),
            ),
        )
    ]
    * 3,
    st.builds(events.ProcsSaid, at=TIMES, procs=st.builds(protocol.ProcsEvent, bt=TIMES, cpu_cores=MAYBE)),
    st.builds(
        events.GpusSaid,
        at=TIMES,
        gpus=st.builds(protocol.GpusEvent, bt=TIMES, source=st.just("nvml"), gpus=st.lists(GPU, max_size=9).map(tuple)),
    ),
    st.builds(events.HostWarned, at=TIMES, warn=st.builds(protocol.Warn, bt=TIMES, reason=WORDS, detail=WORDS)),
    st.builds(
        events.LogSaid,
        at=TIMES,
        follow=FOLLOW,
        log=st.builds(
            protocol.LogEvent,
            bt=TIMES,
            path=st.sampled_from(PATHS),
            state=st.sampled_from(["missing", "empty", "following", "rotated", "sideways"]),
            size=st.none() | st.integers(0, 10**6),
        ),
    ),
    *[
        st.builds(
            events.SamplesSeen,
            at=TIMES,
            follow=FOLLOW,
            samples=st.lists(SAMPLE, max_size=4).map(tuple),
            live=st.booleans(),
            lines_seen=st.integers(0, 500),
        )
    ]
    * 2,
    st.builds(events.PhaseSeen, at=TIMES, follow=FOLLOW, text=WORDS),
    st.builds(events.LogTail, at=TIMES, follow=FOLLOW, lines=LINES),
    st.builds(
        events.StepTimesKnown,
        at=TIMES,
        run=st.sampled_from(RUNS),
        first=st.none() | st.tuples(*[st.builds(events.StepTime, step=st.integers(0, 30), bt=TIMES)] * 2),
        last=st.none() | st.builds(events.StepTime, step=st.integers(0, 30), bt=TIMES),
        grew_bt=MAYBE,
    ),
    st.builds(events.Tick, at=TIMES),
)


def key_of(subject: Any) -> str | None:
    return subject.key if subject is not None else None


class Witness:
    """Keeps the evidence that was told, by the run that it was told of; naively, without the machine's own rules."""

    def __init__(self) -> None:
        self.journalled: set[tuple[str, str]] = set()
        self.contexts: set[str] = set()
        self.steps: dict[tuple[str, int], list[int]] = {}

    def hear(self, event: events.Event, before: Any, after: Any) -> None:
        key = key_of(after.subject)
        match event:
            case events.HostSaid():
                for record in (event.state.run, *event.state.last):
                    if record is None:
                        continue
                    for name, entry in record.stages.items():
                        if entry.state == "done" and entry.evidence:
                            self.journalled.add((record.id, name))
                    if record.cuda is not None and record.cuda.contexts:
                        self.contexts.add(record.id)
            case events.GpusSaid() if key is not None and any(gpu.context for gpu in event.gpus.gpus):
                self.contexts.add(key)
            case events.SamplesSeen() if before.follow is not None and event.follow == before.follow.id and key:
                seen = self.steps.setdefault((key, event.follow), [])
                seen += [s.step for s in event.samples if s.kind is Kind.STEP and s.step is not None]
            case _:
                pass

    def check(self, key: str | None, seen: Snapshot) -> None:
        done = {status.stage for status in seen.stages if status.state is StageState.DONE}
        if key is None:
            assert not done
            return
        for stage in (Stage.CACHE, Stage.SPAWNED):
            assert stage not in done or (key, str(stage)) in self.journalled
        assert Stage.CUDA not in done or key in self.contexts
        if Stage.STEPPING in done:
            runs = [steps for (owner, _), steps in self.steps.items() if owner == key]
            assert any(b > a for steps in runs for a, b in itertools.pairwise(steps))


def check_sane(seen: Snapshot) -> None:
    assert [status.stage for status in seen.stages] == list(Stage)
    for status in seen.stages:
        assert status.took_s is None or status.took_s >= 0
        if status.state is StageState.DONE:
            assert status.evidence
    for age in (seen.ages.link, seen.ages.log, seen.ages.gpu, seen.ages.process):
        assert age is None or age >= 0
    if seen.run is not None:
        assert seen.run.launch_s is None or seen.run.launch_s >= 0
    for reason in (seen.reason, *seen.warnings):
        assert reason is None or Reason(reason.slug) in CATALOGUE
    if seen.verdict in (Verdict.LINK_LOST, Verdict.FROZEN, Verdict.NO_WORD):
        assert seen.progress.rate.now is None
        assert seen.active_stage is None
    if seen.verdict in (Verdict.STEPPING, Verdict.FINISHED, Verdict.SLOW, Verdict.STALLED):
        assert seen.stages[-1].state is StageState.DONE
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Snapshot) == seen
    for wanted in ("accepted", "spawned", "cuda", "stepping", "exit", "free"):
        judged = outcome.judge(seen, wanted)
        proved = {"spawned": Stage.SPAWNED, "cuda": Stage.CUDA, "stepping": Stage.STEPPING}.get(wanted)
        if judged.exit_code == 0 and proved is not None:
            states = {status.stage: status.state for status in seen.stages}
            assert states[proved] in (StageState.DONE, StageState.SKIPPED)
    outcome.check_exit_code(seen)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(EVENT, max_size=14), st.sampled_from([None, 0, 2, 8]))
def test_nothing_is_claimed_without_its_evidence_and_nothing_raises(
    told: list[events.Event], expected: int | None
) -> None:
    target = config.Target(gpus=config.Gpus(expected=expected), metrics=config.Metrics(baseline=1000))
    state = machine.start("t", target, operator="ops1")
    state, _ = machine.step(state, events.LinkWentUp(at=0.0, bt=5.0, wall=0.0, boot="b1"))
    witness, kept = Witness(), KeptPanel()
    for event in told:
        before = state
        state, effects = machine.step(state, event)
        witness.hear(event, before, state)
        seen = snapshot(state, event.at + 1.0)
        assert snapshot(state, event.at + 1.0, kept) == seen
        witness.check(key_of(state.subject), seen)
        check_sane(seen)
        assert state.at >= before.at
        assert len(state.warnings) <= hostword.MAX_WARNINGS
        for effect in effects:
            if isinstance(effect, events.FollowLog):
                assert state.follow is not None
                assert effect.follow == state.follow.id
