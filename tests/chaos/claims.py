"""Holding each picture of a console against the ground: what is claimed as proven must be provable right then.

Only claims that can't become untrue again are judged here, since the picture is older than the look at the ground:
a stage that is done, a run that is dead, a restart that was interrupted.
"""

from __future__ import annotations

from console.engine import Engine
from console.model import Snapshot, StageState, Verdict
from tests.chaos.ground import Place

_OVER = (Verdict.FAILED, Verdict.ENDED, Verdict.FINISHED, Verdict.STOPPED)


class Claims:
    """Watches one console until `close`; what is false goes into `false`."""

    def __init__(self, engine: Engine, place: Place, false: list[str]) -> None:
        self._engine, self._place, self._false = engine, place, false
        self._proven: set[tuple[str, str]] = set()
        engine.on_change.append(self._judge)

    def close(self) -> None:
        self._engine.on_change.remove(self._judge)

    def _judge(self) -> None:
        now = self._engine.snapshot
        if now.run is None or now.run.id is None:
            return
        for claim, holds in self._claims(now, now.run.id):
            if (now.run.id, claim) in self._proven:
                continue
            if holds:
                self._proven.add((now.run.id, claim))
            else:
                self._false.append(f"{claim} of {now.run.id}: {now.verdict}, {now.stages}; {self._place.look()}")

    def _claims(self, now: Snapshot, run: str) -> list[tuple[str, bool]]:
        """Return each claim of the picture with whether it holds."""
        claimed = [f"done {each.stage}" for each in now.stages if each.state is StageState.DONE]
        claimed += ["interrupted"] if now.verdict is Verdict.INTERRUPTED else []
        claimed += ["over"] if now.verdict in _OVER else []
        claimed += ["dead"] if now.run is not None and now.run.alive is False else []
        fresh = [claim for claim in claimed if (run, claim) not in self._proven]
        record = self._place.run(run) if fresh else None
        if record is None:
            return [(claim, False) for claim in fresh]
        found = []
        for claim in fresh:
            match claim:
                case "interrupted":
                    holds = record.is_interrupted
                case "over":
                    holds = record.exit is not None or (not record.main_lives and not record.is_under_way)
                case "dead":
                    holds = run not in self._place.trainers().values()
                case "done cuda":
                    noted = bool((record.status.get("cuda") or {}).get("contexts"))
                    # The trainer holds its GPU before its first step; a quick end leaves nothing else of that.
                    holds = noted or self._holds_gpu(run) or record.steps() >= 1
                case "done stepping":
                    holds = record.steps() >= 2
                case _:
                    holds = record.stage(claim.removeprefix("done ")) == "done"
            found.append((claim, holds))
        return found

    def _holds_gpu(self, run: str) -> bool:
        """Whether a living trainer of this run is in the GPUs' state file."""
        text = (self._place.home / "gpus").read_text()
        return any(f"procs={pid}:" in text for pid, each in self._place.trainers().items() if each == run)
