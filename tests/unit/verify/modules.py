"""A sound module of each form as IR text: what the rules about ops are tried on.

In: nothing. Out: `GOOD`, by form. Together they hold every operation, so that each rule has
something to break.
"""

from tests.unit.verify.effect_modules import GOOD_EFFECTS
from tests.unit.verify.structure_modules import GOOD_STRUCTURES

CANDIDATE = """
module "candidate"
dim %d0 "m" = 8
dim %d1 "n" = 16
dim %d2 "k" = 4

func @main(
    %A: view<f32, [?, ?], [?, 1]>, %x: f32, %n: index, %p: bool, %h: i32, %q: view<f16, [?], [1]>
) -> f32 {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %tiny = scalar.constant 0.5 : bf16
  %small = scalar.constant 65504.0 : f16
  %byte = scalar.constant 255 : u8
  %yes = scalar.constant true : bool
  %not_a_number = scalar.constant nan : f16
  %e = view.extent(%A, axis = 1) : index
  %s = view.stride(%A, axis = 0) : index
  %sum = scalar.apply "add"(%e, %s) : index
  %less = scalar.apply "lt"(%e, %s) : bool
  %picked = scalar.apply "where"(%less, %e, %s) : index
  %wide = scalar.cast(%h) : f64
  %bits = scalar.bitcast(%h) : f32
  %r = exec.if(%less) : f32 {
    exec.yield(%x)
  } {
    exec.yield(%bits)
  }
  %one = tile.load(%A, [%c0, %c1], other = %x, mask = %p) : f32
  exec.parallel(lower = [%c0, %c0], upper = [%n, %e], step = [%c1, %c1]) { |%i: index, %j: index|
    %a = tile.load(%A, [%i, %j], other = %x, bounds = "check") : tile<f32, %d0, %d2>
    %b = tile.load(%A, [%i, %j]) : tile<f32, %d2, %d1>
    %zero = tile.map : tile<f32, %d0, %d1> { |%0: index, %1: index|
      exec.yield(%x)
    }
    %acc = exec.serial(lower = [%c0], upper = [%n], step = [%c1], initial = [%zero])
        : tile<f32, %d0, %d1> { |%2: index, %in: tile<f32, %d0, %d1>|
      %next = tile.mma(%a, %b, %in) : tile<f32, %d0, %d1>
      exec.yield(%next)
    }
    %piped = exec.pipeline(lower = [%c0], upper = [%n], step = [%c1], initial = [%x], window = 2,
        stage_names = ["load", none]) : f32 { |%3: index, %in: f32|
      exec.yield(%3, %yes)
    } { |%4: index, %in: f32, %handed: index, %flag: bool|
      exec.yield(%in)
    }
    %total = exec.reduce(lower = [%c0], upper = [%n], step = [%c1], initial = [%x],
        contract = #reduction_contract<policy = "fold_left">) : f32 { |%5: index, %in: f32|
      %more = scalar.apply "add"(%in, %x) : f32
      exec.yield(%more)
    }
    %row = tile.load(%A, [%i, %j]) : tile<f32, 1, %d1>
    %y = tile.map(%acc, %total, %row) : tile<f32, %d0, %d1, 1@1> {
        |%6: index, %7: index, %8: index, %u: f32, %v: f32, %w: f32|
      %product = scalar.apply "mul"(%u, %v) : f32
      exec.yield(%product)
    }
    %t = tile.reindex(%acc, [%i], map = (d0, d1)[s0] -> (d1, d0 + s0)) : tile<f32, %d1, %d0>
    %mask = tile.map : tile<bool, %d1> { |%9: index|
      exec.yield(%p)
    }
    tile.store(%A, [%i, %j], %t, mask = %mask, dims = [%d1, %d0])
    tile.store(%A, [%i, %j], %x)
    exec.yield
  }
  func.return(%r)
}
"""

LIFTED = """
module "lifted"
dim %d0 "m" = 8
dim %d1 "n" = 16

func @main(%A: view<f32, [?, ?], [?, 1]>, %x: f32, %n: index) {
  %square, %row = tensor.map_reduce_post(
      inputs = [%A, %x], seeds = [%x], posts = [%x], symbols = [%n], upper = [%n],
      extents = [8, 16], clipped = [1],
      input_access = [
        #access<map = (d0, d1)[s0] -> (d0 + s0, d1), bounds = "zero">,
        #access<map = (d0, d1)[s0] -> ()>],
      seed_access = [#access<map = (d0, d1)[s0] -> ()>],
      post_access = [#access<map = (d0, d1)[s0] -> ()>],
      specs = [
        #result_spec<dims = [0, 1]>,
        #result_spec<dims = [0], posts = 1, contract = #reduction_contract<
          policy = "unordered_tree", laws = [#state_law<merge = "add">]>>]
  ) : (tile<f32, %d0, %d1>, tile<f32, %d0>) { |%i: index, %j: index, %a: f32, %b: f32, %s: f32|
    %0 = scalar.apply "mul"(%a, %b) : f32
    %1 = scalar.apply "add"(%s, %0) : f32
    exec.yield(%0, %1)
  } { |%i: index, %j: index, %s: f32, %p: f32|
    exec.yield(%s)
  }
  func.return
}
"""

SCHEDULED = """
module "scheduled"

func @main(%A: view<f32, [8, 16], [?, 1]>, %x: f32, %n: index) {
  %t = buf.alloc : buf<f32, 8x16>
  %flag = buf.alloc : buf<i32>
  %seen = buf.read(%flag) : i32
  tensor.map_reduce_post(
      inputs = [%A], outputs = [%t], extents = [8, 16],
      input_access = [#access<map = (d0, d1) -> (d0, d1)>],
      output_access = [#access<map = (d0, d1) -> (d0, d1)>],
      specs = [#result_spec<dims = [0, 1], is_masked = true>],
      sched = #sched<loops = [
        #loop<dim = 0, step = 4>, #loop<dim = 1, step = 8, policy = "vector">,
        #loop<dim = 0, step = 1, policy = "unrolled">]>
  ) { |%i: index, %j: index, %a: f32|
    %0 = scalar.constant true : bool
    exec.yield(%a, %0)
  }
  %sums = buf.alloc : buf<f32, 8>
  tensor.map_reduce_post(
      inputs = [%t], seeds = [%x], outputs = [%sums], extents = [8, 16],
      input_access = [#access<map = (d0, d1) -> (d0, d1)>],
      seed_access = [#access<map = (d0, d1) -> ()>],
      output_access = [#access<map = (d0, d1) -> (d0)>],
      specs = [#result_spec<dims = [0], contract = #reduction_contract<
        policy = "unordered_tree", laws = [#state_law<merge = "add">]>>],
      sched = #sched<loops = [
        #loop<dim = 0, step = 1>, #loop<dim = 1, step = 16, policy = "vector">],
        atoms = [#atom_choice<atom = "cpu.lanes.reduce">]>
  ) { |%i: index, %j: index, %a: f32, %s: f32|
    %1 = scalar.apply "add"(%s, %a) : f32
    exec.yield(%1)
  } { |%i: index, %j: index, %s: f32|
    exec.yield(%s)
  }
  func.return
}
"""

MACHINE = """
module "machine"

func @main(%A: ptr, %n: index, %x: f32, %scratch: ptr) {
  loop.launch "main.body"(%n, [%A, %x])
  func.return
}

func @main.body(%begin: index, %end: index, %scratch: ptr, %A: ptr, %x: f32) {
  %c1 = scalar.constant 1 : index
  %wide = vector.splat(%x) : vector<8xf32>
  %sum = loop.for(%begin, %end, %c1, [%wide]) : vector<8xf32> { |%i: index, %in: vector<8xf32>|
    %p = address.offset(%A, %i, scale = 4, constant = 64) : ptr
    %mask = vector.lane_mask(%i) : vector<8xbool>
    %a = address.load(%p, mask = %mask, otherwise = %in, align = 4) : vector<8xf32>
    %lanes = vector.lanes : vector<8xi32>
    %g = address.gather(%p, %lanes, mask = %mask, otherwise = %a, scale = 4) : vector<8xf32>
    %more = scalar.apply "add"(%g, %in) : vector<8xf32>
    %near = scalar.apply "lt"(%i, %end) : bool
    address.check "load of A"(%i, %end, condition = %near, axis = 1, count = 8)
    address.store(%more, %p, mask = %mask, align = 4)
    address.scatter(%more, %p, %lanes, scale = 4)
    loop.yield(%more)
  }
  %pair = address.load(%A, align = 4) : vector<2xf32>
  %t0, %t1 = atom.call "cpu.lanes.transpose"(%pair, %pair) : (vector<2xf32>, vector<2xf32>)
  %total = atom.call "cpu.lanes.reduce"(%sum, semantic = "combine.add") : f32
  %small = scalar.apply "lt"(%begin, %c1) : bool
  %r = loop.if(%small) : f32 {
    loop.yield(%total)
  } {
    loop.yield(%x)
  }
  address.store(%r, %scratch, align = 4)
  func.return
}
"""

GOOD = {
    "candidate": CANDIDATE,
    "lifted": LIFTED,
    "scheduled": SCHEDULED,
    "machine": MACHINE,
    **GOOD_EFFECTS,
    **GOOD_STRUCTURES,
}
