"""Signs and the order of trust: each row of the tables by its own samples, and which of two causes is believed."""

from __future__ import annotations

import pytest

from console.reasons import Reason
from console.state.causes import bare, find_causes, first_cause, settled
from console.state.events import LogLine
from console.state.gpumemory import is_held_by_others
from console.state.sign import Sign, Trust
from console.state.signs import SIGNS, sign_of
from console.state.speech import hear
from tests.state.failurelogs import ENDINGS

STACK = 'Traceback (most recent call last):\n  File "/srv/fit.py", line 3, in main\n    step()\n'


def lines_of(text: str) -> list[LogLine]:
    found, offset = [], 0
    for line in text.split("\n"):
        found.append(LogLine(offset, line))
        offset += len(line) + 1
    return found


def first(text: str, *, has_failed: bool = True) -> Reason | None:
    cause = first_cause(lines_of(text), has_failed=has_failed)
    return cause.reason if cause is not None else None


# -- the tables -------------------------------------------------------------------------------------------------------


def _named(each: Sign) -> str:
    return f"{each.reason}-{each.trust.name}"


@pytest.mark.parametrize("row", SIGNS, ids=_named)
def test_a_row_matches_its_samples(row: Sign) -> None:
    assert row.samples or row.trust is not Trust.PROGRAM

    for sample in row.samples:
        body = hear(sample).body
        assert row.says.search(body), sample
        assert row.unless is None or not row.unless.search(body), sample
        assert (found := sign_of(body)) is not None
        assert found.reason is row.reason, sample


@pytest.mark.parametrize("row", SIGNS, ids=_named)
def test_a_row_refuses_what_only_looks_like_it(row: Sign) -> None:
    for line in row.refuses:
        found, _ = settled(find_causes(lines_of(line)), lines_of(line), (), has_failed=False)
        assert row.reason not in [cause.reason for cause in found], line


def test_no_line_that_a_row_matches_lacks_all_of_its_words() -> None:
    bodies = {hear(line).body for ending in ENDINGS for line in ending.log.split("\n")}
    bodies |= {hear(sample).body for row in SIGNS for sample in row.samples}

    for body in bodies:
        for row in SIGNS:
            if row.says.search(body):
                assert any(word in body.lower() for word in row.words), (row.reason, body)


# -- who speaks, and how ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "speaker", "level", "body"),
    [
        ("[rank3]: ValueError: x", "rank 3", "", "ValueError: x"),
        ("3: ValueError: x", "rank 3", "", "ValueError: x"),
        ("[1,3]<stderr>:ValueError: x", "rank 3", "", "ValueError: x"),
        ("(WorkerDict pid=71, ip=10.0.0.1) ValueError: x", "WorkerDict pid=71", "", "ValueError: x"),
        ("[rank2]:[E214 02:11:09.3 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog", "rank 2", "E", "Watchdog"),
        ("E0214 02:11:09.4 71 torch/distributed/x.py:874] failed", "", "E", "failed"),
        ("ERROR:torch.distributed.api:failed", "", "E", "failed"),
        ("2026-02-14 02:11:09,001 - fit - ERROR - failed", "", "E", "failed"),
        ("2026-02-14 02:11:09.123 | ERROR    | __main__:main:31 - failed", "", "E", "failed"),
        ("[2026-02-14 02:11:09,001][fit][ERROR] - failed", "", "E", "failed"),
        ("Feb 14 02:11:09 gpu7 go.sh[71]: failed", "", "", "failed"),
        ("Feb 14 02:11:09 gpu7 kernel: NVRM: Xid", "", "", "NVRM: Xid"),
        ("[Sat Feb 14 02:11:09 2026] failed", "", "", "failed"),
        ("2026-02-14T02:11:09.1Z stderr F failed", "", "", "failed"),
        ("trainer-1  | failed", "", "", "failed"),
        ("gpu7:71:90 [3] misc/x.cc:11 NCCL WARN failed", "rank 3", "W", "failed"),
        ('{"level": "error", "msg": "failed"}', "", "E", "failed"),
        ('time=x level=error msg="failed"', "", "E", "failed"),
        (" 20%|##        | 11/56 [00:02<00:08,  5.02it/s]failed", "", "", "failed"),
        ("torch.OutOfMemoryError: x", "", "", "torch.OutOfMemoryError: x"),
    ],
)
def test_what_stands_around_a_line_is_taken_off(line: str, speaker: str, level: str, body: str) -> None:
    assert hear(line)[:3] == (speaker, level, body)


@pytest.mark.parametrize(
    "line",
    [
        "config: {'a': 'CUDA out of memory'}",
        "on_error: 'CUDA out of memory'",
        "Namespace(a='CUDA out of memory')",
        "--on-error 'CUDA out of memory'",
        "export ON_ERROR='CUDA out of memory'",
    ],
)
def test_settings_are_no_events(line: str) -> None:
    assert hear(line).is_settings
    assert first(line) is None


def test_an_exception_is_no_setting() -> None:
    assert not hear("KeyError: 'hidden'").is_settings
    assert first(STACK + "KeyError: 'hidden'") is Reason.PYTHON_EXCEPTION


# -- the order of trust -----------------------------------------------------------------------------------------------

XID = "NVRM: Xid (PCI:0000:b3:00): 79, pid=71, GPU has fallen off the bus."
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
NCCL = "[rank1]:[E214 02:11:09.3 x.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)"
DIED = "failed (exitcode: -11) local_rank: 3 (pid: 8) of binary: /venv/bin/python"
TERM = "Received 15 death signal, shutting down workers"
PEER = "[rank2]: torch.distributed.DistBackendError: NCCL error: remote process exited"


@pytest.mark.parametrize(
    ("one", "other", "believed"),
    [
        (XID, OOM, Reason.GPU_FELL_OFF_BUS),
        (XID, NCCL, Reason.GPU_FELL_OFF_BUS),
        (OOM, NCCL, Reason.CUDA_OOM),
        (OOM, DIED, Reason.CUDA_OOM),
        (DIED, NCCL, Reason.SEGFAULT),
        (NCCL, "Killed", Reason.NCCL_TIMEOUT),
        (NCCL, PEER, Reason.NCCL_TIMEOUT),
        ("Killed", PEER, Reason.SIGKILL_UNKNOWN),
    ],
)
def test_what_is_trusted_more_wins_in_either_order(one: str, other: str, believed: Reason) -> None:
    assert first(f"{one}\n{other}") is believed
    assert first(f"{other}\n{one}") is believed


def test_equals_are_ordered_by_time() -> None:
    assert first(f"{TERM}\n[rank1]: {OOM}") is Reason.SIGTERM_EXTERNAL
    assert first(f"[rank1]: {OOM}\n{TERM}") is Reason.CUDA_OOM


def test_only_the_root_cause_of_the_launchers_table_counts() -> None:
    table = "Failures:\n[1]:\n  exitcode  : {other} (pid: 4)\nRoot Cause (first observed failure):\n[0]:\n  exitcode  : {root} (pid: 3)"

    assert first(table.format(other=-9, root=-11)) is Reason.SEGFAULT
    assert first(f"{NCCL}\n{table.format(other=-9, root=-6)}") is Reason.NCCL_TIMEOUT


def test_closed_connections_are_named_only_where_nothing_else_is_known() -> None:
    assert first(f"{STACK}ConnectionResetError: [Errno 104] Connection reset by peer") is Reason.PYTHON_EXCEPTION
    assert first(f"{STACK}ConnectionResetError: [Errno 104]\n{NCCL}") is Reason.NCCL_TIMEOUT


# -- handled or not ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", ["halving the batch and retrying", "sample skipped", "recovered after 2 attempts"])
def test_what_was_recovered_from_is_no_cause_of_a_run_that_may_live(after: str) -> None:
    assert first(f"{STACK}{OOM}\n{after}", has_failed=False) is None


def test_error_that_is_only_spoken_of_counts_when_the_run_has_failed_and_nothing_else_speaks() -> None:
    words = "it may be that CUDA out of memory was the end of it"

    assert first(words, has_failed=False) is None
    assert first(words) is Reason.CUDA_OOM
    assert first(f"{words}\n{STACK}KeyError: 'x'") is Reason.PYTHON_EXCEPTION


def test_step_behind_an_error_says_that_it_was_handled_but_one_of_a_dead_run_may_have_been_written_late() -> None:
    lines = lines_of(f"{STACK}KeyError: 'x'\nstep 7 | loss 1.0\nstep 8 | loss 1.0")
    causes = find_causes(lines, (4, 5))

    assert settled(causes, lines, (4, 5), has_failed=True) == ([], [])
    assert settled(causes, lines, (4,), has_failed=False) == ([], [])
    assert settled(causes, lines, (4,), has_failed=True) == (causes, [])


def test_what_lasts_is_kept_apart_when_steps_go_on() -> None:
    lines = lines_of(f"{XID}\nstep 7 | loss 1.0\nstep 8 | loss 1.0")
    causes = find_causes(lines, (1, 2))

    assert settled(causes, lines, (1, 2), has_failed=False) == ([], causes)


def test_what_the_kernel_says_is_not_handled_by_lines_that_go_on() -> None:
    chatter = "\n".join(f"worker {n} waits for its peers" for n in range(30))

    assert first(f"{XID}\n{chatter}", has_failed=False) is Reason.GPU_FELL_OFF_BUS
    assert first(f"{STACK}KeyError: 'x'\n{chatter}", has_failed=False) is None


def test_what_python_ignores_is_no_cause() -> None:
    assert first(f"Exception ignored in: <function f at 0x7f>\n{STACK}OSError: [Errno 9] Bad file descriptor") is None


def test_line_behind_an_exception_may_name_it_better() -> None:
    log = f"{STACK}torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nOSError: [Errno 122] Disk quota exceeded"

    assert first(log) is Reason.DISK_QUOTA


def test_metric_whose_name_ends_in_error_is_no_exception() -> None:
    assert first("MeanSquaredError: 0.0123") is None
    assert first("MeanSquaredError: no predictions") is Reason.PYTHON_EXCEPTION


# -- whose memory -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("(GPU 2; 79.10 GiB total capacity; 411.00 MiB already allocated; 1.12 MiB free; 420.00 MiB reserved in total by PyTorch)", True),
        ("(GPU 2; 79.10 GiB total capacity; 70.00 GiB already allocated; 1.12 GiB free; 77.00 GiB reserved in total by PyTorch)", False),
        ("a total capacity of 79.10 GiB of which 8.12 MiB is free. Process 71 has 79.08 GiB memory in use. Of the allocated memory 77.02 GiB is allocated by PyTorch, and 612.00 MiB is reserved by PyTorch but unallocated.", False),
        ("a total capacity of 139.81 GiB of which 8.12 MiB is free. Process 41 has 131.02 GiB memory in use. Including non-PyTorch memory, this process has 518.00 MiB memory in use.", True),
        ("Tried to allocate 2.00 GiB.", False),
    ],
)  # fmt: skip
def test_memory_that_this_run_does_not_hold_is_held_by_others(text: str, others: bool) -> None:
    assert is_held_by_others(text) is others


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("[rank3]: boom", "boom"),
        ("[default3]:boom", "boom"),
        ("3: boom", "boom"),
        ("rank 3: boom", "boom"),
        ("(RayTrainWorker pid=81) boom", "boom"),
        ("[22:29:33] boom", "[22:29:33] boom"),
        ("22:29:33 boom", "22:29:33 boom"),
        ("[22:29] boom", "[22:29] boom"),
    ],
)
def test_a_line_is_shown_without_its_rank_and_with_its_whole_clock(line: str, shown: str) -> None:
    assert bare(line) == shown
