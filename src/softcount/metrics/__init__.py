"""Evaluation: clustering, held-out likelihood, model selection, topics, rankings, word alignments,
tags, trees."""

from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
