"""Agent and keeper: what runs on the training host.

Standard library only, Python 3.8 and later; imports nothing of ours outside this package.
"""
