"""What the tests of engines work on: functions of shards that any process finds, and cuts."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softcount.core import interrupt
from softcount.core.errors import ImpossibleItem
from softcount.core.types import Stats

# of both signs and unequal sizes: another order of summing gives other bits
VALUES = [float(x) for x in np.random.default_rng(3).normal(size=37) * 1e8]


SMALL_CUTS = {
    "softcount.hmm.data.SHARD_TOKENS": 30,
    "softcount.grammar.data.SHARD_WORK": 1 << 9,
    "softcount.align.data.CUT": 1 << 9,
    "softcount.mixture.data.MOST_POINTS": 50,
    "softcount.text.bags.MOST_DOCUMENTS": 16,
    "softcount.instances.core.MOST_ENTRIES": 60,
    "softcount.stories.data._SHARD_COST": 300,
    "softcount.stories.data._ENTRY_COST": 0,
}
"""Limits that cut little data into several shards, as much data is."""


@dataclass(frozen=True)
class Cut:
    """A corpus in shards of ``size`` items, whatever its own cut."""

    corpus: Any
    size: int

    def __len__(self) -> int:
        return len(self.corpus)

    def shards(self, batch_size: int | None, seed: int) -> Sequence[Any]:
        return self.corpus.shards(batch_size or self.size, seed)

    def name(self, number: int) -> str:
        return self.corpus.name(number)


@dataclass(frozen=True)
class Lazy(Sequence[float]):
    """Shards that are made on access; says where they were."""

    values: tuple[float, ...]
    seen: str

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        with open(self.seen, "a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
        return self.values[index]


def weigh(params, shard, how, local):
    return Stats({"x": np.array([shard])}, log_likelihood=shard)


def tell(params, shard, how, local):
    return {"process": os.getpid(), "shard": shard, "local": local, "threads": how.threads}


def add_params(params, shard, how, local):
    total = sum(float(np.sum(table)) for table in params.values())
    return Stats({}, score=total, log_likelihood=shard)


def add_against(params, shard, how, local):
    return Stats({}, score=float(np.sum(how.against["x"]) - np.sum(params["x"])))


def tell_layout(params, shard, how, local):
    table = params["x"]
    return table.strides, table.flags.writeable, table.dtype.str, shard.strides, local


def count_visits(params, shard, how, local):
    return Stats({}, score=0.0 if local is None else local, local=(local or 0) + 1)


def keep_row(params, shard, how, local):
    before = np.zeros(4) if local is None else local
    new = before + np.arange(4) * shard
    return Stats({}, score=float(before.sum()), local=new)


def fail(params, shard, how, local):
    if shard == params["which"]:
        raise KINDS[int(params["kind"])]
    return Stats({}, items=1)


class Awkward(Exception):
    """An exception that cannot be made again from its arguments."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


KINDS: list[BaseException] = [
    ImpossibleItem("item 7 is impossible", "leave it out", item=7),
    FloatingPointError("as it is"),
    MemoryError("as it is"),
    KeyboardInterrupt("as it is"),
    Awkward(1, 2),
]


def keep_and_fail(params, shard, how, local):
    """Leave states, and fail at one shard."""
    if shard == params["which"]:
        raise FloatingPointError("after some states were written")
    return count_visits(params, shard, how, local)


def doze(params, shard, how, local):
    time.sleep(float(params["seconds"]))
    return Stats({}, items=1)


def end_once(params, shard, how, local):
    """Kill this process, the first time that anybody comes here; the file is named by its codes."""
    mark = Path("".join(map(chr, params["mark"])))
    if shard == params["which"]:
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return weigh(params, shard, how, local)


def end_always(params, shard, how, local):
    if shard == params["which"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return weigh(params, shard, how, local)


def codes(path: Path) -> np.ndarray:
    return np.array([ord(letter) for letter in str(path)])


def bits(values: Any) -> Any:
    """A value such that equal bits, and only these, compare as equal."""
    if isinstance(values, dict):
        return {name: bits(value) for name, value in values.items()}
    array = np.asarray(values)
    return array.dtype.str, array.shape, array.tobytes()


def figures(fit: Any) -> Any:
    """Everything that a fit has learned, and on which way."""
    trace = fit.trace
    columns = ("objective", "log_likelihood", "change", "temper", "held_out", "q", "bound")
    return (
        {name: bits(trace.column(name)) for name in columns},
        bits(dict(fit.params)),
        bits(dict(fit.local)),
        [bits(dict(draw)) for chain in fit.draws for draw in chain],
        fit.verdict,
    )


def make_lock(params, shard, how, local):
    return threading.Lock()


def add_table(params, shard, how, local):
    return Stats({"x": shard})


def weigh_length(params, shard, how, local):
    return Stats({}, log_likelihood=len(shard))


def fail_or_wait(params, shard, how, local):
    """Fail, or wait until the work is given up."""
    mark = Path("".join(map(chr, params["mark"])))
    if shard == "fails":
        while not mark.exists():
            time.sleep(0.01)
        raise FloatingPointError
    mark.write_text("at work")
    try:
        for _ in range(6000):
            time.sleep(0.01)
            interrupt.check()
    except interrupt.GivenUp:
        mark.write_text("given up")
        raise


def count_states(params, shard, how, local):
    """Count the states of the first shard that are kept in this process."""
    import gc

    from softcount.engines.worker import Shelf

    shelves = [one for one in gc.get_objects() if isinstance(one, Shelf) and one.shards]
    (number,) = (n for shelf in shelves for n, value in shelf.shards.items() if value == shard)
    return sum(len(shelf.states.get(number, ())) for shelf in shelves)


def keep_sum(params, shard, how, local):
    return Stats({}, local=shard if local is None else local + shard)


def keep_object(params, shard, how, local):
    return Stats({}, local=object())
