"""Engines: sums in a fixed order, local state that stays put, and the same bits for any threads."""

from __future__ import annotations

import _thread
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.core.errors import SoftcountError
from softcount.core.types import EStep, Stats
from softcount.engines import Local
from softcount.engines.blocks import tree_sum

# of both signs and unequal sizes: another order of summing gives other bits
VALUES = [float(x) for x in np.random.default_rng(3).normal(size=37) * 1e8]


def weigh(params, shard, how, local):
    return Stats({"x": np.array([shard])}, log_likelihood=shard)


def slowly(params, shard, how, local):
    time.sleep(0.002 * (hash(shard) % 4))
    return weigh(params, shard, how, local)


def recursive_sum(values):
    """The tree as a picture: the largest power of two goes left."""
    if len(values) == 1:
        return values[0]
    left = 1
    while 2 * left < len(values):
        left *= 2
    return recursive_sum(values[:left]) + recursive_sum(values[left:])


@settings(deadline=None)
@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=70))
def test_the_tree_depends_on_the_order_of_shards_alone(values):
    total = tree_sum(Stats({}, log_likelihood=value) for value in values)
    assert total.log_likelihood == recursive_sum(values)


@pytest.mark.parametrize("threads", [1, 2, 4, 64])
def test_the_sum_has_the_same_bits_whatever_finishes_first(threads):
    with Local(threads).open(VALUES) as session:
        stats = session.expect(slowly, {}, EStep())
    assert stats.log_likelihood == recursive_sum(VALUES) == float(stats.counts["x"][0])
    assert recursive_sum(VALUES) != recursive_sum(VALUES[::-1])


def test_few_partial_sums_are_alive():
    class Part:
        alive = most = 0

        def __init__(self):
            Part.alive += 1
            Part.most = max(Part.most, Part.alive)

        def __add__(self, other):
            return Part()

        def __del__(self):
            Part.alive -= 1

    tree_sum(Part() for _ in range(1000))
    assert Part.most <= 10 + 3  # log2 of 1000, and those just being added


def test_results_do_not_pile_up_behind_a_slow_shard():
    release, started = threading.Event(), []

    def first_waits(params, shard, how, local):
        started.append(shard)
        if shard == 0:
            release.wait(10)
        return Stats({})

    with Local(2).open(range(100)) as session:
        results = threading.Thread(target=session.expect, args=(first_waits, {}, EStep()))
        results.start()
        while len(started) < 5:
            time.sleep(0.001)
        time.sleep(0.05)
        waiting = len(started)
        release.set()
        results.join(10)
    assert waiting <= 10
    assert sorted(started) == list(range(100))


def test_some_shards_only_in_the_order_asked_for():
    with Local(2).open(VALUES) as session:
        each = session.each(weigh, {}, EStep(), [5, 2, 9])
        assert [stats.log_likelihood for stats in each] == [VALUES[5], VALUES[2], VALUES[9]]
        two = session.expect(weigh, {}, EStep(), [5, 2])
        assert two.log_likelihood == VALUES[5] + VALUES[2]


def count_visits(params, shard, how, local):
    return Stats({}, score=0.0 if local is None else local, local=(local or 0) + 1)


@pytest.mark.parametrize("threads", [1, 3])
def test_local_state_stays_with_its_shard(threads):
    def scores(**options):
        return [s.score for s in session.each(count_visits, {}, EStep(**options))]

    with Local(threads).open("abcd") as session:
        assert scores() == [0, 0, 0, 0]
        stats = session.expect(count_visits, {}, EStep(), [1, 3])
        assert stats.score == 2
        assert stats.local is None  # it does not travel
        before = session.snapshot()
        assert scores(score_only=True) == [1, 2, 1, 2]
        assert scores() == [1, 2, 1, 2]  # only looking had changed nothing
        session.restore(before)
        assert scores() == [1, 2, 1, 2]
        session.reset()
        assert scores() == [0, 0, 0, 0]


@pytest.mark.parametrize("threads", [1, 3])
def test_map_yields_anything_in_order_and_keeps_no_state(threads):
    def tell(params, shard, how, local):
        return shard, local, how.threads

    with Local(threads).open("abcd") as session:
        session.each(count_visits, {}, EStep(), [1, 3])
        assert list(session.map(tell, {}, EStep())) == [
            *(("a", None, 1), ("b", 1, 1), ("c", None, 1), ("d", 1, 1))
        ]
        told = list(session.map(count_visits, {}, EStep(), [3, 0]))
        assert [(stats.score, stats.local) for stats in told] == [(1, 2), (0, 1)]
        assert session.states() == {1: 1, 3: 1}


def test_states_go_into_another_session():
    with Local(1).open("abcd") as one, Local(2).open("abcd") as other:
        one.each(count_visits, {}, EStep(), [3, 1])
        assert list(one.states()) == [1, 3]
        other.restore(one.states())
        one.each(count_visits, {}, EStep())
        assert [s.score for s in other.each(count_visits, {}, EStep())] == [0, 1, 0, 1]


def test_threads_go_inside_when_the_model_says_so():
    def threads_seen(params, shard, how, local):
        return Stats({}, items=how.threads)

    def who(params, shard, how, local):
        return Stats({"thread": np.array([threading.get_ident()])})

    with Local(3).open("ab", threads_inside=True) as session:
        assert [s.items for s in session.each(threads_seen, {}, EStep())] == [3, 3]
        mine = threading.get_ident()
        assert all(s.counts["thread"][0] == mine for s in session.each(who, {}, EStep()))
    with Local(3).open("ab") as session:
        assert [s.items for s in session.each(threads_seen, {}, EStep())] == [1, 1]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("error", [FloatingPointError, MemoryError, KeyboardInterrupt])
def test_errors_come_through_as_they_are_and_stop_the_rest(threads, error):
    started = []

    def fails(params, shard, how, local):
        started.append(shard)
        if shard == 1:
            raise error("shard 1")
        return Stats({})

    with Local(threads).open(range(200)) as session:
        with pytest.raises(error, match="shard 1"):
            session.expect(fails, {}, EStep())
        assert len(started) < 50
        assert session.expect(weigh, {}, EStep(), [3]).log_likelihood == 3  # still of use


def test_after_an_error_what_has_not_begun_never_will():
    release, started = threading.Event(), []

    def first_fails(params, shard, how, local):
        started.append(shard)
        if shard == 0:
            raise FloatingPointError
        release.wait(10)
        return Stats({})

    with Local(2).open(range(20)) as session:
        with pytest.raises(FloatingPointError):
            session.expect(first_fails, {}, EStep())
        release.set()
        session.expect(weigh, {}, EStep(), [8, 9])  # the pool works in order: all before is done
    assert set(started) <= {0, 1, 2}


def test_ctrl_c_does_not_wait_for_all_shards():
    started = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs

    def interrupted(params, shard, how, local):
        started.append(shard)
        if shard == 0:
            _thread.interrupt_main()
        time.sleep(0.01)
        return Stats({})

    try:
        with pytest.raises(KeyboardInterrupt), Local(2).open(range(500)) as session:
            session.expect(interrupted, {}, EStep())
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(started) < 100


def test_no_threads_is_an_error():
    with pytest.raises(SoftcountError, match="at least one"):
        Local(threads=0)
