"""Writing a config file that explains itself. Never overwrites one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec

from console.config import Target
from console.reasons import ConsoleError, Exit, Reason

_PAGE = """\
# dflash-console: the training hosts and what runs on them.
# Unknown keys are errors, so a typing mistake can't go unnoticed. Times are in seconds.

default_target = {name}

[targets.{name}]
host = {host}{host_note}
{login}
# Words that enter the container; leave out where the host itself trains.
{exec}

# The command, as words: no shell is in between, so nothing needs quoting.
command = {command}
cwd = {cwd}
# Added to a login shell's environment. PYTHONUNBUFFERED=1 is set unless you set it.
env = {{}}
# {{n}} counts up, {{time}} stamps.
name = {run_name}
# A fresh file for each run; an old log is never overwritten.
log = {log}
# Arguments by which a run that was started by hand is recognised: the base name of a whole argument of a
# python or torchrun process, never a part of a command line.
match = {match}
# Set aside before each start, deleted in the background.
caches = {caches}
stop = {{ signal = "TERM", grace_s = 20 }}
# What must hold before the old run is touched.
# preflight = {{ free_gib = 5, files = ["/models/target"], modules = ["torch"] }}

[targets.{name}.gpus]
# Without `expected`, every GPU that the host lists must be opened by the run.
{expected}
# roles = {{ target = [0, 1, 2, 3, 4], drafter = [5, 6, 7] }}

[targets.{name}.metrics]
# A format's name, or a regular expression with named groups: step, loss, tok_s, lr, grad_norm, queue, depth, total.
format = "auto"
# tokens_per_step = 65536     # only where the log states no rate
# baseline = 14500            # tokens/s to compare with
# show = "lr"                 # any number of the step lines, to be plotted where the queue is

[targets.{name}.deadlines]
# A deadline that passes is a warning on the screen, never a kill.
killing = 90
spawned = 15
cuda = 300
stepping = 1200
"""


def render(name: str, target: Target) -> str:
    """Return the text of a config file with this one target."""
    login = [
        f"{key} = {_toml(value)}" for key in ("user", "port", "jump", "identity") if (value := getattr(target, key))
    ]
    if not target.user:
        login.append('# user = "root"')
    if not target.jump:
        login.append('# jump = "ops@jump"           # ProxyJump of ~/.ssh/config works too')
    expected = target.gpus.expected
    return _PAGE.format(
        name=_toml_key(name),
        host=_toml(target.host),
        host_note="                 # this machine, without SSH" if target.host == "local" else "",
        login="\n".join(login),
        exec=f"exec = {_toml(list(target.exec))}" if target.exec else '# exec = ["pct", "exec", "200", "--"]',
        command=_toml(list(target.command)),
        cwd=_toml(target.cwd),
        run_name=_toml(target.name),
        log=_toml(target.log),
        match=_toml(list(target.match)),
        caches=_toml(list(target.caches)),
        expected=f"expected = {expected}" if expected is not None else "# expected = 8",
    ).replace(f"default_target = {_toml_key(name)}", f"default_target = {_toml(name)}", 1)


def render_whole(name: str, target: Target) -> str:
    """Return the text of a config file that states every value of `target` that isn't the default."""
    return f"default_target = {_toml(name)}\n\n" + render_table(name, target)


def render_table(name: str, target: Target) -> str:
    """Return the table of one target, with every value that isn't the default."""
    plain, defaults = msgspec.to_builtins(target), msgspec.to_builtins(Target())
    changed = {key: value for key, value in plain.items() if value != defaults[key]}
    lines = [f"[targets.{_toml_key(name)}]", *(f"{key} = {_toml_value(value)}" for key, value in changed.items())]
    return "\n".join(lines) + "\n"


def write_new(path: Path, text: str) -> None:
    """Write `text` to `path`, 0600, in a directory that is made as needed.

    Raises: ConsoleError(CONFIG) where the file exists already or can't be written; nothing is changed then.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise ConsoleError(Reason.CONFIG, f"{path} exists already and was left as it is", Exit.USAGE) from None
    except OSError as exc:
        raise ConsoleError(Reason.CONFIG, f"{path}: {exc.strerror}", Exit.USAGE) from exc
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)


def _toml(value: object) -> str:
    # JSON's strings and lists of strings are valid TOML, except for the escaped slash that json never writes and for
    # DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_value(value: object) -> str:
    if isinstance(value, dict):
        pairs = (f"{_toml_key(key)} = {_toml_value(each)}" for key, each in value.items() if each is not None)
        return "{ " + ", ".join(pairs) + " }"
    return _toml(value)


def _toml_key(name: str) -> str:
    return name if all(char.isalnum() or char in "_-" for char in name) and name.isascii() else _toml(name)
