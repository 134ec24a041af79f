"""``softcount grammar``, as a user meets it: what is learned, and what is printed."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount import PCFG
from softcount.core.errors import DataError
from softcount.grammar.command import GrammarData, score_baselines
from softcount.grammar.metrics import bracket_scores
from softcount.text.sequences import sequences
from softcount.text.treebank import read_trees, remove_functions, remove_traces, trees
from tests.commands import ODD_LINES, done, file_of, lines, n_lines, refused, run
from tests.grammar.banks import BANK, RULES, SENTENCES, TEXT, TREES


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return file_of(tmp_path / "text.txt", TEXT)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return file_of(tmp_path / "rules.txt", RULES)


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    return file_of(tmp_path / "bank.mrg", BANK)


def written(model: PCFG, sentences: list[str] = SENTENCES) -> list[str]:
    return ["" if tree is None else str(tree) for tree in model.predict(sentences)]


def same(path: Path, model: PCFG) -> None:
    """A saved model has the tables of another."""
    kept = sc.load(path)
    assert kept.labels_ == model.labels_
    for name, table in model.params_.items():
        np.testing.assert_allclose(kept.params_[name], table, atol=1e-12)


# what is learned
@pytest.mark.parametrize(
    ("args", "settings"),
    [
        ((), {}),
        (("--smoothing", ".5"), {"smoothing": 0.5}),
        (("--max-iter", "1", "--tol", "0"), {"learner": sc.EM(max_iter=1, tol=0.0)}),
        (("--learner", "hard-em"), {"learner": sc.HardEM()}),
        (
            ("--learner", "vb", "--max-iter", "3"),
            {"learner": sc.VariationalBayes(max_iter=3), "smoothing": 0.1},
        ),
        (
            ("--init", "random", "--seed", "4", "--n-init", "2", "--max-iter", "2"),
            {"init": "random", "random_state": 4, "learner": sc.EM(n_init=2, max_iter=2)},
        ),
        (("--init", "uniform", "--threads", "2"), {"init": "uniform"}),
    ],
)
def test_rules_are_learned_as_in_python(
    text: Path, rules: Path, tmp_path: Path, args: tuple[str, ...], settings: dict[str, Any]
) -> None:
    model = PCFG.from_rules(RULES, **settings).fit(SENTENCES)
    found = done("grammar", text, "--rules", rules, *args, "--save", tmp_path / "kept")
    assert lines(found) == written(model)
    same(tmp_path / "kept", model)


def test_a_dense_grammar(text: Path, tmp_path: Path) -> None:
    args = ("-k", "2", "--n-preterminals", "3", "--seed", "3", "--max-iter", "4", "--lowercase")
    found = done("grammar", text, *args, "--dtype", "float32", "--save", tmp_path / "kept")
    learner = sc.EM(max_iter=4)
    settings = {"random_state": 3, "learner": learner, "lowercase": True, "dtype": "float32"}
    model = PCFG(2, 3, **settings).fit(SENTENCES)
    assert lines(found) == written(model)
    same(tmp_path / "kept", model)
    assert done("grammar", *args, stdin=TEXT).stdout.count("\n") == len(SENTENCES)


def test_how_many_symbols_words_have(text: Path, tmp_path: Path) -> None:
    for more, n in (((), 6), (("--n-preterminals", "7"), 7)):
        done("grammar", text, "-k", "4", *more, "--max-iter", "1", "--save", tmp_path / "kept")
        assert len(sc.load(tmp_path / "kept").labels_) == 4 + n


def test_words_are_printed_as_they_are(tmp_path: Path, rules: Path) -> None:
    (tmp_path / "odd").write_text("SHE Sees The dog\n")
    found = lines(done("grammar", tmp_path / "odd", "--rules", rules, "--lowercase"))
    assert found == ["(S (NP SHE) (VP (VB Sees) (NP (DT The) (NN dog))))"]


def test_a_treebank_is_counted(text: Path, bank: Path, tmp_path: Path) -> None:
    clean = read_trees(bank).changed(remove_traces, remove_functions)
    found = done("grammar", text, "--treebank", bank, "--save", tmp_path / "kept")
    model = PCFG.from_treebank(clean)
    assert lines(found) == written(model)
    same(tmp_path / "kept", model)
    done("grammar", "--treebank", bank, "--keep-functions", "--save", tmp_path / "kept")
    assert "NP-SBJ" in sc.load(tmp_path / "kept").labels_
    assert "-NONE-" not in sc.load(tmp_path / "kept").labels_


def test_trees_of_some_sentences(text: Path, rules: Path, tmp_path: Path) -> None:
    known = [str(tree) for tree in PCFG.from_rules(RULES).predict(SENTENCES[:1])]
    (tmp_path / "known").write_text("\n".join([*known, "", "", "", ""]) + "\n")
    args = ("grammar", text, "--rules", rules, "--trees", tmp_path / "known")
    model = PCFG.from_rules(RULES).fit(SENTENCES, [*known, None, None, None, None])
    done(*args, "--save", tmp_path / "kept")
    same(tmp_path / "kept", model)
    (tmp_path / "known").write_text("(S (NP they))\n" + "\n" * 4)
    refused(*args, message="known:1 differs from")
    (tmp_path / "known").write_text(f"{known[0]}\n\n")
    refused(*args, message="2 trees, but there are 5 sentences")


def test_trees_alone(bank: Path, tmp_path: Path) -> None:
    done("grammar", "--trees", bank, "--max-iter", "2", "--save", tmp_path / "kept")
    clean = read_trees(bank).changed(remove_traces, remove_functions)
    model = PCFG(learner=sc.EM(max_iter=2)).fit(None, clean)
    same(tmp_path / "kept", model)


def test_brackets_are_not_crossed(text: Path, rules: Path, tmp_path: Path) -> None:
    """A line of brackets says where "with a cat" belongs."""
    attached = {}
    for name, line in (("low", "2-7"), ("high", "1-4"), ("label", "VP:1-4"), ("tree", "")):
        if name == "tree":
            line = "(X (X she) (X sees (X (X a dog) (X with (X a cat)))))"
        (tmp_path / "known").write_text(f"\n\n\n{line}\n\n")
        args = ("--rules", rules, "--brackets", tmp_path / "known", "--save", tmp_path / "kept")
        done("grammar", text, *args)
        best = sc.load(tmp_path / "kept").predict([SENTENCES[3]])[0]
        attached[name] = ("NP", 2, 7) in best.spans()
    assert attached == {"low": True, "high": False, "label": False, "tree": True}


def test_labels_of_trees_count_if_that_is_said(tmp_path: Path) -> None:
    """Of two symbols that are alike, the one that trees name is learned to be it."""
    (tmp_path / "rules").write_text("S -> A | B\nA -> 'x' C\nB -> 'x' C\nC -> 'y'\n")
    (tmp_path / "text").write_text("x y\n")
    (tmp_path / "known").write_text("(S (B-SBJ x (C y)))\n")
    args = (
        "grammar",
        tmp_path / "text",
        "--rules",
        tmp_path / "rules",
        "--save",
        tmp_path / "kept",
    )
    shares = []
    for more in ((), ("--labels",)):
        done(*args, "--brackets", tmp_path / "known", *more)
        shares.append(sc.load(tmp_path / "kept").params_["rules"][1])
    assert shares == pytest.approx([0.5, 1.0])


def test_long_sentences_are_left_out_and_parsed(text: Path, rules: Path, tmp_path: Path) -> None:
    args = ("--rules", rules, "--max-length", "5", "--save", tmp_path / "kept")
    found = done("grammar", text, *args)
    assert "1 of 5 sentences have more than 5 words" in found.stderr
    model = PCFG.from_rules(RULES).fit([*SENTENCES[:3], SENTENCES[4]])
    same(tmp_path / "kept", model)
    best = model.predict(SENTENCES)
    assert best[3] is None  # nothing was learned of with
    assert lines(found)[3].startswith("(FAILED (XX she)")
    assert lines(found)[4] == str(best[4])
    refused("grammar", text, "--rules", rules, "--max-length", "1", message="all sentences are")


def test_long_sentences_and_what_is_known_of_them() -> None:
    text = sequences(["a b c", "d", "e f"])
    known = trees(["(X a b c)", None, "(X e f)"])
    some, notes = GrammarData(text, known, [[], [(None, 0, 1)], []]).select_short(2)
    assert some.text is not None
    assert some.text.words == ["d", "e", "f"]
    assert some.text.name(1) == "sentence 2"
    assert list(some.trees or ()) == [None, known[2]]
    assert some.brackets == [[(None, 0, 1)], []]
    assert notes[0].startswith("1 of 3")
    same_ones, notes = GrammarData(None, known).select_short(3)
    assert len(same_ones) == 3
    assert notes == []


# what is printed
@pytest.mark.parametrize("raw", ODD_LINES)
def test_one_line_for_each_line(tmp_path: Path, rules: Path, raw: bytes) -> None:
    (tmp_path / "bank").write_text("(S (X a) (X b))\n(S (X c) (X d))\n")
    (tmp_path / "odd").write_bytes(raw)
    found = done("grammar", tmp_path / "odd", "--treebank", tmp_path / "bank")
    assert found.stdout.count("\n") == n_lines(raw)
    again = read_trees(found.stdout.encode().split(b"\n")[:-1])
    assert len(again) == n_lines(raw)
    for tree, line in zip(again, raw.decode("utf-8-sig").split("\n"), strict=False):
        assert ([] if tree is None else tree.words()) == line.split()


def test_packed_and_from_standard_input(text: Path, rules: Path, tmp_path: Path) -> None:
    packed = tmp_path / "text.gz"
    packed.write_bytes(gzip.compress(TEXT.encode()))
    plain = done("grammar", text, "--rules", rules).stdout
    assert done("grammar", packed, "--rules", rules).stdout == plain
    assert done("grammar", "-", "--rules", rules, stdin=TEXT).stdout == plain
    assert done("grammar", "--rules", rules, stdin=TEXT).stdout == plain
    assert done("grammar", text, "--rules", "-", stdin=RULES).stdout == plain


def test_gold_trees_beside_branching(text: Path, rules: Path, bank: Path) -> None:
    found = done("grammar", text, "--rules", rules, "--gold", bank)
    gold = read_trees(bank).changed(remove_traces, remove_functions)
    ours = bracket_scores(PCFG.from_rules(RULES).fit(SENTENCES).predict(SENTENCES), gold)
    for line in str(ours).splitlines():
        assert f"# {line}\n" in found.stderr
    # counted by hand: 8 and 2 right of 11, 11 gold
    assert "right-branching trees: F1 72.7," in found.stderr
    assert "left-branching trees: F1 18.2," in found.stderr


def test_baselines_know_nothing_of_punctuation() -> None:
    gold = trees(["(S (A a) (, ,) (X (B b) (C c)) (. .))"])
    assert score_baselines(gold)[0].startswith("right-branching trees: F1 100.0")


def test_trees_are_drawn(text: Path, rules: Path) -> None:
    found = done("grammar", text, "--rules", rules, "--show", "2")
    assert found.stderr.count("┴") >= 4
    assert "┴" not in found.stdout
    summary = done("grammar", text, "--rules", rules, "--show", "1", "--summary")
    assert "┴" in summary.stdout
    assert "symbol\tconstituents\tshare\trules and words\nNP\t" in summary.stdout


def test_rules_as_a_text_are_read_again(text: Path, rules: Path, tmp_path: Path) -> None:
    args = ("grammar", text, "--rules", rules)
    plain = done(*args, "--grammar-text", tmp_path / "learned").stdout
    printed = done(*args, "--grammar-text", "-").stdout
    assert (tmp_path / "learned").read_text() == printed
    model, again = PCFG.from_rules(RULES).fit(SENTENCES), PCFG.from_rules(printed)
    np.testing.assert_allclose(
        again.score_samples(SENTENCES), model.score_samples(SENTENCES), rtol=1e-4
    )
    learned = ("--rules", tmp_path / "learned", "--max-iter", "1")
    assert done("grammar", text, *learned).stdout == plain


def test_a_treebank_with_odd_tags_as_a_text(tmp_path: Path) -> None:
    (tmp_path / "bank").write_text("(S (`` ``) (X a) ('' '') (# #))\n(FRAG (A|B yes))\n")
    args = ("grammar", "--treebank", tmp_path / "bank", "--keep-functions", "--grammar-text", "-")
    found = done(*args)
    again = PCFG.from_rules(found.stdout).predict(["`` a '' #", "yes"])
    assert list(map(str, again)) == ["(S (`` ``) (X a) ('' '') (# #))", "(FRAG (A|B yes))"]


def test_a_page(text: Path, rules: Path, bank: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done("grammar", text, "--rules", rules, "--gold", bank, "--html", page)
    told = page.read_text()
    assert "A grammar of text.txt" in told
    assert "right-branching" in told
    assert told.count('<svg class="sc-tree"') == 3  # those of a fair length
    done("grammar", "--treebank", bank, "--html", page)
    assert "A grammar of bank.mrg" in page.read_text()


# what is refused
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("S -> 'x' [2]", "bad.txt:2 has the probability [2]"),
        ("S NP", "bad.txt:2 has no arrow"),
        ("S -> NP", "bad.txt:2 has the symbol NP"),
        ("", "bad.txt: there are no rules"),
        ("S -> S", "bad.txt: the unary rules S -> S form a cycle"),
    ],
)
def test_faults_of_rules_are_named_by_their_line(
    text: Path, tmp_path: Path, rule: str, message: str
) -> None:
    (tmp_path / "bad.txt").write_text(f"# rules\n{rule}\n")
    refused("grammar", text, "--rules", tmp_path / "bad.txt", message=message)


def test_rules_of_no_use_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("S -> 'x'\nA -> 'y'\n")
    found = done("grammar", "--rules", tmp_path / "rules", stdin="x\n")
    assert "softcount: warning:" in found.stderr
    assert "cannot be reached from the root, so their rules are never used: A" in found.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0-9", "known:1 has the span '0-9', but its sentence has 4 words"),
        ("2-2", "known:1 has the span '2-2'"),
        (f"0-{'9' * 5000}", "known:1 has the span"),
        ("NP", "known:1 has 'NP', which is not a span"),
        ("0-2 1-3", "known:1 has the spans 0-2 and 1-3, which cross"),
        ("QP:0-2", "known:1 has the label 'QP'"),
        ("(S (X she", "known:1, character"),
        ("(S they see the dog)", "known:1 differs from its sentence"),
    ],
)
def test_faults_of_brackets_are_named_by_their_line(
    text: Path, rules: Path, tmp_path: Path, line: str, message: str
) -> None:
    (tmp_path / "known").write_text(f"{line}\n\n\n\n\n")
    args = ("--rules", rules, "--brackets", tmp_path / "known")
    refused("grammar", text, *args, message=message)


def test_other_faults(text: Path, rules: Path, bank: Path, tmp_path: Path) -> None:
    (tmp_path / "few").write_text("\n")
    args = ("grammar", text, "--rules", rules)
    refused(*args, "--brackets", tmp_path / "few", message="1 lines, but there are 5 sentences")
    (tmp_path / "gold").write_text(f"{TREES[0]}\n")
    refused(*args, "--gold", tmp_path / "gold", message="1 trees, but there are 5 sentences")
    (tmp_path / "gold").write_text(f"{TREES[0]}\n\n(S (NP)\n\n\n")
    refused(*args, "--gold", tmp_path / "gold", message="gold:3, character")
    refused("grammar", "--rules", rules, message="standard input:3 has a NUL", stdin="a\n\nb\0\n")
    refused("grammar", "--rules", rules, message="input:2 has probability zero", stdin="\nshe\n")
    unknown = "'zebra' (standard input:2)"
    refused("grammar", "--rules", rules, message=unknown, stdin="\nshe zebra\n")
    refused(*args, "--html", tmp_path / "no" / "page", message="there is no folder")
    refused(*args, "--grammar-text", rules, message="this is the file of --rules, too")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "which symbols? give -k"),
        (("--rules", "r", "-k", "3"), "--rules does not go with"),
        (("--treebank", "t", "--max-iter", "3"), "--treebank does not go with --max-iter"),
        (("--treebank", "t", "--rules", "r"), "--treebank does not go with --rules"),
        (("--rules", "r", "--labels"), "--labels needs --brackets"),
        (("-k", "3", "--learner", "spectral"), "spectral is not available for grammars"),
        (("--rules", "-"), "only one file can be standard input"),
        (("-k", "0"), "-k"),
    ],
)
def test_usage(args: tuple[str, ...], message: str) -> None:
    result = run("grammar", "-", *args, stdin="a b\n")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_sentences_are_needed(bank: Path) -> None:
    for args, message in ((("--gold", "g"), "need FILE"), ((), "nothing to parse")):
        more = ("--save", "kept") if args else ()
        result = run("grammar", "--treebank", bank, *args, *more)
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())


def test_sentences_that_are_all_too_long_are_no_lessons() -> None:
    with pytest.raises(DataError, match="all sentences are longer"):
        GrammarData(sequences(["a b", ""])).select_short(1)
