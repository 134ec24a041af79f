"""Labelling rules: annotators that are functions of a text, and mostly silent."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from softcount.annotators.data import Votes, read_votes
from softcount.core.errors import DataError, brief
from softcount.mixture.data import UNKNOWN

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
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
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
