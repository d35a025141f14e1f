"""The life of a run after exec: waiting, reaping, stopping on request, sampling, recording, and the exit record.

One loop, woken by SIGCHLD, the FIFO, the GPU sampler or the next thing that is due. A bug in here must not end the
run's only witness: an iteration that raises is logged and the loop goes on. Only keeper.py imports this module.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from typing import Any, Dict, Optional, Set, Tuple

from . import (
    exitrecord,
    files,
    gpuwatch,
    journal,
    kill,
    lock,
    oom,
    procfs,
    prune,
    recorder,
    request,
    runlog,
    runtree,
    spawnstage,
    transaction,
)

YOUNG_S = 600.0
"""A launch is watched closely for so long, then only now and then."""
_LOG_S, _LOG_OLD_S = 0.25, 1.0
_SCAN_NEW_S, _SCAN_S, _SCAN_OLD_S = 0.1, 1.0, 10.0
_NEW_S = 2.0
_CUDA_OLD_S = 10.0
_EARLY_S = 0.5
_SILENT_S, _SILENT_AGAIN_S = 1.5, 0.5
"""A sampler that says nothing is asked why not after so long, and then again and again."""
_MOST_PROCS = 32
"""Of a run with more processes these are recorded: 15 us each, once a second."""
_OOM_S = 5.0
_JOB_STEP_S = 0.02
_LAST_REAP_S = 0.1
_PRUNE_S = 86400.0
_PRUNE_AFTER_S = 10.0  # a launch has other things to do first
_STOP_SAMPLE_S = 0.02  # a fifth of the time that a stop may take to its first signal


class Vigil:
    """What the keeper does from exec until nobody of the run is left."""

    def __init__(
        self,
        asked: request.Request,
        written: journal.Journal,
        record: recorder.Recorder,
        gpus: gpuwatch.GpuWatch,
        control: request.Control,
        target_lock: lock.TargetLock,
        memory: oom.OomWatch,
        spawned: spawnstage.Spawned,
    ) -> None:
        self._asked = asked
        self._journal = written
        self._record = record
        self._gpus = gpus
        self._control = control
        self._lock = target_lock
        self._memory = memory
        self._spawned = spawned
        self._log = runlog.RunLog(spawned.log)
        self._tree = runtree.RunTree(spawned.main, asked.spec.get("match") or ())
        self._start_s = float(asked.spec.get("start_s", 0.5))
        self._starting = True
        self._job: Optional[kill.KillJob] = None
        self._stopped_by: Optional[Dict[str, Any]] = None
        self._stop_began: Dict[str, float] = {}
        self._release: Optional[gpuwatch.Release] = None
        self._told_end: Any = None
        self._due: Dict[str, float] = {}
        """What each step does when it is time: nothing that waits for something else, or the loop would not pause."""
        self._judge_at = float("-inf")
        self._due.update(scan=0.0, prune=procfs.boottime() + _PRUNE_AFTER_S)
        self._wakeup = _wakeup_pipe()
        self._poll = select.poll()
        self._polled: Tuple[int, ...] = ()

    def run(self) -> None:
        """Return when nothing of the run is left and its exit record is written."""
        while True:
            try:
                if self._step():
                    return
            except Exception:  # noqa: BLE001 - the witness of the run must go on; the prose file says what happened
                traceback.print_exc(file=sys.stderr)
                time.sleep(1.0)

    def _step(self) -> bool:
        ready = self._wait()
        now = procfs.boottime()
        # With a sample, what is due soon is done, too: to be woken up costs more than to look.
        sampled = self._gpus.sampler.fileno() in ready
        ended = self._tree.reap()
        if self._is_due("scan", now, self._scan_every(now), sampled) or ended:
            self._scan(thorough=bool(ended))
        if self._control.fileno() in ready:
            self._obey()
        if self._job is not None and not self._job.done:
            self._drive(self._job)
            self._tree.reap()
        if self._over():
            self._finish()
            return True
        self._tell_early_end()
        self._judge_start(now)
        self._look(now, sampled)
        if self._is_due("gpus", now, _SILENT_AGAIN_S) or sampled:
            self._due["gpus"] = now + (_SILENT_S if sampled else _SILENT_AGAIN_S)
            self._sample(now)
        return False

    # -- waiting --

    def _wait(self) -> Set[int]:
        """Wait for what is due next; return the descriptors on which something has come before."""
        fds = (self._wakeup, self._control.fileno(), self._gpus.sampler.fileno())
        if fds != self._polled:
            self._poll, self._polled = select.poll(), fds
            for descriptor in fds:
                if descriptor >= 0:
                    self._poll.register(descriptor, select.POLLIN)
        now = procfs.boottime()
        due = min(self._due.values(), default=now)
        if self._starting:
            due = min(due, self._spawned.bt + self._start_s)
        if self._job is not None and not self._job.done:
            due = min(due, now + _JOB_STEP_S)
        ready = {descriptor for descriptor, _ in self._poll.poll(max(0.0, min(due - now, 5.0)) * 1000)}
        if self._wakeup in ready:
            try:
                os.read(self._wakeup, 4096)
            except BlockingIOError:
                pass
        return ready

    def _is_due(self, what: str, now: float, every_s: float, early: bool = False) -> bool:
        """Whether it is time. `early`: also where half of `every_s`, and a moment at most, is left until then."""
        slack_s = min(every_s / 2, _EARLY_S) if early else 0.0
        if now < self._due.get(what, 0.0) - slack_s:
            return False
        self._due[what] = now + every_s
        return True

    def _age_s(self, now: float) -> float:
        return now - self._spawned.bt

    def _young(self, now: float) -> bool:
        return self._age_s(now) < YOUNG_S

    def _scan_every(self, now: float) -> float:
        if self._age_s(now) < _NEW_S:
            return _SCAN_NEW_S
        return _SCAN_S if self._young(now) and not self._gpus.complete else _SCAN_OLD_S

    # -- the tree --

    def _scan(self, thorough: bool) -> None:
        if self._gpus.sampler.pid is not None:
            self._tree.spared.add(self._gpus.sampler.pid)
        before = self._tree.trainer
        if thorough:
            self._tree.scan()
        else:
            self._tree.glance()
        trainer = self._tree.trainer
        if trainer != before and trainer is not None:
            self._journal.status["trainer"] = {"pid": trainer[0], "start": trainer[1], "argv": self._tree.trainer_argv}
        if self._tree.main_end() is not None and trainer is not None and self._tree.trainer_end() is None:
            # The launcher handed over: from here on the trainer is the process that people mean.
            self._journal.status["launcher"] = self._journal.status.get("launcher") or self._journal.status["main"]
            self._journal.status["main"] = {"pid": trainer[0], "start": trainer[1]}
        writer = trainer if trainer is not None else self._tree.main
        if writer[0] in self._tree.members and self._log.follow(writer[0]):
            self._journal.status["log"] = dict(self._log.ident)
        self._journal.save()

    def _over(self) -> bool:
        """Nobody is left. Believed only after a fresh look, since a scan is as old as its interval."""
        if self._tree.main_end() is None:
            return False
        if self._tree.members:
            return False
        self._tree.reap()
        self._tree.scan()
        return not self._tree.members

    # -- stopping --

    def _obey(self) -> None:
        for line in self._control.lines():
            if line.get("op") == "stop":
                self._stop(line)

    def _stop(self, line: Dict[str, Any]) -> None:
        try:
            number = kill.signal_number(str(line.get("signal") or "TERM"))
            grace_s = float(line.get("grace_s", 20.0))
        except (TypeError, ValueError) as error:
            print("stop: %s" % error, file=sys.stderr)
            return
        if self._job is not None and not self._job.done:
            if number == signal.SIGKILL:
                self._job.hasten()
            return
        if self._stopped_by is None and self._tree.verdict() is None:
            self._stopped_by = {"operator": line.get("operator"), "request": line.get("request")}
        self._stop_began = {"began_wall": round(time.time(), 3), "began_bt": round(procfs.boottime(), 3)}
        held, before = bool(self._tree.uvm_holders()), self._gpus.latest
        self._release = gpuwatch.Release(before, set(self._tree.members), self._gpus.baseline, held)
        # The newest sample may be ten seconds old, and the run have loaded its models since. One that comes too late
        # for this is taken in while they die.
        self._release.held(self._gpus.await_sample(procfs.boottime(), _STOP_SAMPLE_S))
        self._job = kill.KillJob(self._tree.find, number, grace_s, procfs.boottime())
        self._journal.set(stopping=str(line.get("operator") or "somebody"))

    def _drive(self, job: kill.KillJob) -> None:
        job.step(procfs.boottime())
        if job.done and job.survivors:
            self._journal.set(stopping_text="survived SIGKILL: %s" % ", ".join(job.survivors), stopping=None)
        else:
            self._journal.set(stopping_text=job.text)

    # -- the end --

    def _tell_early_end(self) -> None:
        """Write the exit record of a run that has ended although stragglers of it live."""
        end = self._tree.verdict()
        if end is None or not self._tree.members:
            return
        # Ranks that die of their trainer's death are no stragglers a moment later.
        told = (end.ident, sorted(self._tree.members))
        if told == self._told_end:
            return
        self._told_end = told
        record = exitrecord.of_run(self._tree, end, self._spawned.bt, self._stopped_by, self._memory, all_gone=False)
        exitrecord.write(self._asked.run_dir, record)
        self._fail_start(record, end)
        words = "%s left: %s" % (len(record["stragglers"]), ", ".join(record["stragglers"]))
        self._journal.status["detail"] = words
        self._note_full_disk(end)
        self._journal.set(state=self._end_state())

    def _finish(self) -> None:
        end = self._tree.verdict() or self._tree.main_end()
        assert end is not None, "over only after the main process was reaped"
        self._gpus.sampler.stop()
        gone = self._reap_to_the_end()
        record = exitrecord.of_run(self._tree, end, self._spawned.bt, self._stopped_by, self._memory, all_gone=gone)
        exitrecord.write(self._asked.run_dir, record)
        self._fail_start(record, end)
        self._journal.status["detail"] = ""
        self._note_full_disk(end)
        self._journal.set(state=self._end_state(), stopping=None)
        self._record.log(self._log.size())
        self._record.exit(exitrecord.in_words(record))
        self._lock.release()
        try:
            files.sync(self._asked.run_dir, exitrecord.NAME)
            self._log.sync()
        except OSError as error:
            print("sync: %s" % error, file=sys.stderr)
        if self._job is not None and self._release is not None:
            try:
                self._prove_killed(self._job, self._release)
            except OSError as error:
                print("killing: %s" % error, file=sys.stderr)

    def _note_full_disk(self, end: runtree.Reaped) -> None:
        """A run that failed while its log could take nothing more can't have said why: the disk is the first cause."""
        if end.clean or self._stopped_by is not None or end.signal in (signal.SIGKILL, signal.SIGTERM):
            return
        why = self._log.why_full()
        if why:
            self._journal.status.update(reason="disk_full", detail=why)

    def _prove_killed(self, job: kill.KillJob, release: gpuwatch.Release) -> None:
        """Journal what the stop came to; killing is about this run now, and what its launch killed is kept beside it.

        Behind the exit record, which can't wait.
        """
        self._gpus.start()
        warning = gpuwatch.await_release(
            self._gpus, release, lambda text: self._journal.set(stopping_text=text), lambda: None
        )
        self._gpus.sampler.stop()
        freed = release.freed_bytes
        gone = "%s gone" % transaction.plural(job.seen, "pid")
        status = self._journal.status
        status.setdefault("launch_killing", status["stages"].get("killing"))
        status["stages"]["killing"] = dict(self._stop_began)
        self._journal.end(
            "killing",
            "done",
            transaction.counted(job.seen, freed),
            detail="%s, %s freed" % (gone, gpuwatch.size_text(freed)) if freed else gone,
            why=warning,
            reason="gpu_memory_held" if warning else None,
        )

    def _reap_to_the_end(self) -> bool:
        """Wait until there is no child: the proof. A sampler stuck in the driver is no child of the run's."""
        deadline = time.monotonic() + _LAST_REAP_S
        while True:
            self._tree.reap()
            try:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return True
            if time.monotonic() > deadline:
                self._tree.scan()
                return not self._tree.members
            time.sleep(0.002)

    def _end_state(self) -> str:
        if self._stopped_by is not None:
            return "stopped"
        spawned = self._journal.status["stages"].get("spawned", {})
        return "failed" if spawned.get("state") == "failed" else "ended"

    # -- the start --

    def _judge_start(self, now: float) -> None:
        if not self._starting or self._age_s(now) < self._start_s or self._tree.verdict() is not None:
            return
        self._starting = False
        log = self._spawned.log
        pid = self._tree.main[0] if self._tree.main_end() is None else sorted(self._tree.members)[0]
        self._journal.status["state"] = "running"
        self._journal.end("spawned", "done", "pid %d" % pid, detail="pid %d, log opened inode %d" % (pid, log.inode))
        self._lock.release()

    def _fail_start(self, record: Dict[str, Any], end: runtree.Reaped) -> None:
        if not self._starting:
            return
        self._starting = False
        words = "ended after %.2f s: %s" % (record["lived_s"], exitrecord.in_words(record))
        if self._stopped_by is not None:
            words = "stopped by %s after %.2f s" % (self._stopped_by["operator"], record["lived_s"])
        self._journal.end("spawned", "failed", "pid %d" % end.ident[0], detail=words, why=words, reason=None)
        self._lock.release()

    # -- sampling --

    def _look(self, now: float, sampled: bool) -> None:
        if self._is_due("log", now, _LOG_S if self._young(now) else _LOG_OLD_S, sampled):
            self._record.log(self._log.size())
        if self._is_due("oom", now, _OOM_S, sampled):
            self._memory.take()
        if self._is_due("prune", now, _PRUNE_S):
            prune.prune(self._asked.target_dir, os.path.basename(self._asked.run_dir))

    def _sample(self, now: float) -> None:
        sample = self._gpus.poll()
        if sample is None:
            return
        if self._release is not None and self._tree.members:
            self._release.held(sample)
        # What was decided is looked at again now and then; peaks and the record of each second go on.
        if not self._gpus.complete or now >= self._judge_at:
            self._judge_at = now + _CUDA_OLD_S
            cuda = self._gpus.judge(set(self._tree.members), self._tree.uvm_holders())
            self._journal.set(cuda=cuda, gpu_peak=dict(self._gpus.peak))
        else:
            self._gpus.raise_peaks()
        self._record.gpus(sample, self._gpus.contexts)
        self._record.procs(filter(None, map(procfs.read_stat, sorted(self._tree.members)[:_MOST_PROCS])))


def _wakeup_pipe() -> int:
    """Return a descriptor that becomes readable when a child ends."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader
