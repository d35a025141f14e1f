"""compare on a target where nothing runs and of whose runs only the logs are left."""

from __future__ import annotations

import os
from pathlib import Path

from console.engine.oldlogs import MOST_LOGS
from tests.headless.running import Done, call


def log(rates: list[float]) -> str:
    """A step each second."""
    lines = []
    for step, rate in enumerate(rates, start=1):
        at = f"2026-08-20 {step // 3600:02d}:{step // 60 % 60:02d}:{step % 60:02d}"
        lines.append(f"[{at}] step {step} | loss 2.5 | tok/s {rate:,.0f}\n")
    return "".join(lines)


def compared(folder: Path, *words: str) -> Done:
    config = folder / "config.toml"
    config.write_text(
        '[targets.lab]\nhost = "local"\ncommand = ["/bin/true"]\n'
        f'cwd = "{folder}"\nlog = "{folder}/train_{{name}}.log"\n'
    )
    return call("compare", "--config", str(config), *words)


def test_two_logs_are_compared_at_the_first_call_though_nothing_runs(tmp_path: Path) -> None:
    for name, rate in (("slammed4", 21_000.0), ("slammed5", 21_441.0)):
        rates = [rate + step * 37 % 11 for step in range(300)]
        (tmp_path / f"train_{name}.log").write_text(log(rates))

    done = compared(tmp_path, "slammed5", "slammed4", "--json")

    assert done.code == 0, done
    assert done.json["tok_s"]["delta_pct"] == 2.1
    assert done.json["tok_s"]["significant"] is True


def test_a_log_that_many_are_newer_than_is_found_by_its_name(tmp_path: Path) -> None:
    for number in range(MOST_LOGS + 2):
        path = tmp_path / f"train_slammed{number}.log"
        path.write_text(log([21_000.0] * 3))
        os.utime(path, (1_787_200_000 + number, 1_787_200_000 + number))

    done = compared(tmp_path, "slammed0", f"slammed{MOST_LOGS + 1}")

    assert done.code == 0, done
    assert done.out.splitlines()[0].split() == ["A", "slammed0", "B", f"slammed{MOST_LOGS + 1}", "A", "-", "B"]
