"""What is compiled is the source of the function that is called, or nothing.

The judge of what a text means is Python: a function that runs and its file, before and after an
edit. Functions of the standard library, which come from bytecode on disk, are all taken for theirs.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import ast
import importlib
import inspect
import linecache
import os
import sys
import warnings
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from _pytest.assertion.rewrite import rewrite_asserts

import tilenest as tn
from tests.unit.capture.kernels import numbers, poisoned, run
from tilenest.capture.source import function_code

_times = count(1_700_000_000_000_000_000, 1_000_000_000)
_HEADER = "import tilenest as tn\n\n"


def write(path: Path, text: str) -> None:
    """A file whose time tells it from what it was."""
    path.write_text(text)
    now = next(_times)
    os.utime(path, ns=(now, now))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where modules can be imported from, again and again."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def result_of(kernel: Any) -> float:
    y = np.full(1, np.nan, np.float32)
    kernel(np.ones(1, np.float32), y)
    return float(y[0])


def kernel_text(factor: float, before: str = "") -> str:
    return _HEADER + f"{before}@tn.kernel\ndef k(X, Y):\n    Y(0, 1).store(X[0, 1] * {factor})\n"


def test_a_reloaded_module_runs_its_new_source(folder: Path) -> None:
    path = folder / "edited_kernel.py"
    write(path, kernel_text(2.0))
    module = importlib.import_module("edited_kernel")
    assert result_of(module.k) == 2.0
    for factor, before in ((30.0, ""), (5.0, "# a line more\n"), (6.0, "")):
        write(path, kernel_text(factor, before))
        importlib.reload(module)
        assert result_of(module.k) == factor


def test_a_reloaded_helper_runs_its_new_source(folder: Path) -> None:
    helper, caller = folder / "edited_helper.py", folder / "helped_kernel.py"
    write(helper, "def change(x):\n    return x * 2.0\n")
    write(
        caller,
        "import edited_helper\nimport tilenest as tn\n\n@tn.kernel\ndef k(X, Y):\n"
        "    Y(0, 1).store(edited_helper.change(X[0, 1]))\n",
    )
    module = importlib.import_module("helped_kernel")
    assert result_of(module.k) == 2.0
    write(helper, "def change(x):\n    return x * 3.0\n")
    importlib.reload(sys.modules["edited_helper"])
    assert result_of(module.k) == 3.0
    importlib.reload(module)
    assert result_of(module.k) == 3.0


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("before", ["", "# a line more\n"])
def test_a_file_edited_after_the_import_is_refused(
    folder: Path, is_known: bool, before: str
) -> None:
    name = f"stale_kernel_{is_known}_{len(before)}"
    path = folder / f"{name}.py"
    write(path, kernel_text(5.0))
    module = importlib.import_module(name)
    if is_known:
        linecache.getlines(str(path))
    write(path, kernel_text(7.0, before))
    with pytest.raises(tn.SourceUnavailableError) as caught:
        result_of(module.k)
    assert "reload" in (caught.value.remedy or "")
    importlib.reload(module)
    assert result_of(module.k) == 7.0


EDITS = {
    "an operator": ("x + y", "x - y"),
    "the order": ("x - y", "y - x"),
    "a type of number": ("x * 2", "x * 2.0"),
    "a sign of zero": ("x * 0.0", "x * -0.0"),
    "a name": ("len(x)", "abs(x)"),
    "an attribute": ("x.shape", "x.dtype"),
    "a text": ("x, 'a'", "x, 'b'"),
    "a constant in a tuple": ("x, (1, 2)", "x, (1, 2.0)"),
    "a branch": ("x if y else y", "y if y else x"),
    "a function inside": ("(lambda z: z + 1)(x)", "(lambda z: z + 2)(x)"),
    "a default of a function inside": ("(lambda z=1: z)(x)", "(lambda z=2: z)(x)"),
    "a comprehension": ("[z for z in x]", "[z for z in x if z]"),
    "a keyword": ("dict(a=x)", "dict(b=x)"),
}


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("form", ["def f(x, y):\n    return {}\n", "f = lambda x, y: ({})\n"])
def test_an_edit_of_the_text_is_noticed(name: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    before, after = (form.format(expression) for expression in EDITS[name])
    write(path, before)
    for text in (before, after):
        space: dict[str, Any] = {}
        exec(compile(text, str(path), "exec"), space)
        if text == before:
            function_code(space["f"])
        else:
            with pytest.raises(tn.SourceUnavailableError):
                function_code(space["f"])


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    owners = [module, *(item for item in vars(module).values() if isinstance(item, type))]
    for owner in owners:
        for item in vars(owner).values():
            function = inspect.unwrap(getattr(item, "__func__", item))
            is_here = getattr(function, "__module__", None) == module.__name__
            if isinstance(function, FunctionType) and is_here:
                yield function


@pytest.mark.parametrize(
    "name",
    ["argparse", "dataclasses", "functools", "inspect", "textwrap", "typing", "asyncio.queues"],
)
def test_functions_are_taken_for_their_own_source(name: str) -> None:
    module = importlib.import_module(name)
    file = module.__file__ or ""
    functions = [one for one in functions_of(module) if one.__code__.co_filename == file]
    assert len(functions) > 5
    for function in functions:
        assert function_code(function).name == function.__code__.co_name


FORMS = {
    "closures": "def make():\n    a = b = 1\n    def f(x): return lambda: a + b + x\n    return f",
    "recursion": "def make():\n    def f(x): return f(x)\n    return f",
    "a global name": "def make():\n    global f\n    a = 1\n    def f(x): return a\n    return f",
    "private names": "class _C:\n    def f(x): return x.__y\ndef make(): return _C.f",
    "private names inside": (
        "class C:\n    def g(self):\n        def f(x): return x.__y\n        return f\n"
        "def make(): return C().g()"
    ),
    "the class": "class C:\n    def f(x): return __class__\ndef make(): return C.f",
    "a class inside": "def f(x):\n    class C:\n        y = 1\n    return C\ndef make(): return f",
    "a class further down": "\n\ndef make():\n    def f(x):\n        class C: y = 1\n    return f",
    "a class of its own name": "class f:\n    def f(x): return x\ndef make(): return f.f",
    "imports": "import os\ndef f(x): return os.getcwd(x), x.a(), 'b'.c()\ndef make(): return f",
    "imports in part": (
        "import os\nlater = os\ndef f(x): return os.a.b(), os.c(), later.d()\ndef make(): return f"
    ),
    "annotations": (
        "from __future__ import annotations\n"
        "def f(x):\n    def g(y: no.such) -> thing: return y\n    return g\ndef make(): return f"
    ),
    "what Python warns of": "def f(x): return x is 1\ndef make(): return f",
    "a lambda in a lambda": "make = lambda: (lambda x=lambda: 1: lambda: x)",
    "a decorator": "@(lambda g: g)\ndef f(x=lambda: 1): return x\ndef make(): return f",
    "a yield": "def f(x):\n    yield x\ndef make(): return f",
    "a NaN": "def f(x): return x * (1e400 - 1e400), 1j * (1e400 - 1e400)\ndef make(): return f",
    "a lambda in a list": "fs = [(lambda x: x * i) for i in (1, 2)]\ndef make(): return fs[0]",
    "a lambda in a dict": "fs = {i: (lambda x: x * i) for i in (1, 2)}\ndef make(): return fs[1]",
    "a lambda in a set": "fs = {(lambda x: x * i) for i in (1, 2)}\ndef make(): return fs.pop()",
    "a lambda in a generator": (
        "fs = list((lambda x: x * i) for i in (1, 2))\ndef make(): return fs[0]"
    ),
    "a lambda in a list in a list": (
        "fs = [[(lambda x: x * i * j) for i in (1, 2)] for j in (3, 4)]\n"
        "def make(): return fs[0][0]"
    ),
    "a lambda in a list in a class": (
        "class C:\n    fs = [(lambda x: x.__y * i) for i in (1, 2)]\ndef make(): return C.fs[0]"
    ),
    "a lambda in a generator in a method": (
        "class C:\n    def g(self, k):\n"
        "        return list((lambda x: (__class__, x * i * k)) for i in (1, 2))\n"
        "def make(): return C().g(3)[0]"
    ),
    "a lambda in a lambda in a list": (
        "fs = [(lambda k: lambda x: x * i * k) for i in (1, 2)]\ndef make(): return fs[0](3)"
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_definitions(name: str) -> None:
    file = f"<form {name}>"
    text = FORMS[name] + "\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"__name__": "forms"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, file, "exec", dont_inherit=True), space)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function_code(space["make"]())


def test_statements_compiled_one_by_one() -> None:
    """As notebooks do: the function's module has no import."""
    file = "<cell>"
    text = "import os\ndef f(x): return os.getcwd(x)\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {}
    for statement in ast.parse(text).body:
        exec(compile(ast.Module([statement], []), file, "exec"), space)
    function_code(space["f"])


def test_assertions_that_pytest_has_rewritten() -> None:
    def kernel(X: Any, Y: Any) -> None:
        assert X.shape[0] in (3, 4, 5), "an extent"
        Y(0, 4).store(X[0, 4] * 2.0)

    assert any(name.startswith("@") for name in kernel.__code__.co_varnames)
    x, y = numbers(4), poisoned(4)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, 2 * x)


def rewritten(text: str, path: Path) -> FunctionType:
    tree = ast.parse(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rewrite_asserts(tree, text.encode(), str(path))
    space: dict[str, Any] = {}
    exec(compile(tree, str(path), "exec"), space)
    function: FunctionType = space["f"]
    return function


FLOWS = {
    "or": ("if x and y:", "if x or y:"),
    "not": ("if x and y:", "if not (x and y):"),
    "a loop": ("if x and y:", "while x and y:"),
    "a number that is asserted": ("== 4", "== 5"),
    "an operator that is asserted": ("== 4", "!= 4"),
    "a message": ("'an extent'", "'two extents'"),
    "an assertion less": ("    assert x in (y, 4)\n", ""),
    "nothing returned": ("return y", "return None"),
}


@pytest.mark.parametrize("name", FLOWS)
def test_an_edit_of_a_branch_or_an_assertion_is_noticed(name: str, tmp_path: Path) -> None:
    text = (
        "def f(x, y):\n    assert x.shape[0] == 4, 'an extent'\n    assert x in (y, 4)\n"
        "    assert (x, y)\n    if x and y:\n        x += 1\n    return y\n"
    )
    path = tmp_path / "test_flows.py"
    write(path, text)
    function_code(rewritten(text, path))
    before, after = FLOWS[name]
    assert before in text
    with pytest.raises(tn.SourceUnavailableError):
        function_code(rewritten(text.replace(before, after), path))


@pytest.mark.parametrize("after", ["x * 3.0", "y * 2.0", "x.real * 2.0", "2.0 * x"])
def test_an_edit_beside_a_rewritten_assertion_is_noticed(after: str, tmp_path: Path) -> None:
    text = (
        "def f(x, y):\n    for z in y:\n        if z:\n            assert z < x\n"
        "        else:\n            x += 1\n            assert x in [1, 2], 'no'\n    assert x\n"
        "    return {}\n"
    )
    path = tmp_path / "test_module.py"
    write(path, text.format("x * 2.0"))
    for body in ("x * 2.0", after):
        function = rewritten(text.format(body), path)
        if body == after:
            with pytest.raises(tn.SourceUnavailableError):
                function_code(function)
        else:
            function_code(function)


scalings: list[Any] = [(lambda x: x * factor) for factor in (2.0, 3.0)]  # noqa: B023 - the form


def test_lambdas_of_a_comprehension_read_what_python_reads() -> None:
    def kernel(X: Any, Y: Any) -> None:
        for place, scaling in enumerate(scalings):
            Y(2 * place, 2).store(scaling(X[2 * place, 2]))

    x, y = numbers(4), poisoned(4)
    run(kernel, x, y)
    expected = [scaling(part) for scaling, part in zip(scalings, (x[:2], x[2:]), strict=True)]
    np.testing.assert_array_equal(y, np.concatenate(expected))


def test_a_nan_among_the_constants() -> None:
    def kernel(X: Any, Y: Any) -> None:
        Y(0, 4).store(X[0, 4] * (1e400 - 1e400))

    x, y = numbers(4), np.zeros(4, np.float32)
    run(kernel, x, y)
    assert np.isnan(y).all()
