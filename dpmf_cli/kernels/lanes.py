"""Lanes: one float32 per model of the ε grid, side by side in one SIMD vector.

A kernel that visits ratings one by one updates all models of a grid in the same visit. So it loads the rating's
indices, value and unit noise once. Plain numba loops over a grid axis are not vectorised if LLVM cannot prove that
two rows do not overlap. A first-class vector type needs no such proof.

`Lanes(width)` is a numba type whose value is an LLVM vector <width x float>. Kernels use it through the
intrinsics below, as if it were a number:

    error = fma(splat(noise, like), scale, splat(value, like))
    p = load(P, at, like)

`like` is any vector of the desired width. The first one comes from `zeros(width_of)`, where `width_of` is a tuple
whose length is the width. The *type* of this tuple carries the width. So one kernel source serves all widths, and
each width has its own machine code.

Releases (`releasing`) and kernels of linear algebra also use float64 lanes (`doubles`), where they need the digits.

`+`, `-`, `*`, `/` and `abs` work on two vectors of one type, as on numbers.

Each operation is declared with a function that does the same on NumPy arrays (lanes,). Plain twins of compiled
functions call these: all are the same IEEE operations, except the fused multiply-adds.

Every operation here is one IEEE operation for each lane. It is a fused multiply-add where `fma` is written, and
nothing is reassociated (no fast-math). So a lane's result does not depend on the width, on the other lanes of the
vector, or on the CPU. A grid can be split, padded or refined without changing any result. The exception is numbers
below float32's normal range, 1.2·10⁻³⁸. While a kernel of SGD runs, these count as 0 if the processor can do that:
factors of the noisiest models may shrink until their products are such denormal numbers, with which processors are
several times as slow. No number that small reaches a prediction.

A kernel itself sets this state of the processor after its last allocation, and restores the old state as its last
step. No line of Python runs in between, so nothing that interrupts Python can leave the state behind.
"""

import operator
import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, register_model
from numpy.typing import NDArray

from dpmf_cli.core.compiled.decorator import compiled, operation

Vector = NDArray[np.floating]
"""A vector (lanes,) of plain twins."""


class Lanes(types.Type):
    """The numba type of a vector of `width` lanes, each a float32 or a float64."""

    def __init__(self, width: int, bits: int = 32) -> None:
        self.width, self.bits = width, bits
        super().__init__(name=f"Lanes({width}, {bits})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, _vector(lanes))


def _vector(lanes: Lanes) -> ir.VectorType:
    return ir.VectorType(ir.FloatType() if lanes.bits == 32 else ir.DoubleType(), lanes.width)


def _number(lanes: Lanes) -> types.Float:
    """The numba type of one lane."""
    return types.float32 if lanes.bits == 32 else types.float64


def _in_array(array: Any, lanes: Lanes) -> Lanes | None:
    """Returns the type that vectors of that width have in a flat array; None for an array without lanes."""
    flat = isinstance(array, types.Array) and array.ndim == 1 and isinstance(array.dtype, types.Float)
    return Lanes(lanes.width, array.dtype.bitwidth) if flat else None


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any, lanes: Lanes) -> Any:
    """Returns the address of element `at` of a flat array, as a pointer to a vector."""
    data = context.make_array(array_type)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [at]), _vector(lanes).as_pointer())


def _converted(builder: Any, value: Any, of: Lanes, to: Lanes) -> Any:
    """Emits a vector in another number type: unchanged, widened or rounded."""
    if of.bits == to.bits:
        return value
    return (builder.fpext if of.bits < to.bits else builder.fptrunc)(value, _vector(to))


def _instruction(name: str) -> Any:
    """Returns the code of one LLVM instruction on all arguments."""

    def codegen(context, builder, signature, arguments):
        return getattr(builder, name)(*arguments)

    return codegen


def _llvm(name: str) -> Any:
    """Returns the code that calls one of LLVM's own functions on all arguments, which are vectors of one type."""

    def codegen(context, builder, signature, arguments):
        lanes = signature.args[0]
        kind = ir.FunctionType(_vector(lanes), [_vector(lanes)] * len(arguments))
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


lower_builtin(operator.add, Lanes, Lanes)(_instruction("fadd"))
lower_builtin(operator.sub, Lanes, Lanes)(_instruction("fsub"))
lower_builtin(operator.mul, Lanes, Lanes)(_instruction("fmul"))
lower_builtin(operator.truediv, Lanes, Lanes)(_instruction("fdiv"))
lower_builtin(abs, Lanes)(_llvm("fabs"))


def _zero(context, builder, signature, arguments):
    """Emits a zero vector."""
    lanes = signature.return_type
    return ir.Constant(_vector(lanes), [0.0] * lanes.width)


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
        vector, i32 = _vector(like), ir.IntType(32)
        undefined = ir.Constant(vector, ir.Undefined)
        value = context.cast(builder, arguments[0], signature.args[0], _number(like))
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
        return _converted(builder, value, kept, like)

    return (like(array, types.int64, like), codegen) if kept else None


def _plain_store(array: Vector, at: int, vector: Vector) -> None:
    array[at : at + len(vector)] = vector


@operation(_plain_store)
def store(typingctx, array, at, vector):
    """Writes a vector to elements [at, at + width) of a flat array, in its number type. Nothing checks the bounds."""
    kept = _in_array(array, vector)

    def codegen(context, builder, signature, arguments):
        pointer = _pointer(context, builder, array, arguments[0], arguments[1], kept)
        builder.store(_converted(builder, arguments[2], vector, kept), pointer).align = kept.bits // 8
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


def plain_fma(a: Vector, b: Vector, c: Vector) -> NDArray[np.float32]:
    """`fma` of float32. The product is exact in float64, and one sum in 2²⁹ is rounded twice."""
    return np.asarray((a.astype(np.float64) * b + c).astype(np.float32))


def plain_dot(p: Vector, q: Vector) -> NDArray[np.float32]:
    """(lanes,) Σ p·q over the rows of p and q (d, lanes), by one `fma` after the other, as kernels do, to the bit."""
    dot = np.zeros(p.shape[1:], np.float32)
    for each, other in zip(p, q, strict=True):
        dot = plain_fma(each, other, dot)
    return dot


def _plain_fma(a: Vector, b: Vector, c: Vector) -> Vector:
    """`fma`. For float64 it is computed in extended precision, if the machine has it."""
    if a.dtype == np.float32:
        return plain_fma(a, b, c)
    return np.asarray((a.astype(np.longdouble) * b + c).astype(np.float64))


@operation(_plain_fma)
def fma(typingctx, a, b, c):
    """a·b + c in every lane, rounded once."""
    return a(a, a, a), _llvm("fma")


@operation(lambda a, b, c: c - a * b if a.dtype == np.float32 else _plain_fma(-a, b, c))
def less_product(typingctx, a, b, c):
    """c − a·b in every lane. In float64 it is rounded once; in float32 the product is rounded first."""

    def codegen(context, builder, signature, arguments):
        a_, b_, c_ = arguments
        if a.bits == 32:
            return builder.fsub(c_, builder.fmul(a_, b_))
        return _llvm("fma")(context, builder, signature, (builder.fneg(a_), b_, c_))

    return a(a, a, a), codegen


@operation(lambda square: np.sqrt(square) if square.dtype == np.float32 else 1 / np.sqrt(square))
def pivot_of(typingctx, square):
    """The diagonal entry of a Cholesky factor, in every lane: √square in float32, 1/√square in float64.

    In float64 a division takes several times as long as a product.
    """

    def codegen(context, builder, signature, arguments):
        root = _llvm("sqrt")(context, builder, signature, arguments)
        if square.bits == 32:
            return root
        return builder.fdiv(ir.Constant(_vector(square), [1.0] * square.width), root)

    return square(square), codegen


@operation(lambda a, pivot: a / pivot if a.dtype == np.float32 else a * pivot)
def over_pivot(typingctx, a, pivot):
    """a/√square in every lane, where `pivot` is `pivot_of(square)`."""
    return a(a, a), _instruction("fdiv" if a.bits == 32 else "fmul")


@operation(np.sqrt)
def sqrt(typingctx, a):
    """√a in every lane."""
    return a(a), _llvm("sqrt")


@operation(lambda a, like: a.astype(like.dtype))
def cast(typingctx, a, like):
    """The lanes of `a` in the number type of `like`: unchanged, widened or rounded."""

    def codegen(context, builder, signature, arguments):
        return _converted(builder, arguments[0], a, like)

    return like(a, like), codegen


@operation(np.rint)
def rint(typingctx, a):
    """The nearest whole number in every lane. Of two equally near, it is the even one."""
    return a(a), _llvm("rint")


@operation(lambda a: float(sum(a.astype(np.float64))))
def total(typingctx, a):
    """The sum of the lanes as a float64. Lanes are added one after the other."""

    def codegen(context, builder, signature, arguments):
        out = ir.Constant(ir.DoubleType(), 0.0)
        for lane in range(a.width):
            value = builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), lane))
            if a.bits == 32:
                value = builder.fpext(value, ir.DoubleType())
            out = builder.fadd(out, value)
        return out

    return types.float64(a), codegen


def _plain_clamp(a: Vector, low: Vector, high: Vector) -> Vector:
    a = np.where(a < low, low, a)
    return np.where(a > high, high, a)


@operation(_plain_clamp)
def clamp(typingctx, a, low, high):
    """min(max(a, low), high) in every lane; `low` and `high` are vectors."""

    def codegen(context, builder, signature, arguments):
        value, low, high = arguments
        value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
        return builder.select(builder.fcmp_ordered(">", value, high), high, value)

    return a(a, a, a), codegen


@operation(lambda a, n: (a.view(np.int32) + (n.view(np.int32) << 23)).view(np.float32))
def times_power(typingctx, a, n):
    """a·2ⁿ in every float32 lane; the result must be a normal number.

    `n` holds whole numbers as n + 1.5·2²³, whose low bits are n.
    """

    def codegen(context, builder, signature, arguments):
        integers = ir.VectorType(ir.IntType(32), a.width)
        value, power = (builder.bitcast(argument, integers) for argument in arguments)
        power = builder.shl(power, ir.Constant(integers, [23] * a.width))
        return builder.bitcast(builder.add(value, power), _vector(a))

    return (a(a, a), codegen) if a.bits == 32 else None


@operation(lambda a, b, x, y: np.where(a < b, x, y))
def below(typingctx, a, b, x, y):
    """x where a < b, else y, in every lane."""

    def codegen(context, builder, signature, arguments):
        a, b, x, y = arguments
        return builder.select(builder.fcmp_ordered("<", a, b), x, y)

    return a(a, a, a, a), codegen


@operation(lambda a, b: bool((a < b).any()))
def any_below(typingctx, a, b):
    """Whether a < b in at least one lane. If not, a branch may skip work that would change no lane."""

    def codegen(context, builder, signature, arguments):
        bits = builder.bitcast(builder.fcmp_ordered("<", *arguments), ir.IntType(a.width))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(a.width), 0))

    return types.boolean(a, a), codegen


@operation(lambda bits, like: (int(bits) >> np.arange(len(like)) & 1).astype(like.dtype))
def lanes_where(typingctx, bits, like):
    """1 in lane e where bit e of the uint16 `bits` is set, else 0."""

    def codegen(context, builder, signature, arguments):
        narrow = builder.trunc(arguments[0], ir.IntType(like.width)) if like.width < 16 else arguments[0]
        return builder.uitofp(
            builder.bitcast(narrow, ir.VectorType(ir.IntType(1), like.width)), _vector(like)
        )

    return like(types.uint16, like), codegen


_FLUSH = 0x8040
"""Bits of x86's MXCSR: denormal results become 0, and denormal operands count as 0."""
_CAN = platform.machine().lower() in ("x86_64", "amd64")


def _sse(builder: Any, name: str, slot: Any) -> None:
    pointer = ir.PointerType(ir.IntType(8))
    function = ir.FunctionType(ir.VoidType(), [pointer])
    at = builder.bitcast(slot, pointer)
    builder.call(cgutils.get_or_insert_function(builder.module, function, f"llvm.x86.sse.{name}"), [at])


@operation(lambda: 0)
def flush_denormals(typingctx):
    """Sets x86's MXCSR of this thread and returns its old value. On other processors sets nothing and returns 0."""

    def codegen(context, builder, signature, arguments):
        if not _CAN:
            return ir.Constant(ir.IntType(32), 0)
        slot = cgutils.alloca_once(builder, ir.IntType(32))
        _sse(builder, "stmxcsr", slot)
        before = builder.load(slot)
        builder.store(builder.or_(before, ir.Constant(ir.IntType(32), _FLUSH)), slot)
        _sse(builder, "ldmxcsr", slot)
        return before

    return types.uint32(), codegen


@operation(lambda before: None)
def restore_denormals(typingctx, before):
    """Sets MXCSR to the value that `flush_denormals` returned."""

    def codegen(context, builder, signature, arguments):
        if _CAN:
            _sse(builder, "ldmxcsr", cgutils.alloca_once_value(builder, arguments[0]))
        return context.get_dummy_value()

    return types.void(types.uint32), codegen


@compiled()
def exponential(x, width_of):
    """Returns eˣ in every lane for x ≤ 0, to a few units of the last place. Below −87 it is e⁻⁸⁷.

    x = n·ln 2 + r with |r| ≤ (ln 2)/2. A polynomial gives eʳ (Cephes, Moshier 1989).
    """
    like = zeros(width_of)
    x = clamp(x, splat(np.float32(-87), like), like)
    magic = splat(np.float32(12582912), like)  # 1.5·2²³: a sum with it is rounded to a whole number
    shifted = fma(x, splat(np.float32(1.44269504), like), magic)
    n = shifted - magic
    r = fma(n, splat(np.float32(-0.693359375), like), x)
    r = fma(n, splat(np.float32(2.12194440e-4), like), r)
    y = splat(np.float32(1.9875691500e-4), like)
    y = fma(y, r, splat(np.float32(1.3981999507e-3), like))
    y = fma(y, r, splat(np.float32(8.3334519073e-3), like))
    y = fma(y, r, splat(np.float32(4.1665795894e-2), like))
    y = fma(y, r, splat(np.float32(1.6666665459e-1), like))
    y = fma(y, r, splat(np.float32(5.0000001201e-1), like))
    y = fma(y, r * r, r) + splat(np.float32(1), like)
    return times_power(y, shifted)
