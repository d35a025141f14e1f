"""Tokens/s of logs whose lines do not state them: what each trainer's lines do say, turned into a rate.

One rule is taken, the first whose parts are known:

1. `step_tokens / step_s`: the line states the tokens of the step and the time that it took, for all workers (veRL).
2. growth of `tokens_total` / time between the lines: the line states a running total of tokens (Hugging Face, TRL,
   axolotl, Composer counted in tokens). Only for lines that were seen to arrive.
3. `tokens per step / seconds per step`: the config's tokens per step, else the header's, else global batch x sequence
   length. Seconds per step as the line states them (Megatron, NeMo, nanoGPT, DeepSpeed's pipeline, SpecForge, bars);
   else from a window or a running total of time, divided by the steps since the line before (dflash-training's Elapsed,
   modded-nanogpt's train_time, which leaves validation out); else from the arrival of the step lines.
4. `samples/s x sequence length` (DeepSpeed, SpecForge, Megatron's samples per second): every sample is taken for full.
5. `micro batch x sequence length x ranks / iter_ms` (LitGPT, whose iterations are micro batches).

A rate that a line states is never replaced. Pure.
"""

from __future__ import annotations

import math

from console.state.arrivals import Arrivals
from console.state.formatrules import Kind, Reading, Scope

_LEARNED = frozenset({"tokens_per_step", "seq_len", "global_batch", "micro_batch", "world_size"})


class Rates:
    """Keeps what the header said and what the line before said, and derives from them."""

    def __init__(self, tokens_per_step: int | None) -> None:
        self._config = tokens_per_step
        self._said: dict[str, float] = {}
        self._steps = Arrivals()
        self._tokens = Arrivals()
        self._last_step: int | None = None
        self._last_train_ms: float | None = None

    def learn(self, reading: Reading) -> None:
        """Take what a header says."""
        self._said.update({key: value for key, value in reading.fields.items() if key in _LEARNED})

    def forget_arrivals(self) -> None:
        """The next line is not the one after the last."""
        self._steps, self._tokens = Arrivals(), Arrivals()
        self._last_step = self._last_train_ms = None

    def of(self, reading: Reading, step: int | None, at: float, *, live: bool) -> tuple[float | None, Scope | None]:
        """Return the tokens/s of a step line and whose they are, stated or derived."""
        fields = reading.fields
        if reading.rule.continues and reading.rule.kind is Kind.OTHER:
            rate = finite(fields.get("tok_s"))
            return rate, reading.scope if rate is not None else None
        if reading.rule.kind is not Kind.STEP or reading.rule.scope is Scope.RANK:
            return None, reading.rule.scope
        if not live:
            self._steps, self._tokens = Arrivals(), Arrivals()
        arrival_s = self._arrived(self._steps, step, at, live=live)
        token_s = self._arrived(self._tokens, _whole(fields.get("tokens_total")), at, live=live)
        since_s = self._since_last(fields, step)
        if "tok_s" in fields:
            stated = finite(fields["tok_s"])
            return stated, reading.scope if stated is not None else None
        rate = self._derived(fields, step_seconds(fields) or since_s or arrival_s, token_s)
        return (rate, Scope.DERIVED) if rate is not None and math.isfinite(rate) else (None, None)

    def _derived(self, fields: dict[str, float], step_s: float | None, token_s: float | None) -> float | None:
        if (tokens := fields.get("step_tokens")) is not None and (seconds := step_seconds(fields)):
            return tokens / seconds
        if token_s:
            return 1 / token_s
        if step_s and (tokens := self._tokens_per_step(fields)) is not None:
            return tokens / step_s
        seq_len = self._said.get("seq_len")
        if seq_len and (samples := fields.get("samples_per_s")) is not None and samples > 0:
            return samples * seq_len
        micro_batch, iter_ms = self._said.get("micro_batch"), fields.get("iter_ms")
        if seq_len and micro_batch and iter_ms:
            return micro_batch * seq_len * self._said.get("world_size", 1.0) / iter_ms * 1000
        return None

    def _tokens_per_step(self, fields: dict[str, float]) -> float | None:
        if self._config is not None:
            return float(self._config)
        if (stated := self._said.get("tokens_per_step")) is not None:
            return stated
        batch = fields.get("global_batch", self._said.get("global_batch"))
        seq_len = self._said.get("seq_len")
        return batch * seq_len if batch is not None and seq_len is not None else None

    @staticmethod
    def _arrived(arrivals: Arrivals, count: int | None, at: float, *, live: bool) -> float | None:
        return arrivals.step_seconds(count, at) if live and count is not None else None

    def _since_last(self, fields: dict[str, float], step: int | None) -> float | None:
        """Seconds per step where the line says how long it was since the line before."""
        last_step, last_ms = self._last_step, self._last_train_ms
        self._last_step, self._last_train_ms = step, fields.get("train_ms")
        if step is None or last_step is None or step <= last_step:
            return None
        took_s = fields.get("window_s")
        if took_s is None and last_ms is not None and (now_ms := fields.get("train_ms")) is not None:
            took_s = (now_ms - last_ms) / 1000
        return took_s / (step - last_step) if took_s is not None and 0 < took_s < math.inf else None


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def step_seconds(fields: dict[str, float]) -> float | None:
    """Seconds per step as the line states them, in whatever unit."""
    seconds = fields.get("step_s")
    if seconds is None and (milliseconds := fields.get("step_ms")) is not None:
        seconds = milliseconds / 1000
    if seconds is None and (per_s := fields.get("steps_per_s")):
        seconds = 1 / per_s
    return seconds if seconds is not None and 0 < seconds < math.inf else None


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and math.isfinite(value) else None
