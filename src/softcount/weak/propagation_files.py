"""Propagated labels in files: the items that were learned from, and their shares."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from softcount import store
from softcount._version import __version__
from softcount.errors import DataError, StoreError
from softcount.models.files import guarded, plain_settings, settings_of
from softcount.models.mixture.naive_bayes import read_classes
from softcount.models.stored import AGAIN, numbers, strings
from softcount.types import Array
from softcount.weak import tfidf
from softcount.weak.rows import demand_short

ROWS, SHARES, REACHED, SAYS = "rows", "shares", "reached", "says"
SPARSE = ("rows.indptr", "rows.columns", "rows.values")
AXES, PRIOR, FACTORS = "axes", "prior", "factors"


def signature(model: Any) -> str:
    """How a model came about, in a line."""
    said = [str(model.weights)]
    if model.weights != "precomputed":
        said.append(f"{model.n_neighbors} neighbours")
    if model.svd is not None:
        said.append(f"SVD {model.svd}")
    if model.class_mass:
        said.append("class mass")
    parts = (f"softcount {__version__}", "label propagation", ", ".join(said))
    return " · ".join([*parts, f"tol {model.tol:g}", f"seed {model.random_state}"])


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model."""
    words, facts = tfidf.stored(model.vectorizer_)
    arrays = {
        SHARES: model._harmonic,
        REACHED: model.reached_.astype(np.uint8),
        PRIOR: model.prior_,
        FACTORS: model.factors_,
        **words,
        **_rows_stored(model),
    }
    names = getattr(model, "feature_names_in_", None)
    meta = {
        "settings": plain_settings(model),
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else list(names),
        "classes": model.classes_.tolist(),
        "kind_of_classes": str(model.classes_.dtype),
        "alpha": model.alpha_,
        "has_rows": model._rows is not None,
        "is_sparse": model._rows is not None and sparse.issparse(model._rows.matrix),
        **facts,
    }
    store.write(path, type(model).__name__, arrays, meta, model.signature_)


def _rows_stored(model: Any) -> dict[str, Array]:
    """The rows that new items are compared with; none for a graph."""
    if model._rows is None:
        return {}
    matrix = model._rows.matrix
    arrays = {SAYS: model._says.astype(np.int64)}
    if model.axes_ is not None:
        arrays[AXES] = model.axes_
    if not sparse.issparse(matrix):
        return {**arrays, ROWS: matrix}
    parts = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)
    return {**arrays, **dict(zip(SPARSE, parts, strict=True))}


def restore(cls: Any, stored: store.Stored, given: Mapping[str, Any]) -> Any:
    """A model from a file: whatever is wrong with the file, the answer is a `StoreError`."""
    settings = settings_of(cls, stored, given)
    return guarded(cls, lambda: _restored(cls(**settings), stored, given))


def _restored(model: Any, stored: store.Stored, given: Mapping[str, Any]) -> Any:
    meta = stored.meta
    model._check_settings()
    V = meta["n_features"]
    if not isinstance(V, int) or V < 1:
        raise StoreError(f"{V!r} is no number of columns", AGAIN)
    model.n_features_in_ = V
    names = strings(meta["feature_names"], V, "names of columns")
    if names is not None:
        model.feature_names_in_ = names
    model.classes_ = read_classes(meta["classes"], meta["kind_of_classes"])
    model.vectorizer_ = tfidf.restored(stored, given.get("vectorizer"), V)
    model._harmonic = _shares(numbers(stored, SHARES, (None, len(model.classes_))))
    n = len(model._harmonic)
    reached = numbers(stored, REACHED, (n,))
    model.reached_ = reached == 1.0
    model.prior_ = _shares(numbers(stored, PRIOR, (len(model.classes_),))[None])[0]
    model.factors_ = numbers(stored, FACTORS, (len(model.classes_),))
    sound = model.reached_.any() and (model.reached_ | (reached == 0.0)).all()
    if model.factors_.min() <= 0.0 or not sound:
        raise DataError("classes have no mass, or no item has a label")
    model.transduction_ = model.classes_[model._harmonic.argmax(axis=1)]
    _recall_rows(model, stored, n)
    model.signature_ = stored.signature
    return model


def _recall_rows(model: Any, stored: store.Stored, n: int) -> None:
    meta = stored.meta
    model.axes_ = None if model.svd is None else numbers(stored, AXES, (None, model.n_features_in_))
    model.alpha_ = meta["alpha"]
    if (model.alpha_ is None) != (model.weights != "gaussian"):
        raise DataError("there is an alpha without distances, or distances without")
    if model.alpha_ is not None and not 0.0 < float(model.alpha_) < np.inf:
        raise DataError(f"alpha is {model.alpha_!r}")
    if meta["has_rows"] is not (model.weights != "precomputed"):
        raise DataError("the rows that new items are compared with are not there")
    model._rows = None
    if not meta["has_rows"]:
        if model.n_features_in_ != n:
            raise DataError("the graph is of other items")
        return
    says = numbers(stored, SAYS, (None,))
    model._says = says.astype(np.int64)
    rising = bool((np.diff(model._says) > 0).all()) and bool((model._says == says).all())
    if len(says) and not (rising and model._says[0] >= 0 and model._says[-1] < n):
        raise DataError("numbers of items are out of order")
    width = model.n_features_in_ if model.axes_ is None else len(model.axes_)
    if meta["is_sparse"] is True:
        rows = _sparse_rows(stored, len(says), width)
    else:
        rows = numbers(stored, ROWS, (len(says), width))
    demand_short(rows)
    model._rows = model.searchable(rows)


def _sparse_rows(stored: store.Stored, n: int, width: int) -> Any:
    indptr = numbers(stored, SPARSE[0], (n + 1,))
    columns = numbers(stored, SPARSE[1], (None,))
    values = numbers(stored, SPARSE[2], (len(columns),))
    sound = indptr[0] == 0 and indptr[-1] == len(columns) and (np.diff(indptr) >= 0).all()
    whole = (columns == np.floor(columns)).all() and (indptr == np.floor(indptr)).all()
    if not (sound and whole) or (len(columns) and not 0 <= columns.min() <= columns.max() < width):
        raise DataError("rows of words are out of order")
    parts = (values, columns.astype(np.int32), indptr.astype(np.int64))
    rows = sparse.csr_matrix(parts, shape=(n, width))
    rows.sum_duplicates()
    return rows


def _shares(given: Array) -> Array:
    if not len(given) or given.min() < 0.0 or not np.allclose(given.sum(axis=1), 1.0, atol=1e-6):
        raise DataError("shares of classes do not add up to one")
    return given
