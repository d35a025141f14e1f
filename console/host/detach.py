"""What a keeper does to itself before anything else, so that nothing of whoever started it can end or hold it.

It works after a double fork as well as within a systemd service. Only keeper.py imports this module.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal

from . import procname

TITLE = "dflash-keeper"
_PR_SET_CHILD_SUBREAPER = 36
# Below every process that a kernel short of memory looks at first, above what must never be killed (-1000).
_OOM_SCORE_ADJ = "-900"
_OOM_PATH = "/proc/self/oom_score_adj"
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGTSTP)


def detach(run_dir: str, run: str) -> str:
    """Leave session, terminal, directory and descriptors behind; return the oom_score_adj that the run must get."""
    try:
        os.setsid()
    except PermissionError:
        pass  # a session leader already: a systemd service
    os.chdir("/")
    os.umask(0o077)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    _redirect(run_dir)
    raise_nofile()
    procname.rename("%s %s" % (TITLE, run), TITLE)
    return _lower_oom_score()


def become_subreaper() -> None:
    """Let every orphan of our tree become our child: the precondition of proving that all are gone.

    Raises: OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def raise_nofile() -> None:
    """A service starts with a soft limit of 1,024 descriptors; data loaders need more, the hard limit allows it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass


def _redirect(run_dir: str) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    prose = os.open(os.path.join(run_dir, "keeper.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    for target, source in ((0, null), (1, null), (2, prose)):
        os.dup2(source, target)
    for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:
        if descriptor > 2:
            try:
                os.close(descriptor)
            except OSError:
                pass  # the listing's own


def _lower_oom_score() -> str:
    before = "0"
    try:
        with open(_OOM_PATH) as file:
            before = file.read().strip()
        with open(_OOM_PATH, "w") as file:
            file.write(_OOM_SCORE_ADJ)
    except OSError:
        pass  # not root, or an unprivileged container: the keeper is judged like everybody else
    return before
