"""A recording played back: at each moment the screens' own snapshot, joined by the code that joins it live."""

from __future__ import annotations

import asyncio
import random
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from console import protocol
from console.engine import Engine, replay
from console.engine.replay import Replay, target_of
from console.engine.tape import Piece, Tape, load, save
from console.link.channel import Operation
from console.model import LogState, Snapshot, Stage, StageState, Verdict
from console.protocol import CudaRecord, ExitRecord, Growth, HostStage, LogIdent, ProcId, Reply, RunRecord
from console.reasons import ConsoleError

GIB = 1 << 30
BT = 1000.0
WALL = 1_800_000_000.0
_STEPS = [f"[14:31:{n:02d}] step {n}/60 | loss 1.{900 - n} | tok/s 21,4{n:02d}\n" for n in range(1, 21)]
_LOG = "export API_KEY=sk-abcdefghijklmnopqrstuvwxyz012345\nloading\n" + "".join(_STEPS)


def tape(**changes: object) -> Tape:
    """Killing 0-4 s, spawned at 5 s, contexts at 10 s, a step a second from 15 s on, killed by signal 9 at 36 s."""
    run = RunRecord(
        id="r-1", name="slammed6", boot="b/1", state="ended", operator="ops1", accepted_bt=BT, accepted_wall=WALL,
        argv=("/root/run.sh", "--token=hunter2hunter2hunter2"), cwd="/root",
        log=LogIdent(path="/workspace/train.log", dev=1, inode=1),
        stages={
            "killing": HostStage(state="done", began_bt=BT, ended_bt=BT + 4, evidence="2 pids"),
            "cache": HostStage(state="skipped", began_bt=BT + 4, ended_bt=BT + 4, why="no cache configured"),
            "spawned": HostStage(state="done", began_bt=BT + 4, ended_bt=BT + 6, evidence="pid 7"),
        },
        spawned_bt=BT + 5, main=ProcId(pid=7, start=100),
        cuda=CudaRecord(
            contexts=(0, 1), expected=2, rule="nvml pid in tree", source="nvml", first_bt=BT + 8, complete_bt=BT + 10
        ),
        gpu_peak={"0": 71 * GIB, "1": 71 * GIB},
        exit=ExitRecord(signal=9, ended_bt=BT + 36, ended_wall=WALL + 36, lived_s=31.0, all_gone=True),
    )  # fmt: skip
    records = [
        Growth(k="gpukind", bt=BT, kinds=[[i, f"GPU-{i}", "H200", 140 * GIB, 700_000] for i in (0, 1)], source="nvml"),
        Growth(k="who", bt=BT + 5, who=[(7, 100, 1, "python")]),
    ]
    for second in range(37):
        used = GIB // 2 if second < 8 else 71 * GIB
        rows: list[list[int | None]] = [[i, used, 0 if second < 8 else 97, 600_000, 60, 1755, 0] for i in (0, 1)]
        held = [] if second < 8 else [0] if second < 10 else [0, 1]
        records.append(Growth(k="gpu", bt=BT + second, gpus=rows, held=held))
        if second >= 5:
            records.append(Growth(k="proc", bt=BT + second, procs=[(7, "R", GIB, 200 * second)]))
        if second >= 15:
            size = len(_LOG) - sum(map(len, _STEPS[second - 14 :]))
            records.append(Growth(k="log", bt=BT + second, size=min(len(_LOG), size)))
    known: dict[str, object] = {
        "target": "ct200", "made_at": WALL, "run": run, "records": tuple(records), "log": (Piece(0, _LOG),),
        "log_bytes": len(_LOG), "roles": {"target": (0,), "drafter": (1,)}, "expected": 2,
    }  # fmt: skip
    return Tape(**(known | changes))  # type: ignore[arg-type]


@asynccontextmanager
async def played(one: Tape) -> AsyncIterator[tuple[Engine, Replay]]:
    player = Replay(one)
    player.is_paused = True
    engine = Engine(one.target, target_of(one), operator="ops", origin="here", read_only=True, tape=player)
    task = asyncio.create_task(engine.run())
    try:
        yield engine, player
    finally:
        task.cancel()
        await asyncio.wait([task])


async def shows(engine: Engine, what: Callable[[Snapshot], bool]) -> Snapshot:
    found = await asyncio.wait_for(engine.until(lambda now: now if what(now) else None, None), 60)
    assert found is not None
    return found


def states(snapshot: Snapshot) -> list[StageState]:
    return [stage.state for stage in snapshot.stages]


async def test_each_moment_is_shown_as_it_was_whatever_the_order_of_jumps() -> None:
    async with played(tape()) as (engine, player):
        player.seek(1 + 9.0)
        loading = await shows(engine, lambda now: now.gpus.contexts == (0,))
        player.seek(1 + 30.0)
        stepping = await shows(engine, lambda now: now.verdict is Verdict.STEPPING and now.progress.step == 16)
        player.seek(1 + 40.0)
        dead = await shows(engine, lambda now: now.verdict is Verdict.ENDED and now.progress.step == 20)
        player.seek(1 + 2.0)
        killing = await shows(engine, lambda now: now.active_stage is Stage.KILLING)

    assert loading.verdict is Verdict.LAUNCHING
    assert loading.active_stage is Stage.CUDA
    assert [gpu.role for gpu in loading.gpus.gpus] == ["target", "drafter"]
    assert loading.progress.step is None
    assert states(stepping)[4] is StageState.DONE
    assert stepping.run is not None
    assert stepping.run.alive
    assert stepping.at == pytest.approx(WALL + 30.0)
    assert dead.run is not None
    assert dead.run.exit is not None
    assert dead.run.exit.signal == 9
    assert killing.run is not None
    assert killing.run.exit is None
    assert killing.progress.step is None


async def test_curves_log_and_stages_are_joined_by_time() -> None:
    async with played(tape()) as (engine, player):
        player.seek(1 + 30.0)
        await shows(engine, lambda now: now.progress.step == 16 and now.verdict is Verdict.STEPPING)
        memory = engine.series["gpu_memory:0"].points
        power = engine.series["gpu_power:1"].points
        last = engine.last_lines(1)

    assert [point.value / GIB for point in memory if point.at <= WALL + 7] == [0.5] * 8
    assert memory[-1].at <= WALL + 30.5
    assert power[-1].value == 600.0
    assert last == [_STEPS[15].rstrip()]


async def test_moment_whose_log_is_not_on_the_tape_says_so_and_never_that_the_run_stands() -> None:
    """Of a log of days both ends are kept: in between nothing is known of its steps."""
    keeps = len(_LOG) - sum(map(len, _STEPS[2:]))
    one = tape(log=(Piece(0, _LOG[:keeps]), Piece(len(_LOG) - 60, _LOG[-60:])))
    async with played(one) as (engine, player):
        player.seek(1 + 30.0)
        between = await shows(engine, lambda now: now.log.state is LogState.UNREADABLE)
        player.seek(1 + 34.9)
        await shows(engine, lambda now: now.progress.step == 20 and now.verdict is Verdict.STEPPING)

    assert between.log.detail == "the recording leaves out this part of the log"
    assert between.verdict is not Verdict.STALLED
    assert [gpu.util_pct for gpu in between.gpus.gpus] == [97, 97]


def test_samples_of_a_log_are_those_that_are_on_the_tape() -> None:
    one = tape(log=(Piece(0, _LOG[:100]), Piece(len(_LOG) - 100, _LOG[-100:])))
    player = Replay(one)
    player.seek(player.length_s)
    wanted = protocol.LogSample(id=7, path="/workspace/train.log", first=0, last=-20, count=8, length=10)

    reply, raw = asyncio.run(player.bulk_request(wanted))

    offsets, sizes = reply.data["offsets"], reply.data["sizes"]
    assert offsets
    assert all(offset < 100 or offset >= len(_LOG) - 100 for offset in offsets)
    assert raw.decode() == "".join(_LOG[offset : offset + size] for offset, size in zip(offsets, sizes, strict=True))


async def test_it_runs_at_the_speed_that_is_asked_for_and_stops() -> None:
    async with played(tape()) as (engine, player):
        player.speed = 64.0
        player.toggle()
        await shows(engine, lambda now: now.verdict is Verdict.ENDED)
        assert player.position_s >= 37
        player.seek(3.0)
        if not player.is_paused:
            player.toggle()
        here = player.position_s
        await asyncio.sleep(0)
        assert player.position_s == here
        player.to_mark(1)
        assert player.position_s == pytest.approx(5.0)
        player.to_mark(-1)
        assert player.position_s == pytest.approx(1.0)


async def test_nothing_can_be_started_from_a_recording() -> None:
    async with played(tape()) as (engine, player):
        player.seek(20.0)
        await shows(engine, lambda now: now.run is not None)

        with pytest.raises(ConsoleError):
            await engine.plan("restart")


def test_a_recording_is_written_privately_once_and_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "run.json"

    save(tape(), path)

    text = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "sk-abcdefgh" not in text
    assert "hunter2" not in text
    again = load(path)
    assert again.log_bytes == sum(len(piece.text) for piece in again.log)  # offsets still mean what was noted
    assert again.read(len(_LOG) - 5, 100) == _LOG[-5:].encode()
    with pytest.raises(ConsoleError, match="exists"):
        save(tape(), path)


KEY_LINES = "".join(f"{letter * 64}\n" for letter in "QRS") + "Tail==\n"
BLOCK = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{KEY_LINES}-----END OPENSSH PRIVATE KEY-----\n"


def exported(one: Tape, path: Path, *secrets: str) -> tuple[str, Tape]:
    save(one, path, secrets)
    return path.read_text(), load(path)


def test_a_secret_is_taken_out_wherever_it_stands(tmp_path: Path) -> None:
    """In the words of a command line, an environment, a note, a stage and the log; by name, shape, or known value."""
    log = f"+ git clone https://ops:hunter2hunter2@host/x\n{BLOCK}using plainword77\nstep 1 | loss 2.5\n"
    stages = tape().run.stages | {"cache": HostStage(state="failed", evidence="token=hunter2hunter2")}
    run = replace(
        tape().run,
        argv=("python", "t.py", "--hf-token", "hunter2hunter2", "--steps", "60"),
        env={"DB_PASS": "hunter2hunter2", "URL": "https://a:hunter2hunter2@b", "LEVEL": "3", "HF_TOKEN": "hmac:ab12"},
        note="with password=hunter2hunter2",
        stages=stages,
    )
    one = tape(run=run, log=(Piece(0, log),), log_bytes=len(log), label="plainword77")

    text, again = exported(one, tmp_path / "x", "plainword77")

    assert "hunter2" not in text
    assert "plainword77" not in text
    assert "QQQQ" not in text
    assert "Tail" not in text
    assert again.run.argv == ("python", "t.py", "--hf-token", "[hidden]", "--steps", "60")
    assert again.run.env == {
        "DB_PASS": "[hidden]",
        "URL": "https://a:[hidden]@b",
        "LEVEL": "3",
        "HF_TOKEN": "hmac:ab12",
    }
    kept = again.log[0].text
    assert [len(line) for line in kept.split("\n")] == [len(line) for line in log.split("\n")]
    assert kept.endswith("step 1 | loss 2.5\n")
    assert again.run.exit == one.run.exit
    assert again.records == one.records


def test_a_private_key_that_is_cut_takes_only_its_own_lines_along(tmp_path: Path) -> None:
    log = BLOCK.partition("Tail")[0] + "step 1 | loss 2.5\n"

    _, again = exported(tape(log=(Piece(0, log),), log_bytes=len(log)), tmp_path / "x")

    assert "QQQQ" not in again.log[0].text
    assert "SSSS" not in again.log[0].text
    assert again.log[0].text.endswith("step 1 | loss 2.5\n")


def test_what_is_no_recording_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    (tmp_path / "y").write_text('{"schema": 9, "target": "t", "made_at": 1, "run": {"id": "r"}}')

    with pytest.raises(ConsoleError, match="is no recording"):
        load(tmp_path / "x")
    with pytest.raises(ConsoleError, match="newer console"):
        load(tmp_path / "y")


def test_any_moment_of_a_long_recording_is_found_as_by_going_through_all_of_it() -> None:
    dice = random.Random(11)
    records = []
    for number in range(600):
        bt = BT + number * 0.5
        records += [
            Growth(k="gpu", bt=bt, gpus=[[0, dice.randrange(80), 0]], held=[0] if dice.random() < 0.8 else []),
            Growth(k="log", bt=bt, size=number),
            Growth(k="proc", bt=bt, procs=[(pid, "R", 1, number) for pid in dice.sample(range(1, 9), 3)]),
        ]
        if dice.random() < 0.1:
            records.append(Growth(k="who", bt=bt, who=[(dice.randrange(1, 9), number, 1, f"name{number}")]))
    one = tape(records=tuple(records), log_bytes=600, run=replace(tape().run, exit=None))

    for bt in [BT - 1, *(BT + dice.uniform(0, 300) for _ in range(100)), BT + 900]:
        past = [each for each in records if each.bt <= bt]
        samples = [each for each in past if each.k == "gpu"]
        ours = [each.gpus[0][1] for each in samples if each.held]
        names = {row[0]: row[3] for each in past if each.k == "who" for row in each.who}
        last = [each for each in past if each.k == "proc"][-1:]
        gpus, procs, run = one.gpus_at(bt), one.procs_at(bt), one.record_at(bt)
        assert (gpus.gpus[0].used if gpus else None) == (samples[-1].gpus[0][1] if samples else None)
        assert one.log_size_at(bt) == max([each.size or 0 for each in past if each.k == "log"], default=0)
        assert (run.gpu_peak if run else {}) == ({"0": max(filter(None, ours))} if any(ours) else {})
        told = [(each.pid, each.argv[0]) for each in procs.procs if each.pid != 7] if procs else []
        assert told == [(pid, names.get(pid, "")) for each in last for pid, *_ in each.procs if pid != 7]


async def test_its_records_are_gone_through_once_however_often_it_is_asked() -> None:
    one = tape(records=(counted := _Counted(tape().records)))
    for second in range(40):
        for ask in (one.record_at, one.gpus_at, one.procs_at, one.log_size_at):
            ask(BT + second)

    assert counted.walks == 1


class _Counted(tuple[Growth, ...]):
    walks = 0

    def __iter__(self) -> Iterator[Growth]:
        self.walks += 1
        return super().__iter__()


async def test_what_is_megabytes_is_fetched_over_the_bulk_connection() -> None:
    async with played(tape()) as (engine, player):
        player.seek(player.length_s)
        await shows(engine, lambda now: now.verdict is Verdict.ENDED)
        asked: list[object] = []

        async def over_control(operation: Operation, timeout_s: float = 10.0) -> Reply:
            asked.append(operation)
            return await Replay.request(player, operation, timeout_s)

        player.request = over_control  # type: ignore[method-assign]
        await engine.tape_of("slammed6")

    assert asked == []


async def test_a_recording_can_be_recorded_again() -> None:
    one = tape()
    async with played(one) as (engine, player):
        player.seek(player.length_s)
        await shows(engine, lambda now: now.verdict is Verdict.ENDED)

        copy = await engine.tape_of("slammed6")
        with pytest.raises(ConsoleError):
            await engine.tape_of("another")

    assert (copy.records, copy.log, copy.log_bytes) == (one.records, one.log, one.log_bytes)
    assert replay.target_of(copy).gpus.roles == one.roles
