"""A module with a number that kernels read, for the guards' tests."""

FACTOR = 2.5
