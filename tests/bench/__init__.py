"""The budgets, measured: `python -m tests.bench` (`make bench`). Not tests."""
