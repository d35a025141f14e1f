"""The questions of `init`: a few at a time, and what they lead to is tried before the next ones are asked."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from console import configfile
from console.config import Target
from console.engine.examination import Examination, Finding
from console.headless import doctor

_SHOWN_MARGIN = "    "


@dataclass(frozen=True, slots=True)
class _Question:
    key: str
    text: str
    is_words: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """Questions that are tried together, and the doctor's findings that tell how far they lead, in its order."""

    questions: tuple[_Question, ...]
    findings: tuple[str, ...]


_PARTS = (
    _Part(
        (
            _Question("host", "Host (address, a Host of ~/.ssh/config, or 'local')"),
            _Question("user", "User on the host (empty: as ~/.ssh/config says)"),
            _Question("jump", "Jump host, such as ops@jump (empty: none, or as ~/.ssh/config says)"),
        ),
        ("ssh.jump", "ssh.host"),
    ),
    _Part(
        (_Question("exec", "Words that enter the container, such as: pct exec 200 -- (empty: none)", is_words=True),),
        ("exec.enter", "host.python", "gpu.nvml"),
    ),
    _Part(
        (
            _Question("command", "Command that starts the training, such as: /root/run.sh", is_words=True),
            _Question("log", "Log file, such as /workspace/train_{name}.log"),
            _Question("match", "Trainer script by which a run started by hand is recognised (empty: none)", True),
        ),
        ("plan.preflight",),
    ),
)
_REMOTE_ONLY = ("user", "jump")


def ask(given: Mapping[str, Any], *, tries: bool) -> tuple[dict[str, Any], bool]:
    """Ask for what no flag gave; an empty answer leaves it out.

    Returns the answers, and whether everything that was tried led somewhere. `tries`: whether to connect at all.
    """
    answers = dict(given)
    leads_on = tries
    for part in _PARTS:
        _put_questions(part, answers, given)
        while leads_on and "host" in answers and not _is_way(part, answers):
            if not click.confirm("Answer these again (enter keeps what stands there, - takes it out)?", True, err=True):
                leads_on = False
                break
            _put_questions(part, answers, {})
    return answers, leads_on


def _put_questions(part: _Part, answers: dict[str, Any], given: Mapping[str, Any]) -> None:
    for question in part.questions:
        if question.key in given or (answers.get("host") == "local" and question.key in _REMOTE_ONLY):
            continue
        before = answers.pop(question.key, "")
        shown = shlex.join(before) if question.is_words and before else before
        answer = click.prompt(question.text, default=shown, show_default=bool(shown), err=True).strip()
        if answer not in ("", "-"):
            answers[question.key] = _words(question, answer)


def _words(question: _Question, answer: str) -> str | list[str]:
    if not question.is_words:
        return answer
    try:
        return shlex.split(answer)
    except ValueError as exc:
        raise click.UsageError(f"{answer!r} can't be split into words: {exc}") from exc


def _is_way(part: _Part, answers: Mapping[str, Any]) -> bool:
    """Try what the answers lead to so far, say it, and tell whether none of it failed."""
    if "plan.preflight" in part.findings and not answers.get("command"):
        return True
    target = configfile.with_flags(Target(), with_defaults(answers))
    findings = asyncio.run(_look(target, part.findings))
    return all(finding.state != "fail" for finding in findings)


async def _look(target: Target, wanted: tuple[str, ...]) -> list[Finding]:
    """Examine the target until the last of the wanted findings is there, or one after which nothing can be known."""
    found: list[Finding] = []
    is_told = asyncio.Event()

    def tell(finding: Finding) -> None:
        if is_told.is_set() or (finding.id not in wanted and finding.state != "fail"):
            return
        found.append(finding)
        print(f"{_SHOWN_MARGIN}{doctor.line(finding)}", file=sys.stderr, flush=True)
        if finding.id == wanted[-1] or finding.state == "fail":
            is_told.set()

    examining = asyncio.create_task(Examination("init", target, tell).run())
    waiting = asyncio.create_task(is_told.wait())
    await asyncio.wait((examining, waiting), return_when=asyncio.FIRST_COMPLETED)
    for task in (examining, waiting):
        task.cancel()
    results = await asyncio.gather(examining, waiting, return_exceptions=True)
    if isinstance(results[0], Exception):
        raise results[0]
    return found


def with_defaults(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags with the command's own directory as the one to run it in, unless they name one."""
    command = flags.get("command")
    if command and "cwd" not in flags:
        folder = command[0].rpartition("/")[0]
        return dict(flags) | {"cwd": folder if folder.startswith("/") else "/root"}
    return dict(flags)
