"""Kernels that misuse views of views, explicit memory, atomic updates or synchronization."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.errors.refusals import assert_points_at, refused
from tests.oracle.arrays import Array, Placed


def test_loading_before_anything_is_stored(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(_: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        Y((0, 0), (4, 16)).store(held.load())  # wrong

    refused(kernel, tn.UninitialisedMemoryError, "held.load()", x, y, remedy="store in it first")


def test_loading_behind_a_loop_that_may_not_run(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        for _ in tn.serial(X.extent(0)):
            held.store(X[(0, 0), (4, 16)])
        Y((0, 0), (4, 16)).store(held.load())  # wrong

    refused(kernel, tn.UninitialisedMemoryError, "held.load()", x, y, remedy="run no time")


def test_loading_what_only_one_branch_stores(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        if X.extent(0) > 2:
            held.store(0.0)
        Y((0, 0), (4, 16)).store(held.load())  # wrong

    refused(kernel, tn.UninitialisedMemoryError, "held.load()", x, y, remedy="on every way")


def test_loading_in_a_loop_before_its_store(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        for _ in tn.serial(3):
            Y((0, 0), (4, 16)).store(held.load())  # wrong
            held.store(X[(0, 0), (4, 16)])

    refused(kernel, tn.UninitialisedMemoryError, "held.load()", x, y, remedy="store in it first")


def test_loading_the_whole_when_a_part_is_stored(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        held((0, 0), (1, 16)).store(X[(0, 0), (1, 16)])
        Y((0, 0), (4, 16)).store(held.load())  # wrong

    remedy = "in all of the part that is loaded"
    refused(kernel, tn.UninitialisedMemoryError, "held.load()", x, y, remedy=remedy)


def test_a_part_of_another_rank(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(_: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        held.store(0.0)
        Y((0, 0), (4, 16)).store(held((0, 0), (16,)).load())  # wrong

    refused(kernel, tn.RankError, "held((0, 0), (16,))", x, y, remedy="one extent per dimension")


def test_instances_that_store_in_a_memory_around_them(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (1, 16))
        held.store(0.0)
        for row in tn.parallel(4):
            for _ in row.serial(2):
                held.store(X[(row, 0), (1, 16)])  # wrong
            Y((row, 0), (1, 16)).store(held.load())

    caret = "held.store(X[(row, 0), (1, 16)])"
    refused(kernel, tn.AncestorUpdateError, caret, x, y, remedy="inside the region")


def test_a_second_name(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(_: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        other = held  # wrong
        other.store(0.0)
        Y((0, 0), (4, 16)).store(held.load())

    refused(kernel, tn.CaptureError, None, x, y, remedy="use the one name")


@pytest.mark.parametrize("container", ["[held]", "{'a': held}"])
def test_a_memory_in_a_container(container: str, x: Array, y: Placed) -> None:
    @tn.kernel
    def in_list(_: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        kept = [held]  # wrong
        Y((0, 0), (4, 16)).store(kept[0].load())

    @tn.kernel
    def in_dict(_: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        kept = {"a": held}  # wrong
        Y((0, 0), (4, 16)).store(kept["a"].load())

    kernel = in_list if container.startswith("[") else in_dict
    refused(kernel, tn.CaptureError, None, x, y, remedy="a variable of its own")


def test_a_memory_is_no_value(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(_: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        held.store(0.0)
        Y((0, 0), (4, 16)).store(held * 2.0)  # type: ignore[operator]  # wrong

    refused(kernel, tn.CaptureError, "held * 2.0", x, y, remedy="memory.load()")


def test_a_memory_of_a_region_that_has_ended(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(_: Any, Y: Any) -> None:
        kept = []
        for _ in tn.parallel(1):
            held = tn.memory(tn.float32, (4, 16))
            held.store(0.0)
            kept.append(held)
        Y((0, 0), (4, 16)).store(kept[0].load())  # wrong

    with pytest.raises(tn.TileError):
        kernel(x, y.array)
    assert y.is_unchanged


@pytest.mark.parametrize(("dtype", "shape"), [(tn.float64, (4, 16)), (tn.float32, (4, 15))])
def test_what_does_not_fit(dtype: Any, shape: tuple[int, ...], x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(dtype, shape)
        held.store(X[(0, 0), (4, 16)])  # wrong
        Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])

    error = tn.DTypeError if dtype is tn.float64 else tn.ShapeError
    refused(kernel, error, "held.store(X[(0, 0), (4, 16)])", x, y, remedy="")


BAD_LAYOUTS: dict[str, tuple[Any, str]] = {
    "alias": (lambda m, n: tn.layout((m, n), (0, 1)), "injective"),
    "overlap": (lambda m, n: tn.layout((m, n), (3, 1)), "injective"),
    "outside": (
        lambda m, n: tn.index_map((m, n), (5, 16), lambda i, j: (i + 2, j)),
        "bounded",
    ),
    "before": (lambda m, n: tn.index_map((m, n), (64,), lambda i, j: i * 16 - j), "bounded"),
    "one place": (lambda m, n: tn.index_map((m, n), (64,), lambda i, j: (i * j) % 1), "injective"),
}


@pytest.mark.parametrize("name", BAD_LAYOUTS)
def test_layouts_that_cannot_hold_a_memory(name: str, x: Array, y: Placed) -> None:
    make, what = BAD_LAYOUTS[name]

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        m, n = tn.axis("m", 4), tn.axis("n", 16)
        held = tn.memory(tn.float32, make(m, n))  # wrong
        held.store(X[(0, 0), (m, n)])
        Y((0, 0), (m, n)).store(held.load())

    found = refused(kernel, tn.ShapeError, None, x, y, remedy="")
    assert f"not {what}" in found.message


def test_strides_of_a_layout(x: Array, y: Placed) -> None:
    for stride, error in (((16, -1), tn.ShapeError), ((16,), tn.RankError)):

        @tn.kernel
        def kernel(_: Any, Y: Any, *, stride: Any = stride) -> None:
            held = tn.memory(tn.float32, tn.layout((4, 16), stride))  # wrong
            held.store(0.0)
            Y((0, 0), (4, 16)).store(held.load())

        refused(kernel, error, "tn.layout((4, 16), stride)", x, y, remedy="in elements")


@pytest.mark.parametrize("resource", [tn.mem.cluster, tn.mem.global_, tn.mem.tensor])
@pytest.mark.parametrize("rows", [0, 4])
def test_storage_that_the_cpu_does_not_have(resource: Any, rows: int, x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (rows, 16), resource)
        held.store(0.0)
        Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])

    with pytest.raises(tn.TargetError, match=resource.value) as caught:
        kernel.compile(x, y.array, target="cpu")
    assert caught.value.location is not None and "tn.memory" in caught.value.location.source


def test_private_storage_of_the_kernel_in_its_instances(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(_: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (1, 16), tn.mem.private)
        held.store(0.0)
        for row in tn.parallel(4):
            Y((row, 0), (1, 16)).store(held.load())

    with pytest.raises(tn.TargetError, match="private"):
        kernel.compile(x, y.array, target="cpu")


# Views of views ----------------------------------------------------------------------------------


def test_storing_where_one_element_is_shown_twice(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        row = Y.slice((0, 0), (1, 16)).broadcast_to(4, 16)
        row((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])  # wrong

    caret = "row((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])"
    refused(kernel, tn.ReadOnlyError, caret, x, y, remedy="each element once")


def test_storing_through_a_map_that_folds(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        folded = Y.remap(tn.index_map((4, 16), (4, 16), lambda i, j: (i, j // 2)))
        folded((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])  # wrong

    caret = "folded((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])"
    refused(kernel, tn.ReadOnlyError, caret, x, y, remedy="each element once")


MISTAKES: dict[str, tuple[Any, type[tn.TileError]]] = {
    "slice of another rank": (lambda X: X.slice((0,), (4, 16)), tn.RankError),
    "step of 0": (lambda X: X.slice((0, 0), (4, 16), (1, 0)), tn.CaptureError),
    "negative extent": (lambda X: X.slice((0, 0), (4, -1)), tn.ShapeError),
    "axis twice": (lambda X: X.permute(0, 0), tn.RankError),
    "axis missing": (lambda X: X.permute(0), tn.RankError),
    "other volume": (lambda X: X.reshape(4, 15), tn.ShapeError),
    "two open extents": (lambda X: X.reshape(-1, -1), tn.ShapeError),
    "broadcast of 4": (lambda X: X.broadcast_to(8, 16), tn.ShapeError),
    "fewer axes": (lambda X: X.broadcast_to(16), tn.ShapeError),
    "codomain": (lambda X: X.remap(tn.index_map((2,), (3, 16), lambda i: (i, i))), tn.ShapeError),
    "no map": (lambda X: X.remap((4, 16)), tn.CaptureError),
    "rank of a map": (lambda X: X.remap(tn.index_map((2,), (4,), lambda i: i)), tn.RankError),
    "results of a map": (lambda _: tn.index_map((2,), (4, 16), lambda i: i), tn.RankError),
    "uneven": (lambda X: X.reshape(64).reshape(8, 8).T.reshape(64).stride(0), tn.ShapeError),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_views_that_cannot_be(name: str, x: Array, y: Placed) -> None:
    make, error = MISTAKES[name]

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        make(X)
        Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])

    found = refused(kernel, error, None, x, y, remedy="")
    assert found.remedy and found.location is not None


# Atomics and synchronization ---------------------------------------------------------------------


def test_atomic_bits_of_floats(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        Y.at(0, 0).atomic_or(X.at(0, 0).load())  # wrong

    refused(kernel, tn.DTypeError, "Y.at(0, 0).atomic_or(X.at(0, 0).load())", x, y, remedy="")


def test_synchronizing_the_wrong_nest(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for row in tn.parallel(4):
            for step in row.serial(2):
                tn.sync(step)  # wrong
            Y((row, 0), (1, 16)).store(X[(row, 0), (1, 16)])

    refused(kernel, tn.CaptureError, "tn.sync(step)", x, y, remedy="the parallel nest")


def test_synchronizing_where_not_all_come(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for row in tn.parallel(4):
            index: Any = row.index()
            if index > 1:
                tn.sync(row)  # wrong
            Y((row, 0), (1, 16)).store(X[(row, 0), (1, 16)])

    refused(kernel, tn.CaptureError, "tn.sync(row)", x, y, remedy="the body of the nest")


def refused_for_the_cpu(kernel: tn.Kernel, caret: str, remedy: str, *arguments: Any) -> None:
    """What the interpreter has a meaning for, and machine code cannot do."""
    with pytest.raises(tn.TargetError) as caught:
        kernel.compile(*arguments, target="cpu")
    assert remedy in (caught.value.remedy or "")
    assert_points_at(caught.value, kernel, caret)


def test_instances_that_come_to_a_synchronization_in_different_numbers(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for row in tn.parallel(4):
            own: Any = row.index()
            for _ in row.serial(own + 1):  # wrong
                Y.at(own, 0).store(X.at(own, 0).load())
                tn.sync(row)

    refused_for_the_cpu(kernel, "row.serial(own + 1)", "depend on no instance", x, y.array)
    with pytest.raises(tn.ControlFlowError, match="others wait") as caught:
        kernel.compile(x, y.array, target="interpret")(x, y.array)
    assert "the same for all" in (caught.value.remedy or "")


def test_values_that_unknown_numbers_of_instances_keep(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for row in tn.parallel(X.extent(0)):
            kept = Y.at(row, 0).load()  # wrong
            Y.at(row, 0).store(X.at(row, 0).load())
            tn.sync(row)
            Y.at(row, 1).store(kept)

    refused_for_the_cpu(kernel, "Y.at(row, 0).load()", "an array", x, y.array)


def test_arrays_that_coincide_through_views() -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        for row in tn.parallel(4):
            Y((row, 0), (1, 4)).store(X.T[(row, 0), (1, 4)])

    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    before = a.copy()
    with pytest.raises(tn.OverlapError):
        kernel(a, a)
    np.testing.assert_array_equal(a, before)
