"""The aligner to begin with: both directions, which learn to agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any

from softcount.errors import LearnerError, shown
from softcount.fit import fit
from softcount.models.alignment.agreement import BACKWARD, FORWARD, AgreementCore, TwoWayPairs
from softcount.models.alignment.estimators import IBM1, IBM2, Diagonal, HMMAligner
from softcount.models.alignment.growth import Grown
from softcount.models.alignment.model import OneWay
from softcount.models.alignment.options import Options
from softcount.models.alignment.two_ways import TwoWays
from softcount.models.learnable import naming
from softcount.types import Array

MODELS: dict[str, Any] = {
    "ibm1": IBM1,
    "ibm2": IBM2,
    "diagonal": Diagonal,
    "hmm": HMMAligner,
}


@dataclass(eq=False, repr=False)
class Aligner(Options, TwoWays):
    """Both directions, which learn to agree (Liang, Taskar & Klein 2006).

    ``model``      "hmm", "diagonal", "ibm2" or "ibm1", for both directions
    ``agree``      False: each direction learns for itself
    ``warm_up``    so many steps of Model 1 come first, in agreement as well
    ``threshold``  links that are more probable than this, by the geometric mean of both directions
    ``settings``   more settings of the directions' models, such as {"p_null": 0.1}

    For the other settings see `IBM1`. A dictionary works both ways.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> Aligner().fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    model: str = "hmm"
    _: KW_ONLY
    agree: bool = True
    warm_up: int = 5
    threshold: float = 0.5
    smoothing: float = 0.0003
    stem: int | None = 4
    settings: dict[str, Any] | None = None

    @property
    def _name(self) -> str:
        return f"Aligner({self.model}{', agree' if self.agree else ''})"

    def _one_way(self, dictionary: Any) -> OneWay:
        """A direction's own estimator."""
        if self.model not in MODELS:
            raise LearnerError(
                f"model={shown(self.model)} is unknown", f"choose one of {', '.join(MODELS)}"
            )
        shared = {field.name: getattr(self, field.name) for field in fields(Options)}
        given = {**self._own_settings(), **shared, "dictionary": dictionary, "init": None}
        way: OneWay = MODELS[self.model](**given)
        return way

    def _own_settings(self) -> dict[str, Any]:
        """Settings that the model of a direction has and this one has not."""
        given = self.settings if self.settings is not None else {}
        if not isinstance(given, Mapping):
            raise LearnerError(f"settings={shown(given)}", 'write {"p_null": 0.2}')
        known = set(MODELS[self.model]._get_param_names()) - set(self._get_param_names())
        strange = sorted(str(name) for name in given if name not in known)
        if strange:
            raise LearnerError(
                f"settings: {self.model} has no setting {strange[0]!r} of its own",
                f"choose among {', '.join(sorted(known))}",
            )
        return dict(given)

    def start_values(self, core: AgreementCore, corpus: TwoWayPairs, init: Any) -> Any:
        ways = ((self.forward_, corpus.forward), (self.backward_, corpus.backward))
        starts = [
            way.start_values(own, pairs, "uniform" if init is None else init)
            for (way, pairs), (_, own) in zip(ways, core.ways, strict=True)
        ]
        if any(callable(start) for start in starts):
            raise LearnerError(f"init={init!r} is not known here", "'uniform', or leave it out")
        start = {
            way + name: values
            for (way, _), own in zip(core.ways, starts, strict=True)
            for name, values in own.items()
        }
        return self._warmed_up(start, corpus) if init is None and self.warm_up else start

    def _warmed_up(self, start: dict[str, Array], corpus: TwoWayPairs) -> dict[str, Array]:
        """Model 1 in both directions, in agreement; its first step has nothing to agree on yet."""
        forward = self.forward_.model1(corpus.forward)
        backward = self.backward_.model1(corpus.backward)
        for agree, steps in ((False, 1), (self.agree, self.warm_up - 1)):
            core = AgreementCore("warm-up", forward, backward, agree)
            core.usual_dials = {"max_iter": steps, "tol": 0.0}
            if steps:
                tables = {name: start[name] for name in core.families}
                with naming(corpus):
                    start |= fit(core, corpus, None, self.engine, init=tables).params
        return start

    def _learn_more(self, forward: Grown, backward: Grown) -> None:
        own = forward.remembering(), backward.remembering()
        core = AgreementCore(self._name, own[0], own[1], self.agree)
        corpus = TwoWayPairs(forward.corpus, backward.corpus)
        start = {
            name + table: values
            for name, way in ((FORWARD, forward), (BACKWARD, backward))
            for table, values in way.start.items()
        }
        found = self._run(core, corpus, self.learner, start, 0, {})
        for way in (forward, backward):
            way.forgetting()
        self.keep(AgreementCore(self._name, forward.core, backward.core, self.agree), corpus, found)
