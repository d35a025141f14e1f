"""The agent's manners: it answers, bears nonsense, and never outlives its console."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from console import protocol
from console.host import files, recorder
from tests.host.agentprocess import Agent, awaited, pythons


def spec(**changes: object) -> protocol.RunSpec:
    base = {"target": "t", "name": "run{n}", "command": ("/bin/true",), "cwd": "/tmp", "log": "/tmp/none/{name}.log"}
    return protocol.RunSpec(**{**base, **changes})  # type: ignore[arg-type]


def test_ping_tells_both_clocks_of_the_host() -> None:
    with Agent() as agent:
        before_bt, before = time.clock_gettime(time.CLOCK_BOOTTIME), time.time()
        reply = agent.ask(protocol.Ping(id=7))

        assert reply.ok
        assert before_bt <= reply.data["bt"] <= time.clock_gettime(time.CLOCK_BOOTTIME)
        assert before <= reply.data["wall"] <= time.time()


def test_agent_ends_with_its_stdin() -> None:
    with Agent() as agent:
        assert agent.process.stdin is not None
        agent.process.stdin.close()

        assert agent.process.wait(20) == 0


def test_bye_ends_the_agent_at_once() -> None:
    with Agent() as agent:
        agent.send(protocol.Bye())

        assert agent.process.wait(20) == 0


def test_agent_ends_when_the_lease_runs_out(tmp_path: Path) -> None:
    with Agent() as agent:
        agent.watch(spec(), tmp_path, lease_s=0.5)

        assert agent.process.wait(20) == 0, "it has 30 s without a Watch"


def test_every_line_renews_the_lease(tmp_path: Path) -> None:
    # Where a busy machine held one of us up for so long that the lease may have run out, the series says nothing.
    awaited(lambda: _is_renewed_by_every_line(tmp_path, 1.0), what="a series of lines without a long pause")


def _is_renewed_by_every_line(state: Path, lease_s: float) -> bool:
    """Write lines for longer than the lease; False where there was a pause of half of it."""
    longest_s = 0.0
    with Agent() as agent:
        agent.watch(spec(), state, lease_s=lease_s)
        began = heard = time.monotonic()
        while heard - began < 1.5 * lease_s and longest_s < lease_s / 2:
            asked = agent.next_id()
            with contextlib.suppress(BrokenPipeError):
                agent.send(protocol.Ping(id=asked))
            awaited(lambda: max(agent.replies, default=0) == asked or agent.process.poll() is not None)  # noqa: B023
            time_passes(0.1)
            longest_s, heard = max(longest_s, time.monotonic() - heard), time.monotonic()
        if longest_s >= lease_s / 2:
            return False

        assert agent.process.poll() is None
        return True


def test_a_console_that_stops_reading_does_not_keep_the_agent_alive(tmp_path: Path) -> None:
    with Agent() as agent:
        agent.pause_reading()
        agent.send(protocol.Watch(id=1, spec=spec(), state_dir=str(tmp_path), interval_s=0.1, lease_s=1.0))

        assert agent.process.wait(20) == 0


def test_a_wedged_agent_is_ended_by_the_kernels_timer(tmp_path: Path) -> None:
    # A stopped process stands for one that hangs in /proc: its own lease check no longer runs.
    with Agent() as agent:
        agent.watch(spec(), tmp_path, lease_s=0.5)

        status = Path(f"/proc/{agent.process.pid}/status").read_text()
        mask = int(next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1], 16)

        assert not mask >> (signal.SIGALRM - 1) & 1


def test_garbled_and_unknown_lines_are_named_and_ignored() -> None:
    with Agent() as agent:
        agent.write(b"this is no json\n[1,2]\n\xff\xfe\n" + b'{"op":"reboot","id":3}\n')
        agent.write(b"[" * 100_000 + b"\n")

        assert agent.ask(protocol.Ping(id=4)).ok
        assert [warning.reason for warning in agent.of(protocol.Warn)] == ["protocol"] * 5


def test_an_endless_line_is_dropped_without_being_kept() -> None:
    with Agent() as agent:
        for _ in range(80):
            agent.write(b"x" * 65536)
        agent.write(b'\n{"op":"ping","id":1}\n')

        assert awaited(lambda: agent.replies.get(1), 60).ok
        assert len(agent.of(protocol.Warn)) == 1
        assert resident_bytes(agent.process.pid) < 40 << 20


def test_an_operation_that_lacks_a_field_is_refused_by_name() -> None:
    with Agent() as agent:
        agent.send({"op": "log_read", "id": 5})

        reply = awaited(lambda: agent.replies.get(5))
        assert reply.error is not None
        assert reply.error.reason == "protocol"
        assert "path" in reply.error.detail


def test_telemetry_is_dropped_and_replies_are_kept_while_the_console_is_behind(tmp_path: Path) -> None:
    with Agent() as agent:
        agent.watch(spec(match=("nothing_like_it.py",)), tmp_path, interval_s=0.1)
        agent.pause_reading()
        ids = [agent.next_id() for _ in range(3000)]
        agent.write(b"".join(b'{"op":"ping","id":%d}\n' % each for each in ids))
        agent.go_on_reading()

        awaited(lambda: set(ids) <= set(agent.replies), 60, "all replies")


@pytest.mark.parametrize("python", pythons())
def test_a_colleagues_pkill_does_not_see_the_agent(python: str) -> None:
    with Agent(python) as agent:
        assert Path(f"/proc/{agent.process.pid}/comm").read_text() == "dflash-agent\n"

        found = subprocess.run(["pgrep", "-f", "python"], capture_output=True, text=True, check=False).stdout.split()
        assert str(agent.process.pid) not in found


def test_agent_that_was_frozen_beyond_its_lease_obeys_nothing_that_was_asked_before(tmp_path: Path) -> None:
    """A snapshot backup froze the container when the request was in the pipe; an hour later nobody waits for it."""
    with Agent() as agent:
        agent.watch(spec(), tmp_path, lease_s=1.5)
        os.kill(agent.process.pid, signal.SIGSTOP)
        asked = protocol.Execute(
            id=agent.next_id(),
            request="r-1",
            action="restart",
            spec=spec(),
            name="run1",
            log_path=str(tmp_path / "run1.log"),
            replaces=(),
            replaced_id=None,
            operator="anna",
            origin="jump",
            state_dir=str(tmp_path),
        )
        with contextlib.suppress(BrokenPipeError):  # a busy machine may have frozen us, and the lease be over
            agent.send(asked)
        time_passes(2.0)
        os.kill(agent.process.pid, signal.SIGCONT)

        agent.process.wait(20)

    assert list(tmp_path.glob("targets/*/runs/*")) == []


def test_nothing_is_left_of_an_agent_that_was_killed(tmp_path: Path) -> None:
    with Agent() as agent:
        agent.watch(spec(), tmp_path)
        awaited(lambda: agent.of(protocol.GpusEvent), 60)
        children = awaited(lambda: children_of(agent.process.pid))

        agent.process.kill()
        agent.process.wait(20)

        awaited(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), 60, "the sampler's end")


def time_passes(seconds: float) -> None:
    over = time.monotonic() + seconds
    awaited(lambda: time.monotonic() > over)


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_the_bulk_agent_that_watches_nothing_tells_a_flight_recorder_too(tmp_path: Path) -> None:
    directory = Path(files.run_dir(str(tmp_path), "t", "20260101-000000-ab12"))
    directory.mkdir(parents=True)
    line = '{"k":"log","bt":1.0,"wall":2.0,"size":3}\n'
    (directory / recorder.NAME).write_text(line * 4)
    with Agent() as agent:
        asked = {"run": directory.name, "state_dir": str(tmp_path)}
        told = agent.ask(protocol.Recorder(id=1, target="t", **asked))
        nobody = agent.ask(protocol.Recorder(id=2, **asked))

    assert [each["size"] for each in told.data["records"]] == [3] * 4
    assert not nobody.ok
