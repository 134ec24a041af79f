"""From posteriors to links: own pairs and new ones, thresholds, methods, odd pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.align.decoding import symmetrise
from softcount.core.errors import DataError, LearnerError
from softcount.text.bitext import as_bitext
from tests.align.small import (
    AWKWARD,
    MODELS,
    ONE_WAY,
    PAIRS,
    assert_alike,
)

every = pytest.mark.parametrize("name", MODELS)
one_way = pytest.mark.parametrize("name", ONE_WAY)
LEARNED = [*ONE_WAY, "Aligner"]
FITTED: dict[str, Any] = {}


def fitted(name: str) -> Any:
    """Learned from all pairs, once; nothing here changes it."""
    if name not in FITTED:
        FITTED[name] = MODELS[name]().fit(PAIRS)
    return FITTED[name]


def size(pair: tuple[str, str]) -> tuple[int, int]:
    return len(pair[0].split()), len(pair[1].split())


@pytest.mark.parametrize("name", LEARNED)
def test_own_pairs_are_like_new_ones(name: str) -> None:
    """But for translations below 10⁻⁹, which new pairs do not rule out."""
    model = fitted(name)
    for ours, theirs in zip(model.posteriors(), model.posteriors(list(PAIRS)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert model.align() == model.align(list(PAIRS))


@every
def test_pairs_in_any_form(name: str) -> None:
    model = fitted(name)
    expected = model.align(list(PAIRS[:5]))
    texts = [f"{source} ||| {target}" for source, target in PAIRS[:5]]
    lists = [(source.split(), target.split()) for source, target in PAIRS[:5]]
    for form in (texts, lists, as_bitext(PAIRS[:5]), iter(PAIRS[:5]), tuple(PAIRS[:5])):
        assert model.align(form) == expected


@every
def test_output_matches_input(name: str) -> None:
    """A list for each pair, in order, whatever the pair is."""
    model = fitted(name)
    found, probabilities = model.align(AWKWARD), model.posteriors(AWKWARD)
    assert len(found) == len(probabilities) == len(AWKWARD)
    for pair, links, matrix in zip(AWKWARD, found, probabilities, strict=True):
        assert matrix.shape == size(pair)
        assert np.isfinite(matrix).all()
        assert ((matrix >= 0.0) & (matrix <= 1.0 + 1e-9)).all()
        assert links == sorted(set(links))
        assert all(0 <= i < matrix.shape[0] and 0 <= j < matrix.shape[1] for i, j in links)
    for n, pair in enumerate(AWKWARD):
        assert model.align([pair]) == [found[n]]
        np.testing.assert_allclose(model.posteriors([pair])[0], probabilities[n], atol=1e-9)
    assert model.align(AWKWARD[::-1]) == found[::-1]
    assert [model.align([pair]) for pair in AWKWARD if not all(pair)] == [[[]]] * 3


@every
def test_own_pairs_with_empty_sides(name: str) -> None:
    text = [AWKWARD[0], *PAIRS[:10], AWKWARD[3], *PAIRS[10:], AWKWARD[7]]
    model = MODELS[name]().fit(text)
    found = model.align()
    assert len(found) == len(text)
    assert found[0] == found[11] == found[-1] == []
    assert [links for links in found if links] == [links for links in fitted(name).align() if links]
    assert [matrix.shape for matrix in model.posteriors()] == [size(pair) for pair in text]


@one_way
def test_one_way_links(name: str) -> None:
    """At most one link a target word, and where posteriors are sure it is the best."""
    model = fitted(name)
    for links, matrix in zip(model.align(), model.posteriors(), strict=True):
        targets = [j for _, j in links]
        assert len(targets) == len(set(targets))
        assert (matrix.sum(axis=0) <= 1.0 + 1e-9).all()
        for j in np.flatnonzero(matrix.max(axis=0) > 0.9):
            if name != "HMMAligner":
                assert (int(matrix[:, j].argmax()), int(j)) in links


@every
def test_thresholds(name: str) -> None:
    model = fitted(name)
    how = {"method": "product"} if name == "GibbsAligner" else {}
    probabilities = model.posteriors()
    if name == "GibbsAligner":
        pairs = zip(model.forward_.posteriors(), model.backward_.posteriors(), strict=True)
        probabilities = [np.sqrt(there * back.T) for there, back in pairs]
    for level in (0.0, 0.1, 0.5, 0.9, 0.999):
        expected = [
            [(int(i), int(j)) for i, j in np.argwhere(matrix > level)] for matrix in probabilities
        ]
        found = model.align(threshold=level, **how)
        assert found == expected or abs_difference(found, expected) <= 2  # last bits at the border
    few, more = model.align(threshold=0.9), model.align(threshold=0.1)
    assert all({*a} <= {*b} for a, b in zip(few, more, strict=True))
    assert few != more


def abs_difference(ours: list[Any], theirs: list[Any]) -> int:
    return sum(len({*a} ^ {*b}) for a, b in zip(ours, theirs, strict=True))


@every
def test_bad_thresholds_and_methods(name: str) -> None:
    model = fitted(name)
    for level in (-0.1, 1.0, 7, float("nan"), "half"):
        with pytest.raises(DataError, match="threshold"):
            model.align(threshold=level)
    if name not in ONE_WAY:
        with pytest.raises(LearnerError, match="nonsense"):
            model.align(method="nonsense")
        with pytest.raises(LearnerError, match="threshold"):
            model.align(method="union", threshold=0.9)


METHODS = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and")


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("name", ["Aligner", "GibbsAligner"])
def test_methods_are_those_of_symmetrise(name: str, own: bool) -> None:
    model = fitted(name)
    text = None if own else AWKWARD
    forward, backward = model.align(text, method="forward"), model.align(text, method="backward")
    if own:
        assert forward == model.forward_.align()
        links_reversed = [sorted((i, j) for j, i in links) for links in model.backward_.align()]
        assert backward == links_reversed
    else:
        assert forward == model.forward_.align(AWKWARD)
        flipped = model.backward_.align([(target, source) for source, target in AWKWARD])
        assert backward == [sorted((i, j) for j, i in links) for links in flipped]
    found = {}
    for method in METHODS:
        found[method] = model.align(text, method=method)
        pairs = zip(forward, backward, strict=True)
        assert found[method] == [symmetrise(a, b, method) for a, b in pairs]  # type: ignore[arg-type]
    if name == "Aligner" and own:
        assert found["intersection"] != found["union"]


@pytest.mark.parametrize("name", ["Aligner", "GibbsAligner"])
def test_means_of_both_directions(name: str) -> None:
    model = fitted(name)
    pairs = list(zip(model.forward_.posteriors(), model.backward_.posteriors(), strict=True))
    for method, mean in (
        ("product", lambda p, q: np.sqrt(p * q)),
        ("soft-union", lambda p, q: (p + q) / 2.0),
    ):
        expected = [mean(there, back.T) for there, back in pairs]
        found = model.align(method=method, threshold=0.3)
        wanted = [[(int(i), int(j)) for i, j in np.argwhere(m > 0.3)] for m in expected]
        assert abs_difference(found, wanted) <= 1
        if method == model._default_method:
            for ours, theirs in zip(model.posteriors(), expected, strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert model.align() == model.align(method=model._default_method, threshold=model.threshold)


@pytest.mark.parametrize("text", [None, AWKWARD], ids=["own", "new"])
@every
def test_probabilities_are_posteriors(name: str, text: Any) -> None:
    model = fitted(name)
    hows: list[dict[str, Any]] = [{}, {"threshold": 0.2}]
    if name not in ONE_WAY:
        hows += [{"method": method} for method in ("forward", "union", "grow-diag-final-and")]
    probabilities = model.posteriors(text)
    for how in hows:
        links, values = model.links(text, probabilities=True, **how)
        assert links.lists() == model.align(text, **how)
        assert len(values) == len(links.source) > 0
        each = zip(links.pair, links.source, links.target, strict=True)
        expected = [probabilities[n][i, j] for n, i, j in each]
        np.testing.assert_allclose(values, expected, atol=1e-12)


@one_way
def test_scores(name: str) -> None:
    model = fitted(name)
    logs = model.score_samples(AWKWARD)
    assert logs.shape == (len(AWKWARD),)
    assert np.isfinite(logs).all()
    assert [n for n, (s, t) in enumerate(AWKWARD) if not (s and t) and logs[n] != 0.0] == []
    assert (logs[[n for n, (s, t) in enumerate(AWKWARD) if s and t]] < 0.0).all()
    assert model.score(AWKWARD) == pytest.approx(logs.mean())
    tokens = sum(len(t.split()) for s, t in AWKWARD if s)
    assert model.perplexity(AWKWARD) == pytest.approx(np.exp(-logs.sum() / tokens))
    good, bad = model.score_samples([("S1 S2", "T1 T2"), ("S1 S2", "T8 T9")])
    assert good > bad


@every
def test_words_never_seen_are_aligned_by_place(name: str) -> None:
    if name == "IBM1":
        return  # all places are alike to it
    model = fitted(name)
    (links,) = model.align([("S1 qqq S3", "T1 zzz T3")])
    assert {(0, 0), (2, 2)} <= {*links}
    assert (1, 1) in links or name in ("GibbsAligner", "IBM2")


LONG: dict[str, dict[str, Any]] = {
    "IBM2": {},
    "Diagonal": {},
    "HMMAligner": {"max_jump": 5},  # wider ones cannot be learned from six words
    "Aligner": {"settings": {"max_jump": 5}},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_five_hundred_words(name: str) -> None:
    words = np.random.default_rng(3).integers(0, 12, 500)
    long = (" ".join(f"S{w}" for w in words), " ".join(f"T{w}" for w in words))
    (links,) = MODELS[name](**LONG[name]).fit(PAIRS).align([long])
    assert sum(words[i] == words[j] for i, j in links) > 350
    assert "Aligner" not in name or sum(i == j for i, j in links) > 400
    learner = sc.EM(max_iter=2, tol=0)
    model = MODELS[name](learner=learner, warm_up=1).fit([*PAIRS, long, ("S1", "T1")])
    assert np.isfinite(model.trace_.perplexity).all()
    assert np.isfinite(model.posteriors()[-2]).all()
    assert len(model.align()) == len(PAIRS) + 2


def test_one_word_many_times() -> None:
    """10⁵ times on either side of Model 1, and in new pairs."""
    often = " ".join(["T1"] * 100_000)
    for pair in (("S1", often), (often, "S1")):
        model = sc.align.IBM1().fit([pair, ("S1 S2", "T1 T2"), ("T1 x", "S1 y")])
        assert np.isfinite(model.trace_.perplexity).all()
        (links,) = model.align([pair])
        assert len(links) in (1, 100_000)
        assert model.align()[0] == links
        assert np.isfinite(model.score_samples([pair])).all()


@every
def test_pairs_of_one_word(name: str) -> None:
    model = MODELS[name]().fit([("a", "x")])
    assert model.align() in ([[(0, 0)]], [[]])
    assert np.isfinite(model.posteriors()[0]).all()
    two = MODELS[name]().fit([("a", "x"), ("b", "y")] * 3)
    assert two.align([("a", "x"), ("b", "y")]) == [[(0, 0)]] * 2


@every
def test_odd_words_are_words(name: str) -> None:
    odd = ["é", "e\u0301", "日本", "\u202e", "🙂", '"\\', "|", "||||", "0-0"]
    pairs = [([word], [word * 2]) for word in odd] * 3
    model = MODELS[name]().fit(pairs)
    assert model.source_words_ == odd
    assert model.align() == [[(0, 0)]] * 27


def test_the_same_answers_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """New pairs are looked at some at a time, links some at a time."""
    expected = {name: fitted(name).align(PAIRS) for name in LEARNED}
    probabilities = {name: fitted(name).posteriors(PAIRS) for name in LEARNED}
    monkeypatch.setattr("softcount.align.data.CHUNK", 7)
    monkeypatch.setattr("softcount.align.data.BLOCK", 50)
    for name in LEARNED:
        assert fitted(name).align(PAIRS) == expected[name]
        assert fitted(name).align() == expected[name]
        for ours, theirs in zip(fitted(name).posteriors(PAIRS), probabilities[name], strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_learning_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LEARNED:
        expected = fitted(name).posteriors()
        with monkeypatch.context() as small:
            small.setattr("softcount.align.data.BLOCK", 50)
            found = MODELS[name]().fit(PAIRS).posteriors()
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-9)


@every
def test_asking_twice_is_asking_once(name: str) -> None:
    model = fitted(name)
    assert_alike(model.posteriors(), model.posteriors())
    assert model.align(AWKWARD) == model.align(AWKWARD)
