"""The GPUs as a snapshot shows them: the agent's words with roles, peaks of the run, and what is wrong. Pure."""

from __future__ import annotations

from console.model import Gpu, GpuHolder, GpuPanel, GpuPart
from console.protocol import GpusEvent, WireGpu, WireInstance
from console.state import gpunotes
from console.state.cudaorder import CudaOrder, cuda_order
from console.state.target import TargetState, expected_gpus


class KeptPanel:
    """The panel of before, for as long as it is made of the same facts: GPUs change once a second, the rest oftener."""

    def __init__(self) -> None:
        self._facts: tuple[object, ...] = ()
        self._panel = GpuPanel()

    def of(self, state: TargetState) -> GpuPanel:
        facts = (state.gpus, state.subject, state.target)
        if len(self._facts) != len(facts) or any(a is not b for a, b in zip(self._facts, facts, strict=True)):
            self._facts, self._panel = facts, gpu_panel(state)
        return self._panel


def gpu_panel(state: TargetState) -> GpuPanel:
    event = state.gpus.event
    if event is None:
        return GpuPanel(expected=expected_gpus(state))
    record = state.subject.record if state.subject is not None else None
    order = cuda_order(event.gpus, event.cuda_env)
    roles = {index: role for role, indexes in state.target.gpus.roles.items() for index in indexes}
    gpus = tuple(_gpu(state, each, order, roles) for each in event.gpus)
    return GpuPanel(
        source=event.source,
        why=event.why,
        driver=event.driver,
        at=state.gpus.at,
        expected=expected_gpus(state),
        contexts=tuple(each.i for each in event.gpus if each.context),
        rule=_rule(event, record.cuda.rule if record is not None and record.cuda is not None else ""),
        order_why=order.why,
        gpus=gpus,
        notes=gpunotes.notes(event.gpus, gpus, state.gpus.since, state.gpus.busy, state.gpus.at or 0.0),
    )


def _rule(event: GpusEvent, kept: str) -> str:
    return event.rule or kept


def _gpu(state: TargetState, gpu: WireGpu, order: CudaOrder, roles: dict[int, str]) -> Gpu:
    own = order.indices.get(gpu.i)
    parts = tuple(_part(each, order.parts) for each in gpu.mig) if gpu.mig is not None else None
    if own is None and parts:
        own = next((part.cuda_index for part in parts if part.cuda_index is not None), None)
    return Gpu(
        index=gpu.i,
        cuda_index=own,
        name=gpu.name,
        uuid=gpu.uuid,
        bus=gpu.bus,
        role=roles.get(own) if own is not None else None,
        used_bytes=gpu.used,
        total_bytes=gpu.total,
        reserved_bytes=gpu.reserved,
        peak_bytes=state.gpus.peaks.get(gpu.i),
        util_pct=gpu.util,
        power_w=gpu.power_mw / 1000 if gpu.power_mw is not None else None,
        power_limit_w=gpu.limit_mw / 1000 if gpu.limit_mw is not None else None,
        temperature_c=gpu.temp,
        hot_at_c=gpu.hot_at,
        clock_mhz=gpu.sm_mhz,
        clock_max_mhz=gpu.sm_max_mhz,
        throttle=gpunotes.reason_of(gpu.throttle) if gpu.throttle is not None else None,
        ecc_errors=gpu.ecc,
        retired=gpu.retired,
        retirement_pending=gpu.pending,
        xid=gpu.xid,
        parts=parts,
        lost=gpu.lost or gpu.warning,
        owner=gpu.owner,
        owner_why=gpu.owner_why,
        pids=tuple(pid for pid, _ in gpu.procs or ()),
        held_bytes=dict(gpu.procs) if gpu.procs is not None else None,
        others=tuple(
            GpuHolder(pid=each.pid, bytes=each.bytes, name=each.name, user=each.user, seen=each.seen, place=each.place)
            for each in gpu.others
        ),
        context=gpu.context,
    )


def _part(part: WireInstance, own: dict[str, int]) -> GpuPart:
    return GpuPart(
        index=part.i,
        uuid=part.uuid or "",
        name=part.name or "",
        cuda_index=own.get(part.uuid or ""),
        used_bytes=part.used,
        total_bytes=part.total,
        context=part.context,
        pids=tuple(pid for pid, _ in part.procs or ()),
    )
