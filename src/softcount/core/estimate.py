"""What a fit will need, before it starts: bytes, and work a step.

Figures are rough, meant to tell a minute from a week and a laptop from a cluster: bytes are mostly
within a factor of two or three of what is used at the worst moment.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.core.errors import SoftcountError
from softcount.kernels.threads import usable_cpus

if TYPE_CHECKING:
    from softcount.core.model import Corpus, Model
    from softcount.families.base import Family
    from softcount.learners.base import Learner

COPIES = 6
"""Tables at the worst moment: parameters, new ones, counts, both turned, what is between."""

NUMBER = 8
"""Bytes of a number."""

SPEED = 4e8
"""Elementary operations that one processor does in a second, as kernels here do them."""

HOPELESS = 10
"""What needs so many times all the memory there is cannot be done, and is not begun."""

MOST_LOOKED_AT = 5000
"""So many objects of a corpus are looked at, at most, to see how large it is."""
MOST_OF_ONE = 500
"""So many entries of a list are looked at: long ones are of words, corpora keep arrays."""


class HeavyWarning(UserWarning):
    """A fit seems to need more memory than is free."""


class HopelessFit(SoftcountError, MemoryError):
    """A fit would need many times the memory of this machine."""


@dataclass(frozen=True)
class Estimate:
    """What a fit will need.

    ``bytes``   of memory at the worst moment, its own form of the data included
    ``work``    elementary operations a step
    ``items``   how many items there are
    ``tokens``  how many observations
    ``parts``   what the bytes are for; "data" are there already when learning starts

    >>> print(Estimate(2_800_000_000, 3.1e9, 1000))
    about 2.8 GB and 3.1e+09 operations a step...
    """

    bytes: int
    work: float
    items: int
    tokens: float = 0.0
    parts: Mapping[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long a step takes on this machine, roughly, with all its processors."""
        return self.work / (SPEED * usable_cpus())

    @property
    def more(self) -> int:
        """Bytes beside those of the data."""
        return self.bytes - self.parts.get("data", 0)

    def plus(self, work: float = 0.0, **parts: float) -> Estimate:
        """The same with more work and further parts."""
        both = dict(self.parts)
        for name, size in parts.items():
            both[name] = both.get(name, 0) + int(size)
        return replace(self, bytes=sum(both.values()), work=self.work + work, parts=both)

    def __str__(self) -> str:
        return (
            f"about {readable_bytes(self.bytes)} and {self.work:.2g} operations a step: "
            f"{readable_seconds(self.seconds)} on this machine"
        )


def needing(items: int, tokens: float, work: float, **parts: float) -> Estimate:
    """An estimate from its parts, in bytes."""
    return Estimate(0, 0.0, items, float(tokens)).plus(work, **parts)


def estimate(model: Model, corpus: Corpus, learner: Learner | None = None) -> Estimate:
    """What learning this model from this corpus will need; nothing is learned, nothing large made.

    ``model``    a core, as `softcount.core.fit` takes it
    ``learner``  how it is to be learned; None: by soft EM
    """
    needed = model.estimate(corpus)
    if learner is None:
        return needed
    # what the learner keeps beside that: counts of shards, leaps, averages, draws
    once = NUMBER * sum(map(n_entries, model.families.values()))
    schedule = learner.schedule
    beside = dict(schedule.memory(once, len(corpus), needed.tokens))
    if learner.m == "draw":
        beside["draws"] = float(learner.n_kept) * learner.n_init * once
    return needed.plus(needed.work * (schedule.repeats - 1), **beside)


def by_tables(families: Iterable[Family], corpus: Corpus) -> Estimate:
    """From the sizes of tables and of the corpus alone."""
    entries = sum(map(n_entries, families))
    data = held(corpus)
    work = 4.0 * entries + 4.0 * data / NUMBER
    return needing(len(corpus), 0, work, data=data, tables=COPIES * NUMBER * entries, steps=data)


def of_rows(matrix: Any, n_classes: int = 2, **more: float) -> Estimate:
    """Of a classifier that goes over the rows of a matrix, sparse or dense, and its ``more``."""
    size, n = held(matrix), int(matrix.shape[0])
    entries = getattr(matrix, "nnz", n * int(matrix.shape[1]))
    needed = needing(n, entries, 20.0 * entries * n_classes, data=size, steps=2.0 * size)
    return needed.plus(shares=4.0 * NUMBER * n * n_classes, **more)


def n_entries(family: Family) -> int:
    """How many numbers a table of a family has; Python's own numbers do not overflow."""
    return math.prod(map(int, family.param_shape))


def held(thing: Any) -> int:
    """The bytes of all arrays that something holds.

    >>> held({"a": np.zeros(100), "b": (np.zeros(10),)})
    880
    """
    total, waiting = 0, [thing]
    seen: set[int] = set()
    while waiting and len(seen) < MOST_LOOKED_AT:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, str | bytes) or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            total += one.nbytes if one.base is None or not isinstance(one.base, np.ndarray) else 0
            if one.base is not None and isinstance(one.base, np.ndarray):
                waiting.append(one.base)
        elif isinstance(one, Mapping):
            waiting.extend(islice(one.values(), MOST_OF_ONE))
        elif isinstance(one, list | tuple):
            waiting.extend(one[:MOST_OF_ONE])
        elif is_dataclass(one) and hasattr(one, "__slots__"):
            waiting.extend(getattr(one, each.name, None) for each in fields(one))
        elif hasattr(one, "__dict__"):
            waiting.extend(vars(one).values())
    return total


# what the machine has
GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
"""Limits of control groups and what is used of them: version 2, and version 1."""
MEMINFO = "/proc/meminfo"
"""Where Linux says how much memory is free."""


def find_memory() -> tuple[int | None, int | None]:
    """Bytes that are free for this process, and all that it could ever have; None: nobody knows.

    Of the system's memory its group may be allowed to take a part only.
    """
    limits = []
    for limit, used in GROUPS:
        with suppress(OSError, ValueError):
            most = int(Path(limit).read_text(encoding="ascii"))  # "max": there is none
            limits.append((most, int(Path(used).read_text(encoding="ascii"))))
    free = [max(most - used, 0) for most, used in limits]
    whole = [most for most, _ in limits]
    with suppress(OSError, KeyError, ValueError, IndexError):
        lines = Path(MEMINFO).read_text(encoding="ascii").splitlines()
        rows = dict(line.split(":", 1) for line in lines if ":" in line)
        free.append(int(rows["MemAvailable"].split()[0]) * 1024)
    with suppress(AttributeError, OSError, ValueError):  # Windows has none of these
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        free = free or [physical]
        whole.append(physical)
    return min(free, default=None), min(whole, default=None)


# what is said of it
_ears: ContextVar[Callable[[str], object] | None] = ContextVar("ears", default=None)


@contextmanager
def heard_by(listener: Callable[[str], object]) -> Iterator[None]:
    """Inside, ``listener`` is told what would be a `HeavyWarning`, at once: for the commands."""
    before = _ears.set(listener)
    try:
        yield
    finally:
        _ears.reset(before)


def announce(needed: Estimate, watchers: Any) -> None:
    """Refuse what is hopeless, warn if memory is short, call the watchers that want to know.

    ``watchers``  as ``on_step`` of a fit; those that have ``begin`` are called by it
    """
    free, most = find_memory()
    if most is not None and needed.more > HOPELESS * most:
        raise HopelessFit(
            f"this would need about {readable_bytes(needed.more)} of memory, and this machine has "
            f"{readable_bytes(most)} in all",
            "take fewer classes, a smaller vocabulary, or shorter items",
        )
    if free is not None and needed.more > free:
        largest = max(needed.parts, key=lambda name: needed.parts[name], default="")
        mostly = f", mostly for {largest}" if largest else ""
        short = (
            f"this needs about {readable_bytes(needed.more)} of memory{mostly}, while "
            f"{readable_bytes(free)} are free: it may fail, or take very long"
        )
        listener = _ears.get()
        if listener is not None:
            listener(short)
        else:
            warnings.warn(short, HeavyWarning, stacklevel=4)
    for watch in (watchers,) if callable(watchers) else tuple(watchers):
        begin = getattr(watch, "begin", None)
        if begin is not None:
            begin(needed)


def readable_bytes(size: float) -> str:
    """
    >>> readable_bytes(2_800_000_000), readable_bytes(640)
    ('2.8 GB', '640 bytes')
    """
    for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}" if size < 10 * unit else f"{size / unit:,.0f} {name}"
    return f"{size:.0f} bytes"


def readable_seconds(seconds: float) -> str:
    """
    >>> readable_seconds(2.2), readable_seconds(7e5), readable_seconds(1e-4)
    ('some 2.2 s', 'some 8.1 days', 'an instant')
    """
    if seconds < 0.05:
        return "an instant"
    for unit, name in ((3.2e7, "years"), (86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * unit:
            return f"some {seconds / unit:,.1f} {name}"
    return f"some {seconds:.1f} s"
