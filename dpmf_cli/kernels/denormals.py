"""Sets numbers below float32's normal range, 1.2·10⁻³⁸, to 0 while a kernel of SGD runs, if the processor can.

Factors of the noisiest models may shrink until their products are denormal numbers. Processors are several times as
slow with such numbers. No number that small reaches a prediction.

A kernel itself sets this state of the processor after its last allocation, and restores the old state as its last
step. No line of Python runs in between, so nothing that interrupts Python can leave the state behind.
"""

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from dpmf_cli.compiled.twins import operation

_FLUSH = 0x8040
"""Bits of x86's MXCSR: denormal results become 0, and denormal operands count as 0."""
_CAN = platform.machine().lower() in ("x86_64", "amd64")


def _call(builder: Any, name: str, slot: Any) -> None:
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
        _call(builder, "stmxcsr", slot)
        before = builder.load(slot)
        builder.store(builder.or_(before, ir.Constant(ir.IntType(32), _FLUSH)), slot)
        _call(builder, "ldmxcsr", slot)
        return before

    return types.uint32(), codegen


@operation(lambda before: None)
def restore_denormals(typingctx, before):
    """Sets MXCSR to the value that `flush_denormals` returned."""

    def codegen(context, builder, signature, arguments):
        if _CAN:
            _call(builder, "ldmxcsr", cgutils.alloca_once_value(builder, arguments[0]))
        return context.get_dummy_value()

    return types.void(types.uint32), codegen
