"""The matmul ladder: its judge, its records, and the kernels of its upper rungs."""
