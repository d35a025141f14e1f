"""What the kernel would do with a command, found out without running it: file, interpreter line, loader, syntax.

Every finding is a Problem with a reason of the catalogue; none means that exec would succeed as far as one can tell.
Reads the filesystem and may start a shell with -n; callers bound it in time. Only preflight.py imports this module.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import subprocess
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

SYNTAX_TIMEOUT_S = 2.0
_HEAD_BYTES = 4096
_SCRIPT_BYTES = 1 << 20
SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"})
PYTHON = re.compile(r"(python|pypy)[\d.]*\Z")
_ST_NOEXEC = 8
_BOM = b"\xef\xbb\xbf"
_ELF_CLASS_32, _ELF_CLASS_64 = 1, 2
_PT_INTERP = 3
# What of a #! line the kernel reads (BINPRM_BUF_SIZE, "#!" and the end included); environments lie deep at times.
_SHEBANG_BYTES = 256
_SHEBANG_DEPTH = 4
_BINFMT = "/proc/sys/fs/binfmt_misc"


class Problem(NamedTuple):
    reason: str
    detail: str


class Command(NamedTuple):
    """A command taken apart as far as it could be."""

    path: str
    script: Optional[str]
    """The script that an interpreter reads, be it by `#!` or as its argument; None for a plain program."""
    interpreter: List[str]
    """Words that read the script: `["/bin/bash"]`, `["/usr/bin/env", "python3"]`; resolved by `reader`."""
    reader: Optional[str]
    """The program that reads the script in the end (env's X looked up)."""


def locate(command: Sequence[str], cwd: str, path: str) -> Tuple[Optional[str], Optional[Problem]]:
    """Return the file that would be executed for `command[0]`, or the problem that it has."""
    name = command[0] if command else ""
    if not name:
        return None, Problem("command_not_found", "no command is configured")
    if "/" in name:
        found = os.path.join(cwd, name)
        return (None, problem) if (problem := _not_executable(found, name)) else (found, None)
    for folder in path.split(":"):
        candidate = os.path.join(cwd, folder or ".", name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate, None
    return None, Problem("command_not_found", f"{name}: not on the run's PATH ({path})")


def _not_executable(path: str, name: str) -> Optional[Problem]:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if os.path.islink(path):
            return Problem("command_not_found", f"{name}: a symlink to {os.readlink(path)}, which does not exist")
        return Problem("command_not_found", f"{name} does not exist")
    except OSError as error:
        return Problem("exec_not_permitted", f"{name}: {error.strerror}")
    if stat.S_ISDIR(mode):
        return Problem("exec_not_permitted", f"{name} is a directory")
    # Before access(2), which refuses on such a mount whatever the mode: chmod would not help.
    if os.statvfs(path).f_flag & _ST_NOEXEC:
        return Problem("exec_not_permitted", f"{name} lies on a filesystem mounted noexec")
    if not os.access(path, os.X_OK):
        return Problem("exec_not_permitted", f"{name} is not executable (mode {mode & 0o7777:o}); chmod +x it")
    return None


def analyse(command: Sequence[str], cwd: str, path: str) -> Tuple[Optional[Command], Optional[Problem]]:
    """Return the command taken apart and the first thing that exec would stumble over."""
    found, problem = locate(command, cwd, path)
    if found is None:
        return None, problem
    with open(found, "rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(b"\x7fELF"):
        return _program(found, head, command, cwd)
    if not head.startswith(b"#!"):
        return Command(found, found, [], None), Problem("exec_format", _no_format(found, head))
    return _scripted(found, head, path)


def _no_format(path: str, head: bytes) -> str:
    advice = f'a shell would have run it: use command = ["/bin/bash", "{path}"], or add a #! line'
    if not head:
        return f"{path} is empty"
    if head.startswith(_BOM):
        return f"{path} begins with a byte order mark, so its #! line is not seen; remove the first three bytes"
    if b"\0" in head[:512]:
        return f"{path} is neither a program for this machine nor a script"
    return f"{path} has no #! line; {advice}"


def _scripted(path: str, head: bytes, search: str) -> Tuple[Command, Optional[Problem]]:
    line = head[2:].split(b"\n", 1)[0]
    words = os.fsdecode(line.strip(b" \t\r")).split(None, 1)
    command = Command(path, path, words[:1], None)
    if line.endswith(b"\r"):
        return command, Problem("crlf_script", f"{path} has Windows line ends: the kernel looks for {words[:1]} + \\r")
    if not words:
        return command, Problem("exec_format", f"{path} has an empty #! line")
    if len(os.fsencode(words[0])) + head[2:].index(os.fsencode(words[0])) + 2 >= _SHEBANG_BYTES:
        told = f"{path}: its #! line names an interpreter beyond the {_SHEBANG_BYTES} bytes that the kernel reads"
        return command, Problem("bad_interpreter", told)
    if problem := _bad_interpreter(path, words[0]):
        return command, problem
    reader: Optional[str] = words[0]
    if os.path.basename(words[0]) == "env":
        wanted = _wanted_of_env(words[1] if len(words) > 1 else "")
        reader = _on_path(wanted, search) if wanted else None
        if reader is None:
            told = f"{path}: #! {' '.join(words)}: {wanted or 'nothing'} is not on the run's PATH ({search})"
            return command, Problem("bad_interpreter", told)
    return Command(path, path, [words[0], *words[1:]], reader), None


def _bad_interpreter(path: str, interpreter: str, depth: int = 1) -> Optional[Problem]:
    if problem := _not_executable(interpreter, interpreter):
        missing = problem.reason == "command_not_found"
        told = f"{path}: its interpreter {problem.detail}"
        return Problem("bad_interpreter" if missing else "exec_not_permitted", told)
    with open(interpreter, "rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(b"\x7fELF"):
        return _foreign_program(interpreter, head)
    next_one = head[2:].split(b"\n", 1)[0].split()[:1] if head.startswith(b"#!") else []
    if not next_one:
        return Problem("exec_format", f"{path}: its interpreter {interpreter} is neither a program nor a script")
    if depth == _SHEBANG_DEPTH:
        return Problem("bad_interpreter", f"{path}: its interpreter is a script, and so on {depth} times")
    return _bad_interpreter(path, os.fsdecode(next_one[0]), depth + 1)


def _wanted_of_env(argument: str) -> str:
    """Return what `env ARGUMENT` would look up; the kernel hands everything after env over as one argument."""
    if argument.startswith("-S"):
        words = argument[2:].split()
        return next((word for word in words if "=" not in word and not word.startswith("-")), "")
    return argument


def _on_path(name: str, search: str) -> Optional[str]:
    if "/" in name:
        return name if os.access(name, os.X_OK) and os.path.isfile(name) else None
    for folder in search.split(":"):
        candidate = os.path.join(folder or ".", name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


def _program(path: str, head: bytes, command: Sequence[str], cwd: str) -> Tuple[Optional[Command], Optional[Problem]]:
    if problem := _foreign_program(path, head):
        return Command(path, None, [], None), problem
    base = os.path.basename(path)
    script = _script_argument(command) if base in SHELLS or PYTHON.match(base) else None
    if script is None:
        return Command(path, None, [], path if PYTHON.match(base) else None), None
    full = os.path.join(cwd, script)
    taken = Command(path, full, [path], path)
    if not os.path.exists(full):
        return taken, Problem("file_missing", f"{script} does not exist" + ("" if script == full else f" in {cwd}"))
    if os.path.isdir(full) and base in SHELLS:
        return taken, Problem("exec_not_permitted", f"{script} is a directory")
    if not os.access(full, os.R_OK):
        return taken, Problem("exec_not_permitted", f"{script} may not be read")
    return taken, None


def _script_argument(command: Sequence[str]) -> Optional[str]:
    """Return the script in `bash -e run.sh`, `python -u train.py`; None with -c, -m or stdin."""
    words = list(command[1:])
    while words:
        word = words.pop(0)
        if word in ("-", "-c", "-m") or (word.startswith("-") and not word.startswith("--") and word[-1] in "cms"):
            return None
        if word in ("-W", "-X", "-o", "--rcfile", "--init-file"):
            words[:1] = []
        elif not word.startswith(("-", "+")):
            return word
    return None


def _foreign_program(path: str, head: bytes) -> Optional[Problem]:
    """What keeps an ELF file from running on this machine: another processor, or a dynamic loader that is missing.

    Where the loader is missing exec says ENOENT for a file that exists.
    """
    if len(head) > 20 and head[18:20] != _own_machine() and head[4] == _ELF_CLASS_64 and not _is_emulated():
        return Problem("exec_format", f"{path} is a program for another processor (ELF machine {head[18]})")
    loader = elf_loader(head)
    if loader is None or os.path.exists(loader):
        return None
    return Problem("bad_interpreter", f"{path}: its program loader {loader} does not exist (built for another system)")


def _own_machine() -> bytes:
    with open("/proc/self/exe", "rb") as file:
        return file.read(20)[18:20]


def _is_emulated() -> bool:
    """Whether an emulator is registered with the kernel, which may then run what is not for this processor."""
    try:
        return bool(set(os.listdir(_BINFMT)) - {"register", "status"})
    except OSError:
        return False


def elf_loader(head: bytes) -> Optional[str]:
    if len(head) < 64 or head[4] not in (_ELF_CLASS_32, _ELF_CLASS_64):
        return None
    order, wide = "<" if head[5] == 1 else ">", head[4] == _ELF_CLASS_64
    table = struct.unpack_from(order + ("Q" if wide else "I"), head, 32 if wide else 28)[0]
    size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
    for index in range(count):
        at = table + index * size
        if at + 56 > len(head):
            return None
        kind, offset, length = struct.unpack_from(order + ("I4xQ16xQ" if wide else "II8xI"), head, at)
        if kind == _PT_INTERP and offset + length <= len(head):
            return os.fsdecode(head[offset : offset + length].rstrip(b"\0"))
    return None


# -- syntax -----------------------------------------------------------------------------------------------------------


def syntax(command: Command, env: Dict[str, str]) -> Tuple[Optional[Problem], str]:
    """Let the script's own reader check it; return (problem, what was checked or why it wasn't)."""
    if command.script is None or command.reader is None:
        return None, "no script"
    reader = os.path.basename(command.reader)
    if reader in SHELLS:
        return _ask([command.reader, "-n", command.script], "script_syntax", env)
    if PYTHON.match(reader) and os.path.isfile(command.script):
        code = "import sys; compile(open(sys.argv[1],'rb').read(), sys.argv[1], 'exec')"
        return _ask([command.reader, "-I", "-c", code, command.script], "script_syntax", env)
    return None, f"{reader}: no way to check without running"


def _ask(words: List[str], reason: str, env: Dict[str, str]) -> Tuple[Optional[Problem], str]:
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=env,
            timeout=SYNTAX_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"{words[0]} gave no answer in {SYNTAX_TIMEOUT_S:g} s"
    except OSError as error:
        return None, f"{words[0]}: {error.strerror}"
    said = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    if done.returncode == 0:
        return None, ""
    # A shell names line and fault first, Python last.
    told = said[-1] if reason == "script_syntax" and "-I" in words and said else " ".join(said[:2])
    return Problem(reason, told[:400] or f"{words[0]} ended with {done.returncode}"), ""


def shell_trouble(command: Command) -> Optional[Problem]:
    """What a shell's -n passes over, and its run stumbles on: Windows line ends, a byte order mark, an empty file."""
    if command.script is None or os.path.basename(command.reader or "") not in SHELLS:
        return None
    with open(command.script, "rb") as file:
        text = file.read(_SCRIPT_BYTES)
    if not text.strip():
        return Problem("exec_format", f"{command.script} is empty: it ends at once")
    if text.startswith(_BOM):
        return Problem("exec_format", f"{command.script} begins with a byte order mark; remove the first three bytes")
    if b"\r\n" in text:
        return Problem("crlf_script", f"{command.script} carries Windows line ends")
    return None


def python_of(command: Command, match: Sequence[str], search: str) -> Tuple[Optional[str], bool]:
    """Return the interpreter that will run the training script, and whether that is certain.

    Certain: the command is Python, or run.sh names it on the line of the training script and changes nothing before.
    """
    reader = command.reader or ""
    if PYTHON.match(os.path.basename(reader)):
        return reader, True
    text = ""
    if command.script is not None and os.path.isfile(command.script):
        with open(command.script, "rb") as file:
            text = os.fsdecode(file.read(_SCRIPT_BYTES))
    activated = re.search(r"^\s*(?:source|\.)\s+[\"']?(\S+)/bin/activate", text, re.MULTILINE)
    if activated and os.access(activated.group(1) + "/bin/python", os.X_OK):
        return activated.group(1) + "/bin/python", True
    unsure = re.search(r"^\s*(source|\.|conda|micromamba|module|eval|export PATH|PATH)\b", text, re.MULTILINE)
    for line in text.splitlines():
        named = re.search(r"(?:^|\s)((?:/[^\s\"']*/)?python[\d.]*)\s", line)
        if named and any(name in line for name in match) and not line.lstrip().startswith("#"):
            found = _on_path(named.group(1), search)
            if found:
                return found, "/" in named.group(1) or unsure is None
    return _on_path("python3", search) or _on_path("python", search), False
