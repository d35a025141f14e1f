"""The launch machine alone: the table, what is illegal, and that the order of the facts doesn't matter."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.model import Stage, StageState
from console.protocol import HostStage
from console.state import launch as machine
from console.state import stages
from console.state.consequences import End, RunOver
from console.state.launch import Launch, LaunchEvent, process_event
from console.state.stages import IllegalEvent


def journal(stage: Stage, state: str = "done", **fields: object) -> machine.JournalSaid:
    known = {"began_bt": 1.0, "ended_bt": 2.0, "evidence": "seen", "why": "because"} | fields
    return machine.JournalSaid(stage=stage, entry=HostStage(state=state, **known))  # type: ignore[arg-type]


SPAWNED = [journal(Stage.KILLING), journal(Stage.CACHE), journal(Stage.SPAWNED)]
CONTEXTS = machine.ContextsSeen(have=tuple(range(8)), want=8, rule="nvml pid in tree", bt=9.0)
SOME = machine.ContextsSeen(have=(0, 1), want=8, missing=(2, 3, 4, 5, 6, 7), bt=8.0)
STEPS = machine.StepsSeen(first=1, second=2, bt=12.0)
EXIT = RunOver(end=End.EXITED, why="exit 1, pid 7", bt=20.0)


def told(*events: LaunchEvent) -> Launch:
    launch = Launch(key="r-1")
    for event in events:
        launch = process_event(launch, event)
    return launch


def states(launch: Launch) -> list[StageState]:
    return [mark.state for mark in launch.marks]


def test_new_launch_waits_at_every_stage() -> None:
    assert states(Launch(key="r-1")) == [StageState.PENDING] * 5


@pytest.mark.parametrize(
    ("after", "event"),
    [
        (SPAWNED, journal(Stage.KILLING, "active")),
        (SPAWNED, journal(Stage.SPAWNED, "failed")),
        (SPAWNED, journal(Stage.CACHE, "skipped")),
        ([journal(Stage.CACHE, "skipped")], journal(Stage.CACHE, "done")),
        ([journal(Stage.KILLING, "failed")], journal(Stage.KILLING, "done")),
        ([], journal(Stage.CUDA)),
        ([], journal(Stage.KILLING, "sleeping")),
        ([], machine.DeadlinePassed(stage=Stage.CUDA)),
        (SPAWNED, machine.ContextsSeen(have=(0, 1), want=1)),
        (SPAWNED, machine.ContextsSeen(have=(), want=0)),
        (SPAWNED, machine.StepsSeen(first=2, second=2)),
        (SPAWNED, machine.StepsSeen(first=2, second=1)),
        ([*SPAWNED, EXIT], machine.RunLives()),
    ],
)
def test_illegal_event_raises_and_changes_nothing(after: list[LaunchEvent], event: LaunchEvent) -> None:
    launch = told(*after)
    before = states(launch), launch.facts, launch.over

    with pytest.raises(IllegalEvent):
        process_event(launch, event)

    assert (states(launch), launch.facts, launch.over) == before


def test_every_pair_of_the_table_leads_to_a_state_and_done_leads_nowhere_but_to_a_stop() -> None:
    assert set(stages._NEXT) == set(StageState)
    assert stages._NEXT[StageState.DONE] == {
        stages.Move.PROVED: StageState.DONE,
        stages.Move.REOPENED: StageState.ACTIVE,
    }
    assert stages._NEXT[StageState.FAILED] == {stages.Move.FAILED: StageState.FAILED}


def test_same_word_twice_changes_nothing() -> None:
    events: list[LaunchEvent] = [*SPAWNED, CONTEXTS, STEPS, EXIT]

    for event in events:
        launch = told(*events)
        assert process_event(launch, event).marks == launch.marks


FACTS: list[LaunchEvent] = [*SPAWNED, SOME, CONTEXTS, STEPS, EXIT]


@pytest.mark.parametrize("missing", [None, *range(3, len(FACTS))])
def test_the_same_facts_give_the_same_stages_in_every_order(missing: int | None) -> None:
    facts = [fact for index, fact in enumerate(FACTS) if index != missing]
    expected = states(told(*facts))

    for order in itertools.permutations(facts):
        assert states(told(*order)) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([], "failed not_reached not_reached not_reached not_reached"),
        (SPAWNED[:2], "done done failed not_reached not_reached"),
        (SPAWNED, "done done done failed not_reached"),
        ([*SPAWNED, CONTEXTS], "done done done done failed"),
        ([*SPAWNED, STEPS], "done done done unknown done"),
        ([*SPAWNED, CONTEXTS, STEPS], "done done done done done"),
        ([*SPAWNED, machine.CudaNotObservable(why="no driver")], "done done done unknown failed"),
        ([journal(Stage.KILLING, "failed")], "failed not_reached not_reached not_reached not_reached"),
    ],
)
def test_exit_is_put_down_to_the_first_stage_that_is_not_proved(facts: list[LaunchEvent], expected: str) -> None:
    assert " ".join(states(told(*facts, EXIT))) == expected


def test_exit_names_itself_as_the_evidence_of_the_failure() -> None:
    mark = told(*SPAWNED, EXIT).mark(Stage.CUDA)

    assert (mark.evidence, mark.began_bt, mark.ended_bt) == ("exit 1, pid 7", 2.0, 20.0)


def test_late_stage_keeps_its_evidence_and_is_done_when_the_proof_comes() -> None:
    late = told(*SPAWNED, SOME, machine.DeadlinePassed(stage=Stage.CUDA))

    assert late.mark(Stage.CUDA).state is StageState.LATE
    assert late.mark(Stage.CUDA).evidence == "2/8, not yet: 2–7"
    assert told(*SPAWNED, SOME, machine.DeadlinePassed(stage=Stage.CUDA), CONTEXTS).state(Stage.CUDA) is StageState.DONE


def test_earlier_proof_of_cuda_wins() -> None:
    early = machine.ContextsSeen(have=tuple(range(8)), want=8, bt=5.0)

    assert told(*SPAWNED, CONTEXTS, early).mark(Stage.CUDA).ended_bt == 5.0
    assert told(*SPAWNED, early, CONTEXTS).mark(Stage.CUDA).ended_bt == 5.0


def test_what_the_keeper_noted_is_the_time_of_a_stage_whoever_saw_it_when() -> None:
    seen = [machine.ContextsSeen(have=tuple(range(8)), want=8, bt=bt) for bt in (5.0, 9.0, None)]
    noted = machine.ContextsSeen(have=tuple(range(8)), want=8, bt=7.0, noted=True)
    steps = [machine.StepsSeen(first=1, second=2, bt=bt) for bt in (11.0, 12.5, None)]
    noted_steps = machine.StepsSeen(first=1, second=2, bt=12.0, noted=True)

    for order in itertools.permutations([*seen, noted]):
        assert (told(*SPAWNED, *order).mark(Stage.CUDA).ended_bt, told(*SPAWNED, *order).mark(Stage.CUDA).noted) == (
            7.0,
            True,
        )
    for order_of_steps in itertools.permutations([*steps, noted_steps]):
        mark = told(*SPAWNED, CONTEXTS, *order_of_steps).mark(Stage.STEPPING)
        assert (mark.ended_bt, mark.noted) == (12.0, True)
    assert told(*SPAWNED, *seen).mark(Stage.CUDA).noted is False


ANY_EVENT = st.one_of(
    st.builds(
        journal,
        st.sampled_from(Stage),
        st.sampled_from(["active", "done", "skipped", "failed", "nonsense", ""]),
        evidence=st.sampled_from(["", "2 pids"]),
        why=st.sampled_from(["", "a reason"]),
    ),
    st.builds(machine.StartedByHand, spawned_bt=st.none() | st.floats(-1e9, 1e9)),
    st.builds(
        machine.ContextsSeen,
        have=st.lists(st.integers(0, 7), unique=True).map(tuple),
        want=st.integers(-1, 8),
        bt=st.none() | st.floats(-1e9, 1e9),
    ),
    st.builds(machine.CudaNotObservable, why=st.sampled_from(["", "no driver"])),
    st.just(machine.CudaNotWanted()),
    st.builds(machine.StepsSeen, first=st.integers(), second=st.integers()),
    st.builds(machine.DeadlinePassed, stage=st.sampled_from(Stage)),
    st.builds(machine.StopBegan, by=st.sampled_from(["", "ops1"])),
    st.just(machine.StopEnded()),
    st.builds(RunOver, end=st.sampled_from(End), why=st.just("over"), all_gone=st.booleans()),
    st.just(machine.RunLives()),
)


@given(st.lists(ANY_EVENT, max_size=25))
def test_whatever_comes_nothing_is_claimed_without_its_witness(events: list[LaunchEvent]) -> None:
    launch = Launch(key="r-1")
    accepted: list[LaunchEvent] = []
    for event in events:
        before = launch
        try:
            launch = process_event(launch, event)
        except IllegalEvent:
            assert launch is before
        else:
            accepted.append(event)

    stepping, cuda = launch.mark(Stage.STEPPING), launch.mark(Stage.CUDA)
    if stepping.state is StageState.DONE:
        assert any(isinstance(e, machine.StepsSeen) and e.second > e.first for e in accepted)
    if cuda.state is StageState.DONE:
        assert any(isinstance(e, machine.ContextsSeen) and len(e.have) == e.want > 0 for e in accepted)
    for stage in (Stage.CACHE, Stage.SPAWNED):
        if launch.state(stage) is StageState.DONE:
            assert any(
                isinstance(e, machine.JournalSaid)
                and (e.stage, e.entry.state) == (stage, "done")
                and e.entry.evidence != ""
                for e in accepted
            )
    for mark in launch.marks:
        if mark.state is StageState.DONE:
            assert mark.evidence
        if mark.state in (StageState.FAILED, StageState.SKIPPED, StageState.UNKNOWN):
            assert mark.why or mark.reason


@pytest.mark.parametrize("move", [stages.Move.PROVED, stages.Move.FAILED, stages.Move.SKIPPED, stages.Move.BLURRED])
def test_no_move_closes_a_stage_without_evidence_or_reason(move: stages.Move) -> None:
    with pytest.raises(IllegalEvent, match="without"):
        machine._move(Launch(key="r-1"), Stage.SPAWNED, move)
