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

Every operation here is one IEEE operation for each lane. It is a fused multiply-add where `fma` is written, and
nothing is reassociated (no fast-math). So a lane's result does not depend on the width, on the other lanes of the
vector, or on the CPU. A grid can be split, padded or refined without changing any result. The exception is numbers
below float32's normal range, 1.2·10⁻³⁸. While a kernel of SGD runs, these count as 0 if the processor can do that:
factors of the noisiest models may shrink until their products are such denormal numbers, with which processors are
several times as slow. No number that small reaches a prediction.

A kernel itself sets this state of the processor after its last allocation, and restores the old state as its last
step. No line of Python runs in between, so nothing that interrupts Python can leave the state behind.
"""

import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import register_model

from dpmf_cli.core.compiled.decorator import compiled, operation
from dpmf_cli.kernels import plain_lanes


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


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any, lanes: Lanes) -> Any:
    """Returns the address of element `at` of a flat array, as a pointer to a vector of the array's type of number."""
    data = context.make_array(array_type)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [at]), _vector(lanes).as_pointer())


def _is_flat(array: Any, lanes: Lanes) -> bool:
    return isinstance(array, types.Array) and array.ndim == 1 and array.dtype == _number(lanes)


def _instruction(name: str) -> Any:
    """Returns the code of one LLVM instruction on all arguments."""

    def codegen(context, builder, signature, arguments):
        return getattr(builder, name)(*arguments)

    return codegen


def _llvm(name: str, lanes: Lanes) -> Any:
    """Returns the code that calls one of LLVM's own functions on all arguments, which are vectors of `lanes`."""

    def codegen(context, builder, signature, arguments):
        vector = _vector(lanes)
        kind = ir.FunctionType(vector, [vector] * len(arguments))
        intrinsic_name = f"llvm.{name}.v{lanes.width}f{lanes.bits}"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, intrinsic_name), arguments)

    return codegen


def _zero(lanes: Lanes) -> Any:
    """Returns the code of a zero vector."""

    def codegen(context, builder, signature, arguments):
        return ir.Constant(_vector(lanes), [0.0] * lanes.width)

    return codegen


@operation(plain_lanes.zeros)
def zeros(typingctx, width_of):
    """The zero vector with one float32 lane for each element of the tuple `width_of`."""
    lanes = Lanes(len(width_of))
    return lanes(width_of), _zero(lanes)


@operation(plain_lanes.doubles)
def doubles(typingctx, width_of):
    """The zero vector with one float64 lane for each element of the tuple `width_of`."""
    lanes = Lanes(len(width_of), 64)
    return lanes(width_of), _zero(lanes)


@operation(plain_lanes.zeros_like)
def zeros_like(typingctx, array, width_of):
    """The zero vector with one lane for each element of the tuple `width_of`, in the number type of `array`."""
    lanes = Lanes(len(width_of), array.dtype.bitwidth)
    return lanes(array, width_of), _zero(lanes)


@operation(plain_lanes.splat)
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


@operation(plain_lanes.load)
def load(typingctx, array, at, like):
    """The vector at elements [at, at + width) of a flat array. Nothing checks the bounds."""
    if not _is_flat(array, like):
        return None

    def codegen(context, builder, signature, arguments):
        value = builder.load(_pointer(context, builder, array, arguments[0], arguments[1], like))
        value.align = like.bits // 8
        return value

    return like(array, types.int64, like), codegen


@operation(plain_lanes.store)
def store(typingctx, array, at, vector):
    """Writes a vector to elements [at, at + width) of a flat array. Nothing checks the bounds."""
    if not _is_flat(array, vector):
        return None

    def codegen(context, builder, signature, arguments):
        pointer = _pointer(context, builder, array, arguments[0], arguments[1], vector)
        builder.store(arguments[2], pointer).align = vector.bits // 8
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), codegen


@operation(plain_lanes.prefetch)
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


@operation(plain_lanes.fma)
def fma(typingctx, a, b, c):
    """a·b + c in every lane, rounded once."""
    return a(a, a, a), _llvm("fma", a)


@operation(plain_lanes.add)
def add(typingctx, a, b):
    """a + b in every lane."""
    return a(a, a), _instruction("fadd")


@operation(plain_lanes.sub)
def sub(typingctx, a, b):
    """a − b in every lane."""
    return a(a, a), _instruction("fsub")


@operation(plain_lanes.mul)
def mul(typingctx, a, b):
    """a·b in every lane."""
    return a(a, a), _instruction("fmul")


@operation(plain_lanes.div)
def div(typingctx, a, b):
    """a / b in every lane."""
    return a(a, a), _instruction("fdiv")


@operation(plain_lanes.less_product)
def less_product(typingctx, a, b, c):
    """c − a·b in every lane. In float64 it is rounded once; in float32 the product is rounded first."""

    def codegen(context, builder, signature, arguments):
        a_, b_, c_ = arguments
        if a.bits == 32:
            return builder.fsub(c_, builder.fmul(a_, b_))
        return _llvm("fma", a)(context, builder, signature, (builder.fneg(a_), b_, c_))

    return a(a, a, a), codegen


@operation(plain_lanes.pivot_of)
def pivot_of(typingctx, square):
    """The diagonal entry of a Cholesky factor, in every lane: √square in float32, 1/√square in float64.

    In float64 a division takes several times as long as a product.
    """

    def codegen(context, builder, signature, arguments):
        root = _llvm("sqrt", square)(context, builder, signature, arguments)
        if square.bits == 32:
            return root
        return builder.fdiv(ir.Constant(_vector(square), [1.0] * square.width), root)

    return square(square), codegen


@operation(plain_lanes.over_pivot)
def over_pivot(typingctx, a, pivot):
    """a/√square in every lane, where `pivot` is `pivot_of(square)`."""
    return a(a, a), _instruction("fdiv" if a.bits == 32 else "fmul")


@operation(plain_lanes.sqrt)
def sqrt(typingctx, a):
    """√a in every lane."""
    return a(a), _llvm("sqrt", a)


@operation(plain_lanes.widen)
def widen(typingctx, a):
    """The float32 lanes of `a` as float64 lanes."""
    wide = Lanes(a.width, 64)

    def codegen(context, builder, signature, arguments):
        return builder.fpext(arguments[0], _vector(wide))

    return wide(a), codegen


@operation(plain_lanes.narrow)
def narrow(typingctx, a):
    """The float64 lanes of `a` rounded to float32 lanes."""
    short = Lanes(a.width)

    def codegen(context, builder, signature, arguments):
        return builder.fptrunc(arguments[0], _vector(short))

    return short(a), codegen


@operation(plain_lanes.cast)
def cast(typingctx, a, like):
    """The lanes of `a` in the number type of `like`: unchanged, widened or rounded."""

    def codegen(context, builder, signature, arguments):
        if a.bits == like.bits:
            return arguments[0]
        return (builder.fpext if a.bits < like.bits else builder.fptrunc)(arguments[0], _vector(like))

    return like(a, like), codegen


@operation(plain_lanes.rint)
def rint(typingctx, a):
    """The nearest whole number in every lane. Of two equally near, it is the even one."""
    return a(a), _llvm("rint", a)


@operation(plain_lanes.magnitude)
def magnitude(typingctx, a):
    """|a| in every lane."""
    return a(a), _llvm("fabs", a)


@operation(plain_lanes.total)
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


@operation(plain_lanes.clamp)
def clamp(typingctx, a, low, high):
    """min(max(a, low), high) in every lane; `low` and `high` are vectors."""

    def codegen(context, builder, signature, arguments):
        value, low, high = arguments
        value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
        return builder.select(builder.fcmp_ordered(">", value, high), high, value)

    return a(a, a, a), codegen


@operation(plain_lanes.times_power)
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


@operation(plain_lanes.below)
def below(typingctx, a, b, x, y):
    """x where a < b, else y, in every lane."""

    def codegen(context, builder, signature, arguments):
        a, b, x, y = arguments
        return builder.select(builder.fcmp_ordered("<", a, b), x, y)

    return a(a, a, a, a), codegen


@operation(plain_lanes.any_below)
def any_below(typingctx, a, b):
    """Whether a < b in at least one lane. If not, a branch may skip work that would change no lane."""

    def codegen(context, builder, signature, arguments):
        bits = builder.bitcast(builder.fcmp_ordered("<", *arguments), ir.IntType(a.width))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(a.width), 0))

    return types.boolean(a, a), codegen


@operation(plain_lanes.lanes_where)
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
    n = sub(shifted, magic)
    r = fma(n, splat(np.float32(-0.693359375), like), x)
    r = fma(n, splat(np.float32(2.12194440e-4), like), r)
    y = splat(np.float32(1.9875691500e-4), like)
    y = fma(y, r, splat(np.float32(1.3981999507e-3), like))
    y = fma(y, r, splat(np.float32(8.3334519073e-3), like))
    y = fma(y, r, splat(np.float32(4.1665795894e-2), like))
    y = fma(y, r, splat(np.float32(1.6666665459e-1), like))
    y = fma(y, r, splat(np.float32(5.0000001201e-1), like))
    y = add(fma(y, mul(r, r), r), splat(np.float32(1), like))
    return times_power(y, shifted)
