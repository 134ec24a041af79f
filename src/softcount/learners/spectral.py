"""Learning from moments, without iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from softcount.learners.base import Learner, one_of

Method = Literal["tensor", "anchor"]
STARTS = {"tensor": "spectral", "anchor": "anchor"}


@dataclass(frozen=True, kw_only=True)
class Spectral(Learner):
    """Parameters solved for from moments of co-occurrence, for models that offer it.

    ``method``    'tensor': whitening and the tensor power method (Anandkumar, Ge, Hsu, Kakade &
                  Telgarsky 2014); 'anchor': words of one class alone (Arora et al. 2013)
    ``max_iter``  so many steps of EM after that; 0: the solution as it is

    With enough data from the model itself the solution is close to the truth, wherever EM would
    have got lost; on data that no such model wrote it may be poor. The same as a start for any
    learner: ``init="spectral"``, ``init="anchor"``.

    >>> print(Spectral(method="anchor"))
    Spectral(max_iter=0, tol=1e-06, method='anchor')
    """

    fewest_steps: ClassVar[int] = 0
    max_iter: int = 0
    method: Method = "tensor"

    def __post_init__(self) -> None:
        one_of("method", self.method, get_args(Method))
        super().__post_init__()

    @property
    def begins(self) -> str:
        return STARTS[self.method]
