"""Treebanks: files of trees, and changes that do what they say and no more."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable
from functools import partial
from itertools import permutations
from pathlib import Path

import pytest

from softcount.core.errors import DataError
from softcount.text.treebank import (
    PUNCTUATION,
    Trees,
    add_root,
    compose,
    lowercase,
    read_trees,
    remove_functions,
    remove_punctuation,
    remove_traces,
    trees,
)
from softcount.text.trees import Tree, tree
from tests import real

REAL = ["wsj_sample/wsj_sample.mrg.gz", "masc_ptb/masc_ptb.mrg.gz"]
DEEP = 10_000
MRG = """\

( (S
    (NP-SBJ
      (NP (NNP Pierre) (NNP Vinken) )
      (, ,)
      (ADJP (NP (CD 61) (NNS years) ) (JJ old) )
      (, ,) )
    (VP (VBZ waits) )
    (. .) ))

( (S (NP-SBJ (PRP He) )
    (VP (VBZ smokes) )
    (. .) ))
(X (UH oh) )
"""


def changed(text: str, change: Callable[[Tree], Tree | None]) -> str:
    return str(change(tree(text)))


def written(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


# reading
def test_a_tree_a_line(tmp_path: Path) -> None:
    path = written(tmp_path / "a.mrg", "(X a)\n\n((Y b))\r\n  \n")
    some = read_trees(path)
    assert list(some) == [tree("(X a)"), None, tree("(Y b)"), None]
    assert [some.name(n) for n in range(4)] == [f"{path}:{n}" for n in range(1, 5)]
    assert some.words() == [["a"], [], ["b"], []]
    assert repr(some) == f"<Trees: 2 trees, 2 missing from {path}>"


def test_trees_over_several_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "a.mrg", MRG)
    some = read_trees(path)
    assert [some.name(n) for n in range(len(some))] == [f"{path}:{n}" for n in (2, 11, 14)]
    assert str(some[1]) == "(S (NP-SBJ (PRP He)) (VP (VBZ smokes)) (. .))"
    assert some[0] is not None
    assert some[0].words() == ["Pierre", "Vinken", ",", "61", "years", "old", ",", "waits", "."]


def test_packed_and_marked_files(tmp_path: Path) -> None:
    marked = b"\xef\xbb\xbf" + "(X é)\n".encode()
    for raw in (marked, gzip.compress(marked)):
        assert list(read_trees(written(tmp_path / "a.txt", raw))) == [tree("(X é)")]


def test_lines_of_text_and_of_bytes() -> None:
    for lines in (["(X a)", "", "(Y b)"], ["(X a)\n", "\n", "(Y b)\n"]):
        some = read_trees(lines)
        assert list(some) == [tree("(X a)"), None, tree("(Y b)")]
        assert some.name(2) == "line 3"
    assert list(read_trees(io.BytesIO(b"(X a)\n\n(Y b)"))) == [tree("(X a)"), None, tree("(Y b)")]
    assert len(read_trees(MRG.split("\n"))) == 3


def test_indented_lines_are_trees_if_each_is_one() -> None:
    assert len(read_trees(["  (X a)", "", "  (Y b)"])) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(X a)\n\n(Y (Z b)\n(X c)\n(X d)\n", "a:3, character 1 is not closed"),
        ("(X a)\n(X b))\n(X c)\n", "after the tree, at a:2, character 6, is an unmatched )"),
        ("(X a)\n(X b) (X c)\n", "after the tree, at a:2, character 7, is '(X c)'"),
        ("(X a)\n(X b)\n word\n", "at a:3, character 2 is 'word', but no tree"),
        ("(X\n  (Y a)\n  (Z))\n", "the constituent Z at a:3, character 3 is empty"),
        ("(X\n  (Y a)\n\n  ((Z b) (Y c)))\n", "the constituent at a:4, character 3 has no label"),
        ("(X\n  (Y a)\n  (Z\n   b)\n", "X at a:1, character 1 is not closed"),
        ("(X\n  a))\n", "at a:2, character 5 is ')', but no tree"),
        ("", "no trees in a"),
        ("\n \n", "no trees in a"),
    ],
)
def test_messages_name_the_line(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("a"), text)
    with pytest.raises(DataError, match=re.escape(message)):
        read_trees("a")
    with pytest.raises(DataError, match=re.escape(re.sub(r"\ba:", "line ", message)[:-1])):
        read_trees(text.split("\n")[:-1])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_trees(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"a:2 is not UTF-8"):
        read_trees(written(tmp_path / "a", b"(X a)\n(X \xff)\n"))
    with pytest.raises(DataError, match="cannot be unpacked"):
        read_trees(written(tmp_path / "b", gzip.compress(MRG.encode())[:-9]))
    with pytest.raises(DataError, match="line 2 is 7"):
        read_trees(["(X a)", 7])  # type: ignore[list-item]
    with pytest.raises(DataError, match="line 1 is not UTF-8"):
        read_trees(["(X \ud800)"])


def test_python_data() -> None:
    some = trees(["(X a)", None, Tree("X", ("b",)), " "])
    assert list(some) == [tree("(X a)"), None, tree("(X b)"), None]
    assert some.name(2) == "tree 2"
    assert trees(some) is some
    assert trees(["((X a) b)"], unlabelled="Y")[0] == tree("(Y (X a) b)")
    with pytest.raises(DataError, match="tree 1: X at character 1 is not closed"):
        trees(["(X a)", "(X"])
    for strange in ("(X a)", tree("(X a)"), 7):
        with pytest.raises(DataError, match="the trees are"):
            trees(strange)
    with pytest.raises(DataError, match="tree 0: a tree is 7"):
        trees([7])


def test_some_of_the_trees_keep_their_names() -> None:
    some = read_trees(["(X a)", "", "(X b)"]).select([2, 0])
    assert [some.name(0), some.name(1)] == ["line 3", "line 1"]
    assert some.words() == [["b"], ["a"]]
    assert some[:1] == [tree("(X b)")]


# changing
def test_changes_one_after_the_other() -> None:
    some = trees(["(S-1 (NP (-NONE- *)) (VP-2 (VB Go)))", None, "(NP (-NONE- *))"])
    after = some.changed(remove_traces, remove_functions, lowercase, partial(add_root, label="R"))
    assert [str(item) for item in after] == ["(R (S (VP (VB go))))", "None", "None"]
    assert isinstance(after, Trees)
    assert compose()(some[0]) is some[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(S (NP (-NONE- *)) (VP (VB go)))", "(S (VP (VB go)))"),
        ("(S (SBAR (-NONE- 0) (S (-NONE- *T*-1))) (VB go))", "(S (VB go))"),
        ("(S (A (-NONE- *) a))", "(S (A a))"),
        ("(S (-NONE- a b))", "(S (-NONE- a b))"),  # no tag: it has two words
        ("(S (NP -NONE-))", "(S (NP -NONE-))"),
        ("(-NONE- *)", "None"),
        ("(S (NP (-NONE- *)) (VP (-NONE- *)))", "None"),
    ],
)
def test_without_traces(before: str, after: str) -> None:
    assert changed(before, remove_traces) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("NP-SBJ=1-3", "NP"),
        ("ADVP|PRT", "ADVP"),
        ("ADVP-LOC|PRT", "ADVP"),
        ("PRP$", "PRP$"),
        *((same, same) for same in ("-LRB-", "-RRB-", "-NONE-", "-LSB-", "$", "#", "''", ":")),
        ("-", "-"),
        ("=", "="),
        ("|", "|"),
    ],
)
def test_without_functions(before: str, after: str) -> None:
    one = remove_functions(Tree(before, ("a-b=c|d", Tree(before, ("e-f",)))))
    assert one == Tree(after, ("a-b=c|d", Tree(after, ("e-f",))))


def test_without_punctuation() -> None:
    marks = [",", ".", ":", "``", "''", "-LRB-", "-RRB-", "$", "#"]
    assert set(marks) < PUNCTUATION
    inside = " ".join(f"(PRN ({mark} x))" for mark in marks)
    assert changed(f"(S {inside} (NN ,) (NP (NN $) (. .)))", remove_punctuation) == (
        "(S (NN ,) (NP (NN $)))"
    )
    assert changed("(S (. .))", remove_punctuation) == "None"
    only = partial(remove_punctuation, tags={"HYPH"})
    assert changed("(S (. .) (HYPH -))", only) == "(S (. .))"


def test_lowercase_is_for_words_alone() -> None:
    assert changed("(NP (DT The) ÉCOLE)", lowercase) == "(NP (DT the) école)"


def test_with_root() -> None:
    assert changed("(S a)", add_root) == "(TOP (S a))"
    assert changed("(TOP (S a))", add_root) == "(TOP (S a))"
    assert changed("(TOP (S a))", partial(add_root, label="R")) == "(R (TOP (S a)))"


def test_deep_trees() -> None:
    one = tree("(A (T x) y " * DEEP + "(T x)" + ")" * DEEP)
    for change in (remove_traces, remove_functions, remove_punctuation, lowercase):
        assert change(one) == one


# real trees
@pytest.mark.parametrize(("name", "n"), [(REAL[0], 3914), (REAL[1], 6226)])
def test_real_files(name: str, n: int) -> None:
    real.lines(name)  # skips
    assert len(read_trees(real.FOLDER / name, unlabelled="X")) == n


def test_a_real_file_has_constituents_without_labels() -> None:
    real.lines(REAL[1])  # skips
    with pytest.raises(DataError, match=r"gz:3508, character 203 has no label"):
        read_trees(real.FOLDER / REAL[1])


@pytest.mark.parametrize("name", REAL)
def test_real_trees_without_traces_and_so_on_in_any_order(name: str) -> None:
    changes = [remove_traces, remove_functions, remove_punctuation]
    for line in real.lines(name)[::50]:
        one = tree(line, unlabelled="X")
        after = {str(compose(*some)(one)) for some in permutations(changes)}
        assert len(after) == 1
        left = after.pop()
        assert not re.search(r"\((-NONE-|[,.:$#]|``|'') ", left)
        assert not re.search(r"\([A-Z$]+[-=|]", left)
        # words that stay are those whose tags stay
        pairs = re.findall(r"\(([^\s()]+) ([^\s()]+)\)", line)
        words = [w for tag, w in pairs if tag != "-NONE-" and tag not in PUNCTUATION]
        assert (tree(left).words() if left != "None" else []) == words


@pytest.mark.parametrize("name", REAL)
def test_real_trees_over_lines_are_those_a_line(name: str) -> None:
    nltk = pytest.importorskip("nltk")
    lines = [line for line in real.lines(name)[::20] if not re.search(r"\(\s*\(", line)]
    printed = [f"( {nltk.Tree.fromstring(line).pformat(margin=60)})" for line in lines]
    some = read_trees("\n\n".join(printed).split("\n"))
    assert list(some) == [tree(line) for line in lines]
    first = 1 + sum(text.count("\n") + 2 for text in printed[:-1])
    assert some.name(len(some) - 1) == f"line {first}"
