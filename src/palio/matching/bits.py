"""What numba does not offer: some machine instructions, and arrays from addresses."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic


@intrinsic
def trailing_zeros(_typing_context: Any, word: Any) -> Any:
    """The position of the lowest bit that is set in a uint64 that is not 0."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def population(_typing_context: Any, word: Any) -> Any:
    """How many bits of a uint64 are set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def prefetch(_typing_context: Any, array: Any, row: Any) -> Any:
    """Ask for the cache line where a row of an array begins."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        made = context.make_array(kind)(context, builder, arguments[0])
        zero = context.get_constant(types.intp, 0)
        pointer = cgutils.get_item_pointer(
            context,
            builder,
            kind,
            made,
            [arguments[1], *[zero] * (kind.ndim - 1)],
            wraparound=False,
        )
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, word, word, word]),
            "llvm.prefetch.p0",
        )
        read, keep, data = (ir.Constant(word, n) for n in (0, 3, 1))
        builder.call(function, [builder.bitcast(pointer, byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def pointer(_typing_context: Any, address: Any) -> Any:
    """An address as a pointer, for `numba.carray`."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


@intrinsic
def read_only(_typing_context: Any, array: Any) -> Any:
    """The same array with the type of one that cannot be written, so that kernels are shared."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return impl_ret_borrowed(context, builder, signature.return_type, arguments[0])

    return array.copy(readonly=True)(array), generate
