"""Chains through lists of states: whole and short lists of many states, and hard numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.hmm.kernels import (
    ChainCounts,
    MarkovChain,
    StateLists,
    TokenEmissions,
    few_states,
    lists,
)
from softcount.hmm.kernels.few_states import TokenCells


class Text(NamedTuple):
    """Sentences, and the tables of a chain of order 1 or 2."""

    indptr: Any
    chain: Any  # a MarkovChain
    emissions: TokenEmissions
    lists: StateLists

    @property
    def n(self) -> int:
        return len(self.indptr) - 1

    def counted(self) -> ChainCounts:
        shape = self.chain.transitions.shape
        sums = (np.zeros(shape[1]), np.zeros(shape), np.zeros(shape[0]))
        posteriors = np.zeros((self.indptr[-1], shape[1]))
        counts = ChainCounts(posteriors, np.arange(self.indptr[-1]), np.zeros(self.n), *sums)
        if self.chain.order == 2:
            text = self._replace(chain=lists.arrange_chain(self.chain))
            lists.forward_backward(0, self.n, *text, np.ones(self.n), counts, True)
        else:
            tokens = np.repeat(np.arange(self.indptr[-1]), np.diff(self.lists.indptr))
            states = self.lists.states[:-1]
            likelihoods = self.emissions.table[tokens, states]
            cells = TokenCells(counts.into, self.lists.indptr, states, likelihoods)
            of_cells = counts._replace(posteriors=np.zeros(len(states)))
            few_states.forward_backward(
                0, self.n, self.indptr, self.chain, cells, np.ones(self.n), of_cells, True
            )
            posteriors[tokens, states] = of_cells.posteriors
        counts.transitions[...] *= self.chain.transitions
        return counts

    def best(self) -> tuple[Any, Any]:
        logs, paths = np.zeros(self.n), np.zeros(self.indptr[-1], np.int32)
        text = self._replace(chain=lists.arrange_chain(self.chain))
        lists.find_paths(0, self.n, *text, True, np.arange(self.n), np.uint64(0), logs, paths[None])
        return logs, paths

    def drawn(self, samples: int = 1, first: int = 0) -> tuple[Any, Any]:
        logs, paths = np.zeros(self.n), np.zeros((samples, self.indptr[-1]), np.int32)
        numbers = np.arange(self.n)
        text = self._replace(chain=lists.arrange_chain(self.chain))
        lists.find_paths(first, self.n, *text, False, numbers, np.uint64(3), logs, paths)
        return logs, paths


def text(lengths: list[int], chain: Any, emissions: Any, allowed: Any = None) -> Text:
    """Each token has a row of emissions of its own; ``allowed`` (tokens, states): all of them."""
    if allowed is None:
        allowed = np.ones(emissions.shape, np.bool_)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens = np.arange(indptr[-1])
    sizes = np.concatenate([[0], np.cumsum(allowed.sum(axis=1))]).astype(np.int64)
    lists = StateLists(sizes, np.append(np.nonzero(allowed)[1], 0))
    return Text(indptr, chain, TokenEmissions(emissions, tokens, tokens), lists)


def tables(rng: Any, k: int, order: int) -> MarkovChain:
    n_rows = k if order == 1 else k * k + k
    stop = rng.uniform(0.1, 0.9, n_rows)
    return MarkovChain(rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), n_rows), stop, order)


def constant(n: int, k: int, order: int, move: float, chance: float) -> Text:
    """All paths weigh k^-1 move^(n - 1) chance^n."""
    n_rows = k if order == 1 else k * k + k
    table, stop = np.full((n_rows, k), move), np.ones(n_rows)
    chain = MarkovChain(np.full(k, 1.0 / k), table, stop, order)
    return text([n], chain, np.full((n, k), chance))


class Whole(NamedTuple):
    """All of a sentence's joint probabilities, as one tensor with an axis for each token."""

    joint: Any

    @classmethod
    def of(cls, one: Text, s: int) -> Whole:
        chain, k = one.chain, len(one.chain.start)
        tokens = range(one.indptr[s], one.indptr[s + 1])
        n, joint = len(tokens), chain.start
        ends = chain.stop
        for i in range(1, n):
            if chain.order == 1:
                rows = chain.transitions
            elif i == 1:
                rows = chain.transitions[k * k :]
            else:
                rows = chain.transitions[: k * k].reshape(k, k, k)
            joint = joint[..., None] * rows
        if chain.order == 2:
            ends = ends[k * k :] if n == 1 else ends[: k * k].reshape(k, k)
        joint = joint * ends
        for i, t in enumerate(tokens):
            own, (low, high) = np.zeros(k), one.lists.indptr[t : t + 2]
            states = one.lists.states[low:high]
            own[states] = one.emissions.table[t, states]
            joint = joint * own.reshape([-1 if j == i else 1 for j in range(n)])
        return cls(joint)

    def share(self, *tokens: int) -> Any:
        """The posterior of some tokens' states."""
        others = tuple(j for j in range(self.joint.ndim) if j not in tokens)
        return self.joint.sum(axis=others) / self.joint.sum()


@pytest.mark.parametrize("order", [1, 2])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_many_states(order: int, data: Any) -> None:
    """More than a vector of states, some tokens in all of them and some in few."""
    k = data.draw(st.sampled_from([1, 2, 7, 8, 9, 11]))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    lengths = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    whole = data.draw(st.lists(st.booleans(), min_size=sum(lengths), max_size=sum(lengths)))
    allowed = (rng.random((sum(lengths), k)) < 0.4) | np.array(whole)[:, None]
    allowed[np.arange(len(allowed)), rng.integers(k, size=len(allowed))] = True
    one = text(lengths, tables(rng, k, order), rng.random((len(allowed), k)), allowed)
    counts, (logs, path) = one.counted(), one.best()
    start, moved = np.zeros(k), np.zeros_like(one.chain.transitions)
    stop = np.zeros(len(moved))
    for s, n in enumerate(lengths):
        full, begin = Whole.of(one, s), one.indptr[s]
        assert counts.log_likelihoods[s] == pytest.approx(np.log(full.joint.sum()), abs=1e-12)
        assert logs[s] == pytest.approx(np.log(full.joint.max()), abs=1e-12)
        top = np.unravel_index(full.joint.argmax(), full.joint.shape)
        assert tuple(path[begin : begin + n]) == top
        for i in range(n):
            np.testing.assert_allclose(counts.posteriors[begin + i], full.share(i), atol=1e-13)
        start += full.share(0)
        if order == 1:
            stop += full.share(n - 1)
            for i in range(1, n):
                moved += full.share(i - 1, i)
            continue
        stop[k * k :] += full.share(0) if n == 1 else 0.0
        stop[: k * k] += full.share(n - 2, n - 1).reshape(-1) if n > 1 else 0.0
        moved[k * k :] += full.share(0, 1) if n > 1 else 0.0
        for i in range(2, n):
            moved[: k * k] += full.share(i - 2, i - 1, i).reshape(k * k, k)
    for found, wanted in ((counts.start, start), (counts.transitions, moved), (counts.stop, stop)):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_draws_from_many_states(order: int) -> None:
    rng = np.random.default_rng(2)
    one = text([3, 2], tables(rng, 9, order), rng.random((5, 9)) ** 4)
    samples = 20000
    logs, paths = one.drawn(samples)
    for s, n in enumerate((3, 2)):
        full, begin = Whole.of(one, s), one.indptr[s]
        assert logs[s] == pytest.approx(np.log(full.joint.sum()))
        found = np.zeros(full.joint.shape)
        np.add.at(found, tuple(paths[:, begin : begin + n].T), 1.0 / samples)
        wanted = full.joint / full.joint.sum()
        assert (np.abs(found - wanted) <= 5.5 * np.sqrt(wanted / samples) + 1e-3).all()
    assert (one.drawn(samples, first=1)[1][:, 3:] == paths[:, 3:]).all()  # whoever was before


@pytest.mark.parametrize("k", [2, 9])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("move", "chance"), [(0.5, 1e-250), (1e-250, 1.0), (1.0, 1.0), (3.0, 9.0)])
def test_small_and_large_chances(order: int, k: int, move: float, chance: float) -> None:
    """Steps of 1e-250, and tables that add up to more than one, as tempered ones do."""
    n = 400
    one = constant(n, k, order, move, chance)
    counts, (logs, path), (drawn_logs, _) = one.counted(), one.best(), one.drawn()
    path_log = (n - 1) * np.log(move) + n * np.log(chance) - np.log(k)
    for found in (counts.log_likelihoods[0], drawn_logs[0]):
        assert found == pytest.approx(path_log + n * np.log(k), rel=1e-12)
    assert logs[0] == pytest.approx(path_log, rel=1e-12)
    assert not path.any()  # all paths are as good: the first state of all
    np.testing.assert_allclose(counts.posteriors, 1.0 / k, rtol=1e-9)
    assert counts.transitions.sum() == pytest.approx(n - 1)
    assert counts.start.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("order", [1, 2])
def test_long_sentence(order: int) -> None:
    one = constant(100_000, 2, order, 0.5, 1e-3)
    counts = one.counted()
    assert counts.log_likelihoods[0] == pytest.approx(100_000 * np.log(1e-3), rel=1e-12)
    np.testing.assert_allclose(counts.posteriors, 0.5, rtol=1e-8)
    assert one.best()[0][0] == pytest.approx(100_000 * np.log(0.5e-3), rel=1e-12)


@pytest.mark.parametrize("k", [3, 9])
@pytest.mark.parametrize("order", [1, 2])
def test_states_that_are_never_reached(order: int, k: int) -> None:
    """State 0 alone is there, each token being nearly impossible in it: others' β is huge."""
    chain = tables(np.random.default_rng(0), k, order)
    chain.start[1:] = 0.0
    for row in (0,) if order == 1 else (0, k * k):
        chain.transitions[row, 1:] = 0.0
    emissions = np.ones((20, k))
    emissions[:, 0] = 1e-250
    counts = text([20], chain, emissions).counted()
    assert np.isfinite(counts.log_likelihoods).all()
    for found in (counts.posteriors, counts.start, counts.transitions, counts.stop):
        assert np.isfinite(found).all()
    np.testing.assert_allclose(counts.posteriors[:, 0], 1.0, rtol=1e-9)


def test_impossible_sentences() -> None:
    """A sentence that cannot be says so, and leaves the others alone."""
    rng = np.random.default_rng(1)
    emissions = rng.random((6, 9))
    emissions[3] = 0.0
    one = text([2, 2, 2], tables(rng, 9, 2), emissions)
    counts = one.counted()
    for logs in (counts.log_likelihoods, one.best()[0], one.drawn()[0]):
        assert np.isneginf(logs).tolist() == [False, True, False]
    assert counts.start.sum() == pytest.approx(2.0)
    assert not counts.posteriors[2:4].any()
