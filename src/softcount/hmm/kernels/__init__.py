"""Compiled loops of `softcount.hmm`."""
