"""Sound candidate modules about calls, tuples, updates, stages, tile arrays and atoms, and changes
that break one rule.

In: nothing. Out: `GOOD_STRUCTURES`, by a name of the module, and `STRUCTURE_CHANGES`: rule, module,
what is replaced, by what.
"""

CALLS = """
module "candidate"

func @main(%x: f32, %n: index) -> f32 {
  %y, %m = func.call "both"(%n, %x) : (f32, index)
  %inner = value.aggregate(%y, %m) : tuple<f32, index>
  %pair = value.aggregate(%inner, %n) : tuple<tuple<f32, index>, index>
  %first = value.extract(%pair, index = 0) : tuple<f32, index>
  %z = value.extract(%first, index = 0) : f32
  func.return(%z)
}

func @both(%n: index, %x: f32) -> (f32, index) {
  %y = func.call "same"(%x) : f32
  func.return(%y, %n)
}

func @same(%x: f32) -> f32 {
  func.return(%x)
}
"""

UPDATES = """
module "candidate"
dim %d0 "m" = 8
dim %d1 "n" = 4

func @main(%t: tile<f32, %d0, %d1>, %x: f32, %f: i32, %n: index, %p: bool) -> tile<f32, %d0, %d1> {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %other = tile.map : tile<f16, %d0, %d1> { |%i: index, %j: index|
    %h = scalar.constant 1.0 : f16
    exec.yield(%h)
  }
  %u, %s, %q = exec.parallel(lower = [%c0], upper = [%n], step = [%c1], initial = [%t, %x, %f])
      : (tile<f32, %d0, %d1>, f32, i32) {
      |%i: index, %entry: tile<f32, %d0, %d1>, %before: f32, %flags: i32|
    %row = tile.map : tile<f32, 1, %d1> { |%a: index, %b: index|
      exec.yield(%before)
    }
    %mask = tile.map : tile<bool, %d1> { |%b: index|
      exec.yield(%p)
    }
    exec.yield_updates(
        payloads = [%row, %x, %before, %flags], origins = [%i, %c0, %i, %i], predicates = [%mask],
        patches = [
          #patch<result = 0, conditional = true>, #patch<result = 0>,
          #patch<result = 1, combine = "add">, #patch<result = 2, combine = "xor">]
    )
  }
  func.return(%u)
}
"""

STAGES = """
module "candidate"

func @main(%A: view<f32, [?], [1]>, %B: view<f32, [?], [1]>, %n: index, %x: f32) -> f32
    with (alias_groups = [0, 1, 2, 3]) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %r = exec.pipeline(
      lower = [%c0], upper = [%n], step = [%c1], initial = [%x], window = 3,
      dependences = [
        #dependence<producer = 0, consumer = 1, kind = "value">,
        #dependence<producer = 2, consumer = 2, kind = "value", distance = 1>,
        #dependence<producer = 1, consumer = 1, kind = "effect", distance = 1>,
        #dependence<producer = 1, consumer = 2, kind = "effect">,
        #dependence<producer = 2, consumer = 1, kind = "effect", distance = 1>]
  ) : f32 { |%i: index, %s: f32|
    %a = tile.load(%A, [%i]) : f32
    exec.yield(%a)
  } { |%i: index, %s: f32, %a: f32|
    tile.store(%B, [%i], %a)
    exec.yield
  } { |%i: index, %s: f32, %a: f32|
    %b = tile.load(%B, [%c1]) : f32
    %more = scalar.apply "add"(%s, %b) : f32
    exec.yield(%more)
  }
  func.return(%r)
}
"""

ARRAYS = """
module "candidate"
dim %d0 "m" = 4
dim %d1 "n" = 6
dim %d2 "p" = 2
dim %d3 "q" = 3

func @main(%A: view<f32, [?, ?], [?, 1]>, %t: tile<f32, %d0, %d1>, %n: index, %p: bool)
    -> tile<f32, %d0, %d1> {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c2 = scalar.constant 2 : index
  %parts = array.partition(%t) : array<tile<f32, %d2, %d3>, 2x2>
  %seen = array.partition(%A, [%c0, %n]) : array<tile<f32, %d2, %d3>, 7x1>
  %a = array.get(%parts, [%c0, %c1]) : tile<f32, %d2, %d3>
  %b = array.get(%seen, [%n, %c0]) : tile<f32, %d2, %d3>
  %empty = array.make : array<tile<f32, %d2, %d3>, 2x2, filled>
  %one = array.set(%empty, [%c0, %c0], %a) : array<tile<f32, %d2, %d3>, 2x2, filled>
  %two = exec.if(%p) : array<tile<f32, %d2, %d3>, 2x2, filled> {
    %then = array.set(%one, [%c0, %c1], %a) : array<tile<f32, %d2, %d3>, 2x2, filled>
    exec.yield(%then)
  } {
    %else = array.set(%one, [%c0, %c1], %b) : array<tile<f32, %d2, %d3>, 2x2, filled>
    exec.yield(%else)
  }
  %all = exec.serial(lower = [%c0], upper = [%c2], step = [%c1], initial = [%two])
      : array<tile<f32, %d2, %d3>, 2x2, filled> {
      |%j: index, %out: array<tile<f32, %d2, %d3>, 2x2, filled>|
    %next = array.set(%out, [%c1, %j], %b) : array<tile<f32, %d2, %d3>, 2x2, filled>
    exec.yield(%next)
  }
  %whole = array.assemble(%all) : tile<f32, %d0, %d1>
  func.return(%whole)
}
"""

ATOMS = """
module "machine"

func @main(%x: f32, %n: index, %p: bool, %A: ptr) {
  %a = vector.splat(%x) : vector<2xf32>
  %b = vector.splat(%x) : vector<2xf32>
  %c, %d = atom.call "cpu.lanes.transpose"(%a, %b, layouts = [(d0, d1) -> (d0, d1), none])
      : (vector<2xf32>, vector<2xf32>)
  %sum = atom.call "cpu.lanes.reduce"(%c, semantic = "combine.add") : f32
  %t = atom.call "cpu.print"(%n, %sum, %d, semantic = "print",
      touches = [#atom_effect<kind = "call">], protocol = "output") : token
  %last = atom.call "cpu.print"(%t, %x, touches = [#atom_effect<kind = "call">],
      protocol = "output") : token
  atom.call "cpu.assert"(%p, touches = [#atom_effect<kind = "fault", operand = 0>])
  func.return
}
"""

BRANCHES = """
module "candidate"

func @main(%p: bool, %n: index) -> index {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  cf.cond_branch(%p, ^0(%c1), ^1)
^0 |%x: index|
  %s = exec.serial(lower = [%c0], upper = [%n], step = [%c1], initial = [%x]) : index {
      |%i: index, %in: index|
    %same = scalar.apply "eq"(%i, %in) : bool
    cf.cond_branch(%same, ^2, ^3(%in))
  ^2 ||
    cf.branch(^3(%c0))
  ^3 |%next: index|
    exec.yield(%next)
  }
  func.return(%s)
^1 ||
  cf.branch(^0(%c0))
}
"""

GOOD_STRUCTURES = {
    "branches": BRANCHES,
    "calls": CALLS,
    "updates": UPDATES,
    "stages": STAGES,
    "arrays": ARRAYS,
    "atoms": ATOMS,
}

FILLED = "array<tile<f32, %d2, %d3>, 2x2, filled>"
STRUCTURE_CHANGES = [
    ("OP01", "branches", "^1 ||\n  cf.branch(^0(%c0))", "^1 ||\n  exec.yield"),
    ("OP01", "branches", "func.return(%s)", "func.return(%p)"),
    ("OP01", "branches", "%p, ^0(%c1), ^1)", "%p, ^0(%c1), ^0(%c0))"),
    ("OP03", "branches", "exec.yield(%next)", "exec.yield(%same)"),
    ("OP03", "branches", "exec.yield(%next)", "cf.branch(^3(%next))"),
    ("OP03", "branches", "exec.yield(%next)", "func.return(%next)"),
    ("OP05", "branches", "cf.cond_branch(%p,", "cf.cond_branch(%n,"),
    ("OP01", "calls", "func.return(%y, %n)", "func.return(%n, %y)"),
    ("OP03", "updates", "initial = [%t, %x, %f]", "initial = [%t, %x]"),
    ("OP03", "updates", "%before: f32, %flags: i32|", "%before: f32, %flags: i64|"),
    ("OP03", "updates", """exec.yield_updates(
        payloads = [%row, %x, %before, %flags], origins = [%i, %c0, %i, %i], predicates = [%mask],
        patches = [
          #patch<result = 0, conditional = true>, #patch<result = 0>,
          #patch<result = 1, combine = "add">, #patch<result = 2, combine = "xor">]
    )""", "exec.yield(%entry, %x, %flags)"),
    ("OP80", "calls", '"same"', '"sane"'),
    ("OP80", "calls", '"both"(%n, %x)', '"both"(%x, %n)'),
    ("OP80", "calls", '"both"(%n, %x)', '"both"(%n)'),
    ("OP80", "calls", '%y = func.call "same"(%x) : f32', 'func.call "same"(%x)\n  %y = '
     "scalar.constant 0.0 : f32"),
    ("OP80", "calls", '%y = func.call "same"(%x) : f32',
     '%y, %q = func.call "both"(%n, %x) : (f32, index)'),
    ("OP81", "calls", "value.aggregate(%y, %m)", "value.aggregate(%m, %y)"),
    ("OP81", "calls", "value.aggregate(%y, %m)", "value.aggregate(%y, %m, %m)"),
    ("OP82", "calls", "extract(%first, index = 0)", "extract(%y, index = 0)"),
    ("OP82", "calls", "extract(%first, index = 0)", "extract(%first, index = -1)"),
    ("OP82", "calls", "extract(%first, index = 0)", "extract(%first, index = 2)"),
    ("OP82", "calls", "extract(%first, index = 0)", "extract(%first, index = 1)"),
    ("TN08", "updates", "payloads = [%row,", "payloads = [%mask,"),
    ("TN08", "updates", "payloads = [%row, %x,", "payloads = [%row, %other,"),
    ("TN08", "updates", "payloads = [%row, %x, %before,", "payloads = [%row, %x, %row,"),
    ("OP84", "updates", "payloads = [%row, %x,", "payloads = [%row,"),
    ("OP84", "updates", "origins = [%i, %c0,", "origins = [%i, %x,"),
    ("OP84", "updates", "origins = [%i, %c0,", "origins = [%i,"),
    ("OP84", "updates", "predicates = [%mask]", "predicates = [%row]"),
    ("OP84", "updates", ", predicates = [%mask]", ""),
    ("OP84", "updates", "#patch<result = 0>", "#patch<result = 3>"),
    ("OP84", "updates", "#patch<result = 0>", "7"),
    ("TN08", "updates", '1, combine = "add"', '1, combine = "sub"'),
    ("TN08", "updates", '1, combine = "add"', '1, combine = "xor"'),
    ("OP85", "stages", 'consumer = 1, kind = "value"', 'consumer = 3, kind = "value"'),
    ("OP85", "stages", 'consumer = 1, kind = "value"', 'consumer = 2, kind = "value"'),
    ("OP85", "stages", 'consumer = 1, kind = "value"', 'consumer = 1, kind = "hope"'),
    ("OP85", "stages", 'consumer = 2, kind = "value", distance = 1',
     'consumer = 1, kind = "value", distance = 1'),
    ("OP85", "stages", 'consumer = 2, kind = "value", distance = 1',
     'consumer = 2, kind = "value"'),
    ("OP85", "stages", 'consumer = 2, kind = "value", distance = 1',
     'consumer = 2, kind = "value", distance = -1'),
    ("OP85", "stages", '#dependence<producer = 0, consumer = 1, kind = "value">', '"all"'),
    ("TN14b", "stages", ', kind = "effect">', ', kind = "effect", distance = 1>'),
    ("TN14b", "stages", 'consumer = 1, kind = "effect", distance = 1>]',
     'consumer = 1, kind = "effect", distance = 2>]'),
    ("OP87", "arrays", "%parts = array.partition(%t) : array<tile<f32, %d2, %d3>, 2x2>",
     "%parts = array.partition(%t) : array<tile<f32, %d2, %d3>, 2x3>"),
    ("OP87", "arrays", "array.partition(%t)", "array.partition(%t, [%c0, %c0])"),
    ("OP87", "arrays", "array.partition(%A, [%c0, %n])", "array.partition(%A, [%c0])"),
    ("OP87", "arrays", "array.partition(%A, [%c0, %n])", "array.partition(%p)"),
    ("OP87", "arrays", "%a = array.get", "%q = array.partition(%t) : f32\n  %a = array.get"),
    ("OP87", "arrays", "%a = array.get",
     "%q = array.partition(%t) : array<tile<i32, %d2, %d3>, 2x2>\n  %a = array.get"),
    ("OP87", "arrays", "%a = array.get",
     "%q = array.partition(%A, [%c0, %n]) : array<tile<f32, %d2, %d3>, 2>\n  %a = array.get"),
    ("OP88", "arrays", "get(%parts, [%c0, %c1])", "get(%parts, [%c0])"),
    ("OP88", "arrays", "get(%parts, [%c0, %c1])", "get(%parts, [%c0, %c2])"),
    ("OP88", "arrays", "get(%parts, [%c0, %c1])", "get(%parts, [%c0, %p])"),
    ("OP88", "arrays", "%b = array.get(%seen, [%n, %c0]) : tile<f32, %d2, %d3>",
     "%b = array.get(%seen, [%n, %c0]) : tile<f32, %d2, %d3>\n"
     "  %wrong = array.get(%seen, [%n, %c0]) : tile<f32, %d3, %d2>"),
    ("OP89", "arrays", "[%c0, %c0], %a)", "[%c0, %c0], %t)"),
    ("OP89", "arrays", "[%c0, %c0], %a)", "[%c0, %c2], %a)"),
    ("OP89", "arrays", "[%c0, %c0], %a)", "[%c0], %a)"),
    ("OP90", "arrays", "%whole = array.assemble(%all) : tile<f32, %d0, %d1>",
     "%q = array.assemble(%all) : tile<f32, %d0>\n"
     "  %whole = tile.map(%t) : tile<f32, %d0, %d1> { |%i: index, %j: index, %x: f32|\n"
     "    exec.yield(%x)\n  }"),
    ("OP90", "arrays", "%whole = array.assemble(%all)",
     "%q = array.assemble(%t) : tile<f32, %d0, %d1>\n  %whole = array.assemble(%all)"),
    ("OP90", "arrays", "%empty = array.make",
     "%q = array.make : array<tile<f32, %d2, %d3>, 2x2>\n  %empty = array.make"),
    ("OP91", "arrays", "array.set(%out, [%c1, %j], %b)", "array.set(%two, [%c1, %j], %b)"),
    ("OP91", "arrays", "%else = array.set(%one, [%c0, %c1], %b)",
     f"%new = array.make : {FILLED}\n    %else = array.set(%new, [%c0, %c1], %b)"),
    ("OP91", "arrays", "  %whole =", f"  %spare = array.make : {FILLED}\n  %whole ="),
    ("OP91", "arrays", "  %whole =",
     f"  %again = array.set(%all, [%c0, %c0], %a) : {FILLED}\n"
     "  %more = array.assemble(%again) : tile<f32, %d0, %d1>\n  %whole ="),
    ("OP91", "arrays", "  %whole =",
     f"  %spare = array.make : {FILLED}\n"
     f"  %pair = value.aggregate(%spare, %spare) : tuple<{FILLED}, {FILLED}>\n  %whole ="),
    ("OP92", "arrays", "%a = array.get",
     "%q = value.aggregate(%parts) : tuple<array<tile<f32, %d2, %d3>, 2x2>>\n  %a = array.get"),
    ("OP92", "arrays", "%n: index, %p: bool)",
     "%n: index, %p: bool, %q: array<tile<f32, %d2, %d3>, 2x2>)"),
    ("OP93", "atoms", 'kind = "fault"', 'kind = "look"'),
    ("OP93", "atoms", "operand = 0", "operand = 2"),
    ("OP93", "atoms", '#atom_effect<kind = "fault", operand = 0>', "none"),
    ("OP93", "atoms", "[(d0, d1) -> (d0, d1), none]", "[none]"),
    ("OP93", "atoms", "[(d0, d1) -> (d0, d1), none]", "[3, none]"),
    ("OP93", "atoms", 'touches = [#atom_effect<kind = "call">], protocol = "output") : token\n',
     'touches = [#atom_effect<kind = "call">]) : token\n'),
    ("OP93", "atoms", "(%p, touches", '(%p, protocol = "output", touches'),
    ("OP94", "atoms", '"cpu.assert"', '"cpu.assume"'),
    ("OP94", "atoms", "(%p, touches", "(%p, version = 2, touches"),
    ("OP94", "atoms", '(%c, semantic = "combine.add")', "(%c)"),
    ("OP94", "atoms", "combine.add", "combine.sub"),
    ("OP94", "atoms", 'protocol = "output") : token\n  atom',
     'protocol = "input") : token\n  atom'),
    ("OP94", "atoms", "(%p, touches", "(%x, touches"),
    ("OP94", "atoms", "(%n, %sum, %d,", "(%n, %sum, %A,"),
    ("OP94", "atoms", 'touches = [#atom_effect<kind = "call">], protocol = "output") : token\n',
     'protocol = "output") : token\n'),
    ("OP95", "stages", "alias_groups = [0, 1, 2, 3]", "alias_groups = [0, 1, 2]"),
    ("OP95", "stages", "alias_groups = [0, 1, 2, 3]", "alias_groups = [0, 0, 1, 3]"),
    ("OP95", "stages", "alias_groups = [0, 1, 2, 3]", "alias_groups = [0, 1, 0, 3]"),
    ("OP95", "stages", "alias_groups = [0, 1, 2, 3]", "alias_groups = [0, 1, 2, 4]"),
    ("OP95", "stages", "alias_groups = [0, 1, 2, 3]", "alias_groups = [0, 1, 2, 3.0]"),
    ("OP95", "stages", "alias_groups = [0, 1, 2, 3]", "alias_groups = 4"),
]  # fmt: skip
