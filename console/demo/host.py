"""The demo's training host: an SSH server on loopback, a home directory, a simulated trainer and simulated GPUs.

Everything between the screen and the trainer is real: SSH, the agent, the keeper, processes, files. The host lives in a
thread with a loop of its own, so that a busy screen can't slow it. On leaving, every process that it started is ended
by pid and start time, and every file is removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import asyncssh

from console.config import Deadlines, Gpus, Metrics, Stop, Target
from console.demo import faults
from console.demo.trainer import compile_kernels
from console.host import discover, procfs
from console.link.children import start_child

NAME = "ct-demo"
GPUS = 8
_CUT_S = 20.0
_STOP_S = 5.0
_DEATH_S = 5.0
_CHUNK_BYTES = 64 * 1024
_KEEPER_STARTS_WITHIN_S = 3.0

_RUN_SH = """\
#!/bin/sh
PATH="{bin}:$PATH"
set -x
export DFLASH_PROFILE_INTERVAL="${{DFLASH_PROFILE_INTERVAL:-60}}"
exec {python} -u {folder}/train_dflash_pipeline.py --gpus {gpus} --targets 5 --drafters 3 --speed {speed} \\
    --load-time {load_s} --step-time 1 --gpu-state {folder}/gpus --fault-file {folder}/fault --out {folder}/ckpt \\
    --compile-cache {folder}/cache/torchinductor --open-uvm ''
"""


class DemoHost:
    """One simulated training host in `folder`; use as a context manager."""

    def __init__(self, folder: Path, *, speed: float = 1.0, load_s: float = 6.0) -> None:
        self.folder = folder = folder.absolute()  # it goes into a config that is read from anywhere
        self._speed, self._load_s = speed, load_s
        self._home = folder / "host"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="demo-host", daemon=True)
        self._connections: dict[asyncssh.SSHServerConnection, None] = {}  # in their order
        self._commands: set[asyncio.Task[None]] = set()
        self._cut = self._log_cut = False
        self._server: asyncssh.SSHAcceptor | None = None
        self.port = 0

    # -- life ---------------------------------------------------------------------------------------------------------

    def __enter__(self) -> DemoHost:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._home.mkdir(mode=0o700)
        try:
            self._write_files()
            self._thread.start()
            asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """End what was started, by pid and start time, and remove every file. Safe to call twice."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._close_server(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
        if not self._loop.is_running() and not self._loop.is_closed():
            self._loop.close()
        self._end_runs()
        shutil.rmtree(self._home, ignore_errors=True)
        for name in ("key", "known_hosts"):
            (self.folder / name).unlink(missing_ok=True)

    @property
    def target(self) -> Target:
        """The target that reaches this host, as a config would state it."""
        home = str(self._home)
        return Target(
            host="127.0.0.1",
            port=self.port,
            user="demo",
            identity=str(self.folder / "key"),
            known_hosts=str(self.folder / "known_hosts"),
            python=sys.executable,
            state_dir=f"{home}/state",
            command=(f"{home}/run.sh",),
            cwd=home,
            env={"DFLASH_SPLIT_FC_LAYERS": "0"},
            name="slammed{n}",
            log=f"{home}/train_{{name}}.log",
            # The whole path: another simulated trainer of this machine, or a real one, is never ours to kill.
            match=(f"{home}/train_dflash_pipeline.py",),
            caches=(f"{home}/cache/torchinductor",),
            stop=Stop(grace_s=5.0),
            gpus=Gpus(expected=GPUS, roles={"target": (0, 1, 2, 3, 4), "drafter": (5, 6, 7)}, simulated=f"{home}/gpus"),
            metrics=Metrics(baseline=21_000.0),
            deadlines=Deadlines(killing=20.0, cache=10.0, spawned=10.0, cuda=30.0, stepping=60.0),
        )

    # -- faults -------------------------------------------------------------------------------------------------------

    def inject(self, name: str) -> faults.Fault | None:
        """Make the host go wrong in the named way (`none`: no longer). Raises: ValueError for an unknown name."""
        self._write_run_sh()
        fault_file = self._home / "fault"
        fault_file.unlink(missing_ok=True)
        if name == "none":
            return None
        fault, _ = faults.parse(name)
        match fault.by:
            case faults.By.TRAINER:
                _replace(fault_file, name)
            case faults.By.SCRIPT:
                self._spoil_run_sh(fault.name)
            case faults.By.HOST if fault.name == "log-cut":
                self.cut_log()
            case faults.By.HOST:
                self.cut_link()
        return fault

    def cut_link(self, seconds: float = _CUT_S) -> None:
        """Drop every connection, and answer none for a while."""
        self._loop.call_soon_threadsafe(self._cut_now, seconds)

    def cut_log(self, seconds: float = _CUT_S) -> None:
        """Drop the newest connection, which carries the log, and give no other way for a while."""
        self._loop.call_soon_threadsafe(self._cut_log_now, seconds)

    def _cut_log_now(self, seconds: float) -> None:
        self._log_cut = True
        *_, newest = self._connections or [None]
        if newest is not None:
            newest.abort()
        self._loop.call_later(seconds, setattr, self, "_log_cut", False)

    def _cut_now(self, seconds: float) -> None:
        self._cut = True
        for connection in list(self._connections):
            connection.abort()
        self._loop.call_later(seconds, setattr, self, "_cut", False)

    # -- files --------------------------------------------------------------------------------------------------------

    def _write_files(self) -> None:
        shutil.copyfile(Path(__file__).with_name("trainer.py"), self._home / "train_dflash_pipeline.py")
        self._write_run_sh()
        compile_kernels(f"{self._home}/cache/torchinductor")  # as after a run of yesterday
        script = self._home / "train_dflash_pipeline.py"
        idle = [
            sys.executable,
            "-I",
            str(script),
            "--idle",
            "--gpus",
            str(GPUS),
            "--gpu-state",
            str(self._home / "gpus"),
        ]
        subprocess.run(idle, check=True, timeout=20, stdin=subprocess.DEVNULL)

    def _write_run_sh(self) -> None:
        python = Path(sys.executable)
        text = _RUN_SH.format(
            bin=python.parent,
            python=python.name,
            folder=self._home,
            gpus=GPUS,
            speed=self._speed,
            load_s=self._load_s,
        )
        _replace(self._home / "run.sh", text, mode=0o755)

    def _spoil_run_sh(self, fault: str) -> None:
        script = self._home / "run.sh"
        if fault == "exec-refused":
            script.chmod(0o644)
        else:
            _replace(script, script.read_text().replace("#!/bin/sh", "#!/bin/nosuch", 1), mode=0o755)

    # -- SSH server ---------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        host_key = asyncssh.generate_private_key("ssh-ed25519")
        client_key = asyncssh.generate_private_key("ssh-ed25519")
        client_key.write_private_key(str(self.folder / "key"))
        (self.folder / "key").chmod(0o600)
        host = self

        class Server(asyncssh.SSHServer):
            """Lets the demo's one key in, except while the link is cut."""

            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                self._connection = conn
                host._connections[conn] = None
                if host._cut or host._log_cut:
                    conn.abort()

            def connection_lost(self, exc: Exception | None) -> None:
                host._connections.pop(self._connection, None)

        self._server = await asyncssh.create_server(
            Server,
            "127.0.0.1",
            0,
            server_host_keys=[host_key],
            authorized_client_keys=asyncssh.import_authorized_keys(client_key.export_public_key().decode()),
            process_factory=self._run_command,
            encoding=None,
        )
        self.port = self._server.get_port()
        known = host_key.export_public_key().decode().split()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {known[0]} {known[1]}\n")

    async def _run_command(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Run the client's command line by a shell, as sshd does."""
        if self._log_cut:
            process.exit(1)  # no second session beside the first, either
            return
        command = asyncio.current_task()
        assert command is not None
        self._commands.add(command)
        command.add_done_callback(self._commands.discard)
        child, transport = await start_child("/bin/sh", "-c", process.command or "exit 0", cwd=self._home)
        try:
            async with asyncio.TaskGroup() as pumps:
                feeding = pumps.create_task(_feed(process, child))
                printing = [pumps.create_task(_forward(child.stdout, process.stdout))]
                printing.append(pumps.create_task(_forward(child.stderr, process.stderr)))
                await asyncio.wait(printing)
                status = await child.wait()
                feeding.cancel()
            process.exit(status if status >= 0 else 128 - status)
        finally:
            transport.close()  # kills it if it lives, and closes our ends even while a grandchild holds the others
            await child.wait()

    async def _close_server(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.abort()
        await _cancelled(self._commands)  # before the others, which may be about to connect the pipes of a child
        if self._server is not None:
            await self._server.wait_closed()
        await _cancelled(asyncio.all_tasks() - {asyncio.current_task()})

    # -- the end ------------------------------------------------------------------------------------------------------

    def _end_runs(self) -> None:
        """Ask every keeper to stop its run, also one that is only just starting; then kill what is left, by pid."""
        asked: set[Path] = set()
        deadline = procfs.boottime() + _STOP_S
        while procfs.boottime() < deadline:
            keepers = list(self._keepers())
            for folder in {folder for folder, _, _ in keepers} - asked:
                if _ask_to_stop(folder):
                    asked.add(folder)
            if not keepers and not self._is_starting_one():
                break
            threading.Event().wait(0.02)
        table = procfs.table()
        killed = {
            each: table[each].start
            for _, pid, _start in self._keepers()
            for each in [pid, *procfs.descendants([pid], table)]
            if each in table
        }
        for run in discover.find_runs([str(self._home / "train_dflash_pipeline.py")]):
            killed |= {each["pid"]: each["start"] for each in run["pids"]}
        _kill(killed)
        deadline = procfs.boottime() + _DEATH_S  # until then they write, and a folder that is written to can't go
        while any(procfs.is_alive(*each) for each in killed.items()) and procfs.boottime() < deadline:
            threading.Event().wait(0.02)

    def _is_starting_one(self) -> bool:
        """Whether a request was taken whose keeper has not yet written who it is."""
        for request in (self._home / "state" / "targets").glob("*/runs/*/request.json"):
            with contextlib.suppress(OSError):
                is_young = time.time() - request.stat().st_mtime < _KEEPER_STARTS_WITHIN_S
                if is_young and not request.with_name("status.json").exists():
                    return True
        return False

    def _keepers(self) -> Iterator[tuple[Path, int, int]]:
        for path in (self._home / "state" / "targets").glob("*/runs/*/status.json"):
            try:
                keeper = json.loads(path.read_text())["keeper"]
                if procfs.is_alive(keeper["pid"], keeper["start"]):
                    yield path.parent, keeper["pid"], keeper["start"]
            except (OSError, ValueError, KeyError, TypeError):
                continue


async def _feed(process: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process) -> None:
    """Hand the client's input to the child; the end of the client, however it comes, is the end of the input."""
    assert child.stdin is not None
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await process.stdin.read(_CHUNK_BYTES):
            child.stdin.write(data)
            await child.stdin.drain()
    child.stdin.close()


async def _forward(source: asyncio.StreamReader | None, sink: asyncssh.SSHWriter[bytes]) -> None:
    """Hand the child's output to the client, as long as there is one."""
    assert source is not None
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await source.read(_CHUNK_BYTES):
            sink.write(data)
            await sink.drain()


async def _cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _ask_to_stop(run_folder: Path) -> bool:
    line = {"op": "stop", "operator": "demo", "origin": "end of the demo", "request": "demo-end", "signal": "TERM"}
    with contextlib.suppress(OSError):
        control = os.open(run_folder / "control", os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(control, json.dumps({**line, "grace_s": 2.0}).encode() + b"\n")
        finally:
            os.close(control)
        return True
    return False  # its FIFO is not there yet


def _replace(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a whole file at once: readers see the old text or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text)
    temporary.chmod(mode)
    temporary.rename(path)
