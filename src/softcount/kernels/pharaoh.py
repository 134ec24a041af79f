"""Links written out as text, for many pairs at once."""

from __future__ import annotations

from softcount.kernels.jit import inline, njit
from softcount.types import Array

ZERO, DASH, SPACE, NEWLINE = 48, 45, 32, 10


@inline
def _put(number: int, out: Array, at: int) -> int:
    """Write the digits of a number, where there is room; gives the place behind them."""
    size, rest = 1, number // 10
    while rest > 0:
        size += 1
        rest //= 10
    if at + size <= len(out):
        rest = number
        for k in range(size):
            out[at + size - 1 - k] = ZERO + rest % 10
            rest //= 10
    return at + size


@inline
def _mark(letter: int, out: Array, at: int) -> int:
    if at < len(out):
        out[at] = letter
    return at + 1


@njit
def write_links(indptr: Array, source: Array, target: Array, out: Array) -> int:
    """How many letters the links ``i-j`` have, a line a pair; written as far as there is room."""
    at = 0
    for n in range(len(indptr) - 1):
        for k in range(indptr[n], indptr[n + 1]):
            if k > indptr[n]:
                at = _mark(SPACE, out, at)
            at = _put(source[k], out, at)
            at = _mark(DASH, out, at)
            at = _put(target[k], out, at)
        at = _mark(NEWLINE, out, at)
    return at
