"""Presentation: pure functions from a Snapshot (and series) to frozen lines of spans.

No widget, no clock, no I/O lives here; time arrives as `Snapshot.at`. Widgets show what these functions return.
"""
