"""`Translator`: exact without a beam, sound with one, and sensible on real text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from softcount.core import store
from softcount.core.errors import DataError, LearnerError, StoreError
from softcount.translate import Translation, Translator
from softcount.translate.language_model import LanguageModel
from tests.core import damage

SENTENCES = [
    "the green house",
    "the house",
    "a green tree",
    "the tree is green",
    "a house is a house",
]
LANGUAGE = LanguageModel(3).fit(SENTENCES)


@dataclass
class Table:
    """An aligner that was told what to know."""

    source_words_: list[str]
    target_words_: list[str]
    t: Any

    def table(self) -> csr_matrix:
        return csr_matrix(np.array(self.t, dtype=float))


SPANISH = Table(
    ["the", "a", "green", "house", "tree", "is"],
    ["la", "una", "verde", "casa", "árbol", "es", "el"],
    [
        [0.4, 0.0, 0.0, 0.1, 0.1, 0.0, 0.4],
        [0.1, 0.8, 0.0, 0.1, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.9, 0.1, 0.0, 0.0, 0.0],
        [0.1, 0.1, 0.1, 0.7, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.1, 0.0, 0.8, 0.0, 0.1],
        [0.0, 0.0, 0.0, 0.0, 0.1, 0.9, 0.0],
        [0.3, 0.2, 0.0, 0.0, 0.0, 0.2, 0.3],
    ],
)


def translator(**given: Any) -> Translator:
    return Translator(SPANISH, LANGUAGE, **given)


# against all that is possible
def derivations(
    table: Table, x: list[str], n_insertable: int, how: dict[str, Any]
) -> Iterator[tuple[list[str], float, int]]:
    """Every way to read x and write y: y, log of the channel, and the length of all jumps."""
    words, number = table.source_words_, table.target_words_.index
    t = np.array(table.t)
    p = {
        word: math.exp(LANGUAGE._automaton.log_prob[1 + LANGUAGE._numbers[word]]) for word in words
    }
    insertable = sorted(words, key=lambda word: -p[word])[:n_insertable]

    def go(unread: list[int], at: int, y: list[str]) -> Iterator[tuple[list[str], float, int]]:
        if not unread:
            yield y, 0.0, 0
        for j in unread:
            if j > unread[0] + how["reorder"]:
                break
            column = t[:, number(x[j])]
            options: list[tuple[list[str], float]] = []
            for i, word in enumerate(words):
                options.append(([word], column[i]))
                options += [([z, word], column[i] * how["insert"]) for z in insertable]
            options.append(([], column[-1] * how["null"]))
            if y:
                options.append(([], column[words.index(y[-1])] * how["share"]))
            rest = [k for k in unread if k != j]
            for new, p_step in options:
                if p_step > 0:
                    for done, logs, jumps in go(rest, j, y + new):
                        yield done, logs + math.log(p_step), jumps + abs(j - at - 1)

    yield from go(list(range(len(x))), -1, [])


SETTINGS = st.fixed_dictionaries(
    {
        "reorder": st.integers(0, 2),
        "channel": st.sampled_from([0.5, 1.0]),
        "language": st.sampled_from([0.0, 0.7, 1.0]),
        "distortion": st.sampled_from([0.0, 0.3, 1.1]),
        "null": st.sampled_from([0.0, 0.2]),
        "share": st.sampled_from([0.0, 0.3]),
        "insert": st.sampled_from([0.0, 0.4]),
    }
)


@given(
    st.lists(st.sampled_from(SPANISH.target_words_), max_size=3),
    st.lists(
        st.lists(st.sampled_from([0.0, 0.0, 0.2, 0.45, 1.0]), min_size=7, max_size=7),
        min_size=7,
        max_size=7,
    ),
    st.integers(0, 1),
    SETTINGS,
)
@settings(max_examples=60, deadline=None)
def test_without_a_beam_it_finds_the_best_of_all(
    x: list[str], t: list[list[float]], n_insertable: int, how: dict[str, Any]
) -> None:
    for j, word in enumerate(SPANISH.target_words_):
        if word in x and not any(t[i][j] for i in range(6)):
            t[0][j] = 0.1  # else it would pass unchanged
    table = Table(SPANISH.source_words_, SPANISH.target_words_, t)
    best: dict[tuple[str, ...], float] = {}
    for y, logs, jumps in derivations(table, x, n_insertable, how):
        score = how["channel"] * logs - how["distortion"] * jumps
        score += how["language"] * LANGUAGE.log_prob(y)
        best[tuple(y)] = max(score, best.get(tuple(y), -math.inf))
    it = Translator(table, LANGUAGE, beam=None, insertions=n_insertable, candidates=9, **how)
    found = it.n_best(x, 3)
    expected = sorted(best.values(), reverse=True)[:3]
    assert [one.score for one in found] == pytest.approx(expected, abs=1e-9)
    for one in found:
        assert best[one.words] == pytest.approx(one.score, abs=1e-9)


def parts_add_up(one: Translation, it: Translator, x: list[str]) -> None:
    how = it.settings
    total = how.channel * one.channel + how.language * one.language + one.distortion
    assert one.score == pytest.approx(total, abs=1e-9)
    assert one.language == pytest.approx(it.language_model.log_prob(one.words))
    assert one.distortion <= 0
    assert all(0 <= i < len(one.words) and 0 <= j < len(x) for i, j in one.links)
    assert len({j for _, j in one.links}) == len(one.links)


LONGER = st.lists(st.sampled_from([*SPANISH.target_words_, "nunca"]), min_size=1, max_size=9)


@given(LONGER, SETTINGS)
@settings(max_examples=40, deadline=None)
def test_a_wider_beam_never_ends_lower_than_the_narrowest(
    x: list[str], how: dict[str, Any]
) -> None:
    narrow, wide = (translator(beam=beam, **how) for beam in (1, 1000))
    few, many = narrow.translate(x), wide.translate(x)
    assert many.score >= few.score - 1e-9
    parts_add_up(few, narrow, x)
    parts_add_up(many, wide, x)


@given(LONGER)
@settings(max_examples=30, deadline=None)
def test_lists_of_the_best_fall_and_differ(x: list[str]) -> None:
    found = translator().n_best(x, 5)
    scores = [one.score for one in found]
    assert scores == pytest.approx(sorted(scores, reverse=True), abs=1e-9)
    assert len({one.words for one in found}) == len(found)
    assert found[0] == translator().translate(x)


# what comes out
def test_the_language_model_puts_words_into_their_order() -> None:
    one = translator().translate("la casa verde")
    assert str(one) == "the green house"
    assert one.links == ((0, 0), (1, 2), (2, 1))
    assert one.distortion == pytest.approx(-0.5 * (1 + 2))  # to the third word, and back
    kept = translator(reorder=0).translate("la casa verde")
    assert [j for _, j in kept.links] == [0, 1, 2]
    assert kept.score < one.score


def test_words_nobody_knows_pass_unchanged() -> None:
    one = translator().translate("la Zürich verde")
    assert "Zürich" in one.words
    assert translator().translate("xx yy").words == ("xx", "yy")
    assert translator().translate("<s>").words == ("<s>",)


def test_words_that_came_from_none_and_words_that_share_theirs() -> None:
    table = Table(
        ["not", "house"],
        ["ne", "pas", "euh", "maison"],
        [[0.5, 0.5, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]],
    )
    language = LanguageModel(2).fit(["not house", "house", "not"])
    it = Translator(table, language, null=0.1, share=0.4, insert=0.0)
    one = it.translate("euh ne pas maison")
    assert str(one) == "not house"
    assert one.links == ((0, 1), (0, 2), (1, 3))
    assert one.channel == pytest.approx(math.log(0.1 * 0.5 * 0.5 * 0.4))


def test_words_that_come_from_no_other_are_put_in() -> None:
    table = Table(["the", "house"], ["maison"], [[0.0], [1.0], [0.0]])
    language = LanguageModel(2).fit(["the house"] * 9 + ["the"])
    it = Translator(table, language, insert=0.2, insertions=1)
    one = it.translate("maison")
    assert (str(one), one.links) == ("the house", ((1, 0),))
    assert one.channel == pytest.approx(math.log(0.2))
    assert str(Translator(table, language, insert=0.0).translate("maison")) == "house"


def test_nothing_is_translated_into_nothing() -> None:
    one = translator().translate("")
    assert (one.words, one.links, one.channel) == ((), (), 0.0)
    assert one.score == pytest.approx(LANGUAGE.log_prob([]))
    assert str(translator().explain("").channel_alone) == ""


def test_a_sentence_of_two_hundred_words() -> None:
    x = ["la", "casa", "verde", "es", "nunca"] * 40
    one = translator(beam=10).translate(x)
    assert one.words.count("nunca") == 40
    assert math.isfinite(one.score)


def test_explanations_show_both_parts_at_work() -> None:
    table = Table(
        ["strong", "powerful", "tea"],
        ["fort", "thé"],
        [[0.3, 0.0], [0.4, 0.0], [0.0, 1.0], [0.5, 0.5]],
    )
    language = LanguageModel(2).fit(["strong tea", "powerful", "a tea", "a tea"])
    why = Translator(table, language, null=0.0, insert=0.0, share=0.0).explain("fort thé", 2)
    assert [str(one) for one in why.best] == ["strong tea", "powerful tea"]
    assert str(why.channel_alone) == "powerful tea"
    assert str(why.language_alone) == "strong tea"
    assert why.posteriors[0] > why.posteriors[1]
    assert sum(why.posteriors) == pytest.approx(1.0)
    lines = str(why).split("\n")
    assert lines[0] == "X: fort thé"
    assert [line.split("   ")[-1].strip() for line in lines[2:]] == [
        "strong tea",
        "powerful tea",
        "powerful tea",
        "strong tea",
    ]


# what cannot be done
@pytest.mark.parametrize(
    "given",
    [
        {"beam": 0},
        {"reorder": -1},
        {"reorder": 31},
        {"candidates": 0},
        {"insertions": 1.5},
        {"channel": -1.0},
        {"language": math.nan},
        {"null": 1.1},
        {"share": "often"},
    ],
    ids=str,
)
def test_settings_that_make_no_sense(given: dict[str, Any]) -> None:
    with pytest.raises(LearnerError, match=f"{next(iter(given))}="):
        translator(**given)


def test_parts_that_are_none() -> None:
    with pytest.raises(LearnerError, match="no language model"):
        Translator(SPANISH, LanguageModel())
    with pytest.raises(LearnerError, match="no aligner"):
        Translator(object(), LANGUAGE)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="shape"):
        Translator(Table(["a"], ["b"], [[1.0]]), LANGUAGE)
    with pytest.raises(DataError, match="not probabilities"):
        Translator(Table(["a"], ["b"], [[-1.0], [1.0]]), LANGUAGE)
    with pytest.raises(DataError, match="3 is not a word"):
        translator().translate(["la", 3])


# files
def test_what_comes_back_from_a_file_translates_the_same(tmp_path: Path) -> None:
    it = translator(beam=7, null=0.2)
    it.save(tmp_path / "m")
    again = store.load(tmp_path / "m")
    assert isinstance(again, Translator)
    assert again.settings == it.settings
    for x in ("la casa verde", "el árbol nunca es verde", ""):
        assert again.n_best(x, 4) == it.n_best(x, 4)


DAMAGES = {
    "no setting": damage.settings(beam=0),
    "strange setting": damage.settings(odd=1),
    "no words": damage.without("source_words"),
    "too few words": damage.meta(target_words=["la"]),
    "a word twice": damage.meta(source_words=["the"] * 6),
    "words that are none": damage.meta(source_words=[1, 2, 3, 4, 5, 6]),
    "no table": damage.array("data", None),
    "odd numbers": damage.array("data", lambda there: there * np.nan),
    "too large": damage.array("data", lambda there: there * 9),
    "places out of range": damage.array("indices", lambda there: there + 9),
    "places as floats": damage.array("indices", lambda there: there + 0.5),
    "columns out of range": damage.array("indptr", lambda there: there[::-1].copy()),
    "no language model": damage.meta(language={}),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_files_are_refused(name: str, tmp_path: Path) -> None:
    translator().save(tmp_path / "m")
    stored = store.read(tmp_path / "m")
    arrays, meta = dict(stored.arrays), dict(stored.meta)
    DAMAGES[name](arrays, meta)
    store.write(tmp_path / "m", stored.kind, arrays, meta, stored.signature)
    with pytest.raises(StoreError) as caught:
        store.load(tmp_path / "m")
    assert caught.value.hint
