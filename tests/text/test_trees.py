"""Trees and Penn brackets: what is printed can be read, however deep and strange it is."""

from __future__ import annotations

import copy
import pickle
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.core.errors import DataError
from softcount.grammar.report import tree_svg
from softcount.text.trees import (
    Span,
    Tree,
    find_crossing,
    fold_tree,
    from_spans,
    tree,
)
from tests import real

REAL = ["wsj_sample/wsj_sample.mrg.gz", "masc_ptb/masc_ptb.mrg.gz"]
DEEP = 10_000
WIDE = 100_000

texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=4)
plain = texts.map(lambda text: "".join(text.split())).filter(
    lambda text: text and not set("()") & set(text)
)


def any_trees(names: st.SearchStrategy[str]) -> st.SearchStrategy[Tree]:
    def above(below: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        children = st.lists(below | names, min_size=1, max_size=4)
        return st.builds(lambda label, some: Tree(label, tuple(some)), names, children)

    leaves = st.builds(lambda label, word: Tree(label, (word,)), names, names)
    return st.recursive(leaves, above, max_leaves=12)


def deep(levels: int, word: str = "x") -> Tree:
    return tree("(A " * levels + word + ")" * levels)


def slow_spans(node: Tree, start: int = 0) -> list[Span]:
    """As the words are defined: the number of words before, and that of those inside."""
    found: list[Span] = [(node.label, start, start + len(slow_words(node)))]
    for child in node.children:
        if isinstance(child, str):
            start += 1
        else:
            found += slow_spans(child, start)
            start += len(slow_words(child))
    return found


def slow_words(node: Tree) -> list[str]:
    return [
        word
        for child in node.children
        for word in ([child] if isinstance(child, str) else slow_words(child))
    ]


# reading and printing
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(X a)", Tree("X", ("a",))),
        ("(X a b)", Tree("X", ("a", "b"))),
        ("(X a (Y b) c)", Tree("X", ("a", Tree("Y", ("b",)), "c"))),
        ("( (X a))", Tree("X", ("a",))),
        ("((X a))", Tree("X", ("a",))),
        ("\n(\n\t(X\r\na )\n)\n ", Tree("X", ("a",))),
        ("( X a)", Tree("X", ("a",))),
        ("(X(Y a)(Z b))", Tree("X", (Tree("Y", ("a",)), Tree("Z", ("b",))))),
        ("(-LRB- -LRB-)", Tree("-LRB-", ("-LRB-",))),
        ("(X naïve-日本)", Tree("X", ("naïve-日本",))),
    ],
)
def test_what_brackets_say(text: str, expected: Tree) -> None:
    assert tree(text) == expected


@given(any_trees(plain))
def test_what_is_printed_is_read_again(one: Tree) -> None:
    assert tree(str(one)) == one
    assert tree(f"( {one} )") == one
    assert eval(repr(one), {"tree": tree}) == one


@given(any_trees(texts))
def test_any_words_and_labels_are_printed_so_that_they_can_be_read(one: Tree) -> None:
    again = tree(str(one))
    assert str(again) == str(one)
    assert len(again.words()) == len(one.words())
    assert [span[1:] for span in again.spans()] == [span[1:] for span in one.spans()]


def test_brackets_and_white_space_in_words_and_labels_are_escaped() -> None:
    one = Tree("$(", (Tree("X", ("(a)",)), Tree("Y", ("New York",)), "b\n"))
    assert str(one) == "($-LRB- (X -LRB-a-RRB-) (Y New_York) b_)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NP a)", "S at character 1 is not closed: one ) is missing"),
        ("(S (NP a", "NP at character 4 is not closed: 2 ) are missing"),
        ("(S (", "the bracket at character 4 is not closed: 2 ) are missing"),
        ("(S a))", "after the tree, at character 6, is an unmatched )"),
        ("(S a) (S b)", "after the tree, at character 7, is '(S b)'"),
        ("(S a) b", "after the tree, at character 7, is 'b'"),
        (" S", "at character 2 is 'S', but no tree"),
        (") (S a)", "at character 1 is ')', but no tree"),
        ("(S (NP) a)", "the constituent NP at character 4 is empty"),
        ("(S ( ) a)", "the bracket at character 4 is empty"),
        ("()", "the bracket at character 1 is empty"),
        ("(())", "the bracket at character 2 is empty"),
        ("(S ((NP a)))", "the constituent at character 4 has no label"),
        ("((NP a) (VP b))", "the constituent at character 1 has no label"),
        ("((NP a) b)", "the constituent at character 1 has no label"),
        ("(((NP a)))", "the constituent at character 2 has no label"),
        (" \n", "there is no tree in the text"),
    ],
)
def test_ill_formed_brackets(text: str, message: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(message)}\n  hint: "):
        tree(text)


def test_a_text_must_be_given() -> None:
    with pytest.raises(DataError, match=r"a tree is b'\(S a\)'"):
        tree(b"(S a)")  # type: ignore[arg-type]


def test_constituents_without_a_label_get_the_one_that_is_asked_for() -> None:
    assert str(tree("((A a) (B (  (C c))))", unlabelled="X")) == "(X (A a) (B (X (C c))))"
    assert str(tree("( (S (A a)))", unlabelled="X")) == "(S (A a))"


@pytest.mark.parametrize(
    ("label", "children"),
    [("", ("a",)), (None, ("a",)), ("X", ()), ("X", "a"), ("X", ["a"]), ("X", ("",)), ("X", (1,))],
)
def test_what_is_no_tree(label: str, children: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match="has the"):
        Tree(label, children)


# what trees can do
@given(any_trees(texts))
def test_words_and_spans(one: Tree) -> None:
    assert one.words() == slow_words(one)
    assert one.spans() == slow_spans(one)
    assert [node.label for node in one.nodes()] == [label for label, _, _ in one.spans()]


@given(any_trees(st.sampled_from("ab")), any_trees(st.sampled_from("ab")))
def test_trees_are_equal_if_and_only_if_their_prints_are(one: Tree, two: Tree) -> None:
    assert (one == two) == (str(one) == str(two))
    assert (one != two) == (str(one) != str(two))
    assert len({one, two}) == len({str(one), str(two)})


def test_a_tree_equals_nothing_else() -> None:
    one = Tree("X", ("a",))
    assert one != "(X a)"
    assert Tree("X", (one,)) != Tree("X", ("(X a)",))
    assert Tree("X", ("a",)) != Tree("X", ("a", "b"))
    assert Tree("X", ("a", "b")) != Tree("X", ("a",))


def test_trees_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Tree("X", ("a",)).label = "Y"  # type: ignore[misc]


def test_preterminals() -> None:
    one = tree("(S (A a) (B (C c)) (D d d))")
    assert [node.label for node in one.nodes() if node.is_preterminal] == ["A", "C"]


@given(any_trees(texts))
def test_copies_are_equal(one: Tree) -> None:
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one


def test_deep_trees() -> None:
    one, same, other = deep(DEEP), deep(DEEP), deep(DEEP, "y")
    assert one == same
    assert one != other
    assert hash(one) == hash(same)
    assert str(one) == "(A " * DEEP + "x" + ")" * DEEP
    assert tree(str(one)) == one
    assert repr(one).startswith("tree('(A (A ")
    assert one.words() == ["x"]
    assert one.spans() == [("A", 0, 1)] * DEEP
    assert from_spans(one.words(), one.spans()) == one
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one
    assert (
        fold_tree(one, lambda _, parts: 1 + max(p for p in [0, *parts] if isinstance(p, int)))
        == DEEP
    )


def test_wide_trees() -> None:
    one = Tree("S", tuple(Tree("A", (f"w{n}",)) for n in range(WIDE)))
    assert tree(str(one)) == one
    assert one.spans()[WIDE] == ("A", WIDE - 1, WIDE)


@given(any_trees(texts))
def test_folding_rebuilds(one: Tree) -> None:
    assert fold_tree(one, lambda node, parts: Tree(node.label, tuple(parts))) == one


# spans
@given(st.tuples(*[st.integers(0, 6)] * 4))
def test_crossing_is_a_true_overlap(ends: tuple[int, int, int, int]) -> None:
    (a, b), (c, d) = sorted(ends[:2]), sorted(ends[2:])
    one, two = set(range(a, b)), set(range(c, d))
    expected = bool(one & two and one - two and two - one)
    assert bool(find_crossing([("X", a, b)], c, d)) == expected


def test_crossing_tells_which() -> None:
    spans = [("A", 0, 3), ("B", 2, 4), ("C", 1, 2), ("D", 3, 5)]
    assert find_crossing(spans, 1, 4) == [("A", 0, 3), ("D", 3, 5)]
    assert find_crossing(spans, 0, 5) == []


@given(any_trees(texts), st.randoms())
def test_a_tree_is_its_spans(one: Tree, random: object) -> None:
    assert from_spans(one.words(), one.spans(), "never seen") == one
    # in any order, as long as what covers the same words stays in order
    groups: dict[tuple[int, int], list[Span]] = {}
    for span in one.spans():
        groups.setdefault(span[1:], []).append(span)
    keys = list(groups)
    random.shuffle(keys)  # type: ignore[attr-defined]
    assert from_spans(one.words(), [span for key in keys for span in groups[key]]) == one


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], "(TOP a b c d)"),
        ([("X", 0, 4)], "(X a b c d)"),
        ([("X", 1, 3)], "(TOP a (X b c) d)"),
        ([("X", 2, 4), ("Y", 0, 2)], "(TOP (Y a b) (X c d))"),
        ([("X", 3, 4), ("Y", 0, 3), ("Z", 0, 3)], "(TOP (Y (Z a b c)) (X d))"),
    ],
)
def test_the_flattest_tree_of_some_spans(spans: list[Span], expected: str) -> None:
    assert str(from_spans(list("abcd"), spans)) == expected


def test_the_whole_has_the_label_that_is_given() -> None:
    assert str(from_spans(["a", "b"], [("X", 0, 1)], "S")) == "(S (X a) b)"


@pytest.mark.parametrize("span", [("X", 0, 5), ("X", 2, 2), ("X", 3, 2), ("X", -1, 2)])
def test_spans_outside_the_sentence(span: Span) -> None:
    with pytest.raises(DataError, match=r"is not in a sentence of 4 words\n  hint: "):
        from_spans(list("abcd"), [span])


def test_spans_that_cross() -> None:
    with pytest.raises(DataError, match=r"\('A', 0, 3\) and \('B', 2, 4\) cross"):
        from_spans(list("abcd"), [("B", 2, 4), ("A", 0, 3)])


def test_no_words() -> None:
    with pytest.raises(DataError, match="TOP has the children"):
        from_spans([], [])


# real trees
@pytest.mark.parametrize("name", REAL)
def test_real_trees_are_printed_as_they_were(name: str) -> None:
    for line in real.lines(name):
        if not re.search(r"\(\s*\(", line):  # three trees of MASC have constituents without labels
            assert str(tree(line)) == line


@pytest.mark.parametrize("name", REAL)
def test_real_trees_are_those_that_a_peer_reads(name: str) -> None:
    nltk = pytest.importorskip("nltk")
    for line in real.lines(name)[::40]:
        if re.search(r"\(\s*\(", line):
            continue
        ours, theirs = tree(line), nltk.Tree.fromstring(line)
        assert ours.words() == theirs.leaves()
        assert [node.label for node in ours.nodes()] == [t.label() for t in theirs.subtrees()]
        lengths = [len(t.leaves()) for t in theirs.subtrees()]
        assert [end - start for _, start, end in ours.spans()] == lengths


@pytest.mark.parametrize("name", REAL)
def test_real_trees_are_their_spans(name: str) -> None:
    for line in real.lines(name)[::11]:
        one = tree(line, unlabelled="X")
        spans = one.spans()
        assert from_spans(one.words(), spans) == one
        assert all(not find_crossing(spans, *span[1:]) for span in spans)


@settings(max_examples=200)
@given(st.text("() ab\n", max_size=14))
def test_any_text_is_a_tree_or_an_error(text: str) -> None:
    try:
        one = tree(text)
    except DataError:
        return
    # labels and words are those of the text, in this order; but for an outer bracket, brackets too
    names = re.findall(r"[^\s()]+", text)
    assert re.findall(r"[^\s()]+", str(one)) == names
    assert 0 <= text.count("(") - str(one).count("(") <= 1
    assert text.count("(") == text.count(")")


def test_notebooks_show_a_picture():
    one = tree("(NP (DT the) (NN dog))")
    assert one._repr_svg_() == tree_svg(one)
