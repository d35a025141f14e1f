"""The Textual app: screens, widgets, presentation, plot. Sees snapshots, never the link or the host."""
