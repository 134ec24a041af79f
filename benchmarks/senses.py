"""Senses found without labels, beside senses that people gave.

Five words: line, hard, serve, interest (the Senseval-2 lexical sample files; as many found senses
as gold ones) and the verb say of SemCor. For each the mean over several seeds of V-measure and of
many-to-one accuracy, for the two kinds of `SenseInducer`; the majority baseline is what calling
every occurrence by the most frequent sense would reach. Last the mean over words of SemEval-2010
task 14, on which only the window was looked at before the settings were chosen.

    python benchmarks/senses.py [--seeds 5] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict

import numpy as np
from _corpora import Context, lines, semcor_contexts, senseval2

import softcount as sc

SVD = 100
KINDS = {
    "multinomial": {},
    f"SVD-{SVD} + Gaussian": {"svd": SVD},
    "multinomial, no places": {"near": 0},
    "multinomial, one start": {"short_runs": 0},
}
OTHERS = {"serve": (0.348, 0.346), "line": (0.187, 0.186)}
OTHERS |= {"interest": (0.137, 0.220), "hard": (0.034, 0.011)}
"""V-measure of a plain EM and a plain k-means on the same files, measured before this library."""

Row = dict[str, float | str]


def words() -> dict[str, list[Context]]:
    found = {word: senseval2(word) for word in ("line", "hard", "serve", "interest")}
    return {**found, "say": semcor_contexts("say", "VB")}


def measure(word: str, contexts: list[Context], kind: str, seeds: int) -> Row:
    sentences = [context.tokens for context in contexts]
    positions = [context.position for context in contexts]
    gold = [context.sense for context in contexts]
    began = time.process_time()
    figures = []
    for seed in range(seeds):
        model = sc.SenseInducer(len(set(gold)), random_state=seed, **KINDS[kind])
        figures.append(
            sc.metrics.agreement(model.fit_predict(sentences, positions=positions), gold)
        )
    v = np.array([figure.v_measure for figure in figures])
    return {
        "word": word,
        "kind": kind,
        "V": float(v.mean()),
        "V spread": float(v.std()),
        "many-to-one": float(np.mean([figure.many_to_one for figure in figures])),
        "majority": Counter(gold).most_common(1)[0][1] / len(gold),
        "CPU s a fit": (time.process_time() - began) / seeds,
    }


def semeval_words(least: int = 100) -> dict[str, list[Context]]:
    """SemEval-2010's words with so many contexts in which the word can be found, by its stem."""
    found: dict[str, list[Context]] = defaultdict(list)
    for line in lines("semeval2010_task14/test.tsv.gz"):
        word, _, sense, *parts = line.split("\t")
        left, middle, right = (part.split() for part in parts)
        lemma = word.split(".")[0]
        stem = lemma[: max(3, len(lemma) - 2)]
        places = [i for i, token in enumerate(middle) if token.lower().startswith(stem)]
        if len(places) == 1:
            found[word].append(Context(left + middle + right, len(left) + places[0], sense))
    return {
        word: contexts
        for word, contexts in found.items()
        if len(contexts) >= least and len({context.sense for context in contexts}) > 1
    }


def mean(rows: list[Row]) -> Row:
    """The mean over words; the spread is that of the words."""
    name = f"{len(rows)} words"
    numbers = [key for key, value in rows[0].items() if not isinstance(value, str)]
    figures = {key: float(np.mean([row[key] for row in rows])) for key in numbers}
    figures["V spread"] = float(np.std([row["V"] for row in rows]))
    return {"word": name, "kind": rows[0]["kind"], **figures}


def show(row: Row) -> None:
    known = OTHERS.get(str(row["word"]))
    others = "/".join(f"{v:.3f}" for v in known) if known else "–"
    print(
        f"{row['word']:11}{row['kind']:25}{row['V']:6.3f} ± {row['V spread']:.3f}"
        f"{row['many-to-one']:10.3f}{row['majority']:10.3f}{row['CPU s a fit']:9.1f}   {others}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked = parser.parse_args()
    if not asked.json:
        print(
            f"{'word':11}{'kind':25}{'V-measure':>14}{'m-to-1':>10}{'majority':>10}{'CPU s':>9}",
            end="",
        )
        print("   V of plain EM/k-means")
    rows = []
    for word, contexts in words().items():
        for kind in KINDS:
            rows.append(measure(word, contexts, kind, asked.seeds))
            if not asked.json:
                show(rows[-1])
    semeval = semeval_words()
    for kind in KINDS:
        rows.append(mean([measure(word, found, kind, 1) for word, found in semeval.items()]))
        if not asked.json:
            show(rows[-1])
    if asked.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
