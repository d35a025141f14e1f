"""Health as stories: stalls that are corroborated, slowness that lasts, NaN, and work that can't be seen."""

from console.model import Severity, Stage, StageState, Verdict
from console.reasons import Exit
from console.state import outcome
from console.state.metrics import CheckpointState
from tests.state.story import LOG, Story, sample


def quiet(story: Story, seconds: float, **gpu: object) -> Story:
    """Nothing but GPU samples, once a second."""
    for _ in range(round(seconds)):
        story.ticks(1).gpus(**gpu)  # type: ignore[arg-type]
    return story


def test_steady_steps_are_stepping() -> None:
    story = Story().stepping(60)

    progress = story.snapshot.progress
    assert story.verdict() is Verdict.STEPPING
    assert progress.usual_step_s == 2.0
    assert progress.stall_budget_s == 60.0
    assert outcome.health_word(story.snapshot) == "ok"
    assert outcome.check_exit_code(story.snapshot) is Exit.OK


def test_silence_within_the_budget_is_no_stall() -> None:
    story = quiet(Story().stepping(60), 58, power_mw=128_000, util=100)

    assert story.verdict() is Verdict.STEPPING


def test_busy_gpus_at_low_power_without_steps_suspect_a_collective() -> None:
    story = quiet(Story().stepping(60), 372, power_mw=128_000, util=100)

    reason = story.snapshot.reason
    assert story.verdict() is Verdict.STALLED
    assert reason is not None
    assert reason.detail == "GPUs 100 % busy at 128 W, usual 612 W · a collective waits?"
    assert reason.facts[0].text == "6m 12s without a step (usual 2.0 s, budget 60 s)"
    assert reason.severity is Severity.WARNING
    assert outcome.check_exit_code(story.snapshot) is Exit.UNHEALTHY


def test_idle_gpus_without_steps_are_a_stall_without_a_guess() -> None:
    story = quiet(Story().stepping(60), 70, power_mw=90_000, util=0)

    assert story.verdict() is Verdict.STALLED
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.detail == "GPUs 0 % busy at 90 W, usual 612 W"


def test_stall_ends_with_the_next_step() -> None:
    story = quiet(Story().stepping(60), 100, power_mw=90_000, util=0)

    story.steps(61, 61)

    assert story.verdict() is Verdict.STEPPING


def test_gpus_that_work_on_while_the_log_is_silent_mean_buffered_output() -> None:
    story = Story().stepping(60).log(size=100)

    quiet(story, 240)

    assert story.verdict() is Verdict.RUNNING
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.slug == "output_buffered"
    assert story.snapshot.reason.detail == "no log output for 4m, but GPUs work at 612 W · output is buffered?"


def test_gpus_that_work_while_the_log_grows_are_given_time_for_an_evaluation() -> None:
    story, size = Story().stepping(60).log(size=100), 100
    for _ in range(200):
        size += 80
        story.ticks(1).gpus().log(size=size)
    assert story.verdict() is Verdict.STEPPING

    for _ in range(110):
        size += 80
        story.ticks(1).gpus().log(size=size)

    assert story.verdict() is Verdict.STALLED


def test_pause_that_the_run_has_come_back_from_before_raises_its_budget() -> None:
    story = Story().stepping(30)
    quiet(story, 50, power_mw=300_000).steps(31, 60)

    quiet(story, 120, power_mw=128_000)

    assert story.snapshot.progress.stall_budget_s is not None
    assert story.snapshot.progress.stall_budget_s > 150
    assert story.verdict() is Verdict.STEPPING


def test_checkpoint_that_is_being_written_is_no_stall() -> None:
    story = Story().stepping(60).checkpoint(60, CheckpointState.STARTED)

    quiet(story, 300, power_mw=90_000, util=0)
    assert story.verdict() is Verdict.STEPPING
    quiet(story, 700, power_mw=90_000, util=0)

    assert story.verdict() is Verdict.STALLED


def test_lines_that_were_flushed_together_teach_their_real_distance() -> None:
    story = Story().launched().cuda()
    for block in range(8):
        story.after(100).samples(*(sample(50 * block + i) for i in range(50))).gpus()

    progress = story.snapshot.progress

    assert progress.usual_step_s == 2.0
    assert progress.stall_budget_s == 1000.0


def test_wait_for_the_second_step_is_no_stall_before_anything_was_learned() -> None:
    story = Story().launched().cuda().steps(1, 2)

    quiet(story, 420, power_mw=100_000, util=0)

    assert story.verdict() is Verdict.STEPPING


def test_stalled_run_says_what_a_restart_would_lose() -> None:
    story = Story().stepping(60).checkpoint(40)

    quiet(story, 200, power_mw=90_000, util=0)

    assert story.snapshot.reason is not None
    assert story.snapshot.reason.safe == "left alone. Last checkpoint: step 40 (20 steps since)."


# -- NaN --------------------------------------------------------------------------------------------------------------


def test_nan_is_told_with_its_first_step_and_the_last_good_one() -> None:
    story = Story().stepping(60).checkpoint(50)

    story.steps(61, 64, loss=None, loss_state="nan")

    progress, reason = story.snapshot.progress, story.snapshot.reason
    assert story.verdict() is Verdict.NAN
    assert (progress.bad_since_step, progress.last_good_step, progress.last_good_loss) == (61, 60, 1.2)
    assert reason is not None
    assert reason.safe == "left alone. Last checkpoint: step 50, before the first bad step."
    assert story.stage(Stage.STEPPING).state is StageState.DONE


def test_finite_loss_after_nan_is_well_again() -> None:
    story = Story().stepping(10).steps(11, 11, loss=None, loss_state="nan")
    assert story.verdict() is Verdict.NAN

    story.steps(12, 12)

    assert story.verdict() is Verdict.STEPPING


# -- slow -------------------------------------------------------------------------------------------------------------


def test_slow_is_called_when_it_lasts_and_names_since_when() -> None:
    story = Story().stepping(2).steps(3, 150)

    story.steps(151, 170, tok_s=12_000.0)
    assert story.verdict() is Verdict.STEPPING
    story.steps(171, 260, tok_s=12_000.0)

    assert story.verdict() is Verdict.SLOW
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.detail.startswith("12.0K for ")
    assert "17 % under baseline" in story.snapshot.reason.detail
    assert "since step 155" in story.snapshot.reason.detail
    story.steps(261, 290)
    assert story.verdict() is Verdict.STEPPING


def test_slow_first_steps_are_warm_up() -> None:
    story = Story().launched().cuda().steps(1, 49, tok_s=2_000.0, every_s=10.0)

    assert story.verdict() is Verdict.STEPPING


def test_steady_rate_is_median_and_deviation_without_warm_up_and_checkpoint_steps() -> None:
    story = Story().stepping(2).steps(3, 50, tok_s=9_000.0)
    story.steps(51, 59, tok_s=21_000.0).checkpoint(59).steps(60, 60, tok_s=4_000.0).steps(61, 69, tok_s=21_400.0)

    rate = story.snapshot.progress.rate

    assert (rate.now, rate.steady, rate.mad, rate.n) == (21_400.0, 21_200.0, 200.0, 18)


def test_queue_says_who_waits() -> None:
    story = Story().stepping(2).steps(3, 20, queue_min=6, queue_max=16)
    queue = story.snapshot.progress.queue
    assert queue is not None
    assert queue.bound == "balanced"

    story.steps(21, 24, queue_min=0, queue_max=16)

    queue = story.snapshot.progress.queue
    assert queue is not None
    assert (queue.bound, queue.lowest, queue.min_ready) == ("targets", 0, 0)


# -- work that can't be seen ------------------------------------------------------------------------------------------


def test_empty_log_while_gpus_work_is_buffered_and_not_stalled() -> None:
    story = Story().launched().cuda().log(state="empty")

    quiet(story, 90)

    assert story.verdict() is Verdict.RUNNING
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.slug == "output_buffered"
    assert story.stage(Stage.STEPPING).state is StageState.ACTIVE
    assert outcome.check_exit_code(story.snapshot) is Exit.UNHEALTHY  # it works, but nobody can see that it steps


def test_empty_log_while_gpus_idle_is_still_a_launch() -> None:
    story = Story().launched().cuda().log(state="empty")

    quiet(story, 90, power_mw=80_000, util=0)

    assert story.verdict() is Verdict.LAUNCHING


def test_log_without_a_known_step_line_is_running_and_never_a_failed_launch() -> None:
    story, size = Story().launched().cuda().log(size=10), 10
    for _ in range(90):
        size += 50
        story.ticks(1).gpus().log(size=size).samples(lines=5)

    assert story.verdict() is Verdict.RUNNING
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.slug == "format_unknown"
    assert story.snapshot.reason.detail == "450 lines, none is a known step line"
    assert story.stage(Stage.STEPPING).state is StageState.ACTIVE


def test_full_disk_of_the_log_is_a_warning_as_long_as_it_lasts_and_the_run_lives() -> None:
    story = Story().stepping(5)

    full = story.log(1000, full=True).snapshot.warnings
    room = story.log(1100, n=100).snapshot.warnings
    gone = story.log(1100, full=True).exited(code=1).snapshot.warnings

    assert [(warning.slug, warning.detail) for warning in full] == [("disk_full", f"no room is left for {LOG}")]
    assert (room, gone) == ((), ())


def test_memory_of_the_run_before_is_no_peak_of_this_one() -> None:
    held = 70 * 1024**3
    story = Story().up().host().gpus(used=held, owner="nobody").killed().gpus(used=held)

    story.cleared().spawned().gpus(used=held, owner="other").gpus(used=8 * 1024**3)

    assert {gpu.peak_bytes for gpu in story.snapshot.gpus.gpus} == {8 * 1024**3}


def test_little_room_on_a_gpu_is_a_warning() -> None:
    story = Story().stepping(5)
    total = 140 * 1024**3

    story.gpus(used=total - 1024**3)

    assert {warning.slug for warning in story.snapshot.warnings} == {"gpu_headroom"}
    assert story.snapshot.warnings[0].detail == "GPU 0 peak 139.0 of 140.0 GiB"
    story.gpus()
    assert story.snapshot.gpus.gpus[0].peak_bytes == total - 1024**3
