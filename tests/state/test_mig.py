"""A run on MIG instances: k of n counts the instances that CUDA_VISIBLE_DEVICES names, never the boards they are on."""

from __future__ import annotations

from msgspec.structs import replace

from console import config, protocol
from console.model import Stage, StageState
from console.protocol import CudaRecord, WireGpu, WireInstance
from console.state import events
from tests.state.story import GIB, Story

ENV = {"CUDA_VISIBLE_DEVICES": "MIG-a,MIG-c"}


def board(*held: str) -> WireGpu:
    parts = tuple(
        WireInstance(i=number, uuid=uuid, name="H200 MIG 2g.35gb", used=9 * GIB, total=35 * GIB, context=uuid in held)
        for number, uuid in enumerate(("MIG-a", "MIG-b", "MIG-c"))
    )
    owner = "run" if held else "other"
    return WireGpu(i=0, uuid="GPU-0", used=27 * GIB, total=140 * GIB, mig=parts, context=bool(held), owner=owner)


def launching() -> Story:
    return Story(target=config.Target(gpus=config.Gpus())).up().launched()


def told(story: Story, *held: str) -> Story:
    said = protocol.GpusEvent(bt=story.bt, source="nvml", cuda_env=ENV, rule="nvml pid in tree", gpus=(board(*held),))
    return story.after(1.0).tell(events.GpusSaid(at=story.at, gpus=said))


def test_contexts_are_counted_by_the_instances_that_the_run_sees() -> None:
    story = told(launching(), "MIG-a")
    cuda = story.stage(Stage.CUDA)

    assert (cuda.state, cuda.have, cuda.want) == (StageState.ACTIVE, 1, 2)
    assert cuda.evidence == "1/2, not yet: 0:2"
    assert cuda.detail == "1/2 GPUs hold a context, not yet: GPU 0 part 2"

    assert cuda.missing_parts == ("0:2",)

    told(story, "MIG-a", "MIG-c")

    assert story.stage(Stage.CUDA).state is StageState.DONE
    assert story.stage(Stage.CUDA).missing_parts == ()
    assert [part.context for part in story.snapshot.gpus.gpus[0].parts or ()] == [True, False, True]


def test_the_keepers_count_of_instances_completes_the_stage() -> None:
    story = launching()
    half = CudaRecord(contexts=(0,), parts=("MIG-a",), have=1, expected=2, source="nvml", rule="nvml pid in tree")

    story.host(cuda=half)
    assert (story.stage(Stage.CUDA).have, story.stage(Stage.CUDA).want) == (1, 2)
    story.host(cuda=replace(half, parts=("MIG-a", "MIG-c"), have=2, complete_bt=story.bt))

    assert story.stage(Stage.CUDA).state is StageState.DONE


def test_instances_without_a_context_are_named_while_none_holds_one() -> None:
    cuda = told(launching()).stage(Stage.CUDA)

    assert (cuda.have, cuda.missing) == (0, ())
    assert cuda.detail == "0/2 GPUs hold a context, not yet: GPU 0 part 0, GPU 0 part 2"


def test_late_launch_says_which_instance_lacks_a_context() -> None:
    story = told(launching(), "MIG-a")

    story.ticks(400.0)

    assert story.stage(Stage.CUDA).state is StageState.LATE
    assert story.snapshot.reason is not None
    assert "1 of 2 contexts: none on GPU 0 part 2" in story.snapshot.reason.detail


def test_the_keepers_count_names_what_the_agents_list_knows_by_uuid() -> None:
    story = told(launching(), "MIG-a")
    half = CudaRecord(contexts=(0,), parts=("MIG-c",), have=1, expected=2, source="nvml", rule="nvml pid in tree")

    story.host(cuda=half)

    assert story.stage(Stage.CUDA).detail == "1/2 GPUs hold a context, not yet: GPU 0 part 0"


def test_what_is_not_known_of_an_instance_is_not_called_missing() -> None:
    parts = tuple(replace(part, context=None) for part in board("MIG-a").mig or () if part.uuid != "MIG-a")
    first = replace(board("MIG-a"), mig=(*(board("MIG-a").mig or ())[:1], *parts))
    story = launching()
    said = protocol.GpusEvent(bt=story.bt, source="nvml", cuda_env=ENV, rule="nvml pid in tree", gpus=(first,))

    story.after(1.0).tell(events.GpusSaid(at=story.at, gpus=said))

    assert story.stage(Stage.CUDA).detail == "1/2 GPUs hold a context"
