"""In which order the files of tests are begun where several workers share them: what takes longest first.

A worker takes whole files. One of minutes that is begun last keeps the others waiting for its end.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

LONGEST_FIRST = (
    "tests/lab/test_scenarios.py",
    "tests/demo/test_faults_seen.py",
    "tests/bench/test_bench.py",
    "tests/chaos/test_two_consoles.py",
    "tests/chaos/test_cuts.py",
    "tests/demo/test_demo_host.py",
    "tests/headless/test_commands.py",
    "tests/chaos/test_soak.py",
    "tests/lab/test_requests.py",
    "tests/lab/test_restart.py",
    "tests/lab/test_log_links.py",
    "tests/headless/test_from.py",
    "tests/headless/test_runs_over_time.py",
    "tests/engine/test_past.py",
    "tests/ui/test_pictures.py",
    "tests/lab/test_failures.py",
    "tests/lab/test_killed_watchers.py",
    "tests/host/test_keeper.py",
    "tests/headless/test_logs.py",
    "tests/ui/test_keys.py",
    "tests/link/test_link.py",
    "tests/lab/test_lost_keepers.py",
    "tests/lab/test_cut_links.py",
    "tests/host/test_preflight_rows.py",
    "tests/headless/test_doctor.py",
    "tests/host/test_preflight.py",
    "tests/demo/test_trainer.py",
    "tests/ui/test_whole_log.py",
    "tests/host/test_agent_execute.py",
    "tests/host/test_diagnose_run.py",
    "tests/headless/test_diagnose.py",
    "tests/host/test_agent.py",
    "tests/lab/test_outside.py",
    "tests/link/test_lab_link.py",
    "tests/lab/test_doctor.py",
)
"""Everything that takes half a minute or more; the rest follows by its number of tests."""


def longest_first(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bring the items of a worker, and with them the files that are handed out, into this order."""
    if not hasattr(config, "workerinput"):
        return  # in one process the quick ones may go first, as they are found
    files = [item.nodeid.partition("::")[0] for item in items]
    rank = {file: place for place, file in enumerate(by_length(files))}
    items.sort(key=lambda item: rank[item.nodeid.partition("::")[0]])


def by_length(files: Sequence[str]) -> list[str]:
    """Return each file once; `files` names it for each of its tests."""
    known = {file: place for place, file in enumerate(LONGEST_FIRST)}
    counts: dict[str, int] = {}
    for file in files:
        counts[file] = counts.get(file, 0) + 1
    return sorted(counts, key=lambda file: (known.get(file, len(known)), -counts[file]))
