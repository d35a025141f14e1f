"""The words between console and agent, and the files that the keeper leaves: one schema for both.

One JSON object a line. The console sends *operations* (`op`, `id`), the agent answers each with a reply (`re`, `ok`)
and sends *events* (`ev`) on its own. A reply or event with `n` is followed by exactly `n` raw bytes. The host side is
written in plain dicts (standard library only); these structs are what the console decodes them into, and the
documentation of their fields. Times named `*_bt` are seconds of the host's CLOCK_BOOTTIME, `*_wall` its wall clock.
Unknown fields are ignored and every field that may be absent has a default, since a keeper can be older than its
console. The rooms are cut by who speaks: the console's operations, the agent's replies and events, the keeper's files;
anybody on the console's side imports from here.
"""

from __future__ import annotations

from console.protocol.events import AgentEvent, HandRun, Hello, LogEvent, ProcsEvent, StateEvent, Warn
from console.protocol.gpus import GpusEvent, WireGpu, WireHolder, WireInstance
from console.protocol.logoperations import (
    ErrorRule,
    LogCount,
    LogCredit,
    LogFiles,
    LogFollow,
    LogLines,
    LogQuery,
    LogRead,
    LogSample,
)
from console.protocol.logreplies import WireCount, WireFile, WireFiles, WireLines, WireSample
from console.protocol.operations import Bye, Diagnose, Examine, Execute, MakePlan, Outside, Ping, Recorder, Watch
from console.protocol.outside import KernelNote, OutsideContainer, OutsideEvent, OutsidePid
from console.protocol.processes import ProcId, WireProcess
from console.protocol.records import CudaRecord, ExitRecord, Growth, HostStage, LockHolder, LogIdent, RunRecord
from console.protocol.replies import (
    Reply,
    Taken,
    WireCache,
    WireCheck,
    WireError,
    WireExamination,
    WireFinding,
    WirePlan,
)
from console.protocol.spec import GpuSpec, PreflightSpec, RunSpec

__all__ = [
    "MAX_LINE_BYTES",
    "PROTOCOL_VERSION",
    "AgentEvent",
    "Bye",
    "CudaRecord",
    "Diagnose",
    "ErrorRule",
    "Examine",
    "Execute",
    "ExitRecord",
    "GpuSpec",
    "GpusEvent",
    "Growth",
    "HandRun",
    "Hello",
    "HostStage",
    "KernelNote",
    "LockHolder",
    "LogCount",
    "LogCredit",
    "LogEvent",
    "LogFiles",
    "LogFollow",
    "LogIdent",
    "LogLines",
    "LogQuery",
    "LogRead",
    "LogSample",
    "MakePlan",
    "Outside",
    "OutsideContainer",
    "OutsideEvent",
    "OutsidePid",
    "Ping",
    "PreflightSpec",
    "ProcId",
    "ProcsEvent",
    "Recorder",
    "Reply",
    "RunRecord",
    "RunSpec",
    "StateEvent",
    "Taken",
    "Warn",
    "Watch",
    "WireCache",
    "WireCheck",
    "WireCount",
    "WireError",
    "WireExamination",
    "WireFile",
    "WireFiles",
    "WireFinding",
    "WireGpu",
    "WireHolder",
    "WireInstance",
    "WireLines",
    "WirePlan",
    "WireProcess",
    "WireSample",
]

PROTOCOL_VERSION = 1
MAX_LINE_BYTES = 4 * 1024 * 1024
