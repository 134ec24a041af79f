"""The laws that every model must obey, to be run on your own models too.

They need nothing but the model's interface: an E-step (`expect`) and its families. None of them
knows the right counts; together they leave wrong ones little room.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softcount.errors import SoftcountError
from softcount.laws import LAWS, Bench, BrokenError
from softcount.types import Params


class LawError(SoftcountError, AssertionError):
    """A model breaks a law that every model must obey."""


@dataclass(frozen=True)
class Law:
    """One law, whether it held, and the figures that show it."""

    name: str
    passed: bool
    detail: str

    def __str__(self) -> str:
        return f"{'holds ' if self.passed else 'BROKEN'}  {self.name}: {self.detail}"


@dataclass(frozen=True)
class Report(Sequence[Law]):
    """All laws that could be checked."""

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


def check_model(model: Any, data: Any, *, params: Params | None = None, seed: int = 0) -> Report:
    """Run every law that can be checked on ``model`` with ``data``, at random parameters or given.

    ``model`` is an estimator: ``bind(data)`` gives its core (``families`` and ``expect``) and the
    corpus. What it does not offer (a file format, say) is left out.

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
    core, corpus = model.bind(data)
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
    laws.extend(_saved(model, data))
    return Report(tuple(laws))


def _saved(model: Any, data: Any) -> Iterator[Law]:
    """A fitted model that can be saved scores the data the same when it has been loaded again."""
    if not (hasattr(model, "save") and hasattr(model, "load") and hasattr(model, "params_")):
        return
    # what a file cannot hold (a story's code) is asked for by the name it has in the model
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
