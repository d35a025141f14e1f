"""What `restart` refuses to replace: a launch that goes on, for as long as it can still be told that it does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from console.engine import Engine
from console.headless.restart import Options, refuse_if_under_way
from console.model import (
    LinkState,
    LinkStatus,
    Lock,
    ReasonView,
    Run,
    Snapshot,
    Stage,
    StageState,
    StageStatus,
    Verdict,
)
from console.reasons import ConsoleError

_LOADING = Snapshot(
    target="ct200",
    at=1_000.0,
    link=LinkStatus(state=LinkState.UP),
    verdict=Verdict.LAUNCHING,
    stages=tuple(
        StageStatus(stage=stage, state=StageState.ACTIVE if stage is Stage.STEPPING else StageState.DONE)
        for stage in Stage
    ),
    run=Run(id="r-0042", name="slammed6", alive=True),
)
_LOCK = Lock(operator="ops1", origin="pts/3, jump", run_id="r-0043", name="slammed7", stage="killing")


def _ask(snapshot: Snapshot, **options: Any) -> None:
    refuse_if_under_way(cast(Engine, SimpleNamespace(snapshot=snapshot)), Options(**options))


def _unseen(slug: str) -> Snapshot:
    return replace(_LOADING, verdict=Verdict.RUNNING, reason=ReasonView(slug=slug, title=slug))


def test_launch_that_nobody_named_is_not_replaced_and_the_way_to_do_so_is_told() -> None:
    with pytest.raises(ConsoleError, match=r"stage=stepping; use: .* wait r-0042; .* --expect-run slammed6$"):
        _ask(_LOADING)


def test_launch_that_was_named_is_replaced() -> None:
    _ask(_LOADING, expect_run="slammed6")


def test_lock_of_a_restart_that_kills_or_spawns_is_respected_whatever_was_named() -> None:
    with pytest.raises(ConsoleError, match=r"ops1 from pts/3, jump is at killing with slammed7 .*wait r-0043$"):
        _ask(replace(_LOADING, lock=_LOCK), expect_run="slammed6")


def test_run_whose_format_nobody_knows_is_no_launch_for_ever() -> None:
    _ask(_unseen("format_unknown"))


@pytest.mark.parametrize("slug", ["output_buffered", "log_unseen"])
def test_run_that_may_still_be_loading_unseen_is_a_launch(slug: str) -> None:
    with pytest.raises(ConsoleError, match="stage=stepping"):
        _ask(_unseen(slug))
