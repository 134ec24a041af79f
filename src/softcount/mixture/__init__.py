"""Mixtures: each item has one hidden class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcount.lazy import attach

if TYPE_CHECKING:
    from softcount.mixture.documents import MultinomialMixture
    from softcount.mixture.model_selection import (
        SemiSupervisedKFold,
        UnlabelledWarning,
        labelled_scorer,
    )
    from softcount.mixture.naive_bayes import CollapseWarning, NaiveBayes, NaiveBayesCV
    from softcount.mixture.points import GaussianMixture, KMeans, SoftKMeans
    from softcount.mixture.process import DirichletProcessGaussianMixture, DirichletProcessMixture

__all__ = [
    "CollapseWarning",
    "DirichletProcessGaussianMixture",
    "DirichletProcessMixture",
    "GaussianMixture",
    "KMeans",
    "MultinomialMixture",
    "NaiveBayes",
    "NaiveBayesCV",
    "SemiSupervisedKFold",
    "SoftKMeans",
    "UnlabelledWarning",
    "labelled_scorer",
]
__getattr__, __dir__ = attach(
    __name__,
    {
        "softcount.mixture.documents": ("MultinomialMixture",),
        "softcount.mixture.model_selection": (
            "SemiSupervisedKFold",
            "UnlabelledWarning",
            "labelled_scorer",
        ),
        "softcount.mixture.naive_bayes": (
            "CollapseWarning",
            "NaiveBayes",
            "NaiveBayesCV",
        ),
        "softcount.mixture.points": (
            "GaussianMixture",
            "KMeans",
            "SoftKMeans",
        ),
        "softcount.mixture.process": (
            "DirichletProcessGaussianMixture",
            "DirichletProcessMixture",
        ),
    },
)
