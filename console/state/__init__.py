"""Pure: launch machine, health, series, log buffer, metric formats, snapshot.

Time is in the events; nothing here does I/O, reads a clock or logs.
"""
