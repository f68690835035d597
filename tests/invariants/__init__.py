"""The invariants of TileIR: examples that keep or break each, and the tests that read them."""
