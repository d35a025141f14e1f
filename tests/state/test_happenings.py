"""What is told between two snapshots: each fact once, at its own time, with its evidence."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from console.model import LinkState, Severity, Snapshot, StageState, Verdict
from console.reasons import Reason
from console.state.happenings import Happening, Kind, happenings
from console.state.reasonview import view
from tests.ui import fixtures
from tests.ui.fixtures import HEALTHY, LAUNCH_FAILED, LAUNCHING, LINK_LOST, NOW, STALLED, STOPPED


def told(before: Snapshot | None, now: Snapshot, kind: Kind | None = None) -> list[Happening]:
    return [each for each in happenings(before, now) if kind is None or each.kind is kind]


def test_nothing_new_is_nothing_told() -> None:
    for name, scene in fixtures.SCENES.items():
        now = scene().snapshot
        assert happenings(now, now) == [], name
        assert happenings(now, replace(now, at=now.at + 1)) == [], name


def test_a_first_look_tells_the_stages_and_who_started_it() -> None:
    found = told(None, HEALTHY)

    assert [each.fields["stage"] for each in found if each.kind is Kind.STAGE] == [
        "killing", "cache", "spawned", "cuda", "stepping",
    ]  # fmt: skip
    assert "ops1 started slammed5" in [each.text for each in found]
    assert [each.at for each in found] == sorted(each.at for each in found)


def test_stage_that_was_skipped_is_told_at_the_end_of_the_one_before_it_whenever_it_is_noticed() -> None:
    """A console that is opened hours later learns from the log that no GPU was waited for."""
    spawned = replace(HEALTHY.stages[2], ended_at=NOW - 7000)
    stages = (*HEALTHY.stages[:2], spawned, *HEALTHY.stages[3:])
    pending = replace(stages[3], state=StageState.PENDING, took_s=None, ended_at=None)
    skipped = replace(pending, state=StageState.SKIPPED, why="no GPU expected")
    before = replace(HEALTHY, stages=(*stages[:3], pending, stages[4]))

    (found,) = told(before, replace(HEALTHY, stages=(*stages[:3], skipped, stages[4])), Kind.STAGE)

    assert found.at == NOW - 7000


def test_a_context_more_is_a_stage_event_with_what_is_missing() -> None:
    more = replace(LAUNCHING.stages[3], have=7, missing=(7,), evidence="7/8, not yet: 7")
    now = replace(LAUNCHING, stages=(*LAUNCHING.stages[:3], more, LAUNCHING.stages[4]))

    (found,) = told(LAUNCHING, now)

    assert (found.kind, found.fields["k"], found.fields["n"], found.fields["missing"]) == (Kind.STAGE, 7, 8, [7])
    assert "missing_parts" not in found.fields


def test_instances_of_a_gpu_that_are_missing_are_told_in_a_field_of_their_own() -> None:
    more = replace(LAUNCHING.stages[3], have=7, missing=(), missing_parts=("0:2",), evidence="7/8, not yet: 0:2")
    now = replace(LAUNCHING, stages=(*LAUNCHING.stages[:3], more, LAUNCHING.stages[4]))

    (found,) = told(LAUNCHING, now)

    assert (found.fields["missing"], found.fields["missing_parts"]) == ([], ["0:2"])


def test_a_failure_is_told_with_its_stage_and_its_cause() -> None:
    found = told(LAUNCHING, LAUNCH_FAILED)

    stage = next(each for each in found if each.kind is Kind.STAGE and each.fields["state"] == "failed")
    health = next(each for each in found if each.kind is Kind.HEALTH)
    assert (stage.fields["stage"], stage.severity) == ("spawned", Severity.ERROR)
    assert (health.fields["verdict"], health.fields["reason"]) == ("failed", "exec_not_permitted")
    assert "Permission denied" in health.text


def test_a_stall_and_its_end_are_told_once_each_with_evidence() -> None:
    (stalled,) = told(HEALTHY, STALLED, Kind.HEALTH)
    (again,) = told(STALLED, HEALTHY, Kind.HEALTH)

    assert (stalled.severity, stalled.fields["was"]) == (Severity.WARNING, "stepping")
    assert stalled.text.startswith("STALLED: ")
    assert again.text == "STEPPING again, it was stalled"


def test_a_lost_link_is_the_links_and_not_the_runs() -> None:
    lost = told(HEALTHY, LINK_LOST)
    up = replace(HEALTHY, at=NOW + 30)

    assert {each.kind for each in lost} == {Kind.LINK}
    back = told(LINK_LOST, up)
    assert Kind.HEALTH not in {each.kind for each in back}
    assert any(each.text.startswith("link back after ") for each in back)


def test_a_run_that_was_stopped_is_told_at_the_time_of_its_end() -> None:
    (found,) = told(HEALTHY, STOPPED, Kind.HEALTH)

    assert found.at == NOW - 180
    assert found.fields["verdict"] == "stopped"


@pytest.mark.parametrize(
    ("before", "after", "count"), [(18_000, 18_000, 0), (18_000, 18_500, 1), (None, 18_500, 1), (18_500, None, 0)]
)
def test_a_checkpoint_is_told_once(before: int | None, after: int | None, count: int) -> None:
    def at(step: int | None) -> Snapshot:
        return replace(HEALTHY, progress=replace(HEALTHY.progress, checkpoint_step=step))

    assert len(told(at(before), at(after), Kind.CHECKPOINT)) == count


def test_another_run_begins_with_its_own_stages() -> None:
    found = told(HEALTHY, LAUNCHING)

    assert "ops1 started slammed6 in place of slammed5" in [each.text for each in found]
    states = {each.fields["stage"]: each.fields["state"] for each in found if each.kind is Kind.STAGE}
    assert states == {"killing": "done", "cache": "done", "spawned": "done", "cuda": "active"}


def test_no_two_snapshots_of_any_moment_raise() -> None:
    moments = [scene().snapshot for scene in fixtures.SCENES.values()]

    for before in [None, *moments]:
        for now in moments:
            for each in happenings(before, now):
                assert each.text
                assert each.at <= now.at or each.kind is Kind.OPERATOR


def test_a_late_stage_is_a_warning() -> None:
    late: Any = replace(LAUNCHING.stages[3], state=StageState.LATE)
    now = replace(LAUNCHING, stages=(*LAUNCHING.stages[:3], late, LAUNCHING.stages[4]))

    (found,) = told(LAUNCHING, now, Kind.STAGE)

    assert found.severity is Severity.WARNING
    assert "late" in found.text


def test_a_warning_says_what_is_wrong_and_where() -> None:
    foreign = view(Reason.GPU_MEMORY_FOREIGN, detail="GPU 3: pid 7712 (jupyter) holds 1.2 GiB")

    (found,) = told(HEALTHY, replace(HEALTHY, warnings=(*HEALTHY.warnings, foreign)), Kind.WARNING)

    assert found.text == "GPU memory is held by somebody else: GPU 3: pid 7712 (jupyter) holds 1.2 GiB"


def test_before_the_host_has_spoken_nothing_is_told() -> None:
    quiet = replace(HEALTHY, verdict=Verdict.NO_WORD, link=replace(HEALTHY.link, state=LinkState.CONNECTING))

    assert happenings(None, quiet) == []
    assert told(quiet, HEALTHY, Kind.STAGE)


def test_a_stop_that_was_quicker_than_we_looked_is_told_once() -> None:
    (quick,) = told(HEALTHY, STOPPED, Kind.OPERATOR)
    stopping = replace(HEALTHY, run=replace(fixtures.RUN, stopping_by="ops1"))

    assert (quick.text, quick.fields["action"], quick.at) == ("ops1 stops slammed5", "stop", NOW - 180)
    assert [each.text for each in told(HEALTHY, stopping, Kind.OPERATOR)] == ["ops1 stops slammed5"]
    assert told(stopping, STOPPED, Kind.OPERATOR) == []


def test_while_the_log_is_being_read_nothing_of_it_happens_now() -> None:
    """A console that is opened late had a run begin to step at its opening, after the checkpoints of the past."""
    first = replace(HEALTHY.progress, checkpoint_step=600)
    half = replace(HEALTHY, log=replace(HEALTHY.log, unread=True), progress=first)
    dated = replace(HEALTHY.stages[4], ended_at=NOW - 9000.0)
    whole = replace(HEALTHY, stages=(*HEALTHY.stages[:4], dated))

    opening, then = told(None, half), told(half, whole)

    assert not [each for each in opening if each.kind is Kind.CHECKPOINT or each.fields.get("stage") == "stepping"]
    assert [each.at for each in then if each.fields.get("stage") == "stepping"] == [NOW - 9000.0]
    assert [each.fields["step"] for each in then if each.kind is Kind.CHECKPOINT] == [18000]
