"""What the ledger keeps of a run's curves, as one compressed blob, and how two consoles' versions of it become one."""

from __future__ import annotations

import zlib
from typing import Final

import msgspec

from console.state.digest import Digest, merged
from console.state.steadiness import Window, later

_VERSION: Final = 1
_MOST_BYTES: Final = 4 * 1024 * 1024
"""Of a blob unpacked; ours have a tenth of that."""


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """Curves of one run by name: `tok_s`, `loss`, `queue`, and per role `memory:ROLE` (bytes), `busy:ROLE` (percent),
    `power:ROLE` (watts); and the steady rates of its last 10 minutes."""

    version: int = _VERSION
    digests: dict[str, Digest] = {}
    steady: Window = Window()

    def with_(self, other: Curves) -> Curves:
        """Return what both know."""
        both = dict(self.digests)
        for name, digest in other.digests.items():
            both[name] = merged(both[name], digest) if name in both else digest
        return Curves(digests=both, steady=later(self.steady, other.steady))


def packed(curves: Curves) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(curves), 6)


def unpacked(data: bytes) -> Curves:
    """Return the curves of a blob; none where it is damaged or a newer console's: they are watched anew."""
    try:
        text = zlib.decompressobj().decompress(data, _MOST_BYTES)
        curves = msgspec.msgpack.decode(text, type=Curves)
    except (zlib.error, msgspec.DecodeError):
        return Curves()
    return curves if curves.version == _VERSION else Curves()
