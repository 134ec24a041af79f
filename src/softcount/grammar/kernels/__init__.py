"""Compiled loops of `softcount.grammar`."""
