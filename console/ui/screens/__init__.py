"""Screens: which widgets stand where, and what a key does."""
