"""Numbers of few bits: how they are encoded, and kernels that multiply them.

formats: every format bit by bit; every_code: all of them against PyTorch. int4: packed weights and
their product. fp8_matmul: Hopper's product of 8-bit floats. sparse: 2 of 4. digits: a network
quantized. loss_scaling: a training in 8 bits. operands: what kernels are given. bench: kernels
against their rivals on a GPU. rightness: what is checked before; in_chapter: tables of the races.
"""
