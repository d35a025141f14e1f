"""What takes long before the first connection: done ahead, in a thread, while the screen is there already."""

from __future__ import annotations

from importlib import import_module

from console.link.payload import build_payload


def load() -> None:
    """Import asyncssh (0.2 s) and pack what is sent to the host (0.05 s)."""
    import_module("console.link.ssh")
    build_payload()
