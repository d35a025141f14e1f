"""Secrets taken out of text that leaves the host: by the values of secret-looking variables, by name, by shape.

Better one harmless word too many hidden than a key shown; but figures stay readable: `tokens=21480` is no secret.
Imports only what knows secret names. Only diagnose_run.py imports this module.
"""

from __future__ import annotations

import re
from typing import Iterable, List, Mapping, Pattern, Tuple

from . import secretenv

HIDDEN = "[hidden]"
# Shorter values stand in too many innocent words: `KEY=1`.
_LEAST_CHARS = 6

_NAMES = (
    r"\w*passw(?:or)?d|\w*passphrase|pass|secret|credentials?|token|auth|\w*private[_-]?key|"
    r"\w*(?:api|access|account|secret|signing|encryption|session|auth|ssh|hf|wandb|aws|openai)[_-]?(?:key|token)(?:[_-]?id)?"
)
_SHAPES: Tuple[Pattern[str], ...] = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"\bhf_[A-Za-z0-9]{8,}"),
    re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"),
    re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}"),
    re.compile(r"\bgh[opusr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{12,}"),
    re.compile(r"\bxox[abprs]-[\w-]{8,}|\bpypi-[\w-]{16,}|\bnvapi-[\w-]{16,}|\bAIza[\w-]{20,}|\blocal-[0-9a-f]{40}\b"),
    re.compile(r"\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*"),
)
# Authorization: Bearer abc; https://user:secret@host
_BEARER = re.compile(r"\b((?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}")
_IN_URL = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s/:@'\"]*:)[^\s/@'\"]+(?=@)", re.IGNORECASE)
# password=x, "api_key": "x", --token x, HF_TOKEN=x, also with a NUL or a quote before it.
_NAMED = re.compile(
    r"((?<![\w-])(?:[\w.-]*[_.-])?(?:%s|(?<=[_-])pwd)[\"']?\s*[=:]\s*|--?(?:[\w-]*-)?(?:%s)[= ]\s*)" % (_NAMES, _NAMES)
    + r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s,;&\"'\])}]+)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+]?[\d.,]+(?:[eE][-+]?\d+)?[KMGTkmgt%/s]*\Z")
_SECRET_NUMBERS = re.compile(r"pass|pwd|secret|credential", re.IGNORECASE)


def values_of(environments: Iterable[Mapping[str, str]]) -> List[str]:
    """Return the values of secret-looking variables, the longest first: what must not stand anywhere."""
    found = {value for env in environments for name, value in env.items() if secretenv.is_secret(name)}
    return sorted((value for value in found if len(value) >= _LEAST_CHARS and not _NUMBER.match(value)), key=len)[::-1]


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with `secrets` and whatever looks like one replaced."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    for shape in _SHAPES:
        text = shape.sub(HIDDEN, text)
    text = _BEARER.sub(lambda found: found.group(1) + HIDDEN, text)
    text = _IN_URL.sub(lambda found: found.group(1) + HIDDEN, text)
    return _NAMED.sub(_hide_named, text)


def variable(name: str, value: str) -> str:
    """Return `NAME=value` for people, the value hidden where the name looks secret."""
    return f"{name}={HIDDEN if secretenv.is_secret(name) and value else value}"


def _hide_named(found: "re.Match[str]") -> str:
    name, value = found.group(1), found.group(2)
    if value == HIDDEN or value.startswith((HIDDEN, secretenv.PREFIX)):
        return found.group()
    if _NUMBER.match(value.strip("\"'")) and not _SECRET_NUMBERS.search(name):
        return found.group()
    return name + HIDDEN
