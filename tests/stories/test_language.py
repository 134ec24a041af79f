"""What a story may say, and what it is told when it says something else."""

from __future__ import annotations

import pytest

import softcount as sc
from softcount.core.errors import DataError, ImpossibleItem, StartError, StoryError
from softcount.stories.language import trace_story

which, flip, emit, trans = (sc.table(name) for name in ("which", "flip", "emit", "trans"))


@sc.story
def coins(tosses):
    for z in "AB":
        yield which[z], *(flip[z, x] for x in tosses)


DATA = ["HHH", "TTT", "HHT", "TTT"]


def test_a_story_can_be_read_outside_of_tracing():
    assert [list(map(repr, alternative)) for alternative in coins(["H"])] == [
        ["which[A]", "flip[A, H]"],
        ["which[B]", "flip[B, H]"],
    ]


def test_equal_calls_are_shared_and_lists_are_welcome():
    @sc.story
    def tail(words, i, tag):
        if i < len(words):
            for after in "XY":
                yield trans[tag, after], emit[after, words[i]], tail(words, i + 1, after)
        else:
            yield ()

    trail = trace_story(tail, (["a", "b", "a", "c"], 0, "X"))
    assert trail.n_nodes == 1 + 2 * 4
    assert trail.n_alternatives == 2 * (1 + 2 * 3) + 2


def test_keyword_arguments_are_the_same_call():
    @sc.story
    def inner(tosses, i):
        yield flip["A", tosses[i]]

    @sc.story
    def outer(tosses):
        yield inner(tosses, i=0), inner(tosses, 0)

    assert trace_story(outer, "HT").n_nodes == 2


def test_a_story_must_yield():
    with pytest.raises(StoryError, match="does not yield"):
        sc.story(lambda tosses: 3)


def test_unhashable_argument_is_named_with_a_hint():
    @sc.story
    def rest(words):
        if words:
            yield flip["A", words[0]], rest(words[1:])

    with pytest.raises(StoryError, match=r"rest\(\['b'\]\)") as error:
        sc.StoryModel(rest).fit([["a", "b"]])
    assert "position" in error.value.hint


def test_unhashable_key_is_named_with_a_hint():
    @sc.story
    def odd(words):
        yield flip["A", words]

    with pytest.raises(StoryError, match="cannot be looked up"):
        sc.StoryModel(odd).fit([["a", "b"]])


def test_endless_story_is_stopped():
    @sc.story
    def forever(tosses, i):
        for z in "AB":
            yield which[z], forever(tosses, i + 1)

    with pytest.raises(StoryError, match="does not end") as error:
        sc.StoryModel(forever).fit([("H", 0)])
    assert "len(words)" in error.value.hint


def test_story_that_needs_itself_is_named():
    @sc.story
    def loop(tosses):
        yield which["A"], loop(tosses)
        yield flip["A", tosses[0]]

    with pytest.raises(StoryError, match=r"loop\(…\) needs itself"):
        sc.StoryModel(loop).fit(["H"])


@pytest.mark.parametrize(
    ("yielded", "message"),
    [
        (lambda: 0.5, "neither a table entry"),
        (lambda: (which["A"], 3), "yields 3, which is neither"),
        (lambda: (which["A"], "word"), "neither a table entry"),
        (lambda: (which["A"], (flip["A", x] for x in "HT")), "neither a table entry"),
    ],
)
def test_odd_yields(yielded, message):
    @sc.story
    def odd(tosses):
        yield yielded()

    with pytest.raises(StoryError, match=message):
        sc.StoryModel(odd).fit(["H"])


def test_a_fault_of_the_story_itself_is_its_own():
    @sc.story
    def faulty(tosses):
        yield flip["A", tosses + 1]

    with pytest.raises(TypeError, match="concatenate"):
        sc.StoryModel(faulty).fit(["H"])


def test_table_of_two_forms():
    @sc.story
    def odd(tosses):
        yield flip["A"], flip["A", tosses[0]]

    with pytest.raises(StoryError, match="with 1 and with 2 indices"):
        sc.StoryModel(odd).fit(["H"])


def test_items_must_fit_the_story():
    @sc.story
    def pair(es, fs):
        yield flip[es[0], fs[0]]

    with pytest.raises(StoryError, match="takes 2 arguments"):
        sc.StoryModel(pair).fit(["H"])


def test_no_data():
    with pytest.raises(DataError, match="empty"):
        sc.StoryModel(coins).fit([])


def test_item_without_derivation_is_named():
    @sc.story
    def only_heads(tosses):
        if "T" not in tosses:
            yield tuple(flip["A", x] for x in tosses)

    with pytest.raises(ImpossibleItem, match=r"no derivation explains item 2 \('HTH'\)"):
        sc.StoryModel(only_heads).fit(["H", "HH", "HTH"])


def test_item_that_the_start_makes_impossible_is_named():
    start = {"which": {"A": 1.0, "B": 0.0}, "flip": {"A": {"H": 1.0, "T": 0.0}}}
    with pytest.raises(ImpossibleItem, match=r"item 1 \('TTT'\) has probability zero"):
        sc.StoryModel(coins).fit(DATA, init=start)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ({"flip": {"A": {"H": float("nan"), "T": 0.5}}}, r"flip\[A, H\] is nan"),
        ({"flip": {"A": {"H": -0.5, "T": 1.5}}}, r"flip\[A, H\] is -0.5"),
        ({"flip": {"A": {"H": 0.5, "X": 0.5}}}, r"flip\[A, X\], an entry that never occurs"),
        ({"flip": {"A": {"H": 0.5, "T": 0.2}}}, "add up to 0.7"),
        ({"flap": {"A": {"H": 0.5, "T": 0.5}}}, "no such table"),
        ({"flip": {"A": 0.5}}, "not a full key"),
        ({"flip": {"A": {"H": "much", "T": 0.5}}}, "not a number"),
    ],
)
def test_start_values_that_cannot_be(init, message):
    with pytest.raises(StartError, match=message) as error:
        sc.StoryModel(coins).fit(DATA, init=init)
    assert error.value.hint


def test_start_values_flat_rounded_and_partial():
    flat = {("A", "H"): 0.33, ("A", "T"): 0.66, ("B", "H"): 0.5, ("B", "T"): 0.5}
    model = sc.StoryModel(coins, learner=sc.EM(max_iter=1, tol=0))
    model.fit(DATA, init={"flip": flat}, keep_params=True)
    first = model.core_.view_params(model.trace_.params[0])
    assert first["flip"]["A"]["H"] == pytest.approx(1 / 3)
    assert first["flip"]["B", "T"] == 0.5
    assert sum(first["which"].values()) == pytest.approx(1.0)


def test_entry_that_never_occurred_is_a_clear_key_error():
    model = sc.StoryModel(coins).fit(DATA)
    with pytest.raises(KeyError) as error:
        model.params_["flip"]["A"]["X"]
    assert "never occurred" in str(error.value)
    with pytest.raises(KeyError, match="no table 'flap'"):
        model.params_["flap"]


def test_declared_outcomes_keep_room_for_what_never_occurred():
    wide = sc.table("wide", outcomes="HTX")

    @sc.story
    def tossed(tosses):
        for z in "AB":
            yield which[z], *(wide[z, x] for x in tosses)

    model = sc.StoryModel(tossed, smoothing=0.5).fit(DATA)
    assert model.params_["wide"]["A"]["X"] > 0
    assert model.score(["HX"])[0] > float("-inf")
    with pytest.raises(StoryError, match="not among its declared outcomes"):
        sc.StoryModel(tossed).fit(["HY"])
