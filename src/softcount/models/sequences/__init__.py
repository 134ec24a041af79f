"""Hidden Markov models for sequences."""

from softcount.models.sequences.estimators import HMM

__all__ = ["HMM"]
