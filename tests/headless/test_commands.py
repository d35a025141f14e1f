"""The commands on a demo host, as a script meets them: one shape of answer, and never a claim without its evidence."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console import configfile
from console.demo.host import DemoHost
from console.headless import logs, wait
from console.host import procfs
from tests.headless.running import Console, call, printed, time_is_up_once_judged, time_is_up_when
from tests.waiting import until

COMMON = {"schema", "target", "run", "id", "at", "data_age_s"}


def spawn(console: Console, *words: str) -> subprocess.Popen[str]:
    """Start the command line as a process of its own, without a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "console.cli", words[0], "--config", str(console.config), *words[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def test_idle_host_is_told_as_nothing(console: Console) -> None:
    console.free()

    assert console("status", "--check").code == 5
    assert console("stop", "--yes").out.startswith("NOTHING nothing_runs: ")
    waited = console("wait", "--json")
    assert (waited.code, waited.json["outcome"], waited.json["id"]) == (5, "nothing", None)
    status = console("status", "--json").json
    assert (status["verdict"], status["run"], status["why"]) == (
        "idle",
        None,
        {"run": "no run is known on this target"},
    )


def test_unconfirmed_restart_prints_the_plan_and_touches_nothing(console: Console) -> None:
    console.free()

    plain, answer = console("restart"), console("restart", "--json")

    assert (plain.code, answer.code) == (2, 2)
    assert re.match(r"plan [0-9a-f]{8}: nothing -> slammed\d+\nkill   nothing runs\n", plain.out)
    assert plain.out.splitlines()[-1].startswith("REFUSED not_confirmed: refused: not confirmed")
    assert (answer.json["reason"], answer.json["plan"]["plan_id"]) == ("not_confirmed", answer.json["plan_id"])
    assert console("status", "--check").code == 5


def test_plan_id_is_carried_out_with_what_it_was_made_with(console: Console) -> None:
    console.free()
    plan = console("restart", "--plan", "--json", "--env", "DFLASH_SPLIT_FC_LAYERS=1").json

    accepted = console("restart", "--plan-id", plan["plan_id"], "--detach", "--json")
    reached = console("wait", accepted.json["id"], "--timeout", "90s", "--json")

    assert (plan["exit_code"], accepted.code, reached.code) == (0, 0, 0)
    assert set(plan) & set(accepted.json) & set(reached.json) >= COMMON
    assert accepted.json["next"][0].endswith(f"--config {console.config} --for stepping --timeout 15s")
    assert [(stage["stage"], stage["state"]) for stage in reached.json["stages"]] == [
        ("killing", "skipped"),
        ("cache", "done"),
        ("spawned", "done"),
        ("cuda", "done"),
        ("stepping", "done"),
    ]
    assert all(stage["evidence"] or stage["why"] for stage in reached.json["stages"])
    environ = Path(f"/proc/{reached.json['pid']}/environ").read_bytes().split(b"\0")
    assert b"DFLASH_SPLIT_FC_LAYERS=1" in environ


def test_plan_is_refused_once_the_world_has_changed(console: Console) -> None:
    console.free()
    plan_id = console("restart", "--plan", "--json").json["plan_id"]
    run_sh = console.host.folder / "host" / "run.sh"
    run_sh.write_text(run_sh.read_text() + "# edited\n")

    done = console("restart", "--plan-id", plan_id, "--json")

    assert (done.code, done.json["reason"]) == (3, "plan_changed")
    assert done.json["plan_id"] != plan_id
    assert console("status", "--check").code == 5


def test_what_has_happened_is_told_though_it_can_not_be_noted_here(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "dflash-console").mkdir()
    for folder in ("runs", "plans", "watches"):
        (tmp_path / "dflash-console" / folder).write_text("in the way, as a full disk would be")
    console.free()

    end = json.loads(console("watch", "--until", "free").out.splitlines()[-1])
    planned = console("restart", "--plan", "--json")
    started = console.restart()
    stopped = console("stop", "--yes", "--timeout", "60s")

    assert (end["type"], end["why"], end["exit_code"], end["resume"]) == ("end", "free", 0, None)
    assert "File exists" in end["resume_why"]
    assert (planned.code, planned.json["reason"]) == (2, "notes_unusable")
    for done in (started, stopped):
        assert done.code == 0, done
        assert "not noted that r-" in done.err


def test_plan_of_nobody_is_refused(console: Console) -> None:
    assert console("restart", "--plan-id", "deadbeef").out.startswith("REFUSED plan_unknown: ")


def test_restart_shows_stages_on_stderr_and_one_line_on_stdout(console: Console) -> None:
    done = console.restart("--env", "A=1")

    assert done.code == 0
    pattern = r"OK stepping slammed\d+ id=r-[0-9a-f]{8} pid=\d+ launch=[\d.]+s log=/.+\n"
    assert re.fullmatch(pattern, done.out), done.out
    stages = re.findall(r"^\d\d:\d\d:\d\d (\w+) +(?:ok|skipped)\b", done.err, re.MULTILINE)
    assert stages == ["killing", "cache", "spawned", "cuda", "stepping"]


def test_second_restart_never_doubles_one_under_way(tmp_path: Path) -> None:
    with DemoHost(tmp_path, speed=8.0, load_s=100.0) as host:  # 12.5 s: the second comes while the first one loads
        console = Console(host)
        first = console("restart", "--yes", "--detach", "--json").json
        assert console("wait", first["id"], "--for", "spawned").code == 0, "until then nobody can replace it"

        second = console("restart", "--yes", "--json")

        assert console("wait", first["id"], "--timeout", "60s").code == 0
    assert (second.code, second.json["reason"], second.json["id"]) == (4, "restart_under_way", first["id"])
    assert f"use: dflash-console wait {first['id']}" in second.json["detail"]
    assert second.json["detail"].endswith(f"; to replace it: --expect-run {first['run']}")


def test_expected_run_guards_against_killing_another(console: Console) -> None:
    there = console.stepping()

    wrong = console("restart", "--yes", "--expect-run", "other", "--json")
    also_wrong = console("stop", "--yes", "--expect-run", "other")

    assert (wrong.code, also_wrong.code) == (4, 4)
    assert (wrong.json["reason"], wrong.json["run"], wrong.json["id"]) == ("unexpected_run", there["run"], there["id"])
    assert console("status", "--json").json["pid"] == there["pid"]


def test_unknown_run_is_not_called_replaced(console: Console) -> None:
    console.stepping()

    done = console("wait", "r-0042", "--json")

    assert (done.code, done.json["reason"]) == (4, "unexpected_run")


def test_older_run_was_replaced(console: Console) -> None:
    old = console.restart("--json").json
    new = console.restart("--json").json

    done = console("wait", old["id"], "--for", "exit")

    assert done.code == 16
    assert done.out.startswith(f"REPLACED by {new['run']} id={new['id']}")


def test_restart_returns_at_the_stage_that_was_asked_for_under_the_name_that_was_given(console: Console) -> None:
    spawned = console.restart("--wait", "spawned", "--name", "trial7", "--json")
    accepted = console.restart("--wait", "accepted", "--expect-run", "trial7", "--json")

    assert (spawned.code, spawned.json["wanted"], spawned.json["run"]) == (0, "spawned", "trial7"), spawned
    assert spawned.json["log"].endswith("/train_trial7.log")
    assert (accepted.code, accepted.json["outcome"]) == (0, "accepted"), accepted
    assert accepted.json["run"] != "trial7"
    assert console("wait", "--for", "stepping", "--timeout", "60s").code == 0, "nothing is under way for who comes next"


def test_time_that_passes_leaves_the_run_alone(console: Console) -> None:
    run = console.stepping()

    with time_is_up_once_judged(wait):
        done = console("wait", "--for", "step=1000000", "--timeout", "6s", "--json")
    with time_is_up_once_judged(wait):
        plain = console("wait", "--for", "step=1000000", "--timeout", "6s")

    assert (done.code, done.json["outcome"], done.json["verdict"]) == (20, "pending", "on_track")
    assert done.json["next_check_s"] == 15
    assert re.match(r"PENDING step \d+/1000000 slammed\d+ id=\S+ on_track.* \| next check in 15s\n", plain.out)
    assert console("status", "--json").json["pid"] == run["pid"]


def test_status_tells_what_is_known_and_why_the_rest_is_not(console: Console) -> None:
    console.restart()

    line = console("status").out
    answer = console("status", "--json").json

    assert re.match(r"ct-demo STEPPING slammed\d+ step=\d+ tok/s=\d+ .*gpus=8/8 up=\d+s age=\d", line), line
    assert set(answer) >= COMMON
    assert (answer["checkpoint"], answer["why"]["checkpoint"]) == (None, "no checkpoint line was seen")
    assert [gpu["owner"] for gpu in answer["gpus"]] == ["run"] * 8


def test_stop_is_proven_and_says_how_it_ended(console: Console) -> None:
    run = console.restart("--json").json

    done = console("stop", "--yes", "--timeout", "90s")

    assert re.match(rf"OK free {run['run']} id={run['id']} signal=15 after=[\d.]+s stopped_by=", done.out), done.out
    assert not Path(f"/proc/{run['pid']}").exists()
    assert console("wait", run["id"]).code == 16


def test_logs_are_the_lines_of_the_file_and_nothing_else(console: Console) -> None:
    started = console.restart("--json")
    assert started.code == 0, started
    run = started.json
    assert console("stop", "--yes").code == 0

    done = console("logs", "-n", "3")

    assert done.code == 0
    assert done.out.splitlines() == Path(run["log"]).read_text(errors="replace").splitlines()[-3:]


def test_followed_log_goes_on_and_ends_with_the_timeout(console: Console) -> None:
    console.stepping()

    with time_is_up_when(logs, lambda: _steps_in(printed()) >= 3):
        done = console("logs", "-f", "-n", "0", "--timeout", "8s")

    assert done.code == 20
    assert _steps_in(done.out) >= 3


def _steps_in(text: str) -> int:
    return len(re.findall(r"\bstep \d+/", text))


def test_interrupt_ends_the_waiting_and_not_the_run(console: Console) -> None:
    run = console.stepping()
    waiting = spawn(console, "wait", "--for", "step=1000000", "--json")
    until(lambda: _is_connected(waiting.pid), 60, "it is connected")

    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=120)

    assert (waiting.returncode, "the run goes on" in err) == (130, True)
    assert '"outcome":"interrupted"' in out
    assert console("status", "--json").json["pid"] == run["pid"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_waiting_with_a_word(console: Console, number: signal.Signals) -> None:
    run = console.stepping()
    waiting = spawn(console, "wait", "--for", "step=1000000", "--json")
    until(lambda: _is_connected(waiting.pid), 60, "it is connected")

    waiting.send_signal(number)
    out, err = waiting.communicate(timeout=120)

    told = json.loads(out)
    assert waiting.returncode == told["exit_code"] == 128 + number
    assert (told["outcome"], told["signal"]) == ("interrupted", number)
    assert err.splitlines()[-1].startswith(f"ended by {number.name}: the run goes on"), err
    assert console("status", "--json").json["pid"] == run["pid"]


def test_a_restart_that_is_waited_for_goes_on_when_a_signal_ends_the_waiting(tmp_path: Path) -> None:
    with DemoHost(tmp_path, speed=8.0, load_s=400.0) as host:  # 50 s: it loads when the signal comes
        console = Console(host)
        restarting = spawn(console, "restart", "--yes")
        assert restarting.stderr is not None
        first = restarting.stderr.readline()

        restarting.send_signal(signal.SIGTERM)
        out, err = restarting.communicate(timeout=120)

        assert (restarting.returncode, out) == (143, ""), (first, err)
        told = r"^ended by SIGTERM: the restart goes on in its keeper: (\S+) id=(\S+)(?: stage=\w+)? \| next: (.+)$"
        said = re.search(told, err, re.MULTILINE)
        assert said, err
        name, run_id, follow_up = said.groups()
        assert follow_up.startswith(f"dflash-console wait {run_id} --config {console.config} --for stepping")
        spawned = console("wait", run_id, "--for", "spawned", "--timeout", "60s")
        assert (spawned.code, spawned.out.split()[:3]) == (0, ["OK", "spawned", name])


def test_a_signal_that_was_ignored_from_the_start_ends_nothing(console: Console) -> None:
    console.stepping()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        waiting = spawn(console, "wait", "--for", "step=1000000", "--json")
    finally:
        signal.signal(signal.SIGHUP, before)
    until(lambda: _is_connected(waiting.pid), 60, "it is connected")

    waiting.send_signal(signal.SIGHUP)
    waiting.send_signal(signal.SIGTERM)
    waiting.communicate(timeout=120)

    assert waiting.returncode == 128 + signal.SIGTERM


def _is_connected(pid: int) -> bool:
    """Whether it has more sockets than the two with which an event loop wakes itself up."""
    return sum(target.startswith("socket:") for target in procfs.fd_targets(pid).values()) > 2


def test_person_on_a_terminal_is_asked_and_nothing_but_the_word_counts(console: Console) -> None:
    console.free()
    code, said = on_terminal(["restart", "--config", str(console.config)], "Type restart to go on: ", "yes\n")

    assert code == 2
    assert "REFUSED not_confirmed" in said
    assert console("status", "--check").code == 5


def test_init_asks_probes_and_writes_once(console: Console, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    words = ["init", "local", "--config", str(path), "--name", "here", "--exec", "", "--command", "/bin/true"]

    code, said = on_terminal(words, "Log file", "/tmp/{name}.log\n", "Trainer script", "train_nobody.py\n")

    assert code == 0, said
    assert re.search(r"ok python \d\.\d+", said), said
    assert f"wrote {path}: target here" in said
    assert configfile.load(path).targets["here"].match == ("train_nobody.py",)
    again = call("init", "local", "--config", str(path))
    assert (again.code, "was left as it is" in again.err) == (2, True)


def test_init_tries_each_part_and_asks_again_where_it_leads_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    words = ["init", "127.0.0.1", "--port", "1", "--config", str(path), "--name", "here", "--log", "/tmp/{name}.log"]
    words += ["--match", "train_nobody.py", "--exec", ""]

    code, said = on_terminal(
        words, "User on", "\n", "Jump host", "\n", "fail ssh.host", "\n", "Host (", "local\n",
        "ok   host.python", "", "Command that", "/nonexistent/run.sh\n", "fail plan.preflight", "y\n",
        "[/nonexistent/run.sh]", "/bin/true\n", "Log file", "\n", "Trainer", "\n",
        "ok   plan.preflight", "",
    )  # fmt: skip

    assert code == 0, said
    target = configfile.load(path).targets["here"]
    assert (target.host, target.command, target.log) == ("local", ("/bin/true",), "/tmp/{name}.log")
    assert target.match == ("train_nobody.py",)


def test_init_says_when_the_way_is_not_there_and_writes_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    done = call("init", "127.0.0.1", "--port", "1", "--config", str(path), "--command", "/root/run.sh")

    assert done.code == 0
    assert done.err.startswith("! LINK link_unreachable: ")
    assert "next: mend the way" in done.out
    assert configfile.load(path).targets["127.0.0.1"].command == ("/root/run.sh",)


def on_terminal(words: list[str], *dialogue: str) -> tuple[int, str]:
    """Run the command line on a terminal: wait for each prompt in turn, and type the answer that follows it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
        os.execv(sys.executable, [sys.executable, "-m", "console.cli", *words])
    said = ""
    turns = list(zip(dialogue[::2], dialogue[1::2], strict=True))
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        said += data.decode(errors="replace")
        if turns and turns[0][0] in said:
            os.write(terminal, turns.pop(0)[1].encode())
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), said
