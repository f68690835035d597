"""Scopes and classes of memory: what the plan chooses, what it keeps, what it refuses."""

import numpy as np
import pytest

import tilenest as tn
from tilenest.dialects import Alloc, Parallel
from tilenest.driver import parse
from tilenest.errors import ScopeError, TargetError
from tilenest.ir import Module, On, Rewriter, fresh
from tilenest.machine import AVX2, AVX512, cpu_target
from tilenest.passes import place
from tilenest.plan import Placements
from tilenest.verify import verify_module

NESTS = """module "scheduled"

func @main(%A: view<f32, [4], [1]>) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c4 = scalar.constant 4 : index
  %outside = buf.alloc : buf<f32, 4>
  exec.parallel(lower = [%c0], upper = [%c4], step = [%c1]OUTER) { |%i: index|
    %shared = buf.alloc : buf<f32, 4>
    %own = buf.alloc : buf<f32, 4>
    COPY(%A, %outside)
    COPY(%A, %shared)
    COPY(%shared, %own)
    exec.parallel(lower = [%c0], upper = [%c4], step = [%c1]INNER) { |%j: index|
      %last = buf.alloc : buf<f32, 4>
      COPY(%shared, %last)
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""
COPY = """tensor.map_reduce_post(
        inputs = [{}], outputs = [{}], extents = [4],
        input_access = [#access<map = (d0) -> (d0)>], output_access = [#access<map = (d0) -> (d0)>],
        specs = [#result_spec<dims = [0]>]
    ) {{ |%d: index, %x: f32|
      exec.yield(%x)
    }}"""


def nests(outer: str = "auto", inner: str = "auto") -> Module:
    text = NESTS
    for mark, scope in (("OUTER", outer), ("INNER", inner)):
        text = text.replace(mark, "" if scope == "auto" else f', scope = "{scope}"')
    parts = text.split("COPY(")
    whole = parts[0]
    for part in parts[1:]:
        operands, _, rest = part.partition(")")
        whole += COPY.format(*operands.split(", ")) + rest
    return parse(whole)


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize(
    ("named", "chosen"),
    [
        (("auto", "auto"), ("group", "worker")),
        (("auto", "worker"), ("group", "worker")),
        (("auto", "device"), ("device", "device")),
        (("worker", "auto"), ("worker", "worker")),
        (("group", "vector"), ("group", "vector")),
    ],
)
def test_scopes_fit_between_those_that_are_named(machine, named, chosen) -> None:
    module = nests(*named)
    (function,) = module.functions
    place(function, cpu_target(machine), Rewriter())
    assert tuple(op.scope for op in module.walk() if isinstance(op, Parallel)) == chosen
    verify_module(module)


def test_memory_is_where_its_owner_has_an_instance() -> None:
    module = nests("group", "worker")
    (function,) = module.functions
    decisions = place(function, cpu_target(AVX512), Rewriter())
    found = {op.result.name: op.resource for op in module.walk() if isinstance(op, Alloc)}
    assert found == {"outside": "call", "shared": "shared", "own": "private", "last": "private"}
    assert [decision.subject for decision in decisions] == ["memory of %shared"]
    verify_module(module)


@pytest.mark.parametrize(
    ("named", "error", "message"),
    [
        (("worker", "group"), ScopeError, "cannot stand between"),
        (("auto", "subgroup"), TargetError, "no execution scope 'subgroup'"),
    ],
)
def test_scopes_that_the_target_does_not_nest_are_refused(named, error, message) -> None:
    (function,) = nests(*named).functions
    with pytest.raises(error, match=message) as refused:
        fresh(Placements, On(function, cpu_target(AVX2)))
    assert refused.value.remedy


def test_compiled_kernels_leave_nothing_open() -> None:
    @tn.kernel
    def kernel(A, B):
        n = tn.axis("n", 8)
        for one in tn.parallel(2):
            row = A[one.index() * 8, n]
            total = tn.reduce(row, n, tn.add)
            for two in one.parallel(2):
                B.at(one.index() * 2 + two.index()).store(total)

    a, b = np.arange(16, dtype=np.float32), np.zeros(4, np.float32)
    compiled = kernel.compile(a, b)
    compiled(a, b)
    np.testing.assert_array_equal(b, np.repeat(a.reshape(2, 8).sum(1), 2))
    module = parse(compiled.ir("scheduled"))
    assert all(op.scope != "auto" for op in module.walk() if isinstance(op, Parallel))
    assert all(op.resource != "auto" for op in module.walk() if isinstance(op, Alloc))
