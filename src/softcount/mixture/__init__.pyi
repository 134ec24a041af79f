from softcount.mixture.documents import MultinomialMixture as MultinomialMixture
from softcount.mixture.labelled_scores import UnlabelledWarning as UnlabelledWarning
from softcount.mixture.model_selection import SemiSupervisedKFold as SemiSupervisedKFold
from softcount.mixture.model_selection import labelled_scorer as labelled_scorer
from softcount.mixture.naive_bayes import CollapseWarning as CollapseWarning
from softcount.mixture.naive_bayes import NaiveBayes as NaiveBayes
from softcount.mixture.naive_bayes import NaiveBayesCV as NaiveBayesCV
from softcount.mixture.points import GaussianMixture as GaussianMixture
from softcount.mixture.points import KMeans as KMeans
from softcount.mixture.points import SoftKMeans as SoftKMeans
from softcount.mixture.process import (
    DirichletProcessGaussianMixture as DirichletProcessGaussianMixture,
)
from softcount.mixture.process import DirichletProcessMixture as DirichletProcessMixture
