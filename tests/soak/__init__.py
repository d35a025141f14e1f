"""Half an hour of everything that happens to a log and its console, in a few minutes: nothing may grow by it."""
