"""The catalogue of faults that the demo can inject: what each is, and which part of the demo does it.

The simulated trainer carries out its own (trainer.py, option --fault), the demo host the others. Nothing here acts.
"""

from dataclasses import dataclass
from enum import StrEnum


class By(StrEnum):
    """Who injects a fault."""

    TRAINER = "trainer"  # as --fault NAME[:ARG], or through the fault file
    SCRIPT = "script"  # the demo host changes run.sh before the next start
    HOST = "host"  # the demo host does it to itself, at once


class Takes(StrEnum):
    """When a fault takes effect once it is asked for."""

    NEXT_START = "next start"
    AT_ONCE = "at once"


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to go wrong."""

    name: str
    summary: str
    """One sentence, for the palette and --help."""
    by: By
    how: str
    """How it is injected."""
    takes: Takes
    arg: str = ""
    """What ARG means; empty where the fault has none."""


_STEPS = "steps to go before it strikes (default 20 at the start, 0 while running)"


def _trainer(name: str, takes: Takes, summary: str, arg: str = "") -> Fault:
    return Fault(name, summary, By.TRAINER, "the trainer's --fault or its fault file", takes, arg)


def _script(name: str, how: str, summary: str) -> Fault:
    return Fault(name, summary, By.SCRIPT, how, Takes.NEXT_START)


_ALL = (
    _script("exec-refused", "chmod 0644 run.sh", "run.sh is not executable, so nothing can be started."),
    _script("bad-interpreter", "run.sh begins with #!/bin/nosuch", "run.sh names an interpreter that does not exist."),
    _trainer(
        "exit-at-once",
        Takes.NEXT_START,
        "The trainer ends with status 1 and a traceback 0.3 s after its start.",
        arg="seconds until it ends (default 0.3)",
    ),
    _trainer("exit-zero", Takes.NEXT_START, "The trainer ends with status 0 without a single step."),
    _trainer("traceback", Takes.NEXT_START, "A rank raises an exception while the model loads; status 1."),
    _trainer(
        "oom-load", Takes.NEXT_START, "A GPU runs out of memory while the model loads.", arg="the GPU (default 0)"
    ),
    _trainer(
        "cuda-hang",
        Takes.NEXT_START,
        "Only some ranks get a CUDA context; the trainer waits for the others for ever.",
        arg="how many get one (default: all but 2)",
    ),
    _trainer("no-cuda", Takes.NEXT_START, "CUDA finds no GPU, and the trainer ends with status 1."),
    _trainer("nan", Takes.AT_ONCE, "The loss becomes NaN while the steps go on.", arg=_STEPS),
    _trainer(
        "stall", Takes.AT_ONCE, "The steps stop; the GPUs are 100 % busy at 128 W, as in a collective.", arg=_STEPS
    ),
    _trainer("stall-idle", Takes.AT_ONCE, "The steps stop and the GPUs are idle.", arg=_STEPS),
    _trainer("sigkill", Takes.AT_ONCE, "The trainer dies by SIGKILL between two steps.", arg=_STEPS),
    _trainer("buffered", Takes.AT_ONCE, "The log stays silent although the GPUs work: the output is buffered."),
    _trainer("slow", Takes.AT_ONCE, "The rate falls by 17 %.", arg=_STEPS),
    _trainer("spike", Takes.AT_ONCE, "The loss jumps to three times what it was, and stays there.", arg=_STEPS),
    _trainer("starve", Takes.AT_ONCE, "The queue stays empty, and the rate falls by 40 %.", arg=_STEPS),
    _trainer("recompile", Takes.AT_ONCE, "Dynamo hits its recompile limit, and the rate falls by 17 %.", arg=_STEPS),
    _trainer("suspend", Takes.AT_ONCE, "The trainer stops itself by SIGSTOP; `kill -CONT` lets it go on.", arg=_STEPS),
    _trainer("linger", Takes.AT_ONCE, "The trainer says that it is done, and never exits.", arg=_STEPS),
    _trainer("elsewhere", Takes.AT_ONCE, "The output goes on in a file of the trainer's own.", arg=_STEPS),
    _trainer("download-stall", Takes.NEXT_START, "The download of the model stands still for ever."),
    _trainer("ignore-term", Takes.NEXT_START, "Trainer and ranks ignore SIGTERM, so that only SIGKILL ends them."),
    Fault(
        "link-cut",
        "The connection to the host breaks; the run goes on.",
        By.HOST,
        "the demo's SSH server drops its connections",
        Takes.AT_ONCE,
    ),
    Fault(
        "log-cut",
        "The connection that carries the log breaks, for 20 s; the host goes on being heard.",
        By.HOST,
        "the demo's SSH server drops the log's connection and lets no other in",
        Takes.AT_ONCE,
    ),
)

CATALOGUE: dict[str, Fault] = {fault.name: fault for fault in _ALL}


def parse(text: str) -> tuple[Fault, str]:
    """Return the fault and the argument that NAME[:ARG] names.

    Raises: ValueError that lists the names.
    """
    name, _, arg = text.partition(":")
    if name not in CATALOGUE:
        raise ValueError(f"unknown fault {name!r}; known are {', '.join(CATALOGUE)}")
    if arg and not CATALOGUE[name].arg:
        raise ValueError(f"fault {name!r} takes no argument")
    return CATALOGUE[name], arg
