"""Aligners made as the command line says, and learned from sentence pairs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from softcount.cli.align_options import ModelName, Precision
from softcount.cli.learner_names import LearnerName, learner_called

if TYPE_CHECKING:
    from softcount.corpus.bitext import Bitext
    from softcount.estimate import Estimate
    from softcount.learners import Learner
    from softcount.models.alignment.model import OneWay
    from softcount.models.alignment.two_ways import TwoWays
    from softcount.types import State

WITH_PRIOR = (LearnerName.VARIATIONAL_BAYES, LearnerName.STOCHASTIC_VB, LearnerName.GIBBS)
USUAL_PRIOR = 0.01
"""The prior of learners that need one, if no other is given; fast_align has the same."""

ALL_BUT_GIBBS = (ModelName.IBM1, ModelName.IBM2, ModelName.DIAGONAL, ModelName.HMM)
TAKEN_BY = {
    "p_null": (ModelName.DIAGONAL, ModelName.HMM, ModelName.GIBBS),
    "max_jump": (ModelName.HMM,),
    "warm_up": (ModelName.IBM2, ModelName.DIAGONAL, ModelName.HMM, ModelName.GIBBS),
    "tension": (ModelName.DIAGONAL,),
    "null": ALL_BUT_GIBBS,
    "stem": ALL_BUT_GIBBS,
}
"""Which models have which settings, where not all have."""
OPTIONS = {
    "p_null": "--p-null",
    "max_jump": "--max-jump",
    "warm_up": "--warm-up",
    "tension": "-T",
    "null": "--no-null",
    "stem": "--stem",
}
DTYPES = {Precision.DOUBLE: "float64", Precision.SINGLE: "float32"}


@dataclass(frozen=True)
class Choice:
    """Which aligner: a model for one direction, or for both, which may learn to agree.

    ``reverse``  source words come from target words
    """

    model: ModelName
    both: bool
    agree: bool = True
    reverse: bool = False

    @classmethod
    def given(
        cls, model: ModelName | None, both: bool, no_agree: bool, reverse: bool, symmetrised: bool
    ) -> Choice:
        """From the options; without a model, both directions."""
        two = model in (None, ModelName.GIBBS) or both or no_agree or symmetrised
        if reverse and two:
            raise typer.BadParameter("-r is for one direction alone: say which model, as in -m hmm")
        return cls(model or ModelName.HMM, two, not no_agree, reverse)

    def made(self, settings: Mapping[str, Any], own: Mapping[str, Any]) -> TwoWays | OneWay:
        """The aligner; ``own`` are settings that not all models have, None where not given."""
        from softcount.models import alignment

        given: dict[str, Any] = {name: x for name, x in own.items() if x is not None}
        for name in given:
            of_aligner = self.both and name == "warm_up"
            if self.model not in TAKEN_BY[name] and not of_aligner:
                fit = " or ".join(TAKEN_BY[name])
                raise typer.BadParameter(f"{OPTIONS[name]} is for -m {fit}, not for {self.model}")
        if self.model is ModelName.GIBBS:
            return alignment.GibbsAligner(**_sampling(settings), **given)
        if "stem" in given:
            given["stem"] = given["stem"] or None
        if not self.both:
            kinds: dict[ModelName, type[OneWay]] = {
                ModelName.IBM1: alignment.IBM1,
                ModelName.IBM2: alignment.IBM2,
                ModelName.DIAGONAL: alignment.Diagonal,
                ModelName.HMM: alignment.HMMAligner,
            }
            return kinds[self.model](**settings, **given)
        way: dict[str, Any] = {"agree": self.agree}
        for name in ("warm_up", "stem"):
            if name in given:
                way[name] = given.pop(name)
        way["settings"] = given or None
        return alignment.Aligner(self.model.value, **settings, **way)


def _sampling(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a sampler: it has a prior and sweeps, and is a learner by itself."""
    given = dict(settings)
    learner = given.pop("learner")
    del given["dtype"]  # a sampler counts
    if learner is not None and type(learner).__name__ != "EM":
        raise typer.BadParameter("-m gibbs is a learner by itself: leave out --learner and -v")
    if "smoothing" in given:
        given["prior"] = given.pop("smoothing")
    if learner is not None:
        given |= {"sweeps": learner.max_iter, "kept": min(2, learner.max_iter)}
    return given


def learner_for(name: LearnerName | None, max_iter: int | None) -> Learner | None:
    """The learner with the dials that were given; None: what aligners do if nothing is said."""
    if name is None and max_iter is None:
        return None
    from softcount.models.alignment.core import AlignmentCore

    if max_iter is None and name is not LearnerName.GIBBS:
        max_iter = AlignmentCore.usual_dials["max_iter"]
    return learner_called(name or LearnerName.EM, max_iter, None, None)


def dtype_for(precision: Precision | None, name: LearnerName | None) -> str:
    """The numbers of tables; those of learners with a prior may be too small for 32 bits."""
    usual = Precision.DOUBLE if name in WITH_PRIOR else Precision.SINGLE
    return DTYPES[precision or usual]


def prior_for(name: LearnerName | None, smoothing: float | None) -> dict[str, float]:
    """What to add to counts, if something was said of it."""
    if smoothing is None and name in WITH_PRIOR:
        smoothing = USUAL_PRIOR
    return {} if smoothing is None else {"smoothing": smoothing}


def learn(
    aligner: TwoWays | OneWay,
    pairs: Bitext,
    links: Sequence[Any] | None = None,
    *,
    verbose: bool = False,
) -> None:
    """Fit an aligner, with a line of progress, or of every step."""
    watch = Watch(verbose)
    try:
        aligner.fit(pairs, links=links, on_step=watch)
    finally:
        watch.end()
    if verbose:
        typer.echo(f"# {aligner.signature_}", err=True)


class Watch:
    """Says how steps go: one line that is written again if someone is watching, or one a step."""

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose
        self.watched = sys.stderr.isatty() and not verbose

    def begin(self, needed: Estimate) -> None:
        """Before the first step, what is to come."""
        if self.verbose:
            typer.echo(f"# {needed}", err=True)
        elif self.watched:
            sys.stderr.write(f"\r\x1b[K{needed}")
            sys.stderr.flush()

    def __call__(self, state: State) -> None:
        line = step_line(state)
        if self.verbose:
            typer.echo(line, err=True)
        elif self.watched:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    def end(self) -> None:
        if self.watched:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def step_line(state: State) -> str:
    """What is said of a step."""
    figures = f"perplexity {state.perplexity:,.3f}   entropy {state.entropy:.3f} bits"
    return f"step {state.step:>3}   {figures}   {state.seconds:.2f} s"
