"""``softcount topics``: seeds, labels, frozen topics, archives, dates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import softcount as sc
from tests.commands import PETS, TECH, done, lines, refused, shares_of

BOTH = ("-k", "2")


# what is known beforehand
def test_seeds_decide_which_topic_is_which(texts: Path, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    for text, tech in (("Apple iPod\ncat\n", "0"), ("cat dog\niPod, APPLE", "1")):
        seeds.write_text(text)
        found = [line[0] for line in lines(done("topics", texts, *BOTH, "--seeds", seeds))]
        assert found[:3] == [tech] * 3
        assert found[3:] == [str(1 - int(tech))] * 3
    seeds.write_text("\n1: apple unheard-of\n\n")
    result = done("topics", texts, *BOTH, "--seeds", seeds)
    assert [line[0] for line in lines(result)][:3] == ["1"] * 3
    assert "# no document has the seed word unheard-of" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apple\n\n2: cat", ":3: there is no topic 2"),
        ("apple\ncat\n\ndog", ":4: there is no topic 3"),
        ("apple\n0: cat", ":2: topic 0 has seeds already"),
        ("\n?\n", ": there are no words"),
        ("unheard-of\n", "none of the seed words is in the corpus"),
    ],
)
def test_bad_seeds(texts: Path, tmp_path: Path, text: str, message: str) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(text)
    refused("topics", texts, *BOTH, "--seeds", seeds, message=message)


def test_labels_hold_documents_to_their_topics(texts: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("2\n\n-1\n0 1\n0,1\n1\n")
    found = shares_of(texts, "-k", "3", "--labels", labels)
    np.testing.assert_array_equal(found[[0, 5]], [[0, 0, 1], [0, 1, 0]])
    assert found[3:5, 2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\n" * 5, ": 5 lines, while texts.txt has 6"),
        ("0\n" * 5 + "2\n", ":6: '2' is no topic"),
        ("0\nsport\n" * 3, ":2: 'sport' is no topic"),
        ("0\n,\n" * 3, ":2: ',' is no topic"),
        ("0\n" * 5 + "9" * 5000, ":6: '99"),
    ],
)
def test_bad_labels(texts: Path, tmp_path: Path, text: str, message: str) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text(text)
    refused("topics", texts, *BOTH, "--labels", labels, message=f"--labels {labels}{message}")


def test_frozen_topics(texts: Path, tmp_path: Path) -> None:
    kept, more = tmp_path / "kept.softcount", tmp_path / "more.softcount"
    done("topics", texts, *BOTH, "--save", kept)
    new = tmp_path / "new.txt"
    new.write_text("\n".join([*TECH, *PETS, "oil price market", "market price"]))
    done("topics", new, "-k", "3", "--freeze", kept, "--save", more)
    old, found = sc.load(kept), sc.load(more)
    columns = [found.word_names().tolist().index(word) for word in old.word_names()]
    np.testing.assert_allclose(found.topics_[:2, columns], old.topics_, rtol=1e-6)
    assert found.top_words(1)[2][0][0] in ("market", "price")
    refused("topics", new, *BOTH, "--freeze", kept, message="2 topics: with -k 2 there is nothing")
    args = ("topics", "-", "-k", "3", "--freeze", kept)
    refused(*args, message="topic 0 has none of the words of standard input", stdin="oil\nprice\n")


# archives
def test_an_archive_answers_in_the_order_of_its_lines(
    texts: Path, archive: Path, tmp_path: Path
) -> None:
    found = sc.Archive.open(archive)
    assert found.origin.tolist() != list(range(6))
    expected = np.empty((6, 2))
    expected[found.origin] = sc.LDA(2).fit(found).fold_learned()
    np.testing.assert_allclose(shares_of(archive, *BOTH), expected, rtol=1e-5)
    labels, dates, page = tmp_path / "labels.txt", tmp_path / "dates.txt", tmp_path / "page.html"
    labels.write_text("0\n0\n0\n1\n1\n1\n")
    dates.write_text("1990\n1990\n1990\n1991\n1991\n1991\n")
    args = ("topics", archive, *BOTH, "--labels", labels, "--dates", dates, "--over-time", "-")
    assert lines(done(*args, "--html", page))[1:] == ["1990\t3\t1\t0", "1991\t3\t0\t1"]
    assert f"{texts.name}:1" in page.read_text(encoding="utf-8")


def test_an_archive_folds_in_where_it_has_the_same_words(
    texts: Path, archive: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.softcount"
    first = done("topics", archive, *BOTH, "--save", kept)
    assert done("topics", "--load", kept, archive).stdout == first.stdout
    assert done("topics", "--load", kept, texts).stdout == first.stdout
    other = tmp_path / "other.archive"
    done("corpus", "build", "-", "-o", other, stdin="oil\n")
    refused("topics", "--load", kept, other, message="has other words than the model")
    refused("topics", tmp_path, message=str(tmp_path))
    refused("topics", texts, archive, message=f"{archive} is a folder")


# dates
def test_over_time(texts: Path, tmp_path: Path) -> None:
    dates, table, labels = (tmp_path / name for name in ("dates.txt", "t.tsv", "labels.txt"))
    dates.write_text("1990\n1990\n\n1992\n1990\n1992\n")
    labels.write_text("0\n0\n0\n1\n1\n1\n")
    args = ("topics", texts, *BOTH, "--labels", labels, "--dates", dates, "--over-time")
    assert lines(done(*args, table)) == ["0\t1.0000"] * 3 + ["1\t1.0000"] * 3
    expected = [f"1990\t3\t{9 / 14:.6g}\t{5 / 14:.6g}", "1991\t0\t\t", "1992\t2\t0\t1"]
    assert table.read_text().splitlines() == ["period\tdocuments\t0\t1", *expected]
    assert done(*args, "-").stdout == table.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1990\n\nsoon\n" * 2, ":3: 'soon' is no time"),
        ("1990\n" * 7, ": 7 lines, while texts.txt has 6"),
        ("\n" * 6, ": no document has a time"),
        ("1990-01-01\n" * 5 + "3.5", ":6: 3.5 is no date"),
    ],
)
def test_bad_dates(texts: Path, tmp_path: Path, text: str, message: str) -> None:
    dates = tmp_path / "dates.txt"
    dates.write_text(text)
    refused("topics", texts, "--dates", dates, message=f"--dates {dates}{message}")
