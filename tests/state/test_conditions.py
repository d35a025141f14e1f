"""Everything that can be the matter with a run that is alive: how it is told, and that it is gone when its facts are.

One row a condition: the story that leads to it, the word, the reason, the exit code of `status --check`, what the rail
says, the sentence of evidence, and the story by which the facts go away again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from console import config
from console.model import Severity, Stage, StageState, Verdict
from console.protocol import LogIdent
from console.reasons import CATALOGUE, Exit, Reason
from console.state import events, outcome
from console.state.stall import stall_budget_s
from console.ui.present.look import Look
from console.ui.present.rail import draw_rail
from console.ui.present.verdict import verdict_facts
from tests.state.story import T0, Story, sample

LIMIT_LINE = (
    "W0214 02:11:09.332000 71 torch/_dynamo/convert_frame.py:906] [0/8] torch._dynamo hit config.recompile_limit (8)"
)
BAR = "model-00003.safetensors:  41%|████      | 1.20G/2.90G [{spent}<?, 0.00B/s]"


def watch(story: Story, seconds: float, **gpu: Any) -> Story:
    """Let time pass in which the host tells of GPUs and processes, and of a log that says nothing new."""
    for _ in range(round(seconds)):
        story.ticks(1).gpus(**gpu).tell(events.LinkRtt(at=story.at, rtt_s=0.0, bt=story.bt, wall=story.at))
    return story


def idle(story: Story, seconds: float) -> Story:
    return watch(story, seconds, power_mw=90_000, util=0)


def steady() -> Story:
    """A run that has stepped well past its warm-up, one step line each 2 s."""
    return Story().stepping(2).procs(*"S" * 8).steps(3, 120).log(size=900).log(size=1000)


def without_baseline() -> Story:
    return Story(target=config.Target(gpus=config.Gpus(expected=8))).stepping(2).steps(3, 120).log(size=1000)


def suspended() -> Story:
    story = steady().after(1.0).procs(*"T" * 8, main="T")
    return watch(story, 5, power_mw=128_000).procs(*"T" * 8, main="T")


def rank_suspended() -> Story:
    return watch(steady().procs(*"SSSTSSSS"), 6, power_mw=128_000).procs(*"SSSTSSSS")


def log_lost() -> Story:
    return watch(steady().bulk_down(), 12)


def log_lost_while_launching() -> Story:
    return watch(Story().launched().cuda().log(state="empty").bulk_down(), 12)


def log_gone() -> Story:
    story = steady().log(state="missing")
    return watch(story, 8).log(state="missing")


def finished() -> Story:
    story = (
        Story()
        .stepping(2)
        .procs("S")
        .steps(3, 60, total_steps=60)
        .log(size=900)
        .tail("Training completed", offset=6_050)
    )
    return idle(story.log(size=1000), 130).procs("S", cores=0.0)


def download_before_steps() -> Story:
    story = Story().launched().procs(cores=0.0).log(size=10)
    story.tail("loading the model", BAR.format(spent="01:30"))
    return idle(story, 3)


def download_bar_that_no_longer_moves() -> Story:
    story = Story().launched().log(size=10).log(size=20).procs(cores=0.1)
    story.tail("data.parquet:  12%|█         | 120M/1.00G [00:10<01:13, 12.0MB/s]")
    return idle(story, 61).procs(cores=0.1)


def elsewhere() -> Story:
    story = steady().procs("S", writes="/workspace/own.log")
    return watch(story, 61).procs("S", writes="/workspace/own.log")


def no_log_at_all() -> Story:
    return Story().up().hand(log=None, session="").gpus()


def spike() -> Story:
    return steady().steps(121, 126, loss=4.8)


def starved() -> Story:
    story = without_baseline().steps(121, 140, queue_min=8, queue_max=16)
    return story.steps(141, 170, queue_min=0, queue_max=16, tok_s=9_000.0)


def recompiles() -> Story:
    story = without_baseline()
    return story.noted(LIMIT_LINE).steps(121, 150, tok_s=9_000.0)


@dataclass(frozen=True)
class Row:
    tell: Callable[[], Story]
    verdict: Verdict
    reason: str
    health: str
    brief: str
    detail: str
    well: Callable[[Story], Story]
    """By which the facts go away."""


def goes_on(story: Story) -> Story:
    return story.procs(*"S" * 8).steps(121, 123)


ROWS = {
    "suspended": Row(
        suspended, Verdict.SUSPENDED, "suspended", "suspended", "suspended 5 s",
        "9 processes stopped by a signal (state T: SIGSTOP or Ctrl-Z) for 5 s · at step 120", goes_on,
    ),
    "suspended, one rank": Row(
        rank_suspended, Verdict.SUSPENDED, "suspended", "suspended", "suspended 6 s",
        "pid 85003 stopped by a signal (state T: SIGSTOP or Ctrl-Z) for 6 s · at step 120", goes_on,
    ),
    "log lost": Row(
        log_lost, Verdict.RUNNING, "log_lost", "unseen", "unseen 12 s",
        "steps unseen for 12 s, the last one was 120 · the log's connection is lost for 12 s: the agent ended",
        lambda story: story.log(size=2000).steps(121, 123),
    ),
    "log lost while launching": Row(
        log_lost_while_launching, Verdict.RUNNING, "log_lost", "unseen", "unseen",
        "no step was seen yet · the log's connection is lost for 12 s: the agent ended",
        lambda story: story.log(size=2000, n=2000).steps(1, 3),
    ),
    "log gone": Row(
        log_gone, Verdict.RUNNING, "log_elsewhere", "unseen", "unseen 8 s",
        "/workspace/train_slammed6.log is gone · steps unseen for 8 s, the last one was 120",
        lambda story: story.log(size=2000).steps(121, 123),
    ),
    "finished, not exited": Row(
        finished, Verdict.NOT_EXITED, "finished_not_exited", "not_exited", "not exited 2m 10s",
        "done at step 60 of 60 · the process is still there after 2m 10s",
        lambda story: story.steps(61, 63),
    ),
    "download stands": Row(
        download_before_steps, Verdict.LAUNCHING, "download_stall", "downloading", "download stands",
        "1.20G of 2.90G after 01:30 · nothing new for 3 s",
        lambda story: story.tail("loading the model", "Loading checkpoint shards: 100%"),
    ),
    "download bar is silent": Row(
        download_bar_that_no_longer_moves, Verdict.LAUNCHING, "download_stall", "downloading", "download stands",
        "120M of 1.00G after 00:10 · nothing new for 61 s",
        lambda story: story.log(size=30).tail("data.parquet:  13%|█         | 130M/1.00G [01:12<01:13, 1.0MB/s]"),
    ),
    "log elsewhere": Row(
        elsewhere, Verdict.RUNNING, "log_elsewhere", "unseen", "log elsewhere",
        "pid 84933 writes /workspace/own.log · the log is silent for 61 s",
        lambda story: story.log(size=2000).steps(121, 123),
    ),
    "no log at all": Row(
        no_log_at_all, Verdict.RUNNING, "log_elsewhere", "unseen", "no log",
        "its output goes into no file that can be read",
        lambda story: story.hand(log=LogIdent(path="/workspace/hand.log"), session="").log(size=9).steps(1, 3),
    ),
    "loss spike": Row(
        spike, Verdict.SPIKE, "loss_spike", "spike", "loss x4.0",
        "loss 1.2 -> 4.8 since step 121, 10 s ago · 4.8 now",
        lambda story: story.steps(127, 130),
    ),
    "queue starved": Row(
        starved, Verdict.STEPPING, "queue_starved", "starved", "queue empty 58 s",
        "queue 0 of 16 since step 141, 58 s · drafters wait for targets",
        lambda story: story.steps(171, 172, queue_min=2, queue_max=16, tok_s=9_000.0),
    ),
    "recompile limit": Row(
        recompiles, Verdict.STEPPING, "recompile_limit", "recompiles", "recompile limit",
        "dynamo hit its recompile limit · 60 s ago",
        lambda story: story.steps(151, 170),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_condition_is_told_with_its_evidence_and_is_not_healthy(name: str) -> None:
    row = ROWS[name]

    snapshot = row.tell().snapshot

    reason = snapshot.reason
    assert reason is not None, snapshot.verdict
    assert (snapshot.verdict, reason.slug, reason.detail) == (row.verdict, row.reason, row.detail)
    assert (outcome.health_word(snapshot), outcome.check_exit_code(snapshot)) == (row.health, Exit.UNHEALTHY)
    assert reason.brief == row.brief
    assert len(reason.brief) <= 17
    assert reason.facts
    assert reason.next


@pytest.mark.parametrize("name", ROWS)
def test_condition_is_gone_when_its_facts_are(name: str) -> None:
    row = ROWS[name]
    story = row.tell()

    after = row.well(story).snapshot

    assert after.reason is None, (after.verdict, after.reason)
    assert after.warnings == ()
    assert outcome.check_exit_code(after) is Exit.OK


@pytest.mark.parametrize("name", ROWS)
def test_screen_says_it_in_the_verdict_and_in_the_rail(name: str) -> None:
    row = ROWS[name]
    snapshot = row.tell().snapshot

    facts = verdict_facts(snapshot, Look())
    rail = ["".join(span.text for span in line) for line in draw_rail(snapshot, 120, Look(), rows=3)]
    narrow = "".join(span.text for line in draw_rail(snapshot, 80, Look(), rows=1) for span in line)

    assert row.detail in (facts.cause, *facts.first, *facts.second)
    assert facts.next
    assert row.brief in rail[2]
    assert "!" in rail[0]
    assert "!" in narrow


def test_all_conditions_but_the_calm_ones_are_warnings() -> None:
    for row in ROWS.values():
        assert CATALOGUE[Reason(row.reason)].severity is Severity.WARNING


# -- no false alarms --------------------------------------------------------------------------------------------------


def test_process_that_is_stopped_beside_a_run_that_steps_is_no_matter() -> None:
    story = steady().procs(*"SSST")

    for step in range(121, 140):
        story.steps(step, step).procs(*"SSST")
        assert story.verdict() is Verdict.STEPPING


def test_debugger_that_looks_for_a_moment_suspends_nothing() -> None:
    story = steady()

    for _ in range(8):
        story.after(1.0).procs(*"t" * 8, main="t").gpus()

    assert story.verdict() is Verdict.STEPPING
    story = watch(story, 12).procs(*"t" * 8, main="t")
    assert story.snapshot.reason is not None
    assert "held by a debugger" in story.snapshot.reason.detail
    assert story.snapshot.reason.next == ("detach the debugger, or end it",)


def test_pause_by_a_signal_is_neither_a_stall_afterwards_nor_learned_as_a_usual_one() -> None:
    story = steady()
    budget_s = stall_budget_s(story.state, story.at)
    for _ in range(600):
        story.after(1.0).procs(*"T" * 8, main="T").gpus(power_mw=90_000)

    story.procs(*"S" * 8)

    assert story.verdict() is Verdict.STEPPING
    story.steps(121, 130)
    assert stall_budget_s(story.state, story.at) == budget_s
    assert story.verdict() is Verdict.STEPPING


def test_run_that_hangs_after_it_went_on_is_stalled_from_then() -> None:
    story = steady()
    for _ in range(100):
        story.after(1.0).procs(*"T" * 8, main="T").gpus(power_mw=90_000)

    idle(story.procs(*"S" * 8), 70)

    assert story.verdict() is Verdict.STALLED


def test_stop_that_was_there_when_we_came_does_not_claim_since_when() -> None:
    story = Story().stepping(60).after(40).procs("T", main="T")

    reason = story.snapshot.reason
    assert reason is not None
    assert reason.detail == (
        "2 processes stopped by a signal (state T: SIGSTOP or Ctrl-Z) · at step 60, no step for 40 s"
    )
    assert reason.next == ("kill -CONT 84933 85000 on the host lets it go on",)


def test_suspended_while_it_loads_is_suspended_and_not_late() -> None:
    story = Story().launched().procs("S").after(1.0).procs("T", main="T")

    assert story.verdict() is Verdict.SUSPENDED
    assert story.stage(Stage.CUDA).state is StageState.ACTIVE
    assert not story.outcome().settled
    story.procs("S")
    assert story.verdict() is Verdict.LAUNCHING


def test_connection_of_the_log_that_is_back_before_a_step_was_due_is_not_missed() -> None:
    story = steady().bulk_down()

    for _ in range(3):
        watch(story, 1)
        assert story.verdict() is Verdict.STEPPING
    story.log(size=1100)

    assert story.steps(121, 122).verdict() is Verdict.STEPPING


def test_slow_steps_are_missed_only_when_one_was_due() -> None:
    story = Story().stepping(8, every_s=40.0).log(size=1000).bulk_down()

    assert watch(story, 75).verdict() is Verdict.STEPPING
    assert watch(story, 10).verdict() is Verdict.RUNNING


def test_no_rate_is_shown_as_of_now_while_no_step_is_seen() -> None:
    unseen, stands = log_lost().snapshot.progress.rate, suspended().snapshot.progress.rate

    assert (unseen.now, unseen.last) == (None, 21_500.0)
    assert (stands.now, stands.last) == (0.0, 21_500.0)


def test_time_without_the_logs_connection_is_not_learned_as_a_pause() -> None:
    story = steady()
    budget_s = stall_budget_s(story.state, story.at)

    watch(story.bulk_down(), 300).log(size=2000, n=10).steps(121, 130)

    assert stall_budget_s(story.state, story.at) == budget_s


def test_teardown_that_takes_its_time_is_neither_stalled_nor_left_over() -> None:
    story = Story().stepping(2).steps(3, 60, total_steps=60).log(size=900)
    story.tail("Training completed", offset=6_050).log(size=1000)

    assert idle(story, 110).verdict() is Verdict.STEPPING
    story.tail("Training completed", "wandb: uploading artifacts 40 %", offset=6_050).log(size=1100)
    assert idle(story, 110).verdict() is Verdict.STEPPING


def test_what_it_still_waits_for_is_told() -> None:
    story = Story().stepping(2).steps(3, 60, total_steps=60).log(size=900)
    story.tail("Training completed", "wandb: Waiting for W&B process to finish", offset=6_050).log(size=1000)

    reason = idle(story, 130).snapshot.reason

    assert reason is not None
    assert [fact.text for fact in reason.facts][:3] == [
        "Training completed", "wandb: Waiting for W&B process to finish", "8 contexts are still held",
    ]  # fmt: skip


def test_words_of_an_end_in_the_middle_are_a_stall_like_any_other() -> None:
    story = Story().stepping(2).steps(3, 60, total_steps=60_000).tail("Training completed", offset=6_050)

    assert idle(story, 200).verdict() is Verdict.STALLED


def test_download_that_moves_or_is_complete_or_lies_behind_is_no_matter() -> None:
    moving = "a.safetensors:  41%|████      | 1.20G/2.90G [01:30<02:00, 14.0MB/s]"
    whole = "a.safetensors: 100%|██████████| 2.90G/2.90G [03:30<00:00, 14.0MB/s]"
    for last in (moving, whole, BAR.format(spent="01:30") + "\nloaded"):
        story = Story().launched().procs(cores=0.1).log(size=10).tail(*last.split("\n"))
        assert idle(story, 30).snapshot.reason is None


def test_download_that_has_only_begun_stands_once_nothing_has_come_for_a_minute() -> None:
    story = Story().launched().log(size=10).log(size=20).procs(cores=0.1)
    story.tail("a.safetensors:   0%|          | 0.00/2.90G [00:00<?, ?B/s]")

    assert idle(story, 50).snapshot.reason is None
    reason = idle(story, 12).procs(cores=0.1).snapshot.reason
    assert reason is not None
    assert reason.slug == Reason.DOWNLOAD_STALL


def test_bar_of_a_download_while_the_process_computes_or_the_gpus_work_is_no_stall() -> None:
    busy = Story().launched().log(size=10).tail(BAR.format(spent="01:30")).procs(cores=7.5)
    works = Story().launched().cuda().log(size=10).log(size=20).tail(BAR.format(spent="01:30")).procs(cores=0.1)

    assert idle(busy, 5).snapshot.reason is None
    assert watch(works, 5).snapshot.reason is None


def test_other_files_of_a_run_whose_log_speaks_are_no_matter() -> None:
    story = steady()

    for step in range(121, 160):
        story.steps(step, step).log(size=1000 + step).procs("S", writes="/workspace/metrics.jsonl")
        assert story.verdict() is Verdict.STEPPING


def test_silent_log_while_it_loads_is_not_taken_for_one_elsewhere() -> None:
    story = Story().launched().log(size=10).procs("S", writes="/workspace/own.log")

    assert watch(story, 90, power_mw=90_000, util=0, contexts=3).verdict() is Verdict.LAUNCHING


def test_queue_that_is_empty_at_full_speed_is_balance() -> None:
    story = steady().steps(121, 200, queue_min=0, queue_max=16)

    assert story.verdict() is Verdict.STEPPING
    assert story.snapshot.reason is None
    assert outcome.check_exit_code(story.snapshot) is Exit.OK


def test_queue_that_is_empty_while_it_warms_up_or_now_and_then_is_no_matter() -> None:
    story = Story().stepping(2).steps(3, 49, queue_min=0, queue_max=16, tok_s=2_000.0)
    assert story.snapshot.reason is None

    for step in range(121, 200):
        story.steps(step, step, queue_min=0 if step % 4 else 3, queue_max=16, tok_s=20_000.0)

    assert story.snapshot.reason is None


def test_starving_run_that_is_slow_is_called_slow_and_says_both() -> None:
    story = steady().steps(121, 260, queue_min=0, queue_max=16, tok_s=9_000.0)

    snapshot = story.snapshot
    assert snapshot.verdict is Verdict.SLOW
    assert [warning.slug for warning in snapshot.warnings] == ["queue_starved"]


def test_stall_with_an_empty_queue_says_who_waited() -> None:
    story = without_baseline().steps(121, 170, queue_min=0, queue_max=16)

    reason = idle(story, 200).snapshot.reason

    assert reason is not None
    assert "empty since step 121: drafters wait for targets" in [fact.text for fact in reason.facts]


@pytest.mark.parametrize(
    "line",
    [
        "torch._dynamo.config.recompile_limit = 64",
        "W0214 02:11:09 71 torch/_dynamo/convert_frame.py:1551] [2/8] recompile: cache_size 2 of 8",
        "recompile_limit: 64",
    ],
)
def test_lines_about_recompiling_that_say_no_limit_was_hit_are_no_matter(line: str) -> None:
    story = without_baseline().noted(line).steps(121, 150, tok_s=9_000.0)

    assert story.snapshot.reason is None


def test_recompile_limit_that_costs_no_speed_is_no_matter() -> None:
    assert steady().noted(LIMIT_LINE).steps(121, 150).snapshot.reason is None


def test_conditions_of_a_run_that_is_over_are_not_told() -> None:
    story = spike().exited(code=0)

    assert story.snapshot.reason is None or story.snapshot.reason.slug != "loss_spike"
    assert not [w for w in story.snapshot.warnings if w.slug == "loss_spike"]


def test_next_run_inherits_nothing() -> None:
    story = suspended()
    story.record = type(story.record)(
        id="r-7", name="slammed7", boot=story.record.boot, accepted_bt=story.bt, accepted_wall=T0
    )

    assert story.said(story.record).verdict() is Verdict.LAUNCHING


def test_whole_healthy_day_gives_no_alarm() -> None:
    """Checkpoints, evaluations, an unsteady queue, noisy losses and reconnects of the log."""
    story, size = Story().stepping(2).procs(*"S" * 8), 1000
    for step in range(3, 900):
        noisy = 1.2 + 0.25 * ((step * 7919) % 13 - 6) / 6
        size += 80
        story.after(2.0).log(size=size)
        story.samples(sample(step, loss=noisy, tok_s=21_500.0, queue_min=(step * 31) % 17, queue_max=16)).gpus()
        if step % 200 == 0:
            story.checkpoint(step)
            idle(story, 25)
        if step % 150 == 0:
            story.bulk_down().after(1.5).log(size=size)
        assert story.snapshot.reason is None, (step, story.snapshot.reason)
    assert story.verdict() is Verdict.STEPPING
