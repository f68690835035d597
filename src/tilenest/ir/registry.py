"""The vocabulary handed to the parser: op classes and attribute records, by the name in the text.

In: classes. Out: a frozen lookup. The core knows no op by name, so whoever reads text says which
ops exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tilenest.ir.core import Operation
from tilenest.records import record


@record
class Registry:
    """Op classes by `NAME`; records that may stand in attributes by `record_name`."""

    operations: Mapping[str, type[Operation]]
    records: Mapping[str, type]

    @classmethod
    def of(cls, operations: Iterable[type[Operation]], records: Iterable[type] = ()) -> Registry:
        by_name: dict[str, type[Operation]] = {}
        for operation in operations:
            assert operation.NAME not in by_name, f"{operation.NAME} is declared twice"
            by_name[operation.NAME] = operation
        by_record = {record_name(record): record for record in records}
        return cls(MappingProxyType(by_name), MappingProxyType(by_record))


def record_name(record: type) -> str:
    """`ResultSpec` is `result_spec` in the text."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", record.__name__).lower()
