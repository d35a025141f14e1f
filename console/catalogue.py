"""What the console says of each reason: title, meaning, what is safe, what to do next, how bad it is.

Only words live here, one entry a slug of `console.reasons.Reason`; who meets a reason adds the facts. `console.reasons`
alone imports this module and offers the entries by `Reason`.
"""

from __future__ import annotations

from console.advice import Entry
from console.advice import error as _error
from console.advice import info as _info
from console.advice import warning as _warning
from console.endings import ENDINGS

__all__ = ["ENTRIES", "Entry"]

_UNTOUCHED = "nothing was touched"
_NOT_STARTED = "nothing was killed and nothing was started"
_RUN_GOES_ON = "the run does not need this link; a restart under way goes on by itself"
_LEFT_ALONE = "the run is left alone"
_RUN_GONE = "nothing of ours was killed because of it; what the run saved is still on disk"


_LINK = {
    "link_unreachable": _error(
        "the host can't be reached",
        "No connection could be made: the host is down, a firewall drops it, or nothing listens on the port.",
        _RUN_GOES_ON,
        "check host and port; it is tried again by itself",
    ),
    "link_timeout": _error(
        "the host does not answer",
        "The connection was opened, or begun, and then no answer came in time.",
        _RUN_GOES_ON,
        "it is tried again by itself; c retries now",
    ),
    "link_lost": _error(
        "the link is lost",
        "The connection was up and broke, or the host fell silent. What is shown is as old as it says.",
        _RUN_GOES_ON,
        "it is tried again by itself; c retries now",
    ),
    "dns_failed": _error(
        "the host's name can't be resolved",
        "No address is known for the configured host name.",
        _RUN_GOES_ON,
        "check `host` in the config and the resolver of this machine",
    ),
    "jump_failed": _error(
        "the jump host can't be passed",
        "The jump host does not answer, or refuses to connect onwards to the host.",
        _RUN_GOES_ON,
        "try `ssh` to the jump host by hand; it is tried again by itself",
    ),
    "login_refused": _error(
        "the login was refused",
        "The host accepts none of the offered keys. It isn't tried again by itself: repeated refusals get blocked.",
        _RUN_GOES_ON,
        "check user, key and agent with `ssh` by hand, then retry (c)",
    ),
    "identity_unusable": _error(
        "the key file can't be used",
        "The configured identity is missing, unreadable, or needs a passphrase that no agent supplies.",
        _RUN_GOES_ON,
        "load the key into the agent with `ssh-add`, or correct `identity`, then retry (c)",
    ),
    "host_key_unknown": _error(
        "the host's key is not known",
        "known_hosts has no key for this host, so nobody vouches that it is the right one.",
        _RUN_GOES_ON,
        "log in once with `ssh`, compare the fingerprint and accept it, then retry (c)",
    ),
    "host_key_changed": _error(
        "the host's key has changed",
        "The host shows another key than known_hosts has: it was reinstalled, or something stands in between.",
        _RUN_GOES_ON,
        "find out why before anything else; only then `ssh-keygen -R HOST` and accept the new key",
    ),
}

_ENTRY = {
    "wrapper_missing": _error(
        "the command into the container is not there",
        "The host has no such program as the configured `exec` prefix begins with.",
        _UNTOUCHED,
        "check `exec` in the config: is this the host that runs the container?",
    ),
    "container_missing": _error(
        "there is no such container",
        "The host does not know the container that the `exec` prefix names.",
        _UNTOUCHED,
        "check the number or name in `exec`",
    ),
    "container_stopped": _error(
        "the container is not running",
        "The container exists and is stopped, so nothing runs in it.",
        _UNTOUCHED,
        "start the container, then retry (c)",
    ),
    "container_frozen": _error(
        "the container is frozen",
        "Its processes are suspended, for a backup for instance. Nothing in it moves until it is thawed.",
        "the run is suspended, not lost; a request that has expired is not carried out after the thaw",
        "wait for the backup, or thaw the container",
    ),
    "python_missing": _error(
        "no Python on the host",
        "The interpreter that the agent needs was not found there.",
        _UNTOUCHED,
        "install python3 (3.8 or newer) on the host, or set `python` in the config",
    ),
    "python_too_old": _error(
        "Python on the host is too old",
        "The agent needs Python 3.8 or newer.",
        _UNTOUCHED,
        "set `python` in the config to a newer interpreter on the host",
    ),
    "python_incomplete": _error(
        "Python on the host lacks parts of its standard library",
        "A minimal package is installed that has no json, ctypes or selectors.",
        _UNTOUCHED,
        "install the full `python3` package on the host",
    ),
    "bootstrap_failed": _error(
        "the agent could not be started",
        "The host was reached, but what came back was not the agent: a login script or banner may be in the way.",
        _UNTOUCHED,
        "read the last lines of its stderr, then retry (c)",
    ),
    "agent_ended": _error(
        "the agent has ended",
        "The agent on the host was killed or ended by itself. It only watches: the run and its keeper aren't affected.",
        _RUN_GOES_ON,
        "it is started again by itself; c retries now",
    ),
    "protocol": _warning(
        "the host said something that makes no sense",
        "A message contradicts what the host said before, or can't be read. It was ignored.",
        "no stage was claimed because of it",
        "if it stays, look at the log file of the console",
    ),
}

_PREFLIGHT = {
    "command_not_found": _error(
        "a command was not found",
        "The program to run does not exist, or is not on the PATH that the run has (a login shell has another).",
        _NOT_STARTED,
        "give the full path, or set PATH under `env`, then restart (r)",
    ),
    "exec_not_permitted": _error(
        "a program may not be executed",
        "It was found, but is not executable, is a directory, or lies on a filesystem mounted noexec.",
        _NOT_STARTED,
        "make it executable with `chmod +x` on the host, then restart (r)",
    ),
    "bad_interpreter": _error(
        "the script's interpreter does not exist",
        "The first line of the script names a program that is not there.",
        _NOT_STARTED,
        "correct the script's first line, then restart (r)",
    ),
    "exec_format": _error(
        "the file is not a program",
        "It has no `#!` line, begins with a byte order mark, is empty, or was built for another machine.",
        _NOT_STARTED,
        'put `#!/bin/bash` on its first line, or set `command = ["/bin/bash", FILE]`',
        "then restart (r)",
    ),
    "crlf_script": _error(
        "the script has Windows line ends",
        "Its lines end in CR LF, so the interpreter's name ends in an invisible character.",
        _NOT_STARTED,
        "convert it with `sed -i 's/\\r$//' FILE` on the host, then restart (r)",
    ),
    "script_syntax": _error(
        "the script has a syntax error",
        "Its own shell refuses to parse it.",
        _NOT_STARTED,
        "correct the line that the shell names, then restart (r)",
    ),
    "cwd_missing": _error(
        "the working directory does not exist",
        "`cwd` is not there or not a directory.",
        _NOT_STARTED,
        "create it on the host, or correct `cwd`, then restart (r)",
    ),
    "log_dir_missing": _error(
        "the log's directory does not exist",
        "The directory that the log is to be written in is not there.",
        _NOT_STARTED,
        "create it on the host, or correct `log`, then restart (r)",
    ),
    "log_dir_unwritable": _error(
        "the log's directory can't be written",
        "The user of the run may not create a file there, or the filesystem is read-only.",
        _NOT_STARTED,
        "change its permissions, or correct `log`, then restart (r)",
    ),
    "disk_space_low": _error(
        "too little disk space",
        "Less is free than `preflight.free_gib` asks for.",
        _NOT_STARTED,
        "free space on the host, or lower the limit, then restart (r)",
    ),
    "file_missing": _error(
        "a configured file does not exist",
        "A file of `preflight.files`, or the script that the interpreter was to run, is not there.",
        _NOT_STARTED,
        "put the file there, or correct the path, then restart (r)",
    ),
    "missing_module": _error(
        "a Python module is missing",
        "The interpreter that ran has no such module: often it is another one than in a login shell.",
        _NOT_STARTED,
        "use the full path of the right interpreter, or install the module in it, then restart (r)",
    ),
    "gpus_missing": _error(
        "GPUs are missing",
        "Fewer GPUs are there than the config expects.",
        _NOT_STARTED,
        "look for a GPU that fell off the bus (Xid 79), or correct `gpus.expected`",
    ),
    "gpu_memory_foreign": _warning(
        "GPU memory is held by somebody else",
        "A process that is not part of the run holds memory on a GPU. It is never signalled by us.",
        "the foreign process is left alone",
        "ask its owner; the run may run out of memory on that GPU",
    ),
    "state_dir_unusable": _error(
        "the console's directory on the host can't be used",
        "It is full, read-only, or belongs to somebody else. Without it no keeper can record anything.",
        _NOT_STARTED,
        "make room, or set `state_dir` to another place on the host",
    ),
    "dies_at_logout": _warning(
        "the run may die at logout",
        "It lives in a login session, and the host ends what a session leaves behind.",
        _LEFT_ALONE,
        "restart it from here (r): a keeper puts it outside the session",
    ),
}

_REQUESTS = {
    "not_confirmed": _error(
        "not confirmed",
        "A restart or stop needs a yes.",
        _UNTOUCHED,
        "look at the plan, then add `--yes` or `--plan-id`",
    ),
    "plan_changed": _error(
        "the plan no longer holds",
        "Processes, scripts or settings changed after the plan was made.",
        _UNTOUCHED,
        "look at the new plan and confirm that",
    ),
    "plan_unknown": _error(
        "no such plan",
        "The plan's id is not known: it was made for another target, or is too old.",
        _UNTOUCHED,
        "make a new plan with `restart --plan`",
    ),
    "request_expired": _error(
        "the request came too late",
        "It reached the keeper after its expiry, so it was not carried out.",
        _UNTOUCHED,
        "look at what runs now, then ask again",
    ),
    "restart_under_way": _error(
        "a restart is under way",
        "Somebody kills or spawns on this target now, or the run that was started last has not made a step yet.",
        "the other restart is not disturbed",
        "watch it, or wait for it",
    ),
    "run_unknown": _error(
        "no such run",
        "Neither the host nor the ledger of this console knows a run of this name or id.",
        _UNTOUCHED,
        "name another run, or restart with the config's settings",
    ),
    "secret_not_kept": _error(
        "a secret of that run was not kept",
        "Of secret-looking values only hashes are stored, and the config does not give this one.",
        _UNTOUCHED,
        "give the value with `--env`, or leave it out with `--unset`",
    ),
    "unexpected_run": _error(
        "another run is there than expected",
        "What runs is not the run that `--expect-run` names.",
        _UNTOUCHED,
        "look at what runs, then decide again",
    ),
    "nothing_runs": _info("nothing runs", "There is no run to act on.", _UNTOUCHED, "r starts one"),
    "read_only": _error(
        "read-only",
        "This console was started with --read-only.",
        _UNTOUCHED,
        "start it without --read-only",
    ),
    "not_saved": _error(
        "the diagnosis could not be saved",
        "The file on this machine can't be written, or exists already: nothing is ever overwritten.",
        _UNTOUCHED,
        "name another file with `-o`",
    ),
    "no_link": _error(
        "no link",
        "The host can't be asked now, so nothing can be started or stopped.",
        _RUN_GOES_ON,
        "c retries the link",
    ),
    "keeper_not_started": _error(
        "the keeper could not be started",
        "The process that carries a restart out did not come up, so the request was not taken.",
        _UNTOUCHED,
        "look at the facts, then try again (r)",
    ),
}

_TRANSACTION = {
    "survivors": _error(
        "processes of the old run survived",
        "They are still there after TERM, the grace time and KILL: most often stuck in the GPU driver or in the disk.",
        "nothing was started beside them",
        "look at them on the host; state D can't be killed and needs the driver or the machine reset",
    ),
    "cache_refused": _error(
        "the cache path is refused",
        "Clearing it could delete what is no cache: it is a mount, a link, a home, or too close to the root.",
        "not one file was deleted",
        "correct `caches`, or keep the cache",
    ),
    "cache_failed": _error(
        "the cache could not be cleared",
        "It could not be moved aside.",
        "the run was stopped as planned; nothing was started",
        "look at its permissions, or restart with the cache kept (r, then c)",
    ),
    "exec_failed": _error(
        "the command could not be executed",
        "The system refused to start the program.",
        "the old run was stopped as planned; nothing runs",
        "correct what the error says, then restart (r)",
    ),
    "log_not_opened": _error(
        "the log could not be opened",
        "The file could not be created, or exists already; an old log is never overwritten.",
        "the old run was stopped as planned; nothing runs",
        "make room or choose another name, then restart (r)",
    ),
    "interrupted": _error(
        "the restart was interrupted",
        "The keeper that carried it out was killed in the middle. It is never resumed by itself.",
        "what was done until then is in the journal above; the rest was not begun",
        "look at what runs, then restart (r)",
    ),
}

_RUN = {
    "output_buffered": _info(
        "no output, but the GPUs work",
        "The trainer most likely keeps its output in a buffer, or writes it elsewhere. This is no stall.",
        "the run works; only its steps can't be seen",
        "set PYTHONUNBUFFERED=1 under `env` for the next start",
    ),
    "log_lost": _warning(
        "the log's connection is lost",
        "The host answers, but the second connection, which carries the log, is down. No step can be seen meanwhile.",
        "the run does not need it; nothing of the log is skipped when it is back",
        "it is tried again by itself; c retries now",
    ),
    "log_elsewhere": _warning(
        "the run's output can't be read here",
        "It goes into another file, into a terminal or a pipe, or the log is gone. This is no stall.",
        "the run works as far as can be seen; only its steps can't be read",
        "let run.sh write to its stdout; what is started from here (r) has its log",
    ),
    "suspended": _warning(
        "the run is suspended",
        "Its processes are stopped by a signal, or held by a debugger. Nothing in it moves until it goes on.",
        "nothing is lost: it goes on where it stands",
        "`kill -CONT PID` on the host lets it go on",
    ),
    "format_unknown": _info(
        "the log's format is not known",
        "The log grows, but no line of it is a step line that the console knows.",
        "the run works; only its steps can't be read",
        "set `metrics.format` to the trainer's name or to a regex with named groups",
    ),
    "stage_late": _warning(
        "a stage takes longer than its deadline",
        "The deadline has passed. Nothing is killed because of that.",
        _LEFT_ALONE,
        "look at log and GPUs: is there progress?",
    ),
    "host_restarted": _error(
        "the host has restarted",
        "The host or container was started anew, so the run is gone. It did not exit by itself.",
        "what the run saved before that is still on disk",
        "check that the GPUs are there, then restart (r)",
    ),
    "keeper_lost": _warning(
        "the run has lost its keeper",
        "The process that watches over the run was killed. The run goes on, but its exit can't be recorded.",
        "the run is not affected and can still be stopped and restarted from here",
        "nothing has to be done; the next restart has a keeper again",
    ),
    "stopped_by_operator": _info(
        "stopped by an operator", "Somebody asked for it.", "nothing else was touched", "r starts the next one"
    ),
    "replaced": _info(
        "replaced by another run",
        "A restart took its place.",
        "it was stopped as planned",
        "look at the run that runs now",
    ),
    "gpu_headroom": _warning(
        "little GPU memory left",
        "At its peak the run left almost nothing free on a GPU; a longer sequence may not fit.",
        _LEFT_ALONE,
        "lower the batch or move a role at the next restart",
    ),
    "gpu_slowed": _warning(
        "a GPU runs slower than it could",
        "Its clock is held back by heat or power, or it is about to be; the other GPUs of its role wait for it.",
        _LEFT_ALONE,
        "look at its cooling and its power limit; nvidia-smi -q -d PERFORMANCE on the host says more",
    ),
}

_OWN = {
    "config": _error(
        "the config is wrong",
        "It can't be read as it is.",
        _UNTOUCHED,
        "correct what is named, then try again",
    ),
    "log_unreadable": _warning(
        "the log can't be read",
        "It isn't there, is no regular file, or the agent's user may not read it.",
        _LEFT_ALONE,
        "check path and mode on the host; l chooses another log",
    ),
    "log_replaced": _warning(
        "another file has taken the log's name",
        "It was rotated, truncated or written anew while it was read: what was found before is of the old one.",
        _LEFT_ALONE,
        "f follows the new one; l lists the logs that are there",
    ),
    "log_undated": _warning(
        "it is not known when its lines were written",
        "Its lines bear no dates, and no keeper has noted how it grew so far.",
        _LEFT_ALONE,
        "ask by number of lines (-n) or by a pattern (--grep) instead",
    ),
    "pattern_slow": _warning(
        "the expression takes too long on lines of this log",
        "Repeats within repeats, such as (a+)+, can take years on one line: the search for it was ended.",
        _LEFT_ALONE,
        "write it without a repeat inside of a repeat, or search for a plain text",
    ),
    "ledger_unusable": _warning(
        "the ledger of past launches can't be used",
        "Launches are not noted while its file can't be written; what was noted is known as long as it can be read.",
        "no run depends on it",
        "make room, mend or move away the file that is named; a new one is made by itself",
    ),
    "notes_unusable": _error(
        "the console's own directory can't be written",
        "Plans for `--plan-id` are kept in it, on this machine. It is full, read-only, or belongs to somebody else.",
        _UNTOUCHED,
        "make room, or point XDG_STATE_HOME to another place",
    ),
    "output_unusable": _error(
        "the result can't be written",
        "What stdout leads to takes no more: its disk is full, or it is closed.",
        "no run depends on it; what was asked for may have been done",
        "make room, or give it an open stdout, then look with `status`",
    ),
    "bug": _error(
        "an error of the console itself",
        "Something happened that the console did not foresee.",
        _RUN_GOES_ON,
        "the log file of the console has the details",
    ),
}

ENTRIES: dict[str, Entry] = {**_LINK, **_ENTRY, **_PREFLIGHT, **_REQUESTS, **_TRANSACTION, **ENDINGS, **_RUN, **_OWN}
