"""Guards: what a capture was specialised on, and when another call may use it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.unit.capture import settings
from tests.unit.capture.kernels import captured, numbers, poisoned, run, spec_of, tn
from tilenest.capture import (
    ArraySpec,
    CaptureResult,
    ScalarSpec,
    Specification,
    capture,
    spec,
)
from tilenest.dialects import Guard
from tilenest.errors import ArgumentTypeError, DTypeError, RankError, ShapeError
from tilenest.ir import ViewType, float32, float64, int64

FACTOR: Any = 2.0
TABLE = [1.0]


def view_types(result: CaptureResult) -> list[ViewType]:
    (function,) = result.module.functions
    return [argument.type for argument in function.arguments if isinstance(argument.type, ViewType)]


def scaling(X: Any, Y: Any) -> None:
    Y(0, 4).store(X[0, 4] * FACTOR)


def test_only_what_was_read_is_specialised_on() -> None:
    def kernel(A: Any, B: Any) -> None:
        rows = A.shape[0]
        for block in tn.parallel(rows):
            B((block.index(), 0), (1, 4)).store(A[(block.index(), 0), (1, 4)])

    result = captured(kernel, numbers(3, 4), poisoned(3, 4))
    assert result.guards.facts == (
        Guard("extent", 0, 3, 0),
        Guard("unit_stride", 0, 1, 1),
        Guard("unit_stride", 1, 1, 1),
        Guard("first_alike", 1, 1),
    )
    assert view_types(result) == [
        ViewType(float32, (3, None), (None, 1)),
        ViewType(float32, (None, None), (None, 1)),
    ]
    assert result.guards.check([spec((3, 9), float32), spec((7, 7), float32)], {})
    assert not result.guards.check([spec((4, 4), float32), spec((3, 4), float32)], {})


def test_a_kernel_that_reads_no_host_extent_fits_every_shape() -> None:
    def kernel(A: Any, B: Any) -> None:
        for block in tn.parallel(A.extent(0)):
            B.at(block.index()).store(A.at(block.index()).load())

    result = captured(kernel, numbers(3), poisoned(3))
    assert all(fact.kind != "extent" for fact in result.guards.facts)
    for size in (1, 50):
        a, b = numbers(size), poisoned(size)
        assert result.guards.check([spec_of(a), spec_of(b)], {})


def test_strides_read_are_guarded() -> None:
    def kernel(A: Any) -> None:
        assert A.strides[0] == 4

    result = captured(kernel, numbers(3, 4))
    assert Guard("stride", 0, 4, 0) in result.guards.facts
    assert not result.guards.check([ArraySpec(float32, (3, 4), (8, 1))], {})


def test_a_stride_that_is_not_used_may_be_any() -> None:
    def kernel(A: Any) -> None:
        assert A.strides[0] == 4

    guards = captured(kernel, numbers(3, 4)).guards
    for shape, strides, fits in [
        ((1, 4), (9, 1), True),
        ((2, 4), (9, 1), False),
        ((2, 1), (4, 7), True),
        ((2, 0), (9, 9), True),
        ((None, 4), (4, 1), True),
        ((None, 4), (None, 1), False),
    ]:
        assert guards.check([ArraySpec(float32, shape, strides)], {}) is fits, (shape, strides)


def test_an_unknown_stride_is_neither_1_nor_another() -> None:
    def kernel(A: Any) -> None:
        A.extent(0)

    unknown = ArraySpec(float32, (None,), (None,))
    guards = capture(kernel, [unknown]).guards  # type: ignore[arg-type]  # a Python function
    assert guards.facts == ()
    assert guards.check([unknown], {})
    assert not captured(kernel, numbers(3)).guards.check([unknown], {})
    assert not captured(kernel, numbers(8)[::2]).guards.check([unknown], {})


def test_a_unit_last_stride_is_always_guarded() -> None:
    def kernel(A: Any, B: Any) -> None:
        B(0, 4).store(A[0, 4])

    x = numbers(8)
    y = poisoned(4)
    strided = run(kernel, x[::2], y)
    np.testing.assert_array_equal(y, x[::2])
    assert [type_.strides for type_ in view_types(strided)] == [(None,), (1,)]
    assert strided.guards.facts[:2] == (
        Guard("unit_stride", 0, 0, 0),
        Guard("unit_stride", 1, 1, 0),
    )
    assert not strided.guards.check([spec(4, float32), spec(4, float32)], {})
    assert strided.guards.check([ArraySpec(float32, (4,), (3,)), spec(4, float32)], {})


def test_dtype_and_rank_are_guarded() -> None:
    def kernel(A: Any) -> None:
        A.extent(0)

    guards = captured(kernel, numbers(3)).guards
    assert guards.check([spec(5, float32)], {})
    assert not guards.check([spec(5, float64)], {})
    assert not guards.check([spec((5, 5), float32)], {})
    assert not guards.check([ScalarSpec(float32)], {})
    assert not guards.check([], {})


def test_arguments_that_coincide_are_grouped() -> None:
    def kernel(A: Any, n: Any, B: Any) -> None:
        B(n, 4).store(A[n, 4])

    array, scalar = ArraySpec(float32, (4,), (1,), 0), ScalarSpec(int64)
    shared: list[Specification] = [array, scalar, array]
    apart: list[Specification] = [spec(4, float32), scalar, spec(4, float32)]
    result = capture(kernel, shared)  # type: ignore[arg-type]  # a Python function
    (function,) = result.module.functions
    assert function.attributes["alias_groups"] == (0, 1, 0)
    assert Guard("first_alike", 2, 0) in result.guards.facts
    assert result.guards.check(shared, {})
    assert not result.guards.check(apart, {})


def test_the_function_states_its_guards() -> None:
    def kernel(bias: Any, A: Any, n: Any, B: Any) -> None:
        assert bias is None
        B(n, 4).store(A[A.shape[0] - 4, 4])

    result = captured(kernel, None, numbers(9), 3, poisoned(4))
    (function,) = result.module.functions
    assert result.guards.arguments == (1, 2, 3)
    assert function.attributes["guards"] == result.guards.facts
    assert function.attributes["otherwise"] == "compile"
    assert {fact.argument for fact in result.guards.facts} == {0, 2}


def test_scalars_and_none_are_guarded_by_kind() -> None:
    def kernel(n: Any, bias: Any) -> None:
        assert bias is None
        n + 1

    guards = captured(kernel, 3, None).guards
    assert guards.check([spec_of(9), spec_of(None)], {})
    assert not guards.check([spec_of(2.5), spec_of(None)], {})
    assert not guards.check([spec_of(np.int64(3)), spec_of(None)], {})
    assert not guards.check([spec_of(9), spec_of(1)], {})


def test_configuration_is_guarded_with_its_defaults() -> None:
    def kernel(A: Any, *, block: int = 4, mode: str = "a") -> None:
        A.extent(0)
        assert block and mode

    guards = captured(kernel, numbers(4), block=8).guards
    assert guards.configuration == (("block", 8), ("mode", "a"))
    specs = [spec(4, float32)]
    assert guards.check(specs, {"block": 8, "mode": "a"})
    assert not guards.check(specs, {"block": 8.0, "mode": "a"})
    assert not guards.check(specs, {"block": 8, "mode": "b"})


def test_numbers_outside_are_guarded_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    guards = captured(scaling, numbers(4), poisoned(4)).guards
    assert guards.check_free_variables()
    monkeypatch.setitem(scaling.__globals__, "FACTOR", float("2.0"))
    assert guards.check_free_variables()
    for value in (3.0, 2, True, None):
        monkeypatch.setitem(scaling.__globals__, "FACTOR", value)
        assert not guards.check_free_variables()


def test_a_nan_equals_itself_and_zeros_differ_by_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scaling.__globals__, "FACTOR", float("nan"))
    guards = captured(scaling, numbers(4), poisoned(4)).guards
    monkeypatch.setitem(scaling.__globals__, "FACTOR", float("nan"))
    assert guards.check_free_variables()
    monkeypatch.setitem(scaling.__globals__, "FACTOR", 0.0)
    guards = captured(scaling, numbers(4), poisoned(4)).guards
    monkeypatch.setitem(scaling.__globals__, "FACTOR", -0.0)
    assert not guards.check_free_variables()


def test_objects_outside_are_guarded_by_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(X[0, 4] * TABLE[0])

    guards = captured(kernel, numbers(4), poisoned(4)).guards
    assert guards.check_free_variables()
    monkeypatch.setitem(kernel.__globals__, "TABLE", [1.0])
    assert not guards.check_free_variables()


def test_a_helper_is_guarded_and_so_is_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(X: Any, Y: Any) -> None:
        scaling(X, Y)

    guards = captured(kernel, numbers(4), poisoned(4)).guards
    monkeypatch.setitem(scaling.__globals__, "FACTOR", 5.0)
    assert not guards.check_free_variables()
    monkeypatch.undo()
    assert guards.check_free_variables()
    monkeypatch.setitem(kernel.__globals__, "scaling", len)
    assert not guards.check_free_variables()


def test_numbers_read_from_a_module_are_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(X[0, 4] * settings.FACTOR)

    x, y = numbers(4), poisoned(4)
    guards = run(kernel, x, y).guards
    np.testing.assert_array_equal(y, x * settings.FACTOR)
    assert guards.check_free_variables()
    monkeypatch.setattr(settings, "FACTOR", 9.0)
    assert not guards.check_free_variables()


def test_guards_do_not_keep_objects_alive() -> None:
    holder = SimpleNamespace(item=Box())
    guards = captured(boxed(holder.item), numbers(4), poisoned(4)).guards
    assert guards.check_free_variables()
    variable = next(item for item in guards.free_variables if item.name == "box")
    assert variable.is_weak
    del holder.item
    gc.collect()
    assert guards.check_free_variables() is (variable.current() is not None)


class Box:
    """An object that can be referred to weakly."""

    value = 2.0


def boxed(box: Box) -> Callable[..., None]:
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(X[0, 4] * box.value)

    return kernel


def make_scaling(factor: float) -> Callable[..., None]:
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(X[0, 4] * factor)

    return kernel


def test_two_kernels_of_one_source_hold_their_own_values() -> None:
    x = numbers(4)
    twice, thrice = make_scaling(2.0), make_scaling(3.0)
    assert twice.__code__ is thrice.__code__
    guards = []
    for kernel, factor in [(twice, 2), (thrice, 3)]:
        y = poisoned(4)
        guards.append(run(kernel, x, y).guards)
        np.testing.assert_array_equal(y, factor * x)
    factors = [
        variable.expected
        for one in guards
        for variable in one.free_variables
        if variable.name == "factor"
    ]
    assert factors == [2.0, 3.0]
    assert all(one.check_free_variables() for one in guards)


def test_a_changed_closure_cell_is_noticed() -> None:
    factor = 2.0

    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(X[0, 4] * factor)

    guards = captured(kernel, numbers(4), poisoned(4)).guards
    assert guards.check_free_variables()
    factor = 4.0
    assert not guards.check_free_variables()


def test_written_arguments_are_those_stored_to() -> None:
    def kernel(A: Any, B: Any, C: Any) -> None:
        B(0, 4).store(A[0, 4])
        C.extent(0)

    assert captured(kernel, numbers(4), poisoned(4), poisoned(4)).written == {1}


def test_run_time_extents_of_a_spec() -> None:
    def kernel(A: Any) -> None:
        A.extent(1)
        assert A.shape[0] == 3

    result = capture(kernel, [spec((3, "K"), float32)])  # type: ignore[arg-type]  # a Python function
    assert view_types(result) == [ViewType(float32, (3, None), (None, 1))]

    def reading(A: Any) -> None:
        assert A.shape[1]

    with pytest.raises(ShapeError, match=r"known only at run time") as caught:
        capture(reading, [spec((3, None), float32)])  # type: ignore[arg-type]  # a Python function
    assert ".extent(1)" in (caught.value.remedy or "")


def test_specs_are_checked() -> None:
    assert spec((2, 3), float32).element_strides == (3, 1)
    assert spec((2, None, 3), float32).element_strides == (None, 3, 1)
    assert spec(4, float32) == spec((4,), float32)
    with pytest.raises(ShapeError, match="negative"):
        spec((-1,), float32)
    with pytest.raises(ShapeError, match="is not an extent"):
        spec((2.5,), float32)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(RankError):
        spec((2, 3), float32, strides=(1,))
    with pytest.raises(DTypeError, match=r"such as tn\.float64"):
        spec((2, 3), "float64")
    assert spec((2, 3), np.float64) == spec((2, 3), np.dtype("f8")) == spec((2, 3), float64)


def test_annotations_are_checked() -> None:
    def kernel(A: Any, n: Any, B: Any) -> None:
        A.extent(0) + n + B.extent(0)

    kernel.__annotations__.update(
        A=tn.View[float32, 2], n=tn.Scalar[int64], B=tn.ConstView[float32]
    )
    fine = [numbers(2, 2), np.int64(3), numbers(3)]
    captured(kernel, *fine)
    for place, wrong, error in [
        (0, numbers(2), RankError),
        (0, np.zeros((2, 2)), ArgumentTypeError),
        (0, None, ArgumentTypeError),
        (1, np.float32(1), ArgumentTypeError),
        (1, 3, ArgumentTypeError),
        (2, np.int64(3), ArgumentTypeError),
    ]:
        arguments = [*fine[:place], wrong, *fine[place + 1 :]]
        with pytest.raises(error, match=repr("AnB"[place])) as caught:
            captured(kernel, *arguments)
        assert caught.value.remedy
        assert caught.value.location is not None
