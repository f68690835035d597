"""The rules about ops as IR text: a good module of each form, and changes that break one rule."""

from __future__ import annotations

import re

import pytest

from tests.unit.verify.effect_modules import EFFECT_CHANGES
from tests.unit.verify.modules import GOOD, SCHEDULED
from tests.unit.verify.structure_modules import STRUCTURE_CHANGES
from tilenest.dialects import registry
from tilenest.errors import VerifyError
from tilenest.ir import Module, parse_module, verify
from tilenest.verify import OP_RULES, RULE_STEPS, diagnose_module, verify_module

PYTHON = re.compile(r"\w\(\w+=|tilenest\.|\b(None|True|False)\b|\w+Type\b")
"""Values as Python shows them, which no reader of the text knows."""
OUTER_FIRST = (
    '#loop<dim = 0, step = 1>, #loop<dim = 1, step = 16, policy = "vector">],\n'
    '        atoms = [#atom_choice<atom = "cpu.lanes.reduce">]>'
)
MANY_STEPS = ", ".join(f"#loop<dim = 0, step = {1 << power}>" for power in range(7, 0, -1))
FOLD = SCHEDULED[SCHEDULED.index("      inputs = [%t]") : SCHEDULED.index("  func.return")]
TWO_FOLDS = (
    FOLD,
    """      inputs = [%t], seeds = [%x, %x], outputs = [%sums, %sums], extents = [8, 8],
      input_access = [#access<map = (d0, d1) -> (d0, d1)>],
      seed_access = [#access<map = (d0, d1) -> ()>, #access<map = (d0, d1) -> ()>],
      output_access = [#access<map = (d0, d1) -> (d0)>, #access<map = (d0, d1) -> (d1)>],
      specs = [
        #result_spec<dims = [0], contract = #reduction_contract<policy = "fold_left">>,
        #result_spec<dims = [1], contract = #reduction_contract<policy = "fold_left">>],
      sched = #sched<loops = [#loop<dim = 0, step = 1>, #loop<dim = 1, step = 1>]>
  ) { |%i: index, %j: index, %a: f32, %r: f32, %s: f32|
    %1 = scalar.apply "add"(%r, %a) : f32
    %2 = scalar.apply "add"(%s, %a) : f32
    exec.yield(%1, %2)
  } { |%i: index, %j: index, %s: f32|
    exec.yield(%s)
  } { |%i: index, %j: index, %s: f32|
    exec.yield(%s)
  }
""",
)
"""one folds the rows, one the columns"""
SQUARES = (
    "specs = [#result_spec<dims = [0, 1], is_masked = true>],\n"
    "      sched = #sched<loops = [\n"
    '        #loop<dim = 0, step = 4>, #loop<dim = 1, step = 8, policy = "vector">,\n'
    '        #loop<dim = 0, step = 1, policy = "unrolled">]>\n'
    "  ) { |%i: index, %j: index, %a: f32|\n"
    "    %0 = scalar.constant true : bool\n    exec.yield(%a, %0)"
)


def squares(*loops: str) -> tuple[str, str]:
    """The pointwise op without its mask, over these loops."""
    listed = ", ".join(f"#loop<{loop}>" for loop in loops)
    return SQUARES, (
        f"specs = [#result_spec<dims = [0, 1]>],\n      sched = #sched<loops = [{listed}]>\n"
        "  ) { |%i: index, %j: index, %a: f32|\n    exec.yield(%a)"
    )


LANES = 'dim = 1, step = 4, policy = "vector"'
ROWS = 'dim = 0, step = 1, policy = "transposed"'
SQUARES_TOO_TALL = squares("dim = 0, step = 8", LANES, ROWS)
SQUARES_UNTILED = squares(LANES, ROWS)
SQUARES_WITHOUT_LANES = squares("dim = 1, step = 1", "dim = 0, step = 4", ROWS)
SQUARES_OUTSIDE = squares("dim = 0, step = 4", ROWS, LANES)

# rule, form, what is replaced, by what
SEEN = "  %seen = buf.read(%flag) : i32\n"
BOUNDS = "lower = [%n], upper = [%n], step = [%n]"
OPEN_SCOPE = (
    SEEN,
    f"{SEEN}  exec.parallel({BOUNDS}, scope = ?s) {{ |%k: index| exec.yield }}\n",
)
OPEN_WINDOW = (
    SEEN,
    f"{SEEN}  exec.pipeline({BOUNDS}, window = ?w, stage_names = [none]) "
    "{ |%k: index| exec.yield }\n",
)
CHANGES = [
    ("OP01", "candidate", "func.return(%r)", "func.return"),
    ("OP01", "candidate", "func.return(%r)", "func.return(%n)"),
    ("OP01", "candidate", "    exec.yield(%x)\n  } {", "    func.return(%x)\n  } {"),
    ("OP02", "candidate", "lower = [%c0, %c0], upper", "lower = [%c0], upper"),
    ("OP02", "candidate", "lower = [%c0, %c0], upper", "lower = [%c0, %h], upper"),
    ("OP02", "candidate", "lower = [%c0, %c0], upper = [%n, %e], step = [%c1, %c1]) { |%i: index, "
     "%j: index|",
     "step = []) {\n    %i = scalar.constant 0 : index\n"
     "    %j = scalar.constant 0 : index"),
    ("OP03", "candidate", "{ |%i: index, %j: index|", "{ |%i: index, %j: index, %q1: f32|"),
    ("OP03", "candidate", "|%5: index, %in: f32|", "|%5: index, %in: f32, %3: f32|"),
    ("OP03", "candidate", "exec.yield(%next)", "exec.yield(%next, %next)"),
    ("OP03", "candidate", "exec.yield(%more)\n    }", "exec.yield(%more)\n    } {\n exec.yield\n}"),
    ("OP03", "candidate", "%handed: index, %flag: bool|", "%handed: index|"),
    ("OP03", "candidate", "exec.yield(%in)\n    }\n    %total",
     "exec.yield(%4)\n    }\n    %total"),
    ("OP04", "candidate", 'policy = "fold_left"', 'policy = "fold_up"'),
    ("OP04", "candidate", "window = 2", "window = -2"),
    ("OP04", "candidate", "window = 2", "interval = 0"),
    ("TN14", "candidate", '["load", none]', '["load"]'),
    ("TN14", "candidate", '["load", none]', '["load", "load"]'),
    ("TN03", "candidate", "step = [%c1, %c1])", 'step = [%c1, %c1], scope = "moon")'),
    ("OP05", "candidate", "exec.if(%less)", "exec.if(%e)"),
    ("OP05", "candidate", "exec.yield(%bits)", "exec.yield(%h)"),
    ("OP05", "candidate", " {\n    exec.yield(%bits)\n  }", ""),
    ("OP06", "candidate", "constant 255", "constant 256"),
    ("OP06", "candidate", "constant 0.5 : bf16", "constant 0.1 : bf16"),
    ("OP06", "candidate", "constant 65504.0", "constant 65536.0"),
    ("OP06", "candidate", "constant true", "constant 1"),
    ("OP06", "candidate", "%c0 = scalar.constant 0 :", "%c0 = scalar.constant 0.0 :"),
    ("OP06", "candidate", "constant 0.5", 'constant "half"'),
    ("OP07", "candidate", '"add"(%e, %s)', '"plus"(%e, %s)'),
    ("OP07", "candidate", '"add"(%e, %s)', '"add"(%e)'),
    ("OP07", "candidate", '"add"(%e, %s)', '"div"(%e, %s)'),
    ("OP07", "candidate", '"lt"(%e, %s)', '"lt"(%e, %x)'),
    ("OP07", "candidate", '"where"(%less, %e, %s)', '"where"(%e, %e, %s)'),
    ("OP07", "candidate", '"mul"(%u, %v) : f32', '"mul"(%u, %A) : f32'),
    ("OP07", "machine", '"add"(%g, %in)', '"add"(%g, %x)'),
    ("OP08", "candidate", "cast(%h) : f64", "cast(%A) : f64"),
    ("OP08", "candidate", "%wide = scalar.cast(%h) : f64",
     "%w1, %w2 = scalar.cast(%h) : (f64, f64)"),
    ("OP09", "candidate", "bitcast(%h)", "bitcast(%n)"),
    ("OP09", "candidate", "bitcast(%h)", "bitcast(%A)"),
    ("OP10", "candidate", "view.extent(%A, axis = 1)", "view.extent(%A, axis = 2)"),
    ("OP10", "candidate", "view.extent(%A, axis = 1)", "view.extent(%x, axis = 1)"),
    ("OP11", "candidate", "view.stride(%A, axis = 0)", "view.stride(%A, axis = -1)"),
    ("OP11", "candidate", "view.stride(%A, axis = 0)", "view.stride(%n, axis = 0)"),
    ("OP12", "candidate", "tile.load(%A, [%c0, %c1], other", "tile.load(%A, [%c0], other"),
    ("OP12", "candidate", "tile.load(%A, [%c0, %c1], other", "tile.load(%A, [%c0, %h], other"),
    ("OP12", "candidate", "%j], other = %x", "%j], other = %h"),
    ("OP12", "candidate", "mask = %p)", "mask = %h)"),
    ("OP12", "candidate", 'bounds = "check"', 'bounds = "maybe"'),
    ("OP12", "candidate", "%j]) : tile<f32, 1, %d1>", "%j], mask = %a) : tile<f32, 1, %d1>"),
    ("OP12", "candidate", "%one = tile.load(%A, [%c0, %c1], other = %x, mask = %p) : f32",
     "%one = tile.load(%A, [%c0, %c1]) : f16"),
    ("OP12", "candidate", "%one = tile.load(%A, [%c0, %c1], other = %x, mask = %p) : f32",
     "%one = tile.load(%A, [%c0, %c1]) : tile<f32, 4>"),
    ("OP12", "candidate", "%one = tile.load(%A, [%c0, %c1], other = %x, mask = %p)",
     "%one = tile.load(%x, [%c0, %c1])"),
    ("OP13", "candidate", "tile.store(%A, [%i, %j], %x)", "tile.store(%A, [%i], %x)"),
    ("OP13", "candidate", "tile.store(%A, [%i, %j], %x)", "tile.store(%A, [%i, %j], %n)"),
    ("OP13", "candidate", "tile.store(%A, [%i, %j], %x)", "tile.store(%A, [%i, %j], %a)"),
    ("OP13", "candidate", "tile.store(%A, [%i, %j], %x)", "tile.store(%x, [%i, %j], %x)"),
    ("OP13", "candidate", "dims = [%d1, %d0]", "dims = [%d1]"),
    ("OP13", "candidate", "dims = [%d1, %d0]", "dims = [%d1, 8]"),
    ("OP13", "candidate", "dims = [%d1, %d0]", "dims = [%d2, %d0]"),
    ("OP13", "candidate", "mask = %mask, ", "mask = %t, "),
    ("OP14", "candidate", "(%acc, %total, %row) : tile<f32, %d0, %d1, 1@1>",
     "(%acc, %total, %row) : tile<f32, %d0, 1@1, %d2>"),
    ("OP14", "candidate", "(%acc, %total, %row) : tile<f32", "(%acc, %n, %row) : tile<f32"),
    ("OP14", "candidate", "|%6: index, %7: index, ", "|%6: index, %7: f32, "),
    ("OP14", "candidate", "exec.yield(%product)", "exec.yield(%7)"),
    ("OP14", "candidate", "%product = ", "%a2 = tile.load(%A, [%i, %j]) : f32\n%product = "),
    ("OP14", "candidate", "exec.yield(%product)\n    }",
     "exec.yield(%product)\n    }{ exec.yield }"),
    ("TN01", "candidate", "(d0, d1)[s0] -> (d1, d0 + s0)", "(d0, d1)[s0] -> (d1)"),
    ("TN01", "candidate", "(d0, d1)[s0] -> (d1, d0 + s0)", "(d0, d1) -> (d1, d0)"),
    ("TN01", "candidate", "(d0, d1)[s0] -> (d1, d0 + s0)", "(d0)[s0] -> (d0, d0 + s0)"),
    ("OP15", "candidate", "tile.reindex(%acc, [%i]", "tile.reindex(%acc, [%x]"),
    ("OP15", "candidate", "tile.reindex(%acc, [%i]", "tile.reindex(%mask1, [%i]"),
    ("OP16", "candidate", "tile.mma(%a, %b, %in)", "tile.mma(%a, %in, %in)"),
    ("OP16", "candidate", "tile.mma(%a, %b, %in)", "tile.mma(%b, %b, %in)"),
    ("OP16", "candidate", "tile.mma(%a, %b, %in)", "tile.mma(%a, %x, %in)"),
    ("OP17", "lifted", "extents = [8, 16]", "extents = [8, -16]"),
    ("OP17", "lifted", "clipped = [1]", "clipped = [2]"),
    ("OP17", "lifted", "clipped = [1],", ""),
    ("OP17", "lifted", "symbols = [%n]", "symbols = [%x]"),
    ("TN01", "lifted", "(d0, d1)[s0] -> (d0 + s0, d1)", "(d0, d1)[s0] -> (d0 + s0)"),
    ("TN01", "lifted", "(d0, d1)[s0] -> (d0 + s0, d1)", "(d0, d1) -> (d0, d1)"),
    ("OP18", "lifted", 'bounds = "zero"', 'bounds = "maybe"'),
    ("OP18", "lifted", "seed_access = [#access<map = (d0, d1)[s0] -> ()>],", ""),
    ("OP18", "lifted", "seed_access = [#access<map = (d0, d1)[s0] -> ()>]", "seed_access = [3]"),
    ("OP18", "scheduled", "outputs = [%sums]", "outputs = [%x]"),
    ("OP18", "scheduled", "inputs = [%A], outputs = [%t], extents = [8, 16],\n      input_access = "
     "[#access<map = (d0, d1) -> (d0, d1)>]",
     "inputs = [%t], outputs = [%t], extents = [8, 16],\n      input_access = "
     "[#access<map = (d0, d1) -> (d0, 0)>]"),
    ("OP19", "lifted", "dims = [0, 1]>", "dims = [0]>"),
    ("OP19", "lifted", "dims = [0], posts", "dims = [2], posts"),
    ("OP19", "lifted", "dims = [0], posts", "dims = [0, 0], posts"),
    ("OP19", "lifted", 'policy = "unordered_tree"', 'policy = "any"'),
    ("OP19", "lifted", "posts = 1, ", ""),
    ("OP19", "lifted", "posts = 1", "posts = 1, is_masked = true"),
    ("OP19", "lifted", "tile<f32, %d0>)", "tile<f32, %d1>)"),
    ("OP19", "lifted", "dims = [0, 1]>", "dims = [0, 1], posts = 1>"),
    ("OP19", "lifted", "#result_spec<dims = [0, 1]>,", "3,"),
    ("OP19", "scheduled", "seeds = [%x], ", ""),
    ("OP19", "scheduled", "output_access = [#access<map = (d0, d1) -> (d0)>]",
     "output_access = [#access<map = (d0, d1) -> (d1)>]"),
    ("OP20", "lifted", "%a: f32, %b: f32, %s: f32|", "%a: f32, %b: index, %s: f32|"),
    ("OP20", "lifted", "exec.yield(%0, %1)", "exec.yield(%0)"),
    ("OP20", "lifted", "exec.yield(%s)", "exec.yield(%i)"),
    ("OP20", "lifted", "%s: f32, %p: f32|", "%s: f32|"),
    ("OP20", "lifted", " { |%i: index, %j: index, %s: f32, %p: f32|\n    exec.yield(%s)\n  }", ""),
    ("OP20", "lifted", "%0 = scalar.apply", "%2 = buf.alloc : buf<f32, 4>\n    %0 = scalar.apply"),
    ("OP20", "scheduled", "exec.yield(%a, %0)", "exec.yield(%a)"),
    ("OP21", "scheduled", "#loop<dim = 0, step = 4>, ", "#loop<dim = 0, step = 0>, "),
    ("OP21", "scheduled", "#loop<dim = 0, step = 4>, ", "#loop<dim = 3, step = 4>, "),
    ("OP21", "scheduled", 'step = 1, policy = "unrolled"', 'step = 2, policy = "unrolled"'),
    ("OP21", "scheduled", 'step = 1, policy = "unrolled"', 'step = 8, policy = "unrolled"'),
    ("OP21", "scheduled", 'policy = "unrolled"', 'policy = "jam"'),
    ("OP21", "scheduled", ', #loop<dim = 1, step = 16, policy = "vector">', ""),
    ("OP21", "scheduled", f"#sched<loops = [\n        {OUTER_FIRST}", "3"),
    ("OP22", "scheduled", "%flag = buf.alloc : buf<i32>",
     "%flag = buf.alloc : buf<i32>\n  %other = buf.alloc : i32"),
    ("OP22", "scheduled", "%flag = buf.alloc : buf<i32>",
     "%flag, %other = buf.alloc : (buf<i32>, buf<i32>)"),
    ("OP23", "scheduled", "buf.read(%flag) : i32", "buf.read(%t) : f32"),
    ("OP23", "scheduled", "buf.read(%flag) : i32", "buf.read(%flag) : f32"),
    ("OP24", "machine", "loop.for(%begin,", "loop.for(%x,"),
    ("OP24", "machine", "|%i: index, %in: vector<8xf32>|",
     "|%i: index, %in: vector<8xf32>, %q: f32|"),
    ("OP24", "machine", "loop.yield(%more)", "loop.yield"),
    ("OP24", "machine", "    loop.yield(%more)\n  }",
     "    loop.yield(%more)\n  } {\n loop.yield }"),
    ("OP25", "machine", "loop.if(%small)", "loop.if(%begin)"),
    ("OP25", "machine", "loop.yield(%x)", "loop.yield(%c1)"),
    ("OP25", "machine", " {\n    loop.yield(%x)\n  }", ""),
    ("OP26", "machine", 'launch "main.body"', 'launch "main.corpse"'),
    ("OP26", "machine", "[%A, %x])", "[%A])"),
    ("OP26", "machine", "(%n, [%A, %x])", "(%x, [%A, %x])"),
    ("OP26", "machine", "[%A, %x])", "[%A, %x], cost_ns = -1.0)"),
    ("OP27", "machine", "address.offset(%A, %i,", "address.offset(%x, %i,"),
    ("OP27", "machine", "address.offset(%A, %i,", "address.offset(%A, %x,"),
    ("OP28", "machine", "otherwise = %in, align = 4", "otherwise = %in, align = 3"),
    ("OP28", "machine", "mask = %mask, otherwise = %in", "otherwise = %in"),
    ("OP28", "machine", "otherwise = %in", "otherwise = %x"),
    ("OP28", "machine", "address.load(%p", "address.load(%i"),
    ("OP28", "machine", "address.load(%p, mask = %mask", "address.load(%p, mask = %in"),
    ("OP29", "machine", "address.store(%r, %scratch, align = 4)",
     "address.store(%r, %scratch, align = 0)"),
    ("OP29", "machine", "address.store(%r, %scratch", "address.store(%r, %c1"),
    ("OP29", "machine", "address.store(%r, %scratch", "address.store(%scratch, %scratch"),
    ("OP29", "machine", "store(%more, %p, mask = %mask", "store(%more, %p, mask = %lanes"),
    ("OP30", "machine", "address.gather(%p, %lanes", "address.gather(%p, %in"),
    ("OP30", "machine", "address.gather(%p, %lanes", "address.gather(%p, %i"),
    ("OP30", "machine", "address.gather(%p", "address.gather(%i"),
    ("OP30", "machine", "mask = %mask, otherwise = %a, scale", "otherwise = %a, scale"),
    ("OP31", "machine", "address.scatter(%more, %p, %lanes", "address.scatter(%x, %p, %lanes"),
    ("OP31", "machine", "address.scatter(%more, %p, %lanes", "address.scatter(%more, %p, %more"),
    ("OP32", "machine", "vector.splat(%x)", "vector.splat(%c1)"),
    ("OP32", "machine", "%wide = vector.splat(%x)",
     "%no = vector.splat(%x) : f32\n%wide = vector.splat(%x)"),
    ("OP33", "machine", "%lanes = vector", "%no = vector.lanes : vector<8xbool>\n%lanes = vector"),
    ("OP33", "machine", "%lanes = vector", "%no = vector.lanes : i32\n%lanes = vector"),
    ("OP34", "machine", "vector.lane_mask(%i)", "vector.lane_mask(%x)"),
    ("OP34", "machine", "%lanes = vector",
     "%no = vector.lane_mask(%i) : vector<8xi32>\n%lanes = vector"),
    ("OP94", "machine", '"combine.add"', '"combine.neg"'),
    ("OP94", "machine", '"combine.add"', '"combine.xor"'),
    ("OP94", "machine", '"combine.add"', '"combine.lt"'),
    ("OP94", "machine", '.reduce"(%sum, semantic = "combine.add")',
     '.bits"(%sum, semantic = "combine.xor")'),
    ("OP94", "machine", '.reduce"(%sum', '.reduce"(%x'),
    ("OP94", "machine", '"(%pair, %pair)', '"(%pair, %wide)'),
    ("OP94", "machine", '"(%pair, %pair)', '"(%pair)'),
    ("OP94", "machine", '"(%pair, %pair)', '"(%x, %x)'),
    ("OP94", "machine", '%t0, %t1 = atom.call "cpu.lanes.transpose"(%pair, %pair) : '
     "(vector<2xf32>, vector<2xf32>)",
     '%t0 = atom.call "cpu.lanes.transpose"(%pair, %pair) : vector<2xf32>'),
    ("OP37", "machine", '"load of A"(%i, %end', '"load of A"(%x, %end'),
    ("OP37", "machine", "condition = %near", "condition = %mask"),
    ("OP37", "machine", "axis = 1, count = 8", "axis = -1, count = 8"),
    ("OP37", "machine", "axis = 1, count = 8", "axis = 1, count = 0"),
    ("OP37", "machine", "axis = 1, count = 8", "axis = 1, count = 8, depth = -1"),
    ("OP40", "scheduled", OUTER_FIRST, "#loop<dim = 1, step = 1>, #loop<dim = 0, step = 1>]>"),
    ("OP40", "scheduled", OUTER_FIRST,
     '#loop<dim = 1, step = 1>, #loop<dim = 0, step = 8, policy = "vector">]>'),
    ("OP40", "scheduled", OUTER_FIRST,
     '#loop<dim = 0, step = 4>, #loop<dim = 1, step = 1>, #loop<dim = 0, step = 1>]>'),
    ("OP40", "scheduled", *TWO_FOLDS),
    ("OP41", "scheduled", "#loop<dim = 0, step = 4>, #loop<dim = 1, step = 8, ",
     "#loop<dim = 0, step = 4>, #loop<dim = 1, step = 12>, #loop<dim = 1, step = 8, "),
    ("OP41", "scheduled", "#loop<dim = 0, step = 4>, #loop<dim = 1",
     '#loop<dim = 0, step = 4>, #loop<dim = 0, step = 3, policy = "unrolled">, #loop<dim = 1'),
    ("OP42", "scheduled", 'step = 1, policy = "unrolled"', 'step = 4, policy = "vector"'),
    ("OP42", "scheduled", OUTER_FIRST, '#loop<dim = 0, step = 8, policy = "vector">, '
     '#loop<dim = 1, step = 16, policy = "vector">]>'),
    ("OP43", "scheduled", 'step = 1, policy = "unrolled"', 'step = 1, policy = "transposed"'),
    ("OP43", "scheduled", *SQUARES_TOO_TALL),
    ("OP43", "scheduled", *SQUARES_UNTILED),
    ("OP43", "scheduled", *SQUARES_WITHOUT_LANES),
    ("OP43", "scheduled", *SQUARES_OUTSIDE),
    ("OP44", "scheduled", "#loop<dim = 0, step = 4>", "#loop<dim = 0, step = 2147483648>"),
    ("OP44", "scheduled", OUTER_FIRST,
     '#loop<dim = 0, step = 1>, #loop<dim = 1, step = 2048, policy = "vector">]>'),
    ("OP44", "scheduled", "#loop<dim = 0, step = 4>", MANY_STEPS),
    ("FM01", "candidate", 'module "candidate"', 'module "final"'),
    ("FM01", "lifted", 'module "lifted"', 'module "candidate"'),
    ("FM01", "machine", "%c1 = scalar", "%t = tile.map : f32 { exec.yield(%x) }\n  %c1 = scalar"),
    ("FM02", "machine", "%x: f32, %scratch: ptr) {", "%x: f32, %scratch: ptr, %t: tile<f32, 4>) {"),
    ("FM02", "candidate", "%p: bool, ", "%p: bool, %lost: vector<8xf32>, "),
    ("FM03", "scheduled", *OPEN_SCOPE),
    ("FM03", "scheduled", *OPEN_WINDOW),
    ("FM03", "scheduled", "%sums = buf.alloc", "%sums = buf.alloc(resource = ?r)"),
    ("FM03", "scheduled", "%t = buf.alloc", "%t = buf.alloc(spread = ?s)"),
    ("FM03", "scheduled", "inputs = [%t], ", "inputs = [%t], place = ?p, "),
    *EFFECT_CHANGES,
    *STRUCTURE_CHANGES,
]  # fmt: skip
EXTRA = {"tile.reindex(%mask1": "%mask1 = tile.map : tile<bool, %d0, %d1> "
         "{ |%q1: index, %q2: index| exec.yield(%p) }\n"}  # fmt: skip


def changed(form: str, old: str, new: str) -> Module:
    text = GOOD[form]
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the text"
    for piece, before in EXTRA.items():
        if piece in new:
            text = text.replace("    %t = ", f"    {before}    %t = ")
    return parse_module(text.replace(old, new), registry())


@pytest.mark.parametrize("form", GOOD)
def test_good_modules_break_nothing(form: str) -> None:
    module = parse_module(GOOD[form], registry())
    assert diagnose_module(module) == []
    verify_module(module)


@pytest.mark.parametrize("change", CHANGES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CHANGES)])
def test_a_change_breaks_its_rule(change: tuple[str, str, str, str]) -> None:
    rule, form, old, new = change
    module = changed(form, old, new)
    assert verify(module) == []
    found = diagnose_module(module)
    assert rule in {diagnostic.rule for diagnostic in found}
    assert all(diagnostic.message and diagnostic.remedy for diagnostic in found)
    assert not [text for text in map(str, found) if PYTHON.search(text)]
    with pytest.raises(VerifyError) as caught:
        verify_module(module)
    assert caught.value.remedy


@pytest.mark.parametrize("rule", OP_RULES, ids=lambda rule: rule.id)
def test_every_rule_has_negatives_that_only_it_finds(rule: object) -> None:
    place = next(place for place, rules in enumerate(RULE_STEPS) if rule in rules)
    off = [tuple(r for r in rules if r is not rule) for rules in RULE_STEPS[: place + 1]]
    mine = [change for change in CHANGES if change[0] == getattr(rule, "id", None)]
    assert len(mine) >= 2
    silent = [change for change in mine if not diagnose_module(changed(*change[1:]), off)]
    assert silent, "another rule finds all of them too"


def test_rule_ids_are_unique_and_in_order() -> None:
    ids = [rule.id for rule in OP_RULES]
    assert ids[-3:] == ["FM01", "FM02", "FM03"]
    assert ids[:-3] == sorted(set(ids[:-3]))


def test_broken_structure_is_told_first() -> None:
    module = changed("candidate", "constant 255", "constant 256")
    next(module.walk()).results[0].index = 5
    assert {diagnostic.rule for diagnostic in diagnose_module(module)} == {"IR08"}


def test_the_error_names_op_place_fact_and_remedy() -> None:
    module = changed("candidate", "tile.store(%A, [%i, %j], %x)", "tile.store(%A, [%i], %x)")
    with pytest.raises(VerifyError) as caught:
        verify_module(module)
    text = str(caught.value)
    assert text.startswith("OP13 tile.store: has 1 origins for a view of rank 2\n")
    assert "|     tile.store(%A, [%i], %x)\n" in text
    assert text.endswith("help: give one origin per axis")


def test_squares_of_a_vector_are_sound() -> None:
    """Stored with lanes along the dim whose elements are neighbours, read along the other."""
    across, rows = (
        'dim = 0, step = 4, policy = "vector"',
        'dim = 1, step = 1, policy = "transposed"',
    )
    old, new = squares("dim = 1, step = 4", across, rows)
    named = new.replace(">]>\n", '>], atoms = [#atom_choice<atom = "cpu.lanes.transpose">]>\n')
    assert diagnose_module(changed("scheduled", old, named)) == []


def test_exact_folds_may_be_split_under_any_policy() -> None:
    """Integers have one sum, whatever the order; floats do not."""
    text = GOOD["scheduled"].replace('"unordered_tree"', '"fold_left"')
    assert {d.rule for d in diagnose_module(parse_module(text, registry()))} == {"TN09b"}
    exact = text.replace("f32", "i32").replace('merge = "add"', 'merge = "add", is_exact = true')
    assert diagnose_module(parse_module(exact, registry())) == []


def test_work_without_points_reads_nothing_of_what_it_writes() -> None:
    rule, form, old, new = next(c for c in CHANGES if c[0] == "OP18" and "inputs = [%t]" in c[3])
    assert rule in {d.rule for d in diagnose_module(changed(form, old, new))}
    empty = new.replace("extents = [8, 16]", "extents = [0, 16]")
    assert rule not in {d.rule for d in diagnose_module(changed(form, old, empty))}


def test_a_broken_body_of_a_tree_is_told_by_its_own_rule() -> None:
    text = GOOD["candidate"].replace('policy = "fold_left"', 'policy = "unordered_tree"')
    module = parse_module(text.replace("exec.yield(%more)", "exec.yield"), registry())
    assert {diagnostic.rule for diagnostic in diagnose_module(module)} == {"OP03"}
