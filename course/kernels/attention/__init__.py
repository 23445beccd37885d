"""Attention: its passes from plain kernels to Hopper's tensor cores, checked and raced.

reference: float64, and what a case is; problem: what kernels are told. classic, hopper: the rungs'
launchers; rungs: all of them by name; rightness, bench: held to the reference, raced against
PyTorch's own attention. decode, decode_rightness, bench_decode: the same of one query against a
cache of keys and values. backward, backward_rungs, backward_rightness: the same of the gradients.
numba_flash, triton_flash: one pass in Numba and in Triton. ring, bench_ring: over several GPUs.
trying: what a learner is told of a kernel that they changed.
"""
