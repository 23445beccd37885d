"""Attention: forward passes from three kernels to Hopper's tensor cores, checked and raced.

reference: float64, and what a case is. simple, mma, hopper: the rungs and their launchers;
rightness, bench: checked against the reference, and raced against PyTorch's own attention.
"""
