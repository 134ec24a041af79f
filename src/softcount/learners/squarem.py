"""Extrapolated EM: two steps show the direction and the curvature, the third leaps ahead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from softcount.errors import ImpossibleItem
from softcount.learners.steps import Step, Tables, Work, look
from softcount.types import Array, Params

GROWTH = 4.0
"""How fast the longest leap grows after a success at full length (Varadhan & Roland's choice)."""


@dataclass(frozen=True)
class Squarem:
    """Squared extrapolation, scheme SqS3 (Varadhan & Roland 2008), that never lets it fall.

    From θ0, two EM steps lead to θ1 and θ2; with r = θ1 − θ0 and v = (θ2 − θ1) − r, all in the
    families' unconstrained coordinates, the leap is θ' = θ0 − 2a r + a² v, a = −‖r‖ / ‖v‖ ≤ −1
    (a = −1 gives θ2). θ' is kept only if the objective there is at least that of θ1; otherwise
    θ2 is taken, which EM guarantees. Coordinates that are infinite (zeros) follow plain EM.
    One step is one such cycle: two E-steps if the leap is kept, three if not.
    """

    climbs: ClassVar[bool] = True
    shuffles: ClassVar[bool] = False
    held_out: ClassVar[float] = 0.0
    batch_size: ClassVar[None] = None

    def steps(self, work: Work, tables: Tables) -> Iterator[Step]:
        here, longest = look(work, tables), 1.0
        while True:
            yield here
            first = look(work, work.update(here.stats, here.tables))
            second = work.update(first.stats, first.tables)
            landing, length = _leap(work, here.tables.params, first.tables.params, second, longest)
            leapt = _try(work, landing, first.objective) if length > 1 else None
            here = leapt or look(work, second)
            if length == longest:
                worked = here.tables is landing
                longest = longest * GROWTH if worked else max(1.0, longest / GROWTH)


def _try(work: Work, tables: Tables, floor: float) -> Step | None:
    """An E-step where EM might never have gone; None if that is no good, and nothing happened."""
    state = work.snapshot()
    try:
        step = look(work, tables)
    except ImpossibleItem:
        step = None
    if step and step.objective >= floor:
        return step
    work.restore(state)
    return None


def _leap(
    work: Work, zero: Params, one: Params, second: Tables, longest: float
) -> tuple[Tables, float]:
    """Where to land, and the length −a of the leap (1: at the plain EM step)."""
    r: dict[str, Array] = {}
    v: dict[str, Array] = {}
    for name, family in work.families.items():
        f0, f1, f2 = (family.free(p[name]) for p in (zero, one, second.params))
        movable = np.isfinite(f0) & np.isfinite(f1) & np.isfinite(f2)
        r[name] = np.subtract(f1, f0, out=np.zeros_like(f0), where=movable)
        v[name] = np.subtract(f2, f1, out=np.zeros_like(f0), where=movable) - r[name]
    length = _length(_norm(r), _norm(v), longest)
    if length == 1:
        return second, length
    params = {}
    for name, family in work.families.items():
        # relative to θ2, so that coordinates that cannot move stay where EM put them
        shift = 2 * (length - 1) * r[name] + (length**2 - 1) * v[name]
        params[name] = family.bound(family.free(second.params[name]) + shift, second.params[name])
    return work.point(params), length


def _length(r: float, v: float, longest: float) -> float:
    if r == 0:
        return 1.0
    return min(max(r / v, 1.0), longest) if v > 0 else longest


def _norm(parts: dict[str, Array]) -> float:
    return float(np.sqrt(sum(np.vdot(part, part) for part in parts.values())))
