"""A format of one's own in a file: what it reads, and what its errors name."""

from __future__ import annotations

from pathlib import Path

import pytest

from console import configfile, formatfile
from console.config import Config
from console.reasons import ConsoleError
from console.state.formatrules import FormatError, Scope
from console.state.lines import LineSplitter
from console.state.metrics import Kind, Parser, Sample

WHOLE = r"""
name = "mine"
literals = ["upd ", "held-out"]
refuses = ["upd soon"]

[[lines]]
kind = "step"
pattern = 'upd (?P<step>\d+) of (?P<total>\d+) \| (?P<rest>.*)'
pairs = "key=value"

[[lines]]
kind = "eval"
pattern = 'held-out (?P<step>\d+): ce (?P<loss>\S+)'

[names]
ce = "loss"
ready = "queue_min"
[rates]
"tok/s" = "per_device"

[[samples]]
line = "upd 12 of 900 | ce=2.5 tok/s=100"
step = 12
loss = 2.5
scope = "per_device"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def samples(chosen: Path, text: str) -> list[Sample]:
    parser = Parser(formatfile.load(chosen))
    return [sample for line in LineSplitter().feed(text.encode(), 0, 1.0) for sample in parser.feed(line)]


def test_file_reads_its_lines(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)

    step, held_out = samples(path, "upd 40 of 900 | ce=1.5 tok/s=7.5K ready=3 temp=0.7\nheld-out 40: ce 2.25\n")

    assert (step.kind, step.step, step.total_steps, step.loss, step.format) == (Kind.STEP, 40, 900, 1.5, "mine")
    assert (step.tok_s, step.scope, step.queue_min, step.extra) == (7500.0, Scope.PER_DEVICE, 3.0, {"temp": 0.7})
    assert (held_out.kind, held_out.step, held_out.loss) == (Kind.EVAL, 40, 2.25)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "eval"', 'kind = "evil"', "Invalid enum value 'evil'"),
        ('pairs = "key=value"', 'pairs = "dots"', 'lines[0].pairs: found "dots", expected one of key=value'),
        (r"of (?P<total>\d+)", r"of (?P<total>\d+", 'lines[0].pattern: found "upd'),
        ("(?P<rest>.*)", ".*", "expected a group (?P<rest>...)"),
        (r"held-out (?P<step>\d+): ce (?P<loss>\S+)", ".*", "expected one that matches no empty line"),
        (r"(?P<step>\d+) of", r"\d+ of", "found no line of kind step that names its step"),
        ('ce = "loss"', 'ce = "lost"', 'names."ce": found "lost", expected one of'),
        ('"per_device"\n\n[[', '"per_box"\n\n[[', "Invalid enum value 'per_box'"),
        ("literals", "literal", "literal: found an unknown key, did you mean literals? (expected one of lines, name, "),
        (
            'pairs = "key=value"',
            "paris = 1",
            "lines[0].paris: found an unknown key, did you mean pairs? (expected one of ",
        ),
        (
            'kind = "eval"\npattern',
            'kind = "eval"\n"a.b" = 1\npattern',
            "lines[1].a.b: found an unknown key, expected one of",
        ),
        (
            'kind = "eval"\npattern',
            'kind = "eval"\npatern',
            "lines[1].patern: found an unknown key, did you mean pattern?",
        ),
        ("[[lines]]", "[[line]]", "line: found an unknown key, did you mean lines?"),
        (WHOLE, "", "lines: found none, expected at least one [[lines]] with a pattern"),
        (WHOLE, "[[lines]]", "lines[0].pattern: found none, expected a regular expression"),
        (WHOLE, "lines = 3", "lines: Expected `array`, got `int`"),
        ("loss = 2.5", "loss = 2.75", "samples[0].loss: found 2.5 in the line, expected 2.75"),
        ("upd 12 of 900 | ce", "upp 12 of 900 | ce", "samples[0]"),
        ('"upd soon"', '"upd 5 of 9 | ce=1"', "refuses[0]: found a pattern"),
        ('name = "mine"', "name = mine", "found no valid TOML"),
    ],
)
def test_error_names_file_key_found_and_expected(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in WHOLE
    path = written(tmp_path, WHOLE.replace(old, new, 1))

    with pytest.raises(FormatError) as caught:
        formatfile.load(path)

    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"gone\.toml: the format file can't be read: No such file"):
        formatfile.load(tmp_path / "gone.toml")


def config(tmp_path: Path, chosen: str) -> Config:
    path = tmp_path / "config.toml"
    path.write_text(
        "[targets.a]\ncommand = ['/a']\ncwd = '/'\nlog = '/a.log'\nname = 'r{n}'\n[targets.a.metrics]\n"
        f"format = '''{chosen}'''\n"
    )
    return configfile.load(path)


def test_config_finds_the_file_beside_it(tmp_path: Path) -> None:
    written(tmp_path, WHOLE)

    assert config(tmp_path, "mine.toml").targets["a"].metrics.format == str(tmp_path / "mine.toml")


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("dflsh", 'did you mean "dflash"'),
        ("gone.toml", "the format file can't be read"),
        (r"(?P<step>\d+", "not valid"),
        (r"(?P<loss>\d+)", "needs a group"),
    ],
)
def test_config_refuses_what_can_not_be_used(tmp_path: Path, chosen: str, said: str) -> None:
    with pytest.raises(ConsoleError) as caught:
        config(tmp_path, chosen)

    assert "metrics.format" in str(caught.value)
    assert said in str(caught.value)
