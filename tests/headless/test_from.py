"""`restart --from`, expected times and what changed, as a script sees them: on real runs of the demo's host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from console.config import Target
from console.engine import requests
from console.headless import output
from console.model import CachePlan, Overrides, PastRun, Plan, Settings
from console.reasons import ConsoleError, Reason
from tests.headless.running import Console, prove_starts_at
from tests.waiting import until


def lines_of(text: str, first: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(first)]


def test_from_takes_the_settings_of_a_past_run_again(console: Console) -> None:
    console.free()
    odd = console.restart("--json", "--env", "BATCH=8", "--unset", "DFLASH_SPLIT_FC_LAYERS", "--arg=--fast").json
    plain = console.restart("--json").json

    plan = console("restart", "--plan", "--from", odd["run"])
    again = console.restart("--json", "--from", odd["run"])
    back = console("restart", "--plan", "--json").json

    assert (odd["ok"], plain["ok"], again.json["ok"]) == (True, True, True), again
    assert plan.code == 0
    assert lines_of(plan.out, "from ") == [f"from   {odd['run']}: its command, directory and environment"]
    assert lines_of(plan.out, "start ")[0].split(" in ")[0].endswith("run.sh --fast")
    assert "env    BATCH (unset) -> 8" in plan.out
    assert f"change since {plain['run']}, which reached stepping:" in plan.out
    # Against the config, what was taken again is the difference now.
    assert back["since"] == again.json["run"]
    assert back["env_changed"] == {"BATCH": ["8", None], "DFLASH_SPLIT_FC_LAYERS": [None, "0"]}
    assert back["argv_before"][-1] == "--fast"


def test_plan_with_past_settings_is_carried_out_by_its_id(console: Console) -> None:
    console.free()
    odd = console.restart("--json", "--env", "BATCH=4").json
    assert console.restart("--json").json["ok"]

    plan = console("restart", "--plan", "--json", "--from", odd["id"]).json
    done = console("restart", "--plan-id", plan["plan_id"], "--json", "--timeout", "90s")

    assert done.code == 0, done
    assert plan["from_run"] == odd["run"]
    assert plan["from_env"] == {"BATCH": [None, "4"]}
    assert console("restart", "--plan", "--json").json["env_changed"] == {"BATCH": ["4", None]}


def test_run_that_nobody_knows_is_refused_before_anything_is_touched(console: Console) -> None:
    console.free()
    before = console.restart("--json").json
    lone = Path(before["log"]).with_name("train_lone.log")
    lone.write_text("".join(f"step {n} | loss 2.5 | tok/s 20,000\n" for n in range(9)))
    until(lambda: " log only " in console("history").out, 60.0, "the log is taken up")

    refused = console("restart", "--yes", "--json", "--from", "nosuch")
    log_alone = console("restart", "--yes", "--json", "--from", "lone")
    lone.unlink()

    assert (refused.code, refused.json["reason"]) == (3, Reason.RUN_UNKNOWN)
    assert (log_alone.code, log_alone.json["reason"]) == (3, Reason.RUN_UNKNOWN)
    assert log_alone.json["detail"].startswith("lone: only its log is known")
    assert console("status", "--json").json["id"] == before["id"]


def test_accepted_and_pending_say_how_long_it_usually_takes(console: Console) -> None:
    console.free()
    first = console.restart("--json").json

    accepted = console("restart", "--yes", "--detach", "--json").json
    after = console("wait", accepted["id"], "--json", "--timeout", "90s").json
    plan = console("restart", "--plan").out

    assert first["ok"]
    assert accepted["usual_s"] > 0
    usual = {each["stage"]: each["usual_s"] for each in after["stages"]}
    took = {each["stage"]: each["took_s"] for each in after["stages"]}
    assert usual["stepping"] is not None
    assert usual["cuda"] is not None
    # A stage that is noted in the same quarter of a second as the one before takes 0.0 s, today as usually.
    assert any(took[stage] != usual[stage] for stage in ("spawned", "cuda", "stepping")), "its own time is not usual"
    assert lines_of(plan, "time ")[0].startswith("time   about ")


def test_failed_launch_says_what_changed_and_how_to_go_back(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    console.free()
    good = console.restart("--json").json
    console.host.inject("exit-at-once")
    script = Path(console.host.target.command[0])
    script.chmod(0o700)

    prove_starts_at(30.0, monkeypatch)
    failed = console.restart("--env", "DFLASH_SPLIT_FC_LAYERS=1")
    told = console("wait", "--json", "--timeout", "60s").json

    assert failed.code == 12
    assert f"or: restart --from {good['run']}" in failed.out
    assert told["changed"]["since"] == good["run"]
    assert told["changed"]["env"] == {"DFLASH_SPLIT_FC_LAYERS": ["0", "1"]}
    assert told["changed"]["files"][str(script)].endswith("mode 0755 -> 0700")


# -- words ------------------------------------------------------------------------------------------------------------

PLAN = Plan(plan_id="7f3a91c2", action="restart", target="ct200", name="slammed6", argv=("/root/run.sh",), cwd="/root")


def test_time_of_a_plan_names_the_launches_it_is_from_and_the_other_kind() -> None:
    known: dict[str, Any] = {"usual_launch_s": 225.0, "usual_launches": 5, "usual_other_s": 80.0}
    caches = (CachePlan(path="/tmp/cache", exists=True),)

    def time_line(**fields: Any) -> str:
        return output.plan_lines(replace(PLAN, **(known | fields)))[-2]

    assert time_line(caches=caches) == (
        "time   about 3m45s to the first step (5 launches with a cleared cache; 1m20s with it kept)"
    )
    assert time_line(caches=caches, keep_cache=True, usual_launches=1, usual_other_s=None) == (
        "time   about 3m45s to the first step (1 launch with a kept cache)"
    )
    assert time_line(usual_other_s=None) == "time   about 3m45s to the first step (5 launches)"


def test_plan_without_a_known_time_claims_none() -> None:
    assert not [line for line in output.plan_lines(PLAN) if line.startswith("time")]


OLD = Settings(argv=("/old.sh",), cwd="/old", env={"A": "1"}, unset=("L",))
BASE = PastRun(id="r-5", name="slammed5", settings=OLD)


def test_past_settings_replace_the_configs_and_overrides_come_on_top() -> None:
    target = Target(command=("/new.sh",), cwd="/new", env={"A": "2", "B": "3"})

    spec = requests.run_spec("ct200", target, Overrides(base=BASE, env={"L": "x"}, args=("--more",)))

    assert spec.command == ("/old.sh", "--more")
    assert spec.cwd == "/old"
    assert spec.env == {"A": "1", "L": "x"}
    assert spec.unset == ()


@pytest.mark.parametrize("given", ["config", "operator", "nobody", "left out"])
def test_secret_of_a_past_run_is_given_anew_or_refused(given: str) -> None:
    base = PastRun(id="r-5", name="slammed5", settings=Settings(env={"API_KEY": "hmac:51c0"}))
    target = Target(env={"API_KEY": "config"} if given == "config" else {})
    overrides = Overrides(
        base=base,
        env={"API_KEY": "operator"} if given == "operator" else {},
        unset=("API_KEY",) if given == "left out" else (),
    )

    if given == "nobody":
        with pytest.raises(ConsoleError) as refused:
            requests.run_spec("ct200", target, overrides)
        assert refused.value.reason is Reason.SECRET_NOT_KEPT
        return
    assert requests.run_spec("ct200", target, overrides).env == ({} if given == "left out" else {"API_KEY": given})
