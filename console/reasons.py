"""The catalogue of everything that can be wrong: one entry a reason, and the error that carries one.

An entry says what it means, what is safe and what to do next; nothing else in the console words advice of its own.
The words are in `console.catalogue`. Everybody may import this module; it imports only those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from console.catalogue import ENTRIES, Entry

__all__ = ["CATALOGUE", "ConsoleError", "Entry", "Exit", "Reason"]


class Exit(IntEnum):
    """Exit codes of the command line."""

    OK = 0
    BUG = 1
    USAGE = 2
    REFUSED = 3
    LOCKED = 4
    NOTHING_RUNS = 5
    UNHEALTHY = 6
    FAILED_KILLING = 10
    FAILED_CACHE = 11
    FAILED_SPAWNED = 12
    FAILED_CUDA = 13
    FAILED_STEPPING = 14
    ENDED = 15
    REPLACED = 16
    TIMEOUT = 20
    LINK = 30
    ENTRY = 31
    INTERRUPTED = 130


class Reason(StrEnum):
    # the way to the host
    LINK_UNREACHABLE = "link_unreachable"
    LINK_TIMEOUT = "link_timeout"
    LINK_LOST = "link_lost"
    DNS_FAILED = "dns_failed"
    JUMP_FAILED = "jump_failed"
    LOGIN_REFUSED = "login_refused"
    IDENTITY_UNUSABLE = "identity_unusable"
    HOST_KEY_UNKNOWN = "host_key_unknown"
    HOST_KEY_CHANGED = "host_key_changed"
    # the way into the container
    WRAPPER_MISSING = "wrapper_missing"
    CONTAINER_MISSING = "container_missing"
    CONTAINER_STOPPED = "container_stopped"
    CONTAINER_FROZEN = "container_frozen"
    PYTHON_MISSING = "python_missing"
    PYTHON_TOO_OLD = "python_too_old"
    PYTHON_INCOMPLETE = "python_incomplete"
    BOOTSTRAP_FAILED = "bootstrap_failed"
    AGENT_ENDED = "agent_ended"
    PROTOCOL = "protocol"
    # preflight
    COMMAND_NOT_FOUND = "command_not_found"
    EXEC_NOT_PERMITTED = "exec_not_permitted"
    BAD_INTERPRETER = "bad_interpreter"
    EXEC_FORMAT = "exec_format"
    CRLF_SCRIPT = "crlf_script"
    SCRIPT_SYNTAX = "script_syntax"
    CWD_MISSING = "cwd_missing"
    LOG_DIR_MISSING = "log_dir_missing"
    LOG_DIR_UNWRITABLE = "log_dir_unwritable"
    DISK_SPACE_LOW = "disk_space_low"
    FILE_MISSING = "file_missing"
    MISSING_MODULE = "missing_module"
    GPUS_MISSING = "gpus_missing"
    GPU_MEMORY_FOREIGN = "gpu_memory_foreign"
    STATE_DIR_UNUSABLE = "state_dir_unusable"
    DIES_AT_LOGOUT = "dies_at_logout"
    # requests
    NOT_CONFIRMED = "not_confirmed"
    PLAN_CHANGED = "plan_changed"
    PLAN_UNKNOWN = "plan_unknown"
    REQUEST_EXPIRED = "request_expired"
    RESTART_UNDER_WAY = "restart_under_way"
    UNEXPECTED_RUN = "unexpected_run"
    NOTHING_RUNS = "nothing_runs"
    READ_ONLY = "read_only"
    NO_LINK = "no_link"
    NOT_SAVED = "not_saved"
    KEEPER_NOT_STARTED = "keeper_not_started"
    RUN_UNKNOWN = "run_unknown"
    LOG_UNREADABLE = "log_unreadable"
    LOG_REPLACED = "log_replaced"
    LOG_UNDATED = "log_undated"
    PATTERN_SLOW = "pattern_slow"
    SECRET_NOT_KEPT = "secret_not_kept"
    # the transaction
    SURVIVORS = "survivors"
    GPU_MEMORY_HELD = "gpu_memory_held"
    CACHE_REFUSED = "cache_refused"
    CACHE_FAILED = "cache_failed"
    EXEC_FAILED = "exec_failed"
    LOG_NOT_OPENED = "log_not_opened"
    INTERRUPTED = "interrupted"
    # the run
    EXIT_WITHOUT_STEP = "exit_without_step"
    EXIT_STATUS = "exit_status"
    PYTHON_EXCEPTION = "python_exception"
    CUDA_OOM = "cuda_oom"
    CUDA_INIT_FAILED = "cuda_init_failed"
    HOST_OOM = "host_oom"
    CGROUP_OOM = "cgroup_oom"
    SIGKILL_UNKNOWN = "sigkill_unknown"
    SIGTERM_EXTERNAL = "sigterm_external"
    SIGHUP = "sighup"
    SEGFAULT = "segfault"
    SIGNALLED = "signalled"
    DISK_FULL = "disk_full"
    NAN_LOSS = "nan_loss"
    STALLED = "stalled"
    SUSPENDED = "suspended"
    SLOW = "slow"
    OUTPUT_BUFFERED = "output_buffered"
    LOG_LOST = "log_lost"
    LOG_ELSEWHERE = "log_elsewhere"
    FORMAT_UNKNOWN = "format_unknown"
    STAGE_LATE = "stage_late"
    HOST_RESTARTED = "host_restarted"
    KEEPER_LOST = "keeper_lost"
    COMPLETED = "completed"
    STOPPED_BY_OPERATOR = "stopped_by_operator"
    REPLACED = "replaced"
    INCOMPLETE_EXIT0 = "incomplete_exit0"
    SESSION_KILLED = "session_killed"
    PKILL_SELF_MATCH = "pkill_self_match"
    USER_INTERRUPT = "user_interrupt"
    SIGBUS = "sigbus"
    DATALOADER_KILLED = "dataloader_killed"
    SHM_EXHAUSTED = "shm_exhausted"
    DISK_QUOTA = "disk_quota"
    STALE_FILE_HANDLE = "stale_file_handle"
    TOO_MANY_FILES = "too_many_files"
    CKPT_CORRUPT = "ckpt_corrupt"
    DRIVER_TOO_OLD = "driver_too_old"
    NVML_MISMATCH = "nvml_mismatch"
    GPU_LOST_IN_CONTAINER = "gpu_lost_in_container"
    FABRIC_MANAGER = "fabric_manager"
    INVALID_DEVICE = "invalid_device"
    NO_KERNEL_IMAGE = "no_kernel_image"
    CUDA_FORK = "cuda_fork"
    GPU_FELL_OFF_BUS = "gpu_fell_off_bus"
    ECC_ERROR = "ecc_error"
    GPU_FAULT = "gpu_fault"
    ILLEGAL_MEMORY_ACCESS = "illegal_memory_access"
    PORT_IN_USE = "port_in_use"
    NCCL_TIMEOUT = "nccl_timeout"
    DIST_STORE_TIMEOUT = "dist_store_timeout"
    NO_TTY = "no_tty"
    WANDB_LOGIN = "wandb_login"
    DOWNLOAD_STALL = "download_stall"
    HF_GATED = "hf_gated"
    ABI_MISMATCH = "abi_mismatch"
    NO_COMPILER = "no_compiler"
    INDUCTOR_CACHE_RACE = "inductor_cache_race"
    LOSS_SPIKE = "loss_spike"
    QUEUE_STARVED = "queue_starved"
    RECOMPILE_LIMIT = "recompile_limit"
    FINISHED_NOT_EXITED = "finished_not_exited"
    RUNNING_OK = "running_ok"
    GPU_HEADROOM = "gpu_headroom"
    GPU_SLOWED = "gpu_slowed"
    UNKNOWN = "unknown"
    # our own
    CONFIG = "config"
    LEDGER_UNUSABLE = "ledger_unusable"
    NOTES_UNUSABLE = "notes_unusable"
    OUTPUT_UNUSABLE = "output_unusable"
    BUG = "bug"


CATALOGUE: dict[Reason, Entry] = {Reason(slug): entry for slug, entry in ENTRIES.items()}


@dataclass(slots=True)
class ConsoleError(Exception):
    """A failure with a reason of the catalogue; `detail` is one line of facts, never advice.

    `exit_code` is what the command line ends with; `tail` holds the last lines of a foreign stderr; `data` machine
    facts.
    """

    reason: Reason
    detail: str = ""
    exit_code: Exit = Exit.BUG
    tail: tuple[str, ...] = ()
    data: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else str(self.reason)


class Interrupted(Exception):
    """Told to end, by the operator or by a signal: what goes on all the same, and machine facts."""

    def __init__(self, number: int, detail: str, data: Mapping[str, object]) -> None:
        super().__init__(detail)
        self.number, self.detail, self.data = number, detail, data

    @property
    def exit_code(self) -> int:
        """As a shell shows it."""
        return 128 + self.number


def reason_of(slug: str | None) -> Reason:
    """Return the reason that a slug names; UNKNOWN for one that isn't of this catalogue (a host of another age)."""
    try:
        return Reason(slug or "")
    except ValueError:
        return Reason.UNKNOWN


ENTRY_REASONS = frozenset(
    {
        Reason.WRAPPER_MISSING,
        Reason.CONTAINER_MISSING,
        Reason.CONTAINER_STOPPED,
        Reason.CONTAINER_FROZEN,
        Reason.PYTHON_MISSING,
        Reason.PYTHON_TOO_OLD,
        Reason.PYTHON_INCOMPLETE,
        Reason.BOOTSTRAP_FAILED,
        Reason.AGENT_ENDED,
    }
)
"""The host was reached, but not the container or the Python in it."""


def link_exit_code(reason: Reason) -> Exit:
    """Return 31 for the way into the container or its Python, else 30."""
    return Exit.ENTRY if reason in ENTRY_REASONS else Exit.LINK
