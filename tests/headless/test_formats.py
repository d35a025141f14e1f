"""`formats` as scripts and people meet it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from console.cli import cli
from console.commands.options import Called
from console.reasons import ConsoleError
from console.state.formats import FORMATS

LOG = (
    "nohup: ignoring input\n"
    "[rank0]: step:  3  loss:  9.5000  grad_norm:  1.2500  tps: 1,024  mfu: 1.00%\n"
    "[step=7/900,epoch=0]\n    train/CrossEntropyLoss=8.25\n    throughput/device/tokens_per_second=2,048\n"
    "step 8 | loss nan | tok/s 21.5K\n"
    "hello \x1b[31mred\x1b[0m\n"
    " 17%|#7 | 170/1000 [00:10<00:50, 16.0it/s]\r 18%|#8 | 180/1000 [00:11<00:49, 16.0it/s]"
)


def run(*words: str, given: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["formats", *words], input=given, standalone_mode=False, obj=Called())
    if result.exception is not None:
        raise result.exception
    return int(result.return_value), result.stdout


@pytest.mark.parametrize("by", ["file", "stdin"])
def test_json_has_an_object_for_each_line_and_one_for_the_log(tmp_path: Path, by: str) -> None:
    path = tmp_path / "a.log"
    path.write_text(LOG)

    code, out = run(str(path), "--json") if by == "file" else run("-", "--json", given=LOG)

    *rows, verdict = [json.loads(line) for line in out.splitlines()]
    names = ("line", "kind", "step", "loss", "tok_s", "rate", "scope")
    told = [tuple(row[name] for name in names) for row in rows]
    assert code == 0
    assert told == [
        (1, "header", None, None, None, None, None),
        (2, "step", 3, 9.5, None, 1024.0, "per_device"),
        (3, "step", 7, 8.25, None, 2048.0, "per_device"),
        (6, "step", 8, None, 21500.0, 21500.0, "global"),
        (7, "other", None, None, None, None, None),
        (8, "step", 180, None, None, None, None),
    ]
    assert rows[3]["loss_state"] == "nan"
    assert [row["format"] for row in rows] == [None, "torchtitan", "olmo", "dflash", None, "hf-trainer"]
    assert (verdict["line"], verdict["kind"], verdict["lines"], verdict["understood"]) == (None, "verdict", 8, 5)
    assert all(row["schema"] == 1 for row in [*rows, verdict])


def test_lines_of_a_pipe_are_told_as_they_come() -> None:
    command = [sys.executable, "-m", "console.cli", "formats", "-", "--json"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        print("step 1 | loss 2.5 | tok/s 20,000\nstep 2 | loss 2.5 | tok/s 20,000", file=process.stdin, flush=True)
        try:
            readable, _, _ = select.select([process.stdout], [], [], 20.0)
            assert readable, "nothing was told while the pipe is open"
            assert json.loads(process.stdout.readline())["step"] == 1
        finally:
            process.stdin.close()
        assert process.wait(timeout=20) == 0


def test_rate_is_derived_from_the_tokens_of_a_step_that_are_given(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(" 18%|#8 | 180/1000 [00:11<00:49, 16.0it/s]\n")

    _, out = run(str(path), "--json", "--tokens-per-step", "1000")

    row = json.loads(out.splitlines()[0])
    assert (row["rate"], row["scope"], row["tok_s"]) == (16_000.0, "derived", None)


def test_text_shows_every_line_and_why_a_format_won(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("starting\n" + "".join(f"step {n} | loss 2.5 | tok/s 20,000\n" for n in (1, 2, 3)))

    _, out = run(str(path))

    lines = out.splitlines()
    assert lines[1].split() == ["1", "other", "-", "-", "-", "-", "-", "starting"]
    assert lines[2].split()[:7] == ["2", "step", "1", "2.5", "20000", "global", "dflash"]
    assert lines[-1] == "format dflash: 3 step lines, the first is line 2 (3 of 4 lines understood)"


def test_file_without_a_line_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()

    code, out = run(str(tmp_path / "a.log"))

    assert (code, out.splitlines()[-1]) == (0, "format unknown: there is no line (0 of 0 lines understood)")


def test_control_characters_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"a\x07b\x1b]0;t\x07\n")

    _, out = run(str(path))

    assert "\x1b" not in out
    assert "\x07" not in out


def test_format_of_ones_own_is_tried_on_a_log(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("it 5 v 7\nit 6 v 8\n")

    _, out = run(str(path), "--json", "--format", r"it (?P<step>\d+) v (?P<tok_s>\d+)")

    *rows, verdict = [json.loads(line) for line in out.splitlines()]
    assert [(row["step"], row["tok_s"]) for row in rows] == [(5, 7.0), (6, 8.0)]
    assert verdict["why"] == "it was asked for; it reads 2 step lines"


@pytest.mark.parametrize(
    ("pattern", "line", "hints"),
    [
        (r"it (?P<step>\d+) v (?P<tok_s>\d+)", "it 5 v 7", []),
        (r"it (?P<step>\d+) v (?P<toks>\d+)", "it 5 v 7", ["the group toks is a figure of its own; tok_s is"]),
        (r"it (?P<step>\d+) v (?P<acc>\d+)", "it 5 v 7", []),
        (r"up (?P<step>\d+)", "hello\nit 5 v 7", ["line 2 looks like a step line: it 5 v 7; teach it with"]),
        ("auto", "hello 5", []),
        ("auto", "hello\nupdate=5 of 9", ["line 2 looks like a step line: update=5 of 9; teach it with"]),
        (r"(?P<step>(\d+)+)x", "\n".join(["1" * 40] * 4), [r"lines are not read by (?P<step>(\d+)+)x any more"]),
    ],
)
def test_what_is_odd_about_a_format_or_nearly_a_step_is_said(
    tmp_path: Path, pattern: str, line: str, hints: list[str]
) -> None:
    path = tmp_path / "a.log"
    path.write_text(line + "\n")

    _, as_json = run(str(path), "--json", "--format", pattern)
    _, as_text = run(str(path), "--format", pattern)

    found = json.loads(as_json.splitlines()[-1])["hints"]
    assert len(found) == len(hints)
    assert all(each.startswith(hint) for each, hint in zip(found, hints, strict=True))
    assert [each for each in as_text.splitlines() if each.startswith("hint: ")] == [f"hint: {each}" for each in found]


def test_group_that_is_nearly_the_step_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("x\n")

    with pytest.raises(ConsoleError, match=r"as \(\?P<stp>\.\.\.\) is perhaps meant to be"):
        run(str(path), "--format", r"it (?P<stp>\d+)")


def test_unusable_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("x\n")

    with pytest.raises(ConsoleError, match="did you mean"):
        run(str(path), "--format", "megatrn")


def test_without_a_file_the_formats_are_listed() -> None:
    _, out = run()
    _, as_json = run("--json")

    assert [line.split()[0] for line in out.splitlines()[1:]] == [fmt.name for fmt in FORMATS]
    rates = {entry["format"]: entry["rates"] for entry in map(json.loads, as_json.splitlines())}
    assert rates["torchtitan"] == {"tps": "per_device", "wps": "per_device"}
