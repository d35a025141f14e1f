"""The next run's name and log: `slammed{n}` counts on from what run directories and logs on disk already use."""

from __future__ import annotations

import glob
import os
import re
import time
from typing import Iterable, List, Tuple

_COUNTER = "{n}"
_STAMP = "{time}"


def choose(template: str, log_template: str, taken: Iterable[str]) -> Tuple[str, str]:
    """Return (name, log path), both fresh. `taken`: the names of earlier runs. An existing log is never chosen."""
    stamped = template.replace(_STAMP, time.strftime("%Y%m%d-%H%M%S"))
    if _COUNTER not in stamped:
        return stamped, _fresh(_log(log_template, stamped))
    number = 1 + max([0, *_numbers(stamped, [*taken, *_names_of_logs(log_template)])])
    while True:
        name = stamped.replace(_COUNTER, str(number))
        path = _log(log_template, name)
        if not os.path.lexists(path):
            return name, path
        number += 1


def _log(template: str, name: str) -> str:
    stamped = template.replace(_STAMP, time.strftime("%Y%m%d-%H%M%S"))
    return stamped.replace("{name}", name.replace("/", "_"))


def _numbers(template: str, names: Iterable[str]) -> List[int]:
    pattern = re.compile("([0-9]{1,9})".join(re.escape(part) for part in template.split(_COUNTER, 1)) + r"\Z")
    return [int(found.group(1)) for found in map(pattern.match, names) if found]


def _names_of_logs(template: str) -> List[str]:
    """Read `{name}` back out of the files that the template could have made."""
    head, mark, tail = template.replace(_STAMP, "*").partition("{name}")
    if not mark:
        return []
    pattern = re.compile(_as_regex(head) + "(.+)" + _as_regex(tail.replace("{name}", "*")) + r"\Z", re.DOTALL)
    found = glob.iglob(_as_glob(head) + "*" + _as_glob(tail.replace("{name}", "*")))
    return [match.group(1) for match in map(pattern.match, found) if match]


def log_glob(template: str) -> str:
    """Return a glob for every log that the template could have made."""
    return "*".join(glob.escape(part) for part in re.split(r"\{(?:name|time|n)\}", template))


def _as_glob(text: str) -> str:
    return "*".join(glob.escape(part) for part in text.split("*"))


def _as_regex(text: str) -> str:
    return ".*".join(re.escape(part) for part in text.split("*"))


def _fresh(path: str) -> str:
    """Return `path`, or the first `NAME.2.log`, `NAME.3.log`, ... that does not exist."""
    if not os.path.lexists(path):
        return path
    stem, ending = os.path.splitext(path)
    number = 2
    while os.path.lexists(f"{stem}.{number}{ending}"):
        number += 1
    return f"{stem}.{number}{ending}"
