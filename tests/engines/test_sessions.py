"""Sessions whose shards are in other processes do what those of `Local` do, with the same bits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softcount.core.errors import ImpossibleItem, SoftcountError
from softcount.core.types import EStep, Stats
from softcount.engines import Local
from tests.engines import shards as work
from tests.engines.shards import KINDS, VALUES, bits, codes

SOME = [5, 2, 9, 30, 31, 32, 33]
LARGE = np.random.default_rng(1).normal(size=(300, 500))


def scores(session: Any, function: Any = work.count_visits, **options: Any) -> list[float]:
    return [stats.score for stats in session.each(function, {}, EStep(**options))]


def test_the_sum_has_the_same_bits(engine: Any):
    for n in (2, 3, 8, 37):
        with Local(1).open(VALUES[:n]) as here, engine.open(VALUES[:n]) as there:
            one, other = (s.expect(work.weigh, {}, EStep()) for s in (here, there))
            assert bits(one.log_likelihood) == bits(other.log_likelihood)
            assert bits(one.counts) == bits(other.counts)
            assert len(there) == n
            assert list(there.shards) == VALUES[:n]


def test_some_shards_in_the_order_asked_for(engine: Any):
    with Local(1).open(VALUES) as here, engine.open(VALUES) as there:
        for which in (SOME, [36], range(8, 16)):
            one, other = (s.expect(work.weigh, {}, EStep(), which) for s in (here, there))
            assert bits(one.log_likelihood) == bits(other.log_likelihood)
        each = there.each(work.weigh, {}, EStep(), SOME)
        assert [stats.log_likelihood for stats in each] == [VALUES[shard] for shard in SOME]


def test_the_work_is_done_elsewhere_and_by_all(engine: Any):
    with engine.open(VALUES) as session:
        session.expect(work.doze, {"seconds": np.array(0.01)}, EStep())
        told = list(session.map(work.tell, {}, EStep()))
    assert len({answer["process"] for answer in told} - {os.getpid()}) == 2
    assert [answer["shard"] for answer in told] == VALUES


def test_map_passes_states_and_keeps_none(engine: Any):
    with engine.open(VALUES[:5]) as session:
        assert [told["local"] for told in session.map(work.tell, {}, EStep())] == [None] * 5
        session.each(work.count_visits, {}, EStep(), [1, 3])
        assert [told["local"] for told in session.map(work.tell, {}, EStep())] == [
            *(None, 1, None, 1, None)
        ]
        told = list(session.map(work.count_visits, {}, EStep(), [3, 0]))
        assert [(stats.score, stats.local) for stats in told] == [(1, 2), (0, 1)]
        assert session.states() == {1: 1, 3: 1}


def test_map_in_the_middle_of_other_work(engine: Any):
    with engine.open(VALUES) as session:
        params = {"x": np.ones(1)}
        answers = session.map(work.add_params, params, EStep())
        first = next(answers)
        session.expect(work.add_params, {"x": np.zeros(3)}, EStep())
        assert {stats.score for stats in (first, *answers)} == {1.0}
        begun = session.map(work.weigh, {}, EStep())
        next(begun)
        begun.close()
        assert session.expect(work.weigh, {}, EStep(), [3]).log_likelihood == VALUES[3]


def test_local_state_stays_with_its_shard(engine: Any):
    with engine.open(list("abcd")) as session:
        assert scores(session) == [0, 0, 0, 0]
        stats = session.expect(work.count_visits, {}, EStep(), [1, 3])
        assert (stats.score, stats.local) == (2, None)
        before = session.snapshot()
        assert scores(session, score_only=True) == [1, 2, 1, 2]
        assert scores(session) == [1, 2, 1, 2]  # only looking had changed nothing
        session.restore(before)
        assert scores(session) == [1, 2, 1, 2]
        assert scores(session) == [2, 3, 2, 3]
        session.restore(before)
        assert scores(session) == [1, 2, 1, 2]
        session.reset()
        assert scores(session) == [0, 0, 0, 0]


def test_snapshots_of_snapshots(engine: Any):
    with engine.open([0, 1]) as session:
        empty = session.snapshot()
        scores(session)
        one = session.snapshot()
        scores(session)
        two = session.snapshot()
        session.restore(one)
        assert session.snapshot().versions == one.versions
        assert scores(session) == [1, 1]
        session.restore(two)
        assert scores(session) == [2, 2]
        session.restore(empty)
        assert scores(session) == [0, 0]
        del one, two
        assert scores(session) == [1, 1]


def test_states_go_from_engine_to_engine(engine: Any):
    items = VALUES[:6]
    with Local(1).open(items) as here, engine.open(items) as there:
        for session in (here, there):
            session.expect(work.keep_row, {}, EStep())
            session.expect(work.keep_row, {}, EStep(), [0, 4])
        assert bits(dict(here.states())) == bits(dict(there.states()))
        kept = there.states()
        there.expect(work.keep_row, {}, EStep())
        there.restore(kept)
        here.restore(kept)
        assert scores(here, work.keep_row) == scores(there, work.keep_row)
        there.restore({2: np.ones(4)})
        assert scores(there, work.keep_row) == [0, 0, 4, 0, 0, 0]
        assert list(there.states()) == list(range(6))


def test_a_snapshot_of_another_session_is_refused(engine: Any):
    with engine.open([1, 2]) as one, engine.open([1, 2]) as other:
        snapshot = one.snapshot()
        with pytest.raises(SoftcountError, match="another session"):
            other.restore(snapshot)


def test_parameters_are_those_of_the_call(engine: Any):
    """Arrays that stay the same object may have been written to; others come and go."""
    table, other = LARGE.copy(), np.ones(3)
    with engine.open([0, 0, 0]) as session:

        def total(**params: Any) -> float:
            return session.expect(work.add_params, params, EStep()).score / 3

        assert total(x=table) == total(x=table) == float(LARGE.sum())
        table[0, 0] += 2.0**20
        assert total(x=table) == float(table.sum())
        assert total(x=table, y=other) == float(table.sum()) + 3.0
        assert total(y=other) == 3.0
        assert total(y=2 * other) == 6.0
        assert total(z=other) == 3.0


def test_the_parameters_of_an_e_step_go_along(engine: Any):
    with engine.open([0, 0]) as session:
        how = EStep(against={"x": LARGE + 1.0})
        difference = session.expect(work.add_against, {"x": LARGE}, how).score
        assert difference == 2 * float(np.sum(LARGE + 1.0) - np.sum(LARGE))


def test_arrays_arrive_with_their_layout(engine: Any):
    """The order of axes in memory may change the order of a sum, and so its bits."""
    items = [np.asfortranarray(LARGE), LARGE]
    for table in (LARGE, LARGE.T, LARGE.reshape(30, 10, 500).transpose(1, 0, 2)):
        with Local(1).open(items) as here, engine.open(items) as there:
            told = [list(s.map(work.tell_layout, {"x": table}, EStep())) for s in (here, there)]
            assert told[0] == told[1]


def test_shards_that_are_made_on_access_are_made_elsewhere(engine: Any, tmp_path: Path):
    seen = tmp_path / "seen"
    items = work.Lazy(tuple(VALUES[:8]), str(seen))
    with engine.open(items) as session:
        total = session.expect(work.weigh, {}, EStep()).log_likelihood
        told = list(session.map(work.tell, {}, EStep()))
    with Local(1).open(VALUES[:8]) as here:
        assert bits(total) == bits(here.expect(work.weigh, {}, EStep()).log_likelihood)
    assert [answer["shard"] for answer in told] == VALUES[:8]
    makers = seen.read_text().split()
    assert len(makers) == 16
    assert str(os.getpid()) not in makers


def test_threads_go_inside_when_the_model_says_so(engine: Any):
    with engine.open(VALUES) as session:
        assert {told["threads"] for told in session.map(work.tell, {}, EStep())} == {1}


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_errors_come_through_and_the_session_lives(engine: Any, kind: int):
    error = KINDS[kind]
    params = {"which": np.array(3.0), "kind": np.array(kind)}
    with engine.open([float(n) for n in range(20)]) as session:
        expected = SoftcountError if isinstance(error, work.Awkward) else type(error)
        with pytest.raises(expected) as caught:
            session.expect(work.fail, params, EStep())
        assert str(error) in str(caught.value)
        if isinstance(error, ImpossibleItem):
            assert (caught.value.item, caught.value.hint) == (7, "leave it out")
            assert str(caught.value) == str(error)
            caught.value.call_it("sentence 8")
            assert str(caught.value).startswith("sentence 8 is")
        elif isinstance(error, FloatingPointError):
            assert "In a worker process" in "".join(caught.value.__notes__)
        assert session.expect(work.weigh, {}, EStep(), [3]).log_likelihood == 3


def test_the_first_error_in_the_order_of_shards_is_raised(engine: Any):
    params = {"which": np.array(3.0), "kind": np.array(0)}
    with engine.open([3.0] * 12) as session:
        answers = session.map(work.fail, params, EStep())
        with pytest.raises(ImpossibleItem):
            next(answers)


def test_states_written_before_an_error_are_known(engine: Any):
    params = {"which": np.array(5.0)}
    with engine.open([float(n) for n in range(8)]) as session:
        scores(session)
        before = session.snapshot()
        for _ in range(2):
            with pytest.raises(FloatingPointError):
                session.expect(work.keep_and_fail, params, EStep())
        assert min(session.states().values()) >= 1
        session.restore(before)
        assert scores(session) == [1] * 8


def test_what_is_defined_in_a_test_can_be_sent(engine: Any):
    factor = 3.0

    def scale(params: Any, shard: float, how: Any, local: Any) -> Stats:
        return Stats({}, log_likelihood=factor * shard)

    with engine.open([1.0, 2.0]) as session:
        assert session.expect(scale, {}, EStep()).log_likelihood == 9.0


def test_a_result_that_cannot_be_sent_is_an_error(engine: Any):
    with (
        engine.open([1, 2]) as session,
        pytest.raises(SoftcountError, match="what the function returned cannot be sent"),
    ):
        list(session.map(work.make_lock, {}, EStep()))


def test_shards_that_are_no_records(engine: Any):
    items = [{1: object}, {2: "b"}]  # a class is no record
    with engine.open(items) as session:
        for _ in range(2):
            assert [told["shard"] for told in session.map(work.tell, {}, EStep())] == items


def test_a_killed_worker_is_replaced(engine: Any, tmp_path: Path):
    params = {"mark": codes(tmp_path / "mark"), "which": np.array(VALUES[20])}
    with Local(1).open(VALUES) as here, engine.open(VALUES) as there:
        expected = here.expect(work.weigh, {}, EStep())
        found = there.expect(work.end_once, params, EStep())
        assert (tmp_path / "mark").exists()
        assert bits(found.log_likelihood) == bits(expected.log_likelihood)
        assert there.expect(work.weigh, {}, EStep(), [20]).log_likelihood == VALUES[20]


def test_work_that_kills_every_worker_ends(engine: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("softcount.engines.processes.TRIES", 2)
    monkeypatch.setattr("softcount.engines.dask.TRIES", 2)
    with engine.open([1.0, 2.0]) as session:
        with pytest.raises(SoftcountError, match="shard 1"):
            session.expect(work.end_always, {"which": np.array(2.0)}, EStep())
        assert session.expect(work.weigh, {}, EStep()).log_likelihood == 3.0


def test_sessions_may_be_open_at_the_same_time(engine: Any):
    with engine.open(VALUES) as outer:
        outer.expect(work.count_visits, {}, EStep())
        with engine.open(VALUES[::-1]) as inner:
            inner.expect(work.count_visits, {}, EStep())
            assert inner.expect(work.count_visits, {}, EStep()).score == 37
        assert outer.expect(work.count_visits, {}, EStep()).score == 37
        outer.close()
        outer.close()
