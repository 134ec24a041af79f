"""Short sentences of the training domain come out sensibly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count, pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import softcount as sc
from softcount.translate import Translator
from softcount.translate.language_model import LanguageModel
from tests import real

Pairs = list[tuple[list[str], list[str]]]


@dataclass
class PlainModel1:
    """IBM Model 1 with every link written out: five rounds of EM."""

    source_words_: list[str]
    target_words_: list[str]
    t: Any

    def table(self) -> csr_matrix:
        return self.t


def model1(pairs: Pairs) -> PlainModel1:
    sources, targets = (
        dict(zip(dict.fromkeys(chain.from_iterable(side)), count(), strict=False))
        for side in zip(*pairs, strict=True)
    )
    null = len(sources)
    links = [
        (null if e is None else sources[e], targets[f], (n, j))
        for n, (es, fs) in enumerate(pairs)
        for j, f in enumerate(fs)
        for e in (*es, None)
    ]
    rows, columns = np.array([link[:2] for link in links]).T
    token = np.cumsum([0] + [a[2] != b[2] for a, b in pairwise(links)])
    keys, entry = np.unique(rows * len(targets) + columns, return_inverse=True)
    t = np.ones(len(keys))
    for _ in range(5):
        share = t[entry] / np.bincount(token, t[entry])[token]
        counts = np.bincount(entry, share)
        t = counts / np.bincount(keys // len(targets), counts)[keys // len(targets)]
    table = csr_matrix((t, np.divmod(keys, len(targets))), (null + 1, len(targets)))
    return PlainModel1(list(sources), list(targets), table)


@pytest.fixture(scope="module")
def spanish() -> Translator:
    pairs = real.parallel("collins_es_en/train.en.gz", "collins_es_en/train.es.gz", n=10_000)
    short = [pair for pair in pairs if len(pair[0]) + len(pair[1]) <= 40]
    channel = sc.align.IBM1(learner=sc.EM(max_iter=5, tol=0)).fit(short)
    return Translator(channel, LanguageModel(3).fit([english for english, _ in pairs]))


@pytest.mark.slow
def test_the_channel_is_model_1() -> None:
    """Against one that has every link written out."""
    pairs = real.parallel("collins_es_en/train.en.gz", "collins_es_en/train.es.gz", n=400)
    plain, ours = model1(pairs), sc.align.IBM1(learner=sc.EM(max_iter=5, tol=0)).fit(pairs)
    assert ours.source_words_ == plain.source_words_
    assert ours.target_words_ == plain.target_words_
    np.testing.assert_allclose(ours.table().toarray(), plain.table().toarray(), atol=1e-12)


@pytest.mark.slow
def test_both_directions_make_a_channel_too() -> None:
    pairs = real.parallel("collins_es_en/train.en.gz", "collins_es_en/train.es.gz", n=3000)
    language = LanguageModel(3).fit([english for english, _ in pairs])
    translator = Translator(sc.Aligner().fit(pairs), language)
    assert str(translator.translate("señor presidente")) == "mr president"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("señor presidente", "mr president"),
        ("los estados miembros de la unión europea", "the member states of the european union"),
        ("la comisión europea debe actuar .", "the european commission must act ."),
    ],
)
def test_short_sentences(spanish: Translator, x: str, y: str) -> None:
    assert str(spanish.translate(x)).removesuffix(" .") == y.removesuffix(" .")


@pytest.mark.slow
def test_both_parts_are_needed(spanish: Translator) -> None:
    x = "la unión europea es una comunidad de estados ."
    why = spanish.explain(x, 5)
    best, channel, language = why.best[0], why.channel_alone, why.language_alone
    assert "european union" in str(best)
    assert "european union" not in str(channel)  # word by word, rare words, Spanish order
    assert channel.channel > best.channel > language.channel
    assert channel.language < best.language
