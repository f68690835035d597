"""The demonstration program: `make demo`.

In: images that scikit-learn and scikit-image ship; nothing is fetched. Out: what was computed, how
exact and how fast, and pictures in `build/demo`. Exits with 1 when anything did not hold.
"""

import sys
import time
from pathlib import Path

from rich.console import Console

import tilenest as tn
from demo import digits, photograph, table

FOLDER = Path("build/demo")
WIDTH = 112


def main() -> int:
    start = time.perf_counter()
    # A narrower terminal would lose columns of the table.
    console = Console(width=max(WIDTH, Console().width), highlight=False)
    console.print(f"tilenest {tn.__version__}, {tn.get_num_threads()} thread(s)")
    console.rule("1,797 handwritten digits", align="left")
    faults = digits.run(console)
    console.rule("a photograph", align="left")
    faults += photograph.run(console, FOLDER)
    console.rule("the library of kernels", align="left")
    faults += table.run(console)
    for fault in faults:
        console.print(f"does not hold: {fault}", style="bold red")
    console.print(f"{time.perf_counter() - start:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
