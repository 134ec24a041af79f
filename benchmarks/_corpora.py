"""The real corpora that the studies read; they lie beside the project and are not part of it."""

from __future__ import annotations

import gzip
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

T = TypeVar("T")
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
SEED = 0  # of the shuffles: the newsgroup files are sorted by class
EVERY_PART = ("headers", "footers", "quotes")
ESCAPES = {"\\\\": "\\", "\\t": "\t", "\\n": "\n"}
QUOTED = re.compile(r"\s*[A-Za-z]{0,3}[>|}]|In article\b|.*\b(writes|wrote|says|said)\s*:\s*$")


class Counts(NamedTuple):
    """Documents as counts of words, with the class of each, and what the columns mean."""

    train: csr_matrix
    test: csr_matrix
    train_labels: NDArray[np.int64]
    test_labels: NDArray[np.int64]
    vocabulary: list[str]


class Texts(NamedTuple):
    """Raw documents with the class of each."""

    train: list[str]
    test: list[str]
    train_labels: NDArray[np.int64]
    test_labels: NDArray[np.int64]
    names: list[str]


class Bags(NamedTuple):
    """Documents as counts of words, and what the columns mean."""

    counts: csr_matrix
    vocabulary: list[str]


class Retrieval(NamedTuple):
    """Documents, queries, and which documents (by place in the list) answer each query."""

    documents: list[str]
    queries: list[str]
    relevant: list[set[int]]


class Context(NamedTuple):
    """A word in its sentence, and the sense that somebody gave it."""

    tokens: list[str]
    position: int
    sense: str


def lines(name: str) -> list[str]:
    """The lines of a corpus file; ends the program, not as a failure, where there is none."""
    path = FOLDER / name
    if not path.is_file():
        print(f"skipped: needs the corpus file {name} in ../shared/data, which is not here")
        raise SystemExit(0)
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    return text.removesuffix("\n").split("\n")


def newsgroups_counts() -> Counts:
    """20 Newsgroups by date as ready-made word counts: 11,269 / 7,505 × 61,188."""
    vocabulary = lines("20news_bow/vocab.txt.gz")
    train, train_labels = _bags("20news_bow/train.txt.gz", len(vocabulary))
    test, test_labels = _bags("20news_bow/test.txt.gz", len(vocabulary))
    return Counts(train, test, train_labels, test_labels, vocabulary)


def newsgroups_texts(strip: Collection[str] = EVERY_PART) -> Texts:
    """20 Newsgroups by date as posts, without their ``strip`` parts: 11,314 / 7,532."""
    unknown = set(strip) - set(EVERY_PART)
    if unknown:
        raise ValueError(f"cannot strip {sorted(unknown)}: only {EVERY_PART}")
    rows = {part: _posts(part) for part in ("train", "test")}
    names = sorted({group for group, _ in rows["train"]})
    texts = {part: [_stripped(post, strip) for _, post in rows[part]] for part in rows}
    labels = {part: np.array([names.index(group) for group, _ in rows[part]]) for part in rows}
    return Texts(texts["train"], texts["test"], labels["train"], labels["test"], names)


def newsgroups_clusters(min_df: int = 5) -> Counts:
    """Posts to be clustered: no headers, footers, quotes, stop words or words in few posts.

    Posts of which fewer than five words are left say nothing of their class and are dropped, as
    is done before one compares topic models.
    """
    texts = newsgroups_texts()
    vectorizer = CountVectorizer(
        stop_words="english", min_df=min_df, max_df=0.5, token_pattern=r"(?u)\b[A-Za-z][A-Za-z]+\b"
    )
    train = vectorizer.fit_transform(texts.train).tocsr()
    test = vectorizer.transform(texts.test).tocsr()
    train_kept, test_kept = (np.flatnonzero(m.sum(axis=1).A1 >= 5) for m in (train, test))
    return Counts(
        train[train_kept],
        test[test_kept],
        texts.train_labels[train_kept],
        texts.test_labels[test_kept],
        list(vectorizer.get_feature_names_out()),
    )


def without_common_and_rare(counts: Counts, min_df: int = 5) -> Counts:
    """Only the columns of words that are no stop words and are in ``min_df`` training posts."""
    spread = np.bincount(counts.train.indices, minlength=counts.train.shape[1])
    stop = np.isin(np.array(counts.vocabulary), list(ENGLISH_STOP_WORDS))
    kept = np.flatnonzero((spread >= min_df) & ~stop)
    words = [counts.vocabulary[i] for i in kept]
    return counts._replace(train=counts.train[:, kept], test=counts.test[:, kept], vocabulary=words)


def ap_blei() -> Bags:
    """Associated Press stories, the example that came with LDA-C: 2,246 × 10,473."""
    return _ldac("ap_blei/ap.dat.gz", "ap_blei/vocab.txt.gz")


def kos_uci() -> Bags:
    """Entries of the blog Daily Kos, without stop words: 3,430 × 6,906."""
    return _ldac("kos_uci/kos.ldac.gz", "kos_uci/vocab.txt.gz")


def smart_ir(name: str) -> Retrieval:
    """Abstracts, queries and judgements of "med" (1,033, 30) or "cran" (1,400, 225), in order.

    A title is put before its abstract, unless the abstract begins with it. Two documents of cran
    are empty.
    """
    numbers, documents = {}, []
    for line in lines(f"smart_ir/{name}.docs.tsv.gz"):
        number, title, body = map(_unescaped, line.split("\t"))
        numbers[number] = len(documents)
        documents.append(body if body.startswith(title) else f"{title} {body}")
    queries = dict(line.split("\t") for line in lines(f"smart_ir/{name}.queries.tsv"))
    relevant: dict[str, set[int]] = {query: set() for query in queries}
    for line in lines(f"smart_ir/{name}.qrels.tsv"):
        query, number = line.split("\t")
        relevant[query].add(numbers[number])
    return Retrieval(documents, [*map(_unescaped, queries.values())], [*relevant.values()])


def senseval2(word: str) -> list[Context]:
    """The contexts of line, hard, serve or interest; of several senses the first."""
    contexts = []
    for line in lines(f"senseval2_lex/{word}.tsv.gz"):
        _, senses, position, tokens, _ = line.split("\t")
        contexts.append(Context(tokens.split(" "), int(position), re.split(r"[ ,;]", senses)[0]))
    return _shuffled(contexts)


def semcor_contexts(lemma: str, pos: str) -> list[Context]:
    """The sentences of SemCor in which a lemma is tagged, e.g. ("say", "VB"); first senses."""
    contexts = []
    for line in lines("semcor3/semcor3.tsv.gz"):
        fields = [token.rsplit("|", 3) for token in line.split("\t")[3].split(" ")]
        words = [field[0].lower() for field in fields]
        for i, (_, tag, base, sense) in enumerate(fields):
            if (base, tag) == (lemma, pos) and sense:
                contexts.append(Context(words, i, sense.split(";")[0]))
    return _shuffled(contexts)


def _bags(name: str, width: int) -> tuple[csr_matrix, NDArray[np.int64]]:
    """Lines of ``label TAB word:count …`` (labels from 1), shuffled."""
    rows = [line.split("\t") for line in _shuffled(lines(name))]
    return _counts([bag for _, bag in rows], width), np.array([int(row[0]) - 1 for row in rows])


def _ldac(name: str, words: str) -> Bags:
    """Lines of ``number-of-words word:count …``, shuffled."""
    vocabulary = lines(words)
    bags = [line.partition(" ")[2] for line in _shuffled(lines(name))]
    return Bags(_counts(bags, len(vocabulary)), vocabulary)


def _counts(bags: list[str], width: int) -> csr_matrix:
    """Documents of ``word:count …``, of which some may be empty."""
    pairs = [re.findall(r"(\d+):(\d+)", bag) for bag in bags]
    ends = np.cumsum([0, *map(len, pairs)])
    words, counts = np.array([pair for row in pairs for pair in row], dtype=np.int64).T
    return csr_matrix((counts.astype(np.float64), words, ends), shape=(len(bags), width))


@cache
def _posts(part: str) -> list[tuple[str, str]]:
    """(group, message) of every post, shuffled."""
    rows = (line.split("\t") for line in lines(f"20news_bydate/{part}.tsv.gz"))
    return _shuffled([(group, _unescaped(text)) for group, _, text in rows])


def _unescaped(text: str) -> str:
    return re.sub(r"\\[\\tn]", lambda found: ESCAPES[found.group()], text)


def _shuffled(items: list[T]) -> list[T]:
    return [items[i] for i in np.random.default_rng(SEED).permutation(len(items))]


def _stripped(post: str, strip: Collection[str]) -> str:
    """The post without its headers (up to the first blank line), its signature and its quotes."""
    if "headers" in strip:
        post = post.partition("\n\n")[2]
    rows = post.rstrip().split("\n")
    if "quotes" in strip:
        rows = [row for row in rows if not QUOTED.match(row)]
    if "footers" in strip:
        rows = _without_signature(rows)
    return "\n".join(rows)


def _without_signature(rows: list[str]) -> list[str]:
    """Cut at the last line that is blank or a rule, if at most eight lines come after it."""
    breaks = [i for i, row in enumerate(rows) if not row.strip(" -=*_~")]
    return rows[: breaks[-1]] if breaks and breaks[-1] >= max(1, len(rows) - 9) else rows
