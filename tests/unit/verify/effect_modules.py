"""Sound candidate modules about views, memory and other effects, and changes that break one rule.

In: nothing. Out: `GOOD_EFFECTS`, by a name of the module, and `EFFECT_CHANGES`: rule, module, what
is replaced, by what.
"""

VIEWS = """
module "candidate"
dim %d0 "m" = 4
dim %d1 "n" = 2

func @main(%A: view<f32, [?, 8], [?, 1]>, %n: index, %x: f32, %flags: view<bool, [4], [1]>) {
  %c0 = scalar.constant 0 : index
  %e = view.extent(%A, axis = 0) : index
  %T = view.remap(%A, extents = [%e], map = (d0, d1) -> (d1, d0)) : view<f32, [8, ?], [1, ?]>
  %shifted = view.remap(%T, symbols = [%n], extents = [%e], map = (d0, d1)[s0] -> (d0 - s0, d1),
      valid = (d0, d1)[s0] -> (d1 - d0), fill = 7.0) : view<f32, [8, ?], [?, ?]>
  %row = view.remap(%A, map = (d0, d1) -> (0, d1)) : view<f32, [4, 8], [0, 1]>
  %folded = view.remap(%row, map = (d0, d1) -> (d0, d1 // 2)) : view<f32, [4, 16], [0, ?]>
  %set = view.remap(%flags, map = (d0) -> (d0 + 1), fill = true) : view<bool, [5], [1]>
  %uneven = view.remap(%set, map = (d0) -> (d0 * d0)) : view<bool, [2], [?]>
  %s = view.stride(%T, axis = 0) : index
  %t = tile.load(%folded, [%c0, %c0]) : tile<f32, %d0, %d1>
  tile.store(%shifted, [%n, %c0], %t, dims = [%d0, %d1])
  func.return
}
"""

MEMORY = """
module "candidate"
dim %d0 "m" = 4
dim %d1 "n" = 6

func @main(%x: f32, %n: index, %p: bool) -> f32 {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c3 = scalar.constant 3 : index
  %t = tile.map : tile<f32, %d0, %d1> { |%i: index, %j: index|
    exec.yield(%x)
  }
  %shared, %s0 = memory.allocate(resource = "shared") : (memory<f32, %d0, %d1>, state)
  %s1 = memory.store(%shared, %s0, %t) : state
  exec.parallel(lower = [%c0], upper = [%n], step = [%c1]) { |%b: index|
    %m, %a0 = memory.allocate(layout = (d0, d1) -> (d1 * 5 + d0), storage = [30])
        : (memory<f32, %d0, %d1>, state)
    %all = memory.load(%shared, %s1) : tile<f32, %d0, %d1>
    %a1 = exec.serial(lower = [%c0], upper = [%c3], step = [%c1], initial = [%a0]) : state {
        |%k: index, %in: state|
      %a2 = memory.store(%m, %in, %all) : state
      %again = memory.load(%m, %a2) : tile<f32, %d0, %d1>
      exec.yield(%a2)
    }
    %a3 = exec.if(%p) : state {
      %a4 = memory.store(%m, %a1, %t) : state
      exec.yield(%a4)
    } {
      exec.yield(%a1)
    }
    %a5 = exec.pipeline(lower = [%c0], upper = [%n], step = [%c1], initial = [%a3]) : state {
        |%k: index, %in: state|
      %a6 = memory.store(%m, %in, %all) : state
      exec.yield(%a6)
    } { |%k: index, %in: state, %handed: state|
      %u = memory.load(%m, %handed) : tile<f32, %d0, %d1>
      exec.yield(%handed)
    }
    %last = memory.load(%m, %a5) : tile<f32, %d0, %d1>
    exec.yield
  }
  %cell, %e0 = memory.allocate : (memory<f32>, state)
  %e1 = memory.store(%cell, %e0, %x) : state
  %y = memory.load(%cell, %e1) : f32
  func.return(%y)
}
"""

PARTS = """
module "candidate"
dim %d0 "m" = 4
dim %d1 "n" = 6
dim %d2 "k" = 2

func @main(%x: f32, %n: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c2 = scalar.constant 2 : index
  %t = tile.map : tile<f32, %d2, %d1> { |%i: index, %j: index|
    exec.yield(%x)
  }
  %m, %a0 = memory.allocate : (memory<f32, %d0, %d1>, state)
  %a1 = memory.store(%m, %a0, %t, [%c0, %c0]) : state
  %a2 = memory.store(%m, %a1, %t, [%c2, %c0]) : state
  %all = memory.load(%m, %a2) : tile<f32, %d0, %d1>
  %some, %b0 = memory.allocate : (memory<f32, %d0, %d1>, state)
  %b1 = memory.store(%some, %b0, %t, [%n, %c0]) : state
  %same = memory.load(%some, %b1, [%n, %c0]) : tile<f32, %d2, %d1>
  %filled, %e0 = memory.allocate : (memory<f32, %d0, %d1>, state)
  %e1 = exec.serial(lower = [%c0], upper = [%c2], step = [%c1], initial = [%e0]) : state {
      |%k: index, %in: state|
    %at = scalar.apply "mul"(%k, %c2) : index
    %e2 = memory.store(%filled, %in, %t, [%at, %c0]) : state
    %u = memory.load(%filled, %e2, [%at, %c1]) : tile<f32, %d2, 3>
    exec.yield(%e2)
  }
  %whole = memory.load(%filled, %e1) : tile<f32, %d0, %d1>
  func.return
}
"""

ATOMICS = """
module "candidate"
dim %d0 "m" = 4

func @main(%A: view<i32, [?, ?], [?, ?]>, %F: view<f32, [?], [?]>, %v: i32, %x: f32, %p: bool) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %old = tile.atomic "add"(%A, [%c0, %c1], %v, dims = [%d0, 3@0]) : tile<i32, %d0, 3>
  tile.atomic "xor"(%A, [%c0, %c1], %v, mask = %p)
  %one = tile.atomic "compare_exchange"(%A, [%c0, %c1], %v, expected = %v) : i32
  tile.atomic "maximum"(%F, [%c0], %x, bounds = "check", dims = [%d0])
  exec.sync
  exec.parallel(lower = [%c0], upper = [%c1], step = [%c1]) { |%b: index|
    exec.serial(lower = [%c0], upper = [%c1], step = [%c1]) { |%k: index|
      exec.sync
      exec.yield
    }
    exec.if(%p) {
      exec.yield
    } {
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""

UPDATES = """
module "scheduled"
dim %d0 "m" = 4

func @main(%F: view<f32, [?], [?]>, %x: f32, %p: bool) {
  %c0 = scalar.constant 0 : index
  tile.atomic "maximum"(%F, [%c0], %x)
  tile.atomic "add"(%F, [%c0], %x, mask = %p)
  func.return
}
"""

ADDRESSES = """
module "machine"

func @main(%A: ptr, %v: i32, %x: f32, %p: bool, %scratch: ptr) {
  %a = address.atomic "add"(%A, %v, mask = %p) : i32
  %b = address.atomic "exchange"(%A, %x) : f32
  %c = address.atomic "compare_exchange"(%A, %v, expected = %a) : i32
  func.return
}
"""

GOOD_EFFECTS = {
    "views": VIEWS,
    "memory": MEMORY,
    "parts": PARTS,
    "atomics": ATOMICS,
    "single updates": UPDATES,
    "addresses": ADDRESSES,
}

EFFECT_CHANGES = [
    ("OP60", "views", "%T = view.remap(%A,", "%T = view.remap(%x,"),
    ("OP60", "views", "symbols = [%n], extents", "symbols = [%x], extents"),
    ("OP60", "views", "view.remap(%A, extents = [%e], map", "view.remap(%A, map"),
    ("OP60", "views", "view.remap(%A, extents = [%e], map", "view.remap(%A, extents = [%x], map"),
    ("TN01", "views", "map = (d0, d1) -> (d1, d0)", "map = (d0, d1) -> (d1)"),
    ("TN01", "views", "map = (d0, d1) -> (d1, d0)", "map = (d0) -> (d0, d0)"),
    ("TN01", "views", "valid = (d0, d1)[s0] -> (d1 - d0)", "valid = (d0, d1) -> (d1 - d0)"),
    ("OP60", "views", "valid = (d0, d1)[s0] -> (d1 - d0)", "valid = 3"),
    ("OP60", "views", "(d1 - d0), fill = 7.0)", "(d1 - d0))"),
    ("OP60", "views", "fill = 7.0", 'fill = "seven"'),
    ("OP60", "views", "fill = true", "fill = 2"),
    ("OP60", "views", "view<f32, [4, 16], [0, ?]>", "view<f32, [4, 16], [0, 1]>"),
    ("OP60", "views", "view<f32, [4, 16], [0, ?]>", "view<f64, [4, 16], [0, ?]>"),
    ("OP61", "views", "tile.store(%shifted, [%n, %c0]", "tile.store(%row, [%n, %c0]"),
    ("OP61", "views", "(d0 - s0, d1),", "(d0 // 2 - s0, d1),"),
    ("OP61", "views", "map = (d0, d1) -> (d1, d0)", "map = (d0, d1) -> (d1 // 2, d0)"),
    ("OP62", "views", "view.stride(%T, axis = 0)", "view.stride(%folded, axis = 1)"),
    ("OP62", "views", "view.stride(%T, axis = 0)", "view.stride(%uneven, axis = 0)"),
    ("OP63", "memory", "%e0 = memory.allocate : (memory<f32>, state)",
     "%e0 = memory.allocate : (memory<f32>, f32)"),
    ("OP63", "memory", "(layout = (d0, d1) -> (d1 * 5 + d0), storage = [30])", "(storage = [30])"),
    ("TN01", "memory", "storage = [30]", "storage = [5, 6]"),
    ("OP63", "memory", "(d1 * 5 + d0), storage = [30]", "(d1 * 5 + d0), storage = [-1]"),
    ("OP64", "memory", "d1 * 5 + d0", "d1 * 2 + d0"),
    ("OP64", "memory", "d1 * 5 + d0", "d1 * 5 + d0 + 2"),
    ("OP64", "memory", "storage = [30]", "storage = [28]"),
    ("OP64", "memory", "d1 * 5 + d0", "d1 * 5 - d0"),
    ("OP64", "memory", "d1 * 5 + d0), storage = [30]",
     "d1 * 5 + d0), storage = [4611686018427387904]"),
    ("OP65", "memory", "%y = memory.load(%cell, %e1)", "%y = memory.load(%cell, %x)"),
    ("OP65", "memory", "%y = memory.load(%cell, %e1) : f32\n",
     "%y = memory.load(%cell, %e1) : f32\n  %z = memory.load(%cell, %e1) : f64\n"),
    ("OP66", "memory", "memory.store(%cell, %e0, %x)", "memory.store(%cell, %e0, %t)"),
    ("OP66", "memory", "memory.store(%cell, %e0, %x)", "memory.store(%x, %e0, %x)"),
    ("OP65", "parts", "%same = memory.load(%some, %b1, [%n, %c0])",
     "%same = memory.load(%some, %b1, [%n])"),
    ("OP65", "parts", "%b1, [%n, %c0]) : tile<f32, %d2, %d1>", "%b1, [%n, %c0]) : tile<f32, %d2>"),
    ("OP65", "parts", "%b1, [%n, %c0]) : tile<f32, %d2, %d1>",
     "%b1, [%n, %c0]) : tile<f64, %d2, %d1>"),
    ("OP65", "parts", "%b1, [%n, %c0])", "%b1, [%x, %c0])"),
    ("OP65", "parts", "memory.load(%m, %a2) : tile<f32, %d0, %d1>",
     "memory.load(%m, %a2) : tile<f32, %d2, %d1>"),
    ("OP66", "parts", "%t, [%n, %c0]", "%t, [%n]"),
    ("OP66", "parts", "%t, [%n, %c0]", "%x, [%n, %c0]"),
    ("OP66", "parts", "%t, [%n, %c0]", "%t, [%x, %c0]"),
    ("OP66", "parts", "%t, [%n, %c0]", "%t"),
    ("OP67", "parts", "memory.load(%m, %a2)", "memory.load(%m, %a1)"),
    ("OP68", "parts", "%t, [%n, %c0]", "%t, [%c1, %c0]"),
    ("OP68", "parts", "%t, [%n, %c0]", "%t, [%n, %c1]"),
    ("OP68", "parts", "%t, [%c2, %c0]", "%t, [%c1, %c0]"),
    ("OP68", "parts", '"mul"(%k, %c2)', '"mul"(%k, %c1)'),
    ("OP68", "parts", '"mul"(%k, %c2)', '"mul"(%k, %n)'),
    ("OP68", "parts", "upper = [%c2]", "upper = [%c1]"),
    ("OP68", "parts", "upper = [%c2]", "upper = [%n]"),
    ("OP67", "memory", "memory.load(%m, %a2)", "memory.load(%m, %in)"),
    ("OP67", "memory", "memory.load(%shared, %s1)", "memory.load(%shared, %s0)"),
    ("OP67", "memory", "memory.load(%cell, %e1)", "memory.load(%cell, %s1)"),
    ("OP67", "memory", "memory.load(%m, %handed)", "memory.load(%m, %in)"),
    ("OP67", "memory", "exec.yield(%a2)", "exec.yield(%in)"),
    ("OP67", "memory", "%last = memory.load(%m, %a5)", "%last = memory.load(%m, %a3)"),
    ("OP68", "memory", "upper = [%c3]", "upper = [%n]"),
    ("OP68", "memory", "%all = memory.load(%shared, %s1) : tile<f32, %d0, %d1>\n",
     "%all = memory.load(%shared, %s1) : tile<f32, %d0, %d1>\n"
     "    %none = memory.load(%m, %a0) : tile<f32, %d0, %d1>\n"),
    ("OP69", "memory", "%all = memory.load(%shared, %s1) : tile<f32, %d0, %d1>\n",
     "%all = memory.load(%shared, %s1) : tile<f32, %d0, %d1>\n"
     "    %s2 = memory.store(%shared, %s1, %all) : state\n"),
    ("OP69", "memory", "exec.yield(%handed)\n    }\n",
     "exec.yield(%handed)\n    }\n    exec.if(%p) { %lost = memory.store(%m, %a5, %t) : state\n"
     "      exec.yield\n    } { exec.yield }\n"),
    ("OP70", "atomics", '"add"', '"subtract"'),
    ("OP70", "atomics", '"xor"(%A, [%c0, %c1], %v,', '"xor"(%A, [%c0], %v,'),
    ("OP70", "atomics", '"xor"(%A, [%c0, %c1], %v,', '"xor"(%A, [%c0, %c1], %x,'),
    ("OP70", "atomics", "mask = %p", "mask = %v"),
    ("OP70", "atomics", ", expected = %v", ""),
    ("OP70", "atomics", '"maximum"', '"or"'),
    ("OP70", "atomics", '"check"', '"maybe"'),
    ("OP70", "atomics", "dims = [%d0, 3@0]) : tile<i32, %d0, 3>", "dims = [%d0]) : tile<i32, %d0>"),
    ("OP70", "atomics", "dims = [%d0, 3@0]) : tile", "dims = [%d0, %d0]) : tile"),
    ("OP70b", "single updates", "%x)", "%x, dims = [%d0])"),
    ("OP70b", "single updates", "mask = %p", "mask = %p, dims = [%d0]"),
    ("OP72", "addresses", '"add"', '"subtract"'),
    ("OP72", "addresses", '"exchange"', '"or"'),
    ("OP72", "addresses", "(%A, %x) : f32", "(%A, %x) : i32"),
    ("OP72", "addresses", "(%A, %x)", "(%v, %x)"),
    ("OP72", "addresses", "mask = %p", "mask = %v"),
    ("OP72", "addresses", "expected = %a", "expected = %x"),
    ("OP72", "addresses", ", expected = %a", ""),
    ("OP71", "atomics", "exec.if(%p) {\n", "exec.if(%p) {\n      exec.sync\n"),
    ("OP71", "atomics", "exec.serial(lower", "exec.reduce(lower"),
]  # fmt: skip
