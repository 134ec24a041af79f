"""Aligners of one direction: IBM Models 1 and 2, the diagonal one, and the hidden Markov model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.errors import LearnerError, shown
from softcount.families.large import LargeTable
from softcount.models.alignment.core import AlignmentCore, Model1Core, Sizes
from softcount.models.alignment.hmm import HMMCore
from softcount.models.alignment.model import OneWay
from softcount.models.alignment.places import PLACES, DiagonalCore, Model2Core
from softcount.models.settings import check_number, check_whole
from softcount.types import Array


def check_share(name: str, value: Any) -> None:
    """Complain unless ``value`` is at least 0 and below 1."""
    check_number(name, value)
    if value >= 1.0:
        raise LearnerError(f"{name}={shown(value)}: must be below 1", "0.1 is usual")


@dataclass(kw_only=True, eq=False, repr=False)
class IBM1(OneWay):
    """IBM Model 1: every source word is as likely as any other to be a target word's origin.

    p(f | e) = Π_j 1/(l + 1) Σ_i t(f_j | e_i) (Brown, Della Pietra, Della Pietra & Mercer 1993).
    Its likelihood is concave: EM finds the best table from wherever it begins.

    ``null``                 target words may also come from the empty word
    ``smoothing``            pseudo-counts of every pair of words that occur together (for learners
                             that need a prior, the Dirichlet prior itself)
    ``stem``                 words that begin with the same so many letters lend each other counts:
                             rare words are known by their relatives
    ``stem_strength``        how many counts each source word is lent
    ``dictionary``           {"house": "maison"}: all that "house" may become. One translation has
                             probability 1; with several, learning weighs them, unless their weights
                             are given: {"house": {"maison": 0.8, "chambre": 0.2}}
    ``dictionary_strength``  so many pseudo-counts for each entry of the dictionary instead: other
                             translations stay possible
    ``lowercase``            all words in lower case
    ``dtype``                numbers of 64 bits, or of 32: half the memory

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> model = IBM1(null=False).fit(pairs)
    >>> model.align([("the book", "das buch")])
    [[(0, 0), (1, 1)]]
    """

    def made_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return Model1Core("IBM1", table, self.null, sizes)


@dataclass(kw_only=True, eq=False, repr=False)
class IBM2(OneWay):
    """IBM Model 2: places have a table d(i | j, l, m) of their own (Brown et al. 1993).

    ``warm_up``  so many steps of Model 1 come first

    For the other settings see `IBM1`.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> IBM2(null=False).fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    warm_up: int = 5

    def made_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return Model2Core("IBM2", table, self.null, sizes)


@dataclass(kw_only=True, eq=False, repr=False)
class Diagonal(OneWay):
    """Model 2 with one number for all places: how near they are to the diagonal.

    d(i | j, l, m) ∝ exp(−λ |i/l − j/m|); the tension λ is learned (Dyer, Chahuneau & Smith 2013).

    ``p_null``   the probability that a target word comes from the empty word
    ``tension``  the λ to begin with
    ``warm_up``  so many steps of Model 1 come first

    For the other settings see `IBM1`.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> Diagonal().fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    p_null: float = 0.08
    tension: float = 4.0
    warm_up: int = 0

    def made_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return DiagonalCore("Diagonal", table, self.null, sizes, self.p_null)

    def _check_settings(self) -> None:
        super()._check_settings()
        check_share("p_null", self.p_null)
        check_number("tension", self.tension, "0: all places are as likely; 4 is usual")

    def places_start(self, core: AlignmentCore) -> dict[str, Array]:
        return {PLACES: np.array([float(self.tension)])}


WIDEST = 10_000
"""No sentence has jumps as wide as this."""


@dataclass(kw_only=True, eq=False, repr=False)
class HMMAligner(OneWay):
    """The hidden Markov model: a place depends on the one before it by the width of the jump.

    p(f | e) = Σ_a Π_j p(a_j | a_{j−1}, l) t(f_j | e_{a_j}) (Vogel, Ney & Tillmann 1996), with the
    empty word as Och & Ney (2003) have it.

    ``p_null``     the probability that a target word comes from the empty word
    ``max_jump``   wider jumps are all as likely as one of this width
    ``warm_up``    so many steps of Model 1 come first

    For the other settings see `IBM1`.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> HMMAligner().fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    p_null: float = 0.1
    max_jump: int = 20
    warm_up: int = 5

    def made_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return HMMCore("HMMAligner", table, self.null, self.p_null, self.max_jump, sizes)

    def _check_settings(self) -> None:
        super()._check_settings()
        check_share("p_null", self.p_null)
        check_whole("max_jump", self.max_jump)
        if self.max_jump > WIDEST:
            raise LearnerError(f"max_jump={self.max_jump} is too wide", f"{WIDEST} at most")
