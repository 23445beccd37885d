"""Sums, scans and sorts: many values into one, running sums, and what is built on them.

``cuda/`` holds the CUDA C, each file whole; `sums`, `scans` and `sorts` launch it and have the
same steps in Numba; `bench` checks all of it and times it beside CUB and PyTorch.
"""
