"""Numbers of few bits: how they are encoded, and kernels that multiply them.

formats: every format bit by bit. rounding: to the nearest, by chance. int4: packed weights and
their product. fp8_matmul: Hopper's product of 8-bit floats. sparse: 2 of 4. bench: all of it
against its rivals on a GPU.
"""
