"""Capture: Python functions, interpreted over live objects, become Candidate TileIR.

In: a function, specs of its arguments and its configuration. Out: a module in SSA form and the
guards under which it is valid. Regions carry the variables that definite assignment finds; see
`regions` and `carries`.
"""

from tilenest.capture.capture import CaptureResult, capture
from tilenest.capture.guards import FreeVariable, GuardRecorder, Guards
from tilenest.capture.signature import (
    ALONE,
    ArraySpec,
    NoneSpec,
    ScalarSpec,
    Specification,
    spec,
)
from tilenest.capture.source import definition_location, known_location

__all__ = [
    "ALONE",
    "ArraySpec",
    "CaptureResult",
    "FreeVariable",
    "GuardRecorder",
    "Guards",
    "NoneSpec",
    "ScalarSpec",
    "Specification",
    "capture",
    "definition_location",
    "known_location",
    "spec",
]
