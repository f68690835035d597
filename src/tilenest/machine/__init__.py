"""Frozen facts about the machines that programs are compiled for; no behaviour, no policy."""

from tilenest.faces import lazy_face

__getattr__, __dir__ = lazy_face(__name__, __file__)
