"""Where nobody can tell contexts: none that was proven is not the same as none that was opened."""

from __future__ import annotations

from console.model import Stage, StageState
from console.protocol import CudaRecord
from tests.state.story import Story, sample

KEEPER = CudaRecord(contexts=(), expected=8, source="nvml")


def untold() -> Story:
    """A run on a host without a /dev/nvidia-uvm: the keeper counts none, and the agent can't tell."""
    story = Story().launched().host(cuda=KEEPER)
    for _ in range(8):
        story.after(1.0).gpus(context=None, owner="unknown").host(cuda=KEEPER)
    return story


def test_contexts_that_cant_be_told_are_neither_counted_nor_called_missing() -> None:
    cuda = untold().stage(Stage.CUDA)

    assert (cuda.state, cuda.have, cuda.missing, cuda.evidence) == (StageState.UNKNOWN, None, (), "")
    assert cuda.why == "not observable: contexts can't be told"


def test_end_of_such_a_run_is_not_explained_by_contexts_that_it_never_opened() -> None:
    story = untold()
    for step in range(1, 5):
        story.after(2.0).samples(sample(step)).gpus(context=None, owner="unknown").host(cuda=KEEPER)

    story.after(1.0).exited(signal=9)

    assert story.snapshot.reason is not None
    facts = " ".join(f"{fact.label} {fact.text}" for fact in story.snapshot.reason.facts)
    assert "no context was opened" not in facts
    assert "contexts not known" in facts
    assert story.stage(Stage.CUDA).missing == ()


def test_contexts_are_counted_again_once_they_can_be_told() -> None:
    story = untold()

    story.after(1.0).gpus(6)

    cuda = story.stage(Stage.CUDA)
    assert (cuda.state, cuda.have, cuda.missing) == (StageState.ACTIVE, 6, (6, 7))


def test_unwatched_run_that_ended_so_is_told_by_its_keepers_reason() -> None:
    why = "the open files of the run's processes may not be read"

    story = Story().launched().host(cuda=CudaRecord(expected=8, source="nvml", untold=why)).after(30.0).exited(code=1)

    cuda = story.stage(Stage.CUDA)
    assert (cuda.state, cuda.have, cuda.missing, cuda.evidence) == (StageState.UNKNOWN, None, (), "")
    assert cuda.why == f"not observable: {why}"
    assert story.stage(Stage.STEPPING).state is StageState.FAILED, "what is not known is not what it failed at"
