"""Signs of ranks that work together: ports, stores, rendezvous, collectives, and what others say when one has failed.
Data only."""

from __future__ import annotations

from typing import Final

from console.reasons import Reason
from console.state.sign import Sign, Trust, sign

GROUP: Final[tuple[Sign, ...]] = (
    sign(
        Reason.PORT_IN_USE,
        (
            "(errno: 98",
            "(os error 98)",
            "[errno 98]",
            "being used",
            "eaddrinuse",
            "failed to bind",
            "no address added out of total",
            "in use",
            "is already",
            "occupied",
            "only one usage of each socket address",
            "server socket has failed to listen",
            "taken",
            "tried to launch distributed communication on port",
        ),
        r"(?i)\baddress already in use\b|\bEADDRINUSE\b|\[Errno 98\]|\(errno: 98\b|\(os error 98\)",
        r"(?i)\bport \W?\d+\W? (?:is |was )?(?:already )?(?:in use|occupied|taken|being used)\b|\bport\b.{0,30}\bis already (?:in use|allocated|bound)\b",
        r"(?i)\bTried to launch distributed communication on port\b.{0,60}\banother process\b",
        r"(?i)\bserver socket has failed to listen\b|\bfailed to bind (?:to |on )?(?:address )?\S*:\d+|\bno address added out of total\b",
        r"(?i)\btrying to start at \S+:\d+, but is already running\b",
        r"(?i)\bOnly one usage of each socket address\b",
        unless=r"(?i)\binstead\b|\btry(?:ing)? (?:another|the next|next|port|\d)|\bnext (?:free )?port\b|\busing (?:port |free port )?\d+|\bchoosing\b|\bincrement|\bfalling back\b|\bretry",
        anywhere=True,
        samples=(
            "ConnectionError: Tried to launch distributed communication on port `29500`, but another process is utilizing it.",
            "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8265): address already in use",
            "RuntimeError: Address already in use",
            "ConnectionError: Ray is trying to start at 10.0.0.4:6380, but is already running at 10.0.0.4:6380.",
            "RuntimeError: No address added out of total 1 resolved",
        ),
        refuses=(
            "Port 6006 is in use, trying 6007 instead",
            "SO_REUSEADDR avoids errors of addresses in use",
        ),
    ),
    sign(
        Reason.DIST_STORE_TIMEOUT,
        (
            "after",
            "barrier",
            "d out",
            "diststoreerror",
            "exceeded",
            "reached",
            "rendezvous",
            "seconds waiting for clients",
            "socket timeout",
            "store->",
            "waitforinput: poll for socket",
        ),
        r"\bDistStoreError\b|\bRendezvous(?:Timeout|Connection|Closed|State)Error\b",
        r"(?i)\bwaitForInput: poll for socket\b.{0,160}\btimeout\b",
        r"(?i)\bwait timeout after \d+ ?ms, keys\b|\bTimed out after \d+ seconds waiting for clients\b",
        r"(?i)\btimed out initiali[sz]ing process group\b|\bstore[_ ]based[_ ]barrier\b.{0,120}\b(?:timed? ?out|timeout)\b",
        r"(?i)\bfailed to pass monitoredBarrier\b|\bmonitoredBarrier\b.{0,60}\btimed? ?out\b",
        r"^(?:[\w.]*Error: )?Socket Timeout$|\bgot error: Socket Timeout\b",
        r"(?i)\bclient socket has timed out after\b|\bstore->(?:get|wait|set)\b.{0,120}\b(?:timeout|timed out)\b",
        r"(?i)\b(?:TCPStore|c10d|rendezvous|rdzv|key-value store)\b.{0,120}\b(?:timed out|timeout (?:after|exceeded|reached))",
        r"(?i)\bbarrier (?:timed out|timeout (?:after|exceeded|reached))|\bDEADLINE_EXCEEDED: Barrier timed out\b|\bBarrier timed out\b",
        unless=r"(?i)timeout (?:is )?set|\bretry(?:ing)?\b",
        trust=Trust.TIMEOUT,
        samples=(
            "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 6/8 clients joined.",
            "RuntimeError: Rank 3 failed to pass monitoredBarrier in 1800000 ms",
            "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (gpu7, 29500).",
        ),
        refuses=("init_process_group: store timeout set to 1800 s", "rdzv_timeout: 900"),
    ),
    sign(
        Reason.NCCL_TIMEOUT,
        (
            "collective",
            "heartbeat",
            "milliseconds before timing out",
            "missed ranks",
            "nccl time",
            "observed flight recorder dump signal",
            "one or more tensors were submitted to be reduced",
            "received a",
            "seconds without making progress",
            "taking the entire process down",
            "timed out",
            "timeout at nccl work",
            "watchdog",
        ),
        r"(?i)\bwatchdog caught collective operation timeout\b|\bcollective operation timeout\b",
        r"(?i)\bran for \d+ milliseconds before timing out\b",
        r"(?i)\bwatchdog (?:thread )?(?:got stuck|hang|hung)\b|\bgot stuck for \d+ seconds without making progress\b",
        r"(?i)\bsome NCCL operations have failed or timed out\b|\btaking the entire process down\b",
        r"(?i)\bdetected no heartbeat\b|\bHeartbeat ?Monitor\b.{0,80}\b(?:timed out|stuck|no heartbeat)\b|\bCollective(?:Fingerprint)? .{0,60}\btimed out\b",
        r"(?i)\b(?:received a (?:dump|timeout) signal|observed flight recorder dump signal) (?:due to a collective timeout )?from",
        r"(?i)\bNCCL (?:timeout|timed out)\b(?! ?(?:[:=]|set|is|of \d))|\btimeout at NCCL work\b|\bcollective (?:call )?timed out\b",
        r"(?i)\btimed out waiting \d+ ?ms for (?:recv|send) operation\b|\b(?:all_?reduce|all_?gather|broadcast|reduce_?scatter)\b.{0,60}\btimed out\b",
        r"(?i)\bmissed ranks\b.{0,60}\b(?:stall|waiting)|\bOne or more tensors were submitted to be reduced.{0,160}stall",
        unless=r"(?i)timeout (?:is )?set to|nccl_timeout|TORCH_NCCL_|NCCL_\w+=|\bno (?:collective )?time-?outs?\b|\b0 time-?outs?\b",
        trust=Trust.TIMEOUT,
        anywhere=True,
        quiet=True,
        samples=(
            "[Rank 5] First PG on this rank to signal dumping: watchdog got stuck for 480 seconds without making progress in monitored",
            "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
            "[Rank 2] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels,",
        ),
        refuses=(
            "NCCL timeout set to 1800 s",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 watchdog enabled",
            "watchdog: 0 timeouts in the last hour",
        ),
    ),
)

CONSEQUENCES: Final = (
    r"ChildFailedError|closing signal SIG(?:TERM|INT)|NCCL communicator was aborted|DistBackendError"
    r"|NCCL (?:error|failure)|ncclRemoteError|ncclInternalError|ncclSystemError|remote process exited|socketProgress"
    r"|DistNetworkError.*(?:Connection|closed by peer|Broken pipe)|Connection (?:reset|closed|refused) by (?:remote )?peer"
    r"|ConnectionResetError|BrokenPipeError|ConnectionAbortedError|BrokenPipe|Connection reset by peer|Broken pipe"
    r"|To enable traceback see|Root Cause \(first observed|\bFAILED$|^=+$|^-+$|^Failures:|NO_OTHER_FAILURES"
    r"|Signal (?:6|15|2) \(SIG(?:ABRT|TERM|INT)\) received|\bexitcode\s*: -?(?:1|2|6|15)\b|failed \(exitcode: -?(?:1|2|6|15)\)"
    r"|return code = -?(?:1|2|6|15)\b|returned non-zero exit status|leaked (?:semaphore|shared_memory)|resource_tracker"
    r"|RayTaskError|SubprocException: An exception occurred in a subprocess|ProcessRaisedException|ProcessExitedException.*(?:exit code 1|SIGABRT|SIGTERM)|SignalException: Process \d+ got signal: 15"
    r"|terminate called (?:after|without)|what\(\): |^Aborted(?: \(core dumped\))?$|Exception raised from|^frame #\d+|Killing subprocess"
    r"|actor (?:died|is dead)|ActorDiedError|RayActorError|WorkerCrashedError|potential root causes"
    r"|Exception in thread|The above exception|destroy_process_group\(\) (?:was|has) not"
    r"|Caught \w+ in (?:DataLoader worker process|replica)|nvidia-smi.*(?:see|run)"
)
"""What others say after the first has failed, and the frames of tables: never a cause by itself."""
