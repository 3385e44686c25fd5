"""Machine code of kernels: how it is made, kept, verified and checked."""
