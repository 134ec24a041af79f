"""Families: how sufficient statistics become parameters, whatever the model they belong to."""

from softcount.families.categorical import Categorical, SparseCategorical
from softcount.families.gaussian import NIW, Gaussian
from softcount.families.loglinear import LogLinear
from softcount.families.stick import StickBreaking

__all__ = ["NIW", "Categorical", "Gaussian", "LogLinear", "SparseCategorical", "StickBreaking"]
