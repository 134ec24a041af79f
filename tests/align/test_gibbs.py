"""The sampled aligner: seeds, settings, and what its chains agree on."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.align import data, gibbs
from softcount.core import interrupt
from softcount.core.errors import LearnerError
from softcount.core.verdict import Verdict
from tests.align.small import PAIRS, assert_alike, assert_same, many, tables


def fitted(**settings: Any) -> sc.align.GibbsAligner:
    return sc.align.GibbsAligner(**settings).fit(PAIRS)


def test_seeds() -> None:
    first, again, other = fitted(random_state=1), fitted(random_state=1), fitted(random_state=2)
    assert_same(tables(first), tables(again))
    assert_alike(first.posteriors(), again.posteriors())
    assert first.align() == again.align()
    assert not np.array_equal(
        tables(first)["forward.translation"], tables(other)["forward.translation"]
    )
    assert any((a != b).any() for a, b in zip(first.posteriors(), other.posteriors(), strict=True))
    drawn = fitted(random_state=np.random.default_rng(3))
    assert_same(tables(drawn), tables(fitted(random_state=np.random.default_rng(3))))


def test_no_more_sweeps_are_kept_than_there_are() -> None:
    with pytest.raises(LearnerError, match="kept"):
        fitted(max_iter=2, kept=3)


def test_threads_change_no_bit() -> None:
    text = many(150)
    one, two = (sc.align.GibbsAligner(engine=sc.Local(threads=n)).fit(text) for n in (1, 2))
    assert_same(tables(one), tables(two))
    assert one.align() == two.align()
    assert_alike(one.posteriors(), two.posteriors())


def test_links_are_found() -> None:
    """Words are translated one by one: most links can be told from the words."""
    found = fitted().align()
    right = wrong = 0
    for (source, target), links in zip(PAIRS, found, strict=True):
        for i, j in links:
            same = source.split()[i][1:] == target.split()[j][1:]
            right, wrong = right + same, wrong + (not same)
    assert right > 100
    assert wrong < 0.1 * right


def test_directions_have_posteriors() -> None:
    model = fitted()
    for way in (model.forward_, model.backward_):
        for matrix in way.posteriors():
            assert ((matrix >= 0.0) & (matrix <= 1.0 + 1e-6)).all()
            assert (matrix.sum(axis=0) <= 1.0 + 1e-6).all()
    for links, matrix in zip(model.forward_.align(), model.forward_.posteriors(), strict=True):
        empty = np.maximum(1.0 - matrix.sum(axis=0), 0.0)
        best = [(int(i), j) for j, i in enumerate(matrix.argmax(axis=0))]
        expected = [(i, j) for i, j in best if matrix[i, j] > empty[j]]
        assert sorted(expected) == links


def test_own_pairs_are_sampled_and_new_ones_are_not() -> None:
    model = fitted()
    own, new = model.posteriors(), model.posteriors(list(PAIRS))
    assert any(np.abs(a - b).max() > 0.01 for a, b in zip(own, new, strict=True))
    close = np.mean([np.abs(a - b).mean() for a, b in zip(own, new, strict=True)])
    assert close < 0.1


def test_tables_are_distributions() -> None:
    model = fitted().partial_fit(PAIRS[:5])
    for way in (model.forward_, model.backward_):
        sums = np.asarray(way.table().sum(axis=1)).ravel()
        np.testing.assert_allclose(sums, 1.0, atol=1e-9)
        assert (way.raw_params_["translation"] > 0.0).all()
        assert np.isfinite(way.raw_params_["jumps"]).all()


def test_more_chains_agree_more() -> None:
    def spread(**settings: Any) -> float:
        runs = [fitted(random_state=seed, **settings).posteriors() for seed in (1, 2, 3)]
        return float(np.mean([np.std(each, axis=0).mean() for each in zip(*runs, strict=True)]))

    assert spread(n_init=12) < spread(n_init=1)


def test_no_empty_word() -> None:
    """Of two directions each links every word."""
    model = fitted(p_null=0.0)
    for links, (_, target) in zip(model.align(method="forward"), PAIRS, strict=True):
        assert [j for _, j in sorted(links, key=lambda link: link[1])] == list(
            range(len(target.split()))
        )


def test_a_small_prior_wants_few_translations() -> None:
    few, many_ = (fitted(prior=prior).forward_ for prior in (0.0001, 3.0))
    bits = [way.core_.table.entropy(way.raw_params_["translation"]) for way in (few, many_)]
    assert bits[0] < 0.7 * bits[1]


def test_what_is_told_of_a_run() -> None:
    """Every sweep of every chain is a state; the warm-up comes before them."""
    seen: list[Any] = []
    model = sc.align.GibbsAligner(max_iter=5, n_init=3, random_state=9).fit(
        PAIRS, on_step=seen.append
    )
    assert model.verdict_ == Verdict.SAMPLED
    assert [state.step for state in seen] == [0, 1, 2, 3, 4, 5] * 3
    traces = model.fit_.traces
    assert [len(trace) for trace in traces] == [6, 6, 6]
    assert all(np.isfinite(trace.objective).all() for trace in traces)
    assert model.trace_[-1].objective == max(trace[-1].objective for trace in traces)
    (warm_up,) = model.trace_.warm_up
    assert len(warm_up) == 5
    assert (np.diff(warm_up.objective) > 0.0).all()
    assert "seed 9" in model.signature_
    assert "max_iter=5" in model.signature_


def test_tables_of_any_sweep_can_be_looked_at() -> None:
    model = sc.align.GibbsAligner(max_iter=3, n_init=1, kept=1).fit(PAIRS, keep_params=True)
    assert_same(dict(model.trace_.params[-1]), dict(model.raw_params_))


def test_what_it_does_not_take() -> None:
    with pytest.raises(LearnerError, match="init"):
        sc.align.GibbsAligner().fit(PAIRS, init="uniform")
    with pytest.raises(LearnerError, match="development"):
        sc.align.GibbsAligner().fit(PAIRS, development=PAIRS[:3])
    with pytest.raises(TypeError):
        sc.align.GibbsAligner(learner=sc.EM())  # type: ignore[call-arg]


def test_the_first_of_several_known_links_holds() -> None:
    links: list[Any] = [None] * len(PAIRS)
    n = next(n for n, (source, _) in enumerate(PAIRS) if len(source.split()) == 4)
    links[n] = [(3, 1), (0, 1)]
    model = sc.align.GibbsAligner().fit(PAIRS, links=links)
    matrix = model.forward_.posteriors()[n]
    assert matrix[:, 1].tolist() == pytest.approx([1.0, 0.0, 0.0, 0.0])
    back = model.backward_.posteriors()[n]
    assert back[1, [0, 3]].tolist() == pytest.approx([1.0, 1.0])


def test_more_pairs_are_sampled_too() -> None:
    model = fitted().partial_fit(PAIRS[:6])
    assert len(model.align()) == 6
    again = fitted().partial_fit(PAIRS[:6])
    assert_alike(model.posteriors(), again.posteriors())
    assert model.translations("S1", 1)[0][0] == "T1"


@pytest.mark.parametrize("settings", [{"p_null": 0.0}, {"dictionary": {"S1": "T9", "S2": "T2"}}])
def test_it_can_always_be_saved_and_go_on(settings: dict[str, Any], tmp_path: Path) -> None:
    """Though a chain may have taken links that the tables rule out."""
    model = fitted(**settings)
    model.save(tmp_path / "kept")
    again = sc.load(tmp_path / "kept")
    assert_alike(model.posteriors(list(PAIRS)), again.posteriors(list(PAIRS)))
    for one in (model, again):
        one.partial_fit(PAIRS[:6])
    assert_same(tables(model), tables(again))
    if "dictionary" in settings:
        assert model.translations("S1", 9)[0] == ("T9", 1.0)


def test_ctrl_c_ends_all_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """The direction that is still being drawn is told to stop, and nothing is left half done."""
    both, ended, begun = Barrier(2), Event(), []

    def interrupted(state: Any, *_: Any, **__: Any) -> Any:
        begun.append(state)
        first = len(begun) == 1
        both.wait(60)
        if first:
            raise KeyboardInterrupt
        try:
            for _ in range(6000):
                time.sleep(0.01)
                interrupt.check()
        except interrupt.GivenUp:
            ended.set()
            raise

    monkeypatch.setattr(gibbs.CollapsedAligner, "sweep", interrupted)
    model = sc.align.GibbsAligner(engine=sc.Local(threads=2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(PAIRS)
    assert ended.wait(60)
    assert not hasattr(model, "forward_")


def test_a_hard_entry_alone_in_its_row() -> None:
    """Sums of priors leave no last bit behind."""
    pairs = [("a", "x"), ("b c", "y z")] * 7
    model = sc.align.GibbsAligner(prior=0.3, dictionary={"a": "x"}).fit(pairs)
    assert model.translations("a") == [("x", 1.0)]


# several shards, and checkpoints


class _CaughtError(Exception):
    """Raised in place of a fit, with what it was called with."""


def make_core(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, Any]:
    """The core, the shards and the uniform start of a fit that does not take place."""

    def caught(model: Any, corpus: Any, *_: Any, init: Any, **__: Any) -> Any:
        raise _CaughtError(model, corpus.shards(), init.params)

    monkeypatch.setattr(gibbs, "fit", caught)
    with pytest.raises(_CaughtError) as error:
        fitted(max_iter=3, n_init=3, kept=2)
    core, shards, params = error.value.args
    return core, shards, params


def run_on(
    core: Any, shards: Any, params: Any, sampler: Any, sweeps: int, chains: int
) -> list[Any]:
    """Sweep on, begin further chains, and average: all figures on the way, as bits."""
    figures: list[Any] = []
    for _ in range(chains):
        for _ in range(sweeps):
            sampler.sweep(0, 1.0)
            figures += [sampler.log_joint(), sampler.stats().tokens]
            figures += [np.asarray(values).tobytes() for values in sampler.counts().values()]
        sampler, sweeps = core.collapse(shards, params, 0), 3
    for chain in core.chains:
        links, means = chain.marginals()
        figures += [links.tobytes(), *(values.tobytes() for values in means.values())]
    return figures


def test_a_sampler_continues_from_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the second of three chains: the first one is in the averages."""
    core, shards, params = make_core(monkeypatch)
    for sweeps in (3, 1):
        sampler = core.collapse(shards, params, 0)
        for _ in range(sweeps):
            sampler.sweep(0, 1.0)
    state = sampler.state()
    assert all(isinstance(values, np.ndarray) for values in state.values())
    expected = run_on(core, shards, params, sampler, 2, 1)
    fresh, shards, params = make_core(monkeypatch)
    again = fresh.collapse(shards, params, 0)
    again.restore(state)
    assert run_on(fresh, shards, params, again, 2, 1) == expected


def test_a_sampler_takes_several_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, shards, params = make_core(monkeypatch)
    expected = run_on(whole, shards, params, whole.collapse(shards, params, 0), 3, 2)
    monkeypatch.setattr(data, "CUT", 300)
    core, parts, params = make_core(monkeypatch)
    assert len(parts) > len(shards) == 1
    assert run_on(core, parts, params, core.collapse(parts, params, 0), 3, 2) == expected
