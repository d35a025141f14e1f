"""Bytes of a log into lines that are safe to show: the splitter and the cleaning of text.

Works incrementally; how the bytes were cut into chunks never changes what comes out. Keeps at most one unfinished line,
and of that no more than `KEEP_BYTES`. Never reads a clock or a file: offsets and arrival times come with the bytes.
Pure.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from console.state.lazy import lazy

MAX_CHARS: Final = 4096
"""Characters of one line that are kept; the rest is counted, not stored."""
KEEP_BYTES: Final = 4 * MAX_CHARS  # UTF-8 needs at most four bytes a character
_CUT: Final = " line cut]"
NUL_RUN: Final = 8
"""From this many leading NULs on (the hole that copytruncate leaves) they become a line of their own."""


class RawLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of the log, cleaned."""

    text: str
    """Without escapes and raw control characters, at most `MAX_CHARS` and a note long."""
    offset: int
    """Byte offset in the file at which the line starts."""
    end_offset: int
    """Byte offset just past the line and its newline."""
    at: float
    """When its last byte arrived, on the caller's clock."""
    partial: bool = False
    """Bytes are missing at its start or its end: what it says may be half a number."""
    cr: bool = False
    """A bare carriage return was in the line: it is a state of a progress bar, or was written over one."""
    frame: bool = False
    """A bar's state that was overwritten: metrics want it, the log pane does not."""


_ESCAPE: Final = lazy(
    "(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI: colours, cursor moves
    "|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c]{0,2048}(?:\x07|\x1b\\\\|\x9c)"  # OSC: titles, links, clipboard
    "|\x1b[PX^_][^\x1b\x9c]{0,2048}(?:\x1b\\\\|\x9c)"  # DCS, SOS, PM, APC
    "|\x1b[()*+][0-9A-Za-z]"  # character sets, as `tput sgr0` writes them
)
_VISIBLE: Final[dict[int, str]] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "\u2421",
    **{code: f"\\x{code:02x}" for code in range(0x80, 0xA0)},
    # Line separators, and marks that turn the direction of what follows.
    **{code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))},
}
_UNSAFE: Final = lazy("[" + "".join(map(re.escape, map(chr, _VISIBLE))) + "]")
_PRINTABLE: Final = bytes(range(0x20, 0x7F))
_BAR: Final = re.compile(rb"\d{1,3}%\|[^|]*\|[^\[\]|]{1,80}\[[^\]]*\]")


def clean(data: bytes) -> str:
    """Return text that no terminal acts on: escapes removed, other controls as visible characters."""
    if not data.translate(None, _PRINTABLE):
        return data.decode("ascii")
    text = data.decode("utf-8", "replace")
    if "\x1b" in text or "\x9b" in text or "\x9d" in text:
        text = _ESCAPE.sub("", text)
    if "\t" in text:
        text = text.expandtabs(8)
    return text.translate(_VISIBLE) if _UNSAFE.search(text) else text


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1_000_000 else f"{size_bytes / 1e3:.1f} kB"


def _shorten(data: bytes, size_bytes: int) -> str:
    """Clean the kept head of a line of `size_bytes` and cut it at `MAX_CHARS`, saying so."""
    text = clean(data)
    if size_bytes <= len(data) and len(text) <= MAX_CHARS:
        return text
    head = text[:MAX_CHARS].rstrip("\ufffd") if size_bytes > len(data) else text[:MAX_CHARS]
    return f"{head} … [{_size(size_bytes)}{_CUT}"


def is_cut(text: str) -> bool:
    """Whether the end of a line is not in its text."""
    return text.endswith(_CUT)


def cut_line(head: bytes, tail: bytes, offset: int, end_offset: int, at: float) -> list[RawLine]:
    """Return a line of which only the head and the tail were read: of a progress bar its last state, and what stands
    behind the hole that copytruncate leaves apart from it."""
    body = tail.rstrip(b"\r\n")
    size_bytes = end_offset - offset - (len(tail) - len(body))
    if not head.strip(b"\0"):
        behind = body.lstrip(b"\0")
        nuls = size_bytes - len(behind)
        hole = RawLine(text=_nul_text(nuls), offset=offset, end_offset=offset + nuls, at=at)
        if not behind:
            return [msgspec.structs.replace(hole, end_offset=end_offset)]
        text = _shorten(behind[:KEEP_BYTES], len(behind))
        return [hole, RawLine(text=text, offset=offset + nuls, end_offset=end_offset, at=at)]
    if b"\r" in body and (state := clean(body.rsplit(b"\r", 1)[1])).strip():
        return [RawLine(text=state[:MAX_CHARS], offset=offset, end_offset=end_offset, at=at, cr=True)]
    return [RawLine(text=_shorten(head, size_bytes), offset=offset, end_offset=end_offset, at=at)]


def _nul_text(count: int) -> str:
    return "\u2400" * count if count < NUL_RUN else f"[{count:,} NUL bytes]"


def _cuts(data: bytes) -> list[int]:
    """Return where records that were glued to the end of a bar begin."""
    if b"%|" not in data:
        return []
    ends = [match.end() for match in _BAR.finditer(data)]
    return [end for end in ends if clean(data[end:]).strip()]


class LineSplitter:
    """Cuts a stream of bytes into `RawLine`s: at LF, at CR LF, and inside a line at each bare CR.

    A line with bare CRs is a progress bar: it collapses to its last state that is not blank. Each earlier state is
    handed out, too, with `frame` set, as soon as the next one begins. A state that stands last, for hours perhaps, is
    `live()`.
    """

    def __init__(self, offset: int = 0, *, mid_line: bool = False) -> None:
        """Start at a byte offset; with `mid_line` it may lie inside a line, whose rest is handed out as partial."""
        self._begin(offset, mid_line=mid_line)

    @property
    def next_offset(self) -> int:
        """The offset at which the next bytes are expected."""
        return self._next

    def _begin(self, offset: int, *, mid_line: bool) -> None:
        self._next = offset
        self._torn = mid_line  # the start of the current line is missing
        self._start_line(offset)
        self._at = 0.0

    def _start_line(self, offset: int) -> None:
        self._line_offset = offset
        self._last_state: RawLine | None = None
        self._cr = False
        self._start_frame(offset)

    def _start_frame(self, offset: int) -> None:
        self._frame_offset = offset
        self._head = bytearray()
        self._size = 0
        self._nuls = 0
        self._cr_waits = False  # a CR came, and whether LF follows is not known yet

    def reset(self, offset: int, *, mid_line: bool = False) -> list[RawLine]:
        """Go on elsewhere (truncation, rotation, a gap); return the unfinished line, which will never be finished."""
        live = self.live()
        self._begin(offset, mid_line=mid_line)
        return [live] if live is not None else []

    def feed(self, data: bytes, offset: int, at: float) -> list[RawLine]:
        """Take the bytes that stand at `offset` and return the lines and bar states that they complete.

        Bytes that were seen before are skipped; a gap closes the unfinished line as partial, and so is the first line
        after it.
        """
        out: list[RawLine] = []
        if offset > self._next:
            out += self.reset(offset, mid_line=True)
        elif offset < self._next:
            data = data[self._next - offset :]
            offset = self._next
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._take_line(data[start:end], offset + start, at, out)
            start = end + 1
        if start < len(data):
            self._take(data[start:], offset + start, at, out)
        self._next = offset + len(data)
        return out

    def live(self) -> RawLine | None:
        """Return the current state of the unfinished line, or None where there is none."""
        end = self._frame_offset + self._size + self._cr_waits
        start, body = self._last_piece()
        if text := self._text(body):
            line_offset = start if start != self._frame_offset else self._line_offset
            if text.strip() or self._last_state is None:
                return self._line(text, line_offset, end, self._at, partial=True)
        if (state := self._last_state) is None:
            return None
        return self._line(state.text, self._line_offset, end, state.at, partial=True)

    # Whole lines

    def _take_line(self, body: bytes, offset: int, at: float, out: list[RawLine]) -> None:
        """Take the rest of a line whose LF follows."""
        plain = offset == self._line_offset and not self._torn and len(body) <= MAX_CHARS
        if plain and b"\r" not in body and b"%|" not in body and not body.startswith(b"\0"):
            end = offset + len(body) + 1
            text = clean(body)
            if len(text) > MAX_CHARS:
                text = _shorten(body, len(body))
            out.append(RawLine(text=text, offset=offset, end_offset=end, at=at))
            self._start_line(end)
            return
        if body:
            self._take(body, offset, at, out)
        self._end_line(offset + len(body) + 1, at, out)

    def _end_line(self, end: int, at: float, out: list[RawLine]) -> None:
        self._emit_glued(at, out)
        text = self._text(bytes(self._head))
        state = self._last_state
        if state is not None and not text.strip():
            text = state.text
        out.append(self._line(text, self._line_offset, end, at, partial=self._torn))
        self._torn = False
        self._start_line(end)

    # Parts of a line

    def _take(self, body: bytes, offset: int, at: float, out: list[RawLine]) -> None:
        """Take bytes without LF."""
        for number, part in enumerate(body.split(b"\r")):
            if number:
                self._cr_waits = True
                offset += 1
            if not part:
                continue
            if self._cr_waits:
                self._end_frame(offset, out)
            self._append(part, offset, at, out)
            self._at = at
            offset += len(part)

    def _append(self, part: bytes, offset: int, at: float, out: list[RawLine]) -> None:
        if not self._head and not self._size - self._nuls:
            rest = part.lstrip(b"\0")
            self._nuls += len(part) - len(rest)
            self._size += len(part) - len(rest)
            if not rest:
                return
            self._place_nuls(offset + len(part) - len(rest), at, out)
            part = rest
        self._size += len(part)
        if (room := KEEP_BYTES - len(self._head)) > 0:
            self._head += part[:room]

    def _place_nuls(self, offset: int, at: float, out: list[RawLine]) -> None:
        """Settle the NULs that stood before the first other byte of a frame: few belong to it, many are a line."""
        if self._nuls < NUL_RUN:
            self._head += bytes(self._nuls)
            self._nuls = 0
            return
        if (state := self._last_state) is not None:
            out.append(self._line(state.text, self._line_offset, self._frame_offset, state.at))
            self._line_offset = self._frame_offset
        out.append(self._line(_nul_text(self._nuls), self._line_offset, offset, at))
        self._start_line(offset)
        self._torn = False

    def _end_frame(self, next_offset: int, out: list[RawLine]) -> None:
        """A bare CR ended a frame that is not the last of its line."""
        self._cr = True
        glued = self._emit_glued(self._at, out)
        text = self._text(bytes(self._head))
        if glued and not _BAR.search(self._head):
            # A record after a bar was written to stay; the next state of the bar must not swallow it.
            out.append(self._line(text, self._line_offset, next_offset, self._at))
            self._line_offset, self._last_state = next_offset, None
        elif text.strip():
            state = self._line(text, self._frame_offset, next_offset, self._at, partial=self._torn, frame=True)
            out.append(state)
            self._last_state = state
            self._torn = False
        self._start_frame(next_offset)

    def _emit_glued(self, at: float, out: list[RawLine]) -> bool:
        """Hand out all but the last of the records that share the current frame; say whether there were any."""
        cuts = _cuts(bytes(self._head))
        done = 0
        for cut in cuts:
            end = self._frame_offset + cut
            out.append(
                self._line(clean(bytes(self._head[done:cut])), self._line_offset, end, at, partial=self._torn, cr=True)
            )
            self._line_offset, self._last_state, self._torn = end, None, False
            done = cut
        if done:
            del self._head[:done]
            self._size -= done
            self._frame_offset += done
        return bool(cuts)

    def _last_piece(self) -> tuple[int, bytes]:
        cuts = _cuts(bytes(self._head))
        cut = cuts[-1] if cuts else 0
        return self._frame_offset + cut, bytes(self._head[cut:])

    def _text(self, body: bytes) -> str:
        if self._nuls and not body:
            return _nul_text(self._nuls)
        kept = len(self._head)
        return _shorten(body, self._size - (kept - len(body)))

    def _line(
        self,
        text: str,
        offset: int,
        end: int,
        at: float,
        *,
        partial: bool = False,
        cr: bool = False,
        frame: bool = False,
    ) -> RawLine:
        return RawLine(text=text, offset=offset, end_offset=end, at=at, partial=partial, cr=cr or self._cr, frame=frame)
