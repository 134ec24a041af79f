"""What goes to another process: pickles, with the contents of large arrays beside them.

Models, shards and parameters are pickled by reference to their classes. What cannot be found that
way (a model written in the user's script or notebook, a function inside a function) is pickled by
value, with cloudpickle.
"""

from __future__ import annotations

import copyreg
import pickle
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from types import ModuleType
from typing import Any

import numpy as np

from softcount.core.errors import SoftcountError, brief
from softcount.core.types import Array, Params

BESIDE = 1 << 14
"""Arrays of at least this many bytes stay outside of the pickle, and are not copied."""

CANNOT = (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError)
"""Errors that pickling raises for what cannot be pickled."""


@dataclass(frozen=True)
class Packed:
    """A pickle, and the contents of large arrays, in the order in which it refers to them."""

    main: bytes
    beside: list[Any]

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return len(self.main) + sum(memoryview(part).nbytes for part in self.beside)

    @property
    def digest(self) -> str:
        """A name for it: equal pickles have equal names."""
        total = blake2b(self.main, digest_size=16)
        for part in self.beside:
            total.update(memoryview(part).cast("B"))
        return total.hexdigest()

    def load(self) -> Any:
        return pickle.loads(self.main, buffers=self.beside)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Packed, (self.main, [pickle.PickleBuffer(part) for part in self.beside])


def pack(value: Any, what: str = "this") -> Packed:
    """Pickle a value; raise a `SoftcountError` if that is not possible.

    ``what``  what it is, for the message
    """
    try:
        packed = _pack(value, pickle.Pickler)
        # classes of a script cannot be found by their names in another process
        if b"__main__" not in packed.main:
            return packed
    except CANNOT as error:
        reason: Exception | None = error
    else:
        reason = None
    by_value = _find_cloudpickle()
    if by_value is None and reason is None:
        return packed
    try:
        assert by_value is not None
        return _pack(value, by_value.Pickler)
    except Exception as error:
        raise SoftcountError(
            f"{what} cannot be sent to another process: {brief(str(reason or error), 200)}",
            "what it refers to must be found by name: define classes and functions at the top "
            "level of a module, and keep open files, locks and the like out of them",
        ) from (reason or error)


def _pack(value: Any, pickler: Any) -> Packed:
    beside: list[Any] = []

    def keep_beside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < BESIDE:
            return True  # inside
        beside.append(raw)
        return False

    more = getattr(pickler, "dispatch_table", {})
    table = {**copyreg.dispatch_table, **more, np.ndarray: _reduce_array}
    own = type(pickler.__name__, (pickler,), {"dispatch_table": table})
    file = BytesIO()
    own(file, protocol=5, buffer_callback=keep_beside).dump(value)
    return Packed(file.getvalue(), beside)


def _reduce_array(array: Array) -> Any:
    """Reduce an array such that the order of its axes in memory stays: sums may depend on it."""
    flags = array.flags
    if flags.c_contiguous or flags.f_contiguous or array.dtype.hasobject:
        return array.__reduce_ex__(5)
    packed, axes = memory_order(array)
    return np.transpose, (packed, np.argsort(axes).tolist())


def memory_order(array: Array) -> tuple[Array, list[int]]:
    """Return an array with its axes in the order in which they are in memory, contiguous; and them.

    >>> packed, axes = memory_order(np.zeros((2, 3, 4)).transpose(1, 2, 0))
    >>> packed.shape, axes
    ((2, 3, 4), [2, 0, 1])
    """
    axes = sorted(range(array.ndim), key=lambda axis: (-abs(array.strides[axis]), axis))
    return np.asarray(array.transpose(axes), order="C"), axes


def _find_cloudpickle() -> Any:
    """Return cloudpickle, which scikit-learn's joblib brings along, or None."""
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        try:
            return __import__(name, fromlist=["Pickler"])
        except ImportError:
            continue
    return None


def describe(error: BaseException) -> str:
    """Say what an exception says, with its class."""
    return f"{type(error).__name__}: {error}"


def sendable(error: BaseException) -> BaseException:
    """Return an exception, or if it cannot be sent to another process, one that says the same."""
    try:
        pack(error).load()
    except Exception:
        return SoftcountError(describe(error))
    return error


class Functions:
    """The functions of a session's calls, each packed once.

    Methods of the same model share it: the model is sent once, and a method goes by its name.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Packed, str]] = {}

    def name(self, function: Callable[..., Any]) -> tuple[str, str]:
        """Return the name of what must be sent, and the name of the method of it, or ""."""
        owner = getattr(function, "__self__", None)
        is_method = owner is not None and not isinstance(owner, type | ModuleType)
        sent = owner if is_method else function
        if id(sent) not in self._known:  # kept alive here, so that no other gets the same id
            kind = type(sent).__name__ if is_method else getattr(sent, "__name__", "the function")
            packed = pack(sent, kind)
            self._known[id(sent)] = sent, packed, packed.digest
        method = function.__name__ if is_method else ""
        return self._known[id(sent)][2], method

    def packed(self, digest: str) -> Packed:
        """Return what has this name."""
        return next(packed for _, packed, own in self._known.values() if own == digest)


def find_method(sent: Any, method: str) -> Callable[..., Any]:
    """Return the function that `Functions.name` names, where it was sent to."""
    found: Callable[..., Any] = getattr(sent, method) if method else sent
    return found


def plain_params(params: Params | None) -> dict[str, Array]:
    """Return parameters as arrays: some are tables that are computed on access."""
    return {} if params is None else {name: np.asarray(params[name]) for name in params}


def checksum(array: Array) -> int:
    """Return a checksum of an array: one that is the same object may have been written to."""
    return zlib.crc32(array.ravel(order="K").view(np.uint8).data)


def is_lazy(shards: Sequence[Any]) -> bool:
    """Return whether a sequence makes shards on access, so that it is sent as it is."""
    return not isinstance(shards, list | tuple)
