"""Bracket scores against counting by hand, and baselines."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from softcount.core.errors import DataError
from softcount.metrics import balanced, bracket_scores, left_branching, random_tree, right_branching
from softcount.text.treebank import (
    PUNCTUATION,
    read_trees,
    remove_functions,
    remove_punctuation,
    remove_traces,
)
from softcount.text.trees import Tree, tree
from tests import real

# Scores of trees against hand counts, and against brackets counted in another way


cases = settings(max_examples=60, deadline=None)

TAGS = ["NN", "VB", ",", "``", "-LRB-", "$", "-NONE-"]
conventions = st.fixed_dictionaries(
    {"labelled": st.booleans(), "trivial": st.sampled_from([None, False, True, "sentence"])}
)


@st.composite
def tag_lists(draw):
    return draw(st.lists(st.sampled_from(TAGS), min_size=1, max_size=8))


def grown(draw, tags, start=0):
    """A tree with these tags: labels, splits and unary steps as they are drawn."""
    labels = st.sampled_from(["S", "NP", "TOP"])
    if len(tags) == 1:
        node = Tree(tags[0], (f"w{start}",))
    else:
        cuts = draw(st.sets(st.integers(1, len(tags) - 1), min_size=1, max_size=3))
        edges = [0, *sorted(cuts), len(tags)]
        parts = [grown(draw, tags[i:j], start + i) for i, j in pairwise(edges)]
        node = Tree(draw(labels), tuple(parts))
    return Tree(draw(labels), (node,)) if draw(st.integers(0, 3)) == 0 else node


@st.composite
def pairs(draw):
    """Two trees over the same words; the tags of the first are its own."""
    tags = draw(tag_lists())
    return grown(draw, ["T"] * len(tags)), grown(draw, tags)


def slow_brackets(node, tags, out, labelled, trivial):
    """(label, words) of what counts, by going down with sets of words."""
    kept = [word for word, tag in tags if tag not in out]
    found = []

    def below(node, top):
        if isinstance(node, str):
            return frozenset([node]) & frozenset(kept)
        words = frozenset().union(*(below(child, False) for child in node.children))
        is_root = labelled and top and node.label in ("TOP", "ROOT", "S1")
        if not node.is_preterminal and words and not is_root:
            found.append((node.label if labelled else "", words))
        return words

    below(node, True)
    if trivial is not True:
        found = [(label, words) for label, words in found if len(words) > 1]
    if trivial is False:
        found = [(label, words) for label, words in found if len(words) < len(kept)]
    return Counter(found if labelled else set(found)), kept


def slow_counts(found, gold, labelled, trivial):
    trivial = labelled if trivial is None else trivial
    out = {",", ".", ":", "``", "''", "-NONE-"} | (set() if labelled else PUNCTUATION)
    tags = [(node.children[0], node.label) for node in gold.nodes() if node.is_preterminal]
    ours, kept = slow_brackets(found, tags, out, labelled, trivial)
    theirs, _ = slow_brackets(gold, tags, out, labelled, trivial)
    crossing = sum(
        times
        for (_, one), times in ours.items()
        if any(one & other and one - other and other - one for _, other in theirs)
    )
    return ours, theirs, crossing, len(kept)


# by hand


def test_unlabelled_scores_by_hand():
    """Gold has 0–2, 2–6, 3–6 and 4–6, and the whole; found has 0–2, 2–6, 2–5 and 2–4."""
    gold = "(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (NP (NP (J old) (N cat))))) (. .))"
    found = "(X (X (a the) (b dog)) (X (X (X (c saw) (a a)) (d old)) (b cat)))"
    scores = bracket_scores([found], [gold])
    assert (scores.found, scores.gold, scores.right) == (4, 4, 2)
    assert (scores.precision, scores.recall, scores.f1, scores.sentence_f1) == (0.5,) * 4
    assert (scores.exact, scores.crossing, scores.no_crossing) == (0.0, 2.0, 0.0)
    assert str(scores).splitlines() == [
        "unlabelled F1 50.0, precision 50.0, recall 50.0 (2 right of 4 found, 4 gold)",
        "1 sentences: mean F1 50.0, exact 0.0%, no crossing brackets 0.0%",
    ]


def test_labelled_scores_by_hand():
    """TOP does not count, S and the NP of one word do; PP is not NP."""
    gold = (
        "(TOP (S (NP (PRP he)) (VP (V saw) (NP (NP (D a) (N dog)) (PP (P in) (NP (N it))))) (. .)))"
    )
    found = (
        "(S1 (S (NP (N he)) (VP (VP (V saw) (NP (D a) (N dog))) (NP (P in) (NP (N it)))) (. .)))"
    )
    scores = bracket_scores([found], [gold], labelled=True)
    assert (scores.found, scores.gold, scores.right) == (7, 7, 5)
    assert scores.f1 == pytest.approx(5 / 7)
    assert (scores.crossing, scores.no_crossing) == (1.0, 0.0)
    assert bracket_scores([found], [gold], labelled=True, trivial=False).right == 2
    assert bracket_scores([found], [gold], labelled=True, trivial="sentence").right == 3
    assert str(scores).startswith("labelled F1 71.4, precision 71.4, recall 71.4 (5 right of 7")


def test_the_corpus_and_the_mean_of_its_sentences_differ():
    gold = ["(S (A a) (X (B b) (C c)))", "(S (X (X (A a) (B b)) (C c)) (X (D d) (E e)))"]
    found = [gold[0], "(S (X (A a) (X (B b) (C c))) (X (D d) (E e)))"]
    scores = bracket_scores(found, gold)
    assert (scores.found, scores.gold, scores.right) == (4, 4, 3)
    assert (scores.f1, scores.sentence_f1) == (0.75, pytest.approx((1 + 2 / 3) / 2))
    assert (scores.exact, scores.no_crossing) == (0.5, 0.5)


def test_brackets_are_a_set_or_a_multiset():
    gold = "(S (NP (NP (NP (A a) (B b)))) (C c))"
    found = "(S (NP (NP (A a) (B b))) (C c))"
    assert bracket_scores([found], [gold]).exact == 1.0
    scores = bracket_scores([found], [gold], labelled=True)
    assert (scores.found, scores.gold, scores.right, scores.exact) == (3, 4, 3, 0.0)
    assert bracket_scores([gold], [found], labelled=True).precision == 0.75


def test_only_a_top_is_a_root():
    text = "(TOP (S (A a) (TOP (B b) (C c))))"
    assert bracket_scores([text], [text], labelled=True).gold == 2
    assert bracket_scores([text], [text]).gold == 1
    assert bracket_scores(["(XX a)"], ["(S (NN a))"], labelled=True).recall == 0.0


# what counts


def test_what_is_not_parsed_costs_recall():
    gold = ["(S (A a) (X (B b) (C c)))"] * 4
    scores = bracket_scores([gold[0], None, gold[0], None], gold)
    assert (scores.sentences, scores.unparsed, scores.left_out) == (4, 2, 0)
    assert (scores.precision, scores.recall, scores.f1) == (1.0, 0.5, pytest.approx(2 / 3))
    assert (scores.sentence_f1, scores.exact) == (0.5, 0.5)
    assert (scores.crossing, scores.no_crossing) == (0.0, 1.0)
    assert str(scores).endswith("brackets 100.0%, unparsed 2")
    nothing = bracket_scores([None], gold[:1])
    assert (nothing.precision, nothing.recall, nothing.f1) == (1.0, 0.0, 0.0)
    assert nothing.crossing is nothing.no_crossing is None
    assert "crossing" not in str(nothing)


def test_sentences_without_brackets():
    """Two words: nothing to find. One word: left out, unless constituents of one word count."""
    two, one = "(S (A a) (B b))", "(S (NP (A a)) (. .))"
    both = bracket_scores([two, one], [two, one])
    assert (both.sentences, both.left_out, both.sentence_f1, both.f1) == (1, 1, 1.0, 1.0)
    assert str(both).endswith("(left out: 1)")
    assert bracket_scores([None], [two]).sentence_f1 == bracket_scores([None], [two]).exact == 0.0
    assert bracket_scores([two, one], [two, one], trivial="sentence").gold == 1
    assert bracket_scores([two, one], [two, one], trivial=True).gold == 2
    assert bracket_scores([two, one], [two, one], labelled=True).gold == 3


def test_sentences_without_a_gold_tree_are_left_out():
    gold = [None, "(S (A a) (X (B b) (C c)))", ""]
    scores = bracket_scores(["(X (A y) (B z))", gold[1], None], gold)
    assert (scores.sentences, scores.left_out, scores.unparsed, scores.f1) == (1, 2, 0, 1.0)


GOLD = (
    "(S (`` ``) (NP (-NONE- *)) (VP (V go) (NP (N home) (, ,) (PP (P by) (N bus)))) (. .) ('' ''))"
)


@pytest.mark.parametrize(
    "found",
    [
        "(X (X (a go) (X (a home) (X (a by) (a bus)))))",
        "(X (a ``) (X (X (a go) (X (a home) (X (a ,) (X (a by) (a bus))))) (a .)) (a ''))",
        "(X (a ``) (a *) (X (X (a go) (X (a home) (a ,) (X (a by) (a bus)))) (a .)) (a ''))",
        "(X (X (V go) (X (P home) (X (X (, ,)) (X (P by) (N bus))))) (. !) (. ?))",
        "(X (X go (X (a home) (X by bus))))",
        GOLD,
    ],
)
def test_punctuation_is_taken_out_wherever_it_is(found):
    """By the tags of gold where the words are the same, and by its own where they are not."""
    scores = bracket_scores([found], [GOLD])
    assert (scores.found, scores.gold, scores.exact) == (2, 2, 1.0)


def test_tags_of_found_do_not_make_punctuation_where_words_are_the_same():
    found, gold = "(X (, a) (X (. b) (: c)))", "(S (A a) (X (B b) (C c)))"
    assert bracket_scores([found], [gold]).exact == 1.0


def test_each_convention_has_its_punctuation():
    """Parentheses are words to evalb, and so are signs of currencies."""
    gold = "(S (PRN (-LRB- -LRB-) (N x) (-RRB- -RRB-)) (NP ($ $) (CD 5) (N y)))"
    assert bracket_scores([gold], [gold]).gold == 1
    assert bracket_scores([gold], [gold], labelled=True).gold == 3
    assert bracket_scores([gold], [gold], labelled=True, punctuation={"-LRB-", "$", "N"}).gold == 3
    assert bracket_scores([gold], [gold], punctuation=()).gold == 2


# against other ways to count


@cases
@given(pairs(), conventions)
def test_counts_are_those_of_another_way(pair, convention):
    found, gold = pair
    ours, theirs, crossing, n = slow_counts(found, gold, **convention)
    singles = convention["trivial"] is True or (
        convention["trivial"] is None and convention["labelled"]
    )
    if n < (1 if singles else 2):
        with pytest.raises(DataError, match="brackets that count"):
            bracket_scores([found], [gold], **convention)
        return
    scores = bracket_scores([found], [gold], **convention)
    right = (ours & theirs).total()
    assert (scores.found, scores.gold, scores.right) == (ours.total(), theirs.total(), right)
    assert scores.crossing == crossing
    assert scores.exact == (ours == theirs)
    assert scores.no_crossing == (crossing == 0)


@cases
@given(st.lists(pairs(), min_size=2, max_size=5), conventions)
def test_a_corpus_is_the_sum_of_its_sentences(some, convention):
    some = [*some, (tree("(S (A a) (B b))"), tree("(NP (A a) (B b))"))]
    whole = bracket_scores(*zip(*some, strict=True), **convention)
    parts = []
    for found, gold in some:
        try:
            parts.append(bracket_scores([found], [gold], **convention))
        except DataError:
            continue
    assert (whole.sentences, whole.left_out) == (len(parts), len(some) - len(parts))
    for name in ("found", "gold", "right"):
        assert getattr(whole, name) == sum(getattr(part, name) for part in parts)
    for whole_name, name in {"sentence_f1": "f1", "exact": "exact", "crossing": "crossing"}.items():
        mean = np.mean([getattr(part, name) for part in parts])
        assert getattr(whole, whole_name) == pytest.approx(mean)
    if whole.precision + whole.recall:
        harmonic = 2 * whole.precision * whole.recall / (whole.precision + whole.recall)
        assert whole.f1 == pytest.approx(harmonic if whole.found and whole.gold else whole.f1)


@pytest.mark.parametrize("n", [2, 5, 9])
def test_punctuation_leaves_one_sided_trees_one_sided(n):
    words = ["w", ","] * n + ["."]
    gold = Tree("S", tuple(Tree("N" if word == "w" else word, (word,)) for word in words))
    for branching in (right_branching, left_branching):
        found, bare = branching(words), branching(["w"] * n)
        scores = bracket_scores([found, bare, bare], [gold, gold, bare], trivial="sentence")
        assert (scores.found, scores.right) == (3 * (n - 1), n + 1)


def test_deep_trees_do_no_harm():
    words = ["w"] * 3000
    scores = bracket_scores([right_branching(words)], [left_branching(words)])
    assert (scores.found, scores.right, scores.crossing) == (2998, 0, 2998)


# what is refused


@pytest.mark.parametrize(
    ("found", "gold", "message"),
    [
        (["(X a b)"], ["(X a b)", None], "1 trees found for 2 gold trees"),
        (
            ["(X a b c)"],
            ["(X a b)"],
            "tree 0 has other words .* word 2 is 'c' in found and None in",
        ),
        ([None, "(X a b)"], ["(X a b)", "(X a c)"], "tree 1 .* word 1 is 'b' in found and 'c' in"),
        (
            ["(X (a a) (b b) (, ,) (, ,))"],
            ["(X (a a) (b b) (c c) (, ,))"],
            "word 2 is None in found",
        ),
        (["(X a)"], ["(X a)"], "none of the 1 gold trees"),
        ([], [], "none of the 0 gold trees"),
        ("(X a b)", ["(X a b)"], "the trees are '"),
        (tree("(X a b)"), ["(X a b)"], "the trees are tree"),
        ([7], ["(X a b)"], "tree 0: a tree is 7"),
        (["(X a b"], ["(X a b)"], "tree 0: .* is not closed"),
    ],
)
def test_bad_trees_are_refused(found, gold, message):
    with pytest.raises(DataError, match=message) as caught:
        bracket_scores(found, gold)
    assert caught.value.hint


def test_lines_are_named():
    gold = read_trees(["", "(X (a a) (b b))"])
    with pytest.raises(DataError, match="line 2 has other words"):
        bracket_scores([None, "(X b b)"], gold)


@pytest.mark.parametrize("dial", [{"punctuation": ",."}, {"trivial": "all"}, {"trivial": 2}])
def test_bad_dials_are_refused(dial):
    with pytest.raises(DataError, match=next(iter(dial))) as caught:
        bracket_scores(["(X a b)"], ["(X a b)"], **dial)
    assert caught.value.hint


# on real trees


def test_known_trees_on_real_text():
    """Right-branching trees are good English, left-branching ones worse than random ones."""
    full = read_trees(real.lines("wsj_sample/wsj_sample.mrg.gz")[:250])
    assert bracket_scores(full.changed(remove_traces), full).exact == 1.0
    assert bracket_scores(full, full, labelled=True).f1 == 1.0
    plain = full.changed(remove_traces, remove_functions)
    assert 0.5 < bracket_scores(plain, full, labelled=True).f1 < 1.0
    bare = plain.changed(remove_punctuation)
    rng = np.random.default_rng(0)
    figures = []
    for branching in (left_branching, lambda words: random_tree(words, rng), right_branching):
        with_marks, without = (
            bracket_scores([one and branching(one.words()) for one in gold], gold)
            for gold in (plain, bare)
        )
        if branching in (left_branching, right_branching):
            assert with_marks == without
        figures.append(without.f1)
    assert figures == sorted(figures)
    assert figures[2] > 2 * figures[1]


# Trees that know nothing: their shapes, and that random ones are all equally probable


def drawn(words):
    return random_tree(words, np.random.default_rng(len(words)))


EVERY = [right_branching, left_branching, balanced, drawn]


def widths(tree):
    """(start, end) of what is wider than a word."""
    return {(start, end) for _, start, end in tree.spans() if end - start > 1}


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_spans_of_one_sided_trees(n):
    words = [f"w{i}" for i in range(n)]
    assert widths(right_branching(words)) == {(i, n) for i in range(n - 1)}
    assert widths(left_branching(words)) == {(0, i + 1) for i in range(1, n)}


def test_spans_of_balanced_trees():
    assert widths(balanced(list("abcdefg"))) == {(0, 7), (0, 4), (4, 7), (0, 2), (2, 4), (4, 6)}
    for n in range(2, 70):
        above_first = [end for start, end in widths(balanced(["w"] * n)) if start == 0]
        assert 2 ** (len(above_first) - 1) < n <= 2 ** len(above_first)


@pytest.mark.parametrize("branching", EVERY)
@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
def test_trees_are_binary_and_keep_their_words(branching, words):
    tree = branching(words)
    assert tree.words() == words
    assert all(node.is_preterminal or len(node.children) == 2 for node in tree.nodes())
    assert {node.label for node in tree.nodes() if node.is_preterminal} == {"XX"}
    assert {node.label for node in tree.nodes() if not node.is_preterminal} <= {"X"}


@pytest.mark.parametrize(("n", "shapes"), [(3, 2), (4, 5), (5, 14), (6, 42)])
def test_random_trees_are_all_equally_probable(n, shapes):
    """Equal chances for every split would give a balanced tree of 4 words 1/3, not 1/5."""
    rng = np.random.default_rng(n)
    times = Counter(str(random_tree(["w"] * n, rng)) for _ in range(100 * shapes))
    assert len(times) == shapes
    assert chisquare(list(times.values())).pvalue > 1e-3


def test_the_same_generator_gives_another_tree_and_the_same_seed_the_same():
    words = list("abcdefghijklmnop")
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    first, second = random_tree(words, one), random_tree(words, one)
    assert first != second
    assert [first, second] == [random_tree(words, other), random_tree(words, other)]


@pytest.mark.parametrize("branching", EVERY)
def test_long_sentences_do_no_harm(branching):
    words = ["w"] * 5000
    assert len(widths(branching(words))) == 4999


@pytest.mark.parametrize("branching", EVERY)
@pytest.mark.parametrize(("words", "message"), [([], "without words"), ("the dog", "'the dog'")])
def test_no_words_have_no_tree(branching, words, message):
    with pytest.raises(DataError, match=message) as caught:
        branching(words)
    assert caught.value.hint


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0)])
def test_a_seed_is_no_generator(rng):
    with pytest.raises(DataError, match="rng is") as caught:
        random_tree(["a", "b"], rng)
    assert "default_rng" in caught.value.hint
