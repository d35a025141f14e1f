"""Where GPU figures come from: NVML, `nvidia-smi`, a simulated state file, or nothing; in a disposable child.

Each source answers `sample()` with {"source", "why", "driver", "gpus": [...]}; a field that a GPU does not tell is
None, alone. Nothing here knows runs or process trees. Only gpu.py, plan.py and doctor.py import this module.
"""

from __future__ import annotations

import re
import time
from typing import Any, Callable, Dict, Optional, Tuple

from . import nvidiasmi, nvml, procfs

Sample = Dict[str, Any]
Crumb = Callable[[str], None]
"""Is told the name of a call before it is made, so that a call that never returns can be named."""

# A driver that failed to answer is asked anew after this long, not at each sample.
RETRY_S = 30.0

_IDLE_POWER_MW = 77_000
_IDLE_SM_MHZ = 345


class Sources:
    """Asks the best source that answers and remembers for a while which ones did not."""

    def __init__(self, simulated: Optional[str], crumb: Crumb) -> None:
        self._simulated = Simulated(simulated) if simulated else None
        self._nvml = nvml.Nvml(crumb)
        self._smi = nvidiasmi.Smi(crumb)
        self._failed_at: Optional[float] = None
        self._why = ""

    def sample(self) -> Sample:
        if self._simulated:
            return self._simulated.sample()
        if self._failed_at is not None and time.monotonic() - self._failed_at < RETRY_S:
            return _nothing(self._why)
        whys = []
        for source in (self._nvml, self._smi):
            try:
                answer = source.sample()
            except nvml.SourceFailed as failure:
                whys.append(str(failure))
                continue
            self._failed_at = None
            answer["why"] = answer["why"] or "; ".join(whys)
            return answer
        self._failed_at, self._why = time.monotonic(), "; ".join(whys)
        return _nothing(self._why)


def _nothing(why: str) -> Sample:
    return {"source": "none", "why": why, "driver": "", "gpus": []}


class Simulated:
    """A state file of simulated GPUs; console/demo/gpustate.py holds its format.

    Nobody rewrites the file after its writer was killed, so the reader drops dead processes and what they used.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def sample(self) -> Sample:
        try:
            with open(self._path, encoding="utf-8", errors="replace") as state:
                lines = state.read(1 << 20).splitlines()
        except OSError as error:
            return {"source": "simulated", "why": f"{self._path}: {error.strerror}", "driver": "", "gpus": []}
        driver, gpus, now, living = "", [], time.time(), _Living()
        for line in lines:
            if line.startswith("driver "):
                driver = line[7:].strip()
            elif line.startswith("gpu "):
                try:
                    gpus.append(_simulated_gpu(line, now, living))
                except (ValueError, IndexError):
                    continue
        return {"source": "simulated", "why": "", "driver": driver, "gpus": gpus}


# shlex.split takes ten times as long, once a second for each GPU.
_WORD, _QUOTED = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"])+"""), re.compile(r"""'([^']*)'|"([^"]*)\"""")
_NUMBERS = ("total", "used", "reserved", "util", "power_mw", "limit_mw", "temp", "hot_at", "sm_mhz", "sm_max_mhz")
_COUNTS = ("throttle", "retired", "xid")


def _simulated_gpu(line: str, now: float, lives: _Living) -> Dict[str, Any]:
    words = [_QUOTED.sub(r"\1\2", word) for word in _WORD.findall(line)]
    fields = dict(word.split("=", 1) for word in words[2:] if "=" in word)
    numbers = {key: _known(fields.get(key)) for key in (*_NUMBERS, *_COUNTS)}
    numbers["ecc"] = _known(fields.get("ecc_uncorrected"))
    living, dead, dead_bytes = [], 0, 0
    for entry in filter(None, fields.get("procs", "").split(",")):
        pid, used, start = (entry.split(":") + ["", ""])[:3]
        if lives[int(pid), _known(start)]:
            living.append([int(pid), _known(used)])
        else:
            dead, dead_bytes = dead + 1, dead_bytes + (_known(used) or 0)
    if numbers["used"] is not None and now >= float(fields.get("held_until", 0)):
        numbers["used"] = max(0, numbers["used"] - dead_bytes)
    if dead and not living:  # nobody works here any more, whatever the last writer saw
        for key, most in (("util", 0), ("power_mw", _IDLE_POWER_MW), ("sm_mhz", _IDLE_SM_MHZ)):
            value = numbers[key]
            numbers[key] = None if value is None else min(value, most)
    lost = {"lost": fields["lost"]} if fields.get("lost") else {}
    uuid, name = fields.get("uuid"), fields.get("name")
    return nvml.gpu(int(words[1]), uuid=uuid, name=name, procs=living, **numbers, **lost)


def _known(text: Optional[str]) -> Optional[int]:
    return int(text, 0) if text and text != "?" else None


class _Living(Dict[Tuple[int, Optional[int]], bool]):
    """Whether (pid, start) lives, asked once of each."""

    def __missing__(self, who: Tuple[int, Optional[int]]) -> bool:
        pid, start = who
        stat = procfs.read_stat(pid)
        self[who] = lives = stat is not None and stat.state not in "ZX" and start in (None, stat.start)
        return lives
