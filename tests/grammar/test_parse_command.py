"""``softcount parse``, as a user meets it: trees, line by line, and files that mean harm."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softcount import PCFG
from softcount.core import store
from softcount.grammar.metrics import bracket_scores
from softcount.hmm import HMM
from softcount.text.treebank import read_trees, remove_functions, remove_traces
from softcount.text.trees import tree
from tests.commands import ODD_LINES, done, lines, n_lines, refused, reported, run
from tests.core.damage import array, meta, settings, without
from tests.grammar.banks import BANK, RULES, SENTENCES, TEXT

MORE = [*SENTENCES, "dog the", "she sleeps with zebras", "SHE sleeps"]


@pytest.fixture
def model() -> PCFG:
    return PCFG.from_rules(RULES)


@pytest.fixture
def kept(tmp_path: Path, model: PCFG) -> Path:
    model.save(tmp_path / "kept")
    return tmp_path / "kept"


def marked(found: list[Any], sentences: list[str]) -> list[str]:
    """Lines as they should be printed."""
    flat = ["".join(f" (XX {word})" for word in line.split()) for line in sentences]
    failed = [f"(FAILED{words})" if words else "" for words in flat]
    return [failed[n] if tree is None else str(tree) for n, tree in enumerate(found)]


# what is printed
def test_a_line_for_each_line(kept: Path, model: PCFG, tmp_path: Path) -> None:
    (tmp_path / "new").write_text("\n".join(MORE))
    found = done("parse", kept, tmp_path / "new")
    expected = marked(model.predict(MORE), MORE)
    assert expected[5:] == [
        "(FAILED (XX dog) (XX the))",
        "(FAILED (XX she) (XX sleeps) (XX with) (XX zebras))",
        "(FAILED (XX SHE) (XX sleeps))",
    ]
    assert lines(found) == expected
    assert "3 lines (6, 7, 8) of 8 have no tree" in found.stderr
    again = read_trees(found.stdout.splitlines())
    assert [tree.words() if tree else [] for tree in again] == [line.split() for line in MORE]


def test_standard_input_and_packed_files(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "new.gz").write_bytes(gzip.compress(TEXT.encode()))
    plain = done("parse", kept, stdin=TEXT)
    assert reported(plain) == ""  # nothing to say
    assert done("parse", kept, "-", stdin=TEXT).stdout == plain.stdout
    assert done("parse", kept, tmp_path / "new.gz").stdout == plain.stdout


@pytest.mark.parametrize("raw", ODD_LINES)
def test_odd_lines(kept: Path, raw: bytes) -> None:
    found = done("parse", kept, stdin=raw)
    assert found.stdout.count("\n") == n_lines(raw)
    for line, given in zip(lines(found), raw.decode("utf-8-sig").split("\n"), strict=False):
        assert (tree(line).words() if line else []) == given.split()


def test_words_that_look_like_brackets(kept: Path) -> None:
    found = done("parse", kept, stdin="she ) (S\n")
    assert lines(found) == ["(FAILED (XX she) (XX -RRB-) (XX -LRB-S))"]


def test_words_in_lower_case(tmp_path: Path) -> None:
    PCFG.from_rules(RULES, lowercase=True).save(tmp_path / "low")
    assert lines(done("parse", tmp_path / "low", stdin="SHE Sleeps\n")) == [
        "(S (NP SHE) (VP (VB Sleeps)))"
    ]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_batches_change_nothing(kept: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    whole = done("parse", kept, stdin="\n".join(MORE))
    monkeypatch.setattr("softcount.grammar.command.BATCH", size)
    monkeypatch.setattr("softcount.text.lines.PIECE", 32)
    found = done("parse", kept, stdin="\n".join(MORE))
    assert found.stdout == whole.stdout
    assert reported(found) == reported(whole)


def test_lines_come_at_once(kept: Path) -> None:
    """Whoever types sentences need not wait for the end of them."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])}
    command = [sys.executable, "-m", "softcount", "parse", str(kept)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for words in ("she sleeps", "", "she sees she"):
            running.stdin.write(f"{words}\n")
            running.stdin.flush()
            said = running.stdout.readline().rstrip("\n")
            assert (tree(said).words() if said else []) == words.split()
        running.stdin.close()
    assert running.returncode == 0


@pytest.mark.parametrize("method", ["brackets", "labelled"])
def test_methods(kept: Path, model: PCFG, method: str) -> None:
    found = lines(done("parse", kept, "--method", method, stdin="\n".join(MORE)))
    for line, best, words in zip(found, model.predict(MORE, method=method), MORE, strict=True):
        assert (tree(line).words() if line else []) == words.split()
        assert line.startswith("(FAILED") == (best is None and bool(words))
    assert run("parse", kept, "--method", "mbr", stdin="").exit_code == 2


def test_the_k_best(kept: Path, model: PCFG) -> None:
    found = [
        line.split(" ||| ") for line in lines(done("parse", kept, "--k-best", "3", stdin=TEXT))
    ]
    expected = model.k_best(SENTENCES, 3)
    assert [int(line) for line, _, _ in found] == [1, 3, 4, 4, 5]
    logs = [log for some in expected for log, _ in some]
    np.testing.assert_allclose([float(log) for _, log, _ in found], logs, atol=1e-6)
    assert all(tree(text).words() == SENTENCES[int(n) - 1].split() for n, _, text in found)
    failed = done("parse", kept, "--k-best", "2", stdin="\ndog\n")
    assert lines(failed) == ["2 ||| -inf ||| (FAILED (XX dog))"]
    assert "1 line (2) of 2 has no tree" in failed.stderr


def test_trees_are_drawn(kept: Path) -> None:
    found = done("parse", kept, "--draw", stdin="she sleeps\n\ndog\n")
    assert found.stdout == (
        "    S\n ┌──┴──┐\n NP    VP\n │     │\n │     VB\n │     │\nshe  sleeps\n\n"
        "FAILED\n  │\n  XX\n  │\n dog\n\n"
    )


# what is known, and what is right
def test_brackets(kept: Path, tmp_path: Path, model: PCFG) -> None:
    known = "\n\n\n1-4\n\n"
    (tmp_path / "known").write_text(known)
    found = lines(done("parse", kept, "--brackets", tmp_path / "known", stdin=TEXT))
    assert ("NP", 2, 7) not in tree(found[3]).spans()
    (tmp_path / "known").write_text("\n\n\nNP:2-7\n\n")
    found = lines(done("parse", kept, "--brackets", tmp_path / "known", stdin=TEXT))
    assert ("NP", 2, 7) in tree(found[3]).spans()
    (tmp_path / "known").write_text("\n\n\nPP:2-7\n\n")
    found = lines(done("parse", kept, "--brackets", tmp_path / "known", stdin=TEXT))
    assert ("NP", 2, 7) not in tree(found[3]).spans()  # a span may have no other labels


def test_labels_of_trees_in_brackets(tmp_path: Path) -> None:
    PCFG.from_rules("S -> A [.9] | B [.1]\nA -> 'x' 'y'\nB -> 'x' 'y'").save(tmp_path / "kept")
    (tmp_path / "known").write_text("(S (B x y))\n")
    args = ("parse", tmp_path / "kept", "--brackets", tmp_path / "known")
    assert lines(done(*args, stdin="x y\n")) == ["(S (A x y))"]
    assert lines(done(*args, "--labels", stdin="x y\n")) == ["(S (B x y))"]


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ("\n0-1\n", "known:2 has the span '0-1', but its sentence has 0 words"),
        ("\n\nQP:0-2\n\n\n", "known:3 has the label 'QP', which is not in the grammar"),
        ("\n\n", "has no line for standard input:3"),
        ("\n\n\n\n\n0-1\n", "known:6 has no corresponding sentence"),
    ],
)
def test_faults_of_brackets(kept: Path, tmp_path: Path, known: str, message: str) -> None:
    (tmp_path / "known").write_text(known)
    result = run("parse", kept, "--brackets", tmp_path / "known", stdin=TEXT)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "hint:" in result.stderr


def test_gold_trees(kept: Path, tmp_path: Path, model: PCFG) -> None:
    (tmp_path / "gold").write_text(BANK)
    gold = read_trees(tmp_path / "gold").changed(remove_traces, remove_functions)
    found = done("parse", kept, "--gold", tmp_path / "gold", stdin=TEXT)
    best = model.predict(SENTENCES)
    for labelled in (False, True):
        assert str(bracket_scores(best, gold, labelled=labelled)) in found.stderr
    assert "coverage 100.0%: 4 of 4 have a tree" in found.stderr
    other = TEXT.replace("the cat sleeps", "the cat snores")
    (tmp_path / "gold").write_text(BANK.replace("sleeps", "snores"))
    found = done("parse", kept, "--gold", tmp_path / "gold", stdin=other)
    assert "coverage 75.0%: 3 of 4 have a tree" in found.stderr
    assert ", unparsed 1" in found.stderr


def test_labels_of_no_meaning_are_not_scored(tmp_path: Path) -> None:
    PCFG.from_rules("A -> 'x' A | 'x'").save(tmp_path / "kept")
    (tmp_path / "gold").write_text("(S (N x) (VP (V x) (N x)))\n")
    found = done("parse", tmp_path / "kept", "--gold", tmp_path / "gold", stdin="x x x\n")
    assert "unlabelled F1 100.0" in found.stderr
    assert "\nlabelled" not in found.stderr


def test_functions_of_gold_are_kept_if_the_grammar_has_some(tmp_path: Path) -> None:
    tree_ = "(S (NP-SBJ (N x)) (VP (V y)))"
    (tmp_path / "gold").write_text(f"{tree_}\n")
    PCFG.from_treebank([tree_]).save(tmp_path / "kept")
    found = done("parse", tmp_path / "kept", "--gold", tmp_path / "gold", stdin="x y\n")
    assert "\nlabelled F1 100.0" in found.stderr


def test_faults_of_gold_trees(kept: Path, tmp_path: Path) -> None:
    args = ("parse", kept, "--gold", tmp_path / "gold")
    refused(*args, message="gold cannot be read", stdin=TEXT)  # before anything is parsed
    (tmp_path / "gold").write_text("(S\n(X a)\n(X b)\n(X c)\n")
    refused(*args, message="gold:1, character 1", stdin=TEXT)
    (tmp_path / "gold").write_text("(X a)\n")
    result = run(*args, stdin=TEXT)
    assert result.exit_code == 1
    assert "1 trees, but there are 5 sentences" in result.stderr
    assert len(lines(result)) == 5  # the trees are there all the same
    result = run(*args, stdin="b\n")
    assert result.exit_code == 1


# files that are no grammars
def test_models_of_other_kinds(kept: Path, tmp_path: Path) -> None:
    HMM(2).fit(["a b", "b a"]).save(tmp_path / "tags")
    refused("parse", tmp_path / "tags", message="softcount parse cannot use", stdin="a\n")
    refused("tag", "--load", kept, message="which softcount tag cannot use", stdin="a\n")
    assert f"try softcount parse {kept}" in run("tag", "--load", kept, stdin="a\n").stderr
    refused("parse", tmp_path / "nothing", message="cannot read", stdin="a\n")
    (tmp_path / "text").write_text(TEXT)
    refused("parse", tmp_path / "text", message="is not an intact model file", stdin="a\n")


@pytest.mark.parametrize(
    "damage",
    [
        array("rules", lambda table: -table),
        array("rules", lambda table: table * np.nan),
        array("rules", lambda table: table[1:]),
        array("root", None),
        meta(left=["S"] * 3),
        meta(kinds=["??"] * 15),
        meta(right=[["<script>"]] * 15),
        meta(roots=[]),
        meta(roots=["NOBODY"]),
        without("left"),
        settings(prune=7.0),
    ],
)
def test_hostile_model_files(kept: Path, tmp_path: Path, damage: Any) -> None:
    stored = store.read(kept)
    arrays, facts = dict(stored.arrays), dict(stored.meta)
    facts["settings"] = dict(facts["settings"])
    damage(arrays, facts)
    store.write(tmp_path / "bad", stored.kind, arrays, facts, stored.signature)
    result = run("parse", tmp_path / "bad", stdin=TEXT)
    assert result.exit_code == 1, result.exception
    assert result.stderr.startswith("softcount: ")
    assert result.stdout == ""


@pytest.mark.parametrize("raw", [b"a b\n\nc\0d\n", b"a b\n\nc \xff\n"])
def test_a_fault_is_named_by_its_line(kept: Path, tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "bad").write_bytes(raw)
    refused("parse", kept, tmp_path / "bad", message="bad:3 ")
    refused("parse", kept, stdin=raw, message="standard input:3 ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--k-best", "2", "--draw"), "--k-best does not go with --draw"),
        (("--k-best", "2", "--method", "brackets"), "--k-best does not go with --method"),
        (("--labels",), "--labels needs --brackets"),
        (("-", "--gold", "-"), "only one file can be standard input"),
    ],
)
def test_usage(kept: Path, args: tuple[str, ...], message: str) -> None:
    result = run("parse", kept, *args, stdin="a\n")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_sentence_that_no_memory_has_room_for(
    model: PCFG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError("Unable to allocate 26.8 GiB")

    monkeypatch.setattr(PCFG, "predict", full)
    model.save(tmp_path / "grammar.softcount")
    message = "not enough memory: Unable to allocate 26.8 GiB"
    refused("parse", tmp_path / "grammar.softcount", message=message, stdin="she sleeps\n")
