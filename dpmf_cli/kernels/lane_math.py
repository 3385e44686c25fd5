"""Functions of lanes: what `lanes` has no operator for.

A kernel itself makes the processor count denormal numbers as 0 (`flush_denormals`) after its last allocation, and
restores the old state as its last step. No line of Python runs in between, so nothing that interrupts Python can
leave the state behind.
"""

import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from dpmf_cli.core.compiled.machine_code import compiled, operation
from dpmf_cli.kernels.lanes import Vector, converted, instruction, llvm, plain_fma, splat, vector_type, zeros


def _plain_fma(a: Vector, b: Vector, c: Vector) -> Vector:
    """`fma`. For float64 it is computed in extended precision, if the machine has it."""
    if a.dtype == np.float32:
        return plain_fma(a, b, c)
    return np.asarray((a.astype(np.longdouble) * b + c).astype(np.float64))


@operation(_plain_fma)
def fma(typingctx, a, b, c):
    """a·b + c in every lane, rounded once."""
    return a(a, a, a), llvm("fma")


@operation(lambda a, b, c: c - a * b if a.dtype == np.float32 else _plain_fma(-a, b, c))
def less_product(typingctx, a, b, c):
    """c − a·b in every lane. In float64 it is rounded once; in float32 the product is rounded first."""

    def codegen(context, builder, signature, arguments):
        a_, b_, c_ = arguments
        if a.bits == 32:
            return builder.fsub(c_, builder.fmul(a_, b_))
        return llvm("fma")(context, builder, signature, (builder.fneg(a_), b_, c_))

    return a(a, a, a), codegen


@operation(lambda square: np.sqrt(square) if square.dtype == np.float32 else 1 / np.sqrt(square))
def pivot_of(typingctx, square):
    """The diagonal entry of a Cholesky factor, in every lane: √square in float32, 1/√square in float64.

    In float64 a division takes several times as long as a product.
    """

    def codegen(context, builder, signature, arguments):
        root = llvm("sqrt")(context, builder, signature, arguments)
        if square.bits == 32:
            return root
        return builder.fdiv(ir.Constant(vector_type(square), [1.0] * square.width), root)

    return square(square), codegen


@operation(lambda a, pivot: a / pivot if a.dtype == np.float32 else a * pivot)
def over_pivot(typingctx, a, pivot):
    """a/√square in every lane, where `pivot` is `pivot_of(square)`."""
    return a(a, a), instruction("fdiv" if a.bits == 32 else "fmul")


@operation(np.sqrt)
def sqrt(typingctx, a):
    """√a in every lane."""
    return a(a), llvm("sqrt")


@operation(lambda a, like: a.astype(like.dtype))
def cast(typingctx, a, like):
    """The lanes of `a` in the number type of `like`: unchanged, widened or rounded."""

    def codegen(context, builder, signature, arguments):
        return converted(builder, arguments[0], a, like)

    return like(a, like), codegen


@operation(np.rint)
def rint(typingctx, a):
    """The nearest whole number in every lane; of two equally near, the even one."""
    return a(a), llvm("rint")


@operation(lambda a: float(sum(a.astype(np.float64))))
def total(typingctx, a):
    """The sum of the lanes, added one after the other, as a float64."""

    def codegen(context, builder, signature, arguments):
        out = ir.Constant(ir.DoubleType(), 0.0)
        for lane in range(a.width):
            value = builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), lane))
            if a.bits == 32:
                value = builder.fpext(value, ir.DoubleType())
            out = builder.fadd(out, value)
        return out

    return types.float64(a), codegen


@operation(lambda a, n: (a.view(np.int32) + (n.view(np.int32) << 23)).view(np.float32))
def times_power(typingctx, a, n):
    """a·2ⁿ in every float32 lane; the result must be a normal number.

    `n` holds whole numbers as n + 1.5·2²³, whose low bits are n.
    """

    def codegen(context, builder, signature, arguments):
        integers = ir.VectorType(ir.IntType(32), a.width)
        value, power = (builder.bitcast(argument, integers) for argument in arguments)
        power = builder.shl(power, ir.Constant(integers, [23] * a.width))
        return builder.bitcast(builder.add(value, power), vector_type(a))

    return (a(a, a), codegen) if a.bits == 32 else None


@operation(lambda a, b, x, y: np.where(a < b, x, y))
def below(typingctx, a, b, x, y):
    """x where a < b, else y, in every lane."""

    def codegen(context, builder, signature, arguments):
        a, b, x, y = arguments
        return builder.select(builder.fcmp_ordered("<", a, b), x, y)

    return a(a, a, a, a), codegen


@compiled(inline="always")
def clamp(a, low, high):
    """min(max(a, low), high) in every lane; `low` and `high` are vectors."""
    raised = below(a, low, low, a)
    return below(high, raised, high, raised)


@operation(lambda a, b: bool((a < b).any()))
def any_below(typingctx, a, b):
    """Whether a < b in at least one lane; otherwise a branch may skip work that would change no lane."""

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
            builder.bitcast(narrow, ir.VectorType(ir.IntType(1), like.width)), vector_type(like)
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
    """eˣ in every lane for x ≤ 0, to a few units of the last place. Below −87 it is e⁻⁸⁷.

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
