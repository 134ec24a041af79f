"""A model added by following "How to add a model" in CONTRIBUTING.md: a mixture of Poissons.

Items are counts (goals in a match, commas in a sentence). Each comes from one of a few hidden
classes, and class k has a rate λ_k.

>>> from examples.new_model import PoissonMixture
>>> model = PoissonMixture(2, n_init=5).fit([0, 1, 0, 2, 1, 9, 11, 8, 10, 12])
>>> model.predict([1, 10]).tolist() == model.predict([0, 12]).tolist()
True
"""

from examples.new_model.core import PoissonMixtureCore
from examples.new_model.estimators import PoissonMixture

__all__ = ["PoissonMixture", "PoissonMixtureCore"]
