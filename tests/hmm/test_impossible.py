"""Every sentence gets states, even one that the model holds impossible."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.hmm.data import SentenceShard
from softcount.hmm.impossible import FewestEvents, make_context_chain
from softcount.hmm.kernels import MarkovChain
from tests import real
from tests.oracles.sequences import Chain, Path, Sentence

WORDS = "abc"
K = 3


def sparse_rows(rng: np.random.Generator, n: int, m: int) -> Any:
    """Distributions, half of whose entries are zero."""
    table = rng.random((n, m)) * (rng.random((n, m)) < 0.5)
    table[table.sum(axis=1) == 0.0, 0] = 1.0
    return table / table.sum(axis=1, keepdims=True)


def made(rng: np.random.Generator, order: int, stop: bool, **settings: Any) -> Any:
    """A model with such tables."""
    outcomes = K + stop
    tables = {"start": sparse_rows(rng, 1, K), "transitions": sparse_rows(rng, K**order, outcomes)}
    if order == 2:
        tables["second"] = sparse_rows(rng, K, outcomes)
    tables["emissions"] = sparse_rows(rng, K, len(WORDS))
    flat = {name: np.full_like(table, 1.0 / table.shape[1]) for name, table in tables.items()}
    model = sc.HMM(K, order=order, stop=stop, learner=sc.EM(max_iter=1), init=flat, **settings)
    model.fit([list(WORDS * 2)])
    model.raw_params_ = tables
    return model


def ways(chain: Chain, sentence: Sentence) -> dict[Path, tuple[int, float]]:
    """All paths: how many impossible events they have, and the product of the others."""
    found = {}
    for path in itertools.product(*sentence.allowed):
        chances = [float(chain.tables[t][r][c]) for t, r, c in chain.events(sentence.words, path)]
        found[path] = chances.count(0.0), math.prod(p for p in chances if p > 0.0)
    return found


def fewest_of(found: dict[Path, tuple[int, float]]) -> dict[Path, float]:
    """The paths with the fewest impossible events, and their shares."""
    least = min(events for events, _ in found.values())
    some = {path: p for path, (events, p) in found.items() if events == least}
    total = sum(some.values())
    return {path: p / total for path, p in some.items()}


CASES = [(order, stop, seed) for order in (1, 2) for stop in (True, False) for seed in range(8)]


@pytest.mark.parametrize(("order", "stop", "seed"), CASES)
@pytest.mark.parametrize("known", [False, True], ids=["free", "known tags"])
def test_the_states_are_those_with_the_fewest_impossible_events(
    order: int, stop: bool, seed: int, known: bool
) -> None:
    rng = np.random.default_rng([order, stop, seed])
    model = made(rng, order, stop)
    lengths = [1, 2, 3, 4, 5, 5]
    texts = [[WORDS[w] for w in rng.integers(3, size=n)] for n in lengths]
    tags, allowed = None, [[list(range(K))] * n for n in lengths]
    if known:
        tags = [[int(rng.integers(K)) if i % 2 else None for i in range(n)] for n in lengths]
        allowed = [[list(range(K)) if tag is None else [tag] for tag in one] for one in tags]
    tables = {name: np.asarray(table) for name, table in model.raw_params_.items()}
    chain = Chain(tables, K, order, stop)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        best = model.predict(texts, tags=tags)
        single = model.predict(texts, tags=tags, method="posterior")
        shares = model.predict_proba(texts, tags=tags)
        drawn = model.posterior_sample(texts, 400, tags=tags)
    impossible = []
    number = {word: w for w, word in enumerate(model.words_)}
    for n, text in enumerate(texts):
        sentence = Sentence([number[word] for word in text], allowed[n])
        each = ways(chain, sentence)
        if min(events for events, _ in each.values()):
            impossible.append(n)
        some = fewest_of(each)
        assert some[tuple(best[n])] == pytest.approx(max(some.values()), rel=1e-9)
        expected = np.zeros((len(text), K))
        for path, p in some.items():
            expected[np.arange(len(text)), path] += p
        np.testing.assert_allclose(shares[n], expected, atol=1e-9)
        own = expected[np.arange(len(text)), single[n]]
        np.testing.assert_allclose(own, expected.max(axis=1), atol=1e-9)
        often = np.zeros_like(expected)
        for path in drawn[n]:
            assert tuple(path) in some
            often[np.arange(len(text)), path] += 1.0 / 400
        np.testing.assert_allclose(often, expected, atol=0.15)
    told = [one.message for one in caught if one.category is sc.errors.ImpossibleWarning]
    assert [one.items for one in told] == ([impossible] * 4 if impossible else [])


def test_enough_of_these_cases_are_impossible() -> None:
    """What the test above is about must occur in it."""
    counted = 0
    for order, stop, seed in CASES:
        rng = np.random.default_rng([order, stop, seed])
        model = made(rng, order, stop)
        texts = [[WORDS[w] for w in rng.integers(3, size=n)] for n in (1, 2, 3, 4, 5, 5)]
        counted += int(np.isneginf(model.score_samples(texts)).sum())
    assert 30 < counted < 170


SENTENCES = ["the dog barks", "a cat sleeps", "the cat barks", "a dog sleeps"]
TAGS = [["D", "N", "V"]] * 4


def test_scores_stay_honest() -> None:
    model = sc.HMM().fit(SENTENCES, TAGS)
    assert np.isneginf(model.score_samples(["dog the barks"])).all()
    assert model.score(["dog the barks"]) == -np.inf
    assert model.perplexity(["dog the barks"]) == np.inf
    with pytest.raises(sc.errors.ImpossibleItem):
        model.expected_counts(["dog the barks"])


def test_sentences_are_counted_in_a_warning_where_they_are_asked_about() -> None:
    model = sc.HMM().fit(SENTENCES, TAGS)
    asked = ["the dog barks", "dog the barks", "a cat", "the cat sleeps"]
    for ask in (model.predict, model.predict_proba, model.posterior_sample):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answers = ask(asked)
        assert len(answers) == 4
        (one,) = caught
        assert one.category is sc.errors.ImpossibleWarning
        assert one.message.items == [1, 2]
        assert "2 of 4 sentences" in str(one.message)
        assert "sentence 1 and others" in str(one.message)
        assert "smoothing" in str(one.message)
        assert one.filename == __file__


def test_possible_sentences_are_not_touched() -> None:
    """They have the same bits beside impossible ones as alone, and nothing is said of them."""
    model = sc.HMM(3, random_state=1).fit(SENTENCES)
    model.raw_params_ = sc.HMM().fit(SENTENCES, TAGS).raw_params_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone, shares = model.predict(SENTENCES), model.predict_proba(SENTENCES)
        drawn = model.posterior_sample(SENTENCES, 3)
    with pytest.warns(sc.errors.ImpossibleWarning):
        assert model.predict([*SENTENCES, "dog dog"])[:4] == alone
    with pytest.warns(sc.errors.ImpossibleWarning):
        beside = model.predict_proba([*SENTENCES, "dog dog"])
    with pytest.warns(sc.errors.ImpossibleWarning):
        assert model.posterior_sample([*SENTENCES, "dog dog"], 3)[:4] == drawn
    for ours, theirs in zip(beside, shares, strict=False):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("order", [1, 2])
def test_a_dictionary_is_kept_to_all_the_same(order: int) -> None:
    dictionary = {"a": ["D"], "dog": ["N"], "barks": ["V", "N"]}
    model = sc.HMM(dictionary=dictionary, order=order).fit(["a dog barks"])
    with pytest.warns(sc.errors.ImpossibleWarning):
        found = model.predict(["dog a", "barks a", "a", "barks"])
    assert found[0] == ["N", "D"]
    assert found[1][1] == "D"
    assert found[1][0] in ("V", "N")
    assert found[2] == ["D"]


@pytest.mark.parametrize("method", ["viterbi", "posterior"])
def test_tags_that_are_given_are_kept(method: str) -> None:
    model = sc.HMM().fit(SENTENCES, TAGS)
    known = [["V", None, "D"], [{"N", "V"}, None, None]]
    with pytest.warns(sc.errors.ImpossibleWarning, match="2 of 2"):
        found = model.predict(["the dog barks"] * 2, tags=known, method=method)
    assert found[0][0] == "V"
    assert found[0][2] == "D"
    assert found[1][0] in ("N", "V")
    with pytest.warns(sc.errors.ImpossibleWarning):
        shares = model.predict_proba(["the dog barks"], tags=known[:1])[0]
    assert shares[0, model.states_.index("V")] == 1.0
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_words_never_seen_are_tagged_too() -> None:
    model = sc.HMM().fit(SENTENCES, TAGS)
    with pytest.warns(sc.errors.ImpossibleWarning):
        found = model.predict(["zebra the quagga", "the zebra barks"])
    assert [len(some) for some in found] == [3, 3]
    assert found[1] == ["D", "N", "V"]


def test_nothing_changes_where_there_is_smoothing() -> None:
    model = sc.HMM(smoothing=0.01).fit(SENTENCES, TAGS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.ImpossibleWarning)
        assert [len(some) for some in model.predict(["dog the barks", "barks", "zebra a"])] == [
            *(3, 1, 2)
        ]


def test_a_sentence_without_words_has_no_states() -> None:
    model = sc.HMM().fit(SENTENCES, TAGS)
    with pytest.warns(sc.errors.ImpossibleWarning, match="1 of 3"):
        found = model.predict([[], ["dog"], []])
    assert [len(some) for some in found] == [0, 1, 0]
    assert [some.shape for some in model.predict_proba([[]])] == [(0, 3)]


def test_the_same_draws_for_any_number_of_threads() -> None:
    asked = ["dog the barks", "the dog barks", "barks the a cat"] * 5
    found = []
    for threads in (1, 3):
        model = sc.HMM(engine=sc.Local(threads)).fit(SENTENCES, TAGS)
        with pytest.warns(sc.errors.ImpossibleWarning):
            found.append(model.posterior_sample(asked, 5, random_state=4))
    assert found[0] == found[1]


def test_long_sentences_do_not_underflow() -> None:
    """A thousand impossible moves, and words of small probability all along."""
    model = sc.HMM().fit(SENTENCES, TAGS)
    long = ["dog", "the"] * 1000
    with pytest.warns(sc.errors.ImpossibleWarning):
        (found,) = model.predict([long])
    assert found[1:-1] == (["N", "D"] * 1000)[1:-1]
    with pytest.warns(sc.errors.ImpossibleWarning):
        (shares,) = model.predict_proba([long])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


# vectors
def test_vectors_get_states_by_their_distance() -> None:
    """One state cannot begin a sequence and the other cannot end it: so the nearer one it is."""
    walks = [np.array([[0.0], [0.1], [9.0], [9.1]]), np.array([[0.1], [0.0], [9.1], [9.0]])]
    model = sc.GaussianHMM(2).fit(walks, [["lo", "lo", "hi", "hi"]] * 2)
    single = [np.array([[8.0]]), np.array([[1.0]])]
    assert np.isneginf(model.score_samples(single)).all()
    with pytest.warns(sc.errors.ImpossibleWarning, match="2 of 2 sequences"):
        assert model.predict(single) == [["hi"], ["lo"]]
    with pytest.warns(sc.errors.ImpossibleWarning):
        shares = np.concatenate(model.predict_proba(single))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert [model.states_[k] for k in shares.argmax(axis=1)] == ["hi", "lo"]


def test_what_is_only_too_far_away_is_not_called_impossible() -> None:
    """exp(−10⁶) is no number of a float, and yet every state may emit every vector."""
    walks = [np.array([[0.0], [0.01], [9.0], [9.01]]), np.array([[0.01], [0.0], [9.01], [9.0]])]
    model = sc.GaussianHMM(2).fit(walks, [["lo", "lo", "hi", "hi"]] * 2)
    far = [np.array([[0.0], [9.0], [9.0]])]
    known = [["lo", "lo", "hi"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.ImpossibleWarning)
        assert model.predict(far, tags=known) == known
        (shares,) = model.predict_proba(far, tags=known)
    np.testing.assert_array_equal(shares.argmax(axis=1), [model.states_.index(t) for t in known[0]])


def test_paths_are_compared_by_events_first() -> None:
    """Of one token in four states, with 2, 1, 1 and 3 impossible events: starts, words, ends."""
    chain = MarkovChain(
        np.array([0.0, math.exp(-5.0), math.exp(-4.0), 0.0]),
        np.full((4, 4), 0.25),
        np.array([0.0, 1.0, 1.0, 0.0]),
        1,
    )
    words = np.array([[9.0, -np.inf, -np.inf, -np.inf]])
    found = FewestEvents(make_context_chain(chain), words, np.ones((1, 4), np.bool_))
    assert (found.path.tolist(), found.n_events) == ([2], 1)
    shares = np.exp([-5.0, -4.0]) / np.exp([-5.0, -4.0]).sum()
    np.testing.assert_allclose(found.posteriors(), [[0.0, *shares, 0.0]])


@pytest.mark.parametrize("order", [1, 2])
def test_what_underflows_beside_others_is_not_lost(order: int) -> None:
    """The only path without impossible events goes through a state that is exp(−2000) as likely."""
    table = np.array([[1.0, 0.0], [0.5, 0.5]])
    rows = table if order == 1 else np.concatenate([np.tile(table, (2, 1)), table])
    chain = make_context_chain(MarkovChain(np.array([0.5, 0.5]), rows, np.ones(len(rows)), order))
    words = np.array([[0.0, -2000.0], [0.0, -2000.0], [0.0, 0.0], [-2000.0, 0.0]])
    allowed = np.array([[True, True], [True, True], [False, True], [True, True]])
    found = FewestEvents(chain, words, allowed)
    assert (found.path.tolist(), found.n_events) == ([1, 1, 1, 1], 0)
    np.testing.assert_allclose(found.posteriors(), [[0.0, 1.0]] * 4)
    assert found.draw(np.random.default_rng(0)).tolist() == [1, 1, 1, 1]


# real sentences
@pytest.mark.parametrize("order", [1, 2])
def test_new_sentences_after_ten_tagged_ones(order: int) -> None:
    files = sorted((real.FOLDER / "ud").glob("*en*dev*.conllu*")) or [None]
    if files[0] is None:
        pytest.skip("needs an English treebank in ../shared/data, which is not here")
    sentences = real.tagged(f"ud/{files[0].name}", 210)
    words = [[word for word, _ in one] for one in sentences]
    tags = [[tag for _, tag in one] for one in sentences]
    model = sc.HMM(order=order).fit(words[:10], tags[:10])
    impossible = np.flatnonzero(np.isneginf(model.score_samples(words[10:]))).tolist()
    assert len(impossible) > 20, "the test is about sentences that are impossible"
    with pytest.warns(sc.errors.ImpossibleWarning) as caught:
        found = model.predict(words[10:])
    assert caught[0].message.items == impossible
    assert [len(one) for one in found] == [len(one) for one in words[10:]]
    right = np.mean(
        [
            ours == theirs
            for n in impossible
            for ours, theirs in zip(found[n], tags[10 + n], strict=True)
        ]
    )
    common = max(np.unique([t for one in tags[:10] for t in one], return_counts=True)[1])
    assert right > 2 * common / sum(map(len, tags[:10]))


def test_shards_have_what_is_asked_of_them() -> None:
    """Emissions as logs are those that the passes multiply."""
    model = sc.HMM().fit(SENTENCES, TAGS)
    shard: SentenceShard = model._read(["the zebra barks"]).everything
    emissions = model.core_.make_trellis(model.raw_params_, shard).emissions
    logs = model.core_.emission.log_likelihoods(model.raw_params_["emissions"], shard)
    np.testing.assert_array_equal(np.exp(logs) > 0, emissions.table[shard.rows, :3] > 0)
    np.testing.assert_allclose(np.exp(logs), emissions.table[shard.rows, :3], rtol=1e-12)


# siblings
TOY = "S -> NP VP\nNP -> 'she' | 'fish'\nVP -> 'eats' NP | 'sleeps'"


@pytest.mark.parametrize("method", ["viterbi", "brackets", "labelled"])
def test_sentences_without_a_tree_are_counted_in_a_warning(method: str) -> None:
    """A grammar may truly have none: it is None, and said."""
    toy = sc.PCFG.from_rules(TOY)
    asked = ["she eats fish", "eats she", "", "fish sleeps", "she she"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = toy.predict(asked, method=method)
    assert [tree is None for tree in found] == [False, True, True, False, True]
    (one,) = caught
    assert one.category is sc.errors.ImpossibleWarning
    assert one.message.items == [1, 4], "an empty sentence has no tree, and nothing is wrong"
    assert "2 of 5 sentences" in str(one.message)
    assert one.filename == __file__


def test_trees_by_other_ways_are_counted_too() -> None:
    toy = sc.PCFG.from_rules(TOY)
    for ask in (toy.k_best, toy.sample_trees):
        with pytest.warns(sc.errors.ImpossibleWarning, match="1 of 2"):
            assert [bool(some) for some in ask(["she sleeps", "she"])] == [True, False]
        with warnings.catch_warnings():
            warnings.simplefilter("error", sc.errors.ImpossibleWarning)
            ask(["she sleeps", ""])


def test_a_command_that_parses_says_it_in_its_own_words(tmp_path: Any) -> None:
    from tests.commands import done

    kept = tmp_path / "kept"
    sc.PCFG.from_rules(TOY).save(kept)
    for more in ((), ("--k-best", "2"), ("--method", "labelled")):
        with warnings.catch_warnings():
            warnings.simplefilter("error", sc.errors.ImpossibleWarning)
            found = done("parse", kept, *more, stdin="she eats fish\neats she\n")
        assert "no tree" in found.stderr


ALIGNERS = [
    sc.align.IBM1(),
    sc.align.IBM2(),
    sc.align.HMMAligner(),
    sc.align.Diagonal(),
    sc.Aligner(),
]


@pytest.mark.parametrize("aligner", ALIGNERS, ids=lambda one: type(one).__name__)
def test_pairs_of_words_that_never_met_have_links_of_some_kind(aligner: Any) -> None:
    """Words that were never seen together, or never at all: no NaN, and a list of links."""
    pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    aligner.fit(pairs)
    asked = [("a house", "das ein"), ("zebra", "quagga"), ("house house", "ein ein ein")]
    for links, shares, (source, target) in zip(
        aligner.align(asked), aligner.posteriors(asked), asked, strict=True
    ):
        assert np.isfinite(shares).all()
        assert shares.shape == (len(source.split()), len(target.split()))
        assert all(0 <= i < len(source.split()) for i, _ in links)


@pytest.mark.parametrize(
    "model",
    [sc.NaiveBayes(smoothing=0.0), sc.NaiveBayes(smoothing=0.0, bernoulli=True)],
    ids=["multinomial", "bernoulli"],
)
def test_documents_of_words_that_no_class_has_together(model: Any) -> None:
    model.fit(["a b", "c d"], [0, 1])
    asked = ["a c", "zebra", "", "a a c"]
    assert np.isneginf(model.score_samples(asked[:1])).all()
    shares = model.predict_proba(asked)
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@pytest.mark.parametrize("model", [sc.LDA(2), sc.PLSA(2)], ids=repr)
def test_documents_without_a_known_word_have_all_topics_alike(model: Any) -> None:
    model.fit(["a b a", "b a", "c d", "d c d"])
    np.testing.assert_allclose(model.transform(["zebra", ""]), 0.5)
