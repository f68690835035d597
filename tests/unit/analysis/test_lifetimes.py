"""Lifetimes: what may still read a value, through branches and the next iterations of loops."""

from __future__ import annotations

import pytest

from tilenest.analysis import Lifetimes
from tilenest.driver import parse
from tilenest.ir import Function, Operation, Value

PROGRAM = """
module "lifted"

func @kernel(%flag: bool) {
  %zero = scalar.constant 0 : index
  %four = scalar.constant 4 : index
  %one = scalar.constant 1 : index
  %start = scalar.constant 1.0 : f32
  %once = scalar.constant 2.0 : f32
  %each = scalar.constant 3.0 : f32
  %end = exec.serial (%zero)..(%four) step (%one) [%start] : f32 { |%i: index, %state: f32|
    %twice = scalar.apply "mul"(%state, %each) : f32
    %chosen = exec.if(%flag) : f32 {
      %sum = scalar.apply "add"(%twice, %state) : f32
      exec.yield(%sum)
    } {
      exec.yield(%state)
    }
    exec.yield(%chosen)
  }
  %after = scalar.apply "add"(%end, %once) : f32
  func.return
}
"""
