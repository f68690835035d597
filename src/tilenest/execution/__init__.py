"""Execution levels and what their rearrangement, binding and distribution have to keep.

In: levels, scopes and layout maps. Out: frozen structures, and answers about them. Pure integers:
nothing here knows an operation, so that analyses, verifier, machine facts and attributes of the IR
share it.
"""

from tilenest.faces import lazy_face

__getattr__, __dir__ = lazy_face(__name__, __file__)
