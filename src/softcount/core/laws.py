"""The laws that every model must obey, for your own models too (`check_model`).

They need only the model's interface: an E-step (`expect`) and its families. None of them knows the
right counts, but together they leave little room for wrong ones.

A law is a function of a `Bench`: it returns the figures that show that it holds, raises
`BrokenError` with the figures that violate it, or returns None where it cannot be checked.
"""

from __future__ import annotations

import inspect
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from softcount.core.display import PrintedTable
from softcount.core.errors import LearnerError, SoftcountError
from softcount.core.theory import decompose
from softcount.core.types import Array, EStep, Params, Stats
from softcount.engines.blocks import tree_sum
from softcount.engines.local import Local
from softcount.families import Categorical, SparseCategorical
from softcount.learners.schedules import expected_log

STEP = 1e-4
"""Finite-difference step for an item of one observation; longer items have more curvature."""

STREAMS, SAMPLES = 40, 10
"""Number of independent sampled E-steps, and of draws in each."""

PARTS = 7
"""A corpus is cut into at least this many shards, if it has as many items."""


class BrokenError(Exception):
    """Raised by a law that is violated, with the figures that show it."""


def _check(condition: Any, detail: str) -> None:
    if not condition:
        raise BrokenError(detail)


@dataclass(frozen=True)
class Bench:
    """A model's core with a corpus and the parameters at which it is tested."""

    core: Any
    corpus: Any
    shards: Sequence[Any]
    params: Params
    seed: int

    @classmethod
    def of(cls, core: Any, corpus: Any, params: Params | None, seed: int) -> Bench:
        bench = cls(core, corpus, corpus.shards(None, seed), {}, seed)
        return replace(bench, params=params or bench.random(0))

    def rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, purpose))

    def random(self, purpose: int) -> Params:
        """Draw other parameters; entries that are zero in the bench's own stay zero."""
        rng = self.rng(purpose)
        drawn = {name: family.random(rng) for name, family in self.core.families.items()}
        for name in self.categorical() if self.params else ():
            drawn[name] = np.where(np.asarray(self.params[name]) == 0.0, 0.0, drawn[name])
        return drawn

    def expect(self, params: Params | None = None, how: EStep | None = None) -> Stats:
        """Do an E-step over the whole corpus, shard by shard."""
        chosen = self.params if params is None else params
        how = EStep() if how is None else how
        parts = (self.core.expect(chosen, shard, how) for shard in self.shards)
        total: Stats = reduce(add, parts)
        return total

    def categorical(self) -> list[str]:
        """List the families whose counts are event counts and whose parameters probabilities."""
        return [
            name
            for name, family in self.core.families.items()
            if isinstance(family, Categorical | SparseCategorical)
        ]

    def step(self, stats: Stats) -> float:
        """Return the finite-difference step; curvature grows with the square of item length."""
        total = sum(float(np.abs(np.asarray(stats.counts[n])).sum()) for n in self.categorical())
        return STEP / max(1.0, total / max(stats.items, 1.0))


def _scale(stats: Stats) -> float:
    """Return the typical size of a gradient of the log-likelihood."""
    return 1.0 + sum(float(np.abs(np.asarray(c)).sum()) for c in stats.counts.values())


def _same_bits(left: Stats, right: Stats) -> str | None:
    """Return the name of the first figure in which two E-steps differ by a bit; None if equal."""
    for name in left.counts:
        if np.asarray(left.counts[name]).tobytes() != np.asarray(right.counts[name]).tobytes():
            return name
    for name in ("log_likelihood", "score", "items", "tokens"):
        if getattr(left, name) != getattr(right, name):
            return name
    return None


# the laws


def counts_are_counts(bench: Bench) -> str:
    """Counts are finite, and numbers of events are not negative, however they are filled in."""
    for how in (EStep(), EStep(fill="hard"), EStep(fill="sample", stream=bench.seed)):
        stats = bench.expect(how=how)
        _check(np.isfinite(stats.log_likelihood), f"log-likelihood {stats.log_likelihood}")
        for name in stats.counts:
            counts = np.asarray(stats.counts[name])
            zeros = bench.core.families[name].zeros()
            _check(counts.shape == zeros.shape, f"{name} has counts of shape {counts.shape}")
            _check(np.all(np.isfinite(counts)), f"{name} has counts that are not finite")
            least = float(counts.min(initial=0.0)) if name in bench.categorical() else 0.0
            _check(least >= -1e-12, f"{name} has a {how.fill} count of {least:.3g}")
    return f"{len(bench.core.families)} families, soft, hard and sampled"


def posteriors_are_normalised(bench: Bench) -> str | None:
    """Where the model knows how many events there must be, the counts add up to that number."""
    if not any(bench.core.totals(shard) for shard in bench.shards):
        return None
    worst = 0.0
    for shard in bench.shards:
        for fill in ("soft", "hard", "sample"):
            counts = bench.core.expect(bench.params, shard, EStep(fill=fill)).counts
            for name, total in bench.core.totals(shard).items():
                found = float(np.asarray(counts[name]).sum())
                worst = max(worst, abs(found - total) / (1.0 + abs(total)))
                _check(worst <= 1e-9, f"{name} has {found:.10g} {fill} counts, not {total:.10g}")
    return f"within {worst:.1g}"


def gradient_is_fishers(bench: Bench) -> str:
    """Fisher's identity: ∂L(θ) = ∂Q(θ, θ_t) at θ = θ_t, along any direction of free coordinates."""
    families = bench.core.families
    stats = bench.expect()
    step, rng, worst = bench.step(stats), bench.rng(1), 0.0

    def at(direction: Mapping[str, Array], distance: float) -> Params:
        return {
            name: family.bound(
                family.free(bench.params[name]) + distance * direction[name], bench.params[name]
            )
            for name, family in families.items()
        }

    for _ in range(4):
        direction = {n: rng.normal(size=f.free(bench.params[n]).shape) for n, f in families.items()}
        ahead, behind = at(direction, step), at(direction, -step)
        score_only = EStep(score_only=True)
        slope = bench.expect(ahead, score_only).log_likelihood
        slope = (slope - bench.expect(behind, score_only).log_likelihood) / (2 * step)
        expected = expected_log(families, stats.counts, ahead)
        expected = (expected - expected_log(families, stats.counts, behind)) / (2 * step)
        worst = max(worst, abs(slope - expected) / _scale(stats))
        _check(
            worst <= 1e-5,
            f"along a random direction log-likelihood rises by {slope:.8g}, Q by {expected:.8g}",
        )
    return f"within {worst:.1g}"


def counts_are_derivatives(bench: Bench) -> str | None:
    """A count is ∂ log-likelihood / ∂ log θ of its entry alone; tempered counts likewise."""
    if not bench.categorical():
        return None
    worst = 0.0
    for beta in (1.0, 0.5):
        stats = bench.expect(how=EStep(temper=beta))
        step = bench.step(stats)
        rng = bench.rng(2)
        for name in bench.categorical():
            alive = np.flatnonzero(np.asarray(bench.params[name]))
            for entry in rng.permutation(alive)[:12].tolist():
                count = float(np.asarray(stats.counts[name]).reshape(-1)[entry])
                scores = []
                for by in (step, -step):  # its logarithm moved, its row left unnormalised
                    moved = np.array(bench.params[name], dtype=float)
                    moved.reshape(-1)[entry] *= np.exp(by)
                    how = EStep(temper=beta)
                    scores.append(bench.expect({**bench.params, name: moved}, how).score)
                slope = (scores[0] - scores[1]) / (2 * step)
                worst = max(worst, abs(slope - count) / _scale(stats))
                _check(
                    worst <= 1e-5,
                    f"{name}, entry {entry}, temper {beta}: count {count:.8g}, "
                    f"derivative {slope:.8g}",
                )
    return f"within {worst:.1g}"


def likelihood_is_bound_plus_gap(bench: Bench) -> str | None:
    """L(θ) = F(θ, θ_t) + KL, with KL ≥ 0 for any θ and θ_t, and KL = 0 where they meet.

    F = Q + H, where H is not negative, and the same whatever θ is looked at.
    """
    if bench.core.no_bound:
        return None
    least = np.inf
    for purpose in range(10, 14):
        here, there = bench.params, bench.random(purpose)
        for params, at in ((here, there), (there, here)):
            parts = decompose(bench.core, bench.corpus, params, at=at)
            size = 1.0 + abs(parts.log_likelihood)
            direct = bench.expect(params).log_likelihood
            _check(
                abs(parts.bound + parts.kl - direct) <= 1e-9 * size,
                f"bound {parts.bound:.10g} + gap {parts.kl:.10g} is not {direct:.10g}",
            )
            least = min(least, parts.kl)
            _check(parts.kl >= -1e-9 * size, f"the gap is {parts.kl:.3g}, below zero")
            touching = decompose(bench.core, bench.corpus, params, at=params).kl
            _check(abs(touching) <= 1e-9 * size, f"at its own point the gap is {touching:.3g}")
            own = decompose(bench.core, bench.corpus, at).entropy
            size += abs(own)
            _check(own >= -1e-9 * size, f"the entropy of the posterior is {own:.6g}, below zero")
            _check(
                abs(own - parts.entropy) <= 1e-9 * size,
                f"the entropy of one posterior is {own:.10g} and {parts.entropy:.10g}",
            )
    return f"least gap {least:.3g}"


def entropy_is_the_posteriors(bench: Bench) -> str | None:
    """Q = E[log p(x, z)] is the slope of log Σ_z p(x, z)^β at β = 1, and H = L − Q.

    Whatever an E-step puts into the log-likelihood must be in its counts, or in what it says to be
    beside them (`Stats.uncounted`): otherwise it would be taken for entropy.
    """
    if bench.core.no_bound:
        return None
    worst = 0.0
    for params in (bench.params, bench.random(15)):
        stats = bench.expect(params, EStep(theory=True))
        q = expected_log(bench.core.families, stats.counts, params) + stats.uncounted.expected
        of_priors = stats.score - stats.log_likelihood  # of what belongs to shards: not tempered

        def slope(step: float, at: Params = params, added: float = of_priors) -> float:
            ahead, behind = (
                beta * (bench.expect(at, EStep(temper=beta)).score - added)
                for beta in (1.0 + step, 1.0 - step)
            )
            return (ahead - behind) / (2 * step)

        step = 10.0 * bench.step(stats)
        found = (4.0 * slope(step / 2.0) - slope(step)) / 3.0
        entropy = stats.log_likelihood - q
        worst = max(worst, abs(found - q) / (1.0 + abs(q) + abs(stats.log_likelihood)))
        _check(
            worst <= 1e-6,
            f"Q is {q:.8g} by the counts, {found:.8g} by temper: an entropy of {entropy:.6g} is "
            f"{stats.log_likelihood - found:.6g}",
        )
    return f"within {worst:.1g}"


def soft_em_never_falls(bench: Bench) -> str | None:
    """Each step of EM raises the log-likelihood plus the log-prior, or leaves it unchanged."""
    families, params, rng = bench.core.families, bench.params, bench.rng(3)
    objectives = []
    for _ in range(8):
        stats = bench.expect(params)
        prior = sum(family.log_prior(params[name]) for name, family in families.items())
        objectives.append(stats.log_likelihood + prior)
        try:
            params = {
                name: family.maximise(stats.counts[name], params[name], rng)
                for name, family in families.items()
            }
        except LearnerError:
            return None  # the prior has no mode, so EM is not defined
    rises = np.diff(objectives)
    worst = float(rises.min())
    size = max(1.0, abs(objectives[int(rises.argmin())]))
    _check(worst >= -1e-9 * size, f"a step changed the objective by {worst:.3g}")
    return f"{objectives[0]:.6g} → {objectives[-1]:.6g}"


def hard_is_below_soft(bench: Bench) -> str:
    """The best hidden value alone cannot be more probable than all of them together."""
    soft, hard = bench.expect(), bench.expect(how=EStep(fill="hard"))
    _check(
        hard.score <= soft.log_likelihood + 1e-9 * (1.0 + abs(soft.log_likelihood)),
        f"hard {hard.score:.10g} > soft {soft.log_likelihood:.10g}",
    )
    return f"{hard.score:.6g} ≤ {soft.log_likelihood:.6g}"


def samples_agree(bench: Bench) -> str:
    """The mean of sampled counts is the soft count, within five standard errors.

    A hidden value that is drawn in no sample has no sample variance; so an allowance is added that
    lets a value be missed in up to five of all draws.
    """
    soft = bench.expect()
    draws = [
        bench.expect(how=EStep(fill="sample", samples=SAMPLES, stream=stream)).counts
        for stream in range(STREAMS)
    ]
    worst = 0.0
    for name in soft.counts:
        expected = np.asarray(soft.counts[name], dtype=float)
        sampled = np.array([np.asarray(counts[name], dtype=float) for counts in draws])
        an_item = np.abs(expected).sum() / max(soft.items, 1.0)
        error = sampled.std(axis=0, ddof=1) / np.sqrt(STREAMS) + an_item / (STREAMS * SAMPLES)
        away = np.abs(sampled.mean(axis=0) - expected) / np.where(error > 0.0, error, 1.0)
        worst = max(worst, float(away.max(initial=0.0)))
        entry = int(away.argmax()) if away.size else 0
        _check(
            worst <= 5.0,
            f"{name}, entry {entry}: sampled {sampled.mean(axis=0).reshape(-1)[entry]:.6g}, "
            f"soft {expected.reshape(-1)[entry]:.6g}, {worst:.3g} standard errors apart",
        )
    return f"within {worst:.2g} standard errors"


def shards_add_up(bench: Bench) -> str:
    """However the corpus is cut into shards, their sum is the same."""
    cut = replace(bench, shards=bench.corpus.shards(2, bench.seed))
    name, apart = _distance(cut.expect(), bench.expect())
    _check(apart <= 1e-9, f"{name} differs by {apart:.3g} of its size")
    return f"{len(bench.shards)} or {len(cut.shards)} shards, within {apart:.1g}"


def _distance(left: Stats, right: Stats) -> tuple[str, float]:
    """Return the figure in which two E-steps differ most, and by which fraction of its size."""
    worst = "", 0.0
    for name in (*right.counts, "log_likelihood", "score", "items", "tokens"):
        a, b = (
            np.asarray(stats.counts[name] if name in right.counts else getattr(stats, name))
            for stats in (left, right)
        )
        _check(a.shape == b.shape, f"{name} has the shape {a.shape}, and in other shards {b.shape}")
        apart = np.max(np.abs(a - b), initial=0.0, where=a != b)
        worst = max(
            worst, (name, float(apart / (1.0 + np.max(np.abs(b), initial=0.0)))), key=lambda w: w[1]
        )
    return worst


def many_shards_are_one(bench: Bench) -> str | None:
    """The sum over several shards is the E-step over all items at once, drawn values included.

    Each shard alone gives the same bits, whatever was computed before; and so does their sum,
    whichever blocks of 2^k neighbours are added up first, by this process or by another.
    """
    n = len(bench.corpus)
    shards = bench.corpus.shards(max(1, n // PARTS), bench.seed)
    if len(shards) < 2:
        return None
    together, worst = bench.corpus.shards(n, bench.seed), 0.0
    for fill in ("soft", "hard", "sample"):
        how = EStep(fill=fill, stream=bench.seed)
        parts = [bench.core.expect(bench.params, shard, how) for shard in shards]
        bench.expect(bench.random(6), how)
        for number in reversed(range(len(shards))):
            odd = _same_bits(parts[number], bench.core.expect(bench.params, shards[number], how))
            _check(
                odd is None,
                f"{odd} ({fill}) of one shard depends on what was computed before: an E-step may "
                "read its arguments alone",
            )
        before = [_freeze(stats) for stats in parts]
        total = tree_sum(parts)
        for stats, frozen in zip(parts, before, strict=True):
            odd = _same_bits(stats, frozen)
            _check(
                odd is None,
                f"{odd} ({fill}) of a shard is changed when it is added to that of another: adding "
                "must return new counts",
            )
        for size in (2, 4):
            blocks = [tree_sum(parts[i : i + size]) for i in range(0, len(parts), size)]
            odd = _same_bits(total, tree_sum(blocks))
            _check(odd is None, f"{odd} ({fill}) depends on which shards are added first")
        whole = tree_sum(bench.core.expect(bench.params, shard, how) for shard in together)
        name, apart = _distance(total, whole)
        worst = max(worst, apart)
        why = ": draws must be seeded by the stream and the item's number" * (fill == "sample")
        _check(
            apart <= 1e-9,
            f"{name} ({fill}) of {len(shards)} shards differs by {apart:.3g} of its size from that "
            f"of all items at once{why}",
        )
    return f"{len(shards)} shards, within {worst:.1g}"


def _freeze(stats: Stats) -> Stats:
    """Return a copy that does not share its counts."""
    return replace(stats, counts={n: np.array(np.asarray(c)) for n, c in stats.counts.items()})


def can_be_pickled(bench: Bench) -> str:
    """Core, shards and counts can be sent to another process, with the same bits afterwards."""
    core = _send(bench.core, "core")
    params = _send(dict(bench.params), "params")
    for number, shard in enumerate(bench.shards):
        received = _send(shard, f"shards[{number}]")
        for how in (EStep(), EStep(fill="hard"), EStep(fill="sample", stream=bench.seed)):
            here = bench.core.expect(bench.params, shard, how)
            there = _send(core.expect(params, received, how), "stats")
            odd = _same_bits(here, there)
            _check(
                odd is None,
                f"{odd} ({how.fill}) differs after pickling: what a pickle leaves out, the E-step "
                "must be able to compute again",
            )
    sizes = [len(pickle.dumps(shard)) for shard in bench.shards]
    return f"core {len(pickle.dumps(bench.core)):,} bytes, {len(sizes)} shards {sum(sizes):,} bytes"


def _send(value: Any, name: str) -> Any:
    """Return a copy of a value, made from its pickle."""
    try:
        sent = pickle.dumps(value)
    except Exception as error:
        raise BrokenError(_find_obstacle(value, name, error)) from error
    try:
        return pickle.loads(sent)
    except Exception as error:
        raise BrokenError(
            f"{name} can be pickled, but not read again: {type(error).__name__}: {error}; define "
            "__getstate__ and __setstate__, or __reduce__, so that they fit together"
        ) from error


def _find_obstacle(value: Any, name: str, error: Exception) -> str:
    """Say which part of a value cannot be pickled, and what to do about it."""
    seen: set[int] = set()
    while id(value) not in seen:
        seen.add(id(value))
        for part_name, part in _list_parts(value, name):
            try:
                pickle.dumps(part)
            except Exception as of_part:
                value, name, error = part, part_name, of_part
                break
    inside = "<locals>" in type(value).__qualname__
    if isinstance(value, FunctionType | type) and "<" in value.__qualname__:
        what = "class" if isinstance(value, type) else "function"
        kind = f"a lambda, or a {what} defined inside another function"
        return f"{name} is {kind}, and cannot be pickled: define it at the top level of a module"
    if inside:
        return (
            f"{name} cannot be pickled: its class {type(value).__qualname__} is defined inside a "
            "function; define it at the top level of a module"
        )
    return (
        f"{name}, a {type(value).__name__}, cannot be pickled ({error}): leave it out in "
        "__getstate__ and make it again when it is needed, as PickledWithoutCaches does for "
        "cached properties"
    )


def _list_parts(value: Any, name: str) -> Iterable[tuple[str, Any]]:
    """List what a value is made of, with the names by which its parts are found."""
    if isinstance(value, Mapping):
        yield from ((f"{name}[{key!r}]", part) for key, part in value.items())
        yield from ((f"a key of {name}", key) for key in value)
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"{name}[{number}]", part) for number, part in enumerate(value))
    elif not isinstance(value, type | FunctionType):
        state = getattr(value, "__dict__", {})
        own: Any = type(value).__getstate__
        if own is not object.__getstate__:
            state = value.__getstate__()
        if isinstance(state, Mapping):
            yield from ((f"{name}.{attribute}", part) for attribute, part in state.items())


def threads_do_not_matter(bench: Bench) -> str:
    """One, two and four threads give bit-identical results."""
    shards = bench.corpus.shards(2, bench.seed)
    inside = bench.core.threads_inside
    for fill in ("soft", "hard", "sample"):
        how = EStep(fill=fill, stream=bench.seed)
        runs = []
        for threads in (1, 2, 4):
            engine = Local(threads=threads)
            with engine.open(shards, threads_inside=inside) as session:
                runs.append(session.expect(bench.core.expect, bench.params, how))
        for threads, run in zip((2, 4), runs[1:], strict=True):
            odd = _same_bits(runs[0], run)
            _check(odd is None, f"{odd} ({fill}) differs between 1 and {threads} threads")
    return f"same bits with 1, 2 and 4 threads over {len(shards)} shards"


def expect_is_pure(bench: Bench) -> str:
    """`expect` has no side effects: repeated calls give the same bits, and inputs do not change."""
    bench = replace(bench, shards=bench.shards[:1])  # summing shards would hide a reused array
    before = {name: np.array(values) for name, values in bench.params.items()}
    for how in (EStep(), EStep(fill="hard"), EStep(fill="sample", stream=7)):
        first = bench.expect(how=how)
        kept = {name: np.array(np.asarray(c)) for name, c in first.counts.items()}
        bench.expect(bench.random(4), how)
        for name, counts in kept.items():
            whole = np.array_equal(counts, np.asarray(first.counts[name]))
            _check(whole, f"{name}: counts given back were changed by a later call")
        odd = _same_bits(first, bench.expect(how=how))
        _check(odd is None, f"{odd} ({how.fill}) differs when asked again")
    for name, values in before.items():
        whole = np.array_equal(values, np.asarray(bench.params[name]))
        _check(whole, f"the parameters of {name} were changed")
    return "same bits when asked again"


def tempering_flattens(bench: Bench) -> str:
    """β = 1 changes nothing; as β → 0 the posterior forgets the parameters."""
    odd = _same_bits(bench.expect(), bench.expect(how=EStep(temper=1.0)))
    _check(odd is None, f"{odd} differs at temper 1")
    how = EStep(temper=1e-7)
    here, there = bench.expect(how=how), bench.expect(bench.random(5), how)
    for name in here.counts:
        a, b = np.asarray(here.counts[name]), np.asarray(there.counts[name])
        worst = float(np.max(np.abs(a - b), initial=0.0) / (1.0 + np.max(np.abs(b), initial=0.0)))
        _check(worst <= 1e-2, f"{name}: near temper 0 counts still differ by {worst:.3g}")
    return "β = 1 neutral, β → 0 flat"


LAWS: dict[str, Callable[[Bench], str | None]] = {
    "counts are finite and not negative": counts_are_counts,
    "posteriors are normalised": posteriors_are_normalised,
    "Fisher's identity": gradient_is_fishers,
    "counts are derivatives": counts_are_derivatives,
    "L = F + KL": likelihood_is_bound_plus_gap,
    "entropy": entropy_is_the_posteriors,
    "soft EM never falls": soft_em_never_falls,
    "hard is below soft": hard_is_below_soft,
    "samples agree with posteriors": samples_agree,
    "shards add up": shards_add_up,
    "threads do not matter": threads_do_not_matter,
    "expect is pure": expect_is_pure,
    "tempering": tempering_flattens,
    "many shards are one": many_shards_are_one,
    "it can be pickled": can_be_pickled,
}


# running them


class LawError(SoftcountError, AssertionError):
    """A model breaks a law that every model must obey."""


@dataclass(frozen=True)
class Law:
    """The result for one law: whether it holds, and the figures that show it."""

    name: str
    passed: bool
    detail: str

    def __str__(self) -> str:
        return f"{'holds ' if self.passed else 'BROKEN'}  {self.name}: {self.detail}"


@dataclass(frozen=True)
class LawReport(Sequence[Law]):
    """The results for all laws that could be checked."""

    laws: tuple[Law, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.laws[index]

    def __len__(self) -> int:
        return len(self.laws)

    @property
    def failed(self) -> list[Law]:
        return [law for law in self.laws if not law.passed]

    @property
    def passed(self) -> bool:
        return not self.failed

    def raise_if_failed(self) -> None:
        """Raise `LawError` with every broken law, if there is one."""
        if self.failed:
            raise LawError(
                "\n".join(str(law) for law in self.failed),
                "the first broken law is the best place to start: later ones may follow from it",
            )

    def __str__(self) -> str:
        return "\n".join(str(law) for law in self.laws)

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def table(self) -> PrintedTable:
        """Return the laws as a table, which is how a report prints."""
        columns = {
            "holds": ["yes" if law.passed else "BROKEN" for law in self.laws],
            "figures": [law.detail for law in self.laws],
        }
        return PrintedTable(columns, {"law": [law.name for law in self.laws]})


def check_model(model: Any, data: Any, *, params: Params | None = None, seed: int = 0) -> LawReport:
    """Check every applicable law for ``model`` on ``data``, at ``params`` or at random parameters.

    ``model`` is an estimator: ``_bind(data)`` returns its core (``families`` and ``expect``) and
    the corpus. Laws about features it does not have (a file format, say) are skipped.

    >>> import softcount as sc
    >>> which, flip = sc.table("which"), sc.table("flip")
    >>> @sc.story
    ... def coins(tosses):
    ...     for z in "AB":
    ...         yield which[z], *(flip[z, x] for x in tosses)
    >>> report = sc.check_model(sc.StoryModel(coins), ["HHH", "TTT", "HTH"])
    >>> report.passed
    True
    """
    core, corpus = model._bind(data)
    bench = Bench.of(core, corpus, params, seed)
    laws = []
    for name, law in LAWS.items():
        try:
            detail = law(bench)
        except BrokenError as broken:
            laws.append(Law(name, False, str(broken)))
        else:
            if detail is not None:
                laws.append(Law(name, True, detail))
    laws.extend(_check_saving(model, data))
    return LawReport(tuple(laws))


def _check_saving(model: Any, data: Any) -> Iterator[Law]:
    """Check that a fitted model that can be saved gives the same scores after loading."""
    if not (hasattr(model, "save") and hasattr(model, "load") and hasattr(model, "params_")):
        return
    # what a file cannot hold (a story's code) is an argument of `load`, named like the attribute
    wanted = [
        name
        for name, parameter in inspect.signature(model.load).parameters.items()
        if name != "path" and parameter.kind is not parameter.VAR_KEYWORD
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.softcount"
        model.save(path)
        again = type(model).load(path, **{name: getattr(model, name) for name in wanted})
    before, after = np.asarray(model.score(data)), np.asarray(again.score(data))
    same = before.tobytes() == after.tobytes()
    yield Law("save and load", same, "same scores" if same else f"{before} became {after}")
