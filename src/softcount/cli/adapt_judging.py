"""Methods learn from the files, and are judged by labels that they were not shown."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from softcount.cli.adapt_domains import TEXT, Domains
from softcount.cli.adapt_methods import CLASSES, Method
from softcount.cli.answers import called
from softcount.errors import SoftcountError

if TYPE_CHECKING:
    from softcount.adapt.base import Adapter
    from softcount.adapt.comparison import Result
    from softcount.show.adaptation import Judgement
    from softcount.types import Array

MOST_FOLDS = 5
DIGITS = 9
"""Accuracies that are the same in so many figures are the same."""


class Workshop:
    """Methods that learn from the domains of some files.

    ``vectorizer``  makes rows of texts
    ``faults``      of methods that could not learn from these: why
    """

    def __init__(self, domains: Domains, vectorizer: Any, seed: int) -> None:
        self.domains, self.vectorizer, self.seed = domains, vectorizer, seed
        self.faults: dict[Method, str] = {}
        self._fitted: dict[Method, tuple[Adapter, list[str]]] = {}

    def fitted(self, method: Method) -> tuple[Adapter, list[str]]:
        """A method that has learned from everything, and what it warned of."""
        if method not in self._fitted:
            domains, model = self.domains, self._made(method, self.vectorizer)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                model.fit(domains.texts, domains.labels, sample_domain=domains.numbers)
            told = [str(one.message).split("\n")[0] for one in caught]
            self._fitted[method] = model, list(dict.fromkeys(told))
        return self._fitted[method]

    def held_out(self, methods: Sequence[Method], on: str) -> Judgement | None:
        """How right methods are on labels of the source or the target that they did not see.

        None if there are too few labels to hold any out.
        """
        folds = self._folds(on)
        if not folds:
            return None
        results: list[Result] = []
        with Watch() as watch:
            for method in methods:
                try:
                    results += [
                        self._tried(method, draw, fold, watch) for draw, fold in enumerate(folds)
                    ]
                except SoftcountError as error:
                    self.faults[method] = error.message
        return self._told_held_out(results, on, len(folds))

    def beside_gold(
        self, methods: Sequence[Method], gold: Sequence[str | None]
    ) -> Judgement | None:
        """How right methods are on lines of the target without a label whose gold label is known;
        None if there are none."""
        from softcount.adapt.comparison import Comparison
        from softcount.show.adaptation import Judgement

        target = self.domains.target
        asked = [n for n in self.domains.lines if target.labels[n] is None and gold[n] is not None]
        if not asked:
            return None
        texts = target.texts(TEXT)
        results = []
        with Watch() as watch:
            for method in methods:
                watch(f"{method}: all lines")
                begun = time.process_time()
                try:
                    said = self.fitted(method)[0].predict([texts[n] for n in asked]).tolist()
                except SoftcountError as error:
                    self.faults[method] = error.message
                    continue
                right = sum(label == gold[n] for label, n in zip(said, asked, strict=True))
                seconds = time.process_time() - begun
                results.append(self._result(method, 0, right / len(asked), seconds))
        told = (
            f"Gold: accuracy on {_counted(len(asked), 'line')} of the target with a gold label; it "
            "had no part in the choice."
        )
        return Judgement("gold", Comparison(results), told, of="run")

    def _made(self, method: Method, vectorizer: Any) -> Adapter:
        from softcount.adapt.methods import usual_methods

        found = usual_methods(target_labels=True)[CLASSES[method]]
        found.vectorizer = vectorizer
        if "random_state" in found.get_params():
            found.set_params(random_state=self.seed)
        return found

    def _folds(self, on: str) -> list[tuple[Array, Array]]:
        """As many as the rarest label allows."""
        from softcount.adapt.folds import domain_folds

        domains, counts = self.domains, self.domains.labels_in(on)
        n = min(MOST_FOLDS, *counts.values()) if len(counts) > 1 else 0
        return domain_folds(domains.labels, domains.numbers, on, n, self.seed) if n > 1 else []

    def _tried(self, method: Method, draw: int, fold: tuple[Array, Array], watch: Watch) -> Result:
        """How right a method is on the second part of a fold, after learning from the first."""
        watch(f"{method}: fold {draw + 1}")
        train, test = fold
        X, labels, domain = self._rows
        begun = time.process_time()
        model = self._made(method, None)
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            model.fit(X[train], labels[train].tolist(), sample_domain=domain[train])
        right = (model.predict(X[test], sample_domain=domain[test]) == labels[test]).mean()
        return self._result(method, draw, float(right), time.process_time() - begun)

    @cached_property
    def _rows(self) -> tuple[Any, Array, Array]:
        """Matrix, labels and domains of all items: cut into words once, for all folds."""
        import numpy as np

        from softcount.corpus.texts import learn_words

        domains = self.domains
        labels = np.array(domains.labels, dtype=object)
        return learn_words(self.vectorizer, domains.texts), labels, np.array(domains.numbers)

    def _result(self, method: Method, draw: int, accuracy: float, seconds: float) -> Result:
        from softcount.adapt.comparison import Result

        source = "+".join(called(one.path) for one in self.domains.sources)
        target = called(self.domains.target.path)
        return Result(source, target, str(method), draw, accuracy, seconds, {})

    def _told_held_out(self, results: Sequence[Result], on: str, n_folds: int) -> Judgement:
        from softcount.adapt.comparison import Comparison
        from softcount.show.adaptation import Judgement

        found, n = Comparison(results), self.domains.labels_in(on).total()
        told = f"Held-out {on}: accuracy on {_counted(n, 'label')} of the {on}, held out in "
        told += f"{n_folds} folds; "
        if on == "source":
            told += "this is no measure of the target."
        else:
            # one right and one wrong more: else nothing would be sure where all are right
            p = (1 + n * max(map(found.accuracy, found.methods))) / (n + 2)
            told += f"the best is uncertain by about ±{math.sqrt(p * (1 - p) / (n + 2)):.3f}."
        return Judgement(f"held-out {on}", found, told, of_target=on == "target")


def best_of(judged: Judgement, usual: Method) -> Method:
    """The method that is right most often; of equals the usual one, else the first."""
    found = judged.comparison
    worth = {name: (round(found.accuracy(name), DIGITS), name == usual) for name in found.methods}
    return Method(max(worth, key=lambda name: worth[name]))


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


class Watch:
    """One line on stderr that says what is being tried; silent unless someone is watching."""

    def __call__(self, text: str) -> None:
        self._write(f"\r\x1b[K{text}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(text)
            sys.stderr.flush()
