"""Bits, threads, precision, and numbers that are very small or sentences that are very long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.corpus.sequences import sequences
from softcount.corpus.tagged import tagged
from softcount.hmm import data as shards
from softcount.hmm import forward_backward as ways
from softcount.types import How
from tests.models.sequences.text import LEARNERS, assert_same, made


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("learner", ["EM", "HardEM", "MonteCarloEM", "Gibbs"])
def test_threads_change_no_bit(learner: str, order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "MANY", 1)
    monkeypatch.setattr(shards, "LANES", 8)
    text, _ = made(200, seed=4)
    found = []
    for threads in (1, 2, 4):
        engine = sc.Local(threads=threads)
        it = sc.HMM(4, order=order, smoothing=0.1, learner=LEARNERS[learner], engine=engine)
        model = it.fit(text)
        shares = np.concatenate(model.predict_proba(text))
        drawn = model.posterior_sample(text[:20], 3)
        found.append((model.params_, model.score_samples(text), shares, drawn, model.predict(text)))
    for params, logs, shares, drawn, paths in found[1:]:
        assert_same(params, found[0][0])
        np.testing.assert_array_equal(logs, found[0][1])
        np.testing.assert_array_equal(shares, found[0][2])
        assert (drawn, paths) == found[0][3:]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads_change_no_bit_of_much_text(dtype: str) -> None:
    """So much that work is shared out as it is: K × tokens ≥ 2²²."""
    k, rng = 64, np.random.default_rng(0)
    text = [[f"w{w}" for w in rng.integers(0, 90, n)] for n in rng.integers(1, 60, 2300)]
    it = sc.HMM(k, smoothing=0.1, dtype=dtype, learner=sc.EM(max_iter=1, tol=0))
    model = it.fit(text[:30])
    shard = model.read(text).everything
    assert shard.n_tokens * k >= ways.MANY
    assert len(shard.packs.sentences) > 8
    found = [model.core_.expect(model.raw_params_, shard, How(threads=n)) for n in (1, 2, 4)]
    for stats in found[1:]:
        assert stats.log_likelihood == found[0].log_likelihood
        assert_same(stats.counts, found[0].counts)


def test_pieces_of_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sparse kernel in pieces, by several threads, as in one."""
    text, tags = made(200, seed=4)
    known = tagged(text, tags).dictionary()
    names = [f"T{n}" for n in range(20)] + sorted({tag for some in tags for tag in some})

    def learned(threads: int) -> Any:
        engine = sc.Local(threads=threads)
        it = sc.HMM(dictionary=known, open_tags=names, engine=engine, smoothing=0.1)
        return it.set_params(learner=sc.EM(max_iter=3, tol=0)).fit(text)

    whole = learned(1)
    assert whole.read(text).everything.is_sparse
    monkeypatch.setattr(ways, "MANY", 1)
    one, four = learned(1), learned(4)
    assert_same(one.params_, four.params_)
    for name, table in whole.params_.items():
        np.testing.assert_allclose(one.params_[name], table, atol=1e-12)


def test_float32_is_close() -> None:
    text, _ = made(300, seed=2)
    init = sc.HMM(5, smoothing=0.01, learner=sc.EM(max_iter=1)).fit(text).params_
    usual, coarse = (
        sc.HMM(5, smoothing=0.01, dtype=dtype, init=init, learner=sc.EM(max_iter=5, tol=0)).fit(
            text
        )
        for dtype in ("float64", "float32")
    )
    for name, table in usual.params_.items():
        np.testing.assert_allclose(coarse.params_[name], table, atol=1e-4)
    logs = usual.score_samples(text)
    np.testing.assert_allclose(coarse.score_samples(text), logs, rtol=1e-3, atol=1e-4)
    assert not np.array_equal(coarse.params_["emissions"], usual.params_["emissions"])


# very small, very long
def alike(p: float, **settings: Any) -> Any:
    """Two states that are one: "a" of 1 − p, "b" of p."""
    order = settings.get("order", 1)
    init = {
        "start": [[0.5, 0.5]],
        "transitions": np.full((2**order, 2), 0.5),
        "emissions": [[1.0 - p, p]] * 2,
    }
    if order == 2:
        init["second"] = np.full((2, 2), 0.5)
    it = sc.HMM(2, stop=False, init=init, frozen=list(init), **settings)
    return it.set_params(learner=sc.EM(max_iter=1)).fit(["a b"])


@pytest.mark.parametrize("p", [1e-30, 1e-120, 1e-180, 1e-199, 1e-250, 1e-300])
@pytest.mark.parametrize("way", ["packs", "few states", "order 2"])
def test_chances_next_to_nothing(way: str, p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SPARSE", 0.0 if way == "few states" else np.inf)
    model = alike(p, order=2 if way == "order 2" else 1)
    texts = [["b"] * n for n in (1, 2, 3, 10)] + [["b", "a"] * 5]
    wanted = [sum(np.log(p) for word in text if word == "b") for text in texts]
    np.testing.assert_allclose(model.score_samples(texts), wanted, rtol=1e-12)
    for share in model.predict_proba(texts):
        np.testing.assert_allclose(share, 0.5)
    found = model.expected(texts)
    assert sum(found["emissions"].sum(axis=1)) == pytest.approx(sum(map(len, texts)))


@pytest.mark.filterwarnings("ignore::softcount.ImpossibleWarning")
@pytest.mark.parametrize("way", ["packs", "few states", "order 2"])
def test_chances_that_floats_hardly_have(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below 10⁻³⁰⁸ numbers lose their digits: such a sentence is possible or not, never NaN."""
    monkeypatch.setattr(shards, "SPARSE", 0.0 if way == "few states" else np.inf)
    model = alike(1e-300, order=2 if way == "order 2" else 1)
    for p in (1e-307, 3e-308, 1e-308, 1e-310, 5e-324, 0.0):
        model.raw_params_ = {**model.raw_params_, "emissions": np.array([[1.0, p]] * 2)}
        for text in (["b"], ["b", "b"], ["a", "b", "a", "a"]):
            (log_p,), (shares,) = model.score_samples([text]), model.predict_proba([text])
            times = text.count("b")
            assert log_p == -np.inf or log_p == pytest.approx(times * np.log(p), rel=1e-3), p
            np.testing.assert_allclose(shares, 0.5)
            (best,), (drawn,) = model.predict([text]), model.posterior_sample([text])
            assert len(best) == len(text)
            assert [len(path) for path in drawn] == [len(text)]


def test_float32_holds_nothing_impossible_that_is_not() -> None:
    """p of the second word is 10⁻⁵⁰, which float32 does not have; it can be all the same."""
    init = {
        "start": [[1.0, 0.0]],
        "transitions": [[1.0, 1e-25], [0.5, 0.5]],
        "emissions": [[1.0, 0.0], [1.0, 1e-25]],
    }
    usual, coarse = (
        sc.HMM(2, stop=False, dtype=dtype, init=init, frozen=list(init))
        .set_params(learner=sc.EM(max_iter=1))
        .fit(["a b"])
        .score_samples(["a b"])
        for dtype in ("float64", "float32")
    )
    np.testing.assert_allclose(usual, 50 * np.log(0.1), rtol=1e-9)
    np.testing.assert_allclose(coarse, usual, rtol=1e-5)


def memory(which: str) -> int:
    """Bytes in use now ("VmRSS"), which begins a new peak; or at the peak ("VmHWM")."""
    try:
        if which == "VmRSS":
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        pytest.skip("this system does not tell")
    (line,) = (line for line in lines if line.startswith(which))
    return 1024 * int(line.split()[1])


def long_text(n: int, seed: int = 0) -> list[str]:
    numbers = np.random.default_rng(seed).integers(0, 50, n)
    return [f"w{w}" for w in numbers.tolist()]


@pytest.mark.parametrize("counted", [True, False])
def test_segments_change_nothing(counted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [long_text(20000), long_text(7, 1), [], long_text(300, 2)]
    model = sc.HMM(6, smoothing=0.1, learner=sc.EM(max_iter=2)).fit(texts)

    def found() -> dict[str, Any]:
        if counted:
            return {**model.expected(texts), "shares": np.concatenate(model.predict_proba(texts))}
        return {"logs": model.score_samples(texts)}

    whole = found()
    monkeypatch.setattr(ways, "SEGMENT", 6 * 97)
    for name, table in found().items():
        np.testing.assert_allclose(table, whole[name], rtol=1e-10, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_million_words_in_one_sentence(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is finite, and posteriors of all words are never in memory at once."""
    k, n = 8, 10**6
    monkeypatch.setattr(ways, "SEGMENT", 1 << 16)
    model = sc.HMM(k, dtype=dtype, smoothing=0.1, learner=sc.EM(max_iter=2)).fit([long_text(5000)])
    text = sequences([long_text(n)])
    _ = model.score_samples([long_text(50)]), model.expected([long_text(50)])  # compiled now
    shard = model.read(text).everything
    assert not shard.is_sparse
    before = memory("VmRSS")
    stats = model.core_.expect(model.raw_params_, shard, How())
    matrix = n * k * np.dtype(dtype).itemsize  # of which there are three, if nothing is cut
    assert memory("VmHWM") - before < matrix + 20 * n
    assert np.isfinite(stats.log_likelihood)
    assert -5.0 < stats.log_likelihood / n < -3.0  # log 50 is 3.9
    close = 1e-9 if dtype == "float64" else 1e-4
    for name, total in {"start": 1.0, "transitions": float(n), "emissions": float(n)}.items():
        counts = np.asarray(stats.counts[name])
        assert (counts >= 0.0).all()
        assert counts.sum() == pytest.approx(total, rel=close), name
    assert len(model.predict(text)[0]) == n


def test_chances_that_grow_with_each_word() -> None:
    """Powers of chances add up to more than one: many words must not make infinity of it."""
    n, few = 3000, slice(0, 3)
    text = [["a"] * n]
    model = sc.HMM(12, stop=False, random_state=0, learner=sc.EM(max_iter=1)).fit(text)
    shard = model.read(text, [[{0, 1, 2}] * n]).everything
    assert shard.is_sparse
    heated = model.core_.expect(model.raw_params_, shard, How(temper=0.25))
    start, moves, words = (
        np.asarray(model.raw_params_[name]) ** 0.25
        for name in ("start", "transitions", "emissions")
    )
    alpha, total = start[0, few] * words[few, 0], 0.0
    for _ in range(n - 1):
        total += np.log(alpha.sum())
        alpha = (alpha / alpha.sum()) @ moves[few, few] * words[few, 0]
    total += np.log(alpha.sum())
    assert total > 710.0  # more than a double has room for
    np.testing.assert_allclose(heated.score, total / 0.25, rtol=1e-10)
