"""What a kernel's parameters may be annotated with.

In: `tn.View[tn.float32, 2]`, `tn.ConstView[...]`, `tn.Scalar[tn.int64]`. Out: frozen records that
capture and the call check arguments against. Annotations are optional; a part that is not given
admits anything.
"""

from __future__ import annotations

from tilenest.errors import CaptureError, shown
from tilenest.ir import DType
from tilenest.language.dtypes import as_dtype
from tilenest.records import record


@record
class ViewAnnotation:
    """An array of this dtype and rank (None: any); `is_const` forbids stores to it."""

    dtype: DType
    rank: int | None = None
    is_const: bool = False

    @classmethod
    def of(cls, items: object, is_const: bool) -> ViewAnnotation:
        """From what stands in the brackets: a dtype, or a dtype and a rank."""
        dtype, *rest = items if isinstance(items, tuple) else (items,)
        rank = rest[0] if rest else None
        if len(rest) > 1 or not (rank is None or (isinstance(rank, int) and rank >= 0)):
            raise CaptureError(
                f"a view annotation is given {shown(items)}",
                remedy="write tn.View[dtype] or tn.View[dtype, rank], as tn.View[tn.float32, 2]",
            )
        return cls(as_dtype(dtype), rank, is_const)


@record
class ScalarAnnotation:
    """A run-time scalar of this dtype."""

    dtype: DType


class ConstView:
    """Annotates an array parameter that the kernel only reads."""

    def __class_getitem__(cls, items: object) -> ViewAnnotation:
        return ViewAnnotation.of(items, is_const=True)
