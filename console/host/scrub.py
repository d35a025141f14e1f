"""Secrets taken out of text that leaves the host: by the values of secret-looking variables, by name, by shape.

Better one harmless word too many hidden than a key shown; but figures stay readable: `tokens=21480` is no secret.
Imports only what knows secret names. Only diagnose_run.py imports this module.
"""

from __future__ import annotations

import re
from typing import Iterable, List, Mapping, Pattern, Sequence, Tuple

from . import secretenv

HIDDEN = "[hidden]"
# Shorter values stand in too many innocent words: `KEY=1`.
_LEAST_CHARS = 6

# Every repetition is bounded: a line of a log may be a megabyte of anything.
_NAMES = (
    r"\w{0,40}passw(?:or)?d|\w{0,40}passphrase|(?:pg)?pass|secret|credentials?|token|auth|\w{0,40}private[_-]?key|"
    r"(?:github|gitlab|gh|access)_pat|x-amz-signature|(?<=[?&])sig|"
    r"\w{0,40}(?:api|access|account|secret|signing|encryption|session|auth|ssh|hf|wandb|aws|openai)"
    r"[_-]?(?:key|token)(?:[_-]?id)?"
)
_SHAPES: Tuple[Tuple[Tuple[str, ...], Pattern[str]], ...] = (
    (
        ("PRIVATE KEY",),
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S),
    ),
    (("hf_",), re.compile(r"\bhf_[A-Za-z0-9]{8,}")),
    (("sk-",), re.compile(r"\bsk-[A-Za-z0-9_-]{8,}")),
    (("AKIA", "ASIA", "AROA", "AIDA"), re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}")),
    (("gho_", "ghp_", "ghu_", "ghs_", "ghr_"), re.compile(r"\bgh[opusr]_[A-Za-z0-9]{16,}")),
    (("github_pat_", "glpat-"), re.compile(r"\bgithub_pat_\w{16,}|\bglpat-[\w-]{12,}")),
    (("xox",), re.compile(r"\bxox[abprs]-[\w-]{8,}")),
    (("pypi-", "nvapi-", "AIza"), re.compile(r"\bpypi-[\w-]{16,}|\bnvapi-[\w-]{16,}|\bAIza[\w-]{20,}")),
    (("hooks.slack",), re.compile(r"(?<=hooks\.slack\.com/services/)[\w/]{8,}")),
    (("eyJ",), re.compile(r"\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*")),
)
"""Shapes of keys, each behind the words without which it can't be there: looking for those costs next to nothing."""
# Authorization: Bearer abc; https://user:secret@host
_BEARER = re.compile(
    r"\b((?:[Bb]earer|Basic|[Aa]uthorization[\"']?\s?[=:]\s?[\"']?[Tt]oken)\s{1,8})[A-Za-z0-9._~+/=-]{8,}"
)
_IN_URL = re.compile(
    r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@'\"]{0,200}:|\bhttps?://(?=[^\s/:@'\"]{1,200}@))[^\s/'\"]{1,500}(?=@)",
    re.IGNORECASE,
)
# curl -u user:x, wandb login x, Cookie: x
_COMMANDS = re.compile(
    r"(\bcurl\s(?:[^\n]{0,200}\s)?(?:-u|--user)[ =]?[^\s:]{1,100}:"
    r"|\bwandb login\s(?:--?[\w-]{1,40}\s){0,4}|\bCookie:\s?)(?!-)\S{6,}",
    re.IGNORECASE,
)
# password=x, "api_key": "x", --token x, HF_TOKEN=x
_NAMED = re.compile(
    r"((?<![\w-])(?:[\w.-]{0,60}[_.-])?(?:%s|(?<=[_-])pwd)\\{0,3}[\"']?\s{0,8}[=:]\s{0,8}(?:\\{1,3}[\"'])?" % _NAMES
    + r"|(?<![\w-])--?(?:[\w-]{0,40}-)?(?:%s)[= ]\s{0,8})" % _NAMES
    + r"(\[hidden\]|\"[^\"\n]*\"|'[^'\n]*'|[^\s,;&\"'\])}]+)",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"pass|secret|token|auth|credential|key|pwd|_pat|sig=|signature|earer|curl|wandb|cookie", re.IGNORECASE
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
    for hints, shape in _SHAPES:
        if any(hint in text for hint in hints):
            text = shape.sub(HIDDEN, text)
    if "://" in text:
        text = _IN_URL.sub(lambda found: found.group(1) + HIDDEN, text)
    return "\n".join(_line(line) if _HINT.search(line) else line for line in text.split("\n"))


def _line(line: str) -> str:
    for shape in (_BEARER, _COMMANDS):
        line = shape.sub(lambda found: found.group(1) + HIDDEN, line)
    return _NAMED.sub(_hide_named, line)


def words(argv: Sequence[str], secrets: Iterable[str] = ()) -> Tuple[str, ...]:
    """Return the words of a command line scrubbed, also one that only the option before it tells to be a secret."""
    secrets, clean, before = list(secrets), [], ""
    for word in argv:
        named = before.startswith("-") and _NAMED.fullmatch("%s %s" % (before, _PROBE))
        clean.append(HIDDEN if named and not _NUMBER.match(word) else scrub(word, secrets))
        before = word
    return tuple(clean)


_PROBE = "x"


def variable(name: str, value: str) -> str:
    """Return `NAME=value` for people, the value hidden where the name looks secret."""
    return f"{name}={HIDDEN if secretenv.is_secret(name) and value else value}"


def _hide_named(found: "re.Match[str]") -> str:
    name, value = found.group(1), found.group(2)
    if value.strip("\"'").startswith((HIDDEN, secretenv.PREFIX)):
        return found.group()
    if _NUMBER.match(value.strip("\"'")) and not _SECRET_NUMBERS.search(name):
        return found.group()
    return name + HIDDEN
