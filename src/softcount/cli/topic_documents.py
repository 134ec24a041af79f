"""Documents for topic models: lines of files, or an archive on disk; and what is known of them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcount.cli.answers import called, counted
from softcount.cli.gold import UNKNOWN, one_a_line
from softcount.cli.lines import numbered
from softcount.errors import DataError, shown

if TYPE_CHECKING:
    from softcount.corpus.archive import Archive
    from softcount.models.topics.model import TopicModel
    from softcount.types import Array

SHORT_NUMBER = re.compile(r"[0-9]{1,9}")
NAMED = re.compile(r"\s*([0-9]{1,9})\s*:(.*)", re.DOTALL)
"""A line of seeds that says which topic it is for."""


@dataclass(frozen=True, eq=False)
class LinesOfFiles:
    """Documents in memory: every line of some files, blank ones too.

    ``items``    what models take
    ``borders``  how many lines come before each file
    """

    files: Sequence[str]
    items: Sequence[str]
    borders: Sequence[int]

    @property
    def called(self) -> str:
        """What titles say."""
        first, *others = self.files
        return called(first) + (f" and {len(others)} more" if others else "")

    @property
    def texts(self) -> Sequence[str]:
        return self.items

    @property
    def places(self) -> Sequence[int]:
        """Where each document stands among the lines, counted from 0."""
        return range(len(self.items))

    def name(self, number: int) -> str:
        """FILE:LINE of a document."""
        which = bisect_right(self.borders, number) - 1
        return f"{called(self.files[which])}:{number - self.borders[which] + 1}"

    def about(self, number: int) -> dict[str, Any]:
        """What to show of a document that was found."""
        return {"text": self.items[number]}

    def lengths(self, model: TopicModel) -> Array:
        """How many words of each document the model knows."""
        import numpy as np

        return np.asarray(counted(model, self.items).sum(axis=1)).reshape(-1)

    def demand_some(self) -> None:
        """Complain of files without anything to learn from."""
        if not any(text.strip() for text in self.items):
            one = len(self.files) == 1
            fault = "the file is empty, or all its lines are" if one else "all lines are empty"
            raise DataError(f"{', '.join(self.files)}: {fault}", "one document a line")


@dataclass(frozen=True, eq=False)
class OnDisk:
    """Documents in an archive, which may be in another order than the lines it was built from."""

    items: Archive

    texts = None

    @property
    def called(self) -> str:
        return self.items.path.resolve().name

    @cached_property
    def places(self) -> Sequence[int]:
        places: list[int] = self.items.origin.tolist()
        return places

    def name(self, number: int) -> str:
        return self.items.name(number)

    def about(self, number: int) -> dict[str, Any]:
        return {"line": self.places[number] + 1, "name": self.name(number)}

    def lengths(self, model: TopicModel) -> Array:
        """How many words each document has: the model knows all of them."""
        import numpy as np

        parts = self.items.shards()
        return np.concatenate([parts[i].bags.lengths for i in range(len(parts))])

    def demand_some(self) -> None:
        """An archive is never empty."""


Documents = LinesOfFiles | OnDisk


@dataclass(frozen=True, eq=False)
class Names(Sequence[str]):
    """What documents are called on a page, without folders, made when it is asked for."""

    documents: Documents

    def __len__(self) -> int:
        return len(self.documents.items)

    def __getitem__(self, index: Any) -> Any:
        return Path(self.documents.name(index)).name


def is_archive(files: Sequence[str]) -> bool:
    """Whether this is a folder, and no files with lines."""
    return len(files) == 1 and Path(files[0]).is_dir()


def read_documents(files: Sequence[str]) -> Documents:
    """The documents of an archive, or all lines of some files, one after the other."""
    if is_archive(files):
        from softcount.corpus.archive import Archive

        return OnDisk(Archive.open(files[0]))
    texts: list[str] = []
    borders = []
    for file in files:
        if Path(file).is_dir():
            raise DataError(f"{file} is a folder", "give one archive and nothing else, or files")
        borders.append(len(texts))
        texts += [text for _, text in numbered(file)]
    return LinesOfFiles(files, texts, borders)


# what is known of them
def read_labels(path: str | None, documents: Documents, n_topics: int) -> list[Any] | None:
    """The topics that each document may have: a list of them, or -1."""
    if path is None:
        return None
    said = one_a_line("--labels", path, documents.called, len(documents.items), "topic")
    labels = [
        _topics(text, f"--labels {path}:{number}", n_topics) if text not in UNKNOWN else -1
        for number, text in enumerate(said, 1)
    ]
    return [labels[place] for place in documents.places]


def _topics(text: str, where: str, n_topics: int) -> list[int]:
    fields = text.replace(",", " ").split()
    found = [int(field) if SHORT_NUMBER.fullmatch(field) else n_topics for field in fields]
    if not found or max(found) >= n_topics:
        raise DataError(
            f"{where}: {shown(text)} is no topic",
            f"topics go from 0 to {n_topics - 1} (see -k); -1 or nothing where none is known",
        )
    return found


def read_dates(path: str | None, documents: Documents) -> list[str | None] | None:
    """When each document is from."""
    if path is None:
        return None
    from softcount.show.periods import periods

    said = one_a_line("--dates", path, documents.called, len(documents.items), "date")
    try:
        periods(said)
    except DataError as error:
        one = re.fullmatch(r"document (\d+): (.*)", error.message, re.DOTALL)
        where, fault = (f":{int(one[1]) + 1}", one[2]) if one else ("", error.message)
        raise DataError(f"--dates {path}{where}: {fault}", DATE) from error
    return [said[place] or None for place in documents.places]


DATE = "give 1994, 1994-03, 1994-03-07, or a number; a blank line where it is unknown"


def read_seeds(
    path: str | None, n_topics: int, cut: Callable[[str], list[str]]
) -> dict[int, list[str]] | None:
    """Words that belong to topics, cut as those of the documents are."""
    if path is None:
        return None
    seeds: dict[int, list[str]] = {}
    for number, line in numbered(path):
        named = NAMED.fullmatch(line)
        topic, text = (int(named[1]), named[2]) if named else (number - 1, line)
        words = cut(text)
        if not words:
            continue
        if topic >= n_topics:
            raise DataError(
                f"--seeds {path}:{number}: there is no topic {topic}",
                f"topics go from 0 to {n_topics - 1}: ask for more (-k)",
            )
        if topic in seeds:
            raise DataError(
                f"--seeds {path}:{number}: topic {topic} has seeds already", "put them on one line"
            )
        seeds[topic] = words
    if not seeds:
        raise DataError(f"--seeds {path}: there are no words", "one topic a line: 'oil price'")
    return seeds
