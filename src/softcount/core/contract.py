"""scikit-learn's contract: parameters, `clone`, tags, metadata routing, outputs as data frames.

Estimators do not inherit from scikit-learn's classes, as importing these takes longer than many
fits. Whatever only scikit-learn asks for (tags, routing, pages for notebooks) is borrowed, when it
is asked for, from a twin: a class of scikit-learn's with the same methods.
"""

from __future__ import annotations

import inspect
import sys
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import wraps
from typing import Any, ClassVar, ParamSpec, Self

from softcount.core.errors import ParameterError, brief
from softcount.core.types import Array

P = ParamSpec("P")

# Names that other libraries (or older versions) use for our parameters.

OTHER_NAMES: dict[str, tuple[str, ...]] = {
    theirs: ours
    for ours, names in {
        ("n_components", "n_states", "n_topics", "n_senses", "n_clusters"): (
            "n_clusters n_topics n_states n_classes n_senses n_mixtures num_topics num_states "
            "num_clusters k K n_hidden n_symbols n_nonterminals"
        ),
        ("max_iter",): (
            "n_iter num_iter iterations n_iterations max_iterations epochs max_epochs n_epochs "
            "passes sweeps rounds max_rounds steps"
        ),
        ("n_init",): "chains n_chains n_restarts restarts n_starts",
        ("tol",): "tolerance eps epsilon thresh",
        ("random_state",): "seed random_seed rng",
        ("smoothing", "prior", "concentration"): (
            "alpha doc_topic_prior doc_prior pseudocount laplace"
        ),
        ("smoothing", "prior"): "beta eta topic_word_prior word_prior",
        ("concentration",): "weight_concentration_prior",
        ("engine",): "n_jobs n_threads num_threads threads workers",
        ("init",): "init_params start weights_init means_init",
        ("l2",): "regularisation regularization C penalty",
        ("short_runs",): "scouts",
        ("covariance",): "covariance_type",
        ("floor",): "reg_covar",
        ("learner",): "algorithm method",
        ("dates",): "times",
        ("seed_words",): "seeds",
        ("frozen_topics",): "frozen",
    }.items()
    for theirs in names.split()
}
"""Our names by theirs, for hints: the first one that the estimator has is suggested."""

HINTS = {"engine": "engine=Local(threads=4) uses four threads; by default all processors are used"}


class _Borrowed:
    """A method of scikit-learn's, looked up in the twin of a class when it is asked for.

    ``doc``  what it is
    """

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type[SklearnContract]) -> Any:
        twin = _twin_of(owner)
        if instance is None:
            return getattr(twin, self._name)
        other = twin.__new__(twin)
        other.__dict__ = instance.__dict__  # what the method notes is noted of the instance
        method = getattr(other, self._name)

        @wraps(method)
        def borrowed(*args: Any, **options: Any) -> Any:
            found = method(*args, **options)
            return instance if found is other else found

        return borrowed


_TWINS: dict[type, Any] = {}


def _twin_of(cls: type[SklearnContract]) -> Any:
    """Return a class of scikit-learn's that has the same methods as an estimator's class."""
    if cls not in _TWINS:
        from sklearn import base  # whoever asks has imported it already

        methods = {name: getattr(cls, name) for name in _METHODS if hasattr(cls, name)}
        for base_class in reversed(cls.__mro__):  # what is routed by default
            requests = vars(base_class).items()
            methods |= {name: value for name, value in requests if "__metadata_request__" in name}
        mixins = (getattr(base, name) for name in cls._mixins)
        _TWINS[cls] = type(cls.__name__, (*mixins, base.BaseEstimator), methods)
    return _TWINS[cls]


_METHODS = (
    "fit",
    "partial_fit",
    "predict",
    "predict_proba",
    "transform",
    "score",
    "get_feature_names_out",
)
"""Methods that scikit-learn looks at."""


class SklearnContract:
    """The interface that scikit-learn requires of an estimator.

    Parameters are the arguments of ``__init__``, which stores them unchanged; those of a dataclass
    are its fields. So `clone`, pipelines and searches work, including ``learner__max_iter``.
    """

    _mixins: ClassVar[tuple[str, ...]] = ()
    """The mixins of `sklearn.base` whose tags it has: "ClusterMixin", "TransformerMixin", …"""

    def __new__(cls, *args: Any, **given: Any) -> Self:
        for name in given:
            if name not in cls._get_param_names():
                raise _unknown_parameter(cls, name)
        return super().__new__(cls)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return the parameter names, under the method name that scikit-learn expects."""
        names = inspect.signature(cls.__init__).parameters
        return sorted(name for name in names if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; ``deep``: including the parameters of parameters."""
        params = {name: getattr(self, name) for name in self._get_param_names()}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    inner = value.get_params()
                    params |= {f"{name}__{each}": values for each, values in inner.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; what was learned is kept until the next fit."""
        nested: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for path, value in params.items():
            name, inside, rest = path.partition("__")
            if name not in self._get_param_names():
                raise _unknown_parameter(type(self), name)
            if inside:
                nested[name][rest] = value
            else:
                setattr(self, name, value)
        for name, given in nested.items():
            self._set_nested(name, given)
        return self

    def _set_nested(self, name: str, given: Mapping[str, Any]) -> None:
        """Set parameters of a parameter."""
        inner = getattr(self, name)
        if not hasattr(inner, "set_params"):
            raise ParameterError(f"{name}={brief(inner)} has no parameters of its own")
        # use the return value: a learner is immutable, and its set_params returns a new one
        setattr(self, name, inner.set_params(**given))

    def _unfitted(self) -> Self:
        """Return a copy with the same parameters that is not fitted, as scikit-learn's `clone`."""
        params = self.get_params(deep=False)
        return type(self)(**{name: _copy_unfitted(value) for name, value in params.items()})

    def __repr__(self) -> str:
        declared = inspect.signature(type(self).__init__).parameters
        given = [
            f"{name}={self._show(value)}"
            for name, value in self.get_params(deep=False).items()
            if not _is_same(value, declared[name].default)
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def _show(self, value: Any) -> str:
        """Return how a parameter's value is shown."""
        return repr(value)

    def _repr_html_(self) -> str:
        """Return how a notebook shows it."""
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))

    # borrowed from scikit-learn
    def __sklearn_tags__(self) -> Any:
        """Return the tags that scikit-learn's pipelines and searches ask for."""
        return _twin_of(type(self))().__sklearn_tags__()

    get_metadata_routing = _Borrowed("How a pipeline or search routes sample weights and the like.")
    set_fit_request = _Borrowed("Request arguments of `fit`, as in scikit-learn.")
    set_partial_fit_request = _Borrowed("Request arguments of `partial_fit`, as in scikit-learn.")
    set_predict_request = _Borrowed("Request arguments of `predict`, as in scikit-learn.")
    set_predict_proba_request = _Borrowed("Request arguments of `predict_proba`, likewise.")
    set_transform_request = _Borrowed("Request arguments of `transform`, as in scikit-learn.")
    set_score_request = _Borrowed("Request arguments of `score`, as in scikit-learn.")


def _copy_unfitted(value: Any) -> Any:
    if isinstance(value, SklearnContract):
        return value._unfitted()
    if "sklearn" not in sys.modules:  # so it is none of its estimators
        return deepcopy(value)
    from sklearn.base import clone

    return clone(value, safe=False)


def require_fitted(model: object, attribute: str = "") -> None:
    """Raise scikit-learn's error unless the model has learned this attribute, or any."""
    learned = [attribute] if attribute else [n for n in vars(model) if n.endswith("_")]
    if not any(name in vars(model) for name in learned):
        from sklearn.exceptions import NotFittedError  # imported only when it is needed

        raise NotFittedError(f"this {type(model).__name__} has not been fitted: call fit first")


def _unknown_parameter(cls: type[SklearnContract], name: str) -> ParameterError:
    """Make the error; its hint gives our name of the parameter, if there is one."""
    known = cls._get_param_names()
    ours = next((each for each in OTHER_NAMES.get(name, ()) if each in known), None)
    if ours is None:
        hint = f"its parameters are {', '.join(known)}"
    else:
        hint = HINTS.get(ours, f"it is called {ours} here")
    return ParameterError(f"{cls.__name__} has no parameter {name!r}", hint)


def _is_same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    try:
        return type(value) is type(default) and bool(value == default)
    except (TypeError, ValueError):  # arrays compare elementwise
        return False


def as_configured(transform: Callable[P, Any]) -> Callable[P, Any]:
    """Decorate `transform` and `fit_transform`: a data frame is returned if one was asked for.

    By `Transformer.set_output`, or by `sklearn.set_config(transform_output=…)`.
    """

    @wraps(transform)
    def configured(*args: P.args, **options: P.kwargs) -> Any:
        found = transform(*args, **options)
        if "sklearn" not in sys.modules:  # so nothing was asked for
            return found
        from sklearn.utils._set_output import _wrap_data_with_container

        model, X = args[:2] if len(args) > 1 else (args[0], options.get("X"))
        return _wrap_data_with_container("transform", found, X, model)

    return configured


class Transformer(SklearnContract):
    """What scikit-learn requires of a transformer; its methods are decorated by `as_configured`."""

    _mixins: ClassVar[tuple[str, ...]] = ("TransformerMixin",)
    _sklearn_auto_wrap_output_keys: ClassVar[set[str]] = {"transform"}

    set_output = _Borrowed("Set the container of what `transform` returns, as in scikit-learn.")


class NumberedOutputs(Transformer):
    """A transformer whose outputs are called by its own name and a number: lda0, lda1, …"""

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """The number of columns that `transform` returns."""

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that `transform` returns."""
        import numpy as np

        name = type(self).__name__.lower()
        return np.asarray([f"{name}{n}" for n in range(self._n_features_out)], dtype=object)
