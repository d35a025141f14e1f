"""Launches as stories: what the host, the GPUs and the log say, and which stages that proves."""

from typing import Any

import pytest
from msgspec.structs import replace

from console import config, protocol
from console.model import LogState, Stage, StageState, Verdict
from console.protocol import CudaRecord, ExitRecord, HostStage, LogIdent, RunRecord, StateEvent
from console.reasons import Exit
from console.state import events
from console.state.snapshot import snapshot
from tests.state.story import BOOT, GIB, LOG, T0, Story, done, gpu, sample

DONE, ACTIVE, PENDING = StageState.DONE, StageState.ACTIVE, StageState.PENDING
FAILED, NOT_REACHED, UNKNOWN, SKIPPED = (
    StageState.FAILED,
    StageState.NOT_REACHED,
    StageState.UNKNOWN,
    StageState.SKIPPED,
)


def test_nothing_is_claimed_before_the_host_speaks() -> None:
    story = Story()
    assert story.verdict() is Verdict.NO_WORD

    story.up()

    assert story.verdict() is Verdict.NO_WORD
    assert story.states == [PENDING] * 5


def test_no_run_at_all_is_idle() -> None:
    story = Story().up().said(None)

    assert story.verdict() is Verdict.IDLE
    assert story.snapshot.run is None
    assert story.outcome("free").exit_code is Exit.OK


def test_healthy_launch_goes_through_five_stages_each_with_its_evidence() -> None:
    story = Story().up().host()
    assert story.verdict() is Verdict.LAUNCHING

    story.journal(
        Stage.KILLING, HostStage(state="active", began_bt=story.bt, evidence="TERM, 14 s of 20 s left"), "killing"
    )
    assert story.snapshot.active_stage is Stage.KILLING
    assert story.stage(Stage.KILLING).evidence == "TERM, 14 s of 20 s left"

    story.killed().cleared().spawned()
    assert story.states == [DONE, DONE, DONE, ACTIVE, PENDING]

    story.cuda()
    assert story.states == [DONE, DONE, DONE, DONE, ACTIVE]
    assert story.outcome("stepping").word == "PENDING"
    assert story.outcome("cuda").exit_code is Exit.OK

    story.after(94.0).steps(1, 2)
    assert story.verdict() is Verdict.STEPPING
    assert [status.evidence for status in story.snapshot.stages] == [
        "2 pids, 574 GiB",
        "3.1 GiB set aside",
        "pid 84933",
        "8/8 contexts",
        "steps 1, 2 seen",
    ]
    assert story.stage(Stage.CUDA).detail == "8/8 GPUs hold a context (nvml pid in tree)"
    assert story.outcome("stepping").exit_code is Exit.OK


def test_durations_are_those_of_the_host() -> None:
    story = Story().stepping()

    took = [status.took_s for status in story.snapshot.stages]

    assert [round(each or 0.0, 2) for each in took] == [11.8, 0.01, 0.8, 112.0, 98.0]
    assert story.snapshot.run is not None
    assert round(story.snapshot.run.launch_s or 0.0, 1) == 222.6


def test_stage_without_the_keepers_proof_is_unknown_not_done() -> None:
    story = Story().up().host()

    story.journal(Stage.CACHE, HostStage(state="done", began_bt=story.bt, ended_bt=story.bt), "cache")

    assert story.stage(Stage.CACHE).state is UNKNOWN
    assert story.stage(Stage.CACHE).why == "the keeper states no proof"


def test_skipped_stages_say_why() -> None:
    story = Story().up().host()

    story.journal(Stage.KILLING, HostStage(state="skipped", why="nothing ran"), "killing")

    assert story.stage(Stage.KILLING).state is SKIPPED
    assert story.stage(Stage.KILLING).why == "nothing ran"


# -- CUDA -------------------------------------------------------------------------------------------------------------


def test_six_of_eight_contexts_name_the_missing_ones() -> None:
    story = Story().launched().after(5).gpus(contexts=6)

    cuda = story.stage(Stage.CUDA)

    assert (cuda.state, cuda.have, cuda.want, cuda.missing) == (ACTIVE, 6, 8, (6, 7))
    assert cuda.evidence == "6/8, not yet: 6, 7"
    assert story.outcome("stepping").where == "cuda 6/8"


def test_contexts_of_the_run_before_prove_nothing() -> None:
    story = Story().up().host().gpus(contexts=8)
    story.killed().gpus(contexts=8).after(1).cleared()
    before_spawn = story.state.gpus.event
    story.spawned()

    assert before_spawn is not None
    story.tell(events.GpusSaid(at=story.at, gpus=before_spawn))

    assert story.stage(Stage.CUDA).state is ACTIVE


def test_deadline_passed_is_a_warning_and_never_a_failure() -> None:
    story = Story().launched().gpus(contexts=6).ticks(301)

    assert story.stage(Stage.CUDA).state is StageState.LATE
    assert story.verdict() is Verdict.LAUNCHING
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.slug == "stage_late"
    assert "GPU 6, 7 hold no context" in story.snapshot.reason.detail
    assert story.outcome("stepping").word == "LATE"
    assert story.outcome("stepping").exit_code is Exit.TIMEOUT

    story.cuda(took_s=1.0)

    assert story.stage(Stage.CUDA).state is DONE


def test_stage_far_beyond_the_longest_of_past_launches_is_late_before_its_deadline_with_both_figures() -> None:
    story = Story().launched().gpus(contexts=6)
    story.tell(events.HistoryKnown(at=story.at, usual_s={Stage.CUDA: 40.0}, longest_s={Stage.CUDA: 50.0}, launches=5))
    assert story.ticks(95).stage(Stage.CUDA).state is ACTIVE

    story.ticks(10)

    assert story.stage(Stage.CUDA).state is StageState.LATE
    assert story.snapshot.reason is not None
    assert "usually 40 s, longest 50 s" in story.snapshot.reason.facts[0].text


def test_quick_launches_of_the_past_make_no_stage_late_within_a_minute() -> None:
    story = Story().launched().gpus(contexts=6)
    story.tell(events.HistoryKnown(at=story.at, usual_s={Stage.CUDA: 1.0}, longest_s={Stage.CUDA: 2.0}, launches=5))

    assert story.ticks(55).stage(Stage.CUDA).state is ACTIVE


def test_no_stage_is_called_late_while_the_link_is_lost() -> None:
    story = Story().launched().gpus(contexts=6).down().ticks(400)

    assert story.stage(Stage.CUDA).state is UNKNOWN

    story.up().host()

    assert story.stage(Stage.CUDA).state is ACTIVE


def test_steps_without_all_contexts_leave_cuda_unknown_and_never_claimed() -> None:
    story = Story().launched().after(5).gpus(contexts=6)

    story.samples(sample(1)).after(2).samples(sample(2))

    assert story.stage(Stage.STEPPING).state is DONE
    assert story.stage(Stage.CUDA).state is UNKNOWN
    assert story.stage(Stage.CUDA).why == "6 of 8 contexts seen, yet steps are made"
    assert story.verdict() is Verdict.STEPPING


def test_contexts_that_are_proved_behind_the_steps_still_count() -> None:
    story = Story().launched().after(5).samples(sample(1)).after(2).samples(sample(2))
    assert story.stage(Stage.CUDA).state is UNKNOWN

    story.gpus(contexts=8)

    assert story.stage(Stage.CUDA).state is DONE


def test_host_without_a_gpu_source_has_cuda_unknown_with_the_reason() -> None:
    story = Story().launched()

    story.host(cuda=CudaRecord(source="none", why="nvidia-smi not found"))

    assert story.stage(Stage.CUDA).state is UNKNOWN
    assert story.stage(Stage.CUDA).why == "not observable: nvidia-smi not found"
    assert story.snapshot.active_stage is Stage.STEPPING


def test_run_that_expects_no_gpu_skips_cuda() -> None:
    story = Story(target=config.Target(gpus=config.Gpus(expected=0))).launched().gpus(contexts=0, count=0)

    assert story.stage(Stage.CUDA).state is SKIPPED


# -- steps ------------------------------------------------------------------------------------------------------------


def test_one_step_is_no_stepping() -> None:
    story = Story().launched().cuda().samples(sample(7), sample(7))

    assert story.stage(Stage.STEPPING).state is ACTIVE


def test_step_line_that_comes_twice_does_not_hide_the_next_one() -> None:
    story = Story().launched().cuda().samples(sample(7), sample(7), sample(8))

    assert story.stage(Stage.STEPPING).evidence == "steps 7, 8 seen"


def test_falling_step_numbers_are_no_stepping() -> None:
    story = Story().launched().cuda().samples(sample(9), sample(8), sample(7))

    assert story.stage(Stage.STEPPING).state is ACTIVE


def test_steps_of_another_log_prove_nothing() -> None:
    story = Story().launched().cuda()

    story.tell(events.SamplesSeen(at=story.at, follow=story.follow_id() + 1, samples=(sample(1), sample(2))))

    assert story.stage(Stage.STEPPING).state is ACTIVE
    assert story.snapshot.progress.step is None


def test_console_opened_late_shows_the_original_times() -> None:
    watched = Story().stepping()
    late = Story().up().after(watched.now - 0.5 + 3600).up()
    late.record = watched.record

    late.said(late.record).gpus().samples(sample(1), sample(2), live=False)  # the head, then the end
    late.samples(sample(4711), sample(4712), live=False)
    assert late.stage(Stage.STEPPING).state is DONE
    assert late.stage(Stage.STEPPING).took_s is None
    [head] = late.effects_of(events.ReadHead)
    assert (head.steps, head.ends) == ((1, 2), (sample(1).end_offset, sample(2).end_offset))
    first = tuple(events.StepTime(step, late.bt - 3600 - 2 * (2 - step)) for step in (1, 2))
    late.tell(events.StepTimesKnown(at=late.at, run=head.run, first=(first[0], first[1])))

    for stage in Stage:
        mine, theirs = late.stage(stage), watched.stage(stage)
        assert mine.state is theirs.state
        assert mine.evidence == theirs.evidence
        assert abs((mine.took_s or 0.0) - (theirs.took_s or 0.0)) < 1.0
    assert late.snapshot.run is not None
    assert late.snapshot.run.launch_s is not None


def test_young_runs_log_is_followed_from_its_start_and_an_old_ones_from_its_end() -> None:
    young = Story().launched().effects_of(events.FollowLog)[0]
    old_story = Story().up().after(4000)
    old_story.record = replace(Story().launched().record)
    old = old_story.said(old_story.record).effects_of(events.FollowLog)[0]

    assert (young.path, young.pid, young.from_start) == (LOG, 84933, True)
    assert old.from_start is False


# -- failures ---------------------------------------------------------------------------------------------------------


def failed_at_spawned() -> Story:
    story = Story().up().host().killed().cleared()
    began = story.bt
    story.after(0.2)
    entry = HostStage(state="failed", began_bt=began, ended_bt=story.bt, why="exit 126, pid 90112", evidence="exit 126")
    story.record = replace(
        story.record,
        stages={**story.record.stages, "spawned": entry},
        log=LogIdent(path=LOG, inode=5512034),
    )
    return story.exited(state="failed", code=126, lived_s=0.2)


def test_program_that_may_not_be_executed_fails_at_spawned_with_the_logs_line() -> None:
    story = failed_at_spawned().gpus(contexts=0, owner="free")

    story.tail("+ cd /root", "/root/run.sh: line 12: /venv/bin/python: Permission denied")

    assert story.states == [DONE, DONE, FAILED, NOT_REACHED, NOT_REACHED]
    assert story.verdict() is Verdict.FAILED
    reason = story.snapshot.reason
    assert reason is not None
    assert reason.slug == "exec_not_permitted"
    assert reason.detail == "/root/run.sh: line 12: /venv/bin/python: Permission denied"
    assert reason.facts[1].text == "/root/run.sh: line 12: /venv/bin/python: Permission denied"
    assert reason.safe == "slammed5 was stopped as planned. Nothing runs, 8/8 GPUs are free."
    assert reason.next == ("chmod +x /venv/bin/python on the host, then restart (r)",)
    outcome = story.outcome("stepping", run_id="r-6")
    assert (outcome.word, outcome.where, outcome.exit_code) == ("FAILED", "spawned", Exit.FAILED_SPAWNED)


def test_exit_while_cuda_waits_fails_at_cuda() -> None:
    story = Story().launched().gpus(contexts=3).after(20).exited(code=1)

    assert story.states == [DONE, DONE, DONE, FAILED, NOT_REACHED]
    assert story.stage(Stage.CUDA).evidence == "exit 1, pid 84933"
    assert story.outcome().exit_code is Exit.FAILED_CUDA


def test_exit_behind_cuda_fails_at_stepping() -> None:
    story = Story().launched().cuda().after(20).exited(code=1)

    assert story.states == [DONE, DONE, DONE, DONE, FAILED]
    assert story.outcome().exit_code is Exit.FAILED_STEPPING


def test_status_zero_without_a_step_is_a_failure() -> None:
    story = Story().launched().after(1).exited(code=0)

    assert story.verdict() is Verdict.FAILED
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.slug == "exit_without_step"
    assert story.outcome().exit_code is Exit.FAILED_CUDA


def test_steps_that_arrive_behind_the_exit_record_correct_the_stage() -> None:
    story = Story().launched().cuda().after(10).exited(code=1)
    assert story.stage(Stage.STEPPING).state is FAILED

    story.samples(sample(1), sample(2))

    assert story.stage(Stage.STEPPING).state is DONE
    assert story.verdict() is Verdict.ENDED
    assert story.outcome().exit_code is Exit.ENDED


def test_survivors_fail_killing_and_nothing_is_started() -> None:
    story = Story().up().host()
    entry = HostStage(state="failed", began_bt=story.bt, ended_bt=story.bt, reason="survivors", why="pid 7 in state D")

    story.journal(Stage.KILLING, entry, "failed").host(reason="survivors", detail="pid 7 in state D")

    assert story.states == [FAILED, NOT_REACHED, NOT_REACHED, NOT_REACHED, NOT_REACHED]
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.slug == "survivors"
    assert story.outcome().exit_code is Exit.FAILED_KILLING


def test_unreadable_log_with_status_zero_is_no_failed_launch() -> None:
    story = Story().launched().cuda().after(400).samples(lines=500).exited(code=0, lived_s=500.0)

    assert story.stage(Stage.STEPPING).state is UNKNOWN
    assert story.verdict() is Verdict.ENDED
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.slug == "format_unknown"


# -- interrupted, restarted, lost -------------------------------------------------------------------------------------


def test_keeper_killed_between_kill_and_spawn_is_interrupted() -> None:
    story = Story().up().host().killed()

    story.host(state="interrupted", keeper_alive=False, alive=False)

    assert story.verdict() is Verdict.INTERRUPTED
    assert story.states == [DONE, NOT_REACHED, NOT_REACHED, NOT_REACHED, NOT_REACHED]
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.detail == "interrupted after killing, nothing runs"
    assert story.outcome().exit_code is Exit.FAILED_CACHE


def test_run_that_outlived_a_restart_lost_on_its_way_is_what_is_shown() -> None:
    """The keeper was killed before it had killed anything: nothing of the old run is over."""
    story = Story().stepping(4)
    old = replace(story.record, alive=True, keeper_alive=True)
    lost = RunRecord(
        id="r-7",
        name="slammed7",
        boot=BOOT,
        operator="ops2",
        state="interrupted",
        alive=False,
        keeper_alive=False,
        replaced_id="r-6",
        accepted_bt=story.bt,
        stages={"killing": HostStage(state="active", began_bt=story.bt, evidence="1 pid")},
    )

    story.said(lost, last=(old,))

    shown = story.snapshot
    assert shown.run is not None
    assert (shown.run.id, shown.run.alive, shown.verdict) == ("r-6", True, Verdict.STEPPING)
    assert shown.lost_restart is not None
    assert (shown.lost_restart.id, shown.lost_restart.stage) == ("r-7", Stage.KILLING)
    [warning] = [each for each in shown.warnings if each.slug == "interrupted"]
    assert "slammed7 by ops2 was to replace this run" in warning.detail
    story.said(lost, last=(replace(old, alive=False, state="ended", exit=ExitRecord(code=0, ended_bt=story.bt)),))
    assert (story.verdict(), story.snapshot.lost_restart) == (Verdict.INTERRUPTED, None)


def test_run_that_outlived_a_restart_lost_on_its_way_is_shown_by_who_watched_that_restart() -> None:
    """The older run is told of once, with the restart's first word: nothing about it has changed since."""
    story = Story().stepping(4)
    old = replace(story.record, alive=True, keeper_alive=False)
    restart = RunRecord(
        id="r-7",
        name="slammed7",
        boot=BOOT,
        state="killing",
        alive=False,
        keeper_alive=True,
        replaced_id="r-6",
        accepted_bt=story.bt,
        stages={"killing": HostStage(state="active", began_bt=story.bt, evidence="1 pid")},
    )
    story.said(restart, last=(old,))
    assert story.verdict() is Verdict.LAUNCHING

    story.said(replace(restart, state="interrupted", keeper_alive=False))

    shown = story.snapshot
    assert shown.run is not None
    assert (shown.run.id, shown.run.alive) == ("r-6", True)
    assert shown.lost_restart is not None
    assert shown.lost_restart.id == "r-7"


def test_who_shares_a_gpu_with_the_run_is_a_warning_as_long_as_it_lasts() -> None:
    story = Story().stepping(4)
    sleep = protocol.WireHolder(pid=84, bytes=5 * GIB, name="sleep", user="root", seen=True)
    for others in ((sleep,), (replace(sleep, bytes=100 << 20),), (replace(sleep, seen=False, name="", user=""),), ()):
        gpus = (gpu(3, others=others),)
        story.tell(events.GpusSaid(at=story.at, gpus=protocol.GpusEvent(bt=story.bt, source="nvml", gpus=gpus)))

        details = [each.detail for each in story.snapshot.warnings if each.slug == "gpu_memory_foreign"]
        assert details == (["GPU 3: pid 84 (sleep, root) holds 5.0 GiB"] if others == (sleep,) else [])


def test_keeper_killed_while_clearing_leaves_that_stage_unknown() -> None:
    story = Story().up().host().killed().journal(Stage.CACHE, HostStage(state="active", began_bt=60_000.0), "cache")

    story.host(keeper_alive=False, alive=False)

    assert story.verdict() is Verdict.INTERRUPTED
    assert story.stage(Stage.CACHE).state is UNKNOWN
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.detail == "interrupted while clearing the cache, nothing runs"


def test_keeper_lost_while_stepping_is_a_warning_and_the_run_goes_on() -> None:
    story = Story().stepping(20)

    story.host(keeper_alive=False)

    assert story.verdict() is Verdict.STEPPING
    assert [warning.slug for warning in story.snapshot.warnings] == ["keeper_lost"]


def test_run_that_died_unseen_is_not_called_success() -> None:
    story = Story().stepping(20)

    story.host(keeper_alive=False, alive=False, main_alive=False)

    assert story.verdict() is Verdict.ENDED
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.slug == "unknown"
    assert story.outcome().exit_code is Exit.ENDED


def test_other_boot_id_says_the_host_restarted_and_not_exited() -> None:
    story = Story().stepping(20).down().after(60)

    story.up(boot="other/18").said(story.record)

    assert story.verdict() is Verdict.HOST_RESTARTED
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.detail == "slammed6 is gone, it did not exit by itself"
    assert story.outcome().exit_code is Exit.ENDED


# -- stop and replacement ---------------------------------------------------------------------------------------------


def test_stop_of_a_live_run_is_killing_once_more() -> None:
    story = Story().stepping(20)

    story.host(stopping="ops2")
    assert story.snapshot.active_stage is Stage.KILLING
    assert story.snapshot.run is not None
    assert story.snapshot.run.stopping_by == "ops2"
    story.after(4.2).exited(state="stopped", code=143, by="ops2")

    assert story.verdict() is Verdict.STOPPED
    assert story.stage(Stage.KILLING).evidence == "all gone"
    assert abs((story.stage(Stage.KILLING).took_s or 0) - 4.2) < 0.1
    assert story.snapshot.reason is None
    assert story.outcome("exit").exit_code is Exit.OK
    assert story.outcome("stepping").exit_code is Exit.REPLACED


def test_stop_is_over_when_all_are_gone_and_not_with_the_main_process() -> None:
    story = Story().stepping(20).host(stopping="ops2")
    end = ExitRecord(signal=15, ended_bt=story.bt, by="ops2", stragglers=("python (pid 9)",))

    story.host(exit=end, state="stopped", main_alive=False)
    assert story.stage(Stage.KILLING).state is ACTIVE
    story.after(2).host(exit=replace(end, all_gone=True), alive=False)

    assert story.verdict() is Verdict.STOPPED
    assert story.stage(Stage.KILLING).state is DONE


def test_stop_that_was_through_between_two_looks_is_told_by_what_it_proved() -> None:
    nothing_ran = HostStage(state="skipped", began_bt=100.0, ended_bt=100.0, why="nothing ran")
    story = Story().up().host().journal(Stage.KILLING, nothing_ran, "killing").cleared().spawned().cuda().steps(1, 20)
    stages = {**story.record.stages, "killing": done(story.bt, 0.3, "1 pid, 2 GiB", "1 pid gone, 2 GiB freed")}

    story.after(0.5).exited(state="stopped", signal=15, by="ops2", all_gone=True)
    story.after(0.1).host(stages=stages, launch_killing=nothing_ran, keeper_alive=False)

    killing = story.stage(Stage.KILLING)
    assert (killing.state, killing.detail) == (DONE, "1 pid gone, 2 GiB freed")
    assert killing.took_s == pytest.approx(0.3)
    assert (story.verdict(), story.state.warnings) == (Verdict.STOPPED, ())
    assert story.outcome("exit").exit_code is Exit.OK


def test_stop_that_is_given_up_leaves_the_run_stepping() -> None:
    story = Story().stepping(20).host(stopping="ops2")

    story.host(stopping=None)

    assert story.verdict() is Verdict.STEPPING
    assert story.stage(Stage.KILLING).evidence == "2 pids, 574 GiB"


def test_stop_while_loading_is_no_failure() -> None:
    story = Story().launched().gpus(contexts=2).host(stopping="ops1")

    story.after(3).exited(state="stopped", signal=15, by="ops1")

    assert story.verdict() is Verdict.STOPPED
    assert story.stage(Stage.CUDA).state is NOT_REACHED


def test_another_run_takes_over_the_screen_and_forgets_the_old_ones_steps() -> None:
    story = Story().stepping(20)
    old = story.follow_id()

    story.record = RunRecord(id="r-7", name="slammed7", state="killing", keeper_alive=True, accepted_bt=story.bt)
    story.said(story.record)

    assert story.effects_of(events.StopFollowing)[-1].follow == old
    assert story.snapshot.run is not None
    assert story.snapshot.run.name == "slammed7"
    assert story.snapshot.progress.step is None
    assert story.stage(Stage.STEPPING).state is PENDING
    assert story.outcome(run_id="r-6").exit_code is Exit.REPLACED


def test_run_that_was_just_accepted_is_waited_for_although_the_old_one_is_still_shown() -> None:
    story = Story().stepping(20)

    outcome = story.outcome(run_id="r-7", since=story.at)

    assert (outcome.word, outcome.settled) == ("PENDING", False)


def test_refused_request_touches_nothing_on_the_screen() -> None:
    story = Story().stepping(20)
    refused = RunRecord(id="r-7", name="slammed7", state="refused", reason="plan_changed", accepted_bt=story.bt)

    story.said(refused, last=(story.record,))

    assert story.verdict() is Verdict.STEPPING


# -- started by hand --------------------------------------------------------------------------------------------------


def test_hand_started_run_has_its_first_three_stages_unknown() -> None:
    story = Story().up().hand().after(1).gpus()

    assert story.states[:3] == [UNKNOWN] * 3
    assert story.stage(Stage.SPAWNED).why == "started by hand"
    assert story.stage(Stage.CUDA).state is DONE
    assert [warning.slug for warning in story.snapshot.warnings] == ["dies_at_logout"]


def test_old_steps_in_a_hand_started_runs_log_prove_nothing_but_new_ones_do() -> None:
    story = Story().up().hand().after(1).gpus()

    story.samples(sample(100), sample(101), live=False)
    assert story.stage(Stage.STEPPING).state is ACTIVE
    assert story.verdict() is Verdict.RUNNING
    story.after(2).samples(sample(102))

    assert story.stage(Stage.STEPPING).state is DONE
    assert story.verdict() is Verdict.STEPPING


def test_hand_started_run_that_is_gone_says_that_its_exit_status_is_not_known() -> None:
    story = Story().up().hand().after(1).gpus().samples(sample(1)).after(2).samples(sample(2))

    story.after(5).said(None)

    assert story.verdict() is Verdict.ENDED
    assert story.snapshot.reason is not None
    assert story.snapshot.reason.slug == "unknown"
    assert "no keeper started it" in story.snapshot.reason.facts[0].text


def test_stop_of_a_hand_started_run_is_told_though_it_came_and_was_through_between_two_looks() -> None:
    story = Story().up().hand().after(1).gpus()
    entry = done(story.bt, 0.3, "9 pids", "9 pids gone")

    for _ in range(2):  # what is told again changes nothing
        story.after(1).said(None, last=(stop_record(story, state="stopped", stages={"killing": entry}),))

    assert story.verdict() is Verdict.STOPPED
    assert (story.stage(Stage.KILLING).state, story.stage(Stage.KILLING).evidence) == (DONE, "9 pids")
    assert story.state.warnings == ()


def stop_record(story: Story, **fields: Any) -> RunRecord:
    known: dict[str, Any] = {"state": "killing", "operator": "ops1", "accepted_bt": story.bt, "keeper_alive": True}
    return RunRecord(id="r-9", action="stop", **(known | fields))


def test_stop_of_a_hand_started_run_is_told_by_the_stops_own_record() -> None:
    story = Story().up().hand().after(1).gpus()
    stop = stop_record(story)
    began = HostStage(state="active", began_bt=story.bt, evidence="TERM, 20 s of 20 s left")

    story.after(1).hand(age_s=8162.0, last=(replace(stop, stages={"killing": began}),))
    assert story.verdict() is Verdict.LAUNCHING
    assert story.snapshot.active_stage is Stage.KILLING
    assert story.stage(Stage.KILLING).evidence == "TERM, 20 s of 20 s left"
    story.after(2).said(None, last=(replace(stop, stages={"killing": began}),))
    assert story.stage(Stage.KILLING).state is ACTIVE
    entry = done(began.began_bt or 0.0, 3.0, "9 pids", "9 pids gone")
    story.said(None, last=(replace(stop, state="stopped", stages={"killing": entry}, keeper_alive=False),))

    assert story.verdict() is Verdict.STOPPED
    assert (story.stage(Stage.KILLING).state, story.stage(Stage.KILLING).evidence) == (DONE, "9 pids")
    assert story.snapshot.run is not None
    assert story.snapshot.run.exit is not None
    assert story.snapshot.run.exit.by == "ops1"
    story.gpus(contexts=0, owner="free")
    assert story.outcome("free").exit_code is Exit.OK
    assert story.effects_of(events.RingBell) == []


def test_stop_is_over_once_the_keeper_has_told_what_was_freed() -> None:
    """The exit record comes first; it tells nothing of the GPUs."""
    story = Story().stepping(4).exited(state="stopped", code=143, by="ops1").gpus(contexts=0, owner="free")
    assert story.verdict() is Verdict.STOPPED
    assert story.outcome("free").outcome == "pending"
    assert story.outcome("exit").exit_code is Exit.OK

    story.journal(Stage.KILLING, done(story.bt, 3.0, "9 pids", "9 pids gone, 708 GiB freed"), "stopped")
    story.host(keeper_alive=False)

    assert story.stage(Stage.KILLING).detail == "9 pids gone, 708 GiB freed"
    assert story.outcome("free").exit_code is Exit.OK


def test_keeper_that_never_tells_what_was_freed_is_not_waited_for_for_ever() -> None:
    story = Story().stepping(4).exited(state="stopped", code=143, by="ops1").gpus(contexts=0, owner="free")

    story.after(70).gpus(contexts=0, owner="free")

    assert story.outcome("free").exit_code is Exit.OK


def test_stop_that_fails_leaves_the_hand_started_run_as_it_was() -> None:
    story = Story().up().hand().after(1).gpus().samples(sample(1)).after(2).samples(sample(2))
    stop = stop_record(story)
    story.after(1).hand(last=(stop,))

    story.after(90).hand(last=(replace(stop, state="failed", keeper_alive=False),)).gpus()

    assert story.stage(Stage.KILLING).state is UNKNOWN
    assert story.snapshot.active_stage is None


def test_stop_of_a_run_without_a_keeper_is_no_failure() -> None:
    story = Story().stepping(20).host(keeper_alive=False)
    stop = stop_record(story, replaced_id="r-6", state="stopped", keeper_alive=False)

    story.record = replace(story.record, alive=False, main_alive=False)
    story.after(3).said(story.record, last=(stop,))

    assert story.verdict() is Verdict.STOPPED


# -- the link ---------------------------------------------------------------------------------------------------------


def test_lost_link_makes_the_going_on_unknown_and_keeps_what_was_proved() -> None:
    story = Story().stepping(20)
    last = story.now

    story.down().after(42)

    snapshot = story.snapshot
    assert snapshot.verdict is Verdict.LINK_LOST
    assert snapshot.last_known is Verdict.STEPPING
    assert story.states == [DONE, DONE, DONE, DONE, UNKNOWN]
    assert story.stage(Stage.STEPPING).evidence == "was at step 20"
    assert story.stage(Stage.STEPPING).why == "42 s old"
    assert snapshot.progress.rate.now is None
    assert snapshot.run is not None
    assert snapshot.run.alive is None
    assert snapshot.ages.link == story.now - last
    assert story.outcome().settled is False
    assert story.outcome().exit_code is Exit.LINK


def test_link_that_is_back_claims_nothing_before_the_host_has_spoken() -> None:
    story = Story().stepping(20).down().after(42)

    story.up()
    assert story.verdict() is Verdict.NO_WORD
    assert story.stage(Stage.STEPPING).state is UNKNOWN
    story.said(story.record)

    assert story.verdict() is Verdict.STEPPING


def test_refused_login_ends_the_waiting() -> None:
    story = Story().down("login_refused", retry_in_s=None)

    assert story.outcome().settled
    assert story.outcome().exit_code is Exit.LINK
    assert Story().down("container_stopped", retry_in_s=None).outcome().exit_code is Exit.ENTRY


def test_steps_written_while_the_link_was_away_have_no_time_of_their_own() -> None:
    story = Story().stepping(20).down().after(120).up().said(story_record := Story().stepping(20).record)

    story.log(size=2000, n=2000).samples(*(sample(step) for step in range(21, 80)))

    assert story_record.id == "r-6"
    assert story.snapshot.progress.step == 79
    assert story.snapshot.progress.last_step_at is None
    assert story.state.training.gaps[-1].took_s == 2.0


def test_late_word_of_the_host_does_not_turn_time_back() -> None:
    story = Story().launched()
    old = replace(story.record, state="killing", stages={})

    story.tell(events.HostSaid(at=story.at, state=StateEvent(bt=story.bt - 5, wall=story.at, run=old)))

    assert story.stage(Stage.SPAWNED).state is DONE


def test_nonsense_in_the_journal_changes_nothing_and_is_told() -> None:
    story = Story().launched()
    before = story.states

    story.journal(Stage.KILLING, HostStage(state="active", began_bt=story.bt), "running")
    story.journal(Stage.CACHE, HostStage(state="frobnicated"), "running")

    assert story.states == before
    assert [warning.slug for warning in story.snapshot.warnings] == ["protocol", "protocol"]


def test_recorded_exit_is_not_taken_back() -> None:
    story = Story().launched().exited(code=1)

    story.host(exit=None, state="running", alive=True)

    assert story.verdict() is Verdict.FAILED
    assert story.snapshot.warnings[0].slug == "protocol"


# -- the bell ---------------------------------------------------------------------------------------------------------


def test_bell_rings_once_for_a_failure_that_happens_while_we_watch() -> None:
    story = Story().launched().gpus(contexts=3)

    story.exited(code=1).ticks(5)

    [bell] = story.effects_of(events.RingBell)
    assert bell.title == "ct200 slammed6 FAILED cuda"


def test_bell_does_not_ring_for_what_had_failed_before_we_came() -> None:
    story = Story().up()
    story.record = Story().launched().exited(code=1).record

    story.said(story.record).ticks(5)

    assert story.verdict() is Verdict.FAILED
    assert story.effects_of(events.RingBell) == []


def test_bell_rings_for_a_failure_during_a_lost_link_once_it_is_known() -> None:
    story = Story().stepping(20).down().after(60).up()
    assert story.effects_of(events.RingBell) == []

    story.exited(signal=9)

    assert len(story.effects_of(events.RingBell)) == 1


def test_log_that_is_not_there_yet_is_told_as_such() -> None:
    story = Story().launched()

    story.log(state="missing")

    assert story.snapshot.log.state is LogState.MISSING


def test_exit_with_stragglers_names_them() -> None:
    story = Story().stepping(20)

    story.host(exit=ExitRecord(code=1, ended_bt=story.bt, stragglers=("tensorboard (pid 7)",)), state="running")

    assert story.verdict() is Verdict.ENDED
    assert story.snapshot.reason is not None
    assert any("tensorboard" in fact.text for fact in story.snapshot.reason.facts)


def test_steps_from_before_us_that_the_flight_recorder_dates_are_as_good_as_watched() -> None:
    story = Story().launched().cuda().after(500)
    dated = tuple(replace(sample(step), at=story.at - 400 + 2 * step) for step in range(1, 20))

    story.tell(events.SamplesSeen(at=story.at, follow=story.follow_id(), samples=dated, live=False, dated=True))

    progress = story.snapshot.progress
    assert (progress.first_step_at, progress.last_step_at) == (story.at - 398, story.at - 362)
    assert progress.usual_step_s == 2.0


def test_steps_that_nobody_noted_have_no_time() -> None:
    """The keeper was lost before, or the log was truncated: nobody knows when these two were written."""
    story = Story().launched().cuda().after(500)
    dated = (replace(sample(1), at=story.at - 400), replace(sample(2), at=story.at - 398))
    story.tell(events.SamplesSeen(at=story.at, follow=story.follow_id(), samples=dated, live=False, dated=True))
    [ask] = story.effects_of(events.ReadHead)

    story.tell(events.StepTimesKnown(at=story.at, run=ask.run))

    assert story.stage(Stage.STEPPING).state is DONE
    assert story.stage(Stage.STEPPING).took_s is None


def test_first_steps_that_are_read_behind_a_part_that_is_not_are_not_taken_for_the_runs_first_ones() -> None:
    """A log whose start is longer than what is read of it: its newest steps say nothing of how the launch went."""
    story = Story().launched().cuda().after(500)
    dated = tuple(replace(sample(step), at=story.at - 400 + 2 * step) for step in range(81, 100))

    story.tell(
        events.SamplesSeen(at=story.at, follow=story.follow_id(), samples=dated, live=False, dated=True, after_gap=True)
    )
    story.steps(100, 101)

    assert story.stage(Stage.STEPPING).state is DONE
    assert story.stage(Stage.STEPPING).took_s is None
    assert not story.effects_of(events.ReadHead)
    progress = story.snapshot.progress
    assert (progress.step, progress.first_step_at) == (101, None)
    assert progress.usual_step_s == 2.0


def test_steps_that_are_the_first_by_their_number_are_so_behind_a_part_that_is_not_read() -> None:
    story = Story().launched().cuda().after(500)
    dated = tuple(replace(sample(step), at=story.at - 400 + 2 * step) for step in range(1, 20))

    story.tell(
        events.SamplesSeen(at=story.at, follow=story.follow_id(), samples=dated, live=False, dated=True, after_gap=True)
    )

    assert story.snapshot.progress.first_step_at == story.at - 398
    [ask] = story.effects_of(events.ReadHead)
    assert ask.steps == (1, 2)


def test_contexts_that_were_there_when_we_came_have_no_time_of_their_own() -> None:
    watched = Story().launched().gpus(contexts=3).after(7).gpus()
    late = Story().launched().after(7200).gpus()
    back = Story().launched().gpus(contexts=3).down().after(7200).up().said(late.record).gpus()

    assert watched.stage(Stage.CUDA).took_s is not None
    for story in (late, back):
        assert story.stage(Stage.CUDA).state is DONE
        assert story.stage(Stage.CUDA).took_s is None


def test_stages_times_become_those_that_the_keeper_noted() -> None:
    story = Story().launched().gpus(contexts=3).after(7).gpus()
    spawned_bt = story.record.stages[str(Stage.SPAWNED)].ended_bt
    assert spawned_bt is not None
    assert not story.stage(Stage.CUDA).noted
    story.host(cuda=CudaRecord(contexts=tuple(range(8)), expected=8, complete_bt=spawned_bt + 6.5))
    story.steps(1, 2)
    [ask] = story.effects_of(events.ReadHead)
    assert not story.stage(Stage.STEPPING).noted
    times = (events.StepTime(1, spawned_bt + 8.0), events.StepTime(2, spawned_bt + 9.25))

    story.tell(events.StepTimesKnown(at=story.at, run=ask.run, first=times))

    assert (story.stage(Stage.CUDA).took_s, story.stage(Stage.STEPPING).took_s) == (6.5, 2.75)
    assert all(story.stage(stage).noted for stage in Stage)


# -- clocks -----------------------------------------------------------------------------------------------------------


def test_clock_that_jumps_by_an_hour_leaves_durations_and_ages_alone() -> None:
    story = Story().stepping(20)
    before = [(status.took_s, status.began_at) for status in story.snapshot.stages]

    for jump in (3600.0, -3600.0):
        story.tell(events.LinkRtt(at=story.at, rtt_s=0.02, bt=story.bt, wall=story.at + jump))

        after = [(status.took_s, status.began_at) for status in story.snapshot.stages]
        assert [round(a[1] or 0.0) for a in after] == [round(b[1] or 0.0) for b in before]
        assert [a[0] for a in after] == [b[0] for b in before]
        assert story.snapshot.link.clock_offset_s is not None
        assert abs(story.snapshot.link.clock_offset_s - jump) < 0.1
        assert story.snapshot.ages.link == 0.0


def test_snapshot_asked_for_in_the_past_has_no_negative_age() -> None:
    story = Story().stepping(20)

    seen = snapshot(story.state, story.at - 3600)

    assert seen.at == story.at
    assert seen.ages.link == 0.0


def test_step_that_seems_written_before_its_run_was_accepted_gives_no_negative_launch() -> None:
    story = Story().launched().cuda().samples(sample(1), sample(2), live=False)
    times = (events.StepTime(1, story.bt - 90_000), events.StepTime(2, story.bt - 80_000))

    story.tell(events.StepTimesKnown(at=story.at, run="r-6", first=times))

    assert story.snapshot.run is not None
    assert story.snapshot.run.launch_s == 0.0


def test_times_of_a_run_from_before_the_host_restarted_are_those_of_its_wall_clock() -> None:
    story = Story().stepping(20).down().after(600)
    story.tell(events.LinkWentUp(at=story.at, bt=30.0, wall=story.at, boot="other/18", rtt_s=0.0))

    story.tell(events.HostSaid(at=story.at, state=StateEvent(bt=30.0, wall=story.at, run=story.record)))

    assert story.snapshot.run is not None
    assert story.snapshot.run.accepted_at == T0


def test_hand_started_run_is_spoken_of_although_a_straggler_of_the_last_own_run_lives() -> None:
    story = Story().stepping(20)
    end = ExitRecord(code=1, ended_bt=story.bt, stragglers=("tensorboard (pid 7)",))
    story.record = replace(story.record, exit=end, state="running", alive=True)
    story.hand()
    hand = story.state.host.said

    assert hand is not None
    story.after(1).said(story.record, hand=hand.hand)

    assert story.snapshot.run is not None
    assert story.snapshot.run.by_hand
