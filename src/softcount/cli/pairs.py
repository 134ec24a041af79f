"""Sentence pairs for the commands: whole files, and lines as they come."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from softcount.cli.lines import arriving
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.corpus.bitext import Bitext

STDIN = "standard input"


@dataclass(frozen=True)
class PairFiles:
    """Where pairs are: one file of lines ``source ||| target``, or two files."""

    joint: str | None
    source: str | None = None
    target: str | None = None

    @classmethod
    def given(
        cls, file: str | None, other: str | None, source: str | None, target: str | None
    ) -> PairFiles:
        """From FILE (or -i), -s and -t; nothing at all is standard input."""
        if (source is None) != (target is None):
            raise typer.BadParameter("-s and -t go together: a file for each language")
        if sum(name is not None for name in (file, other, source)) > 1:
            raise typer.BadParameter("give the pairs once: one file, or -s FILE -t FILE")
        if source is not None and "-" in (source, target):
            raise typer.BadParameter("-s and -t are files; on stdin, give lines source ||| target")
        joint = file if other is None else other
        if joint is None and source is None:
            if sys.stdin.isatty():
                raise typer.BadParameter("no sentence pairs: give a file, or - to type them")
            joint = "-"
        return cls(joint, source, target)

    @property
    def is_stdin(self) -> bool:
        return self.joint == "-"

    @property
    def called(self) -> str:
        """What messages call the pairs."""
        if self.joint is None:
            return f"{self.source} and {self.target}"
        return STDIN if self.is_stdin else self.joint

    def read(self, lowercase: bool = False) -> Bitext:
        """All pairs."""
        from softcount.corpus.bitext import read_bitext, stream_pairs

        if self.joint is None:
            assert self.source is not None
            return read_bitext(self.source, self.target, lowercase=lowercase)
        if not self.is_stdin:
            return read_bitext(self.joint, lowercase=lowercase)
        lines = (line for block in arriving("-") for line in block)
        for pairs in stream_pairs(lines, sys.maxsize, lowercase=lowercase, origin=STDIN):
            return pairs
        raise DataError(f"no pairs in {STDIN}", "give one at least")

    def stream(self) -> Iterator[Bitext]:
        """The pairs of one file as they come, those that are there together.

        Whatever is wrong with a line, those before it come first.
        """
        from softcount.corpus.bitext import stream_pairs

        assert self.joint is not None
        before = 0
        for lines in arriving(self.joint):
            where: dict[str, Any] = {"origin": self.called, "before": before}
            try:
                pairs = next(stream_pairs(lines, len(lines), **where))
            except DataError:
                yield from stream_pairs(lines, 1, **where)
                raise
            yield pairs
            before += len(lines)


def shapes_of(pairs: Bitext) -> list[tuple[int, int]]:
    """How many source and target words each pair has."""
    lengths = pairs.source.lengths.tolist(), pairs.target.lengths.tolist()
    return list(zip(*lengths, strict=True))
