"""Turns an expansion into a loop over arrays and runs it: how this folder's tests execute code.

In: a function that writes instructions from operands to one result, and the element names. Out: a
callable on NumPy arrays. Inputs are padded to whole vectors, the result lies between guard bytes
and starts as 0xFF bytes (NaN).
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilenest.backends.llvm.object import (
    HostMachineInfo,
    LoadedObject,
    compile_object,
    host_machine,
    load_object,
)
from tilenest.backends.llvm.text import ModuleText
from tilenest.backends.llvm.values import I64, POINTER, Value, llvm_type
from tilenest.records import replace

Array = NDArray[Any]
Expansion = Callable[..., Value]

ELEMENT_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "float": 4, "double": 8}
GUARD = 64


def machines() -> dict[str, HostMachineInfo]:
    """This machine and, where it can run such code, one with AVX2 and nothing later."""
    host = host_machine()
    found = {"host": host}
    if host.has("avx512f"):
        features = "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+popcnt"
        found["avx2"] = replace(host, cpu="haswell", features=features)
    return found


@dataclass(frozen=True, slots=True)
class Loop:
    """A compiled `for i: out[i] = expansion(in0[i], in1[i], ...)`."""

    text: str
    elements: tuple[str, ...]
    lanes: int
    loaded: LoadedObject

    def run(self, inputs: Sequence[Array], output: Array) -> None:
        """Sizes must be whole vectors; no checks."""
        pointers = [array.ctypes.data for array in (*inputs, output)]
        types = [ctypes.c_void_p] * len(pointers) + [ctypes.c_int64]
        function = ctypes.CFUNCTYPE(None, *types)(self.loaded.address("loop"))
        function(*pointers, output.size)

    def __call__(self, *inputs: Array) -> Array:
        """The result as an array of unsigned integers' or floats' own dtype, guards checked."""
        size = inputs[0].size
        whole = -(-size // self.lanes) * self.lanes
        padded = [np.resize(np.ascontiguousarray(array).ravel(), whole) for array in inputs]
        dtype = output_dtype(self.elements[-1])
        raw = np.full(whole * dtype.itemsize + 2 * GUARD, 0xFF, np.uint8)
        output = raw[GUARD:-GUARD].view(dtype)
        self.run(padded, output)
        assert (raw[:GUARD] == 0xFF).all() and (raw[-GUARD:] == 0xFF).all()
        return output[:size].reshape(inputs[0].shape)


def output_dtype(element: str) -> np.dtype[Any]:
    floats = {"half": "f2", "float": "f4", "double": "f8"}
    return np.dtype(floats.get(element, f"i{ELEMENT_BYTES[element]}"))


def compile_loop(
    expansion: Expansion,
    elements: Sequence[str],
    *,
    lanes: int = 8,
    machine: HostMachineInfo | None = None,
) -> Loop:
    """`elements` names the inputs' types and, last, the result's."""
    machine = machine or host_machine()
    text = loop_text(expansion, elements, lanes, machine)
    loaded = load_object(compile_object(text, machine=machine), {})
    return Loop(text, tuple(elements), lanes, loaded)


def loop_text(
    expansion: Expansion, elements: Sequence[str], lanes: int, machine: HostMachineInfo
) -> str:
    module = ModuleText(triple=machine.triple, data_layout=machine.data_layout)
    parameters = [(POINTER, "noalias")] * len(elements) + [(I64, "")]
    f = module.function("loop", None, parameters, attributes=machine.function_attributes)
    *pointers, size = f.parameters
    entry, body, done = f.current, f.block("body"), f.block("done")
    f.branch_if(f.icmp("eq", size, 0), done, body)
    f.begin(body)
    index = f.phi(I64, (0, entry))
    operands = [
        f.load(
            llvm_type(element, lanes),
            f.getelementptr(element, pointer, index.value),
            align=ELEMENT_BYTES[element],
        )
        for element, pointer in zip(elements[:-1], pointers[:-1], strict=True)
    ]
    result = expansion(f, *operands)
    place = f.getelementptr(elements[-1], pointers[-1], index.value)
    f.store(result, place, align=ELEMENT_BYTES[elements[-1]])
    following = f.add(index.value, lanes, "nuw")
    index.add(following, f.current)
    f.branch_if(f.icmp("ult", following, size), body, done)
    f.begin(done)
    f.ret()
    return module.render()
