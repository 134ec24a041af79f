"""Aligners on the Hansards (the 37 trial pairs) and on the Collins corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.metrics import align_scores
from softcount.text.bitext import Bitext
from softcount.text.links import read_links
from tests import real

pytestmark = pytest.mark.slow


def lowered(name: str) -> list[str]:
    return [line.lower() for line in real.lines(name)]


@pytest.fixture(scope="module")
def hansards() -> tuple[Bitext, list[Any]]:
    """The trial pairs, then 10,000 others; and the trial pairs' links."""
    folder = "hansards_wpt03"
    trial = zip(lowered(f"{folder}/trial.en"), lowered(f"{folder}/trial.fr"), strict=True)
    head = [(source.split(), target.split()) for source, target in trial]
    more = real.parallel(f"{folder}/train.36.2.en.gz", f"{folder}/train.36.2.fr.gz", 10_000)
    return sc.text.as_bitext([*head, *more]), read_links(real.lines(f"{folder}/trial.align"))


@pytest.fixture(scope="module")
def collins() -> tuple[Bitext, list[tuple[str, str]], list[Any]]:
    """Training pairs, and those with links."""
    sides = (lowered(f"collins_es_en/train.{side}.gz") for side in ("en", "es"))
    known = [*zip(*(lowered(f"collins_es_en/dev.{side}") for side in ("en", "es")), strict=True)]
    train = sc.text.as_bitext(list(zip(*sides, strict=True)))
    return train, known, read_links(real.lines("collins_es_en/dev.align"))


BOUNDS = [
    (sc.align.IBM1(), {}, 0.43),
    (sc.align.Diagonal(), {}, 0.34),
    (sc.align.HMMAligner(), {}, 0.32),
    (sc.Aligner(), {}, 0.1),
    (sc.Aligner(dtype="float32"), {}, 0.1),
    (sc.Aligner("ibm1"), {}, 0.26),
    (sc.Aligner(agree=False, stem=None), {"method": "grow-diag-final-and"}, 0.23),
    (sc.align.GibbsAligner(), {}, 0.12),
]


@pytest.mark.parametrize(("model", "how", "worst"), BOUNDS, ids=range(len(BOUNDS)))
def test_error_rates(hansards: Any, model: Any, how: dict[str, Any], worst: float) -> None:
    pairs, gold = hansards
    found = model.fit(pairs).align(**how)
    assert len(found) == len(pairs)
    aer = align_scores(found[: len(gold)], gold).aer
    assert aer < worst


@pytest.mark.parametrize(
    "model", [sc.align.IBM1, sc.align.IBM2, sc.align.Diagonal, sc.align.HMMAligner]
)
def test_perplexity_falls(hansards: Any, model: Any) -> None:
    trace = model(learner=sc.EM(max_iter=4, tol=0)).fit(hansards[0]).trace_
    assert (np.diff(trace.perplexity) < 0.0).all()
    assert np.isfinite(trace.entropy).all()
    assert trace.perplexity[-1] < 60


F1 = [
    (sc.align.IBM1(), 0.42),
    (sc.align.IBM2(), 0.45),
    (sc.align.HMMAligner(), 0.57),
    (sc.Aligner(), 0.72),
]


@pytest.mark.parametrize(("model", "least"), F1, ids=range(len(F1)))
def test_collins(collins: Any, model: Any, least: float) -> None:
    train, known, gold = collins
    assert align_scores(model.fit(train).align(known), gold).f1 > least


def test_more_text_helps_and_nothing_is_lost(hansards: Any) -> None:
    """Half of the text, then the other half: nearly as good as all at once."""
    pairs, gold = hansards
    half = len(pairs) // 2
    first, second = pairs.select(np.arange(half)), pairs.select(np.arange(half, len(pairs)))
    trial = pairs.select(np.arange(len(gold)))
    rates = {
        name: align_scores(model.align(trial), gold).aer
        for name, model in {
            "half": sc.Aligner().fit(first),
            "both": sc.Aligner().fit(first).partial_fit(second),
            "whole": sc.Aligner().fit(pairs),
        }.items()
    }
    assert rates["both"] < rates["whole"] + 0.02
    assert rates["both"] < rates["half"] + 0.01
