"""Scores of tags against hand counts, enumeration of all namings, and entropies written out."""

from __future__ import annotations

from collections import Counter
from itertools import chain, permutations, product
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from sklearn.metrics import v_measure_score

from softcount.core.errors import DataError
from softcount.metrics import confusion, induction_scores, mapping, tag_scores
from tests import real

cases = settings(max_examples=50, deadline=None)
FUNCTIONS = [tag_scores, confusion, induction_scores, mapping]

TAGS = ["noun", "verb", "det", "adj"]
taggings = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(TAGS)), max_size=5), max_size=6
).filter(any)
partitions = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=20).map(
    lambda rows: list(map(list, zip(*rows, strict=True)))
)


def sides(tagging):
    return [[f for f, _ in line] for line in tagging], [[g for _, g in line] for line in tagging]


def flat(sentences):
    return list(chain(*sentences))


def entropy(*columns):
    counts = Counter(zip(*columns, strict=True))
    n = sum(counts.values())
    return -sum(c / n * log2(c / n) for c in counts.values())


def vi_by_definition(one, other):
    both = entropy(one, other)
    return (both - entropy(one)) + (both - entropy(other))


def most_right(found, gold, namings):
    """How many tokens the best of some namings of the states gets right."""
    return max(
        sum(names.get(f) == g for f, g in zip(found, gold, strict=True)) for names in namings
    )


def all_namings(found, gold):
    states, tags = sorted(set(found)), sorted(set(gold))
    return [dict(zip(states, names, strict=True)) for names in product(tags, repeat=len(states))]


def all_matchings(found, gold):
    """Every state gets a tag of its own, or none if there are not enough."""
    states, tags = sorted(set(found)), sorted(set(gold))
    tags += [None] * max(0, len(states) - len(tags))
    return [dict(zip(states, names, strict=True)) for names in permutations(tags, len(states))]


# tags with names


def test_tag_scores_by_hand():
    """7 of 9 have a gold tag, 5 are right: sentence 1 has both mistakes, 4 says nothing."""
    gold = [["D", "N"], ["D", "N", "V"], ["N", "_", "V"], [], [None]]
    found = [["D", "N"], ["D", "V", "N"], ["N", "N", "V"], [], ["N"]]
    words = [["the", "dog"], ["a", "cat", "sat"], ["dogs", ",", "bark"], [], ["the"]]
    scores = tag_scores(found, gold, known_words=["the", "dog", "a", "sat", ","], words=words)
    assert (scores.tokens, scores.left_out) == (7, 2)
    assert scores.accuracy == 5 / 7
    assert (scores.sentences, scores.sentence_accuracy) == (3, 2 / 3)
    assert (scores.known, scores.known_accuracy) == (4, 3 / 4)
    assert (scores.unknown, scores.unknown_accuracy) == (3, 2 / 3)
    assert str(scores).splitlines() == [
        "accuracy 71.4% of 7 tokens, all right in 66.7% of 3 sentences "
        "(left out, their gold tag being unknown: 2)",
        "known words 75.0% of 4, unknown words 66.7% of 3",
    ]


def test_flat_tags_have_no_sentences():
    scores = tag_scores(np.array([1, 2, 3, 1]), [1, 2, 2, -1])
    assert (scores.tokens, scores.left_out, scores.accuracy) == (3, 1, 2 / 3)
    assert (scores.sentences, scores.sentence_accuracy) == (0, None)
    assert (scores.known, scores.known_accuracy) == (None, None)
    assert str(scores) == ("accuracy 66.7% of 3 tokens (left out, their gold tag being unknown: 1)")


@pytest.mark.parametrize(
    "known",
    [
        {"the", "dog"},
        ["dog", "the", "the"],
        {"the": ["DET"], "dog": ["NOUN", "VERB"]},
        np.array(["the", "dog"]),
        [["the", "dog"], [], ["dog"]],
        [np.array(["the", "dog"])],
        (word for word in ("the", "dog")),
    ],
)
def test_known_words_may_be_words_or_sentences(known):
    words = [["the", "dog"], ["The", "cat"]]
    scores = tag_scores([["D", "N"], ["D", "X"]], [["D", "V"], ["D", "N"]], known, words)
    assert (scores.known, scores.known_accuracy) == (2, 0.5)
    assert (scores.unknown, scores.unknown_accuracy) == (2, 0.5)


def test_a_share_of_nothing_is_none():
    scores = tag_scores(["D", "N"], ["D", "V"], known_words=[], words=["the", "dog"])
    assert (scores.known, scores.known_accuracy) == (0, None)
    assert (scores.unknown, scores.unknown_accuracy) == (2, 0.5)
    assert str(scores).endswith("known words none, unknown words 50.0% of 2")


@cases
@given(taggings, st.sets(st.integers(0, 9)))
def test_tag_scores_count_every_token_once(tagging, known):
    found, gold = [[TAGS[f % 4] for f, _ in line] for line in tagging], sides(tagging)[1]
    words = [[(7 * i + 3 * j) % 10 for j in range(len(line))] for i, line in enumerate(gold)]
    scores = tag_scores(found, gold, known, words)
    right = sum(map(str.__eq__, flat(found), flat(gold)))
    assert scores.accuracy == pytest.approx(right / scores.tokens)
    assert scores.known + scores.unknown == scores.tokens == len(flat(gold))
    assert scores.known == sum(word in known for word in flat(words))
    parts = [(scores.known, scores.known_accuracy), (scores.unknown, scores.unknown_accuracy)]
    assert sum(n * (share or 0) for n, share in parts) == pytest.approx(right)
    filled = [(f, g) for f, g in zip(found, gold, strict=True) if g]
    assert scores.sentences == len(filled)
    assert scores.sentence_accuracy == pytest.approx(np.mean([f == g for f, g in filled]))


def test_states_without_names_are_not_scored_as_tags():
    """They would all be wrong, and nobody would know why."""
    with pytest.raises(DataError, match=r"such as 0 never equal gold tags such as 'D'") as caught:
        tag_scores([[0, 1]], [["D", "N"]])
    assert "mapping" in caught.value.hint
    assert tag_scores([["X", "X"]], [["D", "N"]]).accuracy == 0
    assert tag_scores([[None, "N"]], [["D", "N"]]).accuracy == 0.5


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("found", "gold", "message"),
    [
        ([["N"], ["N", "V"]], [["N"], ["N"]], "sentence 1 has 2 found tags and 1 gold tags"),
        ([["N"], []], [["N"]], "2 sentences of found tags for 1 of gold tags"),
        ([], [["N"]], "0 sentences of found tags for 1"),
        (["N", "V"], ["N"], "there are 2 found tags and 1 gold tags"),
        (["N", "V"], [["N", "V"]], "found tags are one flat list, the gold tags a list for every"),
        ([["N", "V"]], ["N", "V"], "gold tags are one flat list, the found tags a list for every"),
        ([["N"], "V"], [["N"], ["V"]], "sentence 1 of the found tags is 'V'"),
        ([], [], "no tokens"),
        ([[], []], [[], []], "no tokens"),
        ([["N", "V"]], [["_", None]], "all 2 tokens is unknown"),
        (np.full((2, 3), 1 / 3), ["N", "V"], r"shape \(2, 3\)"),
        ([np.full((1, 2), 0.5)], [["N"]], r"\[0.5, 0.5\], which cannot be the name"),
        ([["N"]], [[float("nan")]], "NaN"),
        (None, ["N"], "the found tags are None"),
        (["N"], 3, "the gold tags are 3"),
    ],
)
def test_bad_tags_are_refused(function, found, gold, message):
    with pytest.raises(DataError, match=message) as caught:
        function(found, gold)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("known", "words", "message"),
    [
        ({"the"}, None, "words is missing"),
        (None, [["the", "dog"]], "known_words is missing"),
        ("the", [["the", "dog"]], "known_words is 'the'"),
        (7, [["the", "dog"]], "known_words is 7"),
        ([[("the", "D")]], [["the", "dog"]], r"\('the', 'D'\) in known_words is not a word"),
        ({"the"}, [["the"]], "sentence 0 has 1 words and 2 gold tags"),
        ({"the"}, ["the dog"], "words are one flat list"),
        ({"the"}, [], "0 sentences of words for 1"),
    ],
)
def test_bad_words_are_refused(known, words, message):
    with pytest.raises(DataError, match=message) as caught:
        tag_scores([["D", "N"]], [["D", "N"]], known, words)
    assert caught.value.hint


# the confusion table


@cases
@given(taggings)
def test_confusion_counts_pairs(tagging):
    found, gold = sides(tagging)
    table = confusion(found, gold)
    pairs = Counter(zip(flat(gold), flat(found), strict=True))
    cells = {
        (g, f): int(table.counts[r, c])
        for r, g in enumerate(table.gold)
        for c, f in enumerate(table.found)
    }
    assert {pair: n for pair, n in cells.items() if n} == pairs
    rows, columns = table.counts.sum(axis=1).tolist(), table.counts.sum(axis=0).tolist()
    assert rows == sorted(rows, reverse=True)
    assert columns == sorted(columns, reverse=True)  # no state is called as a tag is
    assert table.most_confused(99) == [
        (g, f, n) for (g, f), n in sorted(cells.items(), key=lambda cell: -cell[1]) if n
    ]


def test_shared_names_stand_in_the_same_order():
    found = ["X", "Y", "Y", "V", "V", "V", "N", "D"]
    gold = ["N", "N", "N", "N", "V", "V", "D", "D"]
    table = confusion(found, gold)
    assert table.gold == ["N", "V", "D"]
    assert table.found == ["N", "V", "D", "Y", "X"]
    assert table.counts.tolist() == [[0, 1, 0, 2, 1], [0, 2, 0, 0, 0], [1, 0, 1, 0, 0]]
    assert table.most_confused(2) == [("N", "Y", 2), ("N", "V", 1)]


def test_the_table_is_cut_to_the_most_frequent():
    found = ["N", "N", "N", "V", "V", "X", "D", "X"]
    gold = ["N", "N", "N", "V", "N", "D", "D", "V"]
    assert confusion(found, gold).table(2).splitlines() == [
        "gold \\ found  N  V  (rest)",
        "N             3  1       ·",
        "V             ·  1       1",
        "(rest)        ·  ·       2",
    ]
    assert "(rest)" not in str(confusion(found, gold))


@cases
@given(taggings, st.integers(1, 5))
def test_no_token_is_lost_from_the_table(tagging, n):
    found, gold = sides(tagging)
    lines = confusion(found, gold).table(n).splitlines()
    cells = [line.split()[1:] for line in lines[1:]]
    assert sum(int(c) for row in cells for c in row if c != "·") == len(flat(gold))
    assert len({len(line) for line in lines}) == 1
    brief = min(n + 1, len(set(flat(gold)))), min(n + 1, len(set(flat(found))))
    assert (len(cells), len(cells[0])) == brief


def test_tags_of_any_script_are_aligned():
    gold = ["名詞", "e\u0301tat", "two\nlines", "Case=Nom|Gender=Fem|Number=Sing", 7]
    lines = str(confusion(gold, gold)).splitlines()
    assert len(lines) == 6
    assert len({cell_len(line) for line in lines}) == 1
    assert "two lines" in lines[0]
    assert "Case=Nom|Gender…" in lines[0]


@pytest.mark.parametrize("method", ["table", "most_confused"])
def test_less_than_one_row_is_refused(method):
    with pytest.raises(DataError, match="n=0 is not positive"):
        getattr(confusion(["N"], ["V"]), method)(0)


# states without names


@cases
@given(taggings)
def test_accuracies_are_the_best_of_all_namings(tagging):
    found, gold = sides(tagging)
    scores = induction_scores(found, gold)
    states, tags = flat(found), flat(gold)
    for method, namings, figure in (
        ("many-to-one", all_namings(states, tags), scores.many_to_one),
        ("one-to-one", all_matchings(states, tags), scores.one_to_one),
    ):
        best = most_right(states, tags, namings)
        assert figure == pytest.approx(best / len(tags))
        names = mapping(found, gold, method)
        renamed = [[names.get(state) for state in line] for line in found]
        assert tag_scores(renamed, gold).accuracy == pytest.approx(figure)
        if method == "one-to-one":
            assert len(set(names.values())) == len(names)


@cases
@given(taggings)
def test_information_is_made_of_entropies(tagging):
    found, gold = map(flat, sides(tagging))
    scores = induction_scores(found, gold)
    vi, h = vi_by_definition(found, gold), entropy(gold)
    assert scores.vi == pytest.approx(vi, abs=1e-12)
    assert scores.nvi == pytest.approx(vi / h if h else entropy(found), abs=1e-12)
    assert scores.v_measure == pytest.approx(v_measure_score(gold, found), abs=1e-12)
    left, torn = 1 - scores.homogeneity, 1 - scores.completeness
    assert scores.vi == pytest.approx(left * h + torn * entropy(found), abs=1e-9)


def test_vi_by_hand():
    """Two tags, each torn into two equal halves: one bit more, of one bit of gold."""
    scores = induction_scores([0, 1, 2, 3], ["x", "x", "y", "y"])
    assert (scores.vi, scores.nvi) == (1.0, 1.0)
    assert induction_scores([0, 0, 0, 0], ["x", "x", "y", "y"]).nvi == 1.0
    assert induction_scores([0, 0, 1, 1], ["x"] * 4).nvi == 1.0
    assert induction_scores([0, 0], ["x", "x"]).nvi == 0.0


@cases
@given(partitions)
def test_vi_is_a_distance(labels):
    a, b, c = labels
    ab, ba = induction_scores(a, b).vi, induction_scores(b, a).vi
    assert ab == pytest.approx(ba, abs=1e-12)
    assert ab <= induction_scores(a, c).vi + induction_scores(c, b).vi + 1e-12
    pairs, n_a, n_b = (len(set(x)) for x in (zip(a, b, strict=True), a, b))
    assert (ab == 0) == (pairs == n_a == n_b)
    assert induction_scores(a, [f"tag {x}" for x in a]).vi == 0


@cases
@given(taggings, st.permutations(range(5)))
def test_names_of_states_do_not_matter(tagging, order):
    found, gold = sides(tagging)
    before = induction_scores(found, gold)
    after = induction_scores([np.array([order[f] for f in line]) for line in found], gold)
    for name, figure in vars(before).items():
        assert getattr(after, name) == pytest.approx(figure, abs=1e-12), name


def test_cross_validation_by_hand():
    """Of 5, the sentences 0, 2 and 4 call 0 "x" and 1 "y"; the others know of no state 1."""
    found = [[0, 0], [0], [1], [0], [0]]
    gold = [["x", "x"], ["x"], ["y"], ["y"], ["x"]]
    scores = induction_scores(found, gold)
    assert scores.many_to_one == 5 / 6
    assert scores.cross_validated == pytest.approx((1 + 3) / 6)
    assert induction_scores(flat(found), flat(gold)).cross_validated == pytest.approx((2 + 2) / 6)


def test_sentences_without_gold_are_in_neither_half():
    found, gold = [[0], [0], [1], [1]], [["x"], ["x"], ["y"], ["y"]]
    assert induction_scores(found, gold).cross_validated == 1.0
    spread = [[0], [5], [0], [], [1], [5], [1]]
    partly = [["x"], ["_"], ["x"], [], ["y"], [-1], ["y"]]
    assert induction_scores(spread, partly).cross_validated == 1.0
    assert induction_scores(spread, partly).left_out == 2


def test_one_sentence_cannot_be_cross_validated():
    scores = induction_scores([[0, 1]], [["x", "y"]])
    assert scores.cross_validated is None
    assert "cross" not in str(scores)


def test_the_table_of_induction():
    lines = str(induction_scores([[0, 0], [1, 1]], [["x", "x"], ["y", "_"]])).splitlines()
    assert lines[0] == "3 tokens, 2 states, 2 tags (left out, their gold tag being unknown: 1)"
    assert lines[1].split() == ["many-to-one", "1.000"]
    assert lines[2].split() == ["cross-validated", "0.000"]
    assert len({len(line) for line in lines[1:]}) == 1


@pytest.mark.parametrize("unknown", [-1, None, "_", np.int64(-1), -1.0])
def test_tokens_of_unknown_tag_are_left_out(unknown):
    found, gold = [["N", "V"], ["N", "N"]], [["N", "N"], ["V", unknown]]
    assert tag_scores(found, gold).tokens == induction_scores(found, gold).tokens == 3
    assert confusion(found, gold).counts.sum() == 3
    assert mapping([[0, 1]], [["N", unknown]]) == {0: "N"}


def test_a_found_underscore_is_a_tag_like_any_other():
    assert tag_scores(["_", "N"], ["N", "N"]).accuracy == 0.5
    assert induction_scores(["_", -1, None], ["N", "N", "V"]).states == 3


def test_an_unknown_mapping_is_refused():
    with pytest.raises(DataError, match="no mapping 'best'") as caught:
        mapping([0], ["x"], "best")
    assert "one-to-one" in caught.value.hint


# Scores of tags on a real corpus.


def test_most_frequent_tags_on_a_real_corpus():
    """A tagger that gives each word its most frequent tag, counted without this library."""
    train = real.tagged("ud/en_ewt-ud-train.conllu.gz", 2000)
    test = real.tagged("ud/en_ewt-ud-dev.conllu.gz", 500)
    often: dict[str, Counter[str]] = {}
    for word, tag in chain(*train):
        often.setdefault(word, Counter())[tag] += 1
    best = {word: tags.most_common(1)[0][0] for word, tags in often.items()}
    words, gold = [[w for w, _ in s] for s in test], [[t for _, t in s] for s in test]
    found = [[best.get(w, "NOUN") for w in line] for line in words]
    scores = tag_scores(found, gold, [[w for w, _ in s] for s in train], words)
    old = [(best[w], t) for w, t in chain(*test) if w in best]
    new = [t for w, t in chain(*test) if w not in best]
    assert (scores.known, scores.unknown) == (len(old), len(new))
    assert scores.known_accuracy == pytest.approx(sum(f == t for f, t in old) / len(old))
    assert scores.unknown_accuracy == pytest.approx(new.count("NOUN") / len(new))
    assert scores.unknown_accuracy < scores.accuracy < scores.known_accuracy
