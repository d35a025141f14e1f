"""The table of launch scenarios: what is the case on the host, what must be seen of it, and which test proves it.

One line a case; a row of the list (`L19`) may have several. `proof` names tests elsewhere that prove the case exactly
(path::function, checked to exist); a case without one is played in test_scenarios.py by the function of its id. The
codes are those of `restart --wait stepping` unless `seen` says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

_FAILURES = "tests/lab/test_failures.py::"
_REQUESTS = "tests/lab/test_requests.py::"
_RESTART = "tests/lab/test_restart.py::"
_WAYS_IN = "tests/lab/test_ways_in.py::"
_CUT = "tests/lab/test_cut_links.py::"
_LINES = "tests/lab/test_command_lines.py::"
_LOG_LINKS = "tests/lab/test_log_links.py::"
_IN_ONE_RUN = "tests/demo/test_faults_seen.py::test_faults_in_one_run_are_each_told_and_gone_when_they_are"
_KEEPER = "tests/host/test_keeper.py::"
_AGENT = "tests/host/test_agent_execute.py::"
_WATCH = "tests/host/test_agent_watch.py::"
_REFUSED = f"{_FAILURES}test_preflight_refuses_what_can_not_start_and_the_old_run_steps_on"
_FAILED = f"{_FAILURES}test_failed_launch_names_stage_reason_and_evidence"


@dataclass(frozen=True, slots=True)
class Case:
    """One situation and what must come of it."""

    id: str
    """Row of the list, and what tells its cases apart: `L19-symlink`."""
    situation: str
    seen: str
    stage: str = ""
    reason: str = ""
    code: int | None = None
    proof: tuple[str, ...] = ()
    not_here: str = ""
    """Why it can't be played on one machine without a GPU; the test is skipped with these words."""

    @property
    def row(self) -> str:
        return self.id.partition("-")[0]


def _case(
    id_: str, situation: str, seen: str, stage: str = "", reason: str = "", code: int | None = None, *proof: str
) -> Case:
    return Case(id_, situation, seen, stage, reason, code, proof)


CASES: tuple[Case, ...] = (
    # -- preflight: the old run steps on --
    _case("L02", "the command does not exist", "its path", "preflight", "command_not_found", 3, _REFUSED),
    _case("L03", "run.sh is not executable", "its path", "preflight", "exec_not_permitted", 3, _REFUSED),
    _case("L04", "#!/bin/nosuch", "/bin/nosuch", "preflight", "bad_interpreter", 3, _REFUSED),
    _case("L05", "a shell syntax error", "syntax error", "preflight", "script_syntax", 3),
    _case("L06-cwd", "the working directory is missing", "/nowhere", "preflight", "cwd_missing", 3),
    _case("L06-missing", "the log's directory is missing", "/no/logs", "preflight", "log_dir_missing", 3),
    _case("L06-closed", "the log's directory is read-only", "read-only", "preflight", "log_dir_unwritable", 3),
    _case("L07-start", "no space for the log", "free for /small", "preflight", "disk_space_low", 3),
    # -- the launch --
    _case("L07-loading", "the log's disk fills up while loading", "0 B are free", "cuda", "disk_full", 13),
    _case("L07-stepping", "the log's disk fills up after steps", "0 B are free, `status --check`", "", "disk_full", 15),
    _case("L08", "ends with 0 without a step", "status 0", "spawned", "exit_without_step", 12, _FAILED),
    _case(
        *(
            "L09",
            "a traceback within 300 ms",
            "the last error line; `make bench` times it",
            "spawned",
            "missing_module",
            12,
        ),
        *(_FAILED, f"{_WATCH}test_a_death_is_told_within_milliseconds"),
    ),
    _case("L10-kill", "SIGKILL from elsewhere while loading", "sender unknown", "cuda", "sigkill_unknown", 13),
    _case("L10-own", "the kernel kills for the run's own limit", "proven by its count", "cuda", "cgroup_oom", 13),
    _case("L10-shared", "the kernel kills, a count of all rises", "likely, by that count", "cuda", "host_oom", 13),
    _case(
        *("L10-oom", "killed for want of memory", "OOM only by the kernel's count", "", "host_oom", None),
        *(
            "tests/host/test_procfs_and_gpus.py::test_oom_is_proven_by_the_own_cgroup_and_likely_by_a_shared_count",
            "tests/state/test_diagnose.py::test_bare_killed_is_never_called_a_lack_of_memory",
            "tests/state/test_diagnose.py::test_memory_is_named_with_evidence_only",
        ),
    ),
    _case("L11", "run.sh leaves the trainer in the background", "the trainer's pid, its end", "stepping", "", 0),
    _case("L12", "the old run ignores SIGTERM", "TERM, 2 s of 2 s left; then KILL", "killing", "", 0),
    _case("L13", "the old run has workers in other sessions", "none lives at the spawn", "killing", "", 0),
    _case(
        *("L14", "the old run was started by hand", "in the plan, replaced", "killing", "", 0),
        f"{_RESTART}test_hand_started_run_is_planned_and_replaced_and_bystanders_are_neither",
    ),
    _case(
        *("L15", "bystanders that carry the trainer's name", "never in the plan, alive", "", "", 0),
        f"{_RESTART}test_hand_started_run_is_planned_and_replaced_and_bystanders_are_neither",
    ),
    _case(
        *("L16", "the operators' four lines", "each fails as documented, restart steps", "stepping", "", 0),
        *(
            f"{_LINES}test_line_kills_its_own_shell_and_prints_nothing",
            f"{_LINES}test_chained_background_line_starts_the_run_but_never_returns",
            f"{_RESTART}test_restart_proves_five_stages_where_the_old_line_prints_nothing",
        ),
    ),
    _case("L17", "GPU memory is released late", "waits for GPU 0: 71 GiB", "killing", "", 0),
    _case("L18", "a foreign process holds GPU memory", "pid, owner, amount; never killed", "", "gpu_memory_foreign", 0),
    _case("L19-missing", "the cache is missing", "nothing to clear", "cache", "", 0),
    _case("L19-symlink", "the cache is a symlink to /root", "symlink to /root", "preflight", "cache_refused", 3),
    _case("L19-mount", "the cache is a mount point", "is a mount point", "preflight", "cache_refused", 3),
    _case("L19-kept", "the cache may not be removed", "may not be removed", "preflight", "cache_refused", 3),
    _case(
        *("L19-many", "the cache has 200,000 files", "constant time", "cache", "", 0),
        "tests/host/test_cache.py::test_setting_aside_takes_the_same_time_for_many_files",
    ),
    _case("L20", "never touches a GPU", "late, alive, 0 of 8", "cuda", "stage_late", 20),
    _case(
        *("L21", "6 of 8 GPUs get a context", "6/8, GPU 6, 7", "cuda", "stage_late", 20),
        f"{_FAILURES}test_hanging_cuda_is_late_and_left_alone",
    ),
    _case("L22-none", "no CUDA device", "No CUDA GPUs are available", "cuda", "cuda_init_failed", 13),
    _case("L22-oom", "out of GPU memory at load", "CUDA out of memory", "cuda", "cuda_oom", 13, _FAILED),
    _case(
        *("L22-driver", "the driver is too old", "named from the log's first cause", "", "driver_too_old", None),
        "tests/state/test_diagnose_logs.py::test_an_ending_has_its_reason",
    ),
    _case("L24", "the first step takes far longer than ever", "both figures", "stepping", "stage_late", None),
    # -- after stepping --
    _case(
        *("L23-elsewhere", "the run writes another file", "that file, not stalled", "", "log_elsewhere", 6),
        *(_IN_ONE_RUN, "tests/host/test_otherfile.py::test_other_text_file_is_found_with_its_writer"),
    ),
    _case("L23", "the log is silent, the GPUs work", "buffered, not stalled", "", "output_buffered", 6),
    _case("L25", "the loss becomes NaN", "the step; `status --check`", "", "nan_loss", 6),
    _case("L25-spike", "the loss jumps and stays up", "from what to what", "", "loss_spike", 6, _IN_ONE_RUN),
    _case("L26-stopped", "the trainer is stopped by SIGSTOP", "kill -CONT; not stalled", "", "suspended", 6),
    _case("L26-starved", "the queue stays empty", "since which step", "", "queue_starved", 6, _IN_ONE_RUN),
    _case("L26-left", "finished, and never exits", "what it waits for", "", "finished_not_exited", 6, _IN_ONE_RUN),
    _case(
        *("L20-download", "the download of the model stands", "how far it came", "cuda", "download_stall", 20),
        "tests/demo/test_faults_seen.py::test_fault_at_the_start_fails_the_launch_where_it_strikes",
    ),
    _case("L26-idle", "silence, GPUs idle", "stalled, no guess", "", "stalled", 6),
    _case("L26-spin", "silence, GPUs at 100 % and low power", "a collective waits?", "", "stalled", 6),
    # -- links, watchers, keepers --
    _case(
        *("L27", "the SSH connection is cut", "lost, back, nothing doubled", "", "link_lost", 0),
        *(
            f"{_CUT}test_cut_between_kill_and_spawn_leaves_one_whole_restart",
            f"{_CUT}test_every_line_arrives_once_and_in_order_through_ten_cuts",
            f"{_CUT}test_silently_dropped_packets_are_a_lost_link_within_five_seconds",
            "tests/lab/test_killed_watchers.py::test_run_steps_on_and_a_fresh_console_shows_its_original_times",
        ),
    ),
    _case(
        *("L27-log", "only the log's connection is lost", "steps unseen, since when", "", "log_lost", 6),
        f"{_LOG_LINKS}test_steps_are_unseen_while_only_the_log_is_lost_and_c_brings_them_back",
        f"{_LOG_LINKS}test_silent_log_connection_is_missed_and_every_line_arrives_once",
    ),
    _case("L27-spawned", "the SSH connection is cut right after the spawn", "one run, all stages", "stepping", "", 0),
    _case(
        *("L28", "agent or console killed", "a fresh console shows the same times", "", "", 0),
        *(
            "tests/lab/test_killed_watchers.py::test_run_steps_on_and_a_fresh_console_shows_its_original_times",
            f"{_AGENT}test_killing_the_agent_in_the_middle_harms_no_restart",
        ),
    ),
    _case(
        *("L29", "the keeper is killed while it steps", "keeper_lost; still stoppable", "", "keeper_lost", 0),
        "tests/lab/test_lost_keepers.py::test_run_outlives_its_keeper_and_can_still_be_stopped",
    ),
    _case("L30", "the container was restarted", "host restarted, `status --check`", "", "host_restarted", 15),
    _case("L31", "the run's pid is another process now", "nothing runs, it lives on", "", "nothing_runs", 5),
    _case("L32", "two consoles restart at once", "one transaction, 0 and 3 or 4", "", "restart_under_way", 4),
    _case(
        *("L33", "restart while a restart is under way", "refused with its stage", "", "restart_under_way", 4),
        f"{_REQUESTS}test_second_restart_is_told_the_stage_of_the_first_and_wait_follows_it",
    ),
    _case("L34-loading", "stop while the model loads", "by whom, in the record", "", "", 0),
    _case(
        *("L34-nothing", "stop when nothing runs, and twice", "nothing runs", "", "nothing_runs", 5),
        f"{_REQUESTS}test_stop_proves_that_all_are_gone_and_check_says_so_afterwards",
        f"{_REQUESTS}test_hand_started_run_can_be_stopped_and_stopping_again_finds_nothing",
        f"{_KEEPER}test_stop_through_the_fifo_is_attributed_and_idempotent",
    ),
    _case(
        *("L35-container", "no way into the container or its Python", "each named", "", "python_incomplete", 31),
        f"{_WAYS_IN}test_incomplete_python_is_named",
        f"{_WAYS_IN}test_stopped_container_is_named",
        f"{_WAYS_IN}test_missing_wrapper_is_named",
        "tests/link/test_lab_link.py::test_missing_python_in_the_container_is_named",
        "tests/link/test_bootstrap.py::test_old_python_is_told_before_the_payload_is_sent",
    ),
    _case(
        *("L35-login", "login refused, another host key, nobody there", "each named", "", "login_refused", 30),
        f"{_WAYS_IN}test_wrong_key_is_tried_once",
        f"{_WAYS_IN}test_changed_host_key_is_refused_and_nothing_is_sent",
        "tests/link/test_ssh.py::test_nobody_listens",
        "tests/link/test_ssh.py::test_name_that_nobody_knows",
        "tests/link/test_ssh.py::test_host_that_accepts_and_says_nothing",
    ),
    _case("L36-ro", "the state directory is read-only", "Read-only", "preflight", "state_dir_unusable", 3),
    _case("L36-full", "the state directory is full", "No space left", "preflight", "state_dir_unusable", 3),
    _case("L37-systemd", "systemd, KillUserProcesses=yes", "a service of its own, steps on", "stepping", "", 0),
    _case("L37-plain", "no systemd", "steps on under pid 1", "stepping", "", 0),
    _case("L38", "run.sh reads stdin", "end-of-file", "stepping", "", 0),
    _case("L39", "odd arguments, values, paths", "unchanged, in no process list or unit", "stepping", "", 0),
    _case("L40", "python | tee, the trainer dies with 1", "Missing key(s), status 0", "cuda", "python_exception", 13),
    _case("L41-truncated", "the log is copied and truncated", "said, steps go on", "", "", 0),
    _case("L41-moved", "the log is moved away", "where it went, steps go on", "", "", 0),
    _case("L41-deleted", "the log is deleted while open", "said, steps go on", "", "", 0),
    _case(
        *("L42", "the host's clock jumps by an hour", "durations and ages stay", "", "", 0),
        "tests/state/test_launches.py::test_clock_that_jumps_by_an_hour_leaves_durations_and_ages_alone",
    ),
    _case(
        *("L44", "a flood of log", "no more than its credit, gaps told; `make bench` times a stop", "", "", 0),
        f"{_LOG_LINKS}test_host_sends_no_more_log_than_it_has_credit_for",
        "tests/host/test_logtail.py::test_far_behind_it_jumps_to_a_line_near_the_end_and_says_so",
        "tests/engine/test_reading.py::test_each_costly_slice_is_followed_by_a_rest_of_the_same_length",
    ),
    _case(
        *("L45", "keeper killed between kill and spawn", "interrupted; the next works", "", "interrupted", 11),
        "tests/lab/test_lost_keepers.py::test_restart_cut_between_kill_and_spawn_is_interrupted_and_the_next_one_works",
        f"{_KEEPER}test_keeper_lost_while_killing_leaves_word_of_where_it_was",
        f"{_KEEPER}test_keeper_lost_between_kill_and_spawn_starts_nothing_and_says_where_it_was",
    ),
    _case("L46", "pkill -9 -f python3", "the exit record; `status --check`", "", "sigkill_unknown", 15),
    _case("L46-fuser", "fuser -k /dev/nvidia*", "keeper and exit record survive", "", "sigkill_unknown", 15),
    _case("L47-killing", "frozen while killing, thawed too late", "not executed", "spawned", "request_expired", 12),
    _case("L47-asked", "frozen before the request was read", "frozen; nothing was touched", "", "container_frozen", 31),
    _case("L48", "a bind mount beneath the cache", "its source is whole", "preflight", "cache_refused", 3),
    _case("L49", "only spawn workers remain, one renamed", "in the plan, gone afterwards", "killing", "", 0),
    _case("L50-other", "run.sh redirects its output", "the other log is followed and named", "stepping", "", 0),
    _case("L50-left", "the run leaves processes behind", "stragglers by name", "", "sigkill_unknown", 15),
    _case("L51-shebang", "no #! line", "/bin/bash", "preflight", "exec_format", 3),
    _case("L51-crlf", "Windows line ends", "Windows", "preflight", "crlf_script", 3),
    _case("L51-bom", "a byte order mark", "remove the first three bytes", "preflight", "exec_format", 3),
    _case("L51-noexec", "run.sh on a noexec mount", "noexec", "preflight", "exec_not_permitted", 3),
    _case(
        *("L52-silent", "packets are dropped silently", "lost within 5 s", "", "link_lost", None),
        f"{_CUT}test_silently_dropped_packets_are_a_lost_link_within_five_seconds",
    ),
    _case("L52-twenty", "20 reconnects in a row", "no pile, no second restart", "", "", None),
    _case("L53", "an unprivileged container with lxcfs", "all stages, true ages, OOM in words", "stepping", "", 0),
    _case("L54", "Python is removed under a keeper", "the exit is recorded", "", "sigkill_unknown", 15),
    _case("L55", "first contact with a run by hand", "log, format, GPUs, age; status unknown", "", "", 0),
    _case("L56", "no root, KillUserProcesses=yes, no service", "refused", "preflight", "dies_at_logout", 3),
)

ROWS = tuple(f"L{number:02d}" for number in (*range(2, 43), *range(44, 57)))
"""The rows of the list that this table answers for."""
