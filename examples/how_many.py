"""How many classes? Simulate documents of ten classes, and choose the number by held-out data.

python examples/how_many.py       # writes select.svg
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

import softcount as sc

CLASSES, WORDS, DOCUMENTS, LENGTH = 10, 200, 1000, 50


def documents(seed: int = 0) -> csr_matrix:
    """Simulate word counts: each document has one of ten classes with their own words."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(WORDS, 0.3), size=CLASSES)
    classes = rng.integers(CLASSES, size=DOCUMENTS)
    lengths = rng.poisson(LENGTH, size=DOCUMENTS)
    return csr_matrix([rng.multinomial(n, words[z]) for n, z in zip(lengths, classes, strict=True)])


if __name__ == "__main__":
    model = sc.MultinomialMixture(learner=sc.EM(n_init=3, tol=1e-4))
    selection = sc.select(model, documents(), k=range(4, 17), by="heldout")
    print(selection)
    Path("select.svg").write_text(selection.svg(), encoding="utf-8")
