"""The demonstration behind `make demo`: real images through tile kernels, and a table."""
