"""The digests are those of the standard library, which the console and older keepers use."""

import hashlib
import hmac
import io
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from console.host import digest


@given(st.binary(max_size=200))
def test_digest_is_sha_256(data: bytes) -> None:
    assert digest.sha256(data) == hashlib.sha256(data).hexdigest()


@given(st.binary(max_size=3 * digest.CHUNK_BYTES))
def test_digest_of_a_file_is_that_of_its_bytes(data: bytes) -> None:
    assert digest.sha256_of(io.BytesIO(data)) == hashlib.sha256(data).hexdigest()


@given(key=st.binary(max_size=200), data=st.binary(max_size=200))
def test_keyed_digest_is_hmac(key: bytes, data: bytes) -> None:
    assert digest.keyed(key, data) == hmac.new(key, data, hashlib.sha256).hexdigest()


def test_nothing_on_the_host_loads_openssl() -> None:
    """Neither the agent nor the keeper: its library would be a seventh of what each of them takes."""
    imports = "import sys, console.host.agent, console.host.keeper; print(sorted(sys.modules))"

    found = subprocess.run(
        [sys.executable, "-c", imports], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )

    assert "_hashlib" not in found.stdout
    assert "'console.host.digest'" in found.stdout
