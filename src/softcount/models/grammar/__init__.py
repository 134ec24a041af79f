"""Probabilistic context-free grammars."""
