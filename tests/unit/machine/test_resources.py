"""Resource classes as data: the CPU's, and one that no code of the package has heard of."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tilenest.errors import TargetError
from tilenest.execution import (
    AccessRight,
    Allocation,
    MemoryEquation,
    TargetScope,
    TargetScopes,
    check_equation,
    failures,
)
from tilenest.layouts import (
    Const,
    Constraint,
    DimRef,
    Expressions,
    Identity,
    IndexSet,
    Project,
    Space,
)
from tilenest.machine import (
    AVX2,
    MemoryNeed,
    ResourceClass,
    Synchronisation,
    Target,
    accesses,
    cpu_target,
)
from tilenest.records import replace

CPU = cpu_target(AVX2)

ENGINE_MEMORY = ResourceClass(
    name="tensor",
    topology="group",
    capacity=1024,
    alignment=128,
    coherence="synchronised",
    access=frozenset(
        {("matrix", "load"), ("matrix", "store"), ("worker", "store"), ("worker", "allocate")}
    ),
    synchronisation=(Synchronisation("worker", "matrix", "commit"),),
)


def with_engine() -> Target:
    """A CPU with an engine beside its workers, and memory that only the engine can read."""
    scopes = TargetScopes((*CPU.scopes.scopes, TargetScope("matrix", ("group",), 1)))
    return replace(CPU, scopes=scopes, resources=(*CPU.resources, ENGINE_MEMORY))


def through(target: Target, scope: str, resource: str, operation: str) -> MemoryEquation:
    """Each of 4 groups uses 8 elements of 4 bytes in its own instance of a resource."""
    found = target.allocation(resource)
    groups, local = Space.box(4, prefix="e"), Space.box(8, prefix="u")
    events = groups.product(local)
    one = Space.box(1, prefix="state")
    stored = Space.box(8, prefix="element")
    return MemoryEquation(
        "use",
        IndexSet(groups),
        IndexSet(events),
        exec_binding=Identity(groups),
        topology=Identity(groups),
        owner_projection=Identity(groups),
        instance=Identity(groups),
        base=Expressions(groups, Space.box(4096, prefix="base"), (Const(0),)),
        access=Project(events, (1,)),
        view=Expressions(local, stored, (DimRef(0),)),
        reaching=Expressions(groups, one, (Const(0),)),
        version=Identity(one),
        address=Expressions(one.product(stored), Space.box(32, prefix="byte"), (DimRef(1) * 4,)),
        simultaneous=IndexSet(one.product(one), (Constraint(Const(-1)),)),
        allocation=Allocation(32, 4, found.alignment, found.capacity),
        right=AccessRight(scope, resource, operation, found.relation),
    )


@pytest.mark.parametrize(
    ("scope", "operation", "is_possible"),
    [
        ("matrix", "load", True),
        ("matrix", "store", True),
        ("worker", "store", True),
        # The group contains the engine, and still cannot read what the engine reads.
        ("group", "load", False),
        ("worker", "load", False),
        ("device", "store", False),
        ("matrix", "atomic", False),
    ],
)
def test_a_new_class_of_memory_is_data(scope: str, operation: str, is_possible: bool) -> None:
    target = with_engine()
    assert target.scopes.is_within("matrix", "group")
    failed = failures(check_equation(through(target, scope, "tensor", operation)))
    assert [claim.arrow for claim in failed] == ([] if is_possible else ["right"])
    refusal = target.resource("tensor").refusal(scope, operation)
    assert (refusal is None) == is_possible


def test_refusals_say_who_can() -> None:
    tensor = with_engine().resource("tensor")
    assert "['matrix']" in str(tensor.refusal("worker", "load"))
    assert "has no atomic" in str(tensor.refusal("matrix", "atomic"))
    assert tensor.operations == {"allocate", "load", "store"}


def test_communication_needs_its_protocol() -> None:
    tensor = with_engine().resource("tensor")
    assert tensor.needs("worker", "matrix") == "commit"
    assert tensor.needs("matrix", "worker") == "nothing"
    assert CPU.resource("private").needs("worker", "worker") is None
    assert CPU.resource("global").needs("worker", "worker") == "the end of a root parallel"


def test_the_capacity_and_alignment_of_a_class_are_kept() -> None:
    target = with_engine()
    small = replace(ENGINE_MEMORY, capacity=31)
    crowded = replace(target, resources=(*CPU.resources, small))
    failed = failures(check_equation(through(crowded, "matrix", "tensor", "load")))
    assert [claim.arrow for claim in failed] == ["base"]
    equation = through(target, "matrix", "tensor", "load")
    moved = Expressions(equation.base.domain, equation.base.codomain, (Const(64),))
    failed = failures(check_equation(replace(equation, base=moved)))
    assert [claim.text for claim in failed] == ["aligned to 128 bytes"]


@pytest.mark.parametrize("name", ["tensor", "cluster", "nonsense"])
def test_what_a_cpu_lacks_is_refused(name: str) -> None:
    with pytest.raises(TargetError, match=f"has no memory resource '{name}'"):
        CPU.resource(name)


def test_memory_is_made_only_where_a_kernel_may() -> None:
    with pytest.raises(TargetError, match=r"cannot be made in 'global' on cpu: .* has no allocate"):
        CPU.allocation("global")


def test_an_open_choice_is_resolved() -> None:
    assert CPU.allocation("auto") is CPU.allocation("private")
    assert CPU.allocation("private").topology == "worker"
    assert CPU.allocation("shared").topology == "group"
    assert CPU.allocatable == ("auto", "private", "shared", "call")
    assert [r.name for r in CPU.choices("shared")] == ["shared", "call"]


@pytest.mark.parametrize(
    ("constraint", "owner", "is_shared", "chosen"),
    [
        ("auto", "device", False, "private"),
        ("auto", "device", True, "call"),
        ("auto", "group", False, "private"),
        ("auto", "group", True, "shared"),
        ("auto", "worker", True, "private"),
        ("private", "group", False, "private"),
        ("shared", "group", False, "shared"),
        ("shared", "device", True, "call"),
        ("private", "group", True, "is visible to one worker alone"),
        ("shared", "worker", False, "has one instance for all of a group"),
        ("call", "group", False, "has one instance for all of a device"),
    ],
)
def test_one_place_chooses(constraint: str, owner: str, is_shared: bool, chosen: str) -> None:
    need = MemoryNeed(owner, is_shared, frozenset({"load", "store"}), 64)
    if " " not in chosen:
        assert CPU.choose(constraint, need).name == chosen
        return
    with pytest.raises(TargetError, match=chosen):
        CPU.choose(constraint, need)


@pytest.mark.parametrize("resource", CPU.resources, ids=lambda resource: resource.name)
def test_classes_of_the_cpu_end_where_a_process_ends(resource: ResourceClass) -> None:
    assert resource.capacity == 1 << 47
    if resource.name == "global":
        return
    need = MemoryNeed(resource.topology, False, frozenset(), 1 << 47)
    assert CPU.problem(resource, need) is None
    reason = CPU.problem(resource, replace(need, bytes=(1 << 47) + 1))
    assert reason is not None
    assert f"has {1 << 47}" in reason


def test_scopes_of_the_cpu_contain_one_another() -> None:
    scopes = CPU.scopes
    names = ["device", "group", "worker", "vector"]
    for outer, inner in pairwise(names):
        assert scopes.is_within(inner, outer)
        assert not scopes.is_within(outer, inner)
    assert {resource.topology for resource in CPU.resources} <= set(names)
    assert accesses(("a", "b"), ("load",)) == {("a", "load"), ("b", "load")}
