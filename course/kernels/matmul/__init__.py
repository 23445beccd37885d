"""The matmul ladder: its judge, its records, and the kernels of its upper rungs.

any_size: one function for products of every size and type, on Hopper. forms: what its kernels can
be. choosing: the model that chooses among them, with model.json, which fitting makes of what grid
measures.
"""
