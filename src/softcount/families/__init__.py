"""Families: how sufficient statistics become parameters, whatever the model they belong to."""

from softcount.families.categorical import Categorical, SparseCategorical, StickBreaking
from softcount.families.gaussian import NIW, Gaussian
from softcount.families.loglinear import LogLinear

__all__ = ["NIW", "Categorical", "Gaussian", "LogLinear", "SparseCategorical", "StickBreaking"]
