"""Tests of dflash-console; the folders mirror console/."""
