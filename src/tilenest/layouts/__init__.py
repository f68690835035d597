"""Integer maps: index expressions, spaces and sets, layout maps, correspondences, and proofs.

In: extents, positions, numbers. Out: frozen maps that say where a coordinate goes, and answers
about them: PROVEN, DISPROVEN with a witness, or UNKNOWN. Pure integers: nothing here knows the IR,
a dtype or an array. `from tilenest.layouts import cute` (or `triton`, `tirx`, `drawing`) loads the
layouts of other systems and drawing, which nothing else here needs: call them by that name.
"""

from tilenest.faces import lazy_face

__getattr__, __dir__ = lazy_face(__name__, __file__)
