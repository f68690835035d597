"""Rules `OP93` and `OP94`: calls of atoms are well formed, and keep the catalogue's contracts.

In: `atom.call`. Out: findings about what a call says it touches, how its operands lie and whose
tokens it takes, and about where it departs from the contract of the entry that it names.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.dialects import ATOM_EFFECTS, AtomCall, AtomEffect
from tilenest.ir import (
    ScalarType,
    Subject,
    TileType,
    TokenType,
    Type,
    Value,
    VectorType,
    describe_type,
)
from tilenest.layouts import AffineMap
from tilenest.machine import AtomContract
from tilenest.verify.expectations import Findings, expect_choice, op_rule, place_rule, types_of
from tilenest.verify.targets import target_of


def _call(op: AtomCall) -> Findings:
    count = len(op.arguments)
    for touch in op.touches:
        if not isinstance(touch, AtomEffect):
            yield "`touches` holds something else than effects", "list #atom_effect records"
            continue
        yield from expect_choice("the kind of an effect", touch.kind, ATOM_EFFECTS)
        if touch.operand is not None and touch.operand not in range(count):
            yield f"has an effect on operand {touch.operand} of {count}", "name one it has"
    if len(op.layouts) not in (0, count):
        yield f"has {len(op.layouts)} layouts for {count} operands", "give none, or one for each"
    if any(not isinstance(layout, AffineMap | None) for layout in op.layouts):
        yield "`layouts` holds something else than maps", "give a map or none for each operand"
    tokens = [v for v in (*op.arguments, *op.results) if isinstance(v.type, TokenType)]
    if bool(tokens) != bool(op.protocol):
        yield (
            f"takes and gives {len(tokens)} tokens of the protocol {op.protocol!r}",
            "name the protocol of the tokens, and no other",
        )


def _contract(op: AtomCall, subject: Subject) -> Findings:
    atoms = target_of(subject).atoms
    contract = atoms.find(op.atom)
    if contract is None:
        known = ", ".join(entry.id for entry in atoms)
        yield f"no catalogue has the atom {op.atom!r}", f"atoms are {known}"
        return
    if op.version != contract.version:
        yield f"calls version {op.version} of {contract}", "call the version there is"
    if op.semantic or len(contract.semantics) > 1:
        yield from expect_choice("`semantic`", op.semantic, sorted(contract.semantics))
    if op.protocol not in ("", contract.protocol):
        yield f"{contract} takes no tokens of {op.protocol!r}", "take those of its protocol"
    yield from _types(op, contract)
    touched = {touch.kind for touch in op.touches if isinstance(touch, AtomEffect)}
    promised = {kind.value for kind in contract.effects}
    if touched != promised:
        yield (
            f"touches {sorted(touched)}, where {contract} promises {sorted(promised)}",
            "state the effects of the contract",
        )


def _types(op: AtomCall, contract: AtomContract) -> Findings:
    operands, results = _elements(op.arguments), _elements(op.results)
    for type_ in (*operands, *results):
        if not isinstance(type_, ScalarType | TileType | VectorType):
            yield f"takes or gives a {describe_type(type_)}", "use scalars, tiles and vectors"
            return
    mismatch = contract.mismatch(operands, results)
    if mismatch is not None:
        yield f"{contract} {mismatch}", "give it what its contract takes"


def _elements(values: Sequence[Value]) -> list[Type]:
    return [type_ for type_ in types_of(values) if not isinstance(type_, TokenType)]


ATOM_RULES = (
    op_rule("OP93", "calls of atoms say what they do", AtomCall, _call),
    place_rule("OP94", "calls of atoms keep the contract they name", AtomCall, _contract),
)
