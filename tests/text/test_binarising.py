"""Chains as one label, and two children at most: other shapes, and back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.core.errors import DataError
from softcount.text.treebank import (
    lowercase,
    remove_functions,
    remove_punctuation,
    remove_traces,
    trees,
)
from softcount.text.trees import (
    Tree,
    binarise_left,
    binarise_right,
    collapse_unaries,
    expand_unaries,
    tree,
    undo_binarising,
)
from tests import real

REAL = ["wsj_sample/wsj_sample.mrg.gz", "masc_ptb/masc_ptb.mrg.gz"]
DEEP = 10_000

labels = st.sampled_from(["S", "NP", "VP-1", "X/Y", "A"])
words = st.sampled_from(["a", "b", "@", "^"])


def above(below: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    children = st.lists(below | words, min_size=1, max_size=6)
    return st.builds(lambda label, some: Tree(label, tuple(some)), labels, children)


tags = st.sampled_from(["DT", "@", "^", ","])
any_trees = st.recursive(
    st.builds(lambda tag, word: Tree(tag, (word,)), tags, words), above, max_leaves=15
)


def changed(text: str, change: Callable[[Tree], Tree]) -> str:
    return str(change(tree(text)))


# chains
@pytest.mark.parametrize(
    ("before", "after", "with_tags"),
    [
        ("(A (B (C c)))", "(A+B (C c))", "(A+B+C c)"),
        ("(A (A (A (C c) (D d))))", "(A+A+A (C c) (D d))", "(A+A+A (C c) (D d))"),
        ("(A (B (C c)) d)", "(A (B (C c)) d)", "(A (B+C c) d)"),
        ("(A a)", "(A a)", "(A a)"),
        ("(A (B b c))", "(A+B b c)", "(A+B b c)"),
    ],
)
def test_chains(before: str, after: str, with_tags: str) -> None:
    assert changed(before, collapse_unaries) == after
    assert changed(before, partial(collapse_unaries, preterminals=True)) == with_tags
    assert changed(after, expand_unaries) == before
    assert changed(with_tags, expand_unaries) == before


@given(any_trees, st.booleans(), st.sampled_from(["+", "::"]))
def test_chains_come_back(one: Tree, preterminals: bool, joint: str) -> None:
    short = collapse_unaries(one, joint, preterminals=preterminals)
    assert expand_unaries(short, joint) == one
    for node in short.nodes():
        below = [child for child in node.children if isinstance(child, Tree)]
        if len(node.children) == 1 and below:
            assert not preterminals
            assert below[0].is_preterminal


def test_a_joint_must_be_recognised() -> None:
    with pytest.raises(DataError, match="'B\\+C' contains the joint '\\+'"):
        collapse_unaries(tree("(A (B+C c))"))
    with pytest.raises(DataError, match="nothing on one side"):
        expand_unaries(tree("(A (+ c))"))
    for change in (collapse_unaries, expand_unaries):
        with pytest.raises(DataError, match="the joint is ''"):
            change(tree("(A a)"), "")


# two children at most
@pytest.mark.parametrize(
    ("h", "v", "right", "left"),
    [
        (
            None,
            1,
            "(S (A (B b) (@A/B (C c) (@A/B/C (D d) e))) (B b))",
            "(S (A (@A/e (@A/D/e (B b) (C c)) (D d)) e) (B b))",
        ),
        (
            1,
            2,
            "(S (A^S (B b) (@A^S/B (C c) (@A^S/C (D d) e))) (B b))",
            "(S (A^S (@A^S/e (@A^S/D (B b) (C c)) (D d)) e) (B b))",
        ),
        (
            0,
            1,
            "(S (A (B b) (@A (C c) (@A (D d) e))) (B b))",
            "(S (A (@A (@A (B b) (C c)) (D d)) e) (B b))",
        ),
    ],
)
def test_binarised(h: int | None, v: int, right: str, left: str) -> None:
    one = tree("(S (A (B b) (C c) (D d) e) (B b))")
    assert str(binarise_right(one, h, v)) == right
    assert str(binarise_left(one, h, v)) == left


def test_labels_of_those_above() -> None:
    one = tree("(S (A (B (C (D d) e) f) g) h)")
    assert str(binarise_right(one, vertical=3)) == "(S (A^S (B^A^S (C^B^A (D d) e) f) g) h)"


def test_labels_of_those_above_tags() -> None:
    one = tree("(S (A (B b) (@ c) (^ d)) (D d))")
    told = "(S (A^S (B^A^S b) (@A^S/B (@^A^S c) (^^A^S d))) (D^S d))"
    assert str(binarise_right(one, vertical=3, tags=True)) == told


@given(any_trees, st.none() | st.integers(0, 3), st.integers(1, 4), st.booleans(), st.booleans())
def test_binarised_trees_come_back(
    one: Tree, h: int | None, v: int, right: bool, with_tags: bool
) -> None:
    two = (binarise_right if right else binarise_left)(one, h, v, tags=with_tags)
    assert undo_binarising(two, tags=with_tags) == one
    assert two.words() == one.words()
    assert all(len(node.children) <= 2 for node in two.nodes())


def test_all_siblings_keep_the_probabilities_of_rules() -> None:
    """Rule by rule, what is read off binarised trees multiplies to what is read off the trees."""
    rules = ["B C D", "B C D", "B C E", "B B", "B", "C C C C", "B C D E"]
    some = [tree(f"(A {' '.join(f'({x} x)' for x in rule.split())})") for rule in rules]
    for binarised in (binarise_right, binarise_left):
        made = [[_rule(n) for n in binarised(one).nodes() if not n.is_preterminal] for one in some]
        counts = Counter(rule for one in made for rule in one)
        totals = Counter(label for one in made for label, _ in one)
        for one, rule in zip(made, rules, strict=True):
            p = prod(counts[part] / totals[part[0]] for part in one)
            assert p == pytest.approx(rules.count(rule) / len(rules))


def _rule(node: Tree) -> tuple[str, tuple[str, ...]]:
    return node.label, tuple(c if isinstance(c, str) else c.label for c in node.children)


@pytest.mark.parametrize("text", ["(S (@A (B b) (C c)))", "(S (A^S (B b) (C c)))"])
def test_labels_that_look_binarised(text: str) -> None:
    for change in (binarise_right, binarise_left):
        with pytest.raises(DataError, match="looks as if the tree were already binarised"):
            change(tree(text))


def test_tags_that_look_binarised() -> None:
    one = tree("(S (A (B^A b) (C c)) d)")
    assert undo_binarising(binarise_right(one)) == one
    with pytest.raises(DataError, match=r"'B\^A' looks as if the tree were already binarised"):
        binarise_right(one, tags=True)


def test_a_part_of_a_binarised_tree_is_no_tree() -> None:
    with pytest.raises(DataError, match="'@A/B' was made by binarising"):
        undo_binarising(tree("(@A/B (C c) (D d))"))


@pytest.mark.parametrize(("h", "v"), [(-1, 1), (True, 1), (0.5, 1), (0, 0), (0, None), (0, True)])
def test_orders_are_whole_numbers(h: int, v: int) -> None:
    with pytest.raises(DataError, match="give"):
        binarise_right(tree("(A a)"), h, v)


def test_deep_and_wide_trees() -> None:
    one = tree("(A (T x) y " * DEEP + "(T x)" + ")" * DEEP)
    assert undo_binarising(binarise_right(one, 1, 2)) == one
    chain = tree("(A " * DEEP + "x" + ")" * DEEP)
    assert expand_unaries(collapse_unaries(chain)) == chain
    wide = Tree("A", tuple(Tree("T", ("x",)) for _ in range(DEEP)))
    for binarised in (binarise_right, binarise_left):
        assert undo_binarising(binarised(wide, 2)) == wide


# real trees
def normalised(name: str, every: int) -> list[Tree]:
    some = trees(real.lines(name)[::every], unlabelled="X")
    changes = (remove_traces, remove_functions, remove_punctuation, lowercase)
    return [item for item in some.changed(*changes) if item is not None]


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_trees_come_back(name: str) -> None:
    for one in normalised(name, 3):
        for preterminals in (False, True):
            short = collapse_unaries(one, preterminals=preterminals)
            assert expand_unaries(short) == one
        assert undo_binarising(binarise_right(one)) == one
        assert undo_binarising(binarise_left(short, 2, 3)) == short
        assert undo_binarising(binarise_right(one, 1, 2, tags=True), tags=True) == one


@pytest.mark.parametrize("name", REAL)
def test_real_trees_are_binarised_as_by_a_peer(name: str) -> None:
    """Labels of what is made differ, the shape does not."""
    nltk = pytest.importorskip("nltk")
    for one in normalised(name, 30):
        for binarised, factor in ((binarise_right, "right"), (binarise_left, "left")):
            theirs = nltk.Tree.fromstring(str(one))
            theirs.chomsky_normal_form(factor=factor)
            assert _shape(str(binarised(one))) == _shape(theirs.pformat(margin=10**9))
        theirs = nltk.Tree.fromstring(str(one))
        theirs.collapse_unary(collapsePOS=False, collapseRoot=True)
        assert str(collapse_unaries(one)) == theirs.pformat(margin=10**9)


def _shape(text: str) -> str:
    return re.sub(r"\([^\s()]+ ", "( ", text)
