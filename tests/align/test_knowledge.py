"""What is known already: dictionaries, hard and soft, and links of some pairs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import DataError, LearnerError
from softcount.core.types import EStep
from tests.align.small import (
    AWKWARD,
    LEARNERS,
    MODELS,
    ONE_WAY,
    PAIRS,
    assert_same,
    directions,
    tables,
)

every = pytest.mark.parametrize("name", MODELS)
one_way = pytest.mark.parametrize("name", ONE_WAY)
LEARNED = [*ONE_WAY, "Aligner"]

DICTIONARY = {
    "S1": "T9",  # wrong, so that nothing but the dictionary can have said so
    "S2": ["T2", "T3"],
    "S3": {"T3": 3.0, "T4": 1.0},
    "S4": "nie",  # a target word that never occurs
    "niemals": "nimmer",  # nor does this source word
    "jamais": ["nimmer", "nie"],
}


@every
def test_a_dictionary_that_comes_later(name: str) -> None:
    model = MODELS[name]().fit(PAIRS)
    model.dictionary = {"S1": "T9", "S12": "T9"}
    model.partial_fit(PAIRS)
    there, *back = directions(model)
    assert row(there, "S1") == {"T9": 1.0}
    assert not back or set(row(back[0], "T9")) <= {"S1", "S12"}


def row(way: Any, word: str) -> dict[str, float]:
    """All that a word may become."""
    return {f: p for f, p in way.translations(word, 99) if p > 0.0}


def check_hard(way: Any) -> None:
    """The dictionary holds to the bit."""
    assert row(way, "S1") == {"T9": 1.0}
    assert row(way, "S4") == {"nie": 1.0}
    assert row(way, "niemals") == {"nimmer": 1.0}
    assert set(row(way, "S2")) <= {"T2", "T3"}
    assert sum(row(way, "S2").values()) == pytest.approx(1.0)
    assert row(way, "S3") == pytest.approx({"T3": 0.75, "T4": 0.25}, rel=1e-7)
    assert row(way, "jamais") == pytest.approx({"nimmer": 0.5, "nie": 0.5}, abs=0.5)
    assert len(row(way, "S5")) > 1


def check_backward(way: Any) -> None:
    """The other way round, weights are left to learning."""
    assert row(way, "T9") == {"S1": 1.0}
    assert set(row(way, "T3")) <= {"S2", "S3"}
    assert row(way, "T4") == {"S3": 1.0}
    assert set(row(way, "nie")) <= {"S4", "jamais"}
    assert len(row(way, "T6")) > 1


def check(model: Any) -> None:
    forward, *backward = directions(model)
    check_hard(forward)
    for way in backward:
        check_backward(way)


@every
def test_hard_entries_hold(name: str, tmp_path: Path) -> None:
    """After fit, after more pairs, and in files."""
    model = MODELS[name](dictionary=DICTIONARY).fit(PAIRS)
    check(model)
    model.save(tmp_path / "m")
    loaded = sc.load(tmp_path / "m")
    check(loaded)
    for either in (model, loaded):
        check(either.partial_fit([*PAIRS[:9], ("S1 S5 neu", "T9 T1 T5 new")]))


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", LEARNED)
def test_hard_entries_hold_for_every_learner(name: str, learner: str) -> None:
    settings = {"dictionary": DICTIONARY, "learner": LEARNERS[learner], "smoothing": 0.01}
    model = MODELS[name](**settings).fit(PAIRS)
    check(model)
    check(model.partial_fit(PAIRS[:9]))


@pytest.mark.parametrize("init", ["uniform", "random"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@one_way
def test_hard_entries_hold_from_any_start(name: str, dtype: str, init: str) -> None:
    check(MODELS[name](dictionary=DICTIONARY, dtype=dtype, init=init).fit(PAIRS))


@every
def test_a_dictionary_leads_alignments(name: str) -> None:
    """Nothing else is linked, right or wrong, and what it says is found."""
    model = MODELS[name](dictionary={"S1": "T9", "S2": ["T2", "T3"]}).fit(PAIRS)
    linked: Counter[str] = Counter()
    for (source, target), links in zip(PAIRS, model.align(), strict=True):
        es, fs = source.split(), target.split()
        linked.update(f"{es[i]} {fs[j]}" for i, j in links if es[i] in ("S1", "S2"))
    assert set(linked) <= {"S1 T9", "S2 T2", "S2 T3"}
    assert linked["S2 T2"] > 5


@one_way
def test_soft_entries_are_pseudo_counts(name: str) -> None:
    """One M-step: (c + s) / Σ, with the counts that are made without them."""
    once = sc.EM(max_iter=1, tol=0)
    settings = {"learner": once, "init": "uniform"}
    plain = MODELS[name](**settings).fit(PAIRS)
    soft = {"S1": "T9", "S2": {"T2": 0.5, "T3": 2.0}, "niemals": "nimmer"}
    told = MODELS[name](dictionary=soft, dictionary_strength=4.0, **settings).fit(PAIRS)
    counts: Counter[tuple[str, str]] = Counter()
    # at the start all t are alike: only places tell links apart
    even = MODELS[name](**settings).fit(PAIRS, keep_params=True).trace_.params[0]
    core, corpus = plain._bind(PAIRS)
    table = np.asarray(core.expect(even, corpus.everything, EStep()).counts["translation"])
    words, others = corpus.pairs.source.words, corpus.pairs.target.words
    for k, e in enumerate(corpus.lexicon.rows()):
        if e < len(words):
            counts[words[e], others[corpus.lexicon.targets[k]]] += table[k]
    for e, extra in (("S1", {"T9": 4.0}), ("S2", {"T2": 2.0, "T3": 8.0}), ("S5", {})):
        mass = Counter({f: c for (word, f), c in counts.items() if word == e})
        mass.update(extra)
        expected = {f: c / sum(mass.values()) for f, c in mass.items()}
        assert dict(told.translations(e, 99)) == pytest.approx(expected, abs=1e-12)
    assert told.translations("niemals") == [("nimmer", 1.0)]


@pytest.mark.parametrize("learner", ["EM", "VariationalBayes", "OnlineEM", "Gibbs"])
@pytest.mark.parametrize("name", LEARNED)
def test_soft_entries_shift_and_rule_nothing_out(name: str, learner: str) -> None:
    settings = {"learner": LEARNERS[learner], "smoothing": 0.01, "dictionary": {"S1": "T5"}}
    found = [
        dict(MODELS[name](dictionary_strength=s, **settings).fit(PAIRS).translations("S1", 99))
        for s in (0.01, 5.0, 500.0)
    ]
    assert found[0]["T5"] < found[1]["T5"] < found[2]["T5"] < 1.0
    assert found[2]["T5"] > 0.9
    assert all(row["T1"] > 0.0 for row in found)
    assert found[0]["T1"] > 0.5


def test_soft_entries_in_the_sampler() -> None:
    found = [
        dict(
            sc.align.GibbsAligner(dictionary={"S1": "T5"}, dictionary_strength=s)
            .fit(PAIRS)
            .translations("S1", 99)
        )
        for s in (0.01, 500.0)
    ]
    assert found[0]["T1"] > 0.5
    assert found[1]["T5"] > 0.9
    assert found[1]["T1"] > 0.0


@every
def test_forms(name: str) -> None:
    forms: list[Any] = [
        {"S1": "T9", "S2": ["T2", "T3"]},
        {"S1": ["T9"], "S2": ("T2", "T3")},
        [("S1", "T9"), ("S2", "T2"), ["S2", "T3"]],
        (("S1", "T9"), ("S2", "T2"), ("S2", "T3")),
    ]
    found = [tables(MODELS[name](dictionary=form).fit(PAIRS)) for form in forms]
    for other in found[1:]:
        assert_same(found[0], other)


@every
def test_lower_case_is_for_the_dictionary_too(name: str) -> None:
    pairs = [("The House", "Das Haus"), ("the BOOK", "das Buch"), ("house", "haus")]
    told = {"House": "HAUS", "the": "Das"}
    model = MODELS[name](dictionary=told, lowercase=True).fit(pairs)
    forward = next(iter(directions(model)))
    assert row(forward, "house") == {"haus": 1.0}
    assert row(forward, "the") == {"das": 1.0}
    assert "House" not in model.source_words_
    assert model.align([("THE HOUSE", "DAS HAUS")]) == [[(0, 0), (1, 1)]]


NO_DICTIONARIES: list[Any] = [
    *(5, "S1", [("S1",)], ["S1 T1"], zip(["S1"], ["T1"], strict=True)),
    *({"S1": None}, {"S1": 5}, {"S1": []}, {"S1": {}}),
    *({"S1": {"T1": weight}} for weight in ("much", None, 0.0, -1.0, np.inf, np.nan)),
]


@every
def test_what_is_no_dictionary(name: str) -> None:
    for bad in NO_DICTIONARIES:
        with pytest.raises(LearnerError, match="dictionary"):
            MODELS[name](dictionary=bad).fit(PAIRS)


@every
def test_an_empty_dictionary_says_nothing(name: str) -> None:
    empty, none = (MODELS[name](dictionary=d).fit(PAIRS) for d in ({}, None))
    assert_same(tables(empty), tables(none))


# links
LINKS: list[Any] = [[(0, len(target.split()) - 1)] for _, target in PAIRS[:10]]
LINKS += [None, []] * 15


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", LEARNED)
def test_known_links_hold(name: str, dtype: str) -> None:
    """The first word is said to be the last one of its translation, right or wrong."""
    model = MODELS[name](dtype=dtype, smoothing=0.01).fit(PAIRS, links=LINKS)
    check_links(model)


def test_known_links_hold_in_the_sampler() -> None:
    check_links(sc.align.GibbsAligner().fit(PAIRS, links=LINKS))


def check_links(model: Any) -> None:
    found, probabilities = model.align(), model.posteriors()
    for links, matrix, known in zip(found, probabilities, LINKS, strict=True):
        for i, j in known or ():
            assert (i, j) in links
            assert matrix[i, j] == pytest.approx(1.0, abs=1e-6)
    if hasattr(model, "forward_"):
        for method in ("forward", "backward", "intersection", "grow-diag-final-and"):
            for links, known in zip(model.align(method=method), LINKS, strict=True):
                assert {*(known or ())} <= {*links}, method
        back = model.backward_.align()
        for links, known in zip(back, LINKS, strict=True):
            assert {(j, i) for i, j in known or ()} <= {*links}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", LEARNED)
def test_known_links_hold_for_every_learner(name: str, learner: str) -> None:
    settings = {"learner": LEARNERS[learner], "smoothing": 0.01}
    check_links(MODELS[name](**settings).fit(PAIRS, links=LINKS))


@one_way
def test_one_of_several_known_links(name: str) -> None:
    """A target word that has any comes from one of these; others are free, but not less."""
    links: list[Any] = [None] * len(PAIRS)
    n = next(n for n, (source, _) in enumerate(PAIRS) if len(source.split()) == 4)
    links[n] = [(0, 1), (3, 1)]
    model = MODELS[name]().fit(PAIRS, links=links)
    matrix = model.posteriors()[n]
    np.testing.assert_allclose(matrix[[0, 3], 1].sum(), 1.0)
    assert matrix[[1, 2], 1].tolist() == [0.0, 0.0]
    free = [link for link in model.align()[n] if link[1] != 1]
    assert free
    assert model.posteriors([PAIRS[n]])[0][[1, 2], 1].sum() > 0.0  # of a new pair nothing is known


@pytest.mark.parametrize("name", [*ONE_WAY, "Aligner", "GibbsAligner"])
def test_known_links_teach(name: str) -> None:
    pairs = [("a b", "x y")] * 6
    model = MODELS[name]().fit(pairs, links=[[(0, 1), (1, 0)]] * 5 + [None])
    assert model.align(pairs[1:2]) == [[(0, 1), (1, 0)]]


@every
def test_known_links_of_more_pairs(name: str) -> None:
    model = MODELS[name]().fit(PAIRS)
    more = PAIRS[:3]
    known = [[(0, len(target.split()) - 1)] for _, target in more]
    model.partial_fit(more, links=known)
    for links, (link,) in zip(model.align(), known, strict=True):
        assert link in links


@every
def test_known_links_with_empty_sides(name: str) -> None:
    pairs = [("", "T1"), *PAIRS[:3], ("S1", ""), *PAIRS[3:]]
    links = [None, *LINKS[:3], [], *LINKS[3:]]
    found = MODELS[name]().fit(pairs, links=links).align()
    assert found[0] == found[4] == []
    for aligned, known in zip(found, links, strict=True):
        assert {*(known or ())} <= {*aligned}


@every
def test_bad_links(name: str) -> None:
    pairs = AWKWARD
    good: list[Any] = [None] * len(pairs)
    bad: list[tuple[int, Any]] = [(1, [(1, 0)]), (1, [(0, 1)]), (1, [(-1, 0)]), (0, [(0, 0)])]
    bad += [(1, [(0,)]), (1, [5]), (1, ["0-0"]), (1, [(0, 0, 0)]), (1, [("a", "b")])]
    for n, links in bad:
        given = [*good]
        given[n] = links
        with pytest.raises(DataError, match=f"pair {n}"):
            MODELS[name]().fit(pairs, links=given)
    with pytest.raises(DataError, match="one list of links for each pair"):
        MODELS[name]().fit(pairs, links=good[:-1])


@one_way
def test_nothing_known_changes_nothing(name: str) -> None:
    plain, told = (MODELS[name]().fit(PAIRS, links=links) for links in (None, [None, []] * 20))
    assert_same(tables(plain), tables(told))


@pytest.mark.parametrize("name", ["IBM1", "HMMAligner"])
def test_links_and_dictionary_that_contradict_each_other(name: str) -> None:
    model = MODELS[name](dictionary={"S1": "T1"})
    with pytest.raises(sc.errors.ImpossibleItem, match="pair 1"):
        model.fit([("S1", "T1"), ("S1 S2", "T1 T2")], links=[None, [(0, 1)]])
