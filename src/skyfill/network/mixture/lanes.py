"""Arithmetic on eight components side by side, in vector instructions.

An operand is an array (float64, C-contiguous, `LANES` entries along its last axis) and the number
of one of its rows, or of the first of some; neither is checked. Written for the compiler itself:
Numba turns loops of eight steps into eight single instructions, since it leaves LLVM's pass for
straight-line code out, and counts references to every row that is taken of an array.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.core import errors
from numba.extending import intrinsic as _intrinsic

# LLVM makes one, two or four instructions of them, as the processor can.
LANES = 8
# Least variance that a root is taken of.
TINY = 1e-300
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
# A product and a sum may become one instruction.
_FUSED = ("contract",)
_INT, _FLOAT = types.int64, types.float64
cgutils: Any = _cgutils  # has no types
# Compiled code calls these without the first argument, which Numba adds.
intrinsic: Callable[[Callable[..., Any]], Callable[..., None]] = _intrinsic


@intrinsic
def subtract(typing, x, a, i, out, o):  # type: ignore[no-untyped-def]
    """``out[o] = x - a[i]`` for a number x."""

    def write(code: _Code) -> None:
        code.store(3, code.builder.fsub(code.number(0), code.load(1)))

    return _declare(write, _FLOAT, a, _INT, out, _INT)


@intrinsic
def combine(typing, x, a, i, y, b, j, out, o):  # type: ignore[no-untyped-def]
    """``out[o] = x * a[i] + y * b[j]`` for numbers x and y."""

    def write(code: _Code) -> None:
        first = code.builder.fmul(code.number(0), code.load(1), flags=_FUSED)
        second = code.builder.fmul(code.number(3), code.load(4), flags=_FUSED)
        code.store(6, code.builder.fadd(first, second, flags=_FUSED))

    return _declare(write, _FLOAT, a, _INT, _FLOAT, b, _INT, out, _INT)


@intrinsic
def copy(typing, a, i, out, o):  # type: ignore[no-untyped-def]
    """``out[o] = a[i]``."""
    return _declare(lambda code: code.store(2, code.load(0)), a, _INT, out, _INT)


@intrinsic
def multiply(typing, a, i, b, j, out, o):  # type: ignore[no-untyped-def]
    """``out[o] = a[i] * b[j]``."""

    def write(code: _Code) -> None:
        code.store(4, code.builder.fmul(code.load(0), code.load(2)))

    return _declare(write, a, _INT, b, _INT, out, _INT)


@intrinsic
def sum_products(typing, a, i, b, j, count, out, o):  # type: ignore[no-untyped-def]
    """``out[o] = (a[i : i + count] * b[j : j + count]).sum(axis=0)``."""

    def write(code: _Code) -> None:
        code.store(5, code.sum_products(0, code.constant(0.0)))

    return _declare(write, a, _INT, b, _INT, _INT, out, _INT)


@intrinsic
def add_products(typing, a, i, b, j, count, out, o):  # type: ignore[no-untyped-def]
    """``out[o] += (a[i : i + count] * b[j : j + count]).sum(axis=0)``."""

    def write(code: _Code) -> None:
        code.store(5, code.sum_products(0, code.load(5)))

    return _declare(write, a, _INT, b, _INT, _INT, out, _INT)


@intrinsic
def norm(typing, a, i, count, out, o):  # type: ignore[no-untyped-def]
    """``out[o] = sqrt((a[i : i + count] ** 2).sum(axis=0))``."""

    def write(code: _Code) -> None:
        code.store(3, code.root(code.sum_products(0, code.constant(0.0), square=True)))

    return _declare(write, a, _INT, _INT, out, _INT)


@intrinsic
def eliminate(typing, start, s, a, i, b, j, count, d, k, out, o):  # type: ignore[no-untyped-def]
    """``out[o] = (start[s] - (a[i : i + count] * b[j : j + count]).sum(axis=0)) * d[k]``.

    One step of a triangular system.
    """

    def write(code: _Code) -> None:
        left = code.builder.fsub(code.load(0), code.sum_products(2, code.constant(0.0)))
        code.store(9, code.builder.fmul(left, code.load(7)))

    return _declare(write, start, _INT, a, _INT, b, _INT, _INT, d, _INT, out, _INT)


@intrinsic
def pivot(typing, start, s, a, i, count, out, o):  # type: ignore[no-untyped-def]
    """``out[o] = 1 / sqrt(2 * start[s] - (a[i : i + count] ** 2).sum(axis=0))``.

    The inverse of an entry of a Cholesky factor's diagonal, where `start` holds half of a
    matrix's; what is not positive counts as `TINY`.
    """

    def write(code: _Code) -> None:
        build = code.builder
        whole = build.fmul(code.constant(2.0), code.load(0))
        left = build.fsub(whole, code.sum_products(2, code.constant(0.0), square=True))
        enough = build.fcmp_ordered(">", left, code.constant(TINY))
        root = code.root(build.select(enough, left, code.constant(TINY)))
        code.store(5, build.fdiv(code.constant(1.0), root))

    return _declare(write, start, _INT, a, _INT, _INT, out, _INT)


@dataclass
class _Code:
    """Builds the instructions of one function with these arguments."""

    context: Any
    builder: ir.IRBuilder
    signature: Any
    values: Any

    def constant(self, value: float) -> Any:
        return ir.Constant(_VECTOR, [value] * LANES)

    def number(self, argument: int) -> Any:
        vector: Any = self.constant(0.0)
        for lane in range(LANES):
            at = ir.Constant(ir.IntType(32), lane)
            vector = self.builder.insert_element(vector, self.values[argument], at)
        return vector

    def load(self, argument: int) -> Any:
        return self.builder.load(self._pointer(argument), align=8)

    def store(self, argument: int, vector: Any) -> None:
        self.builder.store(vector, self._pointer(argument), align=8)

    def root(self, vector: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        name = f"llvm.sqrt.v{LANES}f64"
        return self.builder.call(
            cgutils.get_or_insert_function(self.builder.module, kind, name), [vector]
        )

    def sum_products(self, argument: int, start: Any, square: bool = False) -> Any:
        """Add products of rows to a vector: two operands (or one) and the number of rows."""
        build = self.builder
        operands = [argument] if square else [argument, argument + 2]
        total = cgutils.alloca_once(build, _VECTOR)
        build.store(start, total)
        tables = [self._pointer(operand) for operand in operands]
        with cgutils.for_range(build, self.values[operands[-1] + 2]) as loop:
            rows = [build.load(build.gep(table, [loop.index]), align=8) for table in tables]
            product = build.fmul(rows[0], rows[-1], flags=_FUSED)
            build.store(build.fadd(build.load(total), product, flags=_FUSED), total)
        return build.load(total)

    def _pointer(self, argument: int) -> Any:
        kind, value = self.signature.args[argument], self.values[argument]
        start = self.context.make_array(kind)(self.context, self.builder, value).data
        rows = self.builder.bitcast(start, _VECTOR.as_pointer())
        return self.builder.gep(rows, [self.values[argument + 1]])


def _declare(write: Callable[[_Code], None], *arguments: Any) -> Any:
    for kind in arguments:
        if isinstance(kind, types.Array) and (kind.layout, kind.dtype) != ("C", types.float64):
            raise errors.TypingError(f"arithmetic on lanes needs C-contiguous float64, not {kind}")

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        write(_Code(context, builder, signature, values))
        return context.get_dummy_value()

    return types.void(*arguments), generate
