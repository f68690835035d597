"""What kernels are written with: values, views, nests, primitive functions.

Every object and function here emits IR through the current `Session`; none looks at Python frames.
"""
