"""Seeds: rules that are known beforehand, as users give them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from softcount.errors import DataError, shown
from softcount.models.mixture.labels import UNKNOWN, is_unknown
from softcount.models.settings import check_number
from softcount.types import Array
from softcount.weak.decision_list import SEED_STRENGTH, Rule, Rules

SURE = "give the share of items with this feature that have the label, such as 0.9999"
FORM = "label, feature and perhaps strength, separated by tabs, or by spaces if none has any"


def listed(seeds: Any) -> list[Rule]:
    """Seeds as a list of rules: from a mapping of labels to features, or rules, or nothing.

    >>> listed({"money": ["loan"], "river": ["reed", "mud"]})[1]
    Rule(feature='reed', label='river', strength=0.9999, count=0, total=0)
    """
    if seeds is None:
        return []
    if isinstance(seeds, Mapping):
        seeds = [
            Rule(feature, label) for label, many in seeds.items() for feature in _several(many)
        ]
    rules = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else [seeds]
    for rule in rules:
        if not isinstance(rule, Rule):
            raise DataError(
                f"among the seeds is {shown(rule)}",
                "give a mapping from labels to features, or a list of Rule(feature, label)",
            )
        if is_unknown(rule.label):
            raise DataError(
                f"{shown(rule.label)} is no label, but a seed has it: {shown(rule.feature)}",
                "−1 and None stand for labels that are unknown: give others",
            )
        check_number(f"strength of {shown(rule.feature)}", rule.strength, SURE, above=True)
    return rules


def _several(features: Any) -> Iterable[Any]:
    if isinstance(features, str) or not isinstance(features, Iterable):
        return [features]
    return features


def parse_rules(lines: Iterable[tuple[int, str]], path: str) -> list[Rule]:
    """Rules from numbered lines; blank ones are passed over.

    >>> parse_rules([(1, "L X0_New-York 10000"), (2, "money\\tof the_\\t.9")], "rules.txt")[1]
    Rule(feature='of the_', label='money', strength=0.9, count=0, total=0)
    """
    return [_parsed(line, f"{path}:{number}") for number, line in lines if line.strip()]


def read_rules(path: str | PathLike[str]) -> list[Rule]:
    """Rules from a file, as seeds: a line each, as ``rules_.to_text()`` writes them."""
    text = Path(path).read_text(encoding="utf-8-sig")
    return parse_rules(enumerate(text.split("\n"), 1), str(path))


def _parsed(line: str, where: str) -> Rule:
    fields = [field.strip() for field in line.split("\t")] if "\t" in line else line.split()
    if len(fields) not in (2, 3) or "" in fields:
        raise DataError(f"{where}: {shown(line)} is no rule", FORM)
    label, feature, *rest = fields
    strength = _strength(rest[0], where) if rest else SEED_STRENGTH
    return Rule(feature, label, strength)


def _strength(text: str, where: str) -> float:
    try:
        strength = float(text)
    except ValueError:
        strength = -1.0
    if not 0.0 < strength < np.inf:
        raise DataError(f"{where}: {text!r} is no strength", f"a number above 0; {FORM}")
    return strength


def numbered(
    seeds: Sequence[Rule], labels: Array, features: Sequence[Any], n_features: int
) -> Rules:
    """Seeds as arrays over features; those of features that the data do not have are left out.

    ``labels`` are the numbers of the seeds' labels. Strengths above 1, which only say that a rule
    comes first, become 1.
    """
    places = {feature: number for number, feature in enumerate(features)}
    rules = Rules.none(n_features)
    missing = []
    for seed, label in zip(seeds, labels.tolist(), strict=True):
        at = places.get(seed.feature)
        if at is None:
            missing.append(seed)
        elif rules.label[at] not in (UNKNOWN, label):
            raise DataError(
                f"the seeds give {shown(seed.feature)} two labels", "a feature marks one label"
            )
        else:
            rules.label[at] = label
            rules.strength[at] = min(seed.strength, 1.0)
    _tell_missing(missing, len(seeds))
    return rules


def _tell_missing(missing: Sequence[Rule], n_seeds: int) -> None:
    if not missing:
        return
    names = ", ".join(shown(seed.feature) for seed in missing[:5])
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    if len(missing) == n_seeds:
        raise DataError(
            f"no item has the feature of any seed: {names}{more}",
            "write features as they are in the data: texts are cut into words in lower case",
        )
    warnings.warn(f"no item has the features of these seeds: {names}{more}", stacklevel=5)
