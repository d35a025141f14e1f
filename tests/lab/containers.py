"""LXC containers on an overlay over the cached root filesystems: start, look inside, freeze, stop."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.lab import lxcfs
from tests.lab.commands import LabError, argv_of, call
from tests.lab.rootfs import FIRST_UNPRIVILEGED_UID, Flavour, rootfs
from tests.waiting import until

_Config = list[tuple[str, str]]
_SHELL_INIT: _Config = [("lxc.init.cmd", "/init.sh"), ("lxc.mount.auto", "proc:mixed sys:ro")]
_SYSTEMD_INIT: _Config = [("lxc.init.cmd", "/sbin/init"), ("lxc.mount.auto", "proc:mixed sys:mixed cgroup:mixed")]


class Container:
    """One container of a session; `number` is what `pct exec NUMBER -- CMD` calls it by."""

    def __init__(self, folder: Path, number: int, flavour: Flavour, *, vmstat: Path | None = None) -> None:
        """`vmstat`: what stands for the kernel's own, which counts the kills for want of memory anywhere."""
        self.number = number
        self._vmstat = vmstat
        self.flavour = flavour
        self._session_folder = folder
        self._first_uid = FIRST_UNPRIVILEGED_UID if flavour is Flavour.UNPRIVILEGED else 0
        self._lxc_path = folder / "lxc"
        self._folder = self._lxc_path / str(number)
        self._init_pid = 0

    @property
    def exec_prefix(self) -> list[str]:
        """The words with which operators enter it: `exec` of the console's config."""
        return ["pct", "exec", str(self.number), "--"]

    @property
    def root(self) -> Path:
        """Its root directory as this machine sees it, with everything that is mounted inside; only while it runs."""
        return Path(f"/proc/{self._init_pid}/root")

    def start(self) -> None:
        """Start it, or start it again: what it had on its disk is kept, what it had in memory is not."""
        merged = self._folder / "rootfs"
        if not merged.is_dir():
            self._prepare(merged)
        # Where lxc finds newuidmap it obeys /etc/subuid, even as root; hidden from it, it writes the mapping itself.
        hidden = ["env", "PATH=/nonexistent"] if self._first_uid else []
        call(*hidden, shutil.which("lxc-start") or "", *self._which, "-o", self._folder / "lxc.log", "-l", "INFO")
        self._init_pid = int(call("lxc-info", *self._which, "-pH"))
        if self.flavour is Flavour.SYSTEMD:
            until(self._systemd_is_up, timeout_s=60, what=f"systemd up in container {self.number}")

    def stop(self) -> None:
        """Kill everything in it at once, as the loss of the host would."""
        stop(self._lxc_path, str(self.number))
        self._init_pid = 0

    def freeze(self) -> None:
        """Suspend every process in it, as a snapshot backup does. An attach hangs until `thaw`."""
        call("lxc-freeze", *self._which)

    def thaw(self) -> None:
        call("lxc-unfreeze", *self._which)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        timeout_s: float = 30.0,
        check: bool = True,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run `argv` in it, with the container's own environment plus `env`, and wait for its end.

        Raises: LabError where it fails (unless `check` is false), subprocess.TimeoutExpired.
        """
        settings = [f"--set-var={name}={value}" for name, value in {"HOME": "/root", **(env or {})}.items()]
        words = ["lxc-attach", *self._which, "--clear-env", *settings, "--", *argv]
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False)
        if check and done.returncode:
            raise LabError(f"{words}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def path(self, inside: str) -> Path:
        """Return where this machine finds the absolute path `inside`. Absolute symlinks in it lead astray."""
        return self.root / inside.lstrip("/")

    def write(self, inside: str, text: str, mode: int = 0o644) -> None:
        """Write a file, with the folders above it; `mode` 0o755 makes it a program."""
        target = self.path(inside)
        self.make_folder(os.path.dirname(inside))
        target.write_text(text)
        self._own(target)
        target.chmod(mode)

    def make_folder(self, inside: str) -> None:
        """Make a folder and those above it, where they are not there yet."""
        missing = [path for path in (self.path(inside), *self.path(inside).parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir()
            self._own(path)

    def read(self, inside: str) -> str:
        """Return a file's text, empty where there is no such file (yet)."""
        try:
            return self.path(inside).read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):  # also: a process that has ended since it was opened
            return ""

    def copy_in(self, source: Path, inside: str) -> None:
        """Copy a file or a whole folder, with its modes."""
        target = self.path(inside)
        self.make_folder(os.path.dirname(inside))
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
        else:
            shutil.copy2(source, target)
        for path in (target, *target.rglob("*")):
            self._own(path)

    def remove(self, *inside: str) -> None:
        """Delete files and folders, where they are there."""
        for each in inside:
            target = self.path(each)
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)

    def touch_uvm(self) -> str:
        """Make /dev/nvidia-uvm a regular file, so that a process which opens it looks as one that uses CUDA."""
        # From inside: /dev of an unprivileged container takes no file of an owner that it doesn't know.
        self.run(["sh", "-c", "touch /dev/nvidia-uvm && chmod 666 /dev/nvidia-uvm"])
        return "/dev/nvidia-uvm"

    def processes(self) -> dict[int, list[str]]:
        """Return the command line of every process by its pid inside; those without one (zombies) are left out."""
        proc = self.path("/proc")
        pids = sorted(int(name) for name in os.listdir(proc) if name.isdigit())
        return {pid: argv for pid in pids if (argv := argv_of(pid, proc))}

    def outside(self, pid: int) -> int:
        """Return what this machine calls the process that has `pid` inside."""
        space = os.readlink(f"/proc/{self._init_pid}/ns/pid")
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{name}/ns/pid") != space:
                    continue
                lines = Path(f"/proc/{name}/status").read_text().splitlines()
            except OSError:
                continue  # it has ended meanwhile
            known = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
            if known and int(known[-1]) == pid:
                return int(name)
        raise LabError(f"no process {pid} in container {self.number}")

    def pids_of(self, argument: str) -> list[int]:
        """Return the pids inside of which one argument is `argument` or a path that ends in it; never a substring."""
        return [
            pid
            for pid, argv in self.processes().items()
            if any(word == argument or word.endswith("/" + argument) for word in argv)
        ]

    def kill_all(self, pids: Iterable[int] | None = None) -> None:
        """KILL `pids` (inside), or all but init and what systemd runs for itself, and wait until they are gone."""
        doomed = set(self._strangers() if pids is None else pids)
        if doomed:
            self.run(["kill", "-KILL", *map(str, sorted(doomed))], check=False)
            until(lambda: not doomed & set(self.processes()), what=f"gone in {self.number}: {doomed}")

    def _strangers(self) -> list[int]:
        own = ("/lib/systemd/", "/usr/lib/systemd/", "/usr/bin/dbus-daemon", "sleep", "(sd-pam)", "/sbin/agetty")
        return [pid for pid, argv in self.processes().items() if pid != 1 and not argv[0].startswith(own)]

    def _prepare(self, merged: Path) -> None:
        upper, work = self._folder / "upper", self._folder / "work"
        for each in (merged, upper, work):
            each.mkdir(parents=True)
        layers = f"lowerdir={rootfs(self.flavour)},upperdir={upper},workdir={work}"
        call("mount", "-t", "overlay", "-o", layers, "dflash-lab", merged)
        config: _Config = [
            ("lxc.uts.name", f"ct{self.number}"),
            ("lxc.rootfs.path", f"dir:{merged}"),
            ("lxc.net.0.type", "empty"),
            ("lxc.apparmor.profile", "unconfined"),
            ("lxc.tty.max", "0"),
            ("lxc.pty.max", "1024"),
            *(_SYSTEMD_INIT if self.flavour is Flavour.SYSTEMD else _SHELL_INIT),
        ]
        if self._first_uid:
            config += [("lxc.idmap", f"{kind} 0 {self._first_uid} 65536") for kind in "ug"]
            config += [("lxc.mount.entry", entry) for entry in lxcfs.mount_entries(self._session_folder)]
        if self._vmstat is not None:
            config += [("lxc.mount.entry", f"{self._vmstat} proc/vmstat none bind,ro 0 0")]
        if self._first_uid:
            os.chown(merged, self._first_uid, self._first_uid)
        (merged / "etc/hostname").write_text(f"ct{self.number}\n")
        (self._folder / "config").write_text("".join(f"{key} = {value}\n" for key, value in config))

    def _own(self, path: Path) -> None:
        if self._first_uid and path.lstat().st_uid < self._first_uid:
            os.lchown(path, self._first_uid, self._first_uid)

    def _systemd_is_up(self) -> bool:
        state = self.run(["systemctl", "is-system-running"], check=False).stdout.strip()
        return state in {"running", "degraded"}

    @property
    def _which(self) -> list[str]:
        return ["-P", str(self._lxc_path), "-n", str(self.number)]


def stop(lxc_path: Path, name: str) -> None:
    """Kill the container `name` under `lxc_path`, frozen or not; no complaint where it does not run."""
    which = ["-P", str(lxc_path), "-n", name]
    if "FROZEN" in call("lxc-info", *which, "-sH", check=False):
        call("lxc-unfreeze", *which, check=False)
    call("lxc-stop", *which, "-k", check=False)
