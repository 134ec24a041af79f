"""Stories on real text: what they learn makes sense."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import softcount as sc
from tests import real
from tests.oracles import stories

pytestmark = pytest.mark.slow


def test_ibm_model_1_translates_common_words():
    pairs = real.parallel("collins_es_en/train.en.gz", "collins_es_en/train.es.gz", 1500)
    pairs = [(e, s) for e, s in pairs if len(e) <= 20 and len(s) <= 20]
    model = sc.StoryModel(
        stories.ibm1_null(sc.table, sc.story), init="uniform", learner=sc.EM(max_iter=8)
    ).fit(pairs)
    assert (np.diff(model.trace_.log_likelihood) > 0).all()
    t = model.params_["t"]
    expected = {"and": "y", "in": "en", "not": "no", "commission": "comisión", "report": "informe"}
    assert {word: next(iter(t[word])) for word in expected} == expected
    assert np.isfinite(model.score(pairs)).all()


def test_tags_from_a_dictionary_beat_the_most_frequent_tag():
    """A story that looks at its words: only the tags that a dictionary allows are yielded."""
    sentences = real.tagged("ud/en_ewt-ud-train.conllu.gz", 1200)
    allowed = defaultdict(set)
    for sentence in sentences:
        for word, tag in sentence:
            allowed[word].add(tag)
    trans, emit = sc.table("trans"), sc.table("emit")

    @sc.story
    def tail(words, i, tag):
        if i == len(words):
            yield trans[tag, "end"]
            return
        for after in sorted(allowed[words[i]]):
            yield trans[tag, after], emit[after, words[i]], tail(words, i + 1, after)

    @sc.story
    def told(words):
        yield tail(words, 0, "start")

    items = [[word for word, _ in sentence] for sentence in sentences]
    model = sc.StoryModel(told, learner=sc.EM(max_iter=15)).fit(items)
    assert (np.diff(model.trace_.log_likelihood) > 0).all()
    right = guessed = ambiguous = 0
    for sentence in sentences[:150]:
        best = [e.key[0] for e in model.best([w for w, _ in sentence]).events if e.table == "emit"]
        for (word, tag), found in zip(sentence, best, strict=True):
            if len(allowed[word]) > 1:
                ambiguous += 1
                right += found == tag
                guessed += 1 / len(allowed[word])
    assert right / ambiguous > guessed / ambiguous + 0.1
