"""How many classes? Documents of ten classes are simulated, and the number is looked for.

python examples/how_many.py       # writes select.svg
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

import softcount as sc

CLASSES, WORDS, DOCUMENTS, LENGTH = 10, 200, 1000, 50


def documents(seed: int = 0) -> csr_matrix:
    """Counts of words: each document has one of ten classes, each class words of its own."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(WORDS, 0.3), size=CLASSES)
    classes = rng.integers(CLASSES, size=DOCUMENTS)
    lengths = rng.poisson(LENGTH, size=DOCUMENTS)
    return csr_matrix([rng.multinomial(n, words[z]) for n, z in zip(lengths, classes, strict=True)])


if __name__ == "__main__":
    model = sc.MultinomialMixture(learner=sc.EM(n_init=3, tol=1e-4))
    found = sc.select(model, documents(), k=range(4, 17), by="heldout")
    print(found)
    Path("select.svg").write_text(found.svg(), encoding="utf-8")
