"""Probabilistic context-free grammars."""

from softcount.models.grammar.estimators import PCFG

__all__ = ["PCFG"]
