"""The Gibbs aligner against the joint written out by hand, summed over all alignments."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import lgamma, log

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from softcount.align.data import BitextCorpus
from softcount.align.gibbs import (
    FREE,
    WIDEST,
    CollapsedAligner,
    GibbsState,
    IndexedPairs,
    LinkChains,
    sweep,
)
from softcount.core.errors import LearnerError
from softcount.text.bitext import as_bitext

PRIOR = {"alpha": 0.3, "jump": 0.7, "fertility": (0.4, 1.1, 0.2), "null": 0.15}

TINY = [("a b a", "x y"), ("b", "y y"), ("a c", "z x")]


def indexed(pairs, fixed=None, null=True):
    shard = BitextCorpus(as_bitext(pairs), null=null).everything
    return IndexedPairs(shard.source, shard.target, shard.lexicon, fixed)


def sample_chains(pairs, **settings):
    """All chains to their ends, one after the other: marginals of links, and means."""
    chains = LinkChains(pairs, **settings)
    for _ in range(chains.n_init):
        chains.begin()
        for _ in range(chains.max_iter):
            chains.sweep()
    return chains.marginals()


def rising(prior, n):
    return lgamma(prior + n) - lgamma(prior)


def dirichlet(priors, counts):
    """log of the Dirichlet-multinomial; ``priors`` are those of all outcomes."""
    total = sum(rising(priors[k], n) for k, n in counts.items())
    return total - rising(sum(priors.values()), sum(counts.values()))


def log_joint(pairs, links, alpha, jump, fertility, null):
    """log p(f, a) from words, not numbers; ``alpha(e, f)`` is the prior of a translation."""
    words, jumps, places, empty, linked = {}, Counter(), {}, 0, 0
    together = {}
    for source, target in pairs:
        for f in target.split():
            for e in [*source.split(), None]:
                together.setdefault(e, set()).add(f)
    flat = iter(links)
    for source, target in pairs:
        e, before, fertilities = source.split(), -1, Counter()
        for f in target.split():
            i = next(flat)
            words.setdefault(None if i < 0 else e[i], Counter())[f] += 1
            empty, linked = empty + (i < 0), linked + (i >= 0)
            if i >= 0:
                jumps[max(min(i - before, WIDEST), -WIDEST)] += 1
                fertilities[i] += 1
                before = i
        jumps[max(min(len(e) - before, WIDEST), -WIDEST)] += 1
        for i, word in enumerate(e):
            has = min(fertilities[i], len(fertility) - 1)
            places.setdefault(word, Counter())[has] += 1
    total = empty * log(null) + linked * log(1 - null)
    for e, counts in words.items():
        total += dirichlet({f: alpha(e, f) for f in together[e]}, counts)
    total += dirichlet(dict.fromkeys(range(-WIDEST, WIDEST + 1), jump), jumps)
    for counts in places.values():
        total += dirichlet(dict(enumerate(fertility)), counts)
    return total


def all_links(pairs):
    """Every alignment, as the source places of all target tokens."""
    lengths = [(len(source.split()), len(target.split())) for source, target in pairs]
    return list(product(*(range(-1, l) for l, m in lengths for _ in range(m))))


def same_alpha(e, f):
    return PRIOR["alpha"]


def posterior(pairs):
    """All alignments, and the probability of each."""
    every = all_links(pairs)
    rest = {name: value for name, value in PRIOR.items() if name != "alpha"}
    logs = np.array([log_joint(pairs, links, same_alpha, **rest) for links in every])
    weights = np.exp(logs - logs.max())
    return np.array(every), weights / weights.sum()


def begun(pairs, links, **prior):
    """A sampler in a given state: what is fixed is where it begins."""
    return CollapsedAligner(indexed(pairs, links), **prior)


def conditional(aligner, token):
    """p(a_j = i | all others) of a target token, as sweeps have it; the empty word's is last."""
    text, known = aligner._text, aligner.links.copy()
    known[token] = FREE
    others = GibbsState(*(values.copy() for values in aligner._state))
    sums = np.zeros(len(text.entries))
    sweep(text._replace(fixed=known), aligner._prior, others, np.uint64(0), 1.0, sums)
    p = int(np.searchsorted(text.target_borders, token, side="right")) - 1
    l = int(text.source_borders[p + 1] - text.source_borders[p])
    at = int(text.offsets[p] + (token - text.target_borders[p]) * l)
    linked = sums[at : at + l]
    return np.append(linked, max(1.0 - linked.sum(), 0.0))


@pytest.mark.parametrize("links", [(0, 1, 0, 0, 1, 0), (2, -1, -1, 0, 1, 1), (-1,) * 6])
def test_log_joint_is_that_of_the_words(links):
    aligner = begun(TINY, links, **PRIOR)
    rest = {name: value for name, value in PRIOR.items() if name != "alpha"}
    expected = log_joint(TINY, links, same_alpha, **rest)
    assert aligner.log_joint() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("one_each", [False, True])
def test_conditionals_are_those_of_the_joint(one_each):
    """Each token's, in states drawn at random, by the joint of all its links."""
    rng = np.random.default_rng(3)
    words = as_bitext(TINY)
    lexicon = BitextCorpus(words, null=True).lexicon
    each = rng.uniform(0.1, 2.0, len(lexicon))
    names = [*words.source.words, None]
    pairs_of = zip(lexicon.rows(), lexicon.targets, strict=True)
    numbers = {(names[e], words.target.words[f]): k for k, (e, f) in enumerate(pairs_of)}
    alpha = (lambda e, f: each[numbers[e, f]]) if one_each else same_alpha
    rest = {name: value for name, value in PRIOR.items() if name != "alpha"}
    every = all_links(TINY)
    for links in (every[k] for k in rng.integers(0, len(every), 12)):
        aligner = begun(TINY, links, **rest, alpha=each if one_each else PRIOR["alpha"])
        for token, l in enumerate([3, 3, 1, 1, 2, 2]):
            changed = [(*links[:token], i, *links[token + 1 :]) for i in [*range(l), -1]]
            logs = np.array([log_joint(TINY, other, alpha, **rest) for other in changed])
            expected = np.exp(logs - logs.max())
            expected /= expected.sum()
            np.testing.assert_allclose(conditional(aligner, token), expected, rtol=1e-10)


def test_conditionals_of_a_long_sentence_where_wide_jumps_are_one():
    pairs = [(" ".join(f"w{i % 7}" for i in range(2 * WIDEST + 30)), "x y z")]
    rest = {name: value for name, value in PRIOR.items() if name != "alpha"}
    for links in [(0, 115, 229), (229, 1, -1)]:
        aligner = begun(pairs, links, **PRIOR)
        places = [*range(2 * WIDEST + 30), -1]
        changed = [(links[0], i, links[2]) for i in places]
        logs = np.array([log_joint(pairs, other, same_alpha, **rest) for other in changed])
        expected = np.exp(logs - logs.max())
        np.testing.assert_allclose(conditional(aligner, 1), expected / expected.sum(), rtol=1e-9)


def chain_means(aligner, n_links, sweeps=6000):
    sums, seen = np.zeros(n_links), Counter()
    for stream in range(sweeps):
        aligner.sweep(stream, into=sums)
        seen[tuple(aligner.links.tolist())] += 1
    return sums / sweeps, seen


def test_a_long_chain_has_the_posterior():
    """Its marginals and its states, against the sum over all alignments."""
    every, p = posterior(TINY)
    pairs = indexed(TINY)
    means, seen = chain_means(CollapsedAligner(pairs, **PRIOR), pairs.n_links)
    matrices = list(pairs.matrices(means))
    token = 0
    for matrix in matrices:
        for j in range(matrix.shape[1]):
            for i in range(matrix.shape[0]):
                assert matrix[i, j] == pytest.approx(p[every[:, token] == i].sum(), abs=0.02)
            token += 1
    likely = np.argsort(-p)[:20]
    often = sum(seen[tuple(every[k].tolist())] for k in likely) / seen.total()
    assert often == pytest.approx(p[likely].sum(), abs=0.02)


def test_known_links_stay_and_others_are_drawn_given_them():
    every, p = posterior(TINY)
    known = [-2, 1, -2, -1, -2, -2]
    given = (every[:, 1] == 1) & (every[:, 3] == -1)
    every, p = every[given], p[given] / p[given].sum()
    pairs = indexed(TINY, known)
    means, seen = chain_means(CollapsedAligner(pairs, **PRIOR), pairs.n_links, 4000)
    assert all(links[1] == 1 and links[3] == -1 for links in seen)
    first, second, _ = pairs.matrices(means)
    assert first[:, 1].tolist() == pytest.approx([0, 1, 0])
    assert second[0, 1] == 0
    for i in range(3):
        assert first[i, 0] == pytest.approx(p[every[:, 0] == i].sum(), abs=0.02)


def test_a_power_of_p_is_drawn_from():
    """At a high one the likeliest alignment that a chain can reach, at a low one any."""
    pairs = indexed(TINY)
    cold, warm = (CollapsedAligner(pairs, **PRIOR, seed=1) for _ in range(2))
    for stream in range(50):
        cold.sweep(stream, temper=500.0)
        warm.sweep(stream, temper=0.01)
    before = cold.links.copy()
    cold.sweep(99, temper=500.0)
    assert cold.links.tolist() == before.tolist()
    assert cold.log_joint() > warm.log_joint()
    assert np.isfinite(cold.log_joint())


WORDS = st.lists(st.sampled_from("abcde"), max_size=7).map(" ".join)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6), st.integers(0, 2**40))
def test_counts_are_those_of_the_links(pairs, seed):
    assume(any(source and target for source, target in pairs))
    shard = BitextCorpus(as_bitext(pairs), null=True).everything
    sides = shard.source, shard.target, shard.lexicon
    aligner = CollapsedAligner(IndexedPairs(*sides), seed=seed)
    for stream in range(3):
        aligner.sweep(seed + stream, temper=0.5)
    again = CollapsedAligner(IndexedPairs(*sides, aligner.links))
    for name, values in aligner.counts().items():
        np.testing.assert_array_equal(values, again.counts()[name])
    assert aligner.log_joint() == pytest.approx(again.log_joint(), rel=1e-12)
    assert aligner.counts()["translations"].sum() == len(aligner.links)


def test_means_are_probabilities():
    aligner = CollapsedAligner(indexed(TINY), **PRIOR)
    aligner.sweep(1)
    means = aligner.means()
    rows = np.add.reduceat(means["translations"], [0, 3, 5, 7])
    np.testing.assert_allclose(rows, 1.0)
    np.testing.assert_allclose(means["jumps"].sum(), 1.0)
    np.testing.assert_allclose(means["fertilities"].sum(axis=1), 1.0)


def test_the_same_seed_gives_the_same_bits():
    pairs = indexed(TINY * 5)
    one, two, other = (sample_chains(pairs, seed=seed, n_init=2) for seed in (7, 7, 8))
    assert one[0].tobytes() == two[0].tobytes()
    assert one[0].tobytes() != other[0].tobytes()
    assert one[1]["translations"].tobytes() == two[1]["translations"].tobytes()


def test_marginals_are_probabilities_and_a_dictionary_moves_them():
    text = [("a b", "x y")] * 4
    pairs = indexed(text)
    alpha = np.full(len(pairs.lexicon), 0.01)
    words, targets = pairs.lexicon.rows(), pairs.lexicon.targets
    alpha[(words == 0) & (targets == 1)] += 50.0  # a is y
    long = {"null": 0.01, "max_iter": 500, "kept": 400}
    first = next(pairs.matrices(sample_chains(pairs, alpha=alpha, **long)[0]))
    without = next(pairs.matrices(sample_chains(pairs, alpha=0.01, **long)[0]))
    assert without[0, 1] < 0.5 < 0.8 < first[0, 1]
    assert first.min() >= 0
    assert first.sum(axis=0).max() <= 1.0001


def test_sentences_with_an_empty_side_say_nothing():
    empty = [("a b", ""), ("", "x"), *TINY]
    words = as_bitext(empty)
    full = BitextCorpus(words, null=True).everything
    pairs = IndexedPairs(words.source, words.target, full.lexicon)
    aligner = CollapsedAligner(pairs, **PRIOR, seed=4)
    without = CollapsedAligner(
        IndexedPairs(full.source, full.target, full.lexicon), **PRIOR, seed=4
    )
    for stream in range(5):
        aligner.sweep(stream)
        without.sweep(stream)
    assert aligner.links[0] == -1
    assert aligner.links[1:].tolist() == without.links.tolist()
    assert aligner.log_joint() == without.log_joint()
    assert [matrix.shape for matrix in pairs.matrices(np.zeros(pairs.n_links))][:2] == [
        (2, 0),
        (0, 1),
    ]


def test_without_the_empty_word_every_target_word_is_linked():
    pairs = indexed(TINY, null=False)
    aligner = CollapsedAligner(pairs, null=0.0)
    for stream in range(20):
        aligner.sweep(stream)
        assert (aligner.links >= 0).all()
    assert np.isfinite(aligner.log_joint())


def test_it_begins_with_draws_from_the_table():
    pairs = indexed(TINY)
    table = (pairs.lexicon.rows() == 1).astype(float)  # b translates everything
    aligner = CollapsedAligner(pairs, table=table)
    assert aligner.links[:4].tolist() == [1, 1, 0, 0]


def test_words_that_go_together_are_found():
    """Ten words with ten translations, in an order of their own."""
    rng = np.random.default_rng(0)
    some = [rng.permutation(10)[:4] for _ in range(60)]
    text = [(" ".join(f"e{k}" for k in row), " ".join(f"f{k}" for k in row)) for row in some]
    matrices = indexed(text).matrices(sample_chains(indexed(text), seed=1)[0])
    right = np.mean([np.trace(matrix) / 4 for matrix in matrices])
    assert right > 0.95


@pytest.mark.parametrize("alpha", [0.0, 1e-20, float("nan")])
def test_bad_priors_are_named(alpha):
    with pytest.raises(LearnerError, match="alpha"):
        CollapsedAligner(indexed(TINY), alpha=alpha)


# checkpoints


def swept(aligner, streams):
    """Everything that can be read of a sampler after each sweep, as bits."""
    figures = []
    for stream in streams:
        sums = np.zeros(aligner._pairs.n_links, np.float32)
        aligner.sweep(stream, 0.8, into=sums)
        figures += [aligner.links.tobytes(), sums.tobytes(), aligner.log_joint()]
        figures += [values.tobytes() for values in aligner.means().values()]
        figures += [array.tobytes() for array in aligner._state]
    return figures


@pytest.mark.parametrize("fixed", [None, (0, FREE, -1, FREE, 1, FREE)])
def test_a_sampler_continues_from_its_state(fixed):
    pairs = indexed(TINY, fixed)
    aligner = CollapsedAligner(pairs, **PRIOR, seed=1)
    swept(aligner, range(5))
    state = aligner.state()
    expected = swept(aligner, range(5, 9))
    other = CollapsedAligner(pairs, **PRIOR, seed=2)
    swept(other, range(3))
    other.restore(state)
    assert swept(other, range(5, 9)) == expected
    assert swept(aligner, range(9, 12)) == swept(other, range(9, 12))


@pytest.mark.parametrize(("chain", "sweeps"), [(0, 0), (0, 3), (1, 1), (2, 4), (2, 2)])
@pytest.mark.parametrize("is_begun", [False, True])
def test_chains_continue_from_their_state(chain, sweeps, is_begun):
    """In whichever chain and sweep they were: also the averages over chains that had ended."""
    pairs = indexed(TINY)
    made = {"n_init": 3, "max_iter": 4, "kept": 2, "seed": 5, **PRIOR}
    whole = LinkChains(pairs, **made)
    state = None
    for number in range(3):
        whole.begin()
        for sweep_number in range(5):
            if (number, sweep_number) == (chain, sweeps):
                state = whole.state()
            if sweep_number < 4:
                whole.sweep()
    expected = whole.marginals()
    again = LinkChains(pairs, **made)
    if is_begun:  # as a model does that is about to be restored
        again.begin()
        again.sweep(keep=True)
    again.restore(state)
    for number in range(chain, 3):
        if number > chain:
            again.begin()
        for _ in range(4 - (sweeps if number == chain else 0)):
            again.sweep()
    links, means = again.marginals()
    assert links.tobytes() == expected[0].tobytes()
    assert {name: values.tobytes() for name, values in means.items()} == {
        name: values.tobytes() for name, values in expected[1].items()
    }


def test_a_stopped_chain_continues_as_one_that_is_averaged_at_once():
    """A chain that ends before any sweep is kept is swept once more: with the same draws."""
    pairs = indexed(TINY)
    chains, again = (LinkChains(pairs, kept=1, seed=7, **PRIOR) for _ in range(2))
    chains.begin()
    chains.sweep()
    again.restore(chains.state())
    for one, other in zip(chains.marginals()[0], again.marginals()[0], strict=True):
        assert one == other


def test_chains_that_have_ended_have_a_state_as_well():
    pairs = indexed(TINY)
    chains, again = (LinkChains(pairs, n_init=2, seed=7, **PRIOR) for _ in range(2))
    chains.begin()
    chains.marginals()
    again.begin()
    again.restore(chains.state())
    assert again.current is None
    for each in (chains, again):
        each.begin()
        each.sweep()
    assert chains.current.links.tolist() == again.current.links.tolist()
