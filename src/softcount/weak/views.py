"""Views: from items as users give them to one matrix for each way to look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array

from softcount.bounds import within_range
from softcount.errors import DataError, LearnerError, shown
from softcount.types import Array
from softcount.weak.named_views import NAMED
from softcount.weak.reader import Reader, demand_names, names_in

View = str | slice | Sequence[int] | Array | Callable[[Any], Any]


class Views:
    """Some views of the same items, learned once and read the same way ever after.

    ``given``        each view: columns of one matrix (a slice, or their numbers), a name, or a
                     function of an item; in a mapping, under names of their own
    ``vectorizer``   what counts the words of texts: one for all views, or a mapping; None: as
                     everywhere

    ``n_columns`` is that of the one matrix of which views are columns, after `learn`.
    """

    def __init__(self, given: Any, vectorizer: Any = None) -> None:
        self._views = named_views(given)
        chosen = each_of(self.names, vectorizer, "vectorizer")
        self._readers = {name: Reader(one) for name, one in chosen.items()}
        self.n_columns: int | None = None
        self._column_names: list[Any] | None = None

    @property
    def names(self) -> list[str]:
        return list(self._views)

    def learn(self, X: Any) -> list[Any]:
        """The matrices of the items; their words and columns are what is expected of others."""
        return self._matrices(X, first=True)

    def read(self, X: Any) -> list[Any]:
        """The matrices of other items."""
        return self._matrices(X, first=False)

    @property
    def readers(self) -> dict[str, Reader]:
        """How each view reads its part of an item."""
        return self._readers

    def _matrices(self, X: Any, *, first: bool) -> list[Any]:
        if hasattr(X, "__array__") and not hasattr(X, "ndim"):
            X = np.asarray(X)
        columns = _is_matrix(X, self._views)
        if columns:
            X = self._whole(X, first=first)
        parts = _columns(X, self._views) if columns else _parts(X, self._views)
        found = []
        for name, part in zip(self._views, parts, strict=True):
            reader = self._readers[name]
            try:
                found.append(reader.learn(part) if first else reader.read(part))
            except DataError as error:
                raise DataError(f"the view {name!r}: {error.message}", error.hint) from error
            if found[-1].shape[0] != found[0].shape[0]:
                raise DataError(
                    f"inconsistent numbers of samples: the view {name!r} has "
                    f"{found[-1].shape[0]} items, while {self.names[0]!r} has {found[0].shape[0]}",
                    "give the same items, in the same order, in every view",
                )
        return found

    def _whole(self, X: Any, *, first: bool) -> Any:
        """The one matrix of which views are columns."""
        if not first:
            demand_names(self._column_names, names_in(X))
        with within_range("the data"):
            matrix = check_array(X, accept_sparse="csr", dtype=np.float64)
        if first:
            self.n_columns, self._column_names = matrix.shape[1], names_in(X)
        elif self.n_columns is not None and matrix.shape[1] != self.n_columns:
            raise DataError(
                f"X has {matrix.shape[1]} features, but CoTraining is expecting {self.n_columns} "
                "features as input",
                "give the same columns as in fit",
            )
        return matrix


def named_views(given: Any) -> dict[str, View]:
    """Every view under a name: its own, its function's, or its number.

    >>> list(named_views(["subject", len, slice(0, 9)]))
    ['subject', 'len', 'view 3']
    """
    if isinstance(given, Mapping):
        views = {str(name): view for name, view in given.items()}
    elif isinstance(given, Iterable) and not isinstance(given, str):
        listed = list(given)
        names = [_name(number, view) for number, view in enumerate(listed, 1)]
        views = dict(zip(names, listed, strict=True))
        if len(views) < len(listed):
            raise LearnerError(
                f"views={shown(given)}: several have the same name",
                "give a mapping, with a name of its own for every view",
            )
    else:
        views = {}
    if len(views) < 2:
        raise LearnerError(
            f"views={shown(given)}: there must be two or more",
            "give slices or arrays of columns, names, or functions of an item",
        )
    return views


def each_of(names: Sequence[str], given: Any, what: str) -> dict[str, Any]:
    """The same for every view, or what a mapping gives each of them."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    if set(given) != set(names):
        raise LearnerError(
            f"{what} is given for {shown(list(given))}, while the views are {shown(list(names))}",
            f"give one {what} for all views, or one for each",
        )
    return {name: given[name] for name in names}


def _name(number: int, view: View) -> str:
    if isinstance(view, str):
        return view
    return getattr(view, "__name__", f"view {number}")


def _parts(X: Any, views: Mapping[str, View]) -> list[Any]:
    """What each view sees of the items."""
    if isinstance(X, str | bytes):
        raise DataError(f"the data are one text: {shown(X)}", "give a list of items")
    if isinstance(X, Mapping) or hasattr(X, "columns"):
        return [_column(X, view, name) for name, view in views.items()]
    if _is_separate(X):
        return _in_order(X, views)
    if not isinstance(X, Iterable) or getattr(X, "ndim", 1) != 1:
        raise DataError(
            f"cannot read items from {shown(X)}",
            "Reshape your data: a matrix (one row an item), a list or mapping of matrices, or a "
            "list of raw items",
        )
    items = list(X)
    if not items:
        raise DataError("there are no items", "give at least one")
    return [_looked_at(items, view, name) for name, view in views.items()]


def _all_names(views: Mapping[str, View]) -> bool:
    return all(isinstance(view, str) for view in views.values())


def _is_matrix(X: Any, views: Mapping[str, View]) -> bool:
    """Whether this is one matrix, and no data frame whose columns have the names of views."""
    named = hasattr(X, "columns") and _all_names(views)
    return not named and (getattr(X, "ndim", 1) == 2 or _is_table(X))


def _is_separate(X: Any) -> bool:
    """Whether these are matrices, one a view."""
    return isinstance(X, list | tuple) and bool(X) and all(getattr(x, "ndim", 1) == 2 for x in X)


def _is_table(X: Any) -> bool:
    """Whether this is a list of rows of numbers."""
    if not isinstance(X, list | tuple) or not X:
        return False
    try:
        return np.asarray(X[0], dtype=np.float64).ndim == 1
    except (TypeError, ValueError):
        return False


def _column(X: Any, view: View, name: str) -> Any:
    """A part of data that come in parts with names."""
    if not isinstance(view, str):
        raise DataError(
            f"the data have parts with names, and the view {name!r} is {shown(view)}",
            "give the name of the part",
        )
    if view not in X:
        raise DataError(f"the data have no {view!r}", f"they have {', '.join(map(str, X))}")
    part = X[view]
    if hasattr(part, "to_numpy"):  # a column of a data frame
        part = part.to_numpy()
        return part.tolist() if part.dtype.kind in "OUT" else part.reshape(len(part), -1)
    return part


def _in_order(X: Sequence[Any], views: Mapping[str, View]) -> list[Any]:
    if len(X) != len(views) or not _all_names(views):
        raise DataError(
            f"{len(X)} matrices for the views {shown(list(views.values()))}",
            "give one name for each matrix, in their order",
        )
    return list(X)


def _columns(matrix: Any, views: Mapping[str, View]) -> list[Any]:
    """Columns of one matrix."""
    found = []
    for name, view in views.items():
        if isinstance(view, str) or callable(view):
            raise DataError(
                f"the data are one matrix, and the view {name!r} is {shown(view)}",
                "give its columns: a slice such as slice(0, 100), or their numbers",
            )
        columns = view if isinstance(view, slice) else np.atleast_1d(view)
        try:
            part = matrix[:, columns]
        except IndexError as error:
            raise DataError(f"the view {name!r}: {error}", "number columns from 0") from error
        if part.shape[1] == 0:
            raise DataError(
                f"the view {name!r} has no columns: the matrix has {matrix.shape[1]} feature(s)",
                "give columns that there are",
            )
        found.append(part)
    return found


def _looked_at(items: Sequence[Any], view: View, name: str) -> list[Any]:
    """What a function, or a key, makes of raw items."""
    if callable(view):
        return [view(item) for item in items]
    if not isinstance(view, str):
        raise DataError(
            f"the view {name!r} is {shown(view)}, while the data are no matrix",
            "columns are those of a matrix (Reshape your data?); of other items give a name or a "
            "function",
        )
    if all(isinstance(item, Mapping) for item in items):
        if not any(view in item for item in items):
            raise DataError(
                f"no item has a {view!r}", f"the first has {', '.join(map(str, items[0]))}"
            )
        said = [item.get(view) for item in items]
        empty: Any = [] if any(isinstance(one, list) for one in said) else ""
        return [empty if one is None else one for one in said]
    if view not in NAMED:
        raise DataError(
            f"no view is known by the name {view!r}",
            f"give one of {', '.join(NAMED)}, a function, or items that are mappings",
        )
    return [NAMED[view](item) for item in items]
