"""Two directions that learn to agree (Liang, Taskar & Klein 2006)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from softcount.align.core import TABLE, AlignmentCore, Reading
from softcount.align.data import Block, Pairs, Shard
from softcount.estimate import Estimate
from softcount.families.base import Family
from softcount.kernels.jit import njit
from softcount.kernels.pool import over_rows
from softcount.types import Array, How, Params, Stats


@njit
def agree(
    first: int,
    last: int,
    source_lengths: Array,
    target_lengths: Array,
    offsets: Array,
    back_offsets: Array,
    links: Array,
    back: Array,
) -> None:
    """Both become their product; what is left of a word goes to the empty word."""
    for p in range(first, last):
        l, m = source_lengths[p], target_lengths[p]
        there, here = (
            back[back_offsets[p] : back_offsets[p + 1]],
            links[offsets[p] : offsets[p + 1]],
        )
        for j in range(m):
            here[l * m + j] = 1.0
        for i in range(l):
            left = 1.0
            for j in range(m):
                both = here[i * m + j] * there[j * l + i]
                here[i * m + j] = both
                there[j * l + i] = both
                left -= both
                here[l * m + j] -= both
            there[m * l + i] = max(left, 0.0)
        for j in range(m):
            here[l * m + j] = max(here[l * m + j], 0.0)


@njit
def join(
    first: int,
    last: int,
    source_lengths: Array,
    target_lengths: Array,
    offsets: Array,
    back_offsets: Array,
    links: Array,
    back: Array,
    geometric: bool,
) -> None:
    """The geometric or the arithmetic mean of both directions, in ``links``."""
    for p in range(first, last):
        l, m = source_lengths[p], target_lengths[p]
        there, here = (
            back[back_offsets[p] : back_offsets[p + 1]],
            links[offsets[p] : offsets[p + 1]],
        )
        for i in range(l):
            for j in range(m):
                one, other = here[i * m + j], there[j * l + i]
                here[i * m + j] = (one * other) ** 0.5 if geometric else (one + other) / 2.0


# Two aligners, one for each direction, that learn to agree.


FORWARD, BACKWARD = "forward.", "backward."
NO_BOUND = (
    "for two directions that agree count links by the product of two posteriors, which is the "
    "posterior of neither"
)


class TwoWay(NamedTuple):
    """The same pairs, seen from either side."""

    forward: Shard
    backward: Shard

    def backward_blocks(self) -> Iterator[Block]:
        """Blocks of the same pairs as the forward direction's."""
        return (Block(self.backward, *block.span) for block in self.forward.blocks())

    def blocks(self) -> Iterator[tuple[Block, Block]]:
        """Blocks of the same pairs from either side."""
        return zip(self.forward.blocks(), self.backward_blocks(), strict=True)


@dataclass(frozen=True, eq=False)
class TwoWayPairs:
    """The corpus of both directions."""

    forward: Pairs
    backward: Pairs

    def __len__(self) -> int:
        return len(self.forward)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[TwoWay]:
        both = (way.shards(batch_size, seed) for way in (self.forward, self.backward))
        return [TwoWay(*each) for each in zip(*both, strict=True)]

    def name(self, number: int) -> str:
        return self.forward.name(number)


class AgreementCore:
    """Each direction counts links by the product of both directions' posteriors.

    Liang, Taskar & Klein (2006), *Alignment by agreement*: links that one direction alone believes
    in are not learned from. That is a heuristic E-step: the objective, log p(f | e) + log p(e | f),
    need not rise.

    ``agree``  False: both learn side by side, each for itself
    """

    threads_inside = True
    few_steps = True
    usual_dials: Mapping[str, Any] = MappingProxyType({"max_iter": 5})

    def __init__(
        self, name: str, forward: AlignmentCore, backward: AlignmentCore, agree: bool = True
    ) -> None:
        self.name, self.agree = name, agree
        self.climbs = forward.climbs and backward.climbs and not agree
        self.no_bound = NO_BOUND if agree else ""
        self.ways = ((FORWARD, forward), (BACKWARD, backward))
        self.families: dict[str, Family] = {
            way + name: family for way, core in self.ways for name, family in core.families.items()
        }
        self.entropy_of = tuple(way + TABLE for way, _ in self.ways)

    def estimate(self, corpus: TwoWayPairs) -> Estimate:
        """What both directions need."""
        (_, forward), (_, backward) = self.ways
        found, more = forward.estimate(corpus.forward), backward.estimate(corpus.backward)
        return found.plus(more.work, **more.parts)

    def expect(self, params: Params, shard: TwoWay, how: How, local: Any = None) -> Stats:
        """Counts of both directions, and the sum of their log-likelihoods."""
        if not self.agree:
            return self._apart(params, shard, how)
        forward, backward = (
            Reading(core, one_way(params, way), side, how)
            for (way, core), side in zip(self.ways, shard, strict=True)
        )
        for blocks in shard.blocks():
            links = forward.posteriors(blocks[0]), backward.posteriors(blocks[1])
            if not how.score_only:
                together(agree, blocks, links, how.threads)
            forward.count(blocks[0], links[0])
            backward.count(blocks[1], links[1])
        return self._added([forward.stats(), backward.stats()])

    def _apart(self, params: Params, shard: TwoWay, how: How) -> Stats:
        each = zip(self.ways, shard, strict=True)
        return self._added(
            [core.expect(one_way(params, way), side, how) for (way, core), side in each]
        )

    def _added(self, found: Sequence[Stats]) -> Stats:
        forward, backward = found
        named = zip((FORWARD, BACKWARD), found, strict=True)
        counts = {way + name: c for way, stats in named for name, c in stats.counts.items()}
        return Stats(
            counts,
            forward.log_likelihood + backward.log_likelihood,
            forward.score + backward.score,
            forward.items,
            forward.tokens + backward.tokens,
            uncounted=forward.uncounted + backward.uncounted,
        )

    def totals(self, shard: TwoWay) -> dict[str, float]:
        """Every word of either side has one source."""
        each = zip(self.ways, shard, strict=True)
        return {
            way + name: total
            for (way, core), side in each
            for name, total in core.totals(side).items()
        }


def one_way(params: Mapping[str, Any], way: str) -> dict[str, Any]:
    """The parameters, or counts, of one direction, under their own names."""
    return {name.removeprefix(way): p for name, p in params.items() if name.startswith(way)}


def together(
    kernel: Any, blocks: tuple[Block, Block], links: Sequence[Array], threads: int, *more: Any
) -> None:
    """A kernel over the links of both directions."""
    forward, backward = blocks
    parts = (*forward.sizes, forward.offsets, backward.offsets, *links, *more)
    over_rows(kernel, forward.offsets, threads, *parts)
