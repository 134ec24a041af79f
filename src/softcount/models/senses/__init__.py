"""Senses of a word, found by what stands around it."""

from softcount.models.senses.findings import Sense
from softcount.models.senses.inducer import SenseInducer

__all__ = ["Sense", "SenseInducer"]
