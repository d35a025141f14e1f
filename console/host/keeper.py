"""The keeper: one detached process a request. It kills, clears, spawns, then waits for the run and writes how it ended.

`main` is its entry (`start.py keeper RUN_DIR`). Whatever it will ever import is imported by the time its run lives,
since Python may be upgraded under a keeper that is days old: what isn't needed before the spawn by `later`. The deeds
are in the stages (see transaction.py) and vigil.py; here is their order, and what a failure becomes.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, Optional

from . import (
    admission,
    cachestage,
    detach,
    exitrecord,
    files,
    gpuwatch,
    journal,
    killstage,
    loader,
    lock,
    loginenv,
    oom,
    procfs,
    recorder,
    request,
    secretenv,
    spawn,
    spawnstage,
    transaction,
)

_PROGRAM = ("start.py", "start.bin")


def main(run_dir: str) -> None:
    """Carry out the request in `run_dir`; returns when the run is over. The process should end then."""
    run_dir = os.path.abspath(run_dir)
    oom_score_adj = detach.detach(run_dir, os.path.basename(run_dir))
    try:
        for name in _PROGRAM:
            _remove(os.path.join(run_dir, name))
        if not _claim(run_dir):
            return
        Keeper(request.read(run_dir), oom_score_adj).carry_out()
    except BaseException:
        import traceback

        traceback.print_exc(file=sys.stderr)
        raise


def _claim(run_dir: str) -> bool:
    """Be the only keeper that this directory ever has: a slow service manager may start a second one."""
    path = os.path.join(run_dir, request.CLAIM)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except FileExistsError:
        return False
    return True


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


class Keeper:
    """One request from its acceptance to the end of the run that came of it."""

    def __init__(self, asked: request.Request, oom_score_adj: str) -> None:
        self._asked = asked
        self._oom_score_adj = oom_score_adj
        self._record = recorder.Recorder(asked.run_dir)
        self._lock = lock.TargetLock(os.path.join(asked.target_dir, "lock"))
        gpus: Dict[str, Any] = asked.spec.get("gpus") or {}
        self._gpus = gpuwatch.GpuWatch(gpus.get("simulated"), gpus.get("expected"), asked.run_dir)
        self._gpus.know(asked.gpu_sample)
        self._control = request.Control(asked.run_dir)
        self._journal = journal.Journal(asked.run_dir, self._first_status(), self._record)
        spared = frozenset([os.getpid(), *procfs.ancestors(os.getpid())])
        self._task = transaction.Transaction(asked, self._journal, self._gpus, self._lock, self._pump, spared)
        self._killing = killstage.Killing(self._task, self._meanwhile)
        self._clearing = cachestage.Clearing(self._task)
        self._login: Optional[loginenv.LoginEnv] = None
        self._cancelled = self._is_whole = False

    def carry_out(self) -> None:
        try:
            if self._gpus.latest is None:
                self._gpus.start()  # a first sample takes its time; it is needed before anything is killed
            if not self._asked.replaces and self._asked.action == "restart":
                self._login = loginenv.LoginEnv()  # no death to wait for meanwhile
            admission.Admission(self._task).take()
            self._replace()
        except transaction.Refused as error:
            self._journal.set(state="refused", reason=error.reason, detail=error.detail)
        except transaction.Failed as error:
            self._fail(error)
        except transaction.Cancelled:
            self._journal.set(state="stopped", detail="stopped before anything was spawned")
        except Exception as error:
            # Told as a failure, not as an interruption: the keeper lived to say it.
            self._journal.set(state="failed", reason="bug", detail="%s: %s" % (type(error).__name__, error))
            raise
        finally:
            self._lock.release()
            self._clearing.close()
            self._gpus.close()
            self._prune()
            if self._login is not None:
                self._login.close()

    def _replace(self) -> None:
        restart = self._asked.action == "restart"
        if restart:
            exitrecord.reserve(self._asked.run_dir)
        killed = self._killing.kill()
        if not restart:
            self._journal.set(state="stopped")
            return
        if self._login is None:
            self._login = loginenv.LoginEnv()
        self._gpus.start()
        self._clearing.clear()
        assert self._login is not None
        env = spawn.run_environment(
            self._login.get(),
            self._asked.spec.get("env") or {},
            self._asked.spec.get("unset") or (),
            self._asked.spec["cwd"],
            self._asked.run,
        )
        self._gpus.visible = env.get("CUDA_VISIBLE_DEVICES", "")
        # Not earlier: what a profile leaves behind in the background must not become the run's.
        detach.become_subreaper()
        memory = oom.OomWatch()
        self._write_run(env, None)
        spawned = spawnstage.Spawning(self._task, killed).spawn(env, self._oom_score_adj)
        self._journal.set(
            main=_ident(spawned.main),
            spawned_bt=spawned.bt,
            log={"path": spawned.log.path, "dev": spawned.log.dev, "inode": spawned.log.inode},
        )
        self._journal.live("spawned", "pid %d" % spawned.main[0])
        self._write_run(env, spawned)
        self._import_the_rest()
        from .later import vigil

        watcher = vigil.Vigil(
            self._asked, self._journal, self._record, self._gpus, self._control, self._lock, memory, spawned
        )
        watcher.run()

    def _meanwhile(self) -> None:
        """What takes a moment and is needed once the old run is dead: begun when it has been told to die."""
        self._clearing.ready()
        self._gpus.start()
        if self._asked.action == "restart":
            self._login = self._login or loginenv.LoginEnv()
            self._import_the_rest()

    def _import_the_rest(self) -> None:
        if self._is_whole:
            return
        from . import later  # noqa: F401

        self._is_whole = True
        loader.settle()

    def _prune(self) -> None:
        """Also of a request that came to nothing: a script may ask all day long."""
        from . import prune

        prune.prune(self._asked.target_dir, os.path.basename(self._asked.run_dir))

    def _fail(self, error: transaction.Failed) -> None:
        self._journal.end(error.stage, "failed", detail=error.detail, why=error.detail, reason=error.reason)
        if error.stage == "spawned":
            exitrecord.write(self._asked.run_dir, exitrecord.of_failed_exec(error.number))
        self._journal.set(state="failed", reason=error.reason, detail=error.detail)

    def _pump(self) -> None:
        """What goes on while the transaction waits. Raises: Cancelled where a stop has come."""
        self._gpus.poll()
        if any(line.get("op") == "stop" for line in self._control.lines()):
            self._cancelled = True
        if self._cancelled:
            raise transaction.Cancelled

    def _first_status(self) -> Dict[str, Any]:
        asked = self._asked
        own = procfs.read_stat(os.getpid())
        return {
            "id": asked.run,
            "action": asked.action,
            "name": asked.name,
            "target": asked.spec["target"],
            "boot": asked.boot,
            "state": "",
            "operator": asked.operator,
            "origin": asked.origin,
            "note": asked.note,
            "accepted_wall": asked.accepted_wall,
            "accepted_bt": asked.accepted_bt,
            "replaced_id": asked.replaced_id,
            "replaced_name": self._replaced_name(),
            "keeper": {"pid": os.getpid(), "start": own.start if own is not None else 0},
        }

    def _replaced_name(self) -> Optional[str]:
        if self._asked.replaced_id is None:
            return None
        name = (files.read_json(self._asked.other_run_dir(self._asked.replaced_id), journal.NAME) or {}).get("name")
        return name if isinstance(name, str) else None

    def _write_run(self, env: Dict[str, str], spawned: Optional[spawnstage.Spawned]) -> None:
        """Write run.json: what is executed, before and (with identities) after."""
        asked = self._asked
        declared = secretenv.masked(asked.spec.get("env") or {}, secretenv.state_key(asked.state_dir))
        log: Dict[str, Any] = {"path": asked.log_path}
        if spawned is not None:
            log.update(dev=spawned.log.dev, inode=spawned.log.inode)
        content = {
            "id": asked.run,
            "argv": list(asked.spec["command"]),
            "cwd": asked.spec["cwd"],
            "env": declared,
            "unset": list(asked.spec.get("unset") or ()),
            "env_names": sorted(env),
            "login_env_why": self._login.why if self._login is not None else "",
            "log": log,
            "boot": asked.boot,
            "keeper": self._journal.status["keeper"],
            "main": _ident(spawned.main) if spawned is not None else None,
            "spawned_bt": spawned.bt if spawned is not None else None,
            "operator": asked.operator,
            "origin": asked.origin,
            "note": asked.note,
            "uid": os.geteuid(),
            "python": sys.version.split()[0],
        }
        try:
            files.write_json(asked.run_dir, "run.json", content)
            if spawned is None:
                request.scrub(asked, declared)
        except OSError as error:
            print("run.json: %s" % error, file=sys.stderr)


def _ident(ident: request.Ident) -> Dict[str, int]:
    return {"pid": ident[0], "start": ident[1]}
