"""What a console sees of the run that it watches, gathered for the ledger: curves and the steady rates. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from console.history.samples import Curves
from console.protocol import GpusEvent, WireGpu
from console.state import events, steadiness
from console.state.digest import Digester
from console.state.formatrules import Kind
from console.state.metrics import Sample
from console.state.training import WINDOW_S, Training

_FULL, _HALF = 480, 240
_CAPACITY = {"tok_s": _FULL, "loss": _FULL}
_MOST_WAITING = 4096


class Recording:
    """The curves of one run, as times since its first step. What came before that is known is kept until it is."""

    def __init__(self, run: str) -> None:
        self.run = run
        self._first_step_at: float | None = None
        self._digesters: dict[str, Digester] = {}
        self._waiting: list[Sample] = []
        self._version = self._told = 0

    @property
    def has_news(self) -> bool:
        return self._version != self._told

    def samples(self, event: events.SamplesSeen, training: Training) -> None:
        """Take steps whose time is known: read as they were written, or dated by the flight recorder."""
        self._first_step_at = training.first_step_at if self._first_step_at is None else self._first_step_at
        if not event.live and not event.dated:
            return
        self._waiting += [sample for sample in event.samples if sample.kind is Kind.STEP]
        if self._first_step_at is None:
            del self._waiting[:-_MOST_WAITING]
            return
        waiting, self._waiting = self._waiting, []
        for sample in waiting:
            self._step(sample, sample.at - self._first_step_at)

    def _step(self, sample: Sample, since_s: float) -> None:
        if sample.tok_s is not None and sample.scope is not None:
            self._add("tok_s", since_s, sample.tok_s, sample.step)
        if sample.loss is not None and sample.loss_state is None:
            self._add("loss", since_s, sample.loss, sample.step)
        if sample.queue_min is not None:
            self._add("queue", since_s, sample.queue_min, sample.step)

    def gpus(self, event: GpusEvent, roles: Mapping[str, tuple[int, ...]], now: float) -> None:
        """Take a sample of the GPUs: per role the most memory, and the mean of load and power."""
        if self._first_step_at is None:
            return
        since_s = now - self._first_step_at
        for role, gpus in by_role(event, roles).items():
            memory = [gpu.used for gpu in gpus if gpu.used is not None]
            busy = [gpu.util for gpu in gpus if gpu.util is not None]
            power_w = [gpu.power_mw / 1000 for gpu in gpus if gpu.power_mw is not None]
            if memory:
                self._add(f"memory:{role}", since_s, float(max(memory)))
            if busy:
                self._add(f"busy:{role}", since_s, sum(busy) / len(busy))
            if power_w:
                self._add(f"power:{role}", since_s, sum(power_w) / len(power_w))

    def _add(self, name: str, since_s: float, value: float, step: int | None = None) -> None:
        if name not in self._digesters:
            self._digesters[name] = Digester(capacity=_CAPACITY.get(name, _HALF))
        self._digesters[name].add(since_s, value, step)
        self._version += 1

    def curves(self, training: Training) -> Curves:
        """Return all that was gathered; from then on nothing is new until something comes."""
        self._told = self._version
        return Curves(
            digests={name: digester.digest for name, digester in self._digesters.items()},
            steady=steady_window(training, self._first_step_at),
        )


def by_role(event: GpusEvent, roles: Mapping[str, tuple[int, ...]]) -> dict[str, list[WireGpu]]:
    """Return the run's GPUs by role; without roles in the config all are of the role `all`."""
    ours = [gpu for gpu in event.gpus if gpu.owner == "run" or gpu.context]
    found: dict[str, list[WireGpu]] = {}
    names = {index: role for role, indexes in roles.items() for index in indexes}
    for gpu in ours:
        found.setdefault(names.get(gpu.i, "other" if names else "all"), []).append(gpu)
    return found


def steady_window(training: Training, first_step_at: float | None) -> steadiness.Window:
    """Return the steady rates of the 10 minutes up to the last step."""
    if not training.points or first_step_at is None:
        return steadiness.Window()
    until = training.points[-1].at
    return steadiness.window(
        [
            (point.at - first_step_at, point.tok_s)
            for point in training.points
            if point.steady
            and point.tok_s is not None
            and point.scope == training.scope
            and point.at >= until - WINDOW_S
        ]
    )
