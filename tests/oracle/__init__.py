"""Whole-program tests: library operators and kernels, judged by strangers and the interpreter."""
