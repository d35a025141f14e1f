"""What a sample of the GPUs says of the run that is watched: whose memory it is, its peak, who else is there.

Only watcher.py imports this module.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set, Tuple

from . import cudaenv, gpu, holders, procfs, records, tree

Ident = Tuple[int, int]


class GpuOwners:
    """Judges one sample after another; `forget` when another run takes the old one's place."""

    def __init__(self) -> None:
        self._holders = holders.Holders()
        self._cuda_env = cudaenv.CudaEnv()
        self._peak: Dict[int, int] = {}
        self._strangers: Set[int] = set()

    def forget(self) -> None:
        """Another run is watched from now on."""
        self._peak = {}

    def close(self) -> None:
        self._cuda_env.close()

    def event(self, sample: Dict[str, Any], look: tree.Look, live: Optional[records.Record]) -> Dict[str, Any]:
        """Return the event that tells a sample. `look`: the processes of the run, `live`: its record if it is ours."""
        event = {"ev": "gpus", **{key: sample.get(key) or "" for key in ("source", "why", "driver")}}
        cuda_env = self._cuda_env.of(_with_context(sample, look))
        event.update(
            bt=sample["bt"], cuda_env=cuda_env, **self._judged(sample, self._with_new(sample, look), live or {})
        )
        return event

    def _with_new(self, sample: Dict[str, Any], look: tree.Look) -> tree.Look:
        """Return the look with those of the run that are on a GPU and came after it: they are nobody else's."""
        listed = set().union(*map(gpu.pids, sample.get("gpus") or ())) - look.pids
        new = {pid for pid in listed - self._strangers if not look.pids.isdisjoint(procfs.ancestors(pid))}
        self._strangers = listed - new
        if not new:
            return look
        users = None if look.uvm_pids is None else look.uvm_pids.union(filter(procfs.holds_uvm, new))
        return look._replace(pids=look.pids | new, uvm_pids=users)

    def _judged(self, sample: Dict[str, Any], look: tree.Look, live: records.Record) -> Dict[str, Any]:
        verdict = gpu.judge(sample, look.pids, look.uvm_pids, _baseline(live))
        by_index = {each["i"]: each for each in verdict["gpus"]}
        cuda = live.get("cuda") or {}
        kept = set(cuda.get("contexts") or ())  # what the keeper has seen: it knows the level before the launch
        answers = []
        for each in sample.get("gpus") or ():
            index = each["i"]
            judged = by_index[index]
            if index in kept and not judged["context"] and judged["owner"] != "other":
                judged = {
                    "context": True,
                    "owner": "run" if judged["owner"] in ("nobody", "unknown") else judged["owner"],
                }
            # What is not told is left out: nine of ten messages are of this kind, eight GPUs each.
            told = {key: value for key, value in each.items() if value is not None}
            if judged.get("parts"):
                told["mig"] = [dict(part, context=judged["parts"].get(part["uuid"])) for part in each["mig"]]
            told.update(context=judged["context"], owner=judged["owner"], owner_why=judged.get("why", ""))
            others = self._holders.others(each.get("procs"), look.pids, simulated=sample["source"] == "simulated")
            if others:
                told["others"] = others
            told["peak"] = self._raise_peak(live, index, each.get("used"), judged["owner"])
            answers.append(told)
        return {"rule": verdict["rule"] or (cuda.get("rule", "") if kept else ""), "gpus": answers}

    def _raise_peak(self, live: records.Record, index: int, used: Optional[int], owner: str) -> Optional[int]:
        known = [self._peak.get(index), (live.get("gpu_peak") or {}).get(str(index))]
        if owner == "run":
            known.append(used)
        numbers = [each for each in known if each is not None]
        if not numbers:
            return None
        self._peak[index] = max(numbers)
        return self._peak[index]


def _with_context(sample: Dict[str, Any], look: tree.Look) -> List[Ident]:
    """Return the run's processes that use a GPU, as far as that can be told."""
    users = set(look.uvm_pids or ())
    if sample["source"] == "simulated":
        users = {proc[0] for each in sample["gpus"] for proc in each.get("procs") or ()}
    return [(each["pid"], each["start"]) for each in look.procs if each["pid"] in users]


def _baseline(live: records.Record) -> Optional[Dict[int, int]]:
    """Return bytes used before the launch, as the keeper noted them; None for runs that nobody saw begin."""
    noted = (live.get("_status") or {}).get("gpu_baseline")
    return {int(index): used for index, used in noted.items()} if isinstance(noted, dict) and noted else None
