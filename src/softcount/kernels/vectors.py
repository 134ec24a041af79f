"""All code of this package that is written in LLVM's own instructions: sums over vectors.

LLVM does not vectorise a sum unless it may reorder it, and allowing that (fastmath) makes the
result depend on the machine's vector width. So the order of every sum is written down here, `WIDTH`
lanes at a time: the same bits on every machine, at the speed of its widest registers.

Each function below is stated in plain Python, which says what it computes and in which order; the
decorator `vectorised` names the function that writes its LLVM. Inside compiled code the name stands
for the LLVM. The plain bodies are in `TWINS`; a test compiles them and compares, bit by bit.

Conventions. Matrices are C-contiguous, float64 or float32, and their number of columns is a
multiple of `WIDTH` (pad with zeros: `padded_width`). ``fma`` is a · b + c rounded once. The
functions whose names say ``max`` have the largest product in place of the sum of products, for best
paths; what they compare with first is zero.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from softcount.core.types import Array
from softcount.kernels.jit import DISABLE_JIT, njit

F = TypeVar("F", bound=Callable[..., Any])
Index = int | np.integer[Any]
Arguments = SimpleNamespace
"""The arguments of a function by their names: arrays are `_Matrix` or `_Vector`, numbers LLVM
values."""
Emit = Callable[[Any, Arguments], Any]
"""Writes the LLVM of a function, given an LLVM builder and the function's arguments; gives the LLVM
value of the result."""
Join = Callable[[Any, Any, Any, Any], Any]
"""How a product joins what was there: (builder, factor, factor, before)."""

WIDTH = 8
"""Lanes of a vector."""
ROWS_AT_ONCE = 6
"""Rows that a product of matrices takes at a time: `multiply_panels`, `multiply_table`."""
COLUMNS_AT_ONCE = 4
"""Columns of the left matrix that a product of columns takes at a time: `multiply_columns`."""
SHIFTS_AT_ONCE = 4
"""Shifts that `shifted_dots` takes at a time."""

_REGISTERS = 12  # sums of a matrix product side by side: they hide the adder's latency, and fit
_WEIGHTED_REGISTERS = 8  # the same, of weighted sums of consecutive rows
_LISTED_VECTORS = 3  # the same, of weighted sums with strides
_UNROLL = 4  # the same, of sums over one row
_LINE = 64  # bytes in a cache line

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_BYTE = ir.IntType(8).as_pointer()

TWINS: dict[str, tuple[Any, Callable[..., Any]]] = {}
"""By name: the function for compiled code, and the plain body that it must agree with."""


def padded_width(n: int) -> int:
    """The columns that a row of n numbers has when it is padded to whole vectors.

    >>> padded_width(1), padded_width(8), padded_width(45)
    (8, 8, 48)
    """
    return -(-n // WIDTH) * WIDTH


def table_pitch(rows: int, width: int) -> int:
    """The numbers that a table (rows, width) takes up as one row of a matrix: a vector more than it
    has, for rows that are a power of two apart would push each other out of the cache."""
    return rows * width + WIDTH


def empty_rows(n: int, width: int, dtype: Any = np.float64) -> Array:
    """An array (n, width), not initialised, that begins where a cache line does.

    Rows of whole vectors then are whole cache lines. Where they straddle two, reading rows at
    random places takes half as long again.
    """
    kind = np.dtype(dtype)
    spare = _LINE // kind.itemsize
    memory = np.empty(n * width + spare, kind)
    first = -memory.ctypes.data % _LINE // kind.itemsize
    return memory[first : first + n * width].reshape(n, width)


def panels(matrix: Array) -> Array:
    """A matrix cut into panels one vector wide, one after the other: `multiply_panels` reads them
    in order.

    >>> panels(np.arange(32.0).reshape(2, 16))[:, 0]
    array([ 0., 16.,  8., 24.])
    """
    cut = matrix.reshape(len(matrix), -1, WIDTH).transpose(1, 0, 2)
    return np.ascontiguousarray(cut).reshape(-1, WIDTH)


def vectorised(emit: Emit, name: str = "") -> Callable[[F], F]:
    """Make a function whose compiled form is the LLVM that ``emit`` writes.

    Its annotations say its types: ``int`` is a machine integer, ``float`` a number of the kind that
    the first argument of floats holds. Its ``name`` is that of the plain body, if none is given:
    functions that differ in one step (a sum of products, or the largest) have one body.
    """

    def decorate(plain: F) -> F:
        plain.__name__ = name or plain.__name__
        if DISABLE_JIT:  # what would be compiled runs as Python, and LLVM does not
            return plain
        own = inspect.signature(plain)
        annotations = [parameter.annotation for parameter in own.parameters.values()]

        def step(typing: Any, *given: Any) -> Any:
            numbers = (getattr(kind, "dtype", kind) for kind in given)
            number = next((kind for kind in numbers if isinstance(kind, types.Float)), None)
            kinds: dict[str, Any] = {
                "int": types.intp,
                "Index": types.intp,
                "float": number,
                "None": types.void,
            }
            wanted = [kinds.get(a, k) for a, k in zip(annotations, given, strict=True)]
            return kinds[own.return_annotation](*wanted), code

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            triples = zip(own.parameters, signature.args, args, strict=True)
            given = {n: _wrap_argument(context, builder, kind, value) for n, kind, value in triples}
            result = emit(builder, Arguments(**given))
            return context.get_dummy_value() if result is None else result

        first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        step.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[first, *own.parameters.values()]
        )
        step.__name__ = plain.__name__
        function: Any = intrinsic(step)
        function.__doc__ = plain.__doc__
        TWINS[plain.__name__] = function, plain
        return function  # type: ignore[no-any-return]

    return decorate


# What LLVM is written with.


def _const(value: int) -> ir.Constant:
    return ir.Constant(_INT64, value)


def _zeros(vector: Any) -> ir.Constant:
    return ir.Constant(vector, [0.0] * WIDTH)


def _splat(builder: Any, number: Any) -> Any:
    """The same number in every lane."""
    kind = ir.VectorType(number.type, WIDTH)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, _const(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INT32, WIDTH), [0] * WIDTH))


def _larger(builder: Any, left: Any, right: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", left, right), left, right)


def _smaller(builder: Any, left: Any, right: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", left, right), left, right)


def _add(builder: Any, left: Any, right: Any) -> Any:
    return builder.fadd(left, right)


def _multiply_add(builder: Any, left: Any, right: Any, more: Any) -> Any:
    """Compute left · right + more, rounded once: faster, with the same bits on every machine."""
    kind = ir.FunctionType(left.type, [left.type] * 3)
    is_vector = isinstance(left.type, ir.VectorType)
    element = left.type.element if is_vector else left.type
    bits = "f64" if isinstance(element, ir.DoubleType) else "f32"
    name = f"llvm.fma.v{WIDTH}{bits}" if is_vector else f"llvm.fma.{bits}"
    return builder.call(
        cgutils.get_or_insert_function(builder.module, kind, name), [left, right, more]
    )


def _largest(builder: Any, factor: Any, value: Any, before: Any) -> Any:
    return _larger(builder, builder.fmul(factor, value), before)


def _fold(builder: Any, vector: Any, combine: Callable[[Any, Any, Any], Any] = _add) -> Any:
    """All lanes combined into one number, by halving."""
    width = WIDTH
    while width > 1:
        width //= 2
        low, high = (
            builder.shuffle_vector(
                vector,
                vector,
                ir.Constant(ir.VectorType(_INT32, width), list(range(first, first + width))),
            )
            for first in (0, width)
        )
        vector = combine(builder, low, high)
    return builder.extract_element(vector, _const(0))


def _places(builder: Any, first: Any, count: int) -> list[Any]:
    """first, first + 1, …: ``count`` of them."""
    return [builder.add(first, _const(c)) for c in range(count)]


def _sums(builder: Any, values: list[Any]) -> list[Any]:
    """Places for running sums, which begin with these values; LLVM keeps them in registers."""
    found = [cgutils.alloca_once(builder, value.type) for value in values]
    for value, place in zip(values, found, strict=True):
        builder.store(value, place)
    return found


def _add_to(builder: Any, place: Any, value: Any) -> None:
    builder.store(builder.fadd(builder.load(place), value), place)


class _Array:
    """An array whose numbers are read and written one by one, or `WIDTH` at a time."""

    def __init__(self, builder: Any, number: Any, data: Any) -> None:
        self.builder, self.data, self.number = builder, data, number
        self.vector = ir.VectorType(number, WIDTH)
        self.itemsize = number.width // 8 if isinstance(number, ir.IntType) else 4
        if isinstance(number, ir.DoubleType):
            self.itemsize = 8

    def load_vector(self, start: Any, at: Any) -> Any:
        """Vector ``at`` of a row of vectors."""
        return self.builder.load(self.builder.gep(start, [at]), align=self.itemsize)

    def store_vector(self, value: Any, start: Any, at: Any) -> None:
        self.builder.store(value, self.builder.gep(start, [at]), align=self.itemsize)


class _Vector(_Array):
    """A 1-D array."""

    def place(self, at: Any) -> Any:
        return self.builder.gep(self.data, [at])

    def load(self, at: Any) -> Any:
        return self.builder.load(self.place(at))

    def store(self, value: Any, at: Any) -> None:
        self.builder.store(value, self.place(at))

    def index(self, at: Any) -> Any:
        """The number there, as the number of a row."""
        value = self.load(at)
        return value if value.type == _INT64 else self.builder.zext(value, _INT64)

    def vectors(self, first: Any) -> Any:
        """The numbers from ``first`` on as vectors."""
        return self.builder.bitcast(self.place(first), self.vector.as_pointer())


class _Matrix(_Array):
    """A 2-D array, seen as rows of vectors; ``n_vectors`` in each row."""

    def __init__(self, builder: Any, number: Any, data: Any, shape: Any) -> None:
        super().__init__(builder, number, data)
        self.n_rows, self.n_columns = cgutils.unpack_tuple(builder, shape, 2)
        self.n_vectors = builder.udiv(self.n_columns, _const(WIDTH))
        self.base = builder.bitcast(data, self.vector.as_pointer())

    def row(self, index: Any) -> Any:
        """Where a row's vectors begin."""
        return self.builder.gep(self.base, [self.builder.mul(index, self.n_vectors)])

    def rows(self, first: Any, height: int) -> list[Any]:
        """Where each of some consecutive rows begins."""
        return [self.row(index) for index in _places(self.builder, first, height)]

    def from_row(self, first: Any) -> None:
        """Count rows from there on."""
        self.base = self.row(first)

    def as_table(self, row: Any, n_vectors: Any) -> None:
        """Use one row of the matrix as a table, whose rows follow one another within it."""
        self.base, self.n_vectors = self.row(row), n_vectors

    def element(self, start: Any, k: Any) -> Any:
        """Number k of the row that begins there."""
        single = self.builder.bitcast(start, self.number.as_pointer())
        return self.builder.load(self.builder.gep(single, [k]))


def _wrap_argument(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """An argument as writers of LLVM see it."""
    if not isinstance(kind, types.Array):
        return value
    array = context.make_array(kind)(context, builder, value)
    number = context.get_value_type(kind.dtype)
    if kind.ndim == 1:
        return _Vector(builder, number, array.data)
    return _Matrix(builder, number, array.data, array.shape)


def _in_blocks(builder: Any, n: Any, block: Callable[[Any, int], None], size: int) -> None:
    """Cover n vectors by blocks of ``size`` and one block of what is left."""
    whole = builder.mul(builder.udiv(n, _const(size)), _const(size))
    with cgutils.for_range_slice(builder, _const(0), whole, _const(size)) as (first, _):
        block(first, size)
    left = builder.sub(n, whole)
    for count in range(1, size):
        with builder.if_then(builder.icmp_unsigned("==", left, _const(count))):
            block(whole, count)


def _by_height(builder: Any, n: Any, block: Callable[[Any, int], None]) -> None:
    """Cover n rows by blocks of `ROWS_AT_ONCE`, and single rows for what is left."""
    tall = _const(ROWS_AT_ONCE)
    whole = builder.sub(n, builder.srem(n, tall))
    with cgutils.for_range_slice(builder, _const(0), whole, tall) as (first, _):
        block(first, ROWS_AT_ONCE)
    with cgutils.for_range_slice(builder, whole, n, _const(1)) as (first, _):
        block(first, 1)


def _block_width(vector: Any, height: int) -> int:
    """How many vectors of each row go side by side; many would take long to compile."""
    registers = 2 if isinstance(vector.element, ir.DoubleType) else 1
    return min(max(1, _REGISTERS // (height * registers)), COLUMNS_AT_ONCE)


def _sum_products(
    right: _Matrix,
    n: Any,
    at: Callable[[Any], list[Any]],
    number: Callable[[int, Any], Any],
    before: list[list[Any]],
    join: Join,
) -> list[list[Any]]:
    """``before[r] + Σ_k number(r, k) · right[k]`` for k < n, or whatever joins products to sums.

    ``at(k)`` says where the vectors of row k are that belong to this block.
    """
    builder = right.builder
    sums = [_sums(builder, row) for row in before]
    with cgutils.for_range(builder, n) as loop:
        values = [right.load_vector(place, _const(0)) for place in at(loop.index)]
        for r, own in enumerate(sums):
            factor = _splat(builder, number(r, loop.index))
            for value, total in zip(values, own, strict=True):
                builder.store(join(builder, factor, value, builder.load(total)), total)
    return [[builder.load(total) for total in own] for own in sums]


def _multiply(
    right: _Matrix,
    n: Any,
    begin: Any,
    number: Callable[[int, Any], Any],
    before: list[list[Any]],
    join: Join,
) -> list[list[Any]]:
    """`_sum_products` of the vectors of each row from ``begin`` on."""
    builder = right.builder

    def at(k: Any) -> list[Any]:
        row = builder.gep(right.base, [builder.add(builder.mul(k, right.n_vectors), begin)])
        return [builder.gep(row, [_const(c)]) for c in range(len(before[0]))]

    return _sum_products(right, n, at, number, before, join)


# One row at a time.


@vectorised(lambda builder, a: _multiply_add(builder, a.left, a.right, a.more))
def fma(left: float, right: float, more: float) -> float:
    """left · right + more, rounded once; the twin rounds twice, and all other twins call `fma`."""
    return left * right + more


@njit
def _keep_larger(left: float, right: float, more: float) -> float:
    """What the twins of functions of the largest product have in place of `fma`."""
    return max(more, left * right)


@njit
def _add_lanes(lanes: Array) -> Any:
    """The sum of `WIDTH` numbers in the order of all twins, by halving."""
    a, b, c, d = lanes[0] + lanes[4], lanes[1] + lanes[5], lanes[2] + lanes[6], lanes[3] + lanes[7]
    return (a + c) + (b + d)


def _emit_extreme(combine: Callable[[Any, Any, Any], Any]) -> Emit:
    def emit(builder: Any, a: Arguments) -> Any:
        row = a.matrix.row(a.i)
        (best,) = _sums(builder, [a.matrix.load_vector(row, _const(0))])
        with cgutils.for_range(builder, a.matrix.n_vectors) as loop:
            value = a.matrix.load_vector(row, loop.index)
            builder.store(combine(builder, value, builder.load(best)), best)
        return _fold(builder, builder.load(best), combine)

    return emit


@vectorised(_emit_extreme(_larger))
def row_max(matrix: Array, i: int) -> float:
    """The largest number of ``matrix[i]``."""
    return matrix[i].max()  # type: ignore[no-any-return]


@vectorised(_emit_extreme(_smaller))
def row_min(matrix: Array, i: int) -> float:
    """The smallest number of ``matrix[i]``."""
    return matrix[i].min()  # type: ignore[no-any-return]


def _emit_row_dot(builder: Any, a: Arguments) -> Any:
    here, there = a.left.row(a.i), a.right.row(a.j)
    sums = _sums(builder, [_zeros(a.left.vector)] * _UNROLL)

    def block(first: Any, count: int) -> None:
        for place, total in zip(_places(builder, first, count), sums[:count], strict=True):
            x, y = a.left.load_vector(here, place), a.right.load_vector(there, place)
            builder.store(_multiply_add(builder, x, y, builder.load(total)), total)

    _in_blocks(builder, a.left.n_vectors, block, _UNROLL)
    first, second, third, fourth = (builder.load(total) for total in sums)
    return _fold(builder, builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth)))


@vectorised(_emit_row_dot)
def row_dot(left: Array, i: int, right: Array, j: int) -> float:
    """``left[i] · right[j]``, each step an fma."""
    sums = np.zeros((_UNROLL, WIDTH), left.dtype)
    for k in range(left.shape[1]):
        v, lane = k // WIDTH % _UNROLL, k % WIDTH
        sums[v, lane] = fma(left[i, k], right[j, k], sums[v, lane])
    return _add_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]))  # type: ignore[no-any-return]


def _emit_add_scaled_row(builder: Any, a: Arguments) -> None:
    here, there, factor = a.out.row(a.o), a.rows.row(a.i), _splat(builder, a.scale)

    def block(first: Any, count: int) -> None:
        for place in _places(builder, first, count):
            more, before = a.rows.load_vector(there, place), a.out.load_vector(here, place)
            a.out.store_vector(_multiply_add(builder, factor, more, before), here, place)

    _in_blocks(builder, a.out.n_vectors, block, _UNROLL)


@vectorised(_emit_add_scaled_row)
def add_scaled_row(out: Array, o: int, scale: float, rows: Array, i: int) -> None:
    """``out[o] += scale · rows[i]``, each an fma."""
    for k in range(out.shape[1]):
        out[o, k] = fma(scale, rows[i, k], out[o, k])


def _emit_set_scaled_row(builder: Any, a: Arguments) -> None:
    here, there, factor = a.out.row(a.o), a.rows.row(a.i), _splat(builder, a.scale)
    with cgutils.for_range(builder, a.rows.n_vectors) as loop:
        value = a.rows.load_vector(there, loop.index)
        a.out.store_vector(builder.fmul(factor, value), here, loop.index)


@vectorised(_emit_set_scaled_row)
def set_scaled_row(out: Array, o: int, scale: float, rows: Array, i: int) -> None:
    """``out[o] = scale · rows[i]``, as far as the rows of ``rows`` go."""
    for k in range(rows.shape[1]):
        out[o, k] = scale * rows[i, k]


# Rows that a list names: the words of a document, the alternatives of a node in a circuit.


def _emit_add_listed_rows(builder: Any, a: Arguments) -> None:
    out, rows, target = a.out, a.rows, a.out.row(a.o)

    def block(begin: Any, count: int) -> None:
        places = _places(builder, begin, count)
        sums = _sums(builder, [out.load_vector(target, place) for place in places])
        with cgutils.for_range_slice(builder, a.first, a.last, _const(1)) as (at, _):
            source = builder.gep(rows.row(a.listed.index(at)), [begin])
            factor = _splat(builder, a.weights.load(at))
            for c, total in enumerate(sums):
                value = rows.load_vector(source, _const(c))
                _add_to(builder, total, builder.fmul(factor, value))
        for total, place in zip(sums, places, strict=True):
            out.store_vector(builder.load(total), target, place)

    _in_blocks(builder, out.n_vectors, block, _UNROLL)


@vectorised(_emit_add_listed_rows)
def add_listed_rows(
    out: Array, o: int, rows: Array, listed: Array, weights: Array, first: int, last: int
) -> None:
    """``out[o] += Σ_a weights[a] · rows[listed[a]]`` for first ≤ a < last; rows are as wide as
    those of ``out``, and may be other rows of it."""
    for k in range(out.shape[1]):
        for a in range(first, last):
            out[o, k] += weights[a] * rows[listed[a], k]


def _emit_add_listed_dots(builder: Any, a: Arguments) -> None:
    here = a.left.row(a.row)

    def block(begin: Any, count: int) -> None:
        held = [a.left.load_vector(here, place) for place in _places(builder, begin, count)]
        with cgutils.for_range_slice(builder, a.first, a.last, _const(1)) as (at, _):
            source = builder.gep(a.right.row(a.listed.index(at)), [begin])
            products = [
                builder.fmul(value, a.right.load_vector(source, _const(c)))
                for c, value in enumerate(held)
            ]
            while len(products) > 1:
                pairs = zip(products[::2], products[1::2], strict=False)
                odd = products[-1:] if len(products) % 2 else []
                products = [builder.fadd(x, y) for x, y in pairs] + odd
            scaled = builder.fmul(a.weights.load(at), _fold(builder, products[0]))
            a.out.store(builder.fadd(a.out.load(at), scaled), at)

    _in_blocks(builder, a.left.n_vectors, block, _UNROLL)


@vectorised(_emit_add_listed_dots)
def add_listed_dots(
    out: Array,
    left: Array,
    row: int,
    right: Array,
    listed: Array,
    weights: Array,
    first: int,
    last: int,
) -> None:
    """``out[a] += weights[a] · (left[row] · right[listed[a]])`` for first ≤ a < last, four vectors
    of the rows at a time."""
    block, columns = _UNROLL * WIDTH, left.shape[1]
    for begin in range(0, columns, block):
        for a in range(first, last):
            vectors = np.zeros((_UNROLL, WIDTH))
            for k in range(begin, min(begin + block, columns)):
                product = left[row, k] * right[listed[a], k]
                vectors[(k - begin) // WIDTH, k % WIDTH] = product
            lanes = (vectors[0] + vectors[1]) + (vectors[2] + vectors[3])
            out[a] += weights[a] * _add_lanes(lanes)


# Memory that is asked for before it is needed: where a walk through the places of a word goes next
# is known long before it gets there, but not to the processor.


def _ask(builder: Any, place: Any, write: int) -> None:
    """Ask for the cache line of an address, which is not to be pushed out soon."""
    kind = ir.FunctionType(ir.VoidType(), [_BYTE, _INT32, _INT32, _INT32])
    hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    hints = [ir.Constant(_INT32, number) for number in (write, 3, 1)]  # 3: keep; 1: data
    builder.call(hint, [builder.bitcast(place, _BYTE), *hints])


def _emit_prefetch_row(builder: Any, a: Arguments) -> None:
    start = builder.gep(a.matrix.data, [builder.mul(a.i, a.matrix.n_columns)])
    line = _const(_LINE // a.matrix.itemsize)
    with cgutils.for_range_slice(builder, _const(0), a.matrix.n_columns, line) as (k, _):
        _ask(builder, builder.gep(start, [k]), write=1)


@vectorised(_emit_prefetch_row)
def prefetch_row(matrix: Array, i: int) -> None:
    """Bring ``matrix[i]`` near, for it will soon be read and written."""


def _emit_prefetch(builder: Any, a: Arguments) -> None:
    end, line = builder.add(a.first, a.n), _const(_LINE // a.array.itemsize)
    with cgutils.for_range_slice(builder, a.first, end, line) as (k, _):
        _ask(builder, a.array.place(k), write=0)


@vectorised(_emit_prefetch)
def prefetch(array: Array, first: int, n: int) -> None:
    """Bring ``array[first : first + n]`` near, for it will soon be read; it need not exist."""


# Weighted sums of consecutive rows: steps through the positions of a sentence, and lists of states.


def _emit_weighted_rows(join: Join, height: int = 1) -> Emit:
    def emit(builder: Any, a: Arguments) -> None:
        out, rows, there = a.out, a.rows, a.rows.row(a.first)
        registers = 2 if isinstance(out.number, ir.DoubleType) else 1

        def block(begin: Any, count: int) -> None:
            sums = [_sums(builder, [_zeros(out.vector)] * count) for _ in range(height)]
            with cgutils.for_range(builder, a.n) as loop:
                start = builder.add(builder.mul(loop.index, rows.n_vectors), begin)
                values = [rows.load_vector(there, at) for at in _places(builder, start, count)]
                for r, own in enumerate(sums):
                    at = builder.sub(builder.add(a.w, loop.index), _const(r))
                    factor = _splat(builder, a.weights.load(at))
                    for value, total in zip(values, own, strict=True):
                        builder.store(join(builder, factor, value, builder.load(total)), total)
            for start, own in zip(out.rows(a.o, height), sums, strict=True):
                for place, total in zip(_places(builder, begin, count), own, strict=True):
                    out.store_vector(builder.load(total), start, place)

        _in_blocks(builder, out.n_vectors, block, _WEIGHTED_REGISTERS // (height * registers))

    return emit


def _define_weighted_rows(join: Any, height: int = 1) -> Any:
    def plain(out: Array, o: int, weights: Array, w: int, rows: Array, first: int, n: int) -> None:
        """``out[o] = Σ_k weights[w + k] · rows[first + k]`` for k < n, each step an fma.

        `weighted_sum_two` does the same for ``out[o + 1]`` with the weights from w − 1 on.
        """
        for r in range(height):
            out[o + r] = 0.0
            for k in range(n):
                for c in range(out.shape[1]):
                    out[o + r, c] = join(weights[w - r + k], rows[first + k, c], out[o + r, c])

    return plain


weighted_sum = vectorised(_emit_weighted_rows(_multiply_add), "weighted_sum")(
    _define_weighted_rows(fma)
)
weighted_sum_two = vectorised(_emit_weighted_rows(_multiply_add, 2), "weighted_sum_two")(
    _define_weighted_rows(fma, 2)
)
weighted_max = vectorised(_emit_weighted_rows(_largest), "weighted_max")(
    _define_weighted_rows(_keep_larger)
)


def _emit_weighted_times(join: Join, keep_product: bool = True) -> Emit:
    def emit(builder: Any, a: Arguments) -> Any:
        rows, factors = a.rows, a.factors
        there, beside, target = rows.row(a.first), factors.row(a.f), a.out.vectors(a.o)
        (all_of_it,) = _sums(builder, [_zeros(rows.vector)])

        def block(begin: Any, count: int) -> None:
            places = _places(builder, begin, count)
            sums = _sums(builder, [_zeros(rows.vector)] * count)
            with cgutils.for_range(builder, a.n) as loop:
                start = builder.gep(there, [builder.mul(loop.index, rows.n_vectors)])
                at = builder.add(a.w, builder.mul(loop.index, a.step))
                weight = _splat(builder, a.weights.load(at))
                for place, total in zip(places, sums, strict=True):
                    value = rows.load_vector(start, place)
                    builder.store(join(builder, weight, value, builder.load(total)), total)
            for place, total in zip(places, sums, strict=True):
                value = builder.load(total)
                product = builder.fmul(value, factors.load_vector(beside, place))
                a.out.store_vector(product if keep_product else value, target, place)
                _add_to(builder, all_of_it, product)

        _in_blocks(builder, rows.n_vectors, block, _LISTED_VECTORS)
        return _fold(builder, builder.load(all_of_it))

    return emit


def _define_weighted_times(join: Any, keep_product: bool = True) -> Any:
    def plain(
        out: Array,
        o: int,
        weights: Array,
        w: int,
        step: int,
        rows: Array,
        first: int,
        n: int,
        factors: Array,
        f: int,
    ) -> float:
        """``factors[f] ∘ Σ_j weights[w + j step] · rows[first + j]``, j < n, to ``out`` from o on;
        gives what it adds up to. As many numbers are written as a row has, its padding included.

        `weighted_sum_dot` keeps in ``out`` the sums before they are multiplied by the factors.
        """
        lanes = np.zeros(WIDTH)
        for c in range(rows.shape[1]):
            total = 0.0
            for j in range(n):
                total = join(weights[w + j * step], rows[first + j, c], total)
            product = total * factors[f, c]
            out[o + c] = product if keep_product else total
            lanes[c % WIDTH] += product
        return _add_lanes(lanes)  # type: ignore[no-any-return]

    return plain


weighted_sum_times = vectorised(_emit_weighted_times(_multiply_add), "weighted_sum_times")(
    _define_weighted_times(fma)
)
weighted_max_times = vectorised(_emit_weighted_times(_largest), "weighted_max_times")(
    _define_weighted_times(_keep_larger)
)
weighted_sum_dot = vectorised(_emit_weighted_times(_multiply_add, False), "weighted_sum_dot")(
    _define_weighted_times(fma, False)
)


def _emit_add_outer(builder: Any, a: Arguments) -> None:
    out, here, there = a.out, a.out.row(a.o), a.rows.row(a.i)

    def block(begin: Any, count: int) -> None:
        places = _places(builder, begin, count)
        values = [a.rows.load_vector(there, place) for place in places]
        with cgutils.for_range(builder, a.n) as loop:
            start = builder.gep(here, [builder.mul(loop.index, out.n_vectors)])
            at = builder.add(a.w, builder.mul(loop.index, a.step))
            weight = _splat(builder, a.weights.load(at))
            for place, value in zip(places, values, strict=True):
                total = _multiply_add(builder, weight, value, out.load_vector(start, place))
                out.store_vector(total, start, place)

    _in_blocks(builder, out.n_vectors, block, _LISTED_VECTORS)


@vectorised(_emit_add_outer)
def add_outer(
    out: Array, o: int, n: int, weights: Array, w: int, step: int, rows: Array, i: int
) -> None:
    """``out[o + j] += weights[w + j step] · rows[i]`` for j < n, each an fma: an outer product."""
    for j in range(n):
        for c in range(out.shape[1]):
            out[o + j, c] = fma(weights[w + j * step], rows[i, c], out[o + j, c])


def _emit_shifted_dots(builder: Any, a: Arguments) -> None:
    left, right = a.left, a.right
    sums = _sums(builder, [_zeros(left.vector)] * SHIFTS_AT_ONCE)
    there = right.row(a.shift)
    with cgutils.for_range(builder, builder.mul(a.n, left.n_vectors)) as loop:
        x = left.load_vector(left.base, loop.index)
        for q, total in enumerate(sums):
            at = builder.add(builder.mul(_const(q), right.n_vectors), loop.index)
            y = right.load_vector(there, at)
            builder.store(_multiply_add(builder, x, y, builder.load(total)), total)
    for q, total in enumerate(sums):
        a.out.store(_fold(builder, builder.load(total)), _const(q))


@vectorised(_emit_shifted_dots)
def shifted_dots(out: Array, left: Array, right: Array, shift: int, n: int) -> None:
    """``out[q] = Σ_r left[r] · right[r + shift + q]`` for r < n and q < `SHIFTS_AT_ONCE`, each step
    an fma."""
    for q in range(SHIFTS_AT_ONCE):
        lanes = np.zeros(WIDTH, left.dtype)
        for r in range(n):
            for c in range(left.shape[1]):
                lane = c % WIDTH
                lanes[lane] = fma(left[r, c], right[r + shift + q, c], lanes[lane])
        out[q] = _add_lanes(lanes)


# Products of matrices, in registers. A table is a matrix that is kept as one row of another, its
# own rows one after the other; what is behind it in that row belongs to nobody (see `table_pitch`).


def _store_rows(out: _Matrix, starts: list[Any], places: list[Any], rows: list[list[Any]]) -> None:
    """Write vectors to these places of the rows that begin there."""
    for start, row in zip(starts, rows, strict=True):
        for value, place in zip(row, places, strict=True):
            out.store_vector(value, start, place)


def _emit_multiply_panels(join: Join) -> Emit:
    def emit(builder: Any, a: Arguments) -> None:
        cut, here, rows = a.cut, a.out.rows(a.o, ROWS_AT_ONCE), a.left.rows(a.i, ROWS_AT_ONCE)

        def block(begin: Any, count: int) -> None:
            columns = _places(builder, begin, count)
            starts = [builder.gep(cut.base, [builder.mul(c, a.n)]) for c in columns]
            products = _sum_products(
                cut,
                a.n,
                lambda k: [builder.gep(start, [k]) for start in starts],
                lambda r, k: a.left.element(rows[r], k),
                [[_zeros(cut.vector)] * count] * ROWS_AT_ONCE,
                join,
            )
            _store_rows(a.out, here, columns, products)

        n_panels, width = builder.udiv(cut.n_rows, a.n), _block_width(cut.vector, ROWS_AT_ONCE)
        _in_blocks(builder, n_panels, block, width)

    return emit


def _define_multiply_panels(join: Any) -> Any:
    def plain(out: Array, o: int, left: Array, i: int, cut: Array, n: int) -> None:
        """``out[o + r] = Σ_k left[i + r, k] · right[k]`` for r < `ROWS_AT_ONCE` and k < n, each
        step an fma; ``cut`` is ``right`` as `panels` cut it. There is room for them behind the
        last row, which numpy does not know of."""
        for r in range(min(ROWS_AT_ONCE, len(out) - o)):
            for c in range(len(cut) // n * WIDTH):
                out[o + r, c] = 0.0
                for k in range(n):
                    right = cut[c // WIDTH * n + k, c % WIDTH]
                    out[o + r, c] = join(left[i + r, k], right, out[o + r, c])

    return plain


multiply_panels = vectorised(_emit_multiply_panels(_multiply_add), "multiply_panels")(
    _define_multiply_panels(fma)
)
max_multiply_panels = vectorised(_emit_multiply_panels(_largest), "max_multiply_panels")(
    _define_multiply_panels(_keep_larger)
)


def _emit_multiply_table(join: Join, height: int, anew: bool) -> Emit:
    def emit(builder: Any, a: Arguments) -> None:
        out, tables, here, rows = a.out, a.tables, a.out.rows(a.o, height), a.left.rows(a.i, height)
        tables.as_table(a.t, out.n_vectors)

        def block(begin: Any, count: int) -> None:
            places = _places(builder, begin, count)
            before = [[_zeros(tables.vector)] * count] * height
            if not anew:
                before = [[out.load_vector(start, at) for at in places] for start in here]
            products = _multiply(
                tables, a.n, begin, lambda r, k: a.left.element(rows[r], k), before, join
            )
            _store_rows(out, here, places, products)

        _in_blocks(builder, out.n_vectors, block, _block_width(tables.vector, height))

    return emit


def _define_multiply_table(join: Any, height: int, anew: bool) -> Any:
    def plain(out: Array, o: int, left: Array, i: int, tables: Array, t: int, n: int) -> None:
        """``out[o + r] = Σ_k left[i + r, k] · table[k]`` for r < `ROWS_AT_ONCE` and k < n, each
        step an fma; the table is ``tables[t]``, its rows as wide as those of ``out``.

        `add_row_times_table` adds it to ``out[o]`` for a single row, r = 0; `max_row_times_table`
        keeps the largest product, or what is there, in place of the sum.
        """
        width = out.shape[1]
        for r in range(min(height, len(out) - o)):  # see `multiply_panels`
            for c in range(width):
                if anew:
                    out[o + r, c] = 0.0
                for k in range(n):
                    out[o + r, c] = join(left[i + r, k], tables[t, k * width + c], out[o + r, c])

    return plain


multiply_table = vectorised(
    _emit_multiply_table(_multiply_add, ROWS_AT_ONCE, anew=True), "multiply_table"
)(_define_multiply_table(fma, ROWS_AT_ONCE, anew=True))
add_row_times_table = vectorised(
    _emit_multiply_table(_multiply_add, 1, anew=False), "add_row_times_table"
)(_define_multiply_table(fma, 1, anew=False))
max_row_times_table = vectorised(
    _emit_multiply_table(_largest, 1, anew=False), "max_row_times_table"
)(_define_multiply_table(_keep_larger, 1, anew=False))


def _columns_product(
    out: _Matrix, left: _Matrix, right: _Matrix, n: Any, n_columns: Any, join: Join, anew: bool
) -> None:
    """Products of columns of left with all of right, over n rows, which a block of columns brings
    near once."""
    builder = out.builder
    stride = builder.mul(left.n_vectors, _const(WIDTH))

    def block(begin: Any, count: int) -> None:
        places, side = _places(builder, begin, count), _const(COLUMNS_AT_ONCE)
        with cgutils.for_range_slice(builder, _const(0), n_columns, side) as (first, _):
            here = out.rows(first, COLUMNS_AT_ONCE)

            def number(r: int, t: Any) -> Any:
                column = builder.add(first, _const(r))
                return left.element(left.base, builder.add(builder.mul(t, stride), column))

            before = [[_zeros(right.vector)] * count] * COLUMNS_AT_ONCE
            if not anew:
                before = [[out.load_vector(start, at) for at in places] for start in here]
            _store_rows(out, here, places, _multiply(right, n, begin, number, before, join))

    _in_blocks(builder, out.n_vectors, block, _block_width(right.vector, COLUMNS_AT_ONCE))


def _emit_multiply_columns(join: Join) -> Emit:
    def emit(builder: Any, a: Arguments) -> None:
        a.out.as_table(a.o, a.right.n_vectors)
        _columns_product(a.out, a.left, a.right, a.n, a.n_columns, join, anew=True)

    return emit


def _define_multiply_columns(join: Any) -> Any:
    def plain(out: Array, o: int, left: Array, right: Array, n: int, n_columns: int) -> None:
        """Table ``out[o]``, row b, is ``Σ_t left[t, b] · right[t]`` for t < n and b < n_columns, a
        multiple of `COLUMNS_AT_ONCE`; each step an fma."""
        width = right.shape[1]
        for b in range(n_columns):
            for c in range(width):
                out[o, b * width + c] = 0.0
                for t in range(n):
                    before = out[o, b * width + c]
                    out[o, b * width + c] = join(left[t, b], right[t, c], before)

    return plain


multiply_columns = vectorised(_emit_multiply_columns(_multiply_add), "multiply_columns")(
    _define_multiply_columns(fma)
)
max_multiply_columns = vectorised(_emit_multiply_columns(_largest), "max_multiply_columns")(
    _define_multiply_columns(_keep_larger)
)


def _emit_add_columns_product(builder: Any, a: Arguments) -> None:
    a.left.from_row(a.first)
    a.right.from_row(a.first)
    _columns_product(a.out, a.left, a.right, a.n, a.out.n_rows, _multiply_add, anew=False)


@vectorised(_emit_add_columns_product)
def add_columns_product(out: Array, left: Array, right: Array, first: int, n: int) -> None:
    """``out[a] += Σ_t left[t, a] · right[t]`` for n rows t from ``first`` on and all rows of
    ``out``, a multiple of `COLUMNS_AT_ONCE`; each step an fma."""
    for a in range(len(out)):
        for c in range(out.shape[1]):
            for t in range(first, first + n):
                out[a, c] = fma(left[t, a], right[t, c], out[a, c])


# Steps of hidden Markov chains in lockstep. A library multiplies matrices and hands them back;
# whoever weighs the product reads and writes it all once more. Here the rows of a product are
# weighed while they are still in registers.


def _with_products(
    left: _Matrix,
    rows: list[Any],
    right: _Matrix,
    join: Join,
    use: Callable[[int, Any, Any], None],
) -> None:
    """``use(r, at, value)`` for all vectors of the products of some rows of left with right."""
    builder, height = right.builder, len(rows)

    def block(begin: Any, count: int) -> None:
        before = [[_zeros(right.vector)] * count] * height
        products = _multiply(
            right, right.n_rows, begin, lambda r, k: left.element(rows[r], k), before, join
        )
        for r, row in enumerate(products):
            for place, value in zip(_places(builder, begin, count), row, strict=True):
                use(r, place, value)

    _in_blocks(builder, right.n_vectors, block, _block_width(right.vector, height))


def _emit_forward_rows(join: Join) -> Emit:
    def emit(builder: Any, a: Arguments) -> None:
        def some(first: Any, height: int) -> None:
            at = _places(builder, builder.add(a.o, first), height)
            here = [a.out.row(place) for place in at]
            emitted = [a.table.row(a.rows.index(place)) for place in at]
            scales = [
                _splat(builder, a.factors.load(place))
                for place in _places(builder, builder.add(a.f, first), height)
            ]
            totals = _sums(builder, [_zeros(a.out.vector)] * height)

            def use(r: int, place: Any, value: Any) -> None:
                emission = a.table.load_vector(emitted[r], place)
                value = builder.fmul(builder.fmul(value, scales[r]), emission)
                a.out.store_vector(value, here[r], place)
                _add_to(builder, totals[r], value)

            before = a.left.rows(builder.add(a.i, first), height)
            _with_products(a.left, before, a.right, join, use)
            for place, total in zip(at, totals, strict=True):
                a.sums.store(_fold(builder, builder.load(total)), place)

        _by_height(builder, a.n, some)

    return emit


def _define_forward_rows(join: Any) -> Any:
    def plain(
        out: Array,
        o: int,
        n: int,
        left: Array,
        i: int,
        right: Array,
        table: Array,
        rows: Array,
        factors: Array,
        f: int,
        sums: Array,
    ) -> None:
        """``out[o + r] = factors[f + r] · (left[i + r] right) ∘ table[rows[o + r]]`` for r < n,
        each step of the product an fma; ``sums[o + r]`` is what each row adds up to."""
        for r in range(n):
            lanes = np.zeros(WIDTH, out.dtype)
            for c in range(out.shape[1]):
                total = out.dtype.type(0.0)
                for k in range(len(right)):
                    total = join(left[i + r, k], right[k, c], total)
                out[o + r, c] = total * factors[f + r] * table[rows[o + r], c]
                lanes[c % WIDTH] += out[o + r, c]
            sums[o + r] = _add_lanes(lanes)

    return plain


forward_rows = vectorised(_emit_forward_rows(_multiply_add), "forward_rows")(
    _define_forward_rows(fma)
)
max_forward_rows = vectorised(_emit_forward_rows(_largest), "max_forward_rows")(
    _define_forward_rows(_keep_larger)
)


def _emit_backward_rows(builder: Any, a: Arguments) -> None:
    out, alpha, table, posteriors = a.out, a.alpha, a.table, a.posteriors

    def some(first: Any, height: int) -> None:
        at = _places(builder, builder.add(a.i, first), height)
        after = _places(builder, builder.add(a.o, first), height)
        here = [out.row(place) for place in after]
        forward_at = [alpha.row(place) for place in at]
        emitted = [table.row(a.rows.index(place)) for place in at]
        counts = [posteriors.row(a.into.index(place)) for place in at]
        scales = [_splat(builder, a.factors.load(place)) for place in after]
        nothing = _zeros(out.vector)

        def use(r: int, place: Any, beta: Any) -> None:
            forward = alpha.load_vector(forward_at[r], place)
            value = builder.fmul(table.load_vector(emitted[r], place), beta)
            value = builder.fmul(value, scales[r])
            possible = builder.fcmp_ordered(">", forward, nothing)
            out.store_vector(builder.select(possible, value, nothing), here[r], place)
            posterior = builder.fmul(forward, beta)
            if posterior.type != posteriors.vector:
                posterior = builder.fpext(posterior, posteriors.vector)
            total = builder.fadd(posteriors.load_vector(counts[r], place), posterior)
            posteriors.store_vector(total, counts[r], place)

        _with_products(a.left, a.left.rows(at[0], height), a.right, _multiply_add, use)

    _by_height(builder, a.n, some)


@vectorised(_emit_backward_rows)
def backward_rows(
    out: Array,
    o: int,
    n: int,
    left: Array,
    i: int,
    right: Array,
    alpha: Array,
    table: Array,
    rows: Array,
    factors: Array,
    posteriors: Array,
    into: Array,
) -> None:
    """With β = left[i + r] right, each step an fma, and α = alpha[i + r], for r < n: α ∘ β is added
    to ``posteriors[into[i + r]]``, and ``out[o + r] = factors[o + r] · table[rows[i + r]] ∘ β``
    where α is not zero: elsewhere it is never needed, and might be too large a number."""
    nothing = alpha.dtype.type(0.0)
    for r in range(n):
        beta = np.zeros(out.shape[1], alpha.dtype)
        for c in range(out.shape[1]):
            for k in range(len(right)):
                beta[c] = fma(left[i + r, k], right[k, c], beta[c])
        for c in range(out.shape[1]):
            value = table[rows[i + r], c] * beta[c] * factors[o + r]
            out[o + r, c] = value if alpha[i + r, c] > nothing else nothing
            posteriors[into[i + r], c] += alpha[i + r, c] * beta[c]


# Draws in proportion to weights: sums over topics, kept so that a draw finds its topic quickly.
#
# Weights p_0 … p_{n−1} lie in rows of `WIDTH` lanes. ``sums`` (n,) takes the running sums of every
# lane; ``ends`` (`WIDTH` + 1,) takes 0 and then, lane by lane, what all lanes up to it add up to. A
# number below the total belongs to one lane, and in that lane to one row: the order is lane by
# lane, and always the same.


def _cumulate(sums: _Vector, ends: _Vector, n: Any, weights: Callable[[Any], Any]) -> Any:
    """Fill ``sums`` and ``ends`` with the weights of n vectors; the total of all."""
    builder, nothing = sums.builder, _zeros(sums.vector)
    target = sums.vectors(_const(0))
    (running,) = _sums(builder, [nothing])
    with cgutils.for_range(builder, n) as loop:
        _add_to(builder, running, weights(loop.index))
        sums.store_vector(builder.load(running), target, loop.index)
    lanes = builder.load(running)
    for step in (1, 2, 4):  # prefix sums by doubling
        moved = [lane - step if lane >= step else WIDTH for lane in range(WIDTH)]
        which = ir.Constant(ir.VectorType(_INT32, WIDTH), moved)
        lanes = builder.fadd(lanes, builder.shuffle_vector(lanes, nothing, which))
    ends.store_vector(lanes, ends.vectors(_const(1)), _const(0))
    return builder.extract_element(lanes, _const(WIDTH - 1))


@njit
def _end_lanes(sums: Array, ends: Array, n: int) -> float:
    """Compute running sums of n weights, and the ends of lanes, as the plain twins do."""
    lanes = np.zeros(WIDTH)
    for k in range(n):
        lanes[k % WIDTH] += sums[k]
        sums[k] = lanes[k % WIDTH]
    for step in (1, 2, 4):
        before = lanes.copy()
        lanes[step:] += before[:-step]
    ends[1:] = lanes
    return lanes[-1]  # type: ignore[no-any-return]


def _emit_cumulate_products(builder: Any, a: Arguments) -> Any:
    counts, factors = a.counts, a.factors
    row, scales, added = counts.row(a.i), factors.vectors(_const(0)), _splat(builder, a.more)

    def weights(at: Any) -> Any:
        n = builder.sitofp(counts.load_vector(row, at), factors.vector)
        return builder.fmul(builder.fadd(n, added), factors.load_vector(scales, at))

    return _cumulate(a.sums, a.ends, counts.n_vectors, weights)


@vectorised(_emit_cumulate_products)
def cumulate_products(
    sums: Array, ends: Array, counts: Array, i: Index, more: float, factors: Array
) -> float:
    """The total of ``(counts[i, k] + more) · factors[k]`` over k; fills ``sums`` and ``ends``."""
    for k in range(counts.shape[1]):
        sums[k] = (counts[i, k] + more) * factors[k]
    return _end_lanes(sums, ends, counts.shape[1])


def _emit_cumulate_listed(builder: Any, a: Arguments) -> Any:
    which, numbers = a.listed.vectors(a.first), a.counts.vectors(a.first)

    def weights(at: Any) -> Any:
        n = builder.sitofp(a.counts.load_vector(numbers, at), a.factors.vector)
        where, scale = a.listed.load_vector(which, at), _zeros(a.factors.vector)
        for lane in range(WIDTH):
            place = builder.zext(builder.extract_element(where, _const(lane)), _INT64)
            scale = builder.insert_element(scale, a.factors.load(place), _const(lane))
        return builder.fmul(n, scale)

    return _cumulate(a.sums, a.ends, a.n, weights)


@vectorised(_emit_cumulate_listed)
def cumulate_listed(
    sums: Array, ends: Array, listed: Array, counts: Array, first: int, n: int, factors: Array
) -> float:
    """The total of ``counts[a] · factors[listed[a]]`` for n `WIDTH` numbers a from ``first`` on;
    fills ``sums`` and ``ends``."""
    for a in range(n * WIDTH):
        sums[a] = counts[first + a] * factors[listed[first + a]]
    return _end_lanes(sums, ends, n * WIDTH)


def _emit_find_cumulated(builder: Any, a: Arguments) -> Any:
    above = a.ends.load_vector(a.ends.vectors(_const(1)), _const(0))
    passed = builder.fcmp_ordered("<=", above, _splat(builder, a.target))
    count = builder.zext(builder.ctpop(builder.bitcast(passed, ir.IntType(WIDTH))), _INT64)
    last = _const(WIDTH - 1)
    lane = builder.select(builder.icmp_unsigned("<", count, last), count, last)
    rest = builder.fsub(a.target, a.ends.load(lane))
    row = cgutils.alloca_once_value(builder, _const(0))
    with cgutils.for_range(builder, a.n) as loop:
        place = builder.add(builder.mul(loop.index, _const(WIDTH)), lane)
        more = builder.zext(builder.fcmp_ordered("<=", a.sums.load(place), rest), _INT64)
        builder.store(builder.add(builder.load(row), more), row)
    return builder.add(builder.mul(builder.load(row), _const(WIDTH)), lane)


@vectorised(_emit_find_cumulated)
def find_cumulated(sums: Array, ends: Array, n: int, target: float) -> int:
    """Which of n `WIDTH` weights the number ``target`` belongs to: the first, lane by lane, whose
    cumulative sum is above it.

    Where rounding leaves none the answer may be too large, by less than a row.
    """
    lane = 0
    for end in ends[1:WIDTH]:
        lane += end <= target
    rest, row = target - ends[lane], 0
    for j in range(n):
        row += sums[j * WIDTH + lane] <= rest
    return row * WIDTH + lane
