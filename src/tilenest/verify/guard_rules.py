"""Rules TN17 and TN18: what a function assumes is guarded, and calls that are turned away go on.

In: functions with the attributes `guards` and `otherwise`, and for rule OP95 `alias_groups`. Out:
faults where these do not fit the arguments, where guards contradict each other or leave open what
the arguments' types and groups state as known, with a call that shows it; where an access assumes
an alignment that no guard is about, or code a feature of the machine that nobody states; and where
nothing, or a function that could not take them, is named for the calls that guards turn away. A
function without guards is called as its types say.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import GuardFacts, cover_calls, entry_guards, needed_features
from tilenest.dialects import (
    AXIS_KINDS,
    GUARD_KINDS,
    MACHINE,
    OTHERWISE,
    SCHEDULED,
    AddressLoad,
    AddressStore,
    Capability,
    Guard,
    Launch,
    PassedArguments,
    capabilities_of,
    guards_of,
    otherwise_of,
)
from tilenest.ir import (
    Fault,
    Function,
    Module,
    Rule,
    ScalarType,
    Subject,
    VectorType,
    ViewType,
)
from tilenest.verify.targets import target_of


def _assumptions(subject: Subject) -> Iterator[Fault]:
    for function in subject.module.functions:
        if not _are_sound(function):
            continue
        for fact in subject.analyses.get(GuardFacts, function).unproven:
            name = _argument_name(function, fact.assumption.argument)
            yield Fault(
                None,
                f"@{function.name} takes for granted that {fact.assumption}, and a call that "
                f"meets its guards passes {name}: {_passed(fact.call, fact.assumption)}",
                "guard it, or leave it open in the argument's type",
                function,
            )


def _soundness(subject: Subject) -> Iterator[Fault]:
    for function in subject.module.functions:
        if function.attributes.get("guards") is None:
            continue
        faults = list(_misplaced(function))
        for message in faults:
            fact = f"@{function.name} {message}"
            yield Fault(None, fact, "guard an argument that it has", function)
        if not faults and subject.analyses.get(GuardFacts, function).example is None:
            yield Fault(
                None,
                f"no call meets the guards of @{function.name}",
                "remove one of the guards that contradict each other",
                function,
            )


def _alignment(subject: Subject) -> Iterator[Fault]:
    """An array lies at multiples of the size of its elements, and slices of it at no more."""
    for op in subject.module.walk():
        if not isinstance(op, AddressLoad | AddressStore):
            continue
        moved = op.value.type if isinstance(op, AddressStore) else op.results[0].type
        dtype = moved.dtype if isinstance(moved, ScalarType | VectorType) else None
        if dtype is not None and op.align > dtype.bytes:
            yield Fault(
                op,
                f"takes for granted that the address is a multiple of {op.align}, and elements of "
                f"{dtype.name} lie at multiples of {dtype.bytes}",
                f"state align = {dtype.bytes}",
            )


def _capabilities(subject: Subject) -> Iterator[Fault]:
    """What planned code needs of the machine is stated where its calls are guarded, and the target
    has what is stated."""
    if subject.module.form not in (SCHEDULED, MACHINE):
        return
    bodies = {function.name: function for function in subject.module.functions}
    for function in subject.module.functions:
        if guards_of(function) is None:
            continue
        yield from _lacking(function, subject)
        launched = [bodies[op.callee] for op in function.walk() if isinstance(op, Launch)]
        operations = (op for code in (function, *launched) for op in code.walk())
        needed = needed_features(operations, target_of(subject).atoms)
        missing = sorted(needed - capabilities_of(function))
        if missing:
            yield Fault(
                None,
                f"@{function.name} takes for granted that the machine has {', '.join(missing)}",
                f"state {', '.join(map(_statement, missing))} among its guards",
                function,
            )


def _lacking(function: Function, subject: Subject) -> Iterator[Fault]:
    lacking = sorted(capabilities_of(function) - target_of(subject).features)
    if lacking:
        yield Fault(
            None,
            f"@{function.name} needs {', '.join(lacking)}, which the target lacks",
            "plan it for this target",
            function,
        )


def _statement(feature: str) -> str:
    return f'#capability<feature = "{feature}">'


def _are_sound(function: Function) -> bool:
    return guards_of(function) is not None and not any(_misplaced(function))


def _misplaced(function: Function) -> Iterator[str]:
    """What is wrong with single guards of a function that has some."""
    guards: object = function.attributes["guards"]
    if not isinstance(guards, tuple):
        yield "has guards that are no list"
        return
    for guard in guards:
        if isinstance(guard, Capability):
            continue
        if not isinstance(guard, Guard):
            yield "has guards that are no #guard records"
        elif guard.kind not in GUARD_KINDS:
            yield f"has a guard of kind {guard.kind!r}; there are {', '.join(GUARD_KINDS)}"
        elif not _is_in_place(function, guard):
            yield f"has a guard of {_place(guard)}, which is not there to be guarded"


def _is_in_place(function: Function, guard: Guard) -> bool:
    arguments = function.arguments
    if guard.argument not in range(len(arguments)):
        return False
    type_ = arguments[guard.argument].type
    if guard.kind not in AXIS_KINDS:
        return guard.axis is None and guard.value in range(guard.argument + 1)
    return isinstance(type_, ViewType) and guard.axis in range(type_.rank)


def _place(guard: Guard) -> str:
    axis = "" if guard.axis is None else f"axis {guard.axis} of "
    same = f" as argument {guard.value}" if guard.kind not in AXIS_KINDS else ""
    return f"{axis}argument {guard.argument}{same}"


def _argument_name(function: Function, place: int) -> str:
    argument = function.arguments[place]
    return f"%{argument.name or place}"


def _passed(call: PassedArguments, assumption: Guard) -> str:
    array = call[assumption.argument]
    if array is None:
        return "no array"
    if assumption.axis is None:
        return str(Guard("first_alike", assumption.argument, array.alike))
    return str(array)


# What happens otherwise ------------------------------------------------------------------------


def _otherwise(subject: Subject) -> Iterator[Fault]:
    for function in subject.module.functions:
        if not guards_of(function) and "otherwise" not in function.attributes:
            continue
        for message, remedy in _faults_of(function, subject.module):
            yield Fault(None, f"@{function.name} {message}", remedy, function)


def _faults_of(function: Function, module: Module) -> Iterator[tuple[str, str]]:
    choices = f"say {', '.join(map(repr, OTHERWISE))} or '@' and a function's name in `otherwise`"
    otherwise: object = otherwise_of(function)
    if otherwise is None:
        yield "has guards and does not say what happens to calls that they turn away", choices
    elif otherwise not in OTHERWISE:
        following = _following(function, module)
        if following is None:
            yield f"turns calls over to {otherwise!r}, which is not there", choices
        elif _signature(following) != _signature(function):
            yield (
                f"turns calls over to {otherwise}, which takes other arguments",
                "name a function of the same element types and ranks",
            )
        else:
            yield from _faults_of_chain(function, module)


def _following(function: Function, module: Module) -> Function | None:
    otherwise: object = otherwise_of(function)
    if not isinstance(otherwise, str) or not otherwise.startswith("@"):
        return None
    return next((f for f in module.functions if f.name == otherwise[1:]), None)


def _signature(function: Function) -> list[object]:
    return [
        (type_.dtype, type_.rank) if isinstance(type_, ViewType) else type_
        for type_ in (argument.type for argument in function.arguments)
    ]


def _faults_of_chain(function: Function, module: Module) -> Iterator[tuple[str, str]]:
    """A call is offered to one function after the other: it must not go round, the next one must
    take some of the calls that this one turns away, and the last one all that are left."""
    chain = _chain(function, module)
    if len(set(chain)) < len(chain):
        if chain[-1] is function:
            yield (
                "gets calls again that it turned away",
                "end with a function without guards, or with another choice",
            )
        return
    if any(guards_of(one) is not None and not _are_sound(one) for one in chain):
        return
    types = [argument.type for argument in function.arguments]
    found = cover_calls(types, [entry_guards(one) for one in chain])
    if 1 in found.shadowed:
        yield (
            f"turns no call over that @{chain[1].name} could take",
            "name a function that takes some of them",
        )
    if otherwise_of(chain[-1]) is None and found.uncovered is not None:
        yield (
            f"leaves a call to nobody: {_described(function, found.uncovered)}",
            f"say in @{chain[-1].name} what happens otherwise",
        )


def _chain(function: Function, module: Module) -> list[Function]:
    """The functions that calls go through, up to one met again or of another signature."""
    chain = [function]
    while (following := _following(chain[-1], module)) is not None:
        if _signature(following) != _signature(function):
            break
        chain.append(following)
        if following in chain[:-1]:
            break
    return chain


def _described(function: Function, call: PassedArguments) -> str:
    passed = [
        f"{_argument_name(function, place)} of {array}"
        if array.alike == place
        else str(Guard("first_alike", place, array.alike))
        for place, array in enumerate(call)
        if array is not None
    ]
    return ", ".join(passed) or "one with any arguments"


# Coinciding arguments ---------------------------------------------------------------------------


def _groups(subject: Subject) -> Iterator[Fault]:
    """In Machine form an argument has become several."""
    if subject.module.form == "machine":
        return
    for function in subject.module.functions:
        found: object = function.attributes.get("alias_groups", ())
        if found != () and not _are_groups(found, function):
            yield Fault(
                None,
                f"`alias_groups` of @{function.name} does not say for each of its "
                f"{len(function.arguments)} arguments which one is the first that is the same",
                "give each argument its own position, or that of an earlier one of its type",
            )


def _are_groups(found: object, function: Function) -> bool:
    signature = _signature(function)
    places = range(len(signature))
    if not isinstance(found, tuple) or len(found) != len(places):
        return False
    return all(
        isinstance(first, int)
        and first in range(place + 1)
        and found[first] == first
        and signature[first] == signature[place]
        for place, first in enumerate(found)
    )


ENTRY_RULES = (Rule("OP95", "coinciding arguments are named by the first", _groups),)
GUARD_RULES = (
    Rule("TN17", "guards imply what is assumed", _assumptions),
    Rule("TN17b", "guards can be met", _soundness),
    Rule("TN17c", "accesses assume the alignment of elements", _alignment),
    Rule("TN17d", "code needs what its guards state of the machine", _capabilities),
    Rule("TN18", "calls that are turned away go on", _otherwise),
)
