"""Mixtures: each item has one hidden class."""

from softcount.models.mixture.folds import SemiSupervisedKFold
from softcount.models.mixture.naive_bayes import CollapseWarning, NaiveBayes
from softcount.models.mixture.naive_bayes_cv import NaiveBayesCV
from softcount.models.mixture.points import GaussianMixture, KMeans, SoftKMeans
from softcount.models.mixture.process import (
    DirichletProcessGaussianMixture,
    DirichletProcessMixture,
)
from softcount.models.mixture.scoring import UnlabelledWarning, labelled_scorer
from softcount.models.mixture.words import MultinomialMixture

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
