"""Files of several domains: what there is to learn from, and what is to be labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from softcount.cli.records import LABEL, Records, read_records
from softcount.errors import DataError, shown

TEXT = "text"
TARGET = -1


@dataclass(frozen=True, eq=False)
class Domains:
    """The lines of the sources, of the target, and perhaps more of the target that have labels.

    Items are all lines that are not blank: of the sources, of ``more``, of the target.
    """

    sources: Sequence[Records]
    target: Records
    more: Records | None = None

    @cached_property
    def texts(self) -> list[str]:
        """Of each item."""
        found = {id(records): records.texts(TEXT) for _, records in self._files()}
        return [found[id(records)][n] for records, n, _ in self._items()]

    @cached_property
    def labels(self) -> list[str | None]:
        """Of each item; None where it is unknown."""
        return [records.labels[n] for records, n, _ in self._items()]

    @cached_property
    def numbers(self) -> list[int]:
        """Each item's domain: sources from 1 up, −1 for the target."""
        return [domain for _, _, domain in self._items()]

    @cached_property
    def lines(self) -> list[int]:
        """The lines of the target that are items, the last of them, by number from 0."""
        return [n for n in range(len(self.target)) if n not in self.target.blank]

    def labels_in(self, where: str) -> Counter[str]:
        """The labels in the source or the target, and how often they are there."""
        both = zip(self.labels, self.numbers, strict=True)
        return Counter(y for y, d in both if y is not None and (d > 0) == (where == "source"))

    @property
    def written(self) -> Mapping[str, Any]:
        """Labels that are no texts in JSON, such as 1 and true, as they are written there."""
        return {
            label: records.fields[n][LABEL]
            for records, n, _ in self._items()
            if (label := records.labels[n]) is not None
            and not isinstance(records.fields[n][LABEL], str)
        }

    def newcomers(self) -> dict[str, str]:
        """Labels of the target that the sources never have, and where each is first."""
        known, found = self.labels_in("source"), dict[str, str]()
        for records, n, domain in self._items():
            label = records.labels[n]
            if domain < 0 and label is not None and label not in known:
                found.setdefault(label, f"{records.path}:{n + 1}")
        return found

    def _files(self) -> Iterator[tuple[int, Records]]:
        yield from enumerate(self.sources, 1)
        if self.more is not None:
            yield TARGET, self.more
        yield TARGET, self.target

    def _items(self) -> Iterator[tuple[Records, int, int]]:
        for domain, records in self._files():
            for n in range(len(records)):
                if n not in records.blank:
                    yield records, n, domain


def read_domains(
    sources: Sequence[str], target: str, more: str | None, columns: Sequence[str]
) -> Domains:
    """Read the files; complain if the sources do not have two labels to learn."""
    _refuse_twice(sources, target, more)
    found = Domains(
        [read_records(path, columns) for path in sources],
        read_records(target, columns),
        None if more is None else read_records(more, columns),
    )
    labels = sorted(found.labels_in("source"))
    if len(labels) < 2:
        said = f"no label but {shown(labels[0])}" if labels else "no line has a label"
        raise DataError(
            f"--source {', '.join(sources)}: {said}",
            "label lines of at least two classes; an empty label, or -1, is unknown",
        )
    if found.more is not None:
        found.more.demand_labels(1)
    return found


def _refuse_twice(sources: Sequence[str], target: str, more: str | None) -> None:
    """Complain of a file that would be two domains, or count twice."""
    given = [*(("--source", path) for path in sources), ("--target", target)]
    if more is not None:
        given.append(("--target-labelled", more))
    seen = set[Path]()
    for option, path in given:
        place = Path(path).resolve()
        if place in seen:
            raise DataError(
                f"{option} {path}: this file is given twice", "each domain has a file of its own"
            )
        seen.add(place)
