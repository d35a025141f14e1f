"""Whole lines out of any part of a file: the same whatever range they came with."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console import protocol
from console.engine.logreader import _ERRORS
from console.host import loglines, logquery, logs
from console.state.linekind import LineKind, classify
from console.state.lines import LineSplitter, RawLine
from console.state.stretch import cut
from tests.host.agentprocess import Agent, awaited, pythons
from tests.state.failurelogs import ENDINGS
from tests.state.healthylogs import HEALTHY

Lines = list[RawLine]


def ask(path: Path, offset: int, length: int = 256 << 10, **more: Any) -> tuple[Lines, dict[str, Any]]:
    answer = loglines.lines({"path": str(path), "offset": offset, "length": length, **more})
    lines, _, _ = cut([tuple(piece) for piece in answer["pieces"]], answer["raw"].encode("latin-1"), 0.0)
    return lines, answer


def read_up(path: Path, start: int, length: int) -> Lines:
    """Read from `start` to the first line, a range at a time."""
    found: Lines = []
    while True:
        lines, answer = ask(path, start, length, back=True)
        found = lines + found
        if answer["scanned_to"] in (0, start):
            return found
        start = answer["scanned_to"]


def read_down(path: Path, start: int, length: int) -> Lines:
    found: Lines = []
    while True:
        lines, answer = ask(path, start, length)
        found += lines
        if answer["scanned_to"] in (answer["size"], start):
            return found
        start = answer["scanned_to"]


def read_whole(path: Path) -> Lines:
    splitter = LineSplitter()
    lines = [line for line in splitter.feed(path.read_bytes(), 0, 0.0) if not line.frame]
    live = splitter.live()
    return [*lines, live] if live is not None else lines


_PARTS = st.sampled_from(
    [
        b"step 1 loss 2.0\n",
        b"\n",
        b"\r\n",
        b"\r",
        b" 10%|#   | 1/10 [00:01<00:09, 1.0s/it]",
        "é ✓".encode(),
        b"\xff\xfe",
        b"\0" * 12,
        b"\x1b[31mred\x1b[0m\n",
        b"x" * 300,
        b"no end",
    ]
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(parts=st.lists(_PARTS, max_size=40), length=st.integers(1, 700), block=st.integers(400, 900))
def test_any_ranges_give_the_same_lines_as_reading_the_whole(
    tmp_path: Path, parts: list[bytes], length: int, block: int
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(parts))
    longest = max((len(line) for line in log.read_bytes().split(b"\n")), default=0) + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loglines, "BLOCK_BYTES", max(block, longest))
        whole = read_whole(log)

        assert read_down(log, 0, length) == whole
        assert read_up(log, -1, length) == whole


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(0, 90), min_size=1, max_size=25),
    length=st.integers(1, 200),
    start=st.integers(0, 2000),
    ended=st.booleans(),
)
def test_lines_longer_than_a_block_look_the_same_from_both_sides(
    tmp_path: Path, sizes: list[int], length: int, start: int, ended: bool
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\n".join(b"%d" % (n % 10) * size for n, size in enumerate(sizes)) + b"\n" * ended)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loglines, "BLOCK_BYTES", 40)
        patch.setattr(loglines, "KEPT_BYTES", 8)
        down = read_down(log, 0, length)
        place = ask(log, min(start, log.stat().st_size), 1, align=True)[1]["begin"]

        assert read_up(log, -1, length) == down
        assert read_up(log, place, length) + read_down(log, place, length) == down
    starts = [line.offset for line in down]
    assert starts == sorted(set(starts))
    assert [line.end_offset for line in down[:-1]] == starts[1:]


def test_a_long_line_is_given_by_its_head_and_the_lines_around_it_are_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"before\n" + b"x" * (10 << 20) + b"\nafter\n")

    down, answer = ask(log, 0, 1 << 20)
    up = read_up(log, -1, 1 << 20)

    assert len(answer["raw"]) < 100 << 10
    assert [line.text[:8] for line in down] == ["before", "xxxxxxxx", "after"]
    assert down[1].text.endswith("[10.5 MB line cut]")
    assert up == down


def test_a_bar_of_hours_without_a_newline_shows_its_last_state(tmp_path: Path) -> None:
    log = tmp_path / "log"
    bar = b"".join(b"\r%3d%%|## | %d/100000 [00:01<00:09, 1.0s/it]" % (n // 1000, n) for n in range(60_000))
    log.write_bytes(b"before\n" + bar)

    lines = read_up(log, -1, 64 << 10)

    assert [line.text[:12] for line in lines] == ["before", " 59%|## | 59"]
    assert "59999/100000" in lines[1].text


def test_the_hole_that_copytruncate_leaves_is_one_line_and_the_record_behind_it_another(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(3 << 30)
        file.seek(3 << 30)
        file.write(b"step 7 loss 1.0\nstep 8 loss 1.0\n")

    up = read_up(log, -1, 64 << 10)
    down = read_down(log, 0, 64 << 10)

    assert [line.text for line in up] == ["[3,221,225,472 NUL bytes]", "step 7 loss 1.0", "step 8 loss 1.0"]
    assert down == up


def test_a_megabyte_of_newlines_comes_in_bounded_parts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\n" * 12_000)

    parts = [len(ask(log, 0, 1 << 20)[0]), len(ask(log, -1, 1 << 20, back=True)[0])]

    assert parts == [loglines.MOST_LINES] * 2
    assert len(read_up(log, -1, 1 << 20)) == 12_000


def test_a_log_deleted_while_it_is_open_is_read_through_the_run(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        child = subprocess.Popen(["sh", "-c", "echo from the dead; exec sleep 60"], stdout=file)
    try:
        awaited(lambda: log.stat().st_size)
        log.unlink()

        lines, _ = ask(log, 0, pid=child.pid)
        with pytest.raises(FileNotFoundError):
            ask(log, 0)
    finally:
        child.kill()
        child.wait()

    assert [line.text for line in lines] == ["from the dead"]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            ask(path, 0)


# -- what matches -----------------------------------------------------------------------------------------------------

_WORDS = st.sampled_from(["loss", "Loss", "LOSS 1", "a.b", "axb", "é", "É", "error", "tab\there", "\x1b[1mlo\x1b[0mss"])
_QUERIES = st.sampled_from(
    [
        {"pattern": "loss", "ignore_case": True, "literal": True},
        {"pattern": "LOSS", "literal": True},
        {"pattern": "a.b", "literal": True},
        {"pattern": "a.b"},
        {"pattern": "^loss|é$", "ignore_case": True},
        {"pattern": "É", "literal": True, "ignore_case": True},
        {"pattern": r"s\s+l"},
    ]
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.lists(_WORDS, max_size=4), max_size=40), query=_QUERIES, block=st.integers(120, 300))
def test_matches_are_those_that_a_reader_of_the_lines_would_find(
    tmp_path: Path, rows: list[list[str]], query: dict[str, Any], block: int
) -> None:
    log = tmp_path / "log"
    log.write_text("".join(" ".join(row) + "\n" for row in rows), "utf-8")
    text = re.escape(query["pattern"]) if query.get("literal") else query["pattern"]
    pattern = re.compile(text, re.IGNORECASE if query.get("ignore_case") else 0)
    wanted = [line for line in read_whole(log) if pattern.search(line.text)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loglines, "BLOCK_BYTES", block)
        down, _ = ask(log, 0, query=query)
        up, _ = ask(log, -1, back=True, query=query)
        counted = loglines.count({"path": str(log), "offset": 0, "query": query})

    assert down == up == wanted
    assert counted["hits"] == len(wanted)
    assert [offset for offset, _ in counted["found"]] == [line.offset for line in wanted]
    before = [log.read_bytes()[: line.offset].count(b"\n") for line in wanted]
    assert [lines for _, lines in counted["found"]] == before
    assert counted["lines"] == len(rows)


def test_the_nearest_matches_come_first_and_the_next_look_goes_on_behind_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"line %d %s\n" % (n, b"hit" * (n % 10 == 0)) for n in range(100)))
    query = {"pattern": "hit", "literal": True}

    first, answer = ask(log, -1, back=True, query=query, limit=2)
    second, _ = ask(log, answer["scanned_to"], back=True, query=query, limit=2)

    assert answer["scanned_to"] == first[0].offset
    assert [line.text for line in first] == ["line 80 hit", "line 90 hit"]
    assert [line.text for line in second] == ["line 60 hit", "line 70 hit"]


def test_a_count_that_is_cut_into_slices_finds_each_line_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"%06d hit\n" % n for n in range(5000)) + b"unfinished hit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loglines, "BLOCK_BYTES", 1000)
        to, hits, lines, looks = 0, 0, 0, 0
        while True:
            part = loglines.count(
                {"path": str(log), "offset": to, "query": {"pattern": "hit", "literal": True}, "slice_s": -1.0}
            )
            hits, lines, looks = hits + part["hits"], lines + part["lines"], looks + 1
            if part["to"] == to:
                break
            to = part["to"]

    assert (hits, lines) == (5000, 5000)
    assert looks > 50
    assert to == log.stat().st_size - len(b"unfinished hit")


@pytest.mark.parametrize("pattern", ["(", "*a", "a{99999999999}"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="not a pattern"):
        logquery.Matcher({"pattern": pattern})


def _rule() -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(_ERRORS)
    return found


def test_the_host_calls_the_same_lines_errors_as_the_console() -> None:
    logs_of_all = [*(ending.log for ending in ENDINGS), *(healthy.log for healthy in HEALTHY)]
    texts = {line for log in logs_of_all for line in log.split("\n")}
    matcher = logquery.Matcher({"errors": _rule()})
    differ = []
    for text in sorted(texts):
        raw = text.encode("utf-8", "surrogateescape") + b"\n"
        if b"\r" in raw:
            continue
        shown = LineSplitter().feed(raw, 0, 0.0)
        if bool(matcher.hits(raw)) != any(classify(line.text) is LineKind.ERROR for line in shown):
            differ.append(text)

    assert len(texts) > 100
    assert differ == []


@pytest.mark.parametrize("python", pythons())
def test_the_agent_answers_while_the_log_is_followed(tmp_path: Path, python: str) -> None:
    log = tmp_path / "train_a.log"
    log.write_bytes(b"".join(b"step %d loss 1.0\n" % n for n in range(20_000)) + b"RuntimeError: no\n")
    with Agent(python) as agent:
        follow = protocol.LogFollow(id=agent.next_id(), path=str(log), offset=-100)
        assert agent.ask(follow).ok

        back = agent.ask(protocol.LogLines(id=agent.next_id(), path=str(log), offset=-1, length=100, back=True))
        hits = agent.ask(
            protocol.LogCount(id=agent.next_id(), path=str(log), offset=0, query=protocol.LogQuery(errors=_ERRORS))
        )
        gone = agent.ask(protocol.LogLines(id=agent.next_id(), path=str(tmp_path / "no"), offset=0, length=9))
        bad = agent.ask(
            protocol.LogCount(id=agent.next_id(), path=str(log), offset=0, query=protocol.LogQuery(pattern="("))
        )
        files = agent.ask(protocol.LogFiles(id=agent.next_id(), template=str(tmp_path / "train_{name}.log")))

    wire = msgspec.convert(back.data, protocol.WireLines)
    assert agent.reply_raw[back.re] == log.read_bytes()[wire.pieces[0][0] :]
    counted = msgspec.convert(hits.data, protocol.WireCount)
    assert (counted.hits, counted.lines, counted.found) == (1, 20_001, ((log.stat().st_size - 17, 20_000),))
    assert gone.error is not None
    assert (gone.error.reason, "No such file" in gone.error.detail) == ("log_unreadable", True)
    assert bad.error is not None
    assert bad.error.reason == "protocol"
    assert [file["path"] for file in files.data["files"]] == [str(log)]


def test_a_look_that_hangs_holds_neither_the_tail_nor_the_next_answer_up(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"a" * 60 + b"!\n")
    with Agent() as agent:
        agent.send(protocol.LogCount(id=91, path=str(log), offset=0, query=protocol.LogQuery(pattern="(a+)+b")))
        assert agent.ask(protocol.LogFollow(id=agent.next_id(), path=str(log), offset=0)).ok
        awaited(lambda: agent.of(protocol.LogEvent), what="the tail")
        looked = agent.ask(protocol.LogLines(id=agent.next_id(), path=str(log), offset=0, length=100))

        assert looked.ok
        assert 91 not in agent.replies
        awaited(lambda: 91 in agent.replies, 60.0, "the end of an expression that would take years")
        error = agent.replies[91].error
        assert error is not None
        assert error.reason == "pattern_slow"


def test_logs_of_a_template_are_listed_newest_first(tmp_path: Path) -> None:
    for age, name in enumerate(["c", "a", "b"]):
        path = tmp_path / f"train_{name}.log"
        path.write_bytes(b"x" * age)
        os.utime(path, (1000 - age, 1000 - age))
    (tmp_path / "train_dir.log").mkdir()
    (tmp_path / "other.log").touch()

    found = logs.listed({"template": str(tmp_path / "train_{name}.log")})

    assert [(os.path.basename(file["path"]), file["size"]) for file in found["files"]] == [
        ("train_c.log", 0),
        ("train_a.log", 1),
        ("train_b.log", 2),
    ]
    assert found["total"] == 3
