"""The room's face: what `import tilenest` loads of it, and what is loaded by name only."""

import subprocess
import sys

from tilenest.layouts import cute, drawing, tirx, triton

BY_NAME = {"cute": cute, "drawing": drawing, "tirx": tirx, "triton": triton}


def test_other_systems_and_drawing_are_loaded_by_name_only() -> None:
    program = "import sys, tilenest; print(*(m for m in sys.modules if 'tilenest.layouts' in m))"
    run = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    loaded = {name.split(".")[2] for name in run.stdout.split() if name.count(".") > 1}
    assert "index_expr" in loaded
    assert not loaded & {*BY_NAME, "linear_modes"}
    assert not loaded & {"questions", "relations", "constructions", "deciding", "layout_map"}


def test_the_face_offers_them() -> None:
    for name, module in BY_NAME.items():
        assert module.__name__ == f"tilenest.layouts.{name}"
