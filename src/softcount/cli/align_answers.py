"""What ``softcount align`` writes: links, and what can be made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, overload

import typer

from softcount.cli.align_knowledge import read_gold
from softcount.cli.align_options import Method
from softcount.cli.ending import Deed, at, try_all
from softcount.drafts import open_whole
from softcount.errors import DataError, SoftcountError

if TYPE_CHECKING:
    from softcount.corpus.bitext import Bitext
    from softcount.corpus.links import FlatLinks, Link, Links
    from softcount.models.alignment.model import OneWay
    from softcount.models.alignment.two_ways import TwoWays
    from softcount.types import Array


@dataclass(frozen=True)
class Decoding:
    """How links are chosen and printed; None: as the aligner does.

    ``reverse``  the aligner learned from pairs with source and target exchanged
    """

    reverse: bool = False
    method: Method | None = None
    threshold: float | None = None
    probs: bool = False

    def fitting(self, aligner: TwoWays | OneWay, where: str) -> Decoding:
        """As an aligner from a file was learned; complains if it cannot be asked so."""
        from softcount.models.alignment.two_ways import TwoWays

        kind, both = type(aligner).__name__, isinstance(aligner, TwoWays)
        if both and self.reverse:
            raise DataError(f"{where} has both directions, while -r is for one", "leave out -r")
        if self.reverse and not aligner.turned_:
            raise DataError(f"{where} was learned without -r", "leave out -r")
        if self.method is not None and not both:
            raise DataError(
                f"{where} has one direction alone ({kind}): there is nothing to symmetrise",
                "learn both directions: softcount align --both --save …",
            )
        return replace(self, reverse=aligner.turned_)

    def links(self, aligner: TwoWays | OneWay, pairs: Bitext | None) -> tuple[FlatLinks, Array]:
        """(source, target) links of pairs (None: those learned from); probabilities if asked."""
        asked: dict[str, Any] = {"probabilities": self.probs, "threshold": self.threshold}
        if self.method is not None:
            asked["method"] = self.method.value
        found, values = aligner.links(self.turned(pairs), **asked)
        return _exchanged(found, values) if self.reverse else (found, values)

    @overload
    def turned(self, pairs: Bitext) -> Bitext: ...
    @overload
    def turned(self, pairs: None) -> None: ...
    def turned(self, pairs: Bitext | None) -> Bitext | None:
        """Pairs as the aligner sees them, or the other way round."""
        return pairs.flipped() if self.reverse and pairs is not None else pairs

    def text(self, links: FlatLinks, values: Array) -> bytes:
        """A line for each pair."""
        return with_probabilities(links, values) if self.probs else links.text()


def _exchanged(links: FlatLinks, values: Array) -> tuple[FlatLinks, Array]:
    """Source and target exchanged, in the order of (i, j) again."""
    import numpy as np

    from softcount.corpus.links import FlatLinks

    order = np.lexsort((links.source, links.target, links.pair))
    turned = FlatLinks(links.indptr, links.target[order], links.source[order])
    return turned, values[order] if len(values) else values


def with_probabilities(links: FlatLinks, values: Array) -> bytes:
    """Lines of i-j:p."""
    each = [
        f"{i}-{j}:{p:.6g}"
        for i, j, p in zip(
            links.source.tolist(), links.target.tolist(), values.tolist(), strict=True
        )
    ]
    ends = links.indptr.tolist()
    lines = (" ".join(each[a:b]) for a, b in pairwise(ends))
    return "".join(f"{line}\n" for line in lines).encode()


@contextmanager
def opened(path: Path | None) -> Iterator[BinaryIO]:
    """A file to write lines to, which is there when all of it is; None: standard output."""
    if path is None:
        yield typer.get_binary_stream("stdout")
        return
    try:
        with open_whole(path) as file:
            yield file
    except OSError as error:
        raise SoftcountError(
            f"{path}: cannot be written: {error.strerror}", "choose a place with room"
        ) from error


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with opened(path) as file:
        for line in lines:
            file.write(f"{line}\n".encode())


@dataclass(frozen=True)
class Wanted:
    """What is to be written beside the lines, and where the lines go (None: standard output)."""

    output: Path | None = None
    dictionary: Path | None = None
    least: float = 0.0
    phrases: Path | None = None
    longest: int = 7
    report: Path | None = None
    shown: int | None = None
    gold: str | None = None

    @property
    def of_all(self) -> bool:
        """Whether all pairs must be there together."""
        needed = (self.phrases, self.report, self.shown, self.gold)
        return any(one is not None for one in needed)

    def check_pairs(self, pairs: Bitext) -> Sequence[Links] | None:
        """Gold links, if there are any; complains if these or the pair to be shown do not fit."""
        if self.shown is not None and self.shown > len(pairs):
            raise DataError(f"--show {self.shown}: there are {len(pairs):,} pairs", "choose one")
        return read_gold(self.gold, pairs)

    def write(
        self,
        aligner: TwoWays | OneWay,
        decoding: Decoding,
        pairs: Bitext | None,
        gold: Sequence[Links] | None,
    ) -> None:
        """Lines first, then all else; pairs may be None: those that were learned from."""
        links, values = decoding.links(aligner, pairs)

        def write_links() -> None:
            with opened(self.output) as out:
                out.write(decoding.text(links, values))
                out.flush()

        try_all(
            write_links,
            lambda: self.write_dictionary(aligner, decoding.reverse),
            lambda: try_all(*self._of_all(aligner, decoding, pairs, links, gold)),
        )

    def _of_all(
        self,
        aligner: TwoWays | OneWay,
        decoding: Decoding,
        pairs: Bitext | None,
        links: FlatLinks,
        gold: Sequence[Links] | None,
    ) -> Iterator[Deed]:
        """What is wanted of all pairs together."""
        if not self.of_all:
            return
        read = aligner.shards(decoding.turned(pairs))[0]
        seen = decoding.turned(read)
        yield at(self.phrases, lambda path: _write_phrases(path, seen, links, self.longest))
        yield at(
            self.report, lambda path: _write_report(path, aligner, read, gold, decoding.reverse)
        )

        def show(number: int) -> None:
            (p,) = aligner.posteriors(read.select([number - 1]))
            posterior = p.T if decoding.reverse else p
            _show(seen.pair(number - 1), posterior, links.lists()[number - 1])

        yield at(self.shown, show)
        yield at(gold, lambda some: _print_scores(links, some))

    def write_dictionary(self, aligner: TwoWays | OneWay, reverse: bool) -> None:
        """Source word, target word and probability, the most probable of each word first."""
        if self.dictionary is None:
            return
        entries = _entries(aligner, self.least)
        if reverse:
            entries = ((target, source, p) for source, target, p in entries)
        lines = (f"{source}\t{target}\t{p:.6g}" for source, target, p in entries)
        _write_lines(self.dictionary, lines)


def _entries(aligner: TwoWays | OneWay, least: float) -> Iterator[tuple[str, str, float]]:
    """What words become: those of the forward direction, the empty word left out."""
    import numpy as np

    way: Any = getattr(aligner, "forward_", aligner)
    table, others = way.table(), way.target_words_
    for word, (start, end) in zip(way.source_words_, pairwise(table.indptr), strict=False):
        p, places = table.data[start:end], table.indices[start:end]
        for k in np.argsort(-p, kind="stable")[: np.count_nonzero(p >= least)]:
            yield word, others[places[k]], float(p[k])


def _write_phrases(path: Path, pairs: Bitext, links: FlatLinks, longest: int) -> None:
    from softcount.models.alignment.phrases import phrase_table

    table = phrase_table(pairs, links, longest)
    _write_lines(path, table.lines())


def _write_report(
    path: Path,
    aligner: TwoWays | OneWay,
    pairs: Bitext,
    gold: Sequence[Links] | None,
    reverse: bool,
) -> None:
    """A page, which shows pairs as the aligner reads them."""
    from softcount.corpus.links import Links
    from softcount.show.alignment import alignment_report
    from softcount.show.report import write_page

    if reverse and gold is not None:
        gold = [
            Links([(j, i) for i, j in one.sure], [(j, i) for i, j in one.possible]) for one in gold
        ]
    write_page(path, alignment_report(aligner, pairs, gold=gold))


def _show(pair: tuple[list[str], list[str]], posterior: Array, links: list[Link]) -> None:
    from softcount.show.alignment import alignment_view

    typer.echo(alignment_view(*pair, posterior, links), err=True)


def _print_scores(links: FlatLinks, gold: Sequence[Links]) -> None:
    """How well the links of the first pairs agree with gold ones."""
    from softcount.evaluate import align_scores

    scores = align_scores(links.lists()[: len(gold)], gold)
    typer.echo(f"{scores} in {len(gold):,} pair{'s' * (len(gold) != 1)}", err=True)
