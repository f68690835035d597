"""Paired measurements of the `tn.ops` kernels against NumPy and torch; `make bench` runs them."""
