"""The config file: what it says when it is wrong, and that what `init` writes is right."""

from pathlib import Path

import pytest

from console import configfile, configwriter
from console.config import Target
from console.reasons import ConsoleError, Exit, Reason


def complaint(tmp_path: Path, text: str) -> str:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConsoleError) as caught:
        configfile.load(path)
    assert caught.value.reason is Reason.CONFIG
    assert caught.value.exit_code is Exit.USAGE
    assert str(path) in caught.value.detail
    return caught.value.detail


@pytest.mark.parametrize(
    ("text", "key", "found", "expected"),
    [
        ('[targets.a]\nhost = "x"\ncomand = ["x"]', "targets.a.comand", "unknown key", "did you mean 'command'?"),
        ("[targets.a.gpus]\nexpectd = 8", "targets.a.gpus.expectd", "unknown key", "did you mean 'expected'?"),
        ('[targets.a.gpus]\nexpected = "8"', "targets.a.gpus.expected", 'found "8" (text)', "a whole number"),
        ('[targets.a]\ncommand = "ls"', "targets.a.command", 'found "ls" (text)', "a list"),
        ('[targets.a]\ncommand = ["ls", 3]', "targets.a.command[1]", "found 3 (a whole number)", "text"),
        ("[targets.a]\nport = 70000", "targets.a.port", "found 70000", "1 to 65535"),
        ('[targets.a]\nlog = "/x/{nmae}"', "targets.a.log", "{nmae}", "{name}"),
        ('[targets.a]\nlog = "x.log"', "targets.a.log", '"x.log"', "absolute"),
        ('[targets.a]\nstop = { signal = "TREM" }', "targets.a.stop.signal", '"TREM"', "a signal's name"),
        ("[targets.a.deadlines]\ncuda = 0", "targets.a.deadlines.cuda", "found 0", "more than 0"),
        ("[targets.status]\n", "targets.status", "'status'", "isn't a subcommand"),
        ('default_target = "b"\n[targets.a]\n', "default_target", '"b"', "expected one of: a"),
        ("[targets.a]\nhost = x", "", "not TOML", "line 2"),
        ('[targets.a.metrics]\nformat = "(?P<loss>x)"', "targets.a.metrics.format", "(?P<loss>x)", "(?P<step>...)"),
    ],
)
def test_complaint_names_file_key_found_and_expected(
    tmp_path: Path, text: str, key: str, found: str, expected: str
) -> None:
    said = complaint(tmp_path, text)

    assert key in said
    assert found in said
    assert expected in said


def test_missing_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(ConsoleError, match="dflash-console init"):
        configfile.load(tmp_path / "none.toml")


def test_written_config_reads_back_as_the_same_target(tmp_path: Path) -> None:
    target = Target(
        host="10.1.2.6",
        user="root",
        port=2222,
        jump="ops@jump",
        exec=("pct", "exec", "200", "--"),
        command=("/root/run.sh", 'a "quoted" \\ word', "é", "a\nnewline"),
        name="slammed{n}",
        log="/workspace/train_{name}.log",
        match=("train_dflash_pipeline.py",),
        caches=("/tmp/torchinductor_root",),
    )
    path = tmp_path / "deep" / "config.toml"

    configwriter.write_new(path, configwriter.render("ct.200", target))

    config = configfile.load(path)
    assert config.targets == {"ct.200": target}
    assert config.default_target == "ct.200"
    assert path.stat().st_mode & 0o777 == 0o600


def test_existing_config_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("mine")

    with pytest.raises(ConsoleError, match="exists already"):
        configwriter.write_new(path, "theirs")

    assert path.read_text() == "mine"


def test_flags_replace_values_and_are_checked() -> None:
    target = configfile.with_flags(Target(), {"host": "h", "command": ["/a b"], "port": 22})

    assert (target.host, target.command, target.port) == ("h", ("/a b",), 22)
    with pytest.raises(ConsoleError, match="command line"):
        configfile.with_flags(Target(), {"log": "relative.log"})


def test_only_target_is_picked_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[targets.ct200]\nhost = "x"\n')
    config = configfile.load(path)

    assert configfile.pick(config, None, path)[0] == "ct200"
    with pytest.raises(ConsoleError, match="did you mean 'ct200'"):
        configfile.pick(config, "ct20", path)


@pytest.mark.parametrize(
    ("text", "is_wanted"),
    [
        ('host = "h"', False),
        ('host = "h"\nexec = ["pct", "exec", "200", "--"]', True),
        ('host = "h"\nexec = ["pct", "exec", "200", "--"]\nhost_helper = false', False),
        ('exec = ["pct", "exec", "200", "--"]', False),
        ('exec = ["pct", "exec", "200", "--"]\nhost_helper = true', True),
        ("host_helper = true", False),
    ],
)
def test_a_helper_on_the_host_is_for_containers_behind_ssh_unless_the_config_says_otherwise(
    text: str, is_wanted: bool, tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[targets.a]\n{text}\n")

    assert configfile.load(path).targets["a"].wants_host_helper == is_wanted


def test_file_that_cannot_be_read_is_named_with_the_reason_once(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b'x = "\xe4"')

    with pytest.raises(ConsoleError) as folder:
        configfile.load(tmp_path)
    with pytest.raises(ConsoleError) as latin:
        configfile.load(tmp_path / "latin")

    assert folder.value.detail == f"{tmp_path}: Is a directory; expected a readable UTF-8 file"
    assert latin.value.detail == f"{tmp_path / 'latin'}: not UTF-8 at byte 5; expected a readable UTF-8 file"
