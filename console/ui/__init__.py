"""The Textual app: screens, widgets, presentation, plot. Sees snapshots, never the link or the host."""

import os

# Textual puts off a paint by up to a turn of this rate. At its own 60 a key that comes right after new lines waits
# 17 ms for nothing. Where nothing has changed nothing is painted, at any rate.
os.environ.setdefault("TEXTUAL_FPS", "120")
