"""A run of before as a snapshot and as curves: what is noted is told, what isn't is unknown, and no advice is given."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from console.history.entry import Entry, entry
from console.history.pastview import past_series, past_snapshot
from console.history.samples import Curves
from console.model import LinkState, LinkStatus, Snapshot, Stage, StageState, StageStatus, Verdict
from console.protocol import HostStage, RunRecord
from console.state.digest import Bucket, Digest

AT = 1_800_000_000.0
LIVE = Snapshot(
    target="ct200",
    at=AT,
    link=LinkStatus(state=LinkState.UP, clock_offset_s=30.0),
    verdict=Verdict.STEPPING,
    stages=tuple(StageStatus(stage=stage, state=StageState.DONE) for stage in Stage),
)
ENTRY = Entry(
    id="r-1", name="slammed1", accepted_wall=AT - 7170.0, first_step_wall=AT - 6970.0, ended_wall=AT - 3570.0,
    is_over=True, stepped=True, outcome="ended", killing_s=3.0, cache_s=0.1, spawned_s=1.0, cuda_s=100.0,
    stepping_s=96.0, launch_s=200.1, last_step=900, exit_code=1, lived_s=3500.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        ("stopped", Verdict.STOPPED),
        ("finished", Verdict.FINISHED),
        ("failed", Verdict.FAILED),
        ("ended", Verdict.ENDED),
        ("interrupted", Verdict.INTERRUPTED),
        ("host_restarted", Verdict.HOST_RESTARTED),
        ("log_only", Verdict.ENDED),
    ],
)
def test_outcome_of_the_ledger_is_the_verdict(outcome: str, verdict: Verdict) -> None:
    assert past_snapshot(replace(ENTRY, outcome=outcome), LIVE).verdict is verdict


def test_times_are_on_the_console_s_clock_and_as_of_the_end() -> None:
    past = past_snapshot(ENTRY, LIVE)

    assert past.at == AT - 3600.0
    assert past.progress.first_step_at == AT - 7000.0
    assert past.run is not None
    assert past.run.accepted_at == AT - 7200.0
    assert past.run.exit is not None
    assert (past.run.exit.code, past.run.exit.at) == (1, AT - 3600.0)
    assert past.ages.gpu == 3600.0
    assert [status.took_s for status in past.stages] == [3.0, 0.1, 1.0, 100.0, 96.0]


def test_stages_ended_when_they_did_and_not_when_the_run_did() -> None:
    """The host's record knows when it was spawned; contexts and steps are seen by consoles alone."""
    record = RunRecord(id="r-1", stages={"spawned": HostStage(state="done", ended_wall=AT - 7165.0)})

    ended = {status.stage: status.ended_at for status in past_snapshot(ENTRY, LIVE, record=record).stages}
    without = {status.stage: status.ended_at for status in past_snapshot(ENTRY, LIVE).stages}

    assert (ended[Stage.SPAWNED], ended[Stage.CUDA], ended[Stage.STEPPING]) == (AT - 7195.0, AT - 7096.0, AT - 7000.0)
    assert without[Stage.SPAWNED] == AT - 7000.0 - 96.0 - 100.0
    assert without[Stage.KILLING] is None


def test_failed_stage_is_failed_and_those_behind_it_were_not_reached() -> None:
    failed = replace(
        ENTRY, outcome="failed", failed_stage="spawned", reason="exec_not_permitted", detail="exit 126", stepped=False,
        cuda_s=None, stepping_s=None,
    )  # fmt: skip

    past = past_snapshot(failed, LIVE)

    states = [StageState.DONE, StageState.DONE, StageState.FAILED, StageState.NOT_REACHED, StageState.NOT_REACHED]
    assert [status.state for status in past.stages] == states
    assert past.reason is not None
    assert (past.reason.slug, past.reason.detail) == ("exec_not_permitted", "exit 126")
    assert (past.reason.safe, past.reason.next) == ("", ()), "it is over: nothing is to be done about it"


def test_stage_that_nobody_noted_is_unknown_and_the_host_s_record_knows_what_was_skipped() -> None:
    entry = replace(ENTRY, killing_s=None, cache_s=None, cuda_s=None)
    record = RunRecord(id="r-1", stages={"cache": HostStage(state="skipped", why="nothing to clear")})

    past = past_snapshot(entry, LIVE, record=record)

    killing, cache, _, cuda, stepping = past.stages
    assert (killing.state, cuda.state, stepping.state) == (StageState.UNKNOWN, StageState.UNKNOWN, StageState.DONE)
    assert (cache.state, cache.why) == (StageState.SKIPPED, "nothing to clear")


def test_a_run_that_was_stopped_shows_what_its_launch_killed_and_how_it_was_stopped() -> None:
    ended = HostStage(state="done", began_bt=900.0, ended_bt=904.0, evidence="9 pids", detail="9 pids gone")
    launched = HostStage(state="skipped", why="nothing ran")
    record = RunRecord(id="r-1", stages={"killing": ended}, launch_killing=launched)

    past = past_snapshot(replace(ENTRY, outcome="stopped", killing_s=None), LIVE, record=record)

    assert (past.stages[0].state, past.stages[0].why) == (StageState.SKIPPED, "nothing ran")
    assert past.run is not None
    assert past.run.stopped_how == "9 pids gone"
    assert entry(record).killing_s is None


def test_run_of_which_only_the_log_is_known_has_no_exit() -> None:
    past = past_snapshot(replace(ENTRY, outcome="log_only", exit_code=None, lived_s=3500.0), LIVE)

    assert past.run is not None
    assert past.run.exit is None


def test_places_at_which_a_long_log_was_read_are_one_curve_and_a_silence_is_none() -> None:
    """25 places of three buckets each, 1,500 s from one to the next; between the 10th and the 11th an hour more."""
    places = [(place * 1500 + (3600 if place > 10 else 0), place * 750) for place in range(25)]
    buckets = tuple(
        Bucket((at + n * 64) // 64, 32, 21_000.0, 20_900.0, 21_100.0, step + 32 * n)
        for at, step in places
        for n in range(3)
    )
    log = replace(ENTRY, outcome="log_only")

    series = past_series(log, Curves(digests={"tok_s": Digest(64.0, buckets)}), LIVE)

    opened = [point.step for point in series["tok_s"].points if point.opens]
    assert opened == [11 * 750]


def test_bucket_that_a_place_of_a_log_fills_in_part_is_no_silence() -> None:
    """Its middle stands 256 s behind that of the one before, and holds but the 31 steps of a minute."""
    full = [Bucket(index, 128, 21_000.0, 20_900.0, 21_100.0, 128 * index + 127) for index in range(10)]
    buckets = (*full, Bucket(10, 31, 21_000.0, 20_900.0, 21_100.0, 128 * 9 + 127 + 31))

    series = past_series(replace(ENTRY, outcome="log_only"), Curves(digests={"tok_s": Digest(256.0, buckets)}), LIVE)

    assert not any(point.opens for point in series["tok_s"].points)


def test_curves_keep_extremes_and_holes_at_the_times_of_the_run() -> None:
    buckets = (
        Bucket(0, 1, 20.0, 20.0, 20.0, 1),
        Bucket(1, 5, 20.0, 3.0, 22.0, 6),
        Bucket(2, 1, 21.0, 21.0, 21.0, 7),
        Bucket(90, 1, 19.0, 19.0, 19.0, 99),
    )
    curves = Curves(digests={"tok_s": Digest(2.0, buckets), "busy:target": Digest(2.0, buckets)})

    series = past_series(ENTRY, curves, LIVE)

    assert set(series) == {"tok_s"}
    first = AT - 7000.0
    points = [(point.at, point.value, point.opens) for point in series["tok_s"].points]
    assert points == [
        (first + 1.0, 20.0, False),
        (first + 3.0, 3.0, False),
        (first + 3.0, 22.0, False),
        (first + 5.0, 21.0, False),
        (first + 181.0, 19.0, True),
    ]
