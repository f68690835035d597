"""Reductions: laws that bodies show, and what contracts permit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilenest.analysis import Reductions, Regrouping, lacking_merges, law_within, proven_laws
from tilenest.dialects import (
    Apply,
    Loop,
    MapReducePost,
    Reduce,
    ReductionContract,
    Sched,
    StateLaw,
    Yield,
    contract_of,
    registry,
)
from tilenest.ir import (
    Analysis,
    Asker,
    Block,
    Builder,
    Edit,
    Module,
    Operation,
    Rewriter,
    ScalarType,
    Value,
    float32,
    fresh,
    parse_module,
)
from tilenest.layouts import AffineMap
from tilenest.records import replace

F32 = ScalarType(float32)
Body = Callable[[Callable[..., Value], Value, Value, Value], tuple[Value, Value]]


def merges_of(body: Body) -> tuple[str | None, ...]:
    """Merges of a fold with one element and two states."""
    block = Block([F32] * 3)
    builder = Builder(block)

    def apply(function: str, *arguments: Value) -> Value:
        op = Apply(arguments=arguments, function=function, result_types=[F32])
        return builder.insert(op).result

    element, first, second = block.arguments
    nexts = body(apply, element, first, second)
    builder.insert(Yield(values=nexts))
    return tuple(law.merge for law in proven_laws(block, (first, second), nexts))


@pytest.mark.parametrize("function", ["add", "mul", "minimum", "maximum"])
def test_reductions_either_side_is_a_merge(function: str) -> None:
    found = merges_of(lambda f, e, s, t: (f(function, s, e), f(function, f("mul", e, e), t)))
    assert found == (function, function)


def test_reductions_multiply_add_onto_the_state_is_an_addition() -> None:
    found = merges_of(lambda f, e, s, t: (f("fma", e, e, s), f("fma", e, t, e)))
    assert found == ("add", None)


@pytest.mark.parametrize(
    "body",
    [
        lambda f, e, s, t: (f("sub", s, e), t),
        lambda f, e, s, t: (f("add", f("mul", s, e), e), t),
        lambda f, _, s, t: (f("add", s, s), t),
        lambda f, e, s, t: (f("add", s, f("mul", s, e)), t),
        lambda f, e, s, t: (f("add", s, f("mul", t, e)), t),
        lambda _f, e, _s, t: (e, t),
        lambda _f, _e, s, t: (t, s),
    ],
    ids=["sub", "scaled", "doubled", "own", "other", "last", "swapped"],
)
def test_reductions_anything_else_is_a_chain(body: Body) -> None:
    assert merges_of(body)[0] is None


REDUCTION = """
module "candidate"
dim %d0 "m" = 8

func @main(%A: view<f32, [8], [1]>, %x: f32) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %t = tile.load(%A, [%c0]) : tile<f32, %d0>
  %sums, %last = exec.reduce(lower = [%c0], upper = [%c1], step = [%c1], initial = [%t, %x],
      contract = #reduction_contract<>) : (tile<f32, %d0>, f32) {
      |%i: index, %s: tile<f32, %d0>, %r: f32|
    %next = tile.map(INPUTS) : tile<f32, %d0> { |%j: index, ARGUMENTS|
      BODY
    }
    %more = scalar.apply "add"(%r, %x) : f32
    exec.yield(%next, %more)
  }
  func.return
}
"""


@pytest.mark.parametrize(
    ("inputs", "arguments", "body", "is_tree"),
    [
        ("%s, %t", "%a: f32, %b: f32", '%0 = scalar.apply "add"(%a, %b) : f32', True),
        ("%t, %s", "%b: f32, %a: f32", '%0 = scalar.apply "fma"(%b, %b, %a) : f32', True),
        ("%s", "%a: f32", '%0 = scalar.apply "add"(%x, %a) : f32', True),
        ("%s", "%a: f32", '%0 = scalar.apply "sub"(%a, %x) : f32', False),
        ("%s, %s", "%a: f32, %b: f32", '%0 = scalar.apply "add"(%a, %b) : f32', False),
        ("%s", "%a: f32", '%0 = scalar.apply "add"(%a, %r) : f32', False),
        (
            "%s",
            "%a: f32",
            '%n = scalar.apply "neg"(%r) : f32\n %0 = scalar.apply "add"(%a, %n) : f32',
            False,
        ),
    ],
    ids=["sum", "fma", "captured", "sub", "doubled", "captured state", "of a captured state"],
)
def test_reductions_tiles_merge_by_their_elements(
    inputs: str, arguments: str, body: str, is_tree: bool
) -> None:
    text = REDUCTION.replace("INPUTS", inputs).replace("ARGUMENTS", arguments)
    text = text.replace("BODY", f"{body}\n exec.yield(%0)")
    module = parse_module(text, registry())
    (op,) = [op for op in module.walk() if isinstance(op, Reduce)]
    answers = fresh(Reductions, op)
    assert lacking_merges(op, answers) == ([] if is_tree else [0])


FOLD = """
module "scheduled"

func @main(%A: view<f32, [8, 16], [16, 1]>, %Y: view<f32, [8], [1]>, %x: f32) {
  tensor.map_reduce_post(
      inputs = [%A], seeds = [%x], outputs = [%Y], extents = [8, 16],
      input_access = [#access<map = (d0, d1) -> (d0, d1)>],
      seed_access = [#access<map = (d0, d1) -> ()>],
      output_access = [#access<map = (d0, d1) -> (d0)>],
      specs = [#result_spec<dims = [0],
        contract = #reduction_contract<laws = [#state_law<merge = "add">]>>]
  ) { |%i: index, %j: index, %element: f32, %state: f32|
    %next = scalar.apply "add"(%state, %element) : f32
    exec.yield(%next)
  } { |%i: index, %j: index, %state: f32|
    exec.yield(%state)
  }
  func.return
}
"""


class Cost(Analysis[Operation, int]):
    """Something derived from what is permitted: how many partial states there may be."""

    NAME = "cost"
    DEPENDS_ON = (Reductions,)

    @classmethod
    def compute(cls, subject: Operation, ask: Asker, /) -> int:
        (answer,) = ask.get(Reductions, subject)
        return 16 if answer.allows(Regrouping.LANES) else 1

    @classmethod
    def is_affected_by(cls, _: Edit) -> bool:
        return False


def fold() -> tuple[Module, MapReducePost]:
    module = parse_module(FOLD, registry())
    (op,) = [op for op in module.walk() if isinstance(op, MapReducePost)]
    return module, op


def test_reductions_drop_what_was_derived_from_a_changed_contract() -> None:
    _, op = fold()
    rewriter = Rewriter()
    manager = rewriter.analyses
    assert manager.get(Cost, op) == 16
    spec = op.spec(0)
    rewriter.set_attribute(op, "specs", (replace(spec, contract=contract_of("fold_left", "add")),))
    assert not manager.is_known(Reductions, op) and not manager.is_known(Cost, op)
    assert manager.get(Cost, op) == 1
    manager.check()


def test_reductions_stay_while_schedules_and_names_change() -> None:
    _, op = fold()
    rewriter = Rewriter()
    manager = rewriter.analyses
    kept = manager.get(Reductions, op)
    rewriter.set_attribute(op, "sched", Sched((Loop(0, 1), Loop(1, 1))))
    rewriter.set_name(op.fold_block.arguments[0], "row")
    assert manager.is_known(Reductions, op)
    step = op.fold_block.operations.first
    assert step is not None
    rewriter.set_attribute(step, "function", "sub")
    assert not manager.is_known(Reductions, op)
    (found,) = manager.get(Reductions, op)
    assert kept[0].law.merge == "add" and found.law.merge is None


def test_a_claim_counts_where_the_body_shows_it() -> None:
    shown, exact = StateLaw("add"), StateLaw("add", is_exact=True)

    def found(claim: StateLaw, law: StateLaw, provenance: str = "derived") -> StateLaw:
        contract = ReductionContract("ordered_tree", (StateLaw(), claim), provenance=provenance)
        return law_within(contract, 1, law)

    # Exactness is a fact of the function and the dtype: it comes from the body, claimed or not.
    assert found(StateLaw("add", 7), exact) == StateLaw("add", 7, is_exact=True)
    assert found(exact, shown) == shown
    assert found(StateLaw("mul", 1), exact) == found(StateLaw(), exact) == StateLaw()
    assert found(exact, StateLaw()) == StateLaw()
    assert found(StateLaw("@join", 0), shown, "trusted") == StateLaw("@join", 0)
    assert law_within(ReductionContract("ordered_tree"), 1, exact) == exact


@pytest.mark.parametrize(
    ("policy", "is_exact", "allowed"),
    [
        ("unordered_tree", False, "serial, contiguous pieces, lanes, workers"),
        ("ordered_tree", False, "serial, contiguous pieces"),
        ("fold_left", False, "serial"),
        ("fold_right", False, "serial"),
        ("fold_left", True, "serial, contiguous pieces, lanes, workers"),
    ],
)
def test_reductions_permit_placements(policy: str, is_exact: bool, allowed: str) -> None:
    text = FOLD.replace("<laws", f'<policy = "{policy}", laws')
    if is_exact:
        text = text.replace("f32", "i32").replace('"add">]', '"add", is_exact = true>]')
    module = parse_module(text, registry())
    (op,) = [op for op in module.walk() if isinstance(op, MapReducePost)]
    (answer,) = fresh(Reductions, op)
    assert ", ".join(each.what for each in answer.permissions if each.is_legal) == allowed
    assert answer.grouping == AffineMap.projection(2, [0])
    assert answer.law.identity == 0
    assert all(each.reason for each in answer.permissions)


def test_reductions_claim_no_more_than_the_step_shows() -> None:
    module = parse_module(FOLD.replace('apply "add"', 'apply "mul"'), registry())
    (op,) = [op for op in module.walk() if isinstance(op, MapReducePost)]
    (answer,) = fresh(Reductions, op)
    assert answer.law == StateLaw()
    assert answer.permission(Regrouping.LANES).reason == "no merge of partial states is known"
