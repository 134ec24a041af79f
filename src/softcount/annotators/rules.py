"""Labelling rules: annotators that are functions of a text, and mostly silent."""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.annotators.data import Votes, is_missing, read_votes
from softcount.core.errors import DataError, brief
from softcount.core.types import FloatArray, IntArray
from softcount.mixture.data import UNKNOWN

if TYPE_CHECKING:
    from softcount.annotators.estimators import Annotators


class MajorityWarning(UserWarning):
    """The votes of the majority are as good as what the model makes of them."""


LEAST_GAIN = 0.01
"""The majority does as well if its labels are expected to be right of at most this less items."""
DOUBTFUL = 5
"""How many votes that are probably wrong are kept for each rule."""
CODE = ".py"
"""What the name of a file of rules ends in if it is code, to be run."""


@dataclass(frozen=True)
class Pattern:
    """A rule that votes for one label where a regular expression is found; capitals do not matter.

    >>> Pattern("spam", r"win \\w+ money")("You WIN big money now"), Pattern("spam", "win")("no")
    ('spam', None)
    """

    label: str
    regex: str
    _compiled: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            compiled = re.compile(self.regex, re.IGNORECASE)
        except re.error as error:
            raise DataError(
                f"{brief(self.regex)} is no regular expression: {error}",
                "write it as Python's re does; a literal bracket is \\(",
            ) from error
        object.__setattr__(self, "_compiled", compiled)

    def __call__(self, text: str) -> str | None:
        return self.label if self._compiled.search(text) else None

    @property
    def name(self) -> str:
        """How the rule is called in tables."""
        return f"{self.label}: {self.regex}"


Rule = Callable[[Any], Any]


def load_rules(path: str | PathLike[str]) -> dict[str, Rule]:
    """Read rules from a file: functions of a Python file, or patterns of any other.

    A file whose name ends in .py is **run**; its rules are the functions defined in it whose names
    do not begin with an underscore, in order. In any other file each line is a label, a tab, and a
    regular expression; blank lines and lines that begin with # are left out.
    """
    source = Path(path)
    if not source.is_file():
        raise DataError(f"{path}: there is no such file", "give a file of rules")
    return _run_rules(source) if source.suffix == CODE else _read_patterns(source)


def _run_rules(path: Path) -> dict[str, Rule]:
    spec = importlib.util.spec_from_file_location(f"rules_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))  # as `python RULES.py` does
    spec.loader.exec_module(module)
    rules = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and callable(value)
        and not isinstance(value, type)
        and getattr(value, "__module__", None) == module.__name__
    }
    if not rules:
        raise DataError(
            f"{path}: there is no rule in this file",
            "define functions of a text that return a label, or None",
        )
    return rules


def _read_patterns(path: Path) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    lines = path.read_text(encoding="utf-8").split("\n")  # splitlines would split at more
    for number, line in enumerate((line.removesuffix("\r") for line in lines), 1):
        if not line.strip() or line.startswith("#"):
            continue
        label, tab, regex = line.partition("\t")
        if not tab or not label.strip() or not regex:
            raise DataError(
                f"{path}:{number}: not a rule", "write a label, a tab, and a regular expression"
            )
        try:
            rule = Pattern(label.strip(), regex)
        except DataError as error:
            raise DataError(f"{path}:{number}: {error.args[0]}", error.hint) from error
        if rule.name in rules:
            raise DataError(f"{path}:{number}: this rule is here twice", "write it once")
        rules[rule.name] = rule
    if not rules:
        raise DataError(f"{path}: there is no rule", "write a label, a tab, a regular expression")
    return rules


def apply_rules(
    rules: Mapping[str, Rule] | Iterable[Rule],
    items: Sequence[Any],
    names: Sequence[Any] | None = None,
) -> Votes:
    """Return the votes of rules on items, for `Annotators`.

    ``rules``  functions of an item: a label, a set of labels of which one is meant, or None (or −1)
               for no vote; a mapping from names to functions, or the functions themselves
    ``items``  texts, or whatever the rules take
    ``names``  names of the items; by default their numbers

    Rules that never vote are annotators all the same.

    >>> def is_question(text):
    ...     return "question" if "?" in text else None
    >>> votes = apply_rules([is_question, Pattern("thanks", "thank")], ["Why?", "Thank you", "Oh"])
    >>> votes.annotators, votes.items, votes.of_item.tolist()
    (['is_question', 'thanks: thank'], [0, 1, 2], [0, 1])
    """
    if isinstance(rules, Mapping):
        named = dict(rules)
    else:
        listed = list(rules)
        named = {_name_rule(rule): rule for rule in listed}
        if len(named) < len(listed):
            raise DataError("two rules have the same name", "give a mapping from names to rules")
    array = np.empty((len(items), len(named)), dtype=object)
    for column, (name, rule) in enumerate(named.items()):
        for row, item in enumerate(items):
            try:
                vote = rule(item)
            except Exception as error:
                raise DataError(
                    f"the rule {name} failed at item {row}: {type(error).__name__}: {error}",
                    "a rule returns a label, or None where it has none",
                ) from error
            array[row, column] = UNKNOWN if vote is None else vote
    votes = read_votes(array, list(named))
    if names is not None:
        votes.items[:] = list(names)
    return votes


def _name_rule(rule: Rule) -> str:
    name = rule.name if isinstance(rule, Pattern) else getattr(rule, "__name__", None)
    return str(name if name is not None else rule)


@dataclass(frozen=True)
class RuleSummary:
    """How a rule does.

    ``coverage``  share of items that it votes on
    ``overlap``   share of items that it and another rule vote on
    ``conflict``  share of items on which another rule votes for other labels than it does
    ``accuracy``  expected share of its votes that are right, by the model
    ``right``     the same by gold labels; NaN without
    ``n_wrong``   number of its votes that are more probably wrong than right
    ``doubtful``  of these the most probably wrong: item, vote, the most probable label, and the
                  probability that the vote is wrong
    """

    name: str
    coverage: float
    overlap: float
    conflict: float
    accuracy: float
    right: float
    n_wrong: int
    doubtful: Sequence[tuple[Any, Any, Any, float]]


@dataclass(frozen=True)
class RulesSummary:
    """How all rules do, and whether it pays to model them.

    ``covered``   share of items that some rule votes on
    ``model``     expected share of these whose label is right, by the model's own posteriors
    ``majority``  the same of the labels of the majority; ties are broken at random
    ``gold``      shares of right labels by gold labels, "model" and "majority"; empty without
    """

    rules: Sequence[RuleSummary]
    covered: float
    model: float
    majority: float
    gold: Mapping[str, float]

    @property
    def advice(self) -> str:
        """A sentence if the majority does as well as the model, else empty."""
        if self.model - self.majority > LEAST_GAIN:
            return ""
        return (
            f"majority voting does as well: by the model's own account its labels are right of "
            f"{self.model:.1%} of the items with votes, those of the majority of "
            f"{self.majority:.1%}"
        )


def summarise_rules(
    model: Annotators, votes: Any, *, texts: Any = None, gold: Any = None
) -> RulesSummary:
    """Summarise coverage, overlap, conflict and accuracy of rules, or of other annotators.

    Warns (`MajorityWarning`) if a majority vote does as well as the model.

    ``votes, texts``  what the model was fitted to, or more
    ``gold``          true labels, for the accuracy: one for each item (−1 or None: unknown), or a
                      mapping {item: label}
    """
    read = read_votes(votes, model.annotators_.tolist())
    if isinstance(texts, Mapping):
        read = read.with_items(texts)
    posteriors = model.predict_proba(read, texts=texts)
    names = model.classes_.tolist()
    n, K = len(read.items), len(names)
    given = list(gold.tolist() if hasattr(gold, "tolist") else gold) if gold is not None else None
    if isinstance(gold, Mapping):
        given = [gold.get(item) for item in read.items]
    labels = _labels_of_votes(read, names)
    members = labels[read.of_label]  # (votes, labels)
    totals = np.zeros((n, K))
    np.add.at(totals, read.of_item, members / np.maximum(members.sum(axis=1, keepdims=True), 1.0))
    wrong = 1.0 - (members * posteriors[read.of_item]).sum(axis=1)
    of_rules = [
        _summarise_rule(a, read, members, wrong, posteriors, names, given)
        for a in range(len(read.annotators))
    ]
    some = np.flatnonzero(totals.any(axis=1))
    best = totals[some] == totals[some].max(axis=1, keepdims=True)
    majority = (best * posteriors[some]).sum(axis=1) / best.sum(axis=1)
    found = RulesSummary(
        of_rules,
        len(some) / max(n, 1),
        float(posteriors[some].max(axis=1).mean()),
        float(majority.mean()),
        _compare_with_gold(given, posteriors, best, some, names),
    )
    if found.advice:
        warnings.warn(found.advice, MajorityWarning, stacklevel=2)
    return found


def _labels_of_votes(read: Votes, names: list[Any]) -> FloatArray:
    """Return which labels of the model each different vote is for, (different votes, labels)."""
    labels = np.zeros((len(read.labels), len(names)))
    for row, label in zip(labels, read.labels, strict=True):
        members = label if isinstance(label, frozenset) else (label,)
        for member in members:
            if member in names:
                row[names.index(member)] = 1.0
    return labels


def _summarise_rule(
    a: int,
    read: Votes,
    members: FloatArray,
    wrong: FloatArray,
    posteriors: FloatArray,
    names: list[Any],
    gold: list[Any] | None,
) -> RuleSummary:
    n = max(len(read.items), 1)
    own = np.flatnonzero(read.by_annotator == a)
    others = np.flatnonzero(read.by_annotator != a)
    by_others = np.zeros(len(read.items), np.bool_)
    by_others[read.of_item[others]] = True
    items = read.of_item[own]
    mine = np.zeros((len(read.items), len(names)))
    mine[items] = members[own]
    elsewhere = (members[others] * mine[read.of_item[others]]).sum(axis=1) == 0.0
    contradicted = np.zeros(len(read.items), np.bool_)
    contradicted[read.of_item[others[elsewhere]]] = True
    right = np.nan
    if gold is not None:
        known = [
            bool(members[v, names.index(gold[read.of_item[v]])])
            if gold[read.of_item[v]] in names
            else False
            for v in own
            if not is_missing(gold[read.of_item[v]])
        ]
        right = float(np.mean(known)) if known else np.nan
    order = own[np.argsort(-wrong[own], kind="stable")]
    order = order[wrong[order] > 0.5]
    doubtful = [
        (
            read.items[read.of_item[v]],
            read.labels[read.of_label[v]],
            names[int(posteriors[read.of_item[v]].argmax())],
            float(wrong[v]),
        )
        for v in order[:DOUBTFUL].tolist()
    ]
    covered = np.unique(items)
    return RuleSummary(
        str(read.annotators[a]),
        len(covered) / n,
        int(by_others[covered].sum()) / n,
        int(contradicted[covered].sum()) / n,
        float(1.0 - wrong[own].mean()) if len(own) else np.nan,
        right,
        len(order),
        doubtful,
    )


def _compare_with_gold(
    gold: list[Any] | None,
    posteriors: FloatArray,
    best: FloatArray,
    some: IntArray,
    names: list[Any],
) -> dict[str, float]:
    """Return the accuracies of model and majority on items with votes whose label is known."""
    if gold is None:
        return {}
    by_model, by_majority = [], []
    for row, item in enumerate(some.tolist()):
        if is_missing(gold[item]):
            continue
        k = names.index(gold[item]) if gold[item] in names else None
        by_model.append(int(posteriors[item].argmax()) == k)
        by_majority.append(0.0 if k is None else float(best[row, k] / best[row].sum()))
    if not by_model:
        return {}
    return {"model": float(np.mean(by_model)), "majority": float(np.mean(by_majority))}
