"""How the rows and columns of the overview are shared out for a size and a question of the moment. Pure.

Collapse order, first to go: header details, rail evidence, role means, loss/queue/memory plots, temperature, power,
rail durations, the GPU table (one line remains), the plot (a sparkline remains), the header. The verdict, the reason
and four rows of log never go.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from console.model import Snapshot, StageState, Verdict
from console.ui.present.facts import is_stopping

WIDTHS = (72, 110, 150)
HEIGHTS = (22, 30, 44)
# Under this only the verdict and the reason stand, wrapped.
SMALLEST = (40, 10)
_MIN_LOG_ROWS = 5  # the title and four lines
_CALM_AFTER_S = 600.0


class Middle(StrEnum):
    """The question of the moment."""

    SPEED = "speed"
    LAUNCH = "launch"
    WHY = "why"


class Layout(Struct, frozen=True, kw_only=True):
    width: int
    height: int
    verdict_only: bool = False
    header: bool = True
    big: bool = False
    airy: bool = False
    """Blank rows around the rail and under the verdict."""
    narrow: bool = False
    """No margins, basenames, short labels."""
    wide: bool = False
    """Five panels instead of two."""
    rail_rows: int = 1
    rail_times: bool = True
    middle: Middle = Middle.SPEED
    middle_rows: int = 12
    left_width: int = 0
    right_width: int = 0
    """0: the left panel has the full width."""
    gap: int = 0
    """Blank columns between the two; wider screens have margins in the panels instead."""
    lower_rows: int = 0
    """Rows of the loss and queue plots under tok/s; 0: they take turns in one slot."""
    right_lower_rows: int = 0
    strips: bool = False
    """One row of sparkline and one of GPUs in place of the middle."""


def middle_of(snapshot: Snapshot) -> Middle:
    match snapshot.verdict:
        case Verdict.LAUNCHING:
            # What a stop leaves running is still best seen in its plots and GPUs.
            return Middle.SPEED if is_stopping(snapshot) else Middle.LAUNCH
        case Verdict.ENDED if snapshot.reason is None and snapshot.progress.step is not None:
            return Middle.SPEED  # nobody recorded how: what is known are its steps
        case Verdict.FAILED | Verdict.ENDED | Verdict.INTERRUPTED | Verdict.HOST_RESTARTED:
            return Middle.WHY
        case Verdict.LINK_LOST | Verdict.FROZEN:
            return Middle.LAUNCH if snapshot.last_known is Verdict.LAUNCHING else Middle.SPEED
        case _:
            return Middle.SPEED


def stages_matter(snapshot: Snapshot) -> bool:
    """Whether the rail deserves three rows: all but a healthy run more than 10 minutes after its first step."""
    if all(s.state is StageState.PENDING for s in snapshot.stages):
        return False
    if snapshot.verdict in (Verdict.IDLE, Verdict.NO_WORD, Verdict.FINISHED, Verdict.STOPPED):
        return False
    if snapshot.verdict not in (Verdict.STEPPING, Verdict.SLOW, Verdict.RUNNING, Verdict.NAN):
        return True
    if any(s.state in (StageState.ACTIVE, StageState.LATE) for s in snapshot.stages):
        return True
    first = snapshot.progress.first_step_at
    return first is not None and snapshot.at - first < _CALM_AFTER_S


def lay_out(
    snapshot: Snapshot,
    width: int,
    height: int,
    *,
    band_rows: int,
    why_rows: int,
    big: bool,
    plots: bool = True,
    plots_asked: bool = False,
) -> Layout:
    """Share out a screen.

    `band_rows` is the height of the verdict, `why_rows` that of the evidence at full width, `plots` whether there is
    anything to plot, `plots_asked` whether they are wanted in the place of the evidence.
    """
    if width < SMALLEST[0] or height < SMALLEST[1]:
        return Layout(width=width, height=height, verdict_only=True, header=False, narrow=True)
    narrow = width < WIDTHS[1]
    if width < WIDTHS[0] or height < HEIGHTS[0]:
        header = height >= HEIGHTS[0]
        return Layout(
            width=width, height=height, header=header, narrow=True, rail_rows=1,
            rail_times=width >= WIDTHS[0], strips=True, middle=middle_of(snapshot), middle_rows=2,
        )  # fmt: skip
    wide = width >= WIDTHS[2] and height >= HEIGHTS[2]
    tall_rail = wide or (width >= WIDTHS[1] and height >= HEIGHTS[1] and stages_matter(snapshot))
    rail = 3 if tall_rail else 1
    middle = middle_of(snapshot)
    if middle is Middle.WHY and plots_asked and plots and not wide:  # a wide screen has both
        middle = Middle.SPEED
    airy = wide and big
    fixed = 1 + band_rows + rail + (2 if airy else 0) + 1
    tall = wide and (plots or middle is Middle.SPEED)
    wanted = 21 if tall else 9 if height < HEIGHTS[1] else 12 + max(0, (height - HEIGHTS[2]) // 4)
    if middle is Middle.WHY and not wide:
        wanted = max(4, min(why_rows, height - fixed - _MIN_LOG_ROWS))
    # The log keeps its rows: first the rail gives, then the middle.
    if height - fixed - wanted < _MIN_LOG_ROWS and rail == 3 and not wide:
        fixed, rail = fixed - 2, 1
    rows = max(4, min(wanted, height - fixed - _MIN_LOG_ROWS))
    left, right = _columns(width, narrow, wide)
    if middle is Middle.WHY and not wide:
        left, right = width, 0
    lower = 8 if tall and rows >= 18 else 0
    return Layout(
        width=width, height=height, big=big, airy=airy, narrow=narrow, wide=wide, rail_rows=rail,
        middle=middle, middle_rows=rows, left_width=left, right_width=right, gap=width - left - right if right else 0,
        lower_rows=lower,
        right_lower_rows=9 if lower else 0,
    )  # fmt: skip


def _columns(width: int, narrow: bool, wide: bool) -> tuple[int, int]:
    if wide:
        left = round(width * 0.595)
        return left, width - left
    if narrow:
        left = round(width * 0.51)
        return left, width - left - 1
    left = round(width * 0.525)
    return left, width - left
