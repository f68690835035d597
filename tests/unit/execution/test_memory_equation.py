"""The memory equation: a right one is proven arrow by arrow, and each broken arrow is named.

The equation is that of a tile of 3 x 5 elements that every one of 4 x 2 instances owns, in two
versions, on 2 workers, each of which runs whole rows of instances. Places are judged by a sum
written out here.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tilenest.errors import ShapeError
from tilenest.execution import (
    AccessRight,
    Allocation,
    Claim,
    MemoryEquation,
    check_apart,
    check_equation,
    failures,
)
from tilenest.layouts import (
    Const,
    Constraint,
    DimRef,
    Expressions,
    FiniteTable,
    Identity,
    IndexSet,
    LayoutCorr,
    LayoutMap,
    Piecewise,
    Project,
    Space,
    Translate,
)
from tilenest.records import replace

ROWS, COLUMNS, STEPS, WORKERS = 4, 2, 3, 2
SHAPE, PADDED, ELEMENT, VERSIONS, BASE, ALIGNMENT = (3, 5), 8, 4, 2, 64, 64
VERSION_BYTES = SHAPE[0] * PADDED * ELEMENT
CAPACITY = BASE + COLUMNS * 256

d = [DimRef(place) for place in range(5)]
EXECUTION = Space.box(ROWS, COLUMNS, STEPS, prefix="e")
LOCAL = Space.box(*SHAPE, prefix="u")
TARGET = Space.box(WORKERS, ROWS // WORKERS, COLUMNS, STEPS, prefix="t")
OWNERS = Space.box(ROWS, COLUMNS, prefix="e")
STATES = Space.box(1, STEPS, prefix="state")
NUMBERS = Space.box(VERSIONS, prefix="version")
VIEW = Space.box(*SHAPE, prefix="view")
STORAGE = Space.box(SHAPE[0] * PADDED, prefix="element")
INSTANCES = Space.box(WORKERS, prefix="t")


def equation(**changes: Any) -> MemoryEquation:
    """The right one, with some arrows replaced."""
    events = EXECUTION.product(LOCAL)
    whole = MemoryEquation(
        name="tile",
        active=IndexSet(EXECUTION),
        events=IndexSet(events),
        exec_binding=Expressions(EXECUTION, TARGET, (d[0] % WORKERS, d[0] // WORKERS, d[1], d[2])),
        topology=Project(TARGET, (0,)),
        owner_projection=Project(EXECUTION, (0, 1)),
        instance=Expressions(OWNERS, INSTANCES, (d[0] % WORKERS,)),
        base=Expressions(OWNERS, Space.box(CAPACITY, prefix="base"), (BASE + d[1] * 256,)),
        access=Project(events, (3, 4)).then(Expressions(Space(LOCAL.axes), VIEW, (d[0], d[1]))),
        view=Expressions(VIEW, STORAGE, (d[0] * PADDED + d[1],)),
        reaching=Expressions(EXECUTION, STATES, (Const(0), d[2])),
        version=Expressions(STATES, NUMBERS, (d[1] % VERSIONS,)),
        address=Expressions(
            NUMBERS.product(STORAGE),
            Space.box(VERSIONS * VERSION_BYTES, prefix="byte"),
            (d[0] * VERSION_BYTES + d[1] * ELEMENT,),
        ),
        # The next step is filled while this one is read.
        simultaneous=IndexSet(
            STATES.product(STATES), (Constraint(d[3] - d[1] - 1, is_equality=True),)
        ),
        allocation=Allocation(VERSIONS * VERSION_BYTES, ELEMENT, ALIGNMENT, CAPACITY),
        right=AccessRight("worker", "local", "load", frozenset({("worker", "local", "load")})),
    )
    return replace(whole, **changes)


def first_failure(broken: MemoryEquation) -> Claim:
    failed = failures(check_equation(broken))
    assert failed, "nothing failed"
    return failed[0]


def refuted(broken: MemoryEquation, arrow: str) -> Claim:
    """The first claim that fails: it is about this arrow, and has a witness."""
    claim = first_failure(broken)
    assert claim.arrow == arrow, f"{claim}"
    assert claim.answer.is_disproven, f"{claim}"
    assert claim.answer.witness is not None
    return claim


def test_a_right_equation_is_proven() -> None:
    claims = check_equation(equation())
    assert not failures(claims), [str(claim) for claim in failures(claims)]
    arrows = {claim.arrow for claim in claims}
    assert arrows == {
        "events",
        "exec_binding",
        "topology",
        "owner_projection",
        "instance",
        "base",
        "reaching",
        "version",
        "access",
        "view",
        "address",
        "right",
    }


def test_places_are_the_sums_written_out() -> None:
    found = dict(equation().places())
    points = itertools.product(*map(range, (ROWS, COLUMNS, STEPS, *SHAPE)))
    for row, column, step, i, j in points:
        place = found.pop((row, column, step, i, j))
        assert place is not None
        version = step % 2
        byte = 64 + column * 256 + version * 96 + (i * 8 + j) * 4
        assert (place.instance, place.base, place.version, place.byte) == (
            (row % 2,),
            64 + column * 256,
            (version,),
            byte,
        )
    assert not found


@pytest.mark.parametrize(
    ("field", "number"),
    [
        *((field, number) for field in ("bytes", "capacity") for number in (-1, 1 << 63, 1 << 70)),
        *(("element_bytes", number) for number in (0, -4, 1 << 63)),
        *(("alignment", number) for number in (0, -64, 48, 1 << 63)),
    ],
)
def test_an_allocation_of_impossible_numbers_is_refused(field: str, number: int) -> None:
    with pytest.raises(ShapeError, match=f"the {field} of an allocation is {number}"):
        replace(equation().allocation, **{field: number})


# One counterexample an arrow -------------------------------------------------------------------


def test_a_binding_beyond_the_target_is_refused() -> None:
    wrong = Expressions(EXECUTION, TARGET, (d[0], d[0] // WORKERS, d[1], d[2]))
    claim = refuted(equation(exec_binding=wrong), "exec_binding")
    assert claim.answer.witness is not None
    assert claim.answer.witness.points[0][0] >= WORKERS


def test_an_event_at_a_coordinate_that_is_not_active_is_refused() -> None:
    """The binding is right in the first row, which alone is active; events are in all rows."""
    first = IndexSet(EXECUTION, (Constraint(-d[0]),))
    wrong = Expressions(EXECUTION, TARGET, (Const(0), d[0] // WORKERS, d[1], d[2]))
    claim = refuted(equation(active=first, exec_binding=wrong), "events")
    assert claim.answer.witness is not None
    assert claim.answer.witness.points[0][0] > 0
    events = IndexSet(EXECUTION.product(LOCAL), first.constraints)
    assert not failures(check_equation(equation(active=first, exec_binding=wrong, events=events)))


def test_a_topology_beyond_the_instances_is_refused() -> None:
    refuted(equation(topology=Expressions(TARGET, INSTANCES, (d[0] + d[1],))), "topology")


def test_an_undefined_owner_is_refused() -> None:
    partial = Project(EXECUTION, (0, 1)).restrict(IndexSet(EXECUTION, (Constraint(2 - d[0]),)))
    claim = refuted(equation(owner_projection=partial), "owner_projection")
    assert claim.answer.witness is not None
    assert claim.answer.witness.points[0][0] == ROWS - 1


def test_a_descendant_that_changes_the_instance_is_refused() -> None:
    """Steps of one owner run on different workers."""
    spread = Expressions(EXECUTION, TARGET, ((d[0] + d[2]) % WORKERS, d[0] // WORKERS, d[1], d[2]))
    claim = refuted(equation(exec_binding=spread), "instance")
    assert claim.answer.witness is not None
    row, _, step = claim.answer.witness.points[0]
    assert (row + step) % WORKERS != row % WORKERS


def test_a_wrong_instance_is_refused() -> None:
    refuted(equation(instance=Expressions(OWNERS, INSTANCES, (Const(0),))), "instance")


def test_a_base_beyond_the_resource_is_refused() -> None:
    room = Space.box(CAPACITY, prefix="base")
    refuted(equation(base=Expressions(OWNERS, room, (d[1] * CAPACITY,))), "base")


def test_capacity_counts_padding_and_versions() -> None:
    """The elements alone would fit: 2 versions of 15 elements, and 8 bytes are missing."""
    needed = BASE + 256 + VERSIONS * VERSION_BYTES
    assert VERSIONS * 15 * ELEMENT < VERSIONS * VERSION_BYTES
    exact = Allocation(VERSIONS * VERSION_BYTES, ELEMENT, ALIGNMENT, needed)
    assert not failures(check_equation(equation(allocation=exact)))
    claim = refuted(equation(allocation=replace(exact, capacity=needed - 1)), "base")
    assert claim.text == "the allocation fits the resource"


def test_a_base_that_is_not_aligned_is_refused() -> None:
    room = Space.box(CAPACITY, prefix="base")
    claim = refuted(equation(base=Expressions(OWNERS, room, (BASE + d[1] * 260,))), "base")
    assert "aligned" in claim.text


def test_a_state_without_a_time_is_refused() -> None:
    late = Expressions(EXECUTION, STATES, (Const(0), d[2] + 1))
    refuted(equation(reaching=late), "reaching")


def test_a_version_beyond_the_versions_is_refused() -> None:
    refuted(equation(version=Expressions(STATES, NUMBERS, (d[1],))), "version")


def test_states_needed_at_once_need_versions_of_their_own() -> None:
    claim = refuted(equation(version=Expressions(STATES, NUMBERS, (d[1] // 2,))), "version")
    assert "at once" in claim.text
    assert claim.answer.witness is not None
    (_, earlier), (_, later) = claim.answer.witness.points
    assert (earlier, later) == (0, 1)


def test_a_state_that_is_needed_has_a_version() -> None:
    """No use sees a state of a later step, and yet they are needed beside the first one."""
    start = IndexSet(STATES, (Constraint(-d[1]),))
    partial = Piecewise(STATES, NUMBERS, ((start, Expressions(STATES, NUMBERS, (Const(0),))),))
    never = Expressions(EXECUTION, STATES, (Const(0), Const(0)))
    claim = refuted(equation(version=partial, reaching=never), "version")
    assert "in need" in claim.text
    assert claim.answer.witness is not None
    (_, earlier), (_, later) = claim.answer.witness.points
    assert later == earlier + 1


def test_states_not_needed_at_once_may_share() -> None:
    apart = IndexSet(STATES.product(STATES), (Constraint(Const(-1)),))
    single = Expressions(STATES, NUMBERS, (Const(0),))
    assert not failures(check_equation(equation(version=single, simultaneous=apart)))


def test_an_access_outside_the_view_is_refused() -> None:
    events = EXECUTION.product(LOCAL)
    wide = Expressions(events, VIEW, (d[3], d[4] + d[2]))
    claim = refuted(equation(access=wide), "access")
    assert claim.answer.witness is not None
    point = claim.answer.witness.points[0]
    assert point[4] + point[2] >= SHAPE[1]


def test_only_active_events_count() -> None:
    events = EXECUTION.product(LOCAL)
    wide = Expressions(events, VIEW, (d[3], d[4] + d[2]))
    inside = IndexSet(events, (Constraint(SHAPE[1] - 1 - d[4] - d[2]),))
    assert not failures(check_equation(equation(access=wide, events=inside)))


def test_an_access_with_two_places_is_refused() -> None:
    """Every event reads its element, or its neighbour: a placement, and no access."""
    small = EXECUTION.product(Space.box(1, 1, prefix="u"))
    either = small.product(Space.box(2, prefix="copy"))
    span = LayoutCorr(
        Project(either, tuple(range(small.rank))),
        Expressions(either, VIEW, (d[3], DimRef(5))),
    )
    broken = equation(events=IndexSet(small), access=span)
    claim = refuted(broken, "access")
    assert "one place" in claim.text
    assert broken.physical((0, 0, 0, 0, 0)) is None
    assert {place for _, place in broken.places()} == {None}


def test_an_access_given_as_a_relation_may_be_a_function() -> None:
    small = EXECUTION.product(Space.box(1, 1, prefix="u"))
    span = LayoutCorr(Identity(small), Expressions(small, VIEW, (d[3], d[4])))
    assert not failures(check_equation(equation(events=IndexSet(small), access=span)))
    unknown = failures(check_equation(equation(events=IndexSet(small), access=span), budget=1))
    assert [claim.arrow for claim in unknown][:1] == ["access"]
    assert not unknown[0].answer.is_disproven


def test_a_relation_is_read_once_for_all_events(monkeypatch: pytest.MonkeyPatch) -> None:
    events = EXECUTION.product(LOCAL)
    access = equation().access
    assert isinstance(access, LayoutMap)
    related = equation(access=LayoutCorr(Translate(events, events, (0,) * 5), access))
    readings: list[LayoutCorr] = []
    read = LayoutCorr.pairs

    def noted(corr: LayoutCorr, values: Any = None) -> Any:
        readings.append(corr)
        return read(corr, values)

    monkeypatch.setattr(LayoutCorr, "pairs", noted)
    assert not failures(check_equation(related))
    assert len(readings) == 1
    assert dict(related.places()) == dict(equation().places())
    assert len(readings) == 2


def test_a_relation_of_many_occurrences_is_not_read() -> None:
    small = EXECUTION.product(Space.box(1, 1, prefix="u"))
    wide = small.product(Space.box(1 << 40, prefix="copy"))
    span = LayoutCorr(Project(wide, tuple(range(5))), Expressions(wide, VIEW, (d[3], d[4])))
    claim = first_failure(equation(events=IndexSet(small), access=span))
    assert claim.arrow == "access"
    assert not claim.answer.is_disproven


def test_a_partial_access_is_refused() -> None:
    events = EXECUTION.product(Space.box(1, 1, prefix="u"))
    entries = tuple((0, 0) if point[2] else None for point in events.points())
    claim = refuted(
        equation(events=IndexSet(events), access=FiniteTable(events, VIEW, entries)), "access"
    )
    assert claim.answer.witness is not None
    assert claim.answer.witness.points[0][2] == 0


def test_a_view_outside_the_storage_is_refused() -> None:
    refuted(equation(view=Expressions(VIEW, STORAGE, (d[0] * 10 + d[1],))), "view")


def test_an_address_outside_the_allocation_is_refused() -> None:
    room = Space.box(VERSIONS * VERSION_BYTES, prefix="byte")
    wide = Expressions(NUMBERS.product(STORAGE), room, (d[0] * 100 + d[1] * ELEMENT,))
    claim = refuted(equation(address=wide), "address")
    assert "padding" in claim.text


def test_elements_that_share_bytes_are_refused() -> None:
    room = Space.box(VERSIONS * VERSION_BYTES, prefix="byte")
    same = Expressions(NUMBERS.product(STORAGE), room, (d[1] * ELEMENT,))
    claim = refuted(equation(address=same), "address")
    assert "own" in claim.text
    half = Expressions(NUMBERS.product(STORAGE), room, (d[0] * 48 + d[1] * 2,))
    assert "multiple" in refuted(equation(address=half), "address").text


def test_bytes_beyond_64_bits_are_refused() -> None:
    """Base and address each fit; their sum does not."""
    large = (1 << 63) - 256
    claim = refuted(
        equation(
            base=Expressions(OWNERS, Space.box(1 << 63, prefix="base"), (Const(large),)),
            allocation=Allocation(VERSIONS * VERSION_BYTES, ELEMENT, 1),
            address=Expressions(
                NUMBERS.product(STORAGE),
                Space.box(1 << 62, prefix="byte"),
                (d[0] * 1024 + d[1] * ELEMENT,),
            ),
        ),
        "address",
    )
    assert claim.answer.witness is not None


def test_the_relation_decides_who_may_access() -> None:
    right = replace(equation().right, scope="engine")
    claim = refuted(equation(right=right), "right")
    assert claim.answer.witness is not None
    granted = replace(right, relation=frozenset({("engine", "local", "load")}))
    assert not failures(check_equation(equation(right=granted)))


def test_nothing_happens_without_events() -> None:
    never = (Constraint(Const(-1)),)
    nothing = equation(
        active=IndexSet(EXECUTION, never),
        events=IndexSet(EXECUTION.product(LOCAL), never),
        right=replace(equation().right, scope="engine"),
        base=Expressions(OWNERS, Space.box(CAPACITY, prefix="base"), (Const(CAPACITY),)),
    )
    assert not failures(check_equation(nothing))


def test_an_equation_for_any_number_of_steps_is_proven() -> None:
    """Symbolic extents: nothing is enumerated."""
    execution = Space.box(ROWS, COLUMNS, "n", prefix="e")
    events = execution.product(LOCAL)
    target = Space.box(WORKERS, ROWS // WORKERS, COLUMNS, "n", prefix="t")
    states = Space.box(1, "n", prefix="state")
    symbolic = equation(
        active=IndexSet(execution),
        events=IndexSet(events),
        exec_binding=Expressions(execution, target, (d[0] % WORKERS, d[0] // WORKERS, d[1], d[2])),
        topology=Project(target, (0,)),
        owner_projection=Project(execution, (0, 1)),
        access=Expressions(events, VIEW, (d[3], d[4])),
        reaching=Expressions(execution, states, (Const(0), d[2])),
        version=Expressions(states, NUMBERS, (d[1] % VERSIONS,)),
        simultaneous=IndexSet(
            states.product(states), (Constraint(d[3] - d[1] - 1, is_equality=True),)
        ),
    )
    assert not failures(check_equation(symbolic, budget=0))


def test_arrows_that_do_not_meet_are_a_mistake() -> None:
    with pytest.raises(ShapeError):
        check_equation(equation(topology=Project(EXECUTION, (0,))))


# Two memories ----------------------------------------------------------------------------------


def test_memories_that_are_alive_together_lie_apart() -> None:
    """Each column of instances has 256 bytes, of which the tile takes the first 192."""
    room = equation().base.codomain
    behind = equation(
        base=Expressions(OWNERS, room, (BASE + 192 + d[1] * 256,)),
        allocation=Allocation(64, ELEMENT, ALIGNMENT, CAPACITY),
    )
    assert check_apart(equation(), behind).answer.is_proven
    early = replace(behind, base=Expressions(OWNERS, room, (BASE + 128 + d[1] * 256,)))
    claim = check_apart(equation(), early)
    assert claim.answer.is_disproven
    assert claim.answer.witness is not None
    mine, theirs = claim.answer.witness.points
    assert mine[0] % WORKERS == theirs[0] % WORKERS
    assert mine[1] * 256 + mine[3] == 128 + theirs[1] * 256 + theirs[3]


def test_memories_of_different_resources_lie_apart() -> None:
    elsewhere = equation(right=replace(equation().right, resource="other"))
    assert check_apart(equation(), elsewhere).answer.is_proven
    assert check_apart(equation(), equation()).answer.is_disproven
