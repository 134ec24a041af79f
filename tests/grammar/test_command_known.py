"""What is known of trees, and files of trees, as users of commands meet them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from softcount import PCFG
from softcount.grammar.metrics import bracket_scores
from softcount.text.treebank import read_trees, remove_functions, remove_traces
from softcount.text.trees import tree
from tests.commands import done, lines, refused, reported
from tests.grammar.banks import BANK, RULES, SENTENCES, TREES

AMBIGUOUS = "she sees a dog with a cat"
WITH_NP, WITH_VP = (
    "(S (NP she) (VP (VB sees) (NP (NP (DT a) (NN dog)) (PP with (NP (DT a) (NN cat))))))",
    "(S (NP she) (VP (VP (VB sees) (NP (DT a) (NN dog))) (PP with (NP (DT a) (NN cat)))))",
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "rules").write_text(RULES)
    (tmp_path / "text").write_text(f"{AMBIGUOUS}\n" * 6)
    (tmp_path / "bank.mrg").write_text(BANK)
    return tmp_path


@pytest.mark.parametrize("option", ["brackets", "trees"])
@pytest.mark.parametrize(("first", "others"), [(WITH_NP, WITH_VP), (WITH_VP, WITH_NP)])
def test_trees_agree_with_what_is_known(files: Path, option: str, first: str, others: str) -> None:
    """Though the grammar likes the other reading best; and that is what scores are of."""
    (files / "known").write_text("\n".join([first, "", *[others] * 4]))
    (files / "gold").write_text(f"{first}\n" * 6)
    args = ("grammar", files / "text", "--rules", files / "rules", "--gold", files / "gold")
    found = done(*args, f"--{option}", files / "known")
    assert lines(found) == [first, *[others] * 5]
    assert "scores are of trees that were found without" in found.stderr
    for labelled in (False, True):
        alone = bracket_scores([others] * 6, [first] * 6, labelled=labelled)
        for line in str(alone).splitlines():
            assert f"# {line}\n" in found.stderr


def test_nothing_is_known(files: Path) -> None:
    (files / "gold").write_text(f"{WITH_NP}\n" * 6)
    args = ("grammar", files / "text", "--rules", files / "rules", "--gold", files / "gold")
    assert "scores are of" not in done(*args).stderr


def test_labels_of_sentences_that_are_not_learned_from(files: Path) -> None:
    (files / "text").write_text("a b\nc d e\n")
    (files / "known").write_text("(S a b)\n(T c (U d e))\n")
    args = ("grammar", files / "text", "-k", 2, "--max-length", 2, "--smoothing", 0.1)
    first, second = map(tree, lines(done(*args, "--brackets", files / "known", "--labels")))
    assert first.label == "S"
    assert second.label != "FAILED"
    assert (1, 3) in [span[1:] for span in second.spans()]


@pytest.mark.parametrize(
    ("line", "spans"),
    [
        ("she sees (a dog with a cat)", "2-7"),
        ("she (SEES (a dog)) with a cat", "1-4 2-4"),
        ("(she (sees a dog) (with a cat))", "1-4 4-7"),
    ],
)
def test_brackets_without_labels(files: Path, line: str, spans: str) -> None:
    args = ("grammar", files / "text", "--rules", files / "rules", "--brackets", files / "known")
    printed = []
    for known in (line, spans):
        (files / "known").write_text(f"{known}\n" * 6)
        printed.append(lines(done(*args)))
    assert printed[0] == printed[1]
    assert printed[0][0] == (WITH_NP if spans == "2-7" else WITH_VP)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("she (sees a dog with a cat", "known:1 has 1 unclosed ("),
        ("she sees) a dog with a cat", "known:1 has an unmatched )"),
        ("she () sees a dog with a cat", "known:1 has an empty pair of brackets"),
        ("(she (sees a dog with a bat))", "known:1 differs from its sentence"),
    ],
)
def test_faults_of_brackets_without_labels(files: Path, line: str, message: str) -> None:
    (files / "known").write_text(f"{line}\n" + "\n" * 5)
    args = ("--rules", files / "rules", "--brackets", files / "known")
    refused("grammar", files / "text", *args, message=message)


def test_brackets_in_words(files: Path) -> None:
    (files / "text").write_text("(a) b\n")
    (files / "known").write_text("(S -LRB-a-RRB- b)\n")
    for option in ("--brackets", "--gold"):
        (line,) = lines(done("grammar", files / "text", "-k", 1, option, files / "known"))
        assert tree(line).words() == ["-LRB-a-RRB-", "b"]
    (files / "known").write_text("(S -LRB-a-RRB- c)\n")
    message = "known:1 differs from its sentence: word 1 is 'c' in the tree, and 'b'"
    refused(*("grammar", files / "text", "-k", 1, "--brackets", files / "known"), message=message)


# files of trees
def test_sentences_of_a_treebank(files: Path) -> None:
    clean = read_trees(files / "bank.mrg").changed(remove_traces, remove_functions)
    model = PCFG.from_treebank(clean)
    expected = ["" if one is None else str(one) for one in model.predict(clean)]
    args = ("--treebank", files / "bank.mrg", "--save", files / "kept")
    assert lines(done("grammar", files / "bank.mrg", *args)) == expected
    (files / "new.mrg.gz").write_bytes(gzip.compress(BANK.encode()))
    found = done("parse", files / "kept", files / "new.mrg.gz", "--gold", files / "bank.mrg")
    assert lines(found) == expected
    assert "coverage 100.0%: 4 of 4" in found.stderr
    assert "looks like a tree" not in found.stderr


def test_trees_over_several_lines_have_a_line_each(files: Path) -> None:
    PCFG.from_rules(RULES).save(files / "kept")
    (files / "new.mrg").write_text("( (S (A she)\n  (B sleeps)))\n( (S (A zebras)\n (B sleep)))\n")
    found = done("parse", files / "kept", files / "new.mrg")
    assert lines(found) == ["(S (NP she) (VP (VB sleeps)))", "(FAILED (XX zebras) (XX sleep))"]
    assert "1 line (2) of 2 has no tree" in found.stderr


def test_trees_that_are_taken_for_sentences(files: Path) -> None:
    PCFG.from_treebank([one for one in TREES if one]).save(files / "kept")
    (files / "text").write_text("\n" + BANK)
    warning = "text:2 looks like a tree, but its brackets are read as words"
    assert warning in done("parse", files / "kept", files / "text").stderr
    assert warning in done("grammar", files / "text", "-k", 1, "--max-iter", 1).stderr
    for line in (*SENTENCES, "( she sleeps )", "(she) sleeps", "she (and (he))"):
        (files / "text").write_text(f"{line}\n")
        assert "looks like" not in done("parse", files / "kept", files / "text").stderr


def test_no_more_than_some_symbols_are_told_of(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softcount.grammar.command.MOST_SYMBOLS", 3)
    args = ("grammar", "--treebank", files / "bank.mrg", "--save", files / "kept")
    told = reported(done(*args)).splitlines()
    assert "# 3 of 9 symbols; --summary has all" in told
    assert sum(not line.startswith("#") for line in told) == 1 + 3
    assert len(lines(done(*args, "--summary"))) - 2 == 9
