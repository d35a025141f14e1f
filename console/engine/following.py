"""Carrying out what the machine wants of the log: follow this file, resume it after a cut, read how it began.

Owns the one LogFlow of an engine and its requests on the bulk connection. What the console itself marks in the log is
`runmarks`, what is told of its newest lines and of its errors is `logend`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections import deque
from collections.abc import Callable

import msgspec

from console import protocol
from console.config import Metrics
from console.engine import gpucurves, requests
from console.engine.growth import GrowthIndex
from console.engine.logend import LogEnd
from console.engine.logflow import LAST_BYTES, TAIL_BYTES, WHOLE_BYTES, LogFlow, Shown, Taken
from console.engine.outline import FIRST_STEPS, Part, ask_outline, thinned
from console.engine.reading import AHEAD_BYTES, Reading
from console.engine.replay import Replay
from console.engine.runmarks import RunMarks
from console.engine.since import AHEAD_S
from console.link import retries
from console.link.link import Link
from console.link.tasks import owned_tasks, started
from console.reasons import ConsoleError
from console.state import events
from console.state.lines import RawLine
from console.state.logbuffer import LogBuffer
from console.state.metrics import Kind, Sample
from console.state.series import Series
from console.state.stamps import read_stamp

_log = logging.getLogger(__name__)
_REQUEST_S = 15.0
_NOTED_S, _NOTED_TRIES = 0.3, 8  # the keeper notes the log's size each quarter of a second, an old run's each second


class Following:
    """Follows at most one log; says what it reads as events."""

    def __init__(
        self,
        link: Link | Replay,
        metrics: Metrics,
        buffer: LogBuffer,
        series: dict[str, Series],
        feed: Callable[[events.Event], None],
        now: Callable[[], float],
        recorder: Callable[[str], protocol.Recorder],
        on_lines: Callable[[], None] = lambda: None,
    ) -> None:
        """`recorder` makes the question for a run's flight recorder; `on_lines` is called when the buffer has more."""
        self.tasks: asyncio.TaskGroup | None = None
        self._link, self._feed, self._now, self._recorder = link, feed, now, recorder
        self._flow = LogFlow(metrics, buffer, series)
        self._on_lines = on_lines
        self._reading = Reading(
            self._show, lambda count: link.bulk_send(protocol.LogCredit(bytes=count)), self._understand
        )
        self._shown: deque[Shown] = deque()
        """What is in the buffer and was not understood yet."""
        self._outline: deque[Part] = deque()
        """What is to be understood before that, once the log is followed."""
        self._head_steps = 0
        self._is_behind_head = False
        """Between the log's start and what is understood now much was not read."""
        self._buffer, self._series = buffer, series
        self._wanted: events.FollowLog | None = None
        self._bulk_up = False
        self._attaching: asyncio.Task[None] | None = None
        self._attached = self._is_answered = False
        self._wake = asyncio.Event()
        self._chance = random.Random()
        self._growth: dict[str, GrowthIndex] = {}
        self._bt_offset_s = self._zone_s = self._wall_offset_s = 0.0
        self._understood_to = 0
        """Lines of the buffer before this number were understood."""
        self._run_over = False
        self._caught_up = False
        self._marks = RunMarks(buffer, self._at)
        self.end = LogEnd(buffer, feed, now, lambda: self._known_end)
        self._told_history = False

    # -- what the engine tells ----------------------------------------------------------------------------------------

    def set_clock(self, bt_offset_s: float) -> None:
        """Console clock minus the host's boot time."""
        self._bt_offset_s = bt_offset_s

    def set_zone(self, utc_offset_s: float, wall_offset_s: float) -> None:
        """What a time stamp of the log means: the host's zone, and the console's clock minus the host's."""
        self._zone_s, self._wall_offset_s = utc_offset_s, wall_offset_s

    def bulk_up(self) -> None:
        self._bulk_up = True
        self._attach_soon()

    def bulk_down(self) -> None:
        self._bulk_up = self._attached = self._is_answered = False
        # The next agent is told how far it was shown; what was shown is understood when the host is heard again.
        self._reading.begin(AHEAD_BYTES, sum(shown.came_bytes for shown in self._shown))
        if self._attaching is not None:
            self._attaching.cancel()
            self._attaching = None

    def host_said(self, record: protocol.RunRecord | None) -> None:
        """Note the journal of the run that is spoken of, which the log pane marks; the tail of one that is over is told
        at once."""
        self._run_over = record is not None and record.alive is False
        self._marks.host_said(record)
        if self._run_over:
            self.end.say()

    def retry_now(self) -> None:
        """Ask for the log now, where it was not answered and is to be asked for again later."""
        self._wake.set()

    def pause(self, seconds: float) -> None:
        """Read nothing for a moment: somebody waits for something else."""
        self._reading.pause(seconds)

    def tick(self) -> None:
        self.end.say()

    # -- effects ------------------------------------------------------------------------------------------------------

    def follow(self, wanted: events.FollowLog) -> None:
        self._wanted = wanted
        self._shown.clear()
        self._outline.clear()
        self._reading.begin(AHEAD_BYTES)
        self._flow.begin(wanted.path, wanted.pid)
        self._attached = self._is_answered = False
        self._caught_up = self._is_behind_head = False
        self._marks.begin(wanted.run)
        self._understood_to = self._buffer.end
        self.end.begin(wanted.follow)
        self._attach_soon()

    def stop(self, effect: events.StopFollowing) -> None:
        if self._wanted is not None and self._wanted.follow == effect.follow:
            self._wanted = None
            self._shown.clear()
            self._outline.clear()
            self._marks.stop()
            self.end.stop()

    def read_head(self, effect: events.ReadHead) -> None:
        started(self.tasks, self._tell_step_times(effect), "read-head")

    def _attach_soon(self) -> None:
        if self._wanted is None or not self._bulk_up or self.tasks is None:
            return
        if self._attaching is not None:
            self._attaching.cancel()
        self._attaching = started(self.tasks, self._attach(self._wanted), "attach")

    async def _attach(self, wanted: events.FollowLog) -> None:
        """Follow the log, again and again until it is answered: the bulk connection is up, so somebody is there.

        Ended by `bulk_down` and by another log.
        """
        for attempt in itertools.count(1):
            try:
                await self._follow(wanted)
                break
            except ConsoleError as error:
                _log.warning("the log is not followed: %s", error)
                self._feed(events.BulkWentDown(at=self._now(), detail=error.detail))
            await retries.pause(retries.delay_s(attempt, self._chance), self._wake)

    async def _follow(self, wanted: events.FollowLog) -> None:
        self._flow.history_until, self._told_history = None, False
        outline, is_fresh = None, not self._flow.can_resume
        async with owned_tasks() as tasks:  # asked for together: a jump host makes each answer take a while
            noted = tasks.create_task(self._load_growth(wanted.run), name="recorder")
            asks = is_fresh and not wanted.from_start
            asked = tasks.create_task(self._ask_outline(wanted), name="outline") if asks else None
        growth = noted.result()
        if asked is not None:
            outline = asked.result()
        elif is_fresh and growth.last_size_bytes > WHOLE_BYTES:
            # A young run's log is short, unless it floods: then its head and its end are enough, too.
            outline = await self._ask_outline(wanted)
        if outline is not None:
            self._outline, self._head_steps = outline, 0
        await self._request_follow(tail_bytes=self._tail_bytes if outline is not None else 0)
        if growth.last_bt is not None:
            self._feed(events.StepTimesKnown(at=self._now(), run=wanted.run, grew_bt=growth.last_bt))

    async def _ask_outline(self, wanted: events.FollowLog) -> deque[Part] | None:
        return await ask_outline(self._link, wanted.path, self._tail_bytes, _REQUEST_S)

    @property
    def _tail_bytes(self) -> int:
        return LAST_BYTES if self._run_over else TAIL_BYTES

    async def _request_follow(self, *, tail_bytes: int) -> None:
        self._attached, self._is_answered = True, False
        operation = self._flow.follow_operation(self._link.next_id(), tail_bytes=tail_bytes)
        reply, _ = await self._link.bulk_request(operation, timeout_s=_REQUEST_S)
        requests.checked(reply, dict)
        self._is_answered = True  # the log's end has come with it and is shown: now it may be understood
        self._reading.wake()

    async def _load_growth(self, run: str) -> GrowthIndex:
        """Ask for the flight recorder of one of our runs, once; a hand-started run has none."""
        if run.startswith("hand:"):
            return self._growth.setdefault(run, GrowthIndex())
        reply, _ = await self._link.bulk_request(self._recorder(run), timeout_s=_REQUEST_S)
        records = requests.decode_records(reply.data, protocol.Growth) if reply.ok else []
        self._growth = {run: GrowthIndex(records, asked_bt=self._now() - self._bt_offset_s)}
        gpucurves.join(self._series, records, lambda bt: min(self._now(), bt + self._bt_offset_s))
        return self._growth[run]

    def dated(self, text: str) -> float | None:
        """Return when a line says that it was written, by the console's clock; None where it doesn't say."""
        stamp = read_stamp(text, self._zone_s)
        return stamp + self._wall_offset_s if stamp is not None else None

    async def _tell_step_times(self, effect: events.ReadHead) -> None:
        """Answer ReadHead by what the keeper noted; a step that was seen just now is in its notes a moment later."""
        growth = self._growth.get(effect.run, GrowthIndex())
        for _ in range(_NOTED_TRIES):
            if growth.last_size_bytes >= effect.ends[1]:
                break
            await asyncio.sleep(_NOTED_S)
            try:
                growth = await self._load_growth(effect.run)
            except ConsoleError:
                return  # asked again by the machine when the link is back
        one, two = (growth.written_bt(end) for end in effect.ends)
        first = None
        if one is not None and two is not None and not growth.was_truncated:
            first = (events.StepTime(effect.steps[0], one), events.StepTime(effect.steps[1], two))
        self._feed(events.StepTimesKnown(at=self._now(), run=effect.run, first=first, grew_bt=growth.last_bt))

    def _written_at(self, line: RawLine) -> float | None:
        """Return when a line was written, as the keeper noted it, else as the line says; None where neither tells."""
        growth = self._growth.get(self._wanted.run if self._wanted else "")
        bt = growth.written_bt(line.end_offset) if growth is not None else None
        if bt is not None:
            return min(self._now(), bt + self._bt_offset_s)
        said, now = self.dated(line.text), self._now()
        # One from ahead is of another zone or of a wrong clock: taken for now, all steps would be of one moment.
        if said is not None and said <= now + AHEAD_S:
            return min(now, said)
        return now if growth is not None and growth.goes_on else None

    # -- what comes in ------------------------------------------------------------------------------------------------

    def take(self, event: protocol.LogEvent, data: bytes, now: float) -> None:
        """Show what has come and then understand it, in its turn."""
        self._reading.put(event, data, now)

    def _show(self, event: protocol.LogEvent, data: bytes, now: float) -> bool:
        wanted = self._wanted
        if wanted is None or not self._attached or event.path != wanted.path:
            return False
        version = self._buffer.version
        self._shown.append(self._flow.show(event, data, self._written_at, now))
        if self._buffer.version != version:
            self._on_lines()
        return True

    def _understand(self, has_time: Callable[[], bool]) -> int | None:
        """Go on with the outline, then with the oldest of what was shown; return how many of the shown bytes are done
        with, None where nothing waits."""
        wanted = self._wanted
        if wanted is None or not self._is_answered:
            return None
        if self._outline:
            self._understand_part(wanted, self._outline.popleft())
            return 0
        if not self._shown:
            return None
        shown = self._shown[0]
        taken = self._flow.understand(shown, has_time)
        if taken.is_whole:
            self._shown.popleft()
        self._say(wanted, shown, taken)
        return shown.came_bytes if taken.is_whole else 0

    def _understand_part(self, wanted: events.FollowLog, part: Part) -> None:
        if not part.is_head:
            self._flow.take_between([(part.offset, part.data)], self._written_at, self._now())
            return
        samples = self._flow.take_head(
            part.data, self._written_at, self._now(), offset=part.offset, is_last=part.ends_head
        )
        self._say_history(wanted, samples)
        self._is_behind_head = part.ends_head
        self._head_steps += sum(sample.kind is Kind.STEP for sample in samples)
        if self._head_steps >= FIRST_STEPS and not part.ends_head:
            self._flow.gap()
            self._outline = thinned(self._outline)

    def _say(self, wanted: events.FollowLog, shown: Shown, taken: Taken) -> None:
        """Tell what a chunk, or the part of it that was understood, means."""
        event = shown.event
        if not taken.is_whole:
            event = msgspec.structs.replace(event, n=taken.read_until - event.offset)
        self._feed(events.LogSaid(at=shown.now, follow=wanted.follow, log=event))
        if event.n:
            self._say_history(wanted, taken.history)
            if taken.live or not taken.history:  # without any sample, too: lines were read
                self._say_samples(wanted, taken.live, is_history=False)
        if taken.phase:
            self._feed(events.PhaseSeen(at=shown.now, follow=wanted.follow, text=taken.phase))
        self._understood_to = taken.first_number + len(taken.lines)
        if taken.lines:
            self.end.scan(taken)
        self._say_history_read(wanted, shown, taken.read_until)
        was_caught_up = self._caught_up
        self._caught_up = event.size is not None and taken.read_until >= event.size
        self._marks.read(is_at_end=self._caught_up)
        if self._run_over or (self._caught_up and not was_caught_up):
            self.end.say(at_once=True)

    def _say_history_read(self, wanted: events.FollowLog, shown: Shown, read_until: int) -> None:
        """Tell once that all is read which was there when the log was asked for; a file that isn't there has none."""
        if self._told_history or (shown.event.size is not None and read_until < (shown.history_until or 0)):
            return
        self._told_history = True
        self._feed(events.HistoryRead(at=self._now(), follow=wanted.follow))

    def _at(self, bt: float | None) -> float:
        return bt + self._bt_offset_s if bt is not None else self._now()

    def _say_history(self, wanted: events.FollowLog, samples: tuple[Sample, ...]) -> None:
        """Tell samples from before we came; what the keeper's notes don't reach (it was lost) has no time."""
        noted_bytes = self._growth.get(wanted.run, GrowthIndex()).last_size_bytes
        for dated in (True, False):
            part = tuple(each for each in samples if (each.end_offset <= noted_bytes) is dated)
            if part:
                self._say_samples(wanted, part, is_history=True, dated=dated)

    def _say_samples(
        self, wanted: events.FollowLog, samples: tuple[Sample, ...], *, is_history: bool, dated: bool = False
    ) -> None:
        seen, understood, name = self._flow.understood
        self._feed(
            events.SamplesSeen(
                at=self._now(),
                follow=wanted.follow,
                samples=samples,
                live=not is_history,
                dated=dated,
                after_gap=self._is_behind_head,
                format=name,
                lines_seen=seen,
                lines_understood=understood,
            )
        )

    @property
    def _known_end(self) -> int:
        """One past the last line that was understood, and its marks."""
        return self._understood_to if self._shown else self._buffer.end
