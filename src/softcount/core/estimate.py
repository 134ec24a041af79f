"""Estimates, before a fit starts, of the memory it needs and of the work per step.

Figures are rough, meant to tell a minute from a week and a laptop from a cluster: bytes are mostly
within a factor of two or three of peak memory.
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
"""Copies of the tables at peak: old and new parameters, counts, transposes, intermediates."""

NUMBER = 8
"""Bytes per number."""

SPEED = 4e8
"""Elementary operations per second and processor in the kernels of this package."""

HOPELESS = 10
"""A fit that needs more than this many times the machine's memory is refused."""

MOST_LOOKED_AT = 5000
"""Most objects of a corpus that are visited to measure its size."""
MOST_OF_ONE = 500
"""Most entries of a container that are visited: long lists hold words; the bulk is in arrays."""


class HeavyWarning(UserWarning):
    """A fit seems to need more memory than is free."""


class HopelessFit(SoftcountError, MemoryError):
    """A fit would need many times the memory of this machine."""


@dataclass(frozen=True)
class Estimate:
    """What a fit will need.

    ``bytes``   peak memory, including the model's own representation of the data
    ``work``    elementary operations per step
    ``items``   number of items
    ``tokens``  number of observations
    ``parts``   bytes by purpose; "data" is allocated before learning starts
    ``steps``   the most steps that the learner takes, if known

    >>> print(Estimate(2_800_000_000, 3.1e9, 1000))
    about 2.8 GB and 3.1e+09 operations a step...
    """

    bytes: int
    work: float
    items: int
    tokens: float = 0.0
    parts: Mapping[str, int] = field(default_factory=dict)
    steps: int | None = None

    @property
    def seconds(self) -> float:
        """Rough duration of a step on this machine, with all its processors."""
        return self.work / (SPEED * usable_cpus())

    @property
    def more(self) -> int:
        """Bytes needed in addition to the data."""
        return self.bytes - self.parts.get("data", 0)

    def plus(self, work: float = 0.0, **parts: float) -> Estimate:
        """Return the estimate with additional work and parts."""
        total = dict(self.parts)
        for name, size in parts.items():
            total[name] = total.get(name, 0) + int(size)
        return replace(self, bytes=sum(total.values()), work=self.work + work, parts=total)

    def __str__(self) -> str:
        return (
            f"about {readable_bytes(self.bytes)} and {self.work:.2g} operations a step: "
            f"{readable_seconds(self.seconds)} on this machine"
        )


def make_estimate(items: int, tokens: float, work: float, **parts: float) -> Estimate:
    """Make an estimate from its parts, in bytes."""
    return Estimate(0, 0.0, items, float(tokens)).plus(work, **parts)


def estimate(model: Model, corpus: Corpus, learner: Learner | None = None) -> Estimate:
    """Estimate what fitting this model to this corpus needs, without fitting or large allocations.

    ``model``    a core, as `softcount.core.fit` takes it
    ``learner``  the learner; None: soft EM
    """
    needed = model.estimate(corpus)
    if learner is None:
        return needed
    # what the learner keeps in addition: counts of shards, extrapolations, averages, draws
    table_bytes = NUMBER * sum(map(n_entries, model.families.values()))
    schedule = learner.schedule
    extra = dict(schedule.memory(table_bytes, len(corpus), needed.tokens))
    if learner.m == "draw":
        extra["draws"] = float(learner.n_kept) * learner.n_init * table_bytes
    whole = needed.plus(needed.work * (schedule.repeats - 1), **extra)
    return replace(whole, steps=learner.max_iter)


def by_tables(families: Iterable[Family], corpus: Corpus) -> Estimate:
    """Estimate from the sizes of the tables and of the corpus alone."""
    entries = sum(map(n_entries, families))
    data = count_bytes(corpus)
    work = 4.0 * entries + 4.0 * data / NUMBER
    return make_estimate(
        len(corpus), 0, work, data=data, tables=COPIES * NUMBER * entries, steps=data
    )


def estimate_rows(matrix: Any, n_classes: int = 2, **more: float) -> Estimate:
    """Estimate for a classifier of the rows of a matrix, sparse or dense; ``more``: other parts."""
    size, n = count_bytes(matrix), int(matrix.shape[0])
    entries = getattr(matrix, "nnz", n * int(matrix.shape[1]))
    needed = make_estimate(n, entries, 20.0 * entries * n_classes, data=size, steps=2.0 * size)
    return needed.plus(posteriors=4.0 * NUMBER * n * n_classes, **more)


def n_entries(family: Family) -> int:
    """Return the number of entries of a family's table, as a Python int, which cannot overflow."""
    return math.prod(map(int, family.param_shape))


def count_bytes(thing: Any) -> int:
    """Return the bytes of all arrays reachable from an object.

    >>> count_bytes({"a": np.zeros(100), "b": (np.zeros(10),)})
    880
    """
    total, waiting = 0, [thing]
    seen: set[int] = set()
    while waiting and len(seen) < MOST_LOOKED_AT:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, str | bytes) or callable(part):
            continue
        seen.add(id(part))
        if isinstance(part, np.ndarray):
            is_view = part.base is not None and isinstance(part.base, np.ndarray)
            total += 0 if is_view else part.nbytes
            if is_view:  # the memory belongs to the array that it is a view of
                waiting.append(part.base)
        elif isinstance(part, Mapping):
            waiting.extend(islice(part.values(), MOST_OF_ONE))
        elif isinstance(part, list | tuple):
            waiting.extend(part[:MOST_OF_ONE])
        elif is_dataclass(part) and hasattr(part, "__slots__"):
            waiting.extend(getattr(part, each.name, None) for each in fields(part))
        elif hasattr(part, "__dict__"):
            waiting.extend(vars(part).values())
    return total


# the memory of this machine
GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
"""Memory limit and usage of the control group: of cgroups version 2, and of version 1."""
MEMINFO = "/proc/meminfo"
"""The file in which Linux reports free memory."""


def find_memory() -> tuple[int | None, int | None]:
    """Return the bytes free for this process, and the most it could ever have; None if unknown.

    The process's control group may be allowed only part of the system's memory.
    """
    limits = []
    for limit, used in GROUPS:
        with suppress(OSError, ValueError):
            most = int(Path(limit).read_text(encoding="ascii"))  # "max" means no limit: ValueError
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


# warnings
_listener: ContextVar[Callable[[str], object] | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Callable[[str], object]) -> Iterator[None]:
    """Send `HeavyWarning` messages to ``listener`` inside the block; the commands use this."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def announce(needed: Estimate, watchers: Any) -> None:
    """Raise `HopelessFit` or warn if memory does not suffice, then pass the estimate to watchers.

    ``watchers``  as ``on_step`` of a fit; the ``begin`` method is called of those that have one
    """
    free, most = find_memory()
    if most is not None and needed.more > HOPELESS * most:
        raise HopelessFit(
            f"this fit would need about {readable_bytes(needed.more)} of memory, but this machine "
            f"has only {readable_bytes(most)} in total",
            "use fewer classes, a smaller vocabulary, or shorter items",
        )
    if free is not None and needed.more > free:
        largest = max(needed.parts, key=lambda name: needed.parts[name], default="")
        mostly = f", mostly for {largest}" if largest else ""
        message = (
            f"this fit needs about {readable_bytes(needed.more)} of memory{mostly}, while "
            f"{readable_bytes(free)} are free: it may fail, or take very long"
        )
        listener = _listener.get()
        if listener is not None:
            listener(message)
        else:
            warnings.warn(message, HeavyWarning, stacklevel=4)
    for watch in (watchers,) if callable(watchers) else tuple(watchers):
        begin = getattr(watch, "begin", None)
        if begin is not None:
            begin(needed)


def readable_bytes(size: float) -> str:
    """Format a number of bytes.

    >>> readable_bytes(2_800_000_000), readable_bytes(640)
    ('2.8 GB', '640 bytes')
    """
    for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}" if size < 10 * unit else f"{size / unit:,.0f} {name}"
    return f"{size:.0f} bytes"


def readable_seconds(seconds: float) -> str:
    """Format a duration.

    >>> readable_seconds(2.2), readable_seconds(7e5), readable_seconds(1e-4)
    ('some 2.2 s', 'some 8.1 days', 'an instant')
    """
    if seconds < 0.05:
        return "an instant"
    for unit, name in ((3.2e7, "years"), (86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * unit:
            return f"some {seconds / unit:,.1f} {name}"
    return f"some {seconds:.1f} s"
