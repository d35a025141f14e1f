"""Plans, and their execution by a real keeper that a real agent starts."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from console import protocol
from console.host import files, loader, lock, procfs, records, startkeeper
from tests.host.agentprocess import Agent, awaited, pythons

TRAINER = "import sys, time\nfor step in range(100000):\n    print('step', step, flush=True)\n    time.sleep(0.05)\n"


class Site:
    """A directory with a trainer and a run.sh, and everything that was started for it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, folder / "state"
        self.trainer = folder / f"train_{os.getpid()}_{time.monotonic_ns()}.py"
        self.trainer.write_text(TRAINER)
        self.script = folder / "run.sh"
        self.script.write_text(f"#!/bin/bash\necho begin\n{sys.executable} -u {self.trainer.name}\n")
        self.script.chmod(0o755)

    def spec(self, **changes: Any) -> protocol.RunSpec:
        base: dict[str, Any] = {
            "target": "t",
            "name": "run{n}",
            "command": (str(self.script),),
            "cwd": str(self.folder),
            "log": str(self.folder / "{name}.log"),
            "match": (self.trainer.name,),
            "grace_s": 2.0,
            "start_s": 0.1,
        }
        return protocol.RunSpec(**{**base, **changes})

    def plan(self, agent: Agent, action: str = "restart", **changes: Any) -> protocol.WirePlan:
        spec, state = self.spec(**changes), str(self.state)
        reply = agent.ask(protocol.MakePlan(id=agent.next_id(), action=action, spec=spec, state_dir=state), 60.0)
        assert reply.ok, reply.error
        return msgspec.convert(reply.data, protocol.WirePlan)

    def execute(
        self, agent: Agent, request: str, plan: protocol.WirePlan, action: str = "restart", **changes: Any
    ) -> protocol.Reply:
        operation = protocol.Execute(
            id=agent.next_id(),
            request=request,
            action=action,
            spec=self.spec(**changes),
            name=plan.name,
            log_path=plan.log_path,
            replaces=tuple(protocol.ProcId(pid=each.pid, start=each.start) for each in plan.replaces),
            replaced_id=plan.replaced_id,
            operator="anna",
            origin="jump",
            state_dir=str(self.state),
        )
        return agent.ask(operation, 60.0)

    def close(self) -> None:
        """End every process whose start we know from our own files or whose command line names our trainer."""
        for path in self.state.glob("targets/*/runs/*/status.json"):
            status = files.read_json(str(path.parent), path.name) or {}
            for role in ("keeper", "main"):
                ident = status.get(role)
                if ident and procfs.is_alive(ident["pid"], ident["start"]):
                    _kill(ident["pid"])
        for pid in procfs.all_pids():
            if any(word.endswith(self.trainer.name) for word in procfs.argv(pid)[1:]):
                _kill(pid)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # with its parent, just now
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


def run_is(agent: Agent, state: str) -> Callable[[], protocol.RunRecord | None]:
    def look() -> protocol.RunRecord | None:
        event = agent.state()
        return event.run if event and event.run and event.run.state == state else None

    return look


@pytest.mark.parametrize("python", pythons())
def test_restart_starts_a_run_that_steps_and_stop_ends_it(site: Site, python: str) -> None:
    with Agent(python) as agent:
        agent.watch(site.spec(), site.state)
        reply = site.execute(agent, "r-1", site.plan(agent))
        run = awaited(run_is(agent, "running"), 60)
        awaited(lambda: b"step 3" in (site.folder / "run1.log").read_bytes(), 60)
        stopping = site.execute(agent, "r-2", site.plan(agent, "stop"), "stop")
        ended = awaited(lambda: (run := run_is(agent, "stopped")()) and run.exit and run.exit.all_gone and run, 60)

    assert reply.data["run"] == "r-1"
    assert (run.alive, run.keeper_alive, run.name) == (True, True, "run1")
    assert stopping.data["run"] == "r-1"
    assert ended.exit is not None
    assert (ended.exit.signal, ended.exit.by) == (signal.SIGTERM, "anna")


def test_restart_replaces_a_run_that_was_started_by_hand(site: Site) -> None:
    with (site.folder / "run7.log").open("wb") as log:
        child = subprocess.Popen(["bash", str(site.script)], cwd=site.folder, stdout=log, start_new_session=True)
    awaited(lambda: b"step" in (site.folder / "run7.log").read_bytes())
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        plan = site.plan(agent)
        reply = site.execute(agent, "r-1", plan)
        run = awaited(run_is(agent, "running"), 60)
        child.wait(20)
        awaited(lambda: (state := agent.state()) is not None and not state.hand, what="nobody's by hand any more")

    assert plan.by_hand
    assert (plan.name, plan.replaced_name) == ("run8", "run7")
    assert {each.pid for each in plan.replaces} >= {child.pid}
    assert reply.ok, reply.error
    assert run.stages["killing"].state == "done"


def test_a_resend_answers_as_the_first_did_and_starts_nothing(site: Site) -> None:
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        plan = site.plan(agent)
        first = site.execute(agent, "r-1", plan)
        again = site.execute(agent, "r-1", plan)

        assert first.ok
        assert again.ok
        assert again.data["keeper"] == first.data["keeper"]
        awaited(run_is(agent, "running"), 60)
        assert len(list(site.folder.glob("*.log"))) == 1


def test_a_resend_that_reaches_a_new_agent_before_its_watch_is_the_same_request(site: Site) -> None:
    """Without the state directory in it the request went to the default one: a second keeper, behind another lock."""
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        plan = site.plan(agent)
        assert site.execute(agent, "r-1", plan).ok
        awaited(run_is(agent, "running"), 60)

    with Agent() as fresh:
        again = site.execute(fresh, "r-1", plan)
        planned = site.plan(fresh)

    assert again.ok, again.error
    assert (again.data["run"], again.data["state"]) == ("r-1", "running")
    assert planned.replaced_id == "r-1"


def test_a_run_that_came_up_since_the_plan_refuses_the_restart(site: Site) -> None:
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        plan = site.plan(agent)
        with (site.folder / "hand.log").open("wb") as log:
            child = subprocess.Popen([sys.executable, "-u", str(site.trainer)], stdout=log)
        awaited(lambda: (site.folder / "hand.log").stat().st_size)

        reply = site.execute(agent, "r-1", plan)
        alive = child.poll() is None
        child.kill()
        child.wait()

    assert reply.error is not None
    assert reply.error.reason == "plan_changed"
    assert alive


def test_a_held_lock_is_told_in_plan_state_and_refusal(site: Site) -> None:
    (site.state / "targets" / "t").mkdir(parents=True, mode=0o700)
    holder = lock.TargetLock(str(site.state / "targets" / "t" / "lock"))
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        plan = site.plan(agent)
        assert holder.try_acquire({"operator": "bert", "origin": "elsewhere", "name": "run3", "stage": "killing"})
        try:
            event = awaited(lambda: (state := agent.state()) and state.lock and state)
            locked = site.plan(agent)
            reply = site.execute(agent, "r-1", plan)
        finally:
            holder.release()
        awaited(lambda: (state := agent.state()) and state.lock is None)

    check = next(check for check in locked.checks if check.id == "lock")
    assert event.lock is not None
    assert event.lock.operator == "bert"
    assert (check.state, check.reason) == ("refuse", "restart_under_way")
    assert locked.lock is not None
    assert reply.error is not None
    assert reply.error.reason == "restart_under_way"
    assert "bert" in reply.error.detail


def test_stopping_nothing_is_refused(site: Site) -> None:
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        asked = agent.ask(protocol.MakePlan(id=agent.next_id(), action="stop", spec=site.spec()), 20.0)
        gone = protocol.WirePlan(plan_id="x", action="stop", replaced_id="r-0")
        done = site.execute(agent, "r-1", gone, "stop")

    assert asked.error is not None
    assert asked.error.reason == "nothing_runs"
    assert done.error is not None
    assert done.error.reason == "nothing_runs"
    assert not (site.state / "targets" / "t" / "runs" / "r-1").exists()


def test_killing_the_agent_in_the_middle_harms_no_restart(site: Site) -> None:
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        plan = site.plan(agent)
        operation = protocol.Execute(
            id=99,
            request="r-1",
            action="restart",
            spec=site.spec(),
            name=plan.name,
            log_path=plan.log_path,
            replaces=(),
            replaced_id=None,
            operator="anna",
            origin="jump",
        )
        agent.send(operation)
        # Not its program: the keeper takes that away as soon as it has begun.
        awaited((site.state / "targets" / "t" / "runs" / "r-1" / "start.log").exists, 60)
        agent.process.kill()

    with Agent() as fresh:
        fresh.watch(site.spec(), site.state)
        run = awaited(run_is(fresh, "running"), 60)
        again = fresh.ask(operation)

    assert run.id == "r-1"
    assert again.ok
    assert again.data["run"] == "r-1"


@pytest.mark.parametrize("left", ["nothing", "the request", "a piece of the program"])
def test_a_request_whose_agent_was_lost_before_it_started_a_keeper_is_carried_out_once(site: Site, left: str) -> None:
    directory = site.state / "targets" / "t" / "runs" / "r-1"
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        plan = site.plan(agent)
        directory.mkdir(mode=0o700, parents=True)
        if left != "nothing":
            asked = {"request": "r-1", "action": "restart", "spec": msgspec.to_builtins(site.spec()), "name": plan.name}
            now_bt = procfs.boottime()
            asked |= {"log_path": plan.log_path, "replaces": [], "operator": "anna", "origin": "jump"}
            asked |= {"accepted_wall": time.time(), "accepted_bt": now_bt, "expires_bt": now_bt + 60}
            files.write_json(str(directory), "request.json", asked | {"boot": procfs.boot_identity()})
        if left == "a piece of the program":
            (directory / "start.bin").write_bytes(b"?")

        first = site.execute(agent, "r-1", plan)
        again = site.execute(agent, "r-1", plan)
        run = awaited(run_is(agent, "running"), 60)

    assert (first.ok, again.ok, run.id) == (True, True, "r-1"), (first, again)
    assert run.keeper is not None
    assert first.data["keeper"]["pid"] == again.data["keeper"]["pid"] == run.keeper.pid


def test_secrets_stand_in_no_process_list_and_not_in_the_plan(site: Site) -> None:
    first = {"API_TOKEN": "hush-1", "PLAIN": "1", "SAME": "x y\n'\"$é"}
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        site.execute(agent, "r-1", site.plan(agent, env=first), env=first)
        awaited(run_is(agent, "running"), 60)
        awaited(lambda: "step" in (site.folder / "run1.log").read_text(), what="its shell has started it")
        lists = "\n".join(word for pid in procfs.all_pids() for word in procfs.argv(pid))
        plan = site.plan(agent, env={**first, "API_TOKEN": "hush-2", "PLAIN": "2"})

    assert "hush" not in lists
    assert site.trainer.name in lists
    assert plan.env_changed == {"API_TOKEN": ("(hidden)", "(hidden)"), "PLAIN": ("1", "2")}
    assert plan.env_same == 1


def test_edited_scripts_are_named_in_the_next_plan(site: Site) -> None:
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        first = site.plan(agent)
        site.execute(agent, "r-1", first)
        awaited(run_is(agent, "running"), 60)
        unchanged = site.plan(agent)
        site.trainer.write_text(TRAINER + "# edited\n")
        site.script.chmod(0o700)
        edited = site.plan(agent)

    assert first.files_changed == unchanged.files_changed == ()
    assert edited.files_changed == (f"{site.script} (mode 755 -> 700)", str(site.trainer))
    assert edited.plan_id != unchanged.plan_id


def test_differences_are_told_from_the_run_that_is_asked_for_else_from_the_last(site: Site) -> None:
    other: dict[str, Any] = {"env": {"SPLIT": "1"}, "command": (str(site.script), "--fast")}
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        site.execute(agent, "r-1", site.plan(agent))
        awaited(run_is(agent, "running"), 60)
        site.execute(agent, "r-2", site.plan(agent, **other), **other)
        awaited(lambda: (run := run_is(agent, "running")()) and run.id == "r-2", 60)
        last = site.plan(agent)
        operation = protocol.MakePlan(id=agent.next_id(), action="restart", spec=site.spec(), compare_to="r-1")
        good = msgspec.convert(agent.ask(operation, 30.0).data, protocol.WirePlan)
        operation = protocol.MakePlan(id=agent.next_id(), action="restart", spec=site.spec(), compare_to="r-gone")
        gone = msgspec.convert(agent.ask(operation, 30.0).data, protocol.WirePlan)

    assert (last.since_id, last.since_name) == ("r-2", "run2")
    assert last.env_changed == {"SPLIT": ("1", None)}
    assert last.argv_before == (str(site.script), "--fast")
    assert last.cwd_before is None
    assert (good.since_id, good.env_changed, good.argv_before) == ("r-1", {}, None)
    assert gone.since_id == "r-2"
    assert last.plan_id == good.plan_id == gone.plan_id


def test_record_tells_what_the_run_was_started_with_and_no_secret(site: Site) -> None:
    env = {"API_TOKEN": "hush", "PLAIN": "1"}
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        site.execute(agent, "r-1", site.plan(agent, env=env), env=env, unset=("LANG",))
        run = awaited(run_is(agent, "running"), 60)

    assert run.env["PLAIN"] == "1"
    assert run.env["API_TOKEN"].startswith("hmac:")
    assert run.unset == ("LANG",)
    assert run.keep_cache is True, "no cache is configured"
    assert run.scripts[str(site.script)].mode == 0o755


def test_secret_of_a_request_that_no_keeper_has_scrubbed_yet_is_not_sent() -> None:
    record = {"id": "r-1", "env": {"API_TOKEN": "hush", "OLD_KEY": "hmac:51c0", "PLAIN": "1"}, "_request": {"x": 1}}

    sent = records.wire(record)

    assert sent is not None
    assert sent["env"] == {"API_TOKEN": "hmac:?", "OLD_KEY": "hmac:51c0", "PLAIN": "1"}
    assert "_request" not in sent


def test_a_plan_has_the_same_id_as_long_as_nothing_changes(site: Site) -> None:
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        ids = [site.plan(agent).plan_id, site.plan(agent).plan_id]
        other = site.plan(agent, env={"A": "1"}).plan_id

    assert len(set(ids)) == 1
    assert other not in ids


def test_caches_are_counted_within_bounds_and_dangerous_ones_refused(site: Site) -> None:
    cache = site.folder / "cache" / "deep"
    cache.mkdir(parents=True)
    (cache / "file").write_bytes(b"x" * 100_000)
    (site.folder / "link").symlink_to("/")
    paths = (str(cache.parent), str(site.folder / "link"), str(site.folder), "/", str(site.folder / "none"))
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        found = site.plan(agent, caches=paths).caches

    assert [cache.exists for cache in found] == [True, True, True, True, False]
    assert [bool(cache.refused) for cache in found] == [False, True, True, True, False]
    assert (found[0].files, found[0].partial) == (1, False)
    assert found[0].bytes is not None
    assert found[0].bytes >= 100_000


def test_a_plan_leaves_the_loop_free(site: Site) -> None:
    slow, gate = site.folder / "python3", site.folder / "gate"
    os.mkfifo(gate)
    slow.write_text(f"#!/bin/sh\nread answer <{gate}\n")
    slow.chmod(0o755)
    site.script.write_text(f"#!/bin/bash\nexec {slow} {site.trainer.name}\n")
    with Agent() as agent:
        agent.watch(site.spec(), site.state)
        wanted = protocol.PreflightSpec(modules=("torch",))
        agent.send(protocol.MakePlan(id=500, action="restart", spec=site.spec(preflight=wanted)))
        pings = [agent.ask(protocol.Ping(id=agent.next_id())).ok for _ in range(3)]
        while_it_waits = 500 in agent.replies
        with gate.open("r+b", buffering=0) as opened:
            opened.write(b"go on\n")
            awaited(lambda: 500 in agent.replies, 60.0, "the plan")

    assert (pings, while_it_waits) == ([True] * 3, False)


def test_a_keeper_that_never_speaks_is_named_and_its_request_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute = tmp_path / "mute"
    mute.write_text("#!/bin/sh\necho 'no such module: json' >&2\n")
    mute.chmod(0o755)
    monkeypatch.setattr(startkeeper, "python", lambda: str(mute))
    monkeypatch.setattr(startkeeper, "has_system_manager", lambda: False)
    monkeypatch.setattr(loader, "pack", b"x")
    directory = startkeeper.make_run_dir(str(tmp_path / "state"), "t", "r-1")
    assert directory is not None
    startkeeper.write_request(directory, {"op": "execute", "id": 1, "request": "r-1", "ttl_s": 60}, {})

    start = startkeeper.Start(directory, lambda: None, "unit")
    awaited(lambda: (Path(directory) / "start.log").read_text(), what="what it says of why")
    monkeypatch.setattr(startkeeper, "FIRST_WORD_S", 0.0)
    awaited(start.advance, 60)

    assert start.error is not None
    assert start.error.reason == "keeper_not_started"
    assert "no such module: json" in str(start.error)
    assert json.loads((Path(directory) / "request.json").read_text())["expires_bt"] == 0.0
    assert startkeeper.make_run_dir(str(tmp_path / "state"), "t", "r-1") is None


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")

    with pytest.raises(startkeeper.NotStarted) as caught:
        startkeeper.make_run_dir(str(tmp_path / "state"), "t", "r-1")

    assert caught.value.reason == "state_dir_unusable"


@pytest.mark.parametrize("run", ["", ".", "..", "../x", "a/b", "x" * 65, "a\n", None, 7])
def test_a_run_id_is_never_a_path(run: Any) -> None:
    assert not startkeeper.is_run_id(run)
