"""Which of the host's GPUs a run calls 0, 1, 2: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER as CUDA reads them.

The driver takes the list from the left up to the first entry that it can't make sense of; an entry that stands there
twice takes all GPUs away. UUIDs may be cut short as long as they are unambiguous. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from console.protocol import WireGpu

_BUS_ORDER: Final = "PCI_BUS_ID"


class CudaOrder(Struct, frozen=True, kw_only=True):
    """What the run sees."""

    indices: dict[int, int] = {}
    """The host's index of a GPU -> the run's."""
    parts: dict[str, int] = {}
    """UUID of a MIG instance -> the run's index."""
    is_certain: bool = True
    why: str = ""
    """What makes it uncertain, or why nothing is visible; empty where just the environment isn't known."""

    @property
    def is_plain(self) -> bool:
        """The run calls all GPUs as the host does."""
        return not self.parts and all(host == own for host, own in self.indices.items())


def cuda_order(gpus: Sequence[WireGpu], env: Mapping[str, str] | None) -> CudaOrder:
    """Return how the run numbers the GPUs; as the host does where its environment is not known."""
    # By place: a card that may not be used from here has a number for the driver, and none for CUDA.
    plain = {index: place for place, index in enumerate(sorted(gpu.i for gpu in gpus))}
    if env is None:
        return CudaOrder(indices=plain, is_certain=False)
    alike = len({(gpu.name, gpu.total) for gpu in gpus}) <= 1
    by_bus = env.get("CUDA_DEVICE_ORDER", "").upper() == _BUS_ORDER
    why = (
        ""
        if alike or by_bus
        else "the GPUs differ, and CUDA puts the fastest first: CUDA_DEVICE_ORDER is not PCI_BUS_ID"
    )
    visible = env.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return CudaOrder(indices=plain, is_certain=not why, why=why)
    return _chosen(gpus, visible, why)


def _chosen(gpus: Sequence[WireGpu], visible: str, why: str) -> CudaOrder:
    ordinals = sorted(gpu.i for gpu in gpus)
    found: list[int | str] = []
    by_number = False
    for entry in visible.split(","):
        place = _place(entry.strip(), ordinals, gpus)
        if place is None:
            break
        by_number = by_number or entry.strip().isdigit()
        found.append(place)
    if len(set(found)) < len(found):
        return CudaOrder(why=f"CUDA_VISIBLE_DEVICES={visible} names a GPU twice: CUDA shows none")
    if not found:
        return CudaOrder(why=f"CUDA_VISIBLE_DEVICES={visible or '(empty)'}: CUDA shows no GPU")
    return CudaOrder(
        indices={place: own for own, place in enumerate(found) if isinstance(place, int)},
        parts={place: own for own, place in enumerate(found) if isinstance(place, str)},
        is_certain=not (by_number and why),
        why=why if by_number else "",
    )


def _place(entry: str, ordinals: Sequence[int], gpus: Sequence[WireGpu]) -> int | str | None:
    """Return the host's index, or the UUID of a MIG instance; None where the list ends for CUDA."""
    if entry.isdigit():
        return ordinals[int(entry)] if int(entry) < len(ordinals) else None
    if entry.startswith("GPU-"):
        same = [gpu.i for gpu in gpus if gpu.uuid.startswith(entry)]
        return same[0] if len(same) == 1 else None
    if entry.startswith("MIG-"):
        parts = [part.uuid for gpu in gpus for part in gpu.mig or () if part.uuid and part.uuid.startswith(entry)]
        return parts[0] if len(parts) == 1 else None
    return None
