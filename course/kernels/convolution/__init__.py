"""Convolution's kernels, from a thread a pixel to Hopper's tensor cores, and what races them."""
