"""One compiled variant: callable, and open to inspection at every stage.

In: a variant and a target. Out: `Compiled`: a call that never compiles anything else, the program's
text in each form, LLVM and assembly text, and a report of what was planned and why.
"""

from __future__ import annotations

from typing import Any

from tilenest.driver import FORMS, Compilation
from tilenest.errors import ArgumentTypeError, TargetError, shown
from tilenest.runtime import Dispatcher, Path, Variant, run_interpreted


class Compiled:
    """A kernel for arguments like those it was compiled for."""

    def __init__(self, dispatcher: Dispatcher, variant: Variant, target: str) -> None:
        for given, kind in ((dispatcher, Dispatcher), (variant, Variant)):
            if not isinstance(given, kind):
                raise ArgumentTypeError(
                    f"tn.Compiled is called with {shown(given)}",
                    "compile a kernel, as kernel.compile(...)",
                )
        self._dispatcher = dispatcher
        self._variant = variant
        self._target = target
        self._path: Path | None = None
        if target == "cpu":
            variant.loaded()

    def __call__(self, *arguments: Any) -> None:
        """Run; arguments that need another specialisation are refused."""
        path = self._path
        if path is not None and path.try_run(arguments):
            return
        accepted = self._dispatcher.accept(arguments)
        if not self._variant.fits([one.spec for one in accepted]):
            source = self._dispatcher.source
            raise ArgumentTypeError(
                f"this compiled {source.name} is made for other arguments: it is specialised on "
                f"{self._variant.specialisation}",
                f"call {source.name} itself, which compiles for any arguments",
            )
        if self._target == "interpret":
            run_interpreted(self._dispatcher, arguments)
        else:
            self._path = self._dispatcher.run(self._variant, accepted, arguments)

    @property
    def compilation(self) -> Compilation:
        """The record of every stage."""
        return self._variant.compilation

    def ir(self, form: str = "candidate") -> str:
        """The program's text: "candidate", "scheduled" or "machine"."""
        chosen: object = form
        if not isinstance(chosen, str) or chosen not in FORMS:
            raise TargetError(
                f"{shown(form)} is not a form of the program", f"use one of {', '.join(FORMS)}"
            )
        if form == "candidate":
            return self._variant.captured.text
        return self.compilation.ir(form)

    def text(self, language: str = "llvm") -> str:
        """The code: "llvm" or "asm"."""
        chosen: object = language
        if isinstance(chosen, str) and chosen in ("llvm", "asm"):
            compilation = self.compilation
            return compilation.llvm if chosen == "llvm" else compilation.assembly()
        raise TargetError(f"{shown(language)} is not a text of this target", 'use "llvm" or "asm"')

    def report(self) -> str:
        """What was decided and why, and what each step of the compilation took."""
        compilation = self.compilation
        lines = [f"{self._dispatcher.source.name}: {self._variant.specialisation}", "decisions:"]
        lines += [f"  {decision}" for decision in compilation.plan.decisions]
        lines.append("milliseconds:")
        lines += [f"  {name}: {1e3 * spent:.2f}" for name, spent in compilation.timings.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        source = self._dispatcher.source
        return f"<compiled {source.name} for {self._target}: {self._variant.specialisation}>"
