"""Values of secret-looking environment variables, kept as keyed hashes: "changed" stays visible, the value doesn't.

The key lives 0600 in the state directory, so that equal values hash alike on one host and nowhere else.
Agent and keeper may import this module.
"""

from __future__ import annotations

import os
import re
from typing import Dict, Mapping

from . import digest

# Not PWD and OLDPWD, which are folders, nor SSH_AUTH_SOCK, which is a path. The screens have the same rule.
_SECRET = re.compile(
    r"KEY|TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|(?:^|_)(?:PASS|AUTH(?!_SOCK))(?:_|$)|_PWD(?:_|$)",
    re.IGNORECASE,
)
_KEY_NAME = "key"
_KEY_BYTES = 32
PREFIX = "hmac:"


def is_secret(name: str) -> bool:
    return bool(_SECRET.search(name))


def masked(env: Mapping[str, str], key: bytes) -> Dict[str, str]:
    """Return `env` with the values of secret-looking names hashed; values hashed before stay as they are."""
    return {name: _hashed(value, key) if is_secret(name) else value for name, value in env.items()}


def covered(env: Mapping[str, str]) -> Dict[str, str]:
    """Return `env` with what isn't hashed of its secret-looking values replaced by a hash of nothing."""
    return {
        name: PREFIX + "?" if is_secret(name) and not str(value).startswith(PREFIX) else value
        for name, value in env.items()
    }


def state_key(state: str) -> bytes:
    """Return the key of this state directory, made at the first use. Raises: OSError."""
    path = os.path.join(state, _KEY_NAME)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_KEY_BYTES)


def _hashed(value: str, key: bytes) -> str:
    if value.startswith(PREFIX):
        return value
    return PREFIX + digest.keyed(key, value.encode("utf-8", "surrogateescape"))[:16]
