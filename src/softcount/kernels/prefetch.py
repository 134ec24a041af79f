"""Memory that is asked for before it is needed.

A walk through the places of a word jumps about in the corpus: where it goes next is known long
before it gets there, but not to the processor.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from softcount.kernels.jit import njit
from softcount.kernels.lanes import INT32, typed_intrinsic
from softcount.types import Array

AHEAD = 4
"""Places that lie so far ahead are asked for."""
_LINE = 64
_BYTE = ir.IntType(8).as_pointer()


@typed_intrinsic
def ask(typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of an array's number ``index``; there need not be any."""
    signature = types.void(array, types.intp)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.bitcast(builder.gep(values.data, [args[1]]), _BYTE)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE, INT32, INT32, INT32])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        read, keep, data = (ir.Constant(INT32, number) for number in (0, 3, 1))
        builder.call(hint, [place, read, keep, data])
        return context.get_dummy_value()

    return signature, code


@njit
def prefetch(array: Array, first: int, count: int) -> None:
    """Ask for ``array[first : first + count]``."""
    for at in range(first, first + count, _LINE // array.itemsize):
        ask(array, at)
