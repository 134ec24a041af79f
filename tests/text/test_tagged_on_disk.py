"""Tagged sentences on disk: the same as in memory."""

from __future__ import annotations

import pickle
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softcount import DataError
from softcount.core.errors import StoreError
from softcount.core.records import pack, unpack
from softcount.text import disk
from softcount.text import tagged as module
from softcount.text.corpora import build_corpus, in_parts, open_corpus
from softcount.text.disk import CorpusFolder, DiskArray, StoredColumn, new_corpus
from softcount.text.tagged import Tagged, build_tagged, open_tagged, tagged

STRINGS = ["the/DT dog/NN barks", "", "A/DT can/NN", "1/2/CD can/MD of tea_NN", "the can/NN can/NN"]
PAIRS = [
    [("the", "DT"), ("New York", None)],
    [],
    [("a", None)],
    [("dog", "NN"), ("the", "XX"), ("dog", "DT")],
]
NUMBERS = [[("the", 3), ("dog", -1)], [("a", None)], [("the", 0), ("cat", 5)], [("dog", 1)]]
WORDS = [[("the", None)], [("dog", None), ("the", None)], []]
FORMS = {"strings": STRINGS, "pairs": PAIRS, "numbers": NUMBERS, "no tags": WORDS}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sentences at a time, and few tokens in a file."""
    monkeypatch.setattr(module, "read_in_blocks", partial(disk.read_in_blocks, size=2))
    monkeypatch.setattr(disk, "SHARD_BYTES", 40)


def assert_same(ours: Tagged, theirs: Tagged) -> None:
    assert ours.names == theirs.names
    assert ours.sequences.words == theirs.sequences.words
    for n in range(len(theirs)):
        assert ours.sentence(n) == theirs.sentence(n)
    assert len(ours) == len(theirs)
    assert np.asarray(ours.tags).tolist() == theirs.tags.tolist()
    assert np.asarray(ours.sequences.tokens).tolist() == theirs.sequences.tokens.tolist()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lowercase", [False, True])
def test_the_same_as_in_memory(form: str, lowercase: bool, tmp_path: Path) -> None:
    data = FORMS[form]
    there = build_tagged(iter(data), tmp_path / "corpus", lowercase=lowercase)
    here = tagged(data, lowercase=lowercase)
    assert isinstance(there.tags, DiskArray)
    assert_same(there, here)
    assert there.dictionary() == here.dictionary()
    assert_same(there.select([2, 0, 1]), here.select([2, 0, 1]))
    again = open_corpus(tmp_path / "corpus")
    assert_same(again, here)
    assert_same(pickle.loads(pickle.dumps(again)), here)
    assert_same(unpack(*pack(again)), here)
    assert [part.sentence(0) for part in in_parts(again, 1)] == [
        here.sentence(n) for n in range(len(here))
    ]


def test_many_files(tmp_path: Path) -> None:
    there = build_tagged(STRINGS * 5, tmp_path / "corpus")
    assert isinstance(there.tags, DiskArray)
    assert len(there.tags.corpus.facts.shards) > 3
    assert_same(there, tagged(STRINGS * 5))


@pytest.mark.parametrize(
    "known",
    [
        {"like": ["dog", "zebra"]},
        {"names": ["NN", "ZZ"]},
        {"lowercase": True},
        {"like": ["a"], "names": ["CD"], "lowercase": True},
    ],
)
def test_known_words_and_tags(known: dict[str, Any], tmp_path: Path) -> None:
    there = build_tagged(STRINGS, tmp_path / "corpus")
    found = tagged(there, **known)
    assert isinstance(found.tags, DiskArray)
    assert_same(found, tagged(tagged(STRINGS), **known))
    assert_same(tagged(found, names=["A"]), tagged(tagged(tagged(STRINGS), **known), names=["A"]))


def test_another_separator(tmp_path: Path) -> None:
    there = build_corpus(["the_DT dog_NN"], tmp_path / "corpus", "tagged", separator="_")
    assert there.sentence(0) == [("the", "DT"), ("dog", "NN")]
    with pytest.raises(DataError, match="separator"):
        build_tagged(["a"], tmp_path / "other", separator=" ")
    assert not (tmp_path / "other").exists()


def test_the_most_frequent_tags_first(tmp_path: Path) -> None:
    """By counting in the plainest way; the first of equally frequent ones is first."""
    rng = np.random.default_rng(0)
    draws = rng.integers(0, (6, 4), (40, 7, 2)).tolist()
    data = [
        [(f"w{word}", f"T{tag}" if tag else None) for word, tag in sentence] for sentence in draws
    ]
    counts = Counter(pair for sentence in data for pair in sentence if pair[1])
    expected: dict[str, list[str]] = {}
    for word, _ in counts:
        own = [pair for pair in counts if pair[0] == word]
        expected[word] = [str(tag) for _, tag in sorted(own, key=lambda pair: -counts[pair])]
    for text in (tagged(data), build_tagged(data, tmp_path / "corpus")):
        assert text.dictionary() == expected
        assert list(text.dictionary()) == list(expected)


def test_what_it_looks_like(tmp_path: Path) -> None:
    there = build_tagged(STRINGS, tmp_path / "corpus")
    assert repr(there) == "<Tagged: 5 sentences, 12 words; 4 tags>"


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("a string", "news.txt:3 is 'a string'"),
        ([("a", "NN"), "b"], "news.txt:3 has 'b' in it"),
        ([("a", "")], "news.txt:3 has the tag ''"),
        ([("a", 5.0)], "news.txt:3 has the tag 5.0"),
        ([("a", 5)], "news.txt:3 or one soon after it has other tags"),
        ([("", "NN")], "news.txt:3 has '' among its words"),
    ],
)
def test_errors_name_the_line(last: Any, said: str, tmp_path: Path) -> None:
    data = [[("a", "NN")], [("b", None)], last, [("a", None)]]
    with pytest.raises(DataError) as caught:
        build_tagged({"news.txt": data}, tmp_path / "corpus")
    assert said in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_nothing_at_all(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no tagged sentences"):
        build_tagged([], tmp_path / "corpus")


@pytest.mark.parametrize(
    ("tags", "said"), [([0, 1, 0], "tags"), ([0, 2], "out of range"), ([0, -2], "out of range")]
)
def test_damage(tags: list[int], said: str, tmp_path: Path) -> None:
    columns = {name: StoredColumn("<i4") for name in ("tokens", "tags", "lengths")}
    with new_corpus(tmp_path / "corpus", "tagged", columns) as writer:
        arrays = {"tokens": np.array([0, 1]), "tags": np.array(tags), "lengths": np.array([2])}
        writer.append(1, **arrays)
        writer.write_names("words", ["a", "b"])
        writer.write_names("tags", ["NN", "DT"])
    with pytest.raises(StoreError, match=said):
        open_tagged(CorpusFolder.open(tmp_path / "corpus")).sentence(0)
