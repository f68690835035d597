"""Modules and functions of LLVM text; with `instructions` and `intrinsics` its only writer.

In: calls, one a line of LLVM. Out: `ModuleText.render()`, a module LLVM parses. A module holds the
target, globals, declarations (each once) and functions; a function holds blocks and gives fresh SSA
names. There is no object an instruction: a method appends its line and returns the operand, so 300
lines cost about a third of a millisecond.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilenest.backends.llvm.intrinsics import Intrinsics
from tilenest.backends.llvm.values import (
    I1,
    POINTER,
    LlvmType,
    Operand,
    Value,
    constant,
    element_text,
)


@dataclass(slots=True)
class Phi:
    """A merge at a block's head; `add` one incoming value a predecessor."""

    value: Value
    incoming: list[str] = field(default_factory=list)

    def add(self, value: Operand, block: "Block") -> None:
        operand = value if isinstance(value, Value) else constant(self.value.type, value)
        self.incoming.append(f"[ {operand.text}, %{block.label} ]")

    def render(self) -> str:
        return f"  {self.value.text} = phi {self.value.type.text} {', '.join(self.incoming)}"


@dataclass(slots=True)
class Block:
    label: str
    phis: list[Phi] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


class ModuleText:
    """One LLVM module under construction."""

    def __init__(self, *, triple: str = "", data_layout: str = "") -> None:
        self._header = [
            line
            for line, given in (
                (f'target datalayout = "{data_layout}"', data_layout),
                (f'target triple = "{triple}"', triple),
            )
            if given
        ]
        self._globals: list[str] = []
        self._strings: dict[bytes, Value] = {}
        self._declarations: dict[str, str] = {}
        self._functions: list[FunctionText] = []
        self._attribute_groups: dict[str, str] = {}

    def declare(
        self,
        name: str,
        result: LlvmType | None,
        parameters: Sequence[LlvmType],
        *,
        variadic: bool = False,
        attributes: str = "",
    ) -> None:
        """Declare an external function or intrinsic; again is no harm."""
        if name in self._declarations:
            return
        listed = [parameter.text for parameter in parameters] + ["..."] * variadic
        returned = result.text if result is not None else "void"
        self._declarations[name] = f"declare {returned} @{name}({', '.join(listed)}) {attributes}"

    def defines(self, name: str) -> bool:
        return any(function.name == name for function in self._functions)

    def string(self, text: str | bytes) -> Value:
        """Pointer to a private constant with a closing zero byte; equal strings are one."""
        data = text.encode() if isinstance(text, str) else text
        if data not in self._strings:
            name = f"@string.{len(self._strings)}"
            escaped = "".join(f"\\{byte:02X}" for byte in data + b"\0")
            size = len(data) + 1
            self._globals.append(
                f'{name} = private unnamed_addr constant [{size} x i8] c"{escaped}"'
            )
            self._strings[data] = Value(POINTER, name)
        return self._strings[data]

    def constant_table(
        self, name: str, element: str, numbers: Sequence[int | float], *, align: int = 64
    ) -> Value:
        """Pointer to a private constant array."""
        listed = ", ".join(f"{element} {element_text(element, number)}" for number in numbers)
        kind = f"private unnamed_addr constant [{len(numbers)} x {element}]"
        self._globals.append(f"@{name} = {kind} [{listed}], align {align}")
        return Value(POINTER, f"@{name}")

    def global_variable(
        self, name: str, kind: str, *, align: int, linkage: str = "internal"
    ) -> Value:
        """Pointer to a zeroed variable of LLVM type `kind`."""
        self._globals.append(f"@{name} = {linkage} global {kind} zeroinitializer, align {align}")
        return Value(POINTER, f"@{name}")

    def function(
        self,
        name: str,
        result: LlvmType | None,
        parameters: Sequence[tuple[LlvmType, str]],
        *,
        linkage: str = "",
        attributes: Sequence[str] = ("nounwind",),
    ) -> "FunctionText":
        """Begin a function. A parameter is its type and its attributes ("noalias", or "");
        `attributes` are LLVM's, e.g. "nounwind" or '"prefer-vector-width"="512"'."""
        group = self._attribute_group(" ".join(attributes))
        function = FunctionText(self, name, result, parameters, f"{linkage} ".lstrip(), group)
        self._functions.append(function)
        return function

    def _attribute_group(self, attributes: str) -> str:
        if not attributes:
            return ""
        return self._attribute_groups.setdefault(attributes, f"#{len(self._attribute_groups)}")

    def render(self) -> str:
        defined = {function.name for function in self._functions}
        parts = [*self._header, *self._globals]
        parts += [text for name, text in self._declarations.items() if name not in defined]
        parts += [function.render() for function in self._functions]
        groups = self._attribute_groups.items()
        parts += [f"attributes {group} = {{ {text} }}" for text, group in groups]
        return "\n".join([*parts, ""])


class FunctionText(Intrinsics):
    """A function under construction; instructions go to the block last begun."""

    __slots__ = (
        "_allocas",
        "_blocks",
        "_head",
        "_labels",
        "current",
        "module",
        "name",
        "parameters",
    )

    def __init__(
        self,
        module: ModuleText,
        name: str,
        result: LlvmType | None,
        parameters: Sequence[tuple[LlvmType, str]],
        linkage: str,
        group: str,
    ) -> None:
        super().__init__(module)
        self.module = module
        self.name = name
        self.parameters = [Value(kind[0], f"%a{place}") for place, kind in enumerate(parameters)]
        listed = ", ".join(
            f"{kind.text} {attributes} %a{place}"
            for place, (kind, attributes) in enumerate(parameters)
        )
        returned = result.text if result is not None else "void"
        self._head = f"define {linkage}{returned} @{name}({listed}) {group} {{"
        self._labels: dict[str, int] = {}
        self._allocas: list[str] = []
        self._blocks: list[Block] = []
        self.current = self.begin(self.block("entry"))

    def block(self, label: str) -> Block:
        """A new block, placed by `begin`; a taken label gets a number."""
        count = self._labels.get(label, 0)
        self._labels[label] = count + 1
        return Block(f"{label}.{count}" if count else label)

    def begin(self, block: Block) -> Block:
        """Place `block` after the others and write into it from now on."""
        self._blocks.append(block)
        return self.resume(block)

    def resume(self, block: Block) -> Block:
        """Write into a block begun earlier, behind its last line."""
        self.current = block
        self._lines = block.lines
        return block

    def phi(self, kind: LlvmType, *incoming: tuple[Operand, Block]) -> Phi:
        """At the head of the current block, wherever its writing stands."""
        phi = Phi(Value(kind, self._fresh()))
        for value, block in incoming:
            phi.add(value, block)
        self.current.phis.append(phi)
        return phi

    def alloca(self, kind: LlvmType, count: int = 1, align: int = 0) -> Value:
        """Stack memory for the whole call, wherever in the function the writing stands."""
        name = self._fresh()
        stated = f", align {align}" if align else ""
        self._allocas.append(f"  {name} = alloca [{count} x {kind.text}]{stated}")
        return Value(POINTER, name)

    def branch(self, target: Block) -> None:
        self._lines.append(f"  br label %{target.label}")

    def branch_if(self, condition: Value, if_true: Block, if_false: Block) -> None:
        assert condition.type is I1 or condition.type == I1
        self._lines.append(
            f"  br {condition.typed}, label %{if_true.label}, label %{if_false.label}"
        )

    def call(self, name: str, result: LlvmType | None, arguments: Sequence[Value]) -> Value:
        """Call a function by name, declared here unless the module defines it."""
        self.module.declare(name, result, [argument.type for argument in arguments])
        return self.call_pointer(Value(POINTER, f"@{name}"), result, arguments)

    def call_variadic(
        self, name: str, result: LlvmType, fixed: Sequence[LlvmType], arguments: Sequence[Value]
    ) -> Value:
        """Call a C function with `...` after the parameters `fixed`."""
        self.module.declare(name, result, fixed, variadic=True)
        kinds = ", ".join([*(kind.text for kind in fixed), "..."])
        note = f"{result.text} ({kinds})"
        return self.call_pointer(Value(POINTER, f"@{name}"), result, arguments, note)

    def render(self) -> str:
        parts = [self._head]
        for block in self._blocks:
            parts.append(f"{block.label}:")
            if block is self._blocks[0]:
                parts += self._allocas
            parts += [phi.render() for phi in block.phis]
            parts += block.lines
        parts.append("}")
        return "\n".join(parts)
