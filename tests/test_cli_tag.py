"""``softcount tag``, as a user meets it: what is learned, and what is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import softcount as sc
from softcount.errors import ImpossibleItem
from softcount.hmm import HMM
from softcount.hmm.command import Lessons, learn, read_tags, read_text
from tests.commands import ODD_LINES, done, file_of, lines, n_lines, refused, run
from tests.tagging import DICTIONARY, KNOWN, KNOWN_PAIRS, SENTENCES, TEXT, WORDS, conllu, joined


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return file_of(tmp_path / "text.txt", TEXT)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    return file_of(tmp_path / "words.tsv", WORDS)


# what is learned
@pytest.mark.parametrize(
    ("args", "model"),
    [
        (("-k", "3"), HMM(3)),
        (
            ("-k", "3", "--seed", "4", "--n-init", "2"),
            HMM(3, random_state=4, learner=sc.EM(n_init=2)),
        ),
        (
            ("-k", "2", "--order", "2", "--max-iter", "7"),
            HMM(2, order=2, learner=sc.EM(max_iter=7)),
        ),
        (("-k", "2", "--no-stop", "--smoothing", ".5"), HMM(2, stop=False, smoothing=0.5)),
        (
            ("-k", "2", "--features", "--max-iter", "4"),
            HMM(2, emissions="features", learner=sc.EM(max_iter=4)),
        ),
        (("-k", "2", "--init", "spectral"), HMM(2, init="spectral")),
        (
            ("-k", "2", "--lowercase", "--precision", "single"),
            HMM(2, lowercase=True, dtype="float32"),
        ),
        (
            ("-k", "2", "--learner", "vb", "--max-iter", "9"),
            HMM(2, learner=sc.VariationalBayes(max_iter=9), smoothing=0.1),
        ),
        (
            ("-k", "2", "--learner", "collapsed-gibbs", "--max-iter", "9", "--smoothing", ".3"),
            HMM(2, learner=sc.CollapsedGibbs(max_iter=9), smoothing=0.3),
        ),
        (("-k", "3", "--learner", "hard-em", "--threads", "2"), HMM(3, learner=sc.HardEM())),
    ],
)
def test_lines_are_those_of_the_python_model(text: Path, args: tuple[str, ...], model: HMM) -> None:
    states = model.fit(SENTENCES).predict(SENTENCES)
    assert lines(done("tag", text, *args)) == joined(SENTENCES, states)
    assert done("tag", *args, stdin=TEXT).stdout == done("tag", text, *args).stdout


def test_a_dictionary(text: Path, words: Path) -> None:
    args = ("tag", text, "--dictionary", words, "--open-tags", "V, N", "--smoothing", ".1")
    model = HMM(dictionary=DICTIONARY, open_tags=["V", "N"], smoothing=0.1).fit(SENTENCES)
    found = lines(done(*args))
    assert found == joined(SENTENCES, model.predict(SENTENCES))
    assert found[0].split()[0] == "the/D"
    assert found[2] == ""


def test_a_dictionary_in_lower_case(text: Path, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("The\tD\nTHE\tE\na\tD\n")
    args = ("tag", text, "--dictionary", tmp_path / "words", "--lowercase", "--smoothing", ".1")
    first = [line.split()[0] for line in lines(done(*args)) if line]
    assert first[0] in ("the/D", "the/E")
    assert first[1] == "a/D"
    assert first[3] == "A/D"  # words are printed as they are


@pytest.mark.parametrize("form", ["lines", "conllu"])
def test_tagged_sentences_are_learned_from_as_well(text: Path, tmp_path: Path, form: str) -> None:
    known = tmp_path / "known"
    known.write_text(KNOWN if form == "lines" else conllu(KNOWN_PAIRS))
    model = HMM(smoothing=0.1).fit(
        [*SENTENCES, *([word for word, _ in one] for one in KNOWN_PAIRS)],
        [None] * len(SENTENCES) + [[tag for _, tag in one] for one in KNOWN_PAIRS],
    )
    found = done("tag", text, "--tagged", known, "--smoothing", ".1")
    assert lines(found) == joined(SENTENCES, model.predict(SENTENCES))


def test_tagged_sentences_alone(text: Path, tmp_path: Path) -> None:
    (tmp_path / "known").write_text(KNOWN)
    learn = ("tag", "--tagged", tmp_path / "known", "--smoothing", ".1")
    assert done(*learn, "--save", tmp_path / "kept").stdout == ""
    summary = lines(done(*learn, "--summary"))
    assert "state\ttokens\tshare\twords" in summary
    model = HMM(smoothing=0.1).fit(*zip(*_apart(KNOWN_PAIRS), strict=True))
    found = lines(done("tag", "--load", tmp_path / "kept", text))
    assert found == joined(SENTENCES, model.predict(SENTENCES))


def _apart(pairs: Any) -> list[tuple[list[str], list[str]]]:
    return [([word for word, _ in one], [tag for _, tag in one]) for one in pairs]


def test_an_impossible_sentence_is_called_by_its_line(text: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("\nthe/D zebra/N\n")
    lessons = Lessons(read_text(str(text), None).sequences, read_tags(str(known), None, "/"))
    for word, place in (("cat", "text.txt:2"), ("zebra", "known.txt:2")):
        never = [w == word for w in lessons.joined().sequences.words]
        with pytest.raises(ImpossibleItem, match=f"{place} cannot come about"):
            learn(HMM(zero={"emissions": [never] * 2}), lessons)


# what is printed
def test_states_alone_separators_and_probabilities(text: Path) -> None:
    model = HMM(2).fit(SENTENCES)
    states = model.predict(SENTENCES)
    best = [row.max(axis=1) for row in model.predict_proba(SENTENCES)]
    posterior = model.predict(SENTENCES, method="posterior")
    args = ("tag", text, "-k", "2")
    assert lines(done(*args, "--states")) == [" ".join(map(str, own)) for own in states]
    assert lines(done(*args, "--separator", "__")) == joined(SENTENCES, states, "__")
    found = lines(done(*args, "--decode", "posterior", "--proba"))
    told = [
        [f"{state}:{p:.4g}" for state, p in zip(own, row, strict=True)]
        for own, row in zip(posterior, best, strict=True)
    ]
    assert found == joined(SENTENCES, told)


def test_json(text: Path) -> None:
    model = HMM(2).fit(SENTENCES)
    said = [json.loads(line) for line in lines(done("tag", text, "-k", "2", "--json", "--proba"))]
    assert [one["line"] for one in said] == [1, 2, 3, 4, 5]
    assert [one["words"] for one in said] == SENTENCES
    assert [one["states"] for one in said] == model.predict(SENTENCES)
    assert all(0.0 < p <= 1.0 for one in said for p in one["probabilities"])
    assert set(json.loads(lines(done("tag", text, "-k", "2", "--json"))[0])) == {
        "line",
        "words",
        "states",
    }


def test_summary(text: Path, words: Path) -> None:
    args = ("tag", text, "--dictionary", words, "--open-tags", "V", "--summary")
    rows = [line.split("\t") for line in lines(done(*args)) if not line.startswith("#")]
    assert rows[0] == ["state", "tokens", "share", "words"]
    sizes = {row[0]: int(row[1]) for row in rows[1:]}
    assert sizes == {"D": 4, "N": 4, "V": 4, "J": 1}
    assert [int(row[1]) for row in rows[1:]] == sorted(sizes.values(), reverse=True)
    whole = json.loads(done(*args, "--json").stdout)
    assert {one["state"]: one["tokens"] for one in whole["states"]} == sizes
    assert sum(one["share"] for one in whole["states"]) == pytest.approx(1.0)
    (nouns,) = [one["words"] for one in whole["states"] if one["state"] == "N"]
    assert nouns == pytest.approx({"dog": 0.5, "cat": 0.5})
    assert whole["verdict"]["name"] == "converged"


@pytest.mark.parametrize("raw", ODD_LINES)
def test_one_line_out_for_each_line_in(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "odd").write_bytes(raw)
    kept = tmp_path / "kept"
    learned = done("tag", tmp_path / "odd", "-k", "1", "--save", kept).stdout_bytes
    assert learned.count(b"\n") == n_lines(raw)
    assert done("tag", "--load", kept, tmp_path / "odd").stdout_bytes == learned
    assert done("tag", "--load", kept, stdin=raw).stdout_bytes == learned
    assert done("tag", "-k", "1", stdin=raw).stdout_bytes == learned


# what cannot be
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "how many states?"),
        (("-k", "0"), "Invalid value for '-k'"),
        (("-k", "2", "--open-tags", "A"), "--open-tags needs --dictionary"),
        (("-k", "2", "--learner", "spectral"), "spectral"),
        (("-k", "2", "--order", "3"), "Invalid value for '--order'"),
        (("-k", "2", "--decode", "best"), "choose one of viterbi, posterior"),
        (("-k", "2", "--format", "xml"), "choose one of lines, conllu"),
        (("-k", "2", "--load", "x"), "--load does not go with --n-states"),
        (("--tagged", "x"), "nothing to tag: give FILE, or --save"),
        (("--tagged", "x", "--gold", "y", "--summary"), "--gold needs FILE"),
        (("-", "--tagged", "-"), "only one file can be standard input"),
    ],
)
def test_usage_errors(args: tuple[str, ...], message: str) -> None:
    result = run("tag", *args, stdin=TEXT)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("-k", "2", "--separator", " "), "--separator ' '"),
        (("-k", "2", "--column", "lemma"), "the tags' column is 'lemma'"),
        (("-k", "1", "--dictionary", "words.tsv"), "there are 4 tags, but n_states=1"),
        (("--dictionary", "words.tsv", "--open-tags", "N,,V"), "has an empty tag"),
        (("--dictionary", "words.tsv", "--separator", "J"), "with the separator J in it"),
        (("--dictionary", "text.txt"), "text.txt:1 has 0 TABs"),
        (("--dictionary", "nowhere"), "nowhere cannot be read"),
        (("-k", "2", "--learner", "vb", "--smoothing", "0"), "needs a prior above 0"),
        (("-k", "2", "--save", "text.txt"), "this is the file of FILE, too"),
        (("-k", "2", "--html", "no/where.html"), "there is no folder"),
    ],
)
def test_bad_input(
    text: Path, words: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(text.parent)
    refused("tag", "text.txt", *args, message=message)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "no sentences"),
        (b"\n\n", "not a single word"),
        (b"fine\n\xff\n", "is not UTF-8"),
    ],
)
def test_damaged_text(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "text").write_bytes(raw)
    refused("tag", tmp_path / "text", "-k", "2", message=message)
    refused("tag", "-k", "2", message=message, stdin=raw)


def test_no_line_is_lost_if_the_model_cannot_be_saved(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: HMM, path: Path) -> None:
        raise sc.errors.StoreError("no room", "make some")

    monkeypatch.setattr(HMM, "save", full)
    result = run("tag", text, "-k", "2", "--save", tmp_path / "kept")
    assert result.exit_code == 1
    assert len(lines(result)) == 5
    assert "no room" in result.stderr
