"""Running compiled kernels: arguments, dispatch, the object cache, threads."""
