"""Asking preflight about a situation on this machine."""

from pathlib import Path
from typing import Any

from console.host import preflight

PATH = "/usr/local/bin:/usr/bin:/bin"


def write(path: Path, content: bytes, mode: int = 0o755) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def checks(place: Path, action: str = "restart", **changes: Any) -> dict[str, dict[str, Any]]:
    env = {"PATH": changes.pop("path", PATH)}
    log = changes.pop("log", str(place / "logs" / "run1.log"))
    sample, judged = changes.pop("sample", {}), changes.pop("judged", {})
    spec = {"target": "t", "command": ["/bin/true"], "cwd": str(place), "match": ["train.py"], **changes}
    world = preflight.World(spec, log, env, str(place / "state"), sample, judged, [])
    found: dict[str, dict[str, Any]] = {}
    for check in preflight.checks(world, action):
        if found.get(check["id"], {}).get("state") != "refuse":
            found[check["id"]] = check
    return found


def outcome(place: Path, command: list[str], **changes: Any) -> tuple[str, str | None, str]:
    """Return (id, reason, detail) of the check that refuses, ("", None, "") where none does."""
    for check in checks(place, command=command, **changes).values():
        if check["state"] == "refuse":
            return check["id"], check["reason"], check["detail"]
    return "", None, ""
