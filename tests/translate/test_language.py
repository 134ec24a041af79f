"""`LanguageModel`: against the formulas with dictionaries, and what all distributions obey."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from softcount.core import store
from softcount.core.errors import DataError, LearnerError, StoreError
from softcount.translate.language_model import LanguageModel, advance, after, estimate_discounts
from tests import real
from tests.core import damage

SENTENCES = ["a b a c", "a b", "b b a", "", "c a b c", "a b a b a"]
MANY = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=12)
ORDERS = st.integers(1, 4)


class Slow:
    """Kneser-Ney by the book: Counters, sets and recursion."""

    def __init__(
        self, sentences: list[list[str]], order: int, discounts: list[list[float]]
    ) -> None:
        self.order, self.discounts = order, discounts
        grams: defaultdict[int, Counter[tuple[str, ...]]] = defaultdict(Counter)
        before: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for words in sentences:
            marked = ["<s>", *words, "</s>"]
            for end in range(2, len(marked) + 1):
                for k in range(1, min(order, end) + 1):
                    gram = tuple(marked[end - k : end])
                    grams[k][gram] += 1
                    if end - k > 0:
                        before[gram].add(marked[end - k - 1])
        self.counts = {
            gram: n if k == order or gram[0] == "<s>" else len(before[gram])
            for k, found in grams.items()
            for gram, n in found.items()
        }
        self.outcomes = sorted({w for words in sentences for w in words} | {"<unk>", "</s>"})

    def p(self, word: str, context: tuple[str, ...]) -> float:
        context = context[len(context) - (self.order - 1) :] if self.order > 1 else ()
        return self._p(word, context)

    def _p(self, word: str, context: tuple[str, ...]) -> float:
        shorter = self._p(word, context[1:]) if context else 1 / len(self.outcomes)
        row = self.discounts[len(context)]
        seen = {w: self.counts.get((*context, w), 0) for w in self.outcomes}
        total = sum(seen.values())
        if total == 0:
            return shorter
        less = {w: row[min(n, 3) - 1] if n else 0.0 for w, n in seen.items()}
        return (seen[word] - less[word]) / total + sum(less.values()) / total * shorter

    def log_prob(self, words: list[str]) -> float:
        known = ["<s>", *(w if w in self.outcomes else "<unk>" for w in words), "</s>"]
        begins = [max(0, i - self.order + 1) for i in range(len(known))]
        parts = (self._p(known[i], tuple(known[begins[i] : i])) for i in range(1, len(known)))
        return sum(map(math.log, parts))


@given(MANY, ORDERS, MANY)
@settings(max_examples=60, deadline=None)
def test_sentences_are_as_likely_as_the_formulas_say(
    sentences: list[list[str]], order: int, others: list[list[str]]
) -> None:
    model = LanguageModel(order).fit(sentences)
    slow = Slow(sentences, order, model.discounts_.tolist())
    others = [[*words, "never"] for words in others] + sentences
    expected = [slow.log_prob(words) for words in others]
    np.testing.assert_allclose(model.score_samples(others), expected, rtol=1e-11)


@given(MANY, ORDERS, st.lists(st.sampled_from("abcdz"), max_size=4))
@settings(max_examples=60, deadline=None)
def test_words_after_any_context_add_up_to_one(
    sentences: list[list[str]], order: int, context: list[str]
) -> None:
    model = LanguageModel(order).fit(sentences)
    numbers = np.array([model._numbers.get(word, 0) for word in context], np.int32)
    state = after(model._automaton, model._start, numbers)
    asked = {
        word: math.exp(advance(model._automaton, state, i)[0])
        for i, word in enumerate(model.words_)
        if word != "<s>"
    }
    assert sum(asked.values()) == pytest.approx(1.0, abs=1e-12)
    assert asked == pytest.approx(dict(model.next_words(context, n=None)), rel=1e-12)
    assert min(asked.values()) > 0


def test_one_discount_for_all_is_plain_kneser_ney() -> None:
    # bigrams of "a a b": (<s> a), (a a), (a b), (b </s>); words are preceded by 2, 1 and 1 words
    model = LanguageModel(2, discount=0.5).fit(["a a b"])
    uniform, total = 1 / 4, 4  # a, b, <unk>, </s>
    p_b = (1 - 0.5) / total + 3 * 0.5 / total * uniform
    p_b_after_a = (1 - 0.5) / 2 + 2 * 0.5 / 2 * p_b
    assert dict(model.next_words("a", None))["b"] == pytest.approx(p_b_after_a, rel=1e-14)


# discounts
def test_discounts_are_those_of_chen_and_goodman() -> None:
    n1, n2, n3, n4 = 100, 40, 20, 12
    y = n1 / (n1 + 2 * n2)
    expected = [1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
    counts = np.repeat([0, 1, 2, 3, 4, 9], [5, n1, n2, n3, n4, 7])
    np.testing.assert_allclose(estimate_discounts(counts), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([1, 1, 1, 2], 3 / 5),  # none occurs three times
        ([1] * 10 + [2] + [3] * 20 + [4] * 2, 10 / 12),  # two counts of two, less than none left
        ([1, 1, 2, 2, 3], 1 / 3),  # of two 1/2 would be left, of one 2/3
        ([1, 1, 3, 4], 1 / 2),  # none occurs twice
        ([5, 6], 1 / 2),
        ([], 1 / 2),
    ],
)
def test_tiny_corpora_fall_back_to_one_discount(counts: list[int], expected: float) -> None:
    assert estimate_discounts(np.array(counts, np.int64)).tolist() == [expected] * 3


@pytest.mark.parametrize("discount", [0, -0.1, 1.5, "half", (0.5, 0.5), (1.1, 1, 1), math.nan])
def test_discounts_that_leave_no_distribution(discount: object) -> None:
    with pytest.raises(LearnerError, match="discount="):
        LanguageModel(2, discount).fit(SENTENCES)  # type: ignore[arg-type]


# what it offers
def test_perplexity_and_score_are_means_of_log_prob() -> None:
    model = LanguageModel(3).fit(SENTENCES)
    logs = [model.log_prob(sentence) for sentence in SENTENCES]
    n = sum(len(sentence.split()) + 1 for sentence in SENTENCES)
    assert model.perplexity(SENTENCES) == pytest.approx(math.exp(-sum(logs) / n))
    assert model.score(SENTENCES) == pytest.approx(sum(logs) / len(SENTENCES))
    assert model.score_samples([]).shape == (0,)


def test_texts_and_lists_of_words_are_the_same() -> None:
    lists = LanguageModel(3).fit([sentence.split() for sentence in SENTENCES])
    texts = LanguageModel(3).fit(iter(SENTENCES))
    assert lists.words_ == texts.words_ == ["<unk>", "</s>", "<s>", "a", "b", "c"]
    assert lists.log_prob("a b c") == texts.log_prob(["a", "b", "c"])


def test_more_context_foretells_better_what_has_structure() -> None:
    sentences = ["x a b y a c"] * 20
    assert LanguageModel(3).fit(sentences).perplexity(sentences) < 1.2
    assert LanguageModel(1).fit(sentences).perplexity(sentences) > 5


def test_drawn_sentences_follow_the_model() -> None:
    model = LanguageModel(2).fit(["a b", "a b", "c"] * 3)
    drawn = Counter(tuple(words) for words in model.generate(3000, random_state=1))
    for words in (("a", "b"), ("c",)):
        expected = math.exp(model.log_prob(words))
        error = math.sqrt(expected * (1 - expected) / 3000)
        assert abs(drawn[words] / 3000 - expected) < 5 * error
    assert model.generate(5, 7) == model.generate(5, 7) != model.generate(5, 8)


def test_unknown_words_in_the_text_are_one_word() -> None:
    model = LanguageModel(2).fit(["a <unk>", "a <unk>", "a b"])
    assert model.log_prob("a never") == model.log_prob("a <unk>") > model.log_prob("a b")
    assert model.log_prob("<s> </s>") == model.log_prob("<unk> <unk>")


def test_settings_are_those_of_an_estimator() -> None:
    assert clone(LanguageModel(4, 0.3)).get_params() == {"order": 4, "discount": 0.3}


# what cannot be done
@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([], "no sentences"),
        ("a b c", "not a list of sentences"),
        (7, "not a list of sentences"),
        ([["a"], ["b", 3]], "sentence 1: 3 is not a word"),
        (["a", None], "sentence 1: None is not a word"),
        (["a", "<s> b"], "sentence 1 contains '<s>'"),
    ],
)
def test_what_cannot_be_learned_from(sentences: object, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        LanguageModel().fit(sentences)
    assert caught.value.hint


@pytest.mark.parametrize("order", [0, -1, 1.5, "3", True])
def test_orders_that_are_none(order: object) -> None:
    with pytest.raises(LearnerError, match="order="):
        LanguageModel(order).fit(SENTENCES)  # type: ignore[arg-type]


def test_what_is_not_fitted_says_so() -> None:
    for ask in ("log_prob", "perplexity", "next_words", "score_samples"):
        with pytest.raises(NotFittedError):
            getattr(LanguageModel(), ask)("a")
    with pytest.raises(DataError, match="no sentences"):
        LanguageModel().fit(SENTENCES).perplexity([])


# files
@pytest.mark.parametrize("order", [1, 3, 9])
def test_what_comes_back_from_a_file_is_the_same(order: int, tmp_path: Path) -> None:
    model = LanguageModel(order, discount=0.4).fit(SENTENCES)
    model.save(tmp_path / "m")
    again = store.load(tmp_path / "m")
    assert isinstance(again, LanguageModel)
    assert again.get_params() == model.get_params()
    assert again.signature_ == model.signature_
    assert np.array_equal(again.score_samples(SENTENCES), model.score_samples(SENTENCES))
    assert again.next_words("a", None) == model.next_words("a", None)


def changed(i: int, value: int) -> object:
    def change(there: np.ndarray) -> np.ndarray:
        there = there.copy()
        there[i] = value
        return there

    return change


DAMAGES = {
    "order": damage.settings(order=2),
    "higher order": damage.settings(order=4),
    "no order": damage.settings(order=0),
    "strange setting": damage.settings(odd=1),
    "too few words": damage.meta(words=["<unk>", "</s>", "<s>", "a"]),
    "a word twice": damage.meta(words=["<unk>", "</s>", "<s>", "a", "a", "c"]),
    "no marks": damage.meta(words=list("abcdef")),
    "no words": damage.without("words"),
    "no counts": damage.array("counts", None),
    "counts of zero": damage.array("counts", changed(-1, 0)),
    "no count at all": damage.array("counts", np.zeros_like),
    "negative counts": damage.array("counts", changed(4, -3)),
    "counts as floats": damage.array("counts", lambda there: there + 0.5),
    "suffix of itself": damage.array("suffix", lambda there: np.arange(len(there))),
    "suffix of another": damage.array("suffix", changed(-1, 3)),
    "suffix out of range": damage.array("suffix", changed(-1, 10**9)),
    "words out of range": damage.array("words", changed(-1, 99)),
    "children that overlap": damage.array("first", changed(3, 1)),
    "children out of range": damage.array("first", changed(-1, 10**6)),
    "no tree": damage.array("first", lambda there: np.zeros_like(there)),
    "discounts": damage.array("discounts", np.zeros((3, 3))),
    "too few discounts": damage.array("discounts", np.full((2, 3), 0.5)),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_files_are_refused(name: str, tmp_path: Path) -> None:
    LanguageModel(3).fit(SENTENCES).save(tmp_path / "m")
    stored = store.read(tmp_path / "m")
    arrays, meta = dict(stored.arrays), dict(stored.meta)
    DAMAGES[name](arrays, meta)
    store.write(tmp_path / "m", stored.kind, arrays, meta, stored.signature)
    with pytest.raises(StoreError) as caught:
        store.load(tmp_path / "m")
    assert caught.value.hint


# real text
@pytest.mark.slow
def test_real_text_is_foretold_better_with_every_order() -> None:
    lines = [line.lower() for line in real.lines("hansards_wpt03/train.36.2.en.gz")[:24_000]]
    learned, held_out = lines[:20_000], lines[20_000:]
    found = [LanguageModel(order).fit(learned).perplexity(held_out) for order in (1, 2, 3)]
    assert found[0] > 3 * found[1] > 3.3 * found[2]
    model = LanguageModel(3).fit(learned)
    assert [word for word, _ in model.next_words("the prime", 1)] == ["minister"]
