"""Numbers below float32's normal range, 1.2·10⁻³⁸, are 0 while a kernel of SGD runs, where the processor can do that.

Factors of the noisiest models may shrink until products of them are denormal numbers, with which processors are
several times as slow. Nothing that small reaches a prediction.
"""

import functools
import platform
from collections.abc import Callable
from typing import ParamSpec

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

P = ParamSpec("P")

_FLUSH = 0x8040
"""Of x86's MXCSR: results that are denormal become 0, and operands that are count as 0."""
_CAN = platform.machine().lower() in ("x86_64", "amd64")


def flushing(kernel: Callable[P, None]) -> Callable[P, None]:
    """The kernel with denormal numbers flushed to zero in this thread, as long as it runs; elsewhere than on x86 as
    it is."""

    @functools.wraps(kernel)
    def flushed(*arguments: P.args, **options: P.kwargs) -> None:
        before = _control()
        _set_control(before | _FLUSH)
        try:
            kernel(*arguments, **options)
        finally:
            _set_control(before)

    return flushed if _CAN else kernel


def _call(builder, name, slot):
    pointer = ir.PointerType(ir.IntType(8))
    function = ir.FunctionType(ir.VoidType(), [pointer])
    at = builder.bitcast(slot, pointer)
    builder.call(cgutils.get_or_insert_function(builder.module, function, f"llvm.x86.sse.{name}"), [at])


@intrinsic
def _read(typingctx):
    """x86's MXCSR, of this thread."""

    def codegen(context, builder, signature, arguments):
        slot = cgutils.alloca_once(builder, ir.IntType(32))
        _call(builder, "stmxcsr", slot)
        return builder.load(slot)

    return types.uint32(), codegen


@intrinsic
def _write(typingctx, bits):
    """Sets it."""

    def codegen(context, builder, signature, arguments):
        slot = cgutils.alloca_once_value(builder, arguments[0])
        _call(builder, "ldmxcsr", slot)
        return context.get_dummy_value()

    return types.void(types.uint32), codegen


@njit(cache=True, nogil=True)
def _control():
    return _read()


@njit(cache=True, nogil=True)
def _set_control(bits):
    _write(types.uint32(bits))
