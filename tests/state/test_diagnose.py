"""Why a run ended: exit record and log into one reason, the first cause and not its consequences."""

from __future__ import annotations

from typing import Any

import pytest

from console.protocol import ExitRecord, RunRecord
from console.reasons import Reason
from console.state.diagnose import Diagnosis, diagnose
from console.state.events import LogLine
from console.state.training import Training

TRACEBACK = 'Traceback (most recent call last):\n  File "/root/run.py", line 3, in main\n    step()\n'


def lines_of(text: str) -> tuple[LogLine, ...]:
    found, offset = [], 0
    for line in text.split("\n"):
        found.append(LogLine(offset, line))
        offset += len(line) + 1
    return tuple(found)


def why(log: str, steps: Training | None = None, *, record: RunRecord | None = None, **end: Any) -> Diagnosis:
    record = record or RunRecord(id="r-1", state="ended", exit=ExitRecord(**({"oom": "no"} | end)))
    return diagnose(record, lines_of(log) if log else (), steps or Training())


@pytest.mark.parametrize(
    ("log", "end", "reason"),
    [
        ("/srv/go.sh: line 3: /opt/py: Permission denied", {"code": 126}, Reason.EXEC_NOT_PERMITTED),
        ("", {"code": 126}, Reason.EXEC_NOT_PERMITTED),
        ("/srv/go.sh: line 9: deepspeed: command not found", {"code": 127}, Reason.COMMAND_NOT_FOUND),
        ("/srv/go.sh: 9: deepspeed: not found", {"code": 127}, Reason.COMMAND_NOT_FOUND),
        ("env: ‘python9’: No such file or directory", {"code": 127}, Reason.COMMAND_NOT_FOUND),
        ("/srv/go.sh: line 2: /x/y: cannot execute: required file not found", {"code": 126}, Reason.BAD_INTERPRETER),
        ("/srv/go.sh: line 4: syntax error near unexpected token `fi'", {"code": 2}, Reason.SCRIPT_SYNTAX),
        (TRACEBACK + "ValueError: batch of 0", {"code": 1}, Reason.PYTHON_EXCEPTION),
        (TRACEBACK + "my.pkg.Odd", {"code": 1}, Reason.PYTHON_EXCEPTION),
        (TRACEBACK + "ModuleNotFoundError: No module named 'einops'", {"code": 1}, Reason.MISSING_MODULE),
        ("/usr/bin/python3: No module named torch.distributed.run", {"code": 1}, Reason.MISSING_MODULE),
        (TRACEBACK + "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB.", {"code": 1}, Reason.CUDA_OOM),
        (TRACEBACK + "RuntimeError: No CUDA GPUs are available", {"code": 1}, Reason.CUDA_INIT_FAILED),
        ("Segmentation fault (core dumped)", {"code": 139}, Reason.SEGFAULT),
        ("step 4", {"signal": 11}, Reason.SEGFAULT),
        ("  exitcode  : -11 (pid: 31)", {"code": 1}, Reason.SEGFAULT),
        (TRACEBACK + "OSError: [Errno 28] No space left on device: '/ckpt/a.pt'", {"code": 1}, Reason.DISK_FULL),
        (TRACEBACK + "OSError: [Errno 28] No space left on device: '/dev/shm/x'", {"code": 1}, Reason.SHM_EXHAUSTED),
        ("step 4", {"signal": 15}, Reason.SIGTERM_EXTERNAL),
        ("step 4", {"code": 143}, Reason.SIGTERM_EXTERNAL),
        ("W agent.py:71] Received 15 death signal, shutting down workers", {"code": 1}, Reason.SIGTERM_EXTERNAL),
        ("step 4", {"signal": 1}, Reason.SIGHUP),
        ("W agent.py:71] Received 1 death signal, shutting down workers", {"code": 1}, Reason.SIGHUP),
        ("step 4", {"signal": 7}, Reason.SIGBUS),
        ("step 4", {"signal": 4}, Reason.SIGNALLED),
        ("KeyboardInterrupt", {"code": 130}, Reason.USER_INTERRUPT),
        ("loading", {"code": 0}, Reason.EXIT_WITHOUT_STEP),
        ("loading", {"code": 3}, Reason.EXIT_STATUS),
        ("loading", {}, Reason.UNKNOWN),
    ],
)
def test_ends_without_a_step_have_their_reason(log: str, end: dict[str, Any], reason: Reason) -> None:
    assert why(log, **end).reason is reason


# -- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("oom", ["no", "unknown"])
def test_bare_killed_is_never_called_a_lack_of_memory(oom: str) -> None:
    found = why("step 9\nKilled", code=137, oom=oom)

    assert found.reason is Reason.SIGKILL_UNKNOWN


def test_sigkill_says_what_was_checked() -> None:
    assert why("step 9", signal=9).detail == "checked: kernel OOM count unchanged, no stop by an operator"
    assert "can't be seen here" in why("step 9", signal=9, oom="unknown").detail


def test_memory_is_named_with_evidence_only() -> None:
    assert why("step 9", signal=9, oom="proven", oom_detail="oom_kill 3 -> 4").reason is Reason.CGROUP_OOM
    assert why("step 9", signal=9, oom="likely").reason is Reason.HOST_OOM
    # The count rose, but this run ended by itself.
    assert why(TRACEBACK + "ValueError: x", code=1, oom="likely").reason is Reason.PYTHON_EXCEPTION
    # A rank was killed, and torchrun says so.
    assert why("failed (exitcode: -9) local_rank: 4 (pid: 8)", code=1, oom="proven").reason is Reason.CGROUP_OOM


def test_kernels_line_in_the_log_is_evidence() -> None:
    log = "Killed\nMemory cgroup out of memory: Killed process 85 (python) total-vm:5kB"

    assert why(log, code=137, oom="unknown").reason is Reason.CGROUP_OOM


# -- first cause ------------------------------------------------------------------------------------------------------


def test_first_traceback_in_time_beats_what_other_ranks_say_after_it() -> None:
    log = (
        "[rank3]: Traceback (most recent call last):\n"
        "[rank1]: Traceback (most recent call last):\n"
        '[rank3]:   File "/root/a.py", line 2, in f\n'
        '[rank1]:   File "/root/b.py", line 2, in f\n'
        "[rank3]: KeyError: 'hidden'\n"
        "[rank1]: torch.distributed.DistBackendError: NCCL error: remote process exited\n"
        "W api.py:900] Sending process 5 closing signal SIGTERM\n"
        "E api.py:874] failed (exitcode: 1) local_rank: 3 (pid: 7) of binary: /venv/bin/python\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        "train.py FAILED"
    )

    found = why(log, code=1)

    assert found.reason is Reason.PYTHON_EXCEPTION
    assert found.detail == "KeyError: 'hidden'"
    assert [fact.label for fact in found.facts[:2]] == ["log, first cause", "log, last line"]


def test_first_of_a_chain_by_direct_cause_is_the_cause() -> None:
    log = (
        f"{TRACEBACK}OSError: lib.so: undefined symbol\n\n"
        f"The above exception was the direct cause of the following exception:\n\n{TRACEBACK}RuntimeError: failed"
    )

    assert why(log, code=1).detail == "OSError: lib.so: undefined symbol"


def test_exception_that_was_being_handled_is_not_the_cause() -> None:
    log = (
        f"{TRACEBACK}KeyError: 'lr'\n\n"
        f"During handling of the above exception, another exception occurred:\n\n{TRACEBACK}ValueError: no lr in config"
    )

    assert why(log, code=1).detail == "ValueError: no lr in config"


def test_traceback_that_was_followed_by_new_steps_was_handled() -> None:
    log = f"{TRACEBACK}ValueError: a bad sample\nstep 10\nstep 11"
    steps = Training(step=11, last_step_offset=log.index("step 11"))

    found = why(log, steps, code=1)

    assert found.reason is Reason.EXIT_STATUS


def test_error_long_before_the_last_one_was_handled() -> None:
    quiet = "\n".join(f"loading part {n}" for n in range(40))
    log = f"{TRACEBACK}ImportError: flash_attn is not there, going on without\n{quiet}\n{TRACEBACK}ValueError: no data"

    assert why(log, code=1).detail == "ValueError: no data"


def test_logs_traceback_wins_over_status_zero_of_a_pipe() -> None:
    assert why(TRACEBACK + "ValueError: x", code=0).reason is Reason.PYTHON_EXCEPTION
    steps = Training(step=40, total_steps=60_000, last_step_offset=0)
    assert why("step 40\n" + TRACEBACK + "ValueError: x", steps, code=0).reason is Reason.PYTHON_EXCEPTION


def test_error_words_in_settings_are_no_errors() -> None:
    log = "{'skip_on': 'CUDA out of memory handler', 'nccl_timeout_s': 1800}\nerror_rate=0.1 | 0 errors"

    assert why(log.replace("CUDA out of memory", "out of memory"), code=3).reason is Reason.EXIT_STATUS


def test_exec_error_of_the_keeper_is_believed() -> None:
    record = RunRecord(id="r", state="failed", reason="bad_interpreter", detail="/srv/go.sh wants /bin/nosuch")

    found = why("", record=record)

    assert (found.reason, found.detail) == (Reason.BAD_INTERPRETER, "/srv/go.sh wants /bin/nosuch")


# -- ends that are none of a failure ----------------------------------------------------------------------------------


def test_stop_by_an_operator_beats_everything() -> None:
    found = why(TRACEBACK + "KeyboardInterrupt", code=143, by="ops2")

    assert (found.reason, found.detail, found.is_good) == (Reason.STOPPED_BY_OPERATOR, "by ops2", True)


def test_all_steps_and_status_zero_are_completion() -> None:
    steps = Training(step=60_000, total_steps=60_000, last_step_offset=0)

    assert why("step 60000", steps, code=0).is_good
    assert not why("step 60000", steps, code=1).is_good


def test_line_that_says_done_is_completion_and_its_absence_is_not() -> None:
    steps = Training(step=1860, last_step_offset=0)

    assert why("step 1860\ndone training in 66 s", steps, code=0).reason is Reason.COMPLETED
    assert why("step 1860", steps, code=0).reason is Reason.INCOMPLETE_EXIT0
    assert why("step 1860\ntraining not finished", steps, code=0).reason is Reason.INCOMPLETE_EXIT0


def test_end_far_from_the_last_step_is_no_completion_whatever_the_status() -> None:
    steps = Training(step=1860, total_steps=60_000, last_step_offset=0)

    found = why("step 1860\ntraining complete", steps, code=0)

    assert not found.is_good
    assert "1,860 of 60,000 steps" in found.detail


def test_run_started_by_hand_has_no_exit_record_but_may_have_a_cause() -> None:
    found = diagnose(None, lines_of(TRACEBACK + "ValueError: x"), Training())

    assert found.reason is Reason.PYTHON_EXCEPTION
    assert any(fact.text == "none: no keeper started it" for fact in found.facts)


def test_consequence_that_is_written_first_is_still_none_of_a_cause() -> None:
    log = "[rank1]: torch.distributed.DistBackendError: NCCL error: remote process exited\n[rank3]: KeyError: 'hidden'"

    assert why(log, code=1).detail == "KeyError: 'hidden'"
