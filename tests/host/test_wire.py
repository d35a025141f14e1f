"""What the agent keeps and what it drops when the console is slow."""

import os

import pytest

from console.host import wire


def test_telemetry_is_left_out_while_much_is_waiting_and_taken_again_after_that() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    outbox = wire.Outbox(writer)
    outbox.put({"re": 1, "fill": "x" * 200_000})
    outbox.flush()

    refused = outbox.offer({"ev": "procs"})
    while outbox.waiting_bytes:
        os.read(reader, 65536)
        outbox.flush()
    taken = outbox.offer({"ev": "procs"})

    assert (refused, taken) == (False, True)


def test_a_console_that_never_reads_is_given_up() -> None:
    outbox = wire.Outbox(-1)

    for _ in range(16):
        outbox.put({"re": 1, "fill": "x" * 1_000_000})

    with pytest.raises(wire.Overflow):
        outbox.put({"re": 1, "fill": "x" * 1_000_000})


def test_bytes_that_are_no_utf8_leave_as_question_marks() -> None:
    assert wire.encode({"argv": [os.fsdecode(b"a\xffb"), "é"]}) == '{"argv":["a?b","é"]}\n'.encode()


def test_lines_are_put_together_from_pieces_and_the_stream_ends() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    lines = wire.LineReader(reader)

    seen = [lines.read()]
    for piece in (b"one\ntw", b"o\n", b"\nthree"):
        os.write(writer, piece)
        seen.append(lines.read())
    os.close(writer)

    assert seen == [[], [b"one"], [b"two"], [b""]]
    assert lines.read() is None
