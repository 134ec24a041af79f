"""Label propagation on real papers and posts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from softcount.errors import UnreachedWarning
from softcount.labels import LabelPropagation
from tests import real


@pytest.mark.slow
def test_cora_by_its_citations():
    rows = [line.split("\t") for line in real.lines("planetoid_cora/nodes.tsv.gz")]
    edges = [line.split("\t") for line in real.lines("planetoid_cora/edges.tsv.gz")]
    i, j = np.array(edges, dtype=int).T
    graph = sparse.csr_matrix((np.ones(len(i)), (i, j)), shape=(len(rows), len(rows)))
    gold = np.array([int(row[1]) for row in rows])
    split = np.array([row[2] for row in rows])
    with pytest.warns(UnreachedWarning):  # some papers hang together with no labelled one
        model = LabelPropagation(weights="precomputed").fit(
            graph, np.where(split == "train", gold, -1)
        )
    asked = split == "test"
    assert (model.transduction_[asked] == gold[asked]).mean() > 0.65
    assert model.verdict_.good


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["cosine", "gaussian"])
def test_empty_posts_do_no_harm(weights):
    rows = [line.split("\t") for line in real.lines("20news_bydate/train.tsv.gz")]
    order = np.random.default_rng(0).permutation(len(rows))[:1000]
    texts = [rows[i][2] for i in order]
    gold = np.unique([rows[i][0] for i in order], return_inverse=True)[1]
    shown = np.where(np.arange(1000) < 200, gold, -1)
    model = LabelPropagation(weights=weights).fit(texts, shown)
    plain = (model.transduction_ == gold)[200:].mean()
    with pytest.warns(UnreachedWarning, match="38 items"):
        model.fit([*texts, *[""] * 38], [*shown, *[-1] * 38])
    assert (model.transduction_[:1000] == gold)[200:].mean() > plain - 0.01
    assert plain > 0.4
