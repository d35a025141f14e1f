"""Tests of what runs on the training host: real processes, real files, no SSH."""
