"""Questions about the IR with frozen answers; nothing here edits a program."""

from tilenest.faces import lazy_face

__getattr__, __dir__ = lazy_face(__name__, __file__)
