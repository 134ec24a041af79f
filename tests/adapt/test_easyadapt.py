"""Copies of features, as published, and the weights that go with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import softcount as sc
from tests.adapt.problems import two_domains


def published(x: list[float], domain: int, domains: list[int]) -> list[float]:
    """Φ(x) = ⟨x, [d = d₁] x, [d = d₂] x, …⟩."""
    found = list(x)
    for one in domains:
        found += x if one == domain else [0.0] * len(x)
    return found


def test_source_and_target_as_published() -> None:
    """Daumé III (2007), with the target's copy before the source's: Φˢ(x) = ⟨x, 0, x⟩ and
    Φᵗ(x) = ⟨x, x, 0⟩."""
    copies = sc.adapt.FeatureCopies().fit_transform([[1.0, 2.0], [3.0, 4.0]], None, [1, -1])
    assert copies.toarray().tolist() == [[1, 2, 0, 0, 1, 2], [3, 4, 3, 4, 0, 0]]


@given(st.data())
def test_any_domains_as_published(data: st.DataObject) -> None:
    numbers = st.integers(-3, 3).filter(bool)
    learned = data.draw(st.lists(numbers, min_size=1, max_size=6))
    asked = data.draw(st.lists(numbers, min_size=1, max_size=6))
    cell = st.sampled_from([0.0, 1.0, -2.5, 7.0])
    width = data.draw(st.integers(1, 4))
    row = st.lists(cell, min_size=width, max_size=width)
    X = data.draw(st.lists(row, min_size=len(asked), max_size=len(asked)))
    copies = sc.adapt.FeatureCopies().fit(np.ones((len(learned), width)), sample_domain=learned)
    expected = [published(x, d, sorted(set(learned))) for x, d in zip(X, asked, strict=True)]
    for rows in (np.array(X), sparse.csr_matrix(np.array(X))):
        found = copies.transform(rows, asked)
        assert sparse.issparse(found)
        assert found.toarray().tolist() == expected


def test_no_more_is_stored_than_twice_the_words() -> None:
    X = sparse.random(500, 10_000, density=0.002, format="csr", random_state=0)
    copies = sc.adapt.FeatureCopies().fit_transform(X, None, np.where(np.arange(500) % 3, 1, -2))
    assert copies.nnz == 2 * X.nnz
    assert copies.has_canonical_format


@pytest.mark.parametrize("K", [2, 3])
def test_the_same_by_hand(K: int) -> None:
    X, y, domain, _ = two_domains(1, K=K, n_sources=2)
    classifier = LogisticRegression(tol=1e-10, max_iter=10_000)
    model = sc.adapt.EasyAdapt(classifier).fit(X, y, domain)
    rows = np.flatnonzero(y >= 0)
    domains = sorted(set(domain[rows].tolist()))
    copies = np.array([published(X[i].tolist(), int(domain[i]), domains) for i in rows])
    expected = classifier.fit(copies, y[rows])
    for one in (*domains, 9):
        new = np.array([published(x.tolist(), one, domains) for x in X[:20]])
        np.testing.assert_allclose(
            model.predict_proba(X[:20], sample_domain=one), expected.predict_proba(new), atol=1e-7
        )
        scores = np.atleast_2d(X[:20] @ model.word_weights(one).T + expected.intercept_)
        wanted = expected.decision_function(new).reshape(20, -1)
        np.testing.assert_allclose(scores, wanted, atol=1e-6)
    np.testing.assert_array_equal(model.word_weights(), model.word_weights(-1))


def test_an_unseen_domain_has_what_is_known_in_general() -> None:
    texts = ["a good book", "a thin plot", "a thin phone", "a bad phone"]
    model = sc.adapt.EasyAdapt().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    general = model.classifier_.coef_[:, : model.n_features_in_]
    np.testing.assert_array_equal(model.word_weights(7), general)
    two_targets = sc.adapt.EasyAdapt().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -2])
    np.testing.assert_array_equal(
        two_targets.predict_proba(["thin"]), two_targets.predict_proba(["thin"], sample_domain=5)
    )


def test_copies_are_of_domains() -> None:
    with pytest.raises(sc.DataError, match="FeatureCopies needs domains"):
        sc.adapt.FeatureCopies().fit([[1.0]])
    copies = sc.adapt.FeatureCopies().fit([[1.0], [2.0]], sample_domain=[1, -1])
    assert copies.transform([[3.0]]).toarray().tolist() == [[3.0, 0.0, 0.0]]
    with pytest.raises(ValueError, match="features"):
        copies.transform([[3.0, 1.0]], sample_domain=[1])


def test_names_of_copies() -> None:
    copies = sc.adapt.FeatureCopies().fit([[1.0, 2.0], [3.0, 4.0]], sample_domain=[1, -2])
    assert copies.get_feature_names_out(["plot", "pan"]).tolist() == [
        *("plot", "pan", "plot (domain -2)", "pan (domain -2)", "plot (domain 1)", "pan (domain 1)")
    ]
    assert copies.get_feature_names_out()[:3].tolist() == ["x0", "x1", "x0 (domain -2)"]
    # each name is that of the column which the word fills
    row = copies.transform([[5.0, 0.0]], sample_domain=[1]).toarray()[0]
    names = copies.get_feature_names_out(["plot", "pan"])
    assert names[row != 0.0].tolist() == ["plot", "plot (domain 1)"]
    with pytest.raises(sc.DataError, match="1 names for 2 columns"):
        copies.get_feature_names_out(["plot"])
