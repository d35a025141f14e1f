"""SHA-256 without OpenSSL: importing hashlib maps its library, which is 3.7 MB of each process on the host.

Imports nothing of ours; fingerprints, plans and secretenv use it.
"""

from __future__ import annotations

import importlib
from typing import Any, BinaryIO


def _implementation() -> Any:
    for name in ("_sha2", "_sha256"):  # CPython's own code: by the first name since 3.12, by the other before
        try:
            return importlib.import_module(name).sha256
        except ImportError:
            continue
    return importlib.import_module("hashlib").sha256  # an interpreter that was built to have no other than OpenSSL's


_sha256 = _implementation()
CHUNK_BYTES = 1 << 16
_BLOCK_BYTES = 64
_INNER, _OUTER = bytes(byte ^ 0x36 for byte in range(256)), bytes(byte ^ 0x5C for byte in range(256))


def sha256(data: bytes) -> str:
    """Return the digest in hexadecimal."""
    return str(_sha256(data).hexdigest())


def sha256_of(file: BinaryIO) -> str:
    """Return that of what a file has from here on, without keeping more than a part of it."""
    made = _sha256()
    while True:
        part = file.read(CHUNK_BYTES)
        if not part:
            return str(made.hexdigest())
        made.update(part)


def keyed(key: bytes, data: bytes) -> str:
    """Return HMAC-SHA-256 (RFC 2104) in hexadecimal."""
    if len(key) > _BLOCK_BYTES:
        key = _sha256(key).digest()
    padded = key.ljust(_BLOCK_BYTES, b"\0")
    inner = _sha256(padded.translate(_INNER) + data).digest()
    return str(_sha256(padded.translate(_OUTER) + inner).hexdigest())
