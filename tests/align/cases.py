"""Small corpora for alignment models, and the models' arrays read as the oracle's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from softcount.align.core import (
    DiagonalCore,
    HMMAlignmentCore,
    IBM1Core,
    IBM2Core,
    ShardEStep,
)
from softcount.align.data import BitextCorpus, make_constraints
from softcount.core.types import EStep
from softcount.families.large import LargeTable
from softcount.text.bitext import as_bitext
from tests.oracles import alignments as oracle

KINDS = ("model 1", "model 2", "diagonal", "chain")
Data = Sequence[tuple[list[str], list[str]]]
Links = Sequence[Sequence[tuple[int, int]] | None]


class Case(NamedTuple):
    """Pairs, links that are known, and settings."""

    data: Data
    known: Links | None
    null: bool
    seed: int
    zeros: float = 0.0
    reach: int = 2
    p_null: float = 0.2

    def corpus(self) -> BitextCorpus:
        pairs = as_bitext(self.data)
        return BitextCorpus(pairs, self.null, make_constraints(self.known, pairs))

    def links(self, n: int) -> Sequence[tuple[int, int]]:
        return (self.known[n] if self.known else None) or ()

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


@st.composite
def cases(draw: Any, most_pairs: int = 3, longest: int = 3) -> Case:
    """A few pairs of a few words; one may have an empty side, some may have known links."""
    sentence = st.lists(st.sampled_from("abc"), min_size=1, max_size=longest)
    pairs = draw(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=most_pairs))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng((seed, 1))
    known: list[Any] = [None] * len(pairs)
    if rng.random() < 0.4:
        known = [
            [
                (int(rng.integers(len(es))), int(rng.integers(len(fs))))
                for _ in range(rng.poisson(1))
            ]
            for es, fs in pairs
        ]
    if rng.random() < 0.4:
        at = int(rng.integers(len(pairs) + 1))
        pairs.insert(at, [([], ["a"]), (["b"], []), ([], [])][int(rng.integers(3))])
        known.insert(at, None)
    return Case(
        [(es, [f.upper() for f in fs]) for es, fs in pairs],
        known if any(known) else None,
        bool(rng.integers(2)),
        seed,
        float(rng.choice([0.0, 0.2, 0.5])),
        int(rng.integers(1, 4)),
        float(rng.choice([0.02, 0.3, 0.9])),
    )


def core_of(kind: str, corpus: BitextCorpus, case: Case, prior: float = 1.0, **options: Any) -> Any:
    lexicon = corpus.lexicon
    table = LargeTable(lexicon.indptr, lexicon.targets, prior=prior, **options)
    sizes = corpus.everything.sizes
    if kind == "model 1":
        return IBM1Core(kind, table, corpus.null, sizes)
    if kind == "model 2":
        return IBM2Core(kind, table, corpus.null, sizes, prior)
    if kind == "diagonal":
        return DiagonalCore(kind, table, corpus.null, sizes, case.p_null)
    return HMMAlignmentCore(kind, table, corpus.null, case.p_null, case.reach, sizes, prior)


def random_params(core: Any, case: Case) -> dict[str, np.ndarray]:
    """Unequal parameters, some of which are zero."""
    rng = case.rng()
    params = {name: family.random(rng) for name, family in core.families.items()}
    for name in params:
        if len(params[name]) > 1:  # a tension of zero is nothing special
            params[name] *= rng.random(len(params[name])) >= case.zeros
    return params


def matrices(core: Any, params: Any, shard: Any, how: EStep) -> list[np.ndarray]:
    """What an E-step makes of the links of every pair, (l + 1, m); the empty word is last."""
    step, found = ShardEStep(core, params, shard, how), []
    for block in shard.blocks():
        found.extend(matrix.copy() for matrix in block.matrices(step.posteriors(block)))
    return found


# layouts, written out


def word_pairs(corpus: BitextCorpus) -> list[tuple[str | None, str]]:
    """(e, f) of every entry of the table of translations."""
    sources, targets = corpus.pairs.source.words, corpus.pairs.target.words
    borders = corpus.lexicon.indptr
    return [
        (sources[row] if row < len(sources) else None, targets[f])
        for row in range(len(borders) - 1)
        for f in corpus.lexicon.targets[borders[row] : borders[row + 1]]
    ]


def shapes(data: Data) -> list[tuple[int, int]]:
    return sorted({(len(es), len(fs)) for es, fs in data if es and fs})


def place_keys(kind: str, case: Case) -> list[tuple[Any, ...]]:
    """The event of every count of the family of places."""
    if kind == "model 1":
        return []
    if kind == "model 2":
        return [(l, m, j, i) for l, m in shapes(case.data) for j in range(m) for i in with_null(l)]
    if kind == "diagonal":
        return [(l, m, j, i) for l, m in shapes(case.data) for i in with_null(l) for j in range(m)]
    jumps = [("width", d) for d in range(-case.reach, case.reach + 1)]
    firsts = [("start", k) for k in range(1, case.reach + 1)]
    lengths = sorted({l for l, _ in shapes(case.data)})
    return [*jumps, *firsts, *(("left", l, h) for l in lengths for h in range(l + 1))]


def with_null(l: int) -> list[int | None]:
    return [*range(l), None]


def places_of(kind: str, case: Case, params: Mapping[str, np.ndarray]) -> oracle.Places:
    p0 = case.p_null if case.null else 0.0
    if kind == "model 1":
        return oracle.Even(case.null)
    if kind == "model 2":
        keys = place_keys(kind, case)
        return oracle.Tabled(dict(zip(keys, params["places"].tolist(), strict=True)))
    if kind == "diagonal":
        return oracle.Diagonal(float(params["places"][0]), p0)
    return chain_of(case, params["jumps"], p0)


def chain_of(case: Case, weights: np.ndarray, p0: float) -> oracle.Chain:
    widths = range(-case.reach, case.reach + 1)
    cut = len(widths)
    return oracle.Chain(
        dict(zip(widths, weights[:cut].tolist(), strict=True)),
        dict(zip(range(1, case.reach + 1), weights[cut:].tolist(), strict=True)),
        p0,
    )


def all_listed(
    kind: str, case: Case, corpus: BitextCorpus, params: Mapping[str, np.ndarray]
) -> dict[int, oracle.AllAlignments]:
    """All alignments of every pair that has two sides, by the pair's number."""
    t = dict(zip(word_pairs(corpus), params["translation"].tolist(), strict=True))
    places = places_of(kind, case, params)
    return {
        n: oracle.listed(es, fs, t, places, case.null, case.links(n))
        for n, (es, fs) in enumerate(case.data)
        if es and fs
    }
