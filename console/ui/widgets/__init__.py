"""Widgets: they show frozen views and send messages; they hold no logic about runs."""
