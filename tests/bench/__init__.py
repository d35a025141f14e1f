"""The budgets, measured: `python -m tests.bench` (`make bench`). Not tests: no machine's speed decides whether they pass."""
