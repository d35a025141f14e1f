"""What bars the way in: each has its name, its advice and its exit code, and nothing is tried twice."""

import subprocess
from pathlib import Path

from tests.lab.containers import Container
from tests.lab.session import Lab, Setting
from tests.lab.training import Done, Training


def _status(lab: Lab, container: Container | None, folder: Path, **settings: Setting) -> Done:
    """Run `status --json` with a config whose way in is `settings`."""
    training = Training(lab, container or lab.container("plain"), folder, folder)
    config = folder / "way.toml"
    config.write_text(lab.config(container, way="host", **settings))
    return training.cli("status", "--json", config=config)


def test_incomplete_python_is_named(lab: Lab, minimal_container: Container, tmp_path: Path) -> None:
    told = _status(lab, minimal_container, tmp_path)

    assert (told.code, told.json["reason"], told.json["exit_code"]) == (31, "python_incomplete", 31)
    assert "json" in told.json["detail"]
    assert told.json["next"]


def test_stopped_container_is_named(lab: Lab, tmp_path: Path) -> None:
    container = lab.fresh_container()
    container.stop()

    told = _status(lab, container, tmp_path)

    assert (told.code, told.json["reason"]) == (31, "container_stopped")


def test_missing_wrapper_is_named(lab: Lab, tmp_path: Path) -> None:
    told = _status(lab, None, tmp_path, exec=["pct-not-there", "exec", "200", "--"])

    assert (told.code, told.json["reason"]) == (31, "wrapper_missing")
    assert "pct-not-there" in told.json["detail"]


def test_wrong_key_is_tried_once(lab: Lab, plain_container: Container, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(wrong)], check=True, timeout=20)
    before = _said(lab, "Connection from"), _said(lab, "Failed publickey")

    told = _status(lab, plain_container, tmp_path, identity=str(wrong))

    assert (told.code, told.json["reason"]) == (30, "login_refused")
    after = _said(lab, "Connection from"), _said(lab, "Failed publickey")
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1)


def test_changed_host_key_is_refused_and_nothing_is_sent(lab: Lab, plain_container: Container, tmp_path: Path) -> None:
    host, other = lab.host(), tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True, timeout=20)
    known = tmp_path / "known_hosts"
    kind, blob = other.with_suffix(".pub").read_text().split()[:2]
    known.write_text(f"[{host.address}]:{host.port} {kind} {blob}\n")
    before = _said(lab, "publickey")

    told = _status(lab, plain_container, tmp_path, known_hosts=str(known))

    assert (told.code, told.json["reason"]) == (30, "host_key_changed")
    assert _said(lab, "publickey") == before


def _said(lab: Lab, words: str) -> int:
    """Return how often the training host's sshd has said something."""
    return lab.host().log.count(words)
