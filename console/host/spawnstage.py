"""Stage spawned: the command is executed, its output on a fresh log, and what the GPUs held before is noted.

Only keeper.py and vigil.py import this module.
"""

from __future__ import annotations

from typing import Dict, NamedTuple

from . import killstage, procfs, request, spawn, transaction
from .transaction import Failed

# The sampler began with the keeper, so mostly its first answer is there by then; a driver that is asleep takes longer.
_BASELINE_S = 1.0
# From the expiry of a request on: the longest that killing and waiting for GPU memory take. Later than that the
# container was frozen in between, and nobody waits for this run any more.
_STALE_S = 300.0

Ident = request.Ident
OpenedLog = spawn.OpenedLog


class Spawned(NamedTuple):
    main: Ident
    log: OpenedLog
    bt: float


class Spawning:
    """The start of the new run, once the old one is `killed`."""

    def __init__(self, task: transaction.Transaction, killed: killstage.Killed) -> None:
        self._task, self._asked, self._spec = task, task.asked, task.asked.spec
        self._journal, self._gpus = task.journal, task.gpus
        self._killed = killed

    def spawn(self, env: Dict[str, str], oom_score_adj: str) -> Spawned:
        """Execute the command with its output on a fresh log. Raises: Failed, Cancelled."""
        asked = self._asked
        self._task.pump()
        self._refuse_stale()
        self._task.enter("spawned")
        self._journal.begin("spawned", "spawned")
        self._take_baseline()
        try:
            opened = spawn.open_log(asked.log_path)
            note = lambda pid: self._note_main(pid, opened)  # noqa: E731
            pid = spawn.spawn(self._spec["command"], self._spec["cwd"], env, opened, oom_score_adj, note)
        except spawn.SpawnError as error:
            self._journal.status["main"] = self._journal.status["spawned_bt"] = None
            raise Failed("spawned", error.reason, error.detail, error.number) from error
        stat = procfs.read_stat(pid)
        return Spawned((pid, stat.start if stat is not None else 0), opened, procfs.boottime())

    def _take_baseline(self) -> None:
        """Note what is used before the launch; later a quick run may hold memory already. None in time: unknown."""
        self._gpus.poll()
        if self._gpus.latest is None or self._gpus.latest["bt"] < self._killed.bt:
            self._gpus.await_sample(self._killed.bt, _BASELINE_S)
        self._gpus.take_baseline(self._killed.bt)
        if self._gpus.baseline:
            self._journal.status["gpu_baseline"] = {str(index): used for index, used in self._gpus.baseline.items()}

    def _refuse_stale(self) -> None:
        """A container that was frozen for a backup must not start on thaw what nobody waits for any more."""
        late_s = self._task.late_s
        if late_s > _STALE_S or (late_s > 0.0 and self._killed.was_frozen):
            how = ", frozen meanwhile" if self._killed.was_frozen else ""
            raise Failed("spawned", "request_expired", "expired %.0f s ago, while at it%s" % (late_s, how))

    def _note_main(self, pid: int, log: OpenedLog) -> None:
        """Journal who will be the run, before it is: see spawn."""
        stat = procfs.read_stat(pid)
        self._journal.set(
            main={"pid": pid, "start": stat.start if stat is not None else 0},
            spawned_bt=procfs.boottime(),
            log={"path": log.path, "dev": log.dev, "inode": log.inode},
        )
