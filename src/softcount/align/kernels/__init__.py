"""Compiled loops of `softcount.align`."""
