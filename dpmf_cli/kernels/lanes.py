"""Lanes: one float32 per model of the ε grid, side by side in one SIMD vector.

A kernel that visits ratings one by one updates all models of a grid in the same visit, and so loads the rating's
indices, value and unit noise once. Plain numba loops over a grid axis are not vectorised if LLVM cannot prove that
two rows do not overlap; a first-class vector type needs no such proof.

`Lanes(width)` is a numba type whose value is an LLVM vector <width x float>. Kernels use it through the
intrinsics below, as if it were a number:

    error = fma(splat(noise, like), scale, splat(value, like))
    p = load(P, at, like)

`like` is any vector of the desired width. The first one comes from `zeros(width_of)`, where `width_of` is a tuple
whose length is the width. Because the *type* of this tuple carries the width, one kernel source serves all widths,
each with its own machine code.

Releases (`releasing`) and kernels of linear algebra also use float64 lanes (`doubles`), where they need the digits.

`+`, `-`, `*`, `/` and `abs` work on two vectors of one type, as on numbers.

Each operation is declared with a function that does the same on NumPy arrays (lanes,). Python references call these:
all are the same IEEE operations, except the fused multiply-adds.

Every operation here is one IEEE operation for each lane: a fused multiply-add where `fma` is written, with nothing
reassociated (no fast-math). So a lane's result does not depend on the width, on the other lanes of the vector, or on
the CPU, and a grid can be split, padded or refined without changing any result. The exception is numbers below
float32's normal range, 1.2·10⁻³⁸. While a kernel of SGD runs, these count as 0 if the processor can do that: factors
of the noisiest models may shrink until their products are such denormal numbers, with which processors are several
times as slow. No number that small reaches a prediction.
"""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, register_model

from dpmf_cli.core.arrays import Floats, Singles
from dpmf_cli.core.compiled.machine_code import operation

Vector = Floats
"""A vector (lanes,) of Python references."""


class Lanes(types.Type):
    """The numba type of a vector of `width` lanes, each a float32 or a float64."""

    def __init__(self, width: int, bits: int = 32) -> None:
        self.width, self.bits = width, bits
        super().__init__(name=f"Lanes({width}, {bits})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, vector_type(lanes))


def vector_type(lanes: Lanes) -> ir.VectorType:
    return ir.VectorType(ir.FloatType() if lanes.bits == 32 else ir.DoubleType(), lanes.width)


def _in_array(array: Any, lanes: Lanes) -> Lanes | None:
    """The type that vectors of that width have in a flat array; None for an array without lanes."""
    flat = isinstance(array, types.Array) and array.ndim == 1 and isinstance(array.dtype, types.Float)
    return Lanes(lanes.width, array.dtype.bitwidth) if flat else None


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any, lanes: Lanes) -> Any:
    """The address of element `at` of a flat array, as a pointer to a vector."""
    data = context.make_array(array_type)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [at]), vector_type(lanes).as_pointer())


def converted(builder: Any, value: Any, of: Lanes, to: Lanes) -> Any:
    """A vector in another number type: unchanged, widened or rounded."""
    if of.bits == to.bits:
        return value
    return (builder.fpext if of.bits < to.bits else builder.fptrunc)(value, vector_type(to))


def instruction(name: str) -> Any:
    """The code of one LLVM instruction on all arguments."""

    def codegen(context, builder, signature, arguments):
        return getattr(builder, name)(*arguments)

    return codegen


def llvm(name: str) -> Any:
    """The code that calls one of LLVM's own functions on all arguments, which are vectors of one type."""

    def codegen(context, builder, signature, arguments):
        lanes = signature.args[0]
        kind = ir.FunctionType(vector_type(lanes), [vector_type(lanes)] * len(arguments))
        intrinsic_name = f"llvm.{name}.v{lanes.width}f{lanes.bits}"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, intrinsic_name), arguments)

    return codegen


@infer_global(operator.add)
@infer_global(operator.sub)
@infer_global(operator.mul)
@infer_global(operator.truediv)
@infer_global(abs)
class _OnLanes(AbstractTemplate):
    """The type of an operator's result: that of its arguments, which are vectors of one type."""

    def generic(self, arguments, keywords):
        lanes = arguments[0]
        alike = isinstance(lanes, Lanes) and all(each == lanes for each in arguments)
        return signature(lanes, *arguments) if alike else None


lower_builtin(operator.add, Lanes, Lanes)(instruction("fadd"))
lower_builtin(operator.sub, Lanes, Lanes)(instruction("fsub"))
lower_builtin(operator.mul, Lanes, Lanes)(instruction("fmul"))
lower_builtin(operator.truediv, Lanes, Lanes)(instruction("fdiv"))
lower_builtin(abs, Lanes)(llvm("fabs"))


def _zero(context, builder, signature, arguments):
    """A zero vector."""
    lanes = signature.return_type
    return ir.Constant(vector_type(lanes), [0.0] * lanes.width)


@operation(lambda width_of: np.zeros(len(width_of), np.float32))
def zeros(typingctx, width_of):
    """The zero vector with one float32 lane for each element of the tuple `width_of`."""
    lanes = Lanes(len(width_of))
    return lanes(width_of), _zero


@operation(lambda width_of: np.zeros(len(width_of)))
def doubles(typingctx, width_of):
    """The zero vector with one float64 lane for each element of the tuple `width_of`."""
    lanes = Lanes(len(width_of), 64)
    return lanes(width_of), _zero


@operation(lambda array, width_of: np.zeros(len(width_of), array.dtype))
def zeros_like(typingctx, array, width_of):
    """The zero vector with one lane for each element of the tuple `width_of`, in the number type of `array`."""
    lanes = Lanes(len(width_of), array.dtype.bitwidth)
    return lanes(array, width_of), _zero


@operation(lambda number, like: np.full_like(like, number))
def splat(typingctx, number, like):
    """The vector whose lanes all hold `number`."""

    def codegen(context, builder, signature, arguments):
        vector, i32 = vector_type(like), ir.IntType(32)
        undefined = ir.Constant(vector, ir.Undefined)
        of = types.float32 if like.bits == 32 else types.float64
        value = context.cast(builder, arguments[0], signature.args[0], of)
        first = builder.insert_element(undefined, value, ir.Constant(i32, 0))
        everywhere = ir.Constant(ir.VectorType(i32, like.width), [0] * like.width)
        return builder.shuffle_vector(first, undefined, everywhere)

    return like(number, like), codegen


@operation(lambda array, at, like: array[at : at + len(like)].astype(like.dtype))
def load(typingctx, array, at, like):
    """Elements [at, at + width) of a flat array, in the number type of `like`. Nothing checks the bounds."""
    kept = _in_array(array, like)

    def codegen(context, builder, signature, arguments):
        value = builder.load(_pointer(context, builder, array, arguments[0], arguments[1], kept))
        value.align = kept.bits // 8
        return converted(builder, value, kept, like)

    return (like(array, types.int64, like), codegen) if kept else None


def _plain_store(array: Vector, at: int, vector: Vector) -> None:
    array[at : at + len(vector)] = vector


@operation(_plain_store)
def store(typingctx, array, at, vector):
    """Writes a vector to elements [at, at + width) of a flat array, in its number type. Nothing checks the bounds."""
    kept = _in_array(array, vector)

    def codegen(context, builder, signature, arguments):
        pointer = _pointer(context, builder, array, arguments[0], arguments[1], kept)
        builder.store(converted(builder, arguments[2], vector, kept), pointer).align = kept.bits // 8
        return context.get_dummy_value()

    return (types.void(array, types.int64, vector), codegen) if kept else None


@operation(lambda array, at: None)
def prefetch(typingctx, array, at):
    """Asks the CPU to bring the cache line of element `at` near; changes no value."""

    def codegen(context, builder, signature, arguments):
        i32, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        data = context.make_array(array)(context, builder, value=arguments[0]).data
        kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [pointer, ir.Constant(i32, 1), ir.Constant(i32, 3), ir.Constant(i32, 1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


def plain_fma(a: Vector, b: Vector, c: Vector) -> Singles:
    """`fma` of float32. The product is exact in float64, and one sum in 2²⁹ is rounded twice."""
    return np.asarray((a.astype(np.float64) * b + c).astype(np.float32))


def plain_dot(p: Vector, q: Vector) -> Singles:
    """(lanes,) Σ p·q over the rows of p and q (d, lanes), by one `fma` after the other, as kernels do, to the bit."""
    dot = np.zeros(p.shape[1:], np.float32)
    for each, other in zip(p, q, strict=True):
        dot = plain_fma(each, other, dot)
    return dot
