"""What a keeper does with its request, from acceptance to the exit record."""

import json
import os
import pwd
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from console.host import files, gpushare, lock, procfs, request, startkeeper
from tests import uncounted
from tests.host.agentprocess import pythons
from tests.host.keeperlab import REPOSITORY, Lab, alive, ended, exit_record, ident, mode_of, reached, status
from tests.waiting import until

UNTIL_GO = "[time.sleep(0.02) for _ in iter(lambda: os.path.exists('go'), True)]"
"""Wait until the test has made the file `go` where the run works."""
IGNORES_TERM = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); time.sleep(600)"


def _may_lower_oom_score() -> bool:
    """Root alone is not enough: containers and sandboxes take CAP_SYS_RESOURCE away."""
    effective = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    return bool(int(effective.split()[1], 16) >> 24 & 1)


@pytest.mark.parametrize("python", pythons())
def test_each_python_launches_watches_and_records_a_run(tmp_path: Path, python: str) -> None:
    lab = Lab(tmp_path, python)
    lab.trainer(f"print('step 1'); {UNTIL_GO}; sys.exit(7)")
    try:
        began = procfs.boottime()
        directory, keeper = lab.launch("r1")
        reached(directory, "running")
        (lab.work / "go").touch()

        record = ended(directory)

        assert (record["code"], record["signal"], record["all_gone"]) == (7, None, True)
        assert 0.2 <= record["lived_s"] < procfs.boottime() - began, "it was running, so it had lived for start_s"
        assert keeper.wait(20) == 0
        found = status(directory)
        assert found["state"] == "ended"
        assert [(name, stage["state"]) for name, stage in found["stages"].items()] == [
            ("killing", "skipped"),
            ("cache", "skipped"),
            ("spawned", "done"),
        ]
        assert found["stages"]["killing"]["why"] == "nothing ran"
        assert found["stages"]["spawned"]["evidence"] == f"pid {found['main']['pid']}"
        assert lab.log("r1") == "step 1\n"
    finally:
        lab.close()


def test_death_by_signal_is_recorded_as_one(lab: Lab) -> None:
    lab.trainer()
    with uncounted.no_kills():
        directory, _ = lab.launch("r1")
        main = reached(directory, "running")["main"]

        os.kill(main["pid"], signal.SIGKILL)

        record = ended(directory)
    assert (record["code"], record["signal"], record["by"]) == (None, 9, None)
    assert record["oom"] in ("no", "unknown")
    assert status(directory)["state"] == "ended"


def test_exit_before_start_s_fails_the_spawned_stage_with_its_facts(lab: Lab) -> None:
    lab.script("run.sh", "#!/bin/sh\necho broken\nexit 0\n")

    directory, _ = lab.launch("r1", spec={"start_s": 60.0})

    record = ended(directory)
    stage = status(directory)["stages"]["spawned"]
    assert (stage["state"], stage["reason"], record["code"]) == ("failed", None, 0)
    assert stage["why"].endswith("exit status 0")
    assert status(directory)["state"] == "failed"


@pytest.mark.parametrize(
    ("name", "text", "mode", "reason", "touched"),
    [
        ("absent.sh", None, 0o755, "command_not_found", False),
        ("plain.sh", "#!/bin/sh\n", 0o644, "exec_not_permitted", False),
        ("nosuch.sh", "#!/bin/nosuch\n", 0o755, "bad_interpreter", True),
        ("crlf.sh", "#!/bin/sh\r\necho\r\n", 0o755, "bad_interpreter", True),
        ("bare.sh", "echo no shebang\n", 0o755, "exec_format", True),
    ],
)
def test_exec_failures_are_named(lab: Lab, name: str, text: str | None, mode: int, reason: str, touched: bool) -> None:
    if text is not None:
        lab.script(name, text, mode)

    directory, keeper = lab.launch("r1", spec={"command": [str(lab.work / name)]})

    found = reached(directory, "failed", "refused")
    assert keeper.wait(20) == 0
    assert found["reason"] == reason
    # What can be seen to fail beforehand fails before anything is touched.
    assert (found["state"] == "failed") == touched
    if touched:
        assert found["stages"]["spawned"]["reason"] == reason
        assert exit_record(directory)["exec_errno"] > 0
        assert exit_record(directory)["all_gone"]


def test_arguments_environment_and_paths_arrive_unchanged(lab: Lab) -> None:
    odd = "a b 'c' \"d\" $HOME `x` \\ \n\té ü 漢"
    show = "import json; print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd(), sys.stdin.read()]))"
    lab.trainer(show)
    folder = lab.work / "w x 'y' é"
    folder.mkdir()
    spec = {
        "command": [str(lab.work / "run.sh"), odd, "", "-c"],
        "cwd": str(folder),
        "env": {"ODD": odd, "API_TOKEN": "geheim", "PYTHONIOENCODING": "utf-8"},
        "unset": ["LOGNAME"],
    }

    directory, keeper = lab.launch("r1", spec=spec, log_path=str(lab.work / "r 1 é.log"))
    ended(directory)
    keeper.wait(20)

    arguments, env, cwd, stdin = json.loads((lab.work / "r 1 é.log").read_text("utf-8"))
    assert arguments == [odd, "", "-c"]
    assert (cwd, stdin) == (str(folder), "")
    assert (env["ODD"], env["API_TOKEN"]) == (odd, "geheim")
    assert (env["DFLASH_RUN_ID"], env["PYTHONUNBUFFERED"]) == ("r1", "1")
    assert "LOGNAME" not in env
    assert env["HOME"] == pwd.getpwuid(os.geteuid()).pw_dir
    for path in directory.iterdir():
        assert path.name == "control" or b"geheim" not in path.read_bytes()


_SIGNALS_32_AND_33 = 0b11 << 31


def test_run_finds_default_signals_umask_and_all_descriptors(lab: Lab) -> None:
    # By a shell: Python itself ignores SIGPIPE and SIGXFSZ, whatever it was started with.
    lab.script(
        "run.sh",
        """
        #!/bin/sh
        grep -E "Sig(Blk|Ign):" /proc/self/status
        echo "umask: $(umask)"
        echo "files: $(ulimit -Sn) $(ulimit -Hn)"
        echo "score: $(cat /proc/self/oom_score_adj)"
        echo "session: $(cut -d " " -f 6 /proc/$$/stat) $$"
        """,
    )
    own_score = Path("/proc/self/oom_score_adj").read_text().strip()
    own = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())

    directory, _ = lab.launch("r1")
    ended(directory)

    said = dict(line.split(":", 1) for line in lab.log("r1").splitlines())
    # make ignores the C library's own two signals in what it starts, these tests too; no program can undo that.
    of_the_c_library = int(own["SigIgn"], 16) & _SIGNALS_32_AND_33
    assert int(said["SigBlk"], 16) == int(said["SigIgn"], 16) & ~of_the_c_library == 0
    assert said["umask"].strip() == "0022"
    assert len(set(said["files"].split())) == 1
    assert said["score"].strip() == own_score
    assert len(set(said["session"].split())) == 1


def test_keeper_leaves_session_terminal_and_descriptors_behind(lab: Lab) -> None:
    lab.trainer()
    directory = lab.request("r1")
    with open(lab.folder / "inherited", "wb") as inherited:
        keeper = lab.keep(directory, pass_fds=[inherited.fileno()])
    reached(directory, "running")

    stat = procfs.read_stat(keeper.pid)
    targets = procfs.fd_targets(keeper.pid)

    assert stat is not None
    assert stat.sid == keeper.pid
    assert procfs.cwd(keeper.pid) == "/"
    assert targets[0] == targets[1] == "/dev/null"
    assert targets[2] == str(directory / "keeper.log")
    assert str(lab.folder / "inherited") not in targets.values()
    if _may_lower_oom_score():
        assert int(Path(f"/proc/{keeper.pid}/oom_score_adj").read_text()) < 0


def test_keeper_is_not_listed_by_those_who_look_for_python(lab: Lab) -> None:
    lab.trainer()
    directory, keeper = lab.launch("r1")
    reached(directory, "running")

    found = subprocess.run(["pgrep", "-f", "python"], capture_output=True, text=True, check=False)

    assert str(keeper.pid) not in found.stdout.split()
    assert procfs.argv(keeper.pid)[0] == "dflash-keeper r1"
    stat = procfs.read_stat(keeper.pid)
    assert stat is not None
    assert stat.comm == "dflash-keeper"


def test_files_of_a_run_are_private(lab: Lab) -> None:
    lab.trainer("pass")
    directory, keeper = lab.launch("r1")
    ended(directory)
    keeper.wait(20)

    assert {path.name: mode_of(path) for path in directory.iterdir()} == {
        path.name: 0o600 for path in directory.iterdir()
    }
    assert mode_of(directory) == 0o700


def test_trainer_in_the_background_is_followed_and_its_status_is_the_runs(lab: Lab) -> None:
    lab.trainer(f"{UNTIL_GO}; sys.exit(5)")
    lab.script("back.sh", f"#!/bin/sh\n{sys.executable} {lab.work}/{lab.trainer_name} &\nexit 0\n")

    directory, _ = lab.launch("r1", spec={"command": [str(lab.work / "back.sh")]})

    found = reached(directory, "running")
    assert exit_record(directory) == {}
    until(lambda: alive(status(directory)["main"]), what="main process is the trainer")
    (lab.work / "go").touch()
    record = ended(directory)
    assert (record["code"], record["main"]["code"], record["trainer"]["code"]) == (5, 0, 5)
    assert found["stages"]["spawned"]["state"] == "done"


def test_launcher_that_handed_over_to_an_unknown_program_has_not_ended_the_run(lab: Lab) -> None:
    os.mkfifo(lab.work / "gate")
    lab.script("back.sh", "#!/bin/sh\ncat gate &\nexit 0\n")

    directory, _ = lab.launch("r1", spec={"command": [str(lab.work / "back.sh")], "match": []})

    found = reached(directory, "running", "ended", "failed")
    assert (found["state"], exit_record(directory)) == ("running", {})
    (lab.work / "gate").write_text("")
    assert ended(directory)["code"] == 0


def test_log_is_the_file_that_run_sh_sends_the_trainers_output_to(lab: Lab) -> None:
    lab.trainer("print('x' * 5000); time.sleep(600)")
    other = lab.work / "other.log"
    lab.script("run.sh", f"#!/bin/sh\necho begins\n{sys.executable} -u {lab.work}/{lab.trainer_name} >{other}\n")

    directory, _ = lab.launch("r1")

    log = until(lambda: (found := status(directory).get("log", {})).get("opened") and found, 60)
    assert (log["path"], log["opened"]) == (str(other), str(lab.work / "r1.log"))
    assert (log["dev"], log["inode"]) == (other.stat().st_dev, other.stat().st_ino)
    until(lambda: '"size":5001' in (directory / "recorder.ndjson").read_text(), 60, "its growth is recorded")


@pytest.mark.parametrize(
    "line", ["{} | cat >>/dev/null", "{} >/dev/null", "exec 3>gone; rm gone; {} >&3", "mv r1.log old; {}"]
)
def test_output_that_goes_to_no_other_file_leaves_the_log_as_it_was(lab: Lab, line: str) -> None:
    lab.trainer("open('there', 'w'); time.sleep(600)")
    trainer = f"{sys.executable} -u {lab.work}/{lab.trainer_name}"
    lab.script("run.sh", f"#!/bin/sh\n{line.format(trainer)}\n")

    directory, _ = lab.launch("r1")

    until((lab.work / "there").exists, 60)
    until(lambda: status(directory).get("trainer"), 60)
    reached(directory, "running")
    log = status(directory)["log"]
    assert (log["path"], log.get("opened")) == (str(lab.work / "r1.log"), None)


def test_stragglers_are_named_and_the_verdict_is_the_trainers(lab: Lab) -> None:
    lab.trainer(f"subprocess.Popen(['sleep', '600']); {UNTIL_GO}; sys.exit(3)")
    directory, keeper = lab.launch("r1")
    reached(directory, "running")
    (lab.work / "go").touch()

    until(lambda: exit_record(directory).get("code") == 3, 60)

    record = exit_record(directory)
    assert not record["all_gone"]
    assert record["stragglers"][0].startswith("sleep, pid ")
    assert keeper.poll() is None
    assert request.send_stop(str(directory), "ops", "jump", "stop-1")
    final = ended(directory)
    # Who ends what is left did not end the run.
    assert (final["code"], final["by"], final["stragglers"]) == (3, None, [])


# -- GPUs -------------------------------------------------------------------------------------------------------------


def with_contexts(directory: Path) -> dict[str, Any]:
    """Wait until every GPU has its context, and return the journal."""
    until(lambda: status(directory).get("cuda", {}).get("complete_bt"), 60)
    return status(directory)


def test_level_before_the_launch_is_taken_before_it(lab: Lab) -> None:
    """Somebody else's 3 GiB are there; the trainer takes 40 with its first breath."""
    state = Path(gpu_state(lab, 3))
    lab.trainer(
        f"open({str(state)!r}, 'w').write('gpu 0 used={40 << 30} procs=%d:{37 << 30}' % os.getpid())\ntime.sleep(600)"
    )

    directory = lab.request("r1", spec={"gpus": {"expected": 1, "simulated": str(state)}})
    _keep_with(lab, directory, "spawnstage._BASELINE_S = 60.0")  # a busy machine's sampler takes longer than a second

    found = with_contexts(directory)
    assert found["gpu_baseline"] == {"0": 3 << 30}


def test_level_that_was_not_seen_before_the_launch_is_not_made_up_behind_it(lab: Lab) -> None:
    os.mkfifo(lab.folder / "silent")  # a driver that does not answer
    lab.trainer()
    directory, _ = lab.launch("r1", spec={"gpus": {"expected": 1, "simulated": str(lab.folder / "silent")}})
    main = reached(directory, "running")["main"]["pid"]

    with open(lab.folder / "silent", "w") as answer:
        answer.write(f"gpu 0 used={40 << 30} procs={main}:{40 << 30}\n")

    found = with_contexts(directory)
    assert "gpu_baseline" not in found
    assert found["gpu_peak"] == {"0": 40 << 30}


# -- stopping ---------------------------------------------------------------------------------------------------------


def test_stop_through_the_fifo_is_attributed_and_idempotent(lab: Lab) -> None:
    lab.trainer(IGNORES_TERM)
    directory, keeper = lab.launch("r1")
    reached(directory, "running")
    until(lambda: "ready" in lab.log("r1"))

    for number in range(5):
        assert request.send_stop(str(directory), f"ops{number}", "jump", f"stop-{number}", grace_s=2.5)

    until(lambda: re.search("TERM, . s of 3 s left", status(directory).get("stopping_text", "")))
    assert status(directory)["stopping"] == "ops0"
    record = ended(directory)
    assert (record["signal"], record["by"], record["by_request"]) == (9, "ops0", "stop-0")
    assert status(directory)["state"] == "stopped"
    assert keeper.wait(20) == 0
    assert not request.send_stop(str(directory), "ops", "jump", "stop-late")


def test_stop_frees_what_was_held_at_its_end_and_not_when_the_gpus_were_last_looked_at(lab: Lab) -> None:
    lab.trainer(IGNORES_TERM)
    directory, _ = lab.launch("r1", spec={"gpus": {"expected": 1, "simulated": gpu_state(lab, 0)}})
    main = reached(directory, "running")["main"]["pid"]
    gpu_state(lab, 40, main)
    until(
        lambda: status(directory).get("cuda", {}).get("complete_bt"), 20, "it holds its context: a look each 10 s now"
    )
    until(lambda: "ready" in lab.log("r1"))
    gpu_state(lab, 71, main)
    held_bt = procfs.boottime()

    # In its grace comes the sample of what it holds, where that was late for the first signal.
    assert request.send_stop(str(directory), "ops", "jump", "stop-1", grace_s=600.0)
    until(lambda: "TERM" in status(directory).get("stopping_text", ""), what="it is in its grace")
    until(lambda: _newest_bt(directory, lab) > held_bt, what="the sample of what it holds")
    os.kill(main, signal.SIGKILL)

    ended(directory)
    killing = until(lambda: _done(directory, "killing"), 60, "what came of it")
    assert (killing["evidence"], killing["detail"]) == ("1 pid, 71 GiB", "1 pid gone, 71 GiB freed")
    assert status(directory)["launch_killing"]["why"] == "nothing ran"


def test_a_keeper_rests_while_its_gpus_say_nothing(lab: Lab) -> None:
    """Contexts are looked at again now and then, which takes a sample: there is nothing to do until one comes."""
    lab.trainer()
    directory = lab.request("r1", spec={"gpus": {"expected": 1, "simulated": gpu_state(lab, 0)}})
    _keep_with(lab, directory, "vigil._CUDA_OLD_S = 0.1")
    pid = reached(directory, "running")["main"]["pid"]
    gpu_state(lab, 40, pid)
    found = with_contexts(directory)
    keeper, complete_bt = found["keeper"]["pid"], found["cuda"]["complete_bt"]
    until(lambda: _newest_bt(directory, lab) > complete_bt + 1.5, 60, "two samples more")
    sampler = until(lambda: [p for p, s in procfs.table().items() if s.ppid == keeper and s.comm == "dflash-gpu"])[0]

    os.kill(sampler, signal.SIGSTOP)
    try:
        rests, used_s = _rests(keeper), _cpu_s(keeper)
        until(lambda: _rests(keeper) > rests + 10, 60, "ten pauses of the keeper's loop")
        used_s = _cpu_s(keeper) - used_s
    finally:
        os.kill(sampler, signal.SIGCONT)

    assert used_s < 0.5, "ten pauses are two and a half seconds"


def _keep_with(lab: Lab, directory: Path, change: str) -> subprocess.Popen[bytes]:
    """Start a keeper in whose program something was changed."""
    begin = "import sys; sys.path.insert(0, sys.argv[2]); from console.host import keeper, spawn, spawnstage, vigil; "
    return lab.start(sys.executable, "-I", "-c", f"{begin}{change}; keeper.main(sys.argv[1])", directory, REPOSITORY)


def _newest_bt(directory: Path, lab: Lab) -> float:
    return float((gpushare.take(str(directory), str(lab.folder / "gpus")) or {}).get("bt", 0.0))


def _rests(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


def _cpu_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def gpu_state(lab: Lab, used_gib: int, pid: int | None = None) -> str:
    """Write what the one GPU of this target shows; return where that stands."""
    procs = f"{pid}:{used_gib << 30}" if pid is not None else ""
    new, path = lab.folder / "gpus.new", lab.folder / "gpus"
    new.write_text(f"driver 550\ngpu 0 uuid=GPU-0 name=sim total={140 << 30} used={used_gib << 30} procs={procs}\n")
    new.rename(path)
    return str(path)


def _done(directory: Path, stage: str) -> dict[str, Any]:
    found: dict[str, Any] = (status(directory).get("stages") or {}).get(stage) or {}
    return found if found.get("state") == "done" else {}


def test_workers_that_hop_away_are_all_gone_after_a_stop(lab: Lab) -> None:
    lab.trainer(
        """
        hop = "import os, time\\nfor _ in range(3):\\n    if os.fork(): os._exit(0)\\n    os.setsid()\\ntime.sleep(600)"
        for _ in range(12):
            subprocess.Popen([sys.executable, "-c", hop], start_new_session=True).wait()
        print("ready"); time.sleep(600)
        """
    )
    directory, keeper = lab.launch("r1")
    reached(directory, "running")
    until(lambda: "ready" in lab.log("r1"), 60)
    until(lambda: len(lab.marked()) >= 14, what="keeper, trainer and workers")  # who hops may be missed by one look

    assert request.send_stop(str(directory), "ops", "jump", "stop-1", grace_s=2.0)

    assert ended(directory)["all_gone"]
    keeper.wait(20)
    assert lab.marked() == []


def by_hand(lab: Lab) -> subprocess.Popen[bytes]:
    """Start run.sh as people do; return once it is the trainer."""
    run = lab.start(lab.work / "run.sh")
    until(lambda: procfs.argv(run.pid)[-1:] == [str(lab.work / lab.trainer_name)], what="the trainer by hand")
    return run


def test_stop_request_ends_a_run_started_by_hand(lab: Lab) -> None:
    lab.trainer()
    old = by_hand(lab)

    directory, keeper = lab.launch("s1", action="stop", replaces=[ident(old.pid)])

    found = reached(directory, "stopped")
    assert keeper.wait(20) == 0
    assert old.wait(20) == -signal.SIGTERM
    assert found["stages"]["killing"]["detail"].startswith("1 pid gone, no others found")


def test_stop_of_what_has_ended_meanwhile_says_that_nothing_runs(lab: Lab) -> None:
    lab.trainer()

    directory, _ = lab.launch("s1", action="stop", replaces=[{"pid": os.getpid(), "start": 1}])

    assert reached(directory, "refused", "stopped")["reason"] == "nothing_runs"


# -- replacing --------------------------------------------------------------------------------------------------------


def test_restart_replaces_a_run_started_by_hand_and_spares_bystanders(lab: Lab) -> None:
    run_sh = lab.trainer()
    (lab.work / "old.log").touch()
    with open(lab.work / "old.log", "ab") as log:
        old = lab.start(run_sh, stdout=log, stderr=log)
        worker = lab.start("sleep", "600", stdout=log, stderr=log)
    others = [
        lab.start("tail", "-f", lab.work / "old.log"),
        lab.start("bash", "-c", f"sleep 600; python {lab.trainer_name}"),
        lab.start(sys.executable, "-c", "import time; time.sleep(600)", lab.trainer_name),
        lab.start(sys.executable, lab.script("editor.py", "import time\ntime.sleep(600)"), lab.trainer_name),
    ]
    until(lambda: procfs.argv(old.pid)[-1:] == [str(lab.work / lab.trainer_name)])
    bystander_idents = [ident(each.pid) for each in others]

    directory, _ = lab.launch("r2", replaces=[ident(old.pid)])

    found = reached(directory, "running")
    assert old.wait(20) == -signal.SIGTERM
    assert worker.wait(20) == -signal.SIGTERM, "a holder of the run's log belongs to it"
    assert all(alive(entry) for entry in bystander_idents)
    assert found["stages"]["killing"]["state"] == "done"
    assert found["stages"]["killing"]["evidence"] == "2 pids"
    assert found["main"]["pid"] != old.pid


def test_old_run_that_ignores_term_is_killed_after_its_grace(lab: Lab) -> None:
    lab.trainer(IGNORES_TERM)
    with open(lab.work / "old.log", "wb") as log:
        old = lab.start(lab.work / "run.sh", stdout=log)
    until(lambda: "ready" in lab.log("old"))
    lab.trainer()

    directory, _ = lab.launch("r2", replaces=[ident(old.pid)], spec={"grace_s": 2.5})

    texts: set[str] = set()

    def is_running() -> bool:
        texts.add(status(directory).get("stages", {}).get("killing", {}).get("evidence", ""))
        return status(directory).get("state") == "running"

    until(is_running, 60)
    assert old.wait(20) == -signal.SIGKILL
    left = {text for text in texts if text.startswith("TERM")}
    assert left
    assert left <= {f"TERM, {seconds} s of 3 s left" for seconds in (3, 2, 1, 0)}


def test_restart_of_an_own_run_lets_its_keeper_prove_the_end(lab: Lab) -> None:
    lab.trainer()
    first, keeper = lab.launch("r1")
    old = reached(first, "running")["main"]

    second, _ = lab.launch("r2", replaces=[old], replaced_id="r1")

    found = reached(second, "running")
    assert keeper.wait(20) == 0
    record = ended(first)
    assert (record["by"], record["by_request"], record["all_gone"]) == ("ops", "r2", True)
    assert status(first)["state"] == "stopped"
    assert found["replaced_name"] == "r1"
    assert found["stages"]["killing"]["detail"] == "1 pid gone"


def test_run_whose_keeper_was_lost_is_still_replaced_with_those_who_hopped_away(lab: Lab) -> None:
    lab.trainer(
        """
        nothing = subprocess.DEVNULL
        subprocess.run(["setsid", "-f", "sleep", "601"], stdin=nothing, stdout=nothing, stderr=nothing)
        print("ready"); time.sleep(600)
        """
    )
    first, keeper = lab.launch("r1")
    old = reached(first, "running")["main"]
    until(lambda: "ready" in lab.log("r1"))
    assert any(procfs.argv(pid)[-1:] == ["601"] for pid in lab.marked())
    keeper.kill()
    keeper.wait(20)
    assert alive(old)
    lab.trainer()

    second, _ = lab.launch("r2", replaces=[old], replaced_id="r1")

    reached(second, "running")
    assert not alive(old)
    assert [pid for pid in lab.marked() if procfs.argv(pid)[-1:] == ["601"]] == []


# -- refusing ---------------------------------------------------------------------------------------------------------


def test_expired_request_is_refused(lab: Lab) -> None:
    lab.trainer()
    old = by_hand(lab)

    directory, _ = lab.launch("r1", expires_bt=procfs.boottime() - 1, replaces=[ident(old.pid)])

    assert reached(directory, "refused", "running")["reason"] == "request_expired"
    assert old.poll() is None


_HELD_UP = """
import sys; sys.path.insert(0, sys.argv[2])
from console.host import admission, keeper, procfs
compare, boottime = admission.Admission._compare, procfs.boottime
def held_up(self):
    compare(self)
    if "expired" in open(sys.argv[3]).read():
        procfs.boottime = lambda: boottime() + 3600.0
admission.Admission._compare = held_up
keeper.main(sys.argv[1])
"""


@pytest.mark.parametrize("how", ["withdrawn", "expired"])
def test_request_that_is_given_up_while_the_keeper_still_looks_is_not_carried_out(lab: Lab, how: str) -> None:
    lab.trainer()
    old = by_hand(lab)
    gate = lab.folder / "gate"
    os.mkfifo(gate)
    directory = lab.request("r1", replaces=[ident(old.pid)], expires_bt=procfs.boottime() + 600.0)
    lab.start(sys.executable, "-I", "-c", _HELD_UP, directory, REPOSITORY, gate)
    with gate.open("w") as opened:  # once the keeper is there
        if how == "withdrawn":
            startkeeper.withdraw(str(directory))
        opened.write(how)

    reason = reached(directory, "refused", "running")["reason"]

    assert reason == ("keeper_not_started" if how == "withdrawn" else "request_expired")
    assert old.poll() is None


def test_request_of_another_boot_is_refused(lab: Lab) -> None:
    lab.trainer()

    directory, _ = lab.launch("r1", boot="another/1")

    assert reached(directory, "refused", "running")["reason"] == "request_expired"


def test_run_that_was_started_since_the_plan_refuses_it(lab: Lab) -> None:
    lab.trainer()
    planned, newcomer = by_hand(lab), by_hand(lab)

    directory, _ = lab.launch("r1", replaces=[ident(planned.pid)])

    found = reached(directory, "refused", "running")
    assert found["reason"] == "plan_changed"
    assert str(newcomer.pid) in found["detail"]
    assert planned.poll() is None


def test_own_run_that_was_started_since_the_plan_refuses_it(lab: Lab) -> None:
    lab.trainer()
    first, _ = lab.launch("r1", spec={"match": []})
    reached(first, "running")

    second, _ = lab.launch("r2", spec={"match": []})

    assert reached(second, "refused", "running")["reason"] == "plan_changed"


def test_log_that_exists_is_never_overwritten(lab: Lab) -> None:
    lab.trainer()
    (lab.work / "r1.log").write_text("precious")

    directory, _ = lab.launch("r1")

    assert reached(directory, "refused", "running")["reason"] == "plan_changed"
    assert lab.log("r1") == "precious"


def test_of_two_keepers_at_once_one_gets_the_lock(lab: Lab) -> None:
    lab.trainer(IGNORES_TERM)
    with open(lab.work / "old.log", "wb") as log:
        old = lab.start(lab.work / "run.sh", stdout=log)
    until(lambda: "ready" in lab.log("old"))
    directories = [lab.request(run, replaces=[ident(old.pid)], spec={"grace_s": 600.0}) for run in ("r1", "r2")]

    for directory in directories:
        lab.keep(directory)
    until(lambda: any(status(each).get("state") == "refused" for each in directories), what="one is refused")
    old.kill()  # so long the other was at its work

    found = [reached(directory, "refused", "running") for directory in directories]
    loser = next(each for each in found if each["state"] == "refused")
    assert sorted(each["state"] for each in found) == ["refused", "running"]
    assert loser["reason"] == "restart_under_way"
    assert "ops from jump" in loser["detail"]
    until(lambda: lock.read_holder(files.lock_path(str(lab.state), "t")) is None, what="who is through lets go of it")


def test_second_keeper_for_one_request_does_nothing(lab: Lab) -> None:
    lab.trainer()
    directory, _ = lab.launch("r1")
    before = reached(directory, "running")

    second = lab.keep(directory)

    assert second.wait(20) == 0
    assert status(directory)["keeper"] == before["keeper"]
    assert alive(before["main"])


# -- interrupted ------------------------------------------------------------------------------------------------------


def test_keeper_lost_while_killing_leaves_word_of_where_it_was(lab: Lab) -> None:
    lab.trainer(IGNORES_TERM)
    with open(lab.work / "old.log", "wb") as log:
        old = lab.start(lab.work / "run.sh", stdout=log)
    until(lambda: "ready" in lab.log("old"))
    directory, keeper = lab.launch("r1", replaces=[ident(old.pid)], spec={"grace_s": 60.0})
    until(lambda: status(directory).get("stages", {}).get("killing", {}).get("evidence", "").startswith("TERM"))
    holder = lock.read_holder(files.lock_path(str(lab.state), "t"))

    keeper.kill()
    keeper.wait(20)

    found = status(directory)
    assert (found["state"], found["stages"]["killing"]["state"]) == ("killing", "active")
    assert not alive(found["keeper"])
    assert holder is not None
    assert holder["stage"] == "killing"
    # A helper that it had just forked holds the lock until it has closed what it doesn't need.
    until(lambda: lock.read_holder(files.lock_path(str(lab.state), "t")) is None, what="nobody holds the lock")
    assert "main" not in found


def test_keeper_lost_between_kill_and_spawn_starts_nothing_and_says_where_it_was(lab: Lab) -> None:
    run_sh = lab.trainer()
    old = by_hand(lab)
    directory = lab.request("r1", replaces=[ident(old.pid)])
    with open(run_sh, "ab"):  # exec of a file that is open for writing is tried again and again, here for long
        keeper = _keep_with(lab, directory, "spawn._BUSY_TRIES = 10_000")
        until(lambda: status(directory).get("main"))
        keeper.kill()
        keeper.wait(20)
        assert old.wait(20) == -signal.SIGTERM

    until(lambda: not lab.marked(), what="nothing runs")
    found = status(directory)
    assert found["stages"]["killing"]["state"] == "done"
    assert (found["state"], found["stages"]["spawned"]["state"]) == ("spawned", "active")
    # It carries no mark before it is executed: it ends when it looks for its parent.
    until(lambda: not procfs.is_alive(found["main"]["pid"], found["main"]["start"]), what="nobody waits to be executed")

    following, _ = lab.launch("r2", replaced_id="r1")
    assert reached(following, "running")["stages"]["killing"]["why"] == "nothing ran"


def test_stop_before_the_spawn_cancels_the_restart(lab: Lab) -> None:
    lab.trainer(IGNORES_TERM)
    with open(lab.work / "old.log", "wb") as log:
        old = lab.start(lab.work / "run.sh", stdout=log)
    until(lambda: "ready" in lab.log("old"))
    directory, keeper = lab.launch("r1", replaces=[ident(old.pid)], spec={"grace_s": 600.0})
    until(lambda: status(directory).get("state") == "killing")

    assert request.send_stop(str(directory), "ops", "jump", "stop-1")
    old.kill()  # its grace is over

    assert reached(directory, "stopped", "running")["state"] == "stopped"
    assert keeper.wait(20) == 0
    assert old.wait(20) == -signal.SIGKILL
    assert not (lab.work / "r1.log").exists()
