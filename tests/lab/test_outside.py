"""The helper on the host itself: whose a GPU's memory is, by the host's pids, a frozen container, kills for memory."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.engine import Engine
from console.link import channel
from console.model import Gpu, LinkState, Snapshot, Verdict
from tests import uncounted
from tests.lab import standin
from tests.lab.rootfs import Flavour
from tests.lab.session import Lab, Setting
from tests.lab.training import LIBRARY, Training, reach
from tests.waiting import until

_STATE = "/run/fake-nvml/state"
_LOG = "/workspace/train_hand.log"
_GIB = 1 << 30


def _of_container(holder: str, training: Training) -> int:
    """Start a process that holds /dev/nvidia-uvm and is no part of a run; return its pid inside."""
    ct = training.container
    ct.write(
        "/root/other.py", 'import time\ncontext = open("/dev/nvidia-uvm")\nprint(1, flush=True)\ntime.sleep(600)\n'
    )
    ct.run(["sh", "-c", "setsid -f python3 /root/other.py >/tmp/other 2>&1 </dev/null"])
    until(lambda: ct.read("/tmp/other") == "1\n", 60, f"{holder} holds the device")
    (pid,) = ct.pids_of("other.py")
    return pid


@contextlib.contextmanager
def _on_the_host(folder: Path) -> Iterator[int]:
    """A process of this machine, outside of any container, that holds a file of the device's name.

    It has a /dev of its own: no other process of this machine, whatever test started it, sees the file.
    """
    ready = folder / "ready"
    program = f"import time\ncontext = open('/dev/nvidia-uvm')\nopen({str(ready)!r}, 'w').close()\ntime.sleep(600)\n"
    own_dev = 'mount -t tmpfs tmpfs /dev && : > /dev/nvidia-uvm && exec python3 -c "$1"'
    process = subprocess.Popen(["unshare", "--mount", "sh", "-c", own_dev, "sh", program])
    try:
        until(ready.exists, 60, "the host's process holds the device")
        yield process.pid
    finally:
        process.kill()
        process.wait()


def _started_by_hand(training: Training, driver: Path) -> int:
    """Start a run that leaves the GPUs' state alone, where the driver lists what a test writes; return its pid."""
    ct = training.container
    standin.install(ct)
    ct.copy_in(driver, LIBRARY)
    ct.touch_uvm()
    ct.write(_STATE, "driver 550.54\n")
    ct.run(["sh", "-c", f"cd /root && setsid -f python3 /root/train.py >{_LOG} 2>&1 </dev/null"])
    until(lambda: "step 2 " in ct.read(_LOG), 60, "the run steps")
    (pid,) = ct.pids_of("train.py")
    return pid


def _config(training: Training, **settings: Setting) -> Path:
    return training.config("host", **{"match": ["train.py"], "gpus": {"expected": 1}, **settings})


def _gpus(training: Training, *holders: str) -> None:
    """Show a GPU for each line of holders: pids as the host counts."""
    lines = [
        f'gpu {i} uuid="GPU-{i}" name="H200" total={141 * _GIB} used={20 * _GIB} util=90 power_mw=500000 procs={procs}'
        for i, procs in enumerate(holders)
    ]
    training.container.write(_STATE, "\n".join(["driver 550.54", *lines, ""]))


@pytest.mark.parametrize("flavour", [Flavour.PLAIN, Flavour.SYSTEMD, Flavour.UNPRIVILEGED], ids=str)
def test_memory_listed_by_pids_of_the_host_is_given_to_the_run_to_others_and_to_nobody(
    flavour: Flavour, lab: Lab, driver: Path, tmp_path: Path
) -> None:
    training = Training(lab, lab.container(flavour), tmp_path, driver)
    training.clear()
    main = _started_by_hand(training, driver)
    other = _of_container("another process", training)
    gone = subprocess.Popen(["true"])
    gone.wait()
    outside = training.container.outside
    with _on_the_host(tmp_path) as host:
        _gpus(
            training,
            f"{outside(main)}:{20 * _GIB}:!",
            f"{outside(other)}:{20 * _GIB}:!",
            f"{host}:{20 * _GIB}:!",
            f"{gone.pid}:{20 * _GIB}:!",
        )

        async def watch() -> Snapshot:
            async with training.engine(_config(training)) as engine:
                return await reach(engine, lambda now: _owners(now) == ["run", "other", "other", "nobody"], 60)

        seen = asyncio.run(watch())

    ours, inside, on_host, dead = seen.gpus.gpus
    assert ours.pids == (main,)
    assert ours.context
    assert seen.gpus.rule == "host pid in tree"
    user = "uid 100000" if flavour is Flavour.UNPRIVILEGED else "root"
    assert _holder(inside) == (other, "python3", user, "in this container")
    assert _holder(on_host) == (host, "python3", "root", "on the host")
    assert f"pid {gone.pid}, which no process of the host has: a dead context" in dead.owner_why
    training.clear()


def _owners(now: Snapshot) -> list[str]:
    return [gpu.owner for gpu in now.gpus.gpus]


def _holder(gpu: Gpu) -> tuple[int, str, str, str]:
    (holder,) = gpu.others
    return holder.pid, holder.name, holder.user, holder.place


# -- frozen -----------------------------------------------------------------------------------------------------------


def _helpers(lab: Lab) -> list[int]:
    """Return the pids of the helpers that consoles of this session have on the host."""
    port = f" {lab.host().port}".encode()
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):
            login = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            ours = any(each.startswith(b"SSH_CONNECTION=") and each.endswith(port) for each in login)
            if ours and Path(f"/proc/{pid}/comm").read_text() == "dflash-outside\n":
                found.append(pid)
    # Without what one forks to look at something.
    return [pid for pid in found if _parent(pid) not in found]


def _parent(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def _await_no_helpers(lab: Lab) -> None:
    until(lambda: not _helpers(lab), 60, "no helper is left on the host")


async def _seen_from_the_host(engine: Engine) -> Snapshot:
    return await reach(engine, lambda now: now.container is not None and now.container.frozen is False, 60)


def test_a_frozen_container_is_named_at_once_and_its_agents_are_kept_until_it_thaws(
    lab: Lab, driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "SILENCE_S", 20.0)  # a busy machine may keep the helper's word back for long
    training = Training(lab, lab.fresh_container(), tmp_path, driver)
    _started_by_hand(training, driver)
    reasons: set[str | None] = set()

    async def watch() -> None:
        async with training.engine(_config(training)) as engine:
            await _seen_from_the_host(engine)
            await reach(engine, lambda now: now.progress.step is not None, 60)
            wrappers = training.wrappers()
            await asyncio.to_thread(training.container.freeze)
            try:
                engine.on_change.append(lambda: reasons.add(engine.snapshot.link.reason))
                lost = await reach(engine, lambda now: now.link.state is not LinkState.UP, 60)
                assert (lost.link.state, lost.link.reason) == (LinkState.LOST, "container_frozen")
                assert training.wrappers() == wrappers
            finally:
                await asyncio.to_thread(training.container.thaw)
            await reach(engine, lambda now: now.run is not None and bool(now.run.alive), 60)
            back = await _seen_from_the_host(engine)
            assert back.link.state is LinkState.UP

    asyncio.run(watch())
    assert reasons <= {None, "container_frozen"}
    _await_no_helpers(lab)
    training.container.stop()


# -- optional in every part -------------------------------------------------------------------------------------------


def test_a_helper_that_is_killed_takes_nothing_with_it(lab: Lab, driver: Path, tmp_path: Path) -> None:
    training = Training(lab, lab.container(Flavour.PLAIN), tmp_path, driver)
    training.clear()
    _await_no_helpers(lab)
    _started_by_hand(training, driver)

    async def watch() -> Snapshot:
        async with training.engine(_config(training)) as engine:
            before = await _seen_from_the_host(engine)
            (helper,) = _helpers(lab)
            os.kill(helper, signal.SIGKILL)
            told = await reach(engine, lambda now: now.container is not None and now.container.frozen is None, 60)
            assert told.container is not None
            assert "the agent ended by signal" in told.container.why
            step = before.progress.step or 0
            return await reach(engine, lambda now: (now.progress.step or 0) >= step + 5, 60)

    after = asyncio.run(watch())

    assert after.link.state is LinkState.UP
    training.clear()


def test_no_helper_is_started_where_the_config_says_so(lab: Lab, driver: Path, tmp_path: Path) -> None:
    training = Training(lab, lab.container(Flavour.PLAIN), tmp_path, driver)
    training.clear()
    _await_no_helpers(lab)
    _started_by_hand(training, driver)

    async def watch() -> Snapshot:
        async with training.engine(_config(training, host_helper=False)) as engine:
            seen = await reach(engine, lambda now: (now.progress.step or 0) > 0 and now.gpus.at is not None, 60)
            assert _helpers(lab) == []
            return seen

    assert asyncio.run(watch()).container is None
    training.clear()


# -- killed for memory ------------------------------------------------------------------------------------------------

_EATS = """import itertools, os, time
hog = []
for step in itertools.count(1):
    print(f"step {step} | loss {10 / step:.4f} | 14500 tok/s", flush=True)
    while os.path.exists("/root/go"):
        hog.append(b"x" * (4 << 20))
    time.sleep(0.1)
"""


def _memory_limit_of(pid: int) -> Path:
    """Return the file in which the memory of this process's cgroup, the container's, is limited."""
    paths = {line.split(":")[1]: line.split(":", 2)[2] for line in Path(f"/proc/{pid}/cgroup").read_text().split()}
    for name, root, file in (
        ("memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        ("", "/sys/fs/cgroup", "memory.max"),
    ):
        found = Path(root + paths.get(name, "/none")) / file
        if found.exists() and paths[name] != "/":
            return found
    pytest.skip("the container has no memory cgroup of its own on this machine")


def test_a_kill_by_the_containers_memory_limit_is_proven_by_the_kernel_log(
    lab: Lab, driver: Path, tmp_path: Path
) -> None:
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        pytest.skip(f"the kernel log of this machine can't be read: {error}")
    training = Training(lab, lab.fresh_container(), tmp_path, driver)
    ct = training.container
    limit = _memory_limit_of(ct.outside(1))
    ct.write("/root/train.py", _EATS)
    config = _config(training, command=["python3", "-u", "/root/train.py"])
    main = training.restart(config=config).json["pid"]

    async def watch() -> Snapshot:
        async with training.engine(config) as engine:
            await _seen_from_the_host(engine)
            limit.write_text(str(256 << 20))
            with uncounted.kill():
                ct.write("/root/go", "")
                ended = await reach(engine, lambda now: now.verdict is Verdict.ENDED, 60)
            return ended if _is_proven(ended) else await reach(engine, _is_proven, 60)

    ended = asyncio.run(watch())

    assert ended.reason is not None
    assert ended.reason.slug == "cgroup_oom"
    assert f"cgroup OOM of pid {main} (python3)" in ended.reason.detail
    facts = {fact.label: fact.text for fact in ended.reason.facts}
    assert "oom-kill:constraint=CONSTRAINT_MEMCG" in facts["kernel log"]
    ct.stop()


def _is_proven(now: Snapshot) -> bool:
    return now.reason is not None and now.reason.detail.startswith("proven: ")
