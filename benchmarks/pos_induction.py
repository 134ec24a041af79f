"""Parts of speech from raw text, from a dictionary, and from few tagged sentences.

English (UD EWT, 17 tags, lower case) and the Wall Street Journal sample (45 tags):

    induction    many-to-one and V-measure of hidden states, means over starts: EM (random and
                 spectral starts), variational Bayes, Gibbs and collapsed Gibbs with sparse priors,
                 and hmmlearn's EM from the same random starts
    dictionary   tagging new text after EM with a dictionary from the training part
    curve        accuracy with 10, 100 and 1,000 tagged sentences, alone and beside untagged ones,
                 these at full weight and at lower ones

And as if English were a small language (UD EWT, 17 tags, upper and lower case):

    small        accuracy on 400 sentences without tags, learned from these, ten tagged ones and a
                 dictionary of 250 words; ways as `softcount tag` has them, means over draws

    python benchmarks/pos_induction.py [--json] [--starts N] [--only PART]
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _tables import show

import softcount as sc
from softcount.metrics import induction_scores, tag_scores
from softcount.text.conllu import read_conllu
from softcount.text.tagged import Tagged, tagged

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
SPARSE = {"transitions": 0.1, "emissions": 0.01}
TAGGED = (10, 100, 1000)
BESIDE = {  # sentences without tags beside those with tags: their weight, and the smoothing
    "untagged": (1.0, 0.01),
    "untagged, weight .1": (0.1, 0.01),
    "untagged, weight .01": (0.01, 0.01),
    "untagged, weight .1, smoothing .1": (0.1, 0.1),
}
PARTS = ("induction", "dictionary", "curve", "small")

# the small language
TEN, RAW, WORDS, DRAWS = 10, 400, 250, 5
USUAL = 0.05  # whoever writes a dictionary leaves out what a word hardly ever is
OPEN_TAGS = ["NOUN", "VERB", "ADJ", "ADV", "PROPN", "NUM"]


class Corpus(NamedTuple):
    """Tagged sentences to learn from, and to be asked about."""

    train: Tagged
    test: Tagged


def found(pattern: str) -> Path:
    """The file of a corpus."""
    paths = sorted(FOLDER.glob(pattern))
    if not paths:
        raise SystemExit(f"this study needs {pattern} in ../shared/data")
    return paths[0]


def ewt(lowercase: bool = True) -> Corpus:
    parts = (read_conllu(found(f"ud/*ewt*{part}*.conllu*")) for part in ("train", "dev"))
    return Corpus(*(part.tagged(lowercase=lowercase) for part in parts))


def wsj() -> Corpus:
    """Words and tags of the trees' leaves, traces left out; every tenth sentence is for testing."""
    trees = gzip.decompress(found("wsj_sample/*.mrg.gz").read_bytes()).decode("utf-8")
    leaves = [re.findall(r"\(([^\s()]+) ([^\s()]+)\)", tree) for tree in trees.splitlines()]
    pairs = [[(word, tag) for tag, word in one if tag != "-NONE-"] for one in leaves]
    train = [one for n, one in enumerate(pairs) if n % 10]
    return Corpus(*(tagged(some, lowercase=True) for some in (train, pairs[::10])))


def gold(text: Tagged) -> list[list[Any]]:
    return [text.tags_of(n) for n in range(len(text))]


def chosen(text: Tagged, numbers: np.ndarray) -> Tagged:
    """These sentences as if there were no others: `select` keeps words that are not in them."""
    return tagged([text.sentence(n) for n in numbers])


def tell(name: str) -> None:
    print(name, "…", file=sys.stderr, flush=True)


def learners() -> dict[str, dict[str, Any]]:
    """Settings of each way to learn."""
    return {
        "EM, random": {"learner": sc.EM(max_iter=100)},
        "EM, spectral": {"learner": sc.EM(max_iter=100), "init": "spectral"},
        "VB": {"learner": sc.VariationalBayes(max_iter=100), "smoothing": SPARSE},
        "VB, spectral": {
            "learner": sc.VariationalBayes(max_iter=100),
            "smoothing": SPARSE,
            "init": "spectral",
        },
        "Gibbs": {"learner": sc.Gibbs(max_iter=300, n_init=1), "smoothing": SPARSE},
        "collapsed Gibbs": {"learner": sc.CollapsedGibbs(max_iter=300), "smoothing": SPARSE},
    }


def scored(states: Any, right: list[list[Any]]) -> tuple[float, float]:
    scores = induction_scores(states, right)
    return scores.many_to_one, scores.v_measure


def induction(corpus: Corpus, n_states: int, starts: int) -> dict[str, dict[str, float]]:
    """Means over starts."""
    text, right = corpus.train.sequences, gold(corpus.train)
    table = {}
    for name, settings in learners().items():
        tell(name)
        figures = []
        for seed in range(starts):
            model = sc.HMM(n_states, random_state=seed, **settings).fit(text)
            figures.append(scored(model.predict(text), right))
        table[name] = averaged(np.array(figures))
    if find_spec("hmmlearn"):
        tell("hmmlearn")
        table["hmmlearn, EM"] = averaged(
            np.array([scored(peer(corpus.train, n_states, seed), right) for seed in range(starts)])
        )
    return table


def averaged(figures: np.ndarray) -> dict[str, float]:
    means, spread = figures.mean(axis=0), figures.std(axis=0)
    return {"many-to-one": means[0], "±": spread[0], "V": means[1], "± ": spread[1]}


def peer(text: Tagged, n_states: int, seed: int) -> list[list[int]]:
    """hmmlearn's EM from where ours begins, 100 steps."""
    from hmmlearn.hmm import CategoricalHMM

    begun = sc.HMM(n_states, stop=False, random_state=seed, learner=sc.EM(max_iter=1, tol=0))
    begun.fit(text.sequences, keep_params=True)
    start = begun.trace_.params[0]
    model = CategoricalHMM(n_states, implementation="scaling", n_iter=100, tol=0.0, init_params="")
    model.n_features = len(text.sequences.words)
    model.startprob_, model.transmat_ = start["start"][0], start["transitions"]
    model.emissionprob_ = start["emissions"]
    full = text.sequences.lengths > 0
    flat, lengths = text.sequences.tokens[:, None], text.sequences.lengths[full]
    states = model.fit(flat, lengths).predict(flat, lengths)
    return [one.tolist() for one in np.split(states, text.sequences.indptr[1:-1])]


def accuracy(model: Any, corpus: Corpus) -> dict[str, float]:
    test = corpus.test.sequences
    words = [test.sentence(n) for n in range(len(test))]
    scores = tag_scores(model.predict(test), gold(corpus.test), set(model.words_), words)
    return {
        "accuracy": scores.accuracy,
        "known": scores.known_accuracy or 0.0,
        "unknown": scores.unknown_accuracy or 0.0,
    }


def with_dictionary(corpus: Corpus) -> dict[str, dict[str, float]]:
    """EM on the words of the training part, with the tags that each word has there."""
    words = corpus.train.dictionary()
    ways: dict[str, Callable[[], Any]] = {
        "dictionary, EM": lambda: sc.HMM(dictionary=words, smoothing=0.01).fit(
            corpus.train.sequences
        ),
        "dictionary, VB": lambda: sc.HMM(
            dictionary=words, smoothing=SPARSE, learner=sc.VariationalBayes()
        ).fit(corpus.train.sequences),
        "all tags": lambda: sc.HMM(smoothing=0.01).fit(corpus.train),
        "all tags, order 2": lambda: sc.HMM(smoothing=0.01, order=2).fit(corpus.train),
    }
    table = {}
    for name, made in ways.items():
        tell(name)
        table[name] = accuracy(made(), corpus)
    return table


def curve(corpus: Corpus) -> dict[str, dict[str, float]]:
    """A few tagged sentences, alone and beside all others untagged."""
    order = np.random.default_rng(0).permutation(len(corpus.train))
    shuffled = chosen(corpus.train, order)
    table = {}
    for n in TAGGED:
        tell(f"{n} tagged sentences")
        alone = sc.HMM(smoothing=0.01).fit(chosen(corpus.train, order[:n]))
        table[f"{n} tagged, alone"] = accuracy(alone, corpus)
        tags = first_tags(shuffled, n)
        for name, (weight, smoothing) in BESIDE.items():
            weights = np.where(np.arange(len(tags)) < n, 1.0, weight)
            both = sc.HMM(smoothing=smoothing, learner=sc.EM(max_iter=10))
            both.fit(shuffled.sequences, tags, weights)
            table[f"{n} tagged, and the others {name}"] = accuracy(both, corpus)
    return table


def first_tags(text: Tagged, n: int) -> list[Any]:
    """The tags of the first sentences; of others nothing is known."""
    return [text.tags_of(m) if m < n else None for m in range(len(text))]


class Start(NamedTuple):
    """What there is of a small language.

    ``text``   tagged sentences, then raw ones; ``tags`` has the tags of the first
    ``raw``    the raw ones, with the tags that nobody knows yet
    ``usual``  the tags that each of some words has now and then in other sentences, the most
               frequent first; ``every``: and those that it hardly ever has
    """

    text: Tagged
    tags: list[Any]
    raw: Tagged
    usual: dict[str, list[str]]
    every: dict[str, list[str]]


def drawn(text: Tagged, seed: int) -> Start:
    order = np.random.default_rng(seed).permutation(len(text))
    own, others = chosen(text, order[: TEN + RAW]), chosen(text, order[TEN + RAW :])
    raw = chosen(text, order[TEN : TEN + RAW])
    usual, every = (frequent_words(others, least) for least in (USUAL, 0.0))
    return Start(own, first_tags(own, TEN), raw, usual, every)


def frequent_words(text: Tagged, least: float) -> dict[str, list[str]]:
    """A dictionary of the most frequent words: tags that this share of their uses has at least."""
    words, tokens = text.sequences.words, text.sequences.tokens.tolist()
    often = dict(Counter(tokens).most_common(WORDS))
    entries: dict[str, list[str]] = {words[w]: [] for w in often}
    for (w, tag), n in Counter(zip(tokens, text.tags.tolist(), strict=True)).most_common():
        if w in often and n >= least * often[w]:
            entries[words[w]].append(text.names[tag])
    return entries


def small_ways(start: Start) -> dict[str, dict[str, Any]]:
    """Settings of each way to learn a small language, by the options of the command line."""
    smoothed: dict[str, Any] = {"smoothing": 0.1}
    featured = {**smoothed, "emissions": "features", "learner": sc.EM(max_iter=10)}
    told = {"dictionary": start.usual, "open_tags": OPEN_TAGS}
    return {
        "dictionary and ten sentences": {"dictionary": start.usual},
        "and --smoothing .1": {**smoothed, "dictionary": start.usual},
        "and --open-tags": {**smoothed, **told},
        "and --lowercase": {**smoothed, **told, "lowercase": True},
        "not --lowercase, but --emissions features --max-iter 10": {**featured, **told},
        "the same, but every tag of each word": {**featured, **told, "dictionary": start.every},
        "ten sentences alone, --smoothing .1": smoothed,
        "and --emissions features --max-iter 10": featured,
    }


def small(text: Tagged) -> dict[str, dict[str, float]]:
    """Means over draws of accuracy on the raw sentences."""
    reached: dict[str, list[float]] = {}
    for seed in range(DRAWS):
        tell(f"small language, draw {seed}")
        start = drawn(text, seed)
        raw, right = start.raw.sequences, gold(start.raw)
        words = [raw.sentence(n) for n in range(len(raw))]
        answers: dict[str, Any] = {
            "looked up: the first tag, else NOUN": [
                [start.usual.get(word, ["NOUN"])[0] for word in some] for some in words
            ]
        }
        for name, settings in small_ways(start).items():
            model = sc.HMM(**settings).fit(start.text.sequences, start.tags)
            answers[name] = model.predict(raw)
        for name, states in answers.items():
            reached.setdefault(name, []).append(tag_scores(states, right).accuracy)
        covered = [word in start.usual for some in words for word in some]
        reached.setdefault("share of words in the dictionary", []).append(float(np.mean(covered)))
        for name, entries in (("usual tags", start.usual), ("every tag", start.every)):
            many = float(np.mean([*map(len, entries.values())]))
            reached.setdefault(f"tags of a word in the dictionary, {name}", []).append(many)
    return {name: {"mean": np.mean(of), "±": np.std(of)} for name, of in reached.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args()
    parts = [options.only] if options.only else PARTS
    tables = {}
    if {*parts} != {"small"}:
        for name, corpus, n_states in (("EWT", ewt(), 17), ("WSJ", wsj(), 45)):
            if "induction" in parts:
                tables[f"{name}, {n_states} states"] = induction(corpus, n_states, options.starts)
            if "dictionary" in parts:
                tables[f"{name}, new text"] = with_dictionary(corpus)
            if "curve" in parts:
                tables[f"{name}, few tags"] = curve(corpus)
    if "small" in parts:
        tables["EWT, a small language"] = small(ewt(lowercase=False).train)
    if options.json:
        print(json.dumps(tables))
        return
    for title, table in tables.items():
        show(title, table, 3)


if __name__ == "__main__":
    main()
