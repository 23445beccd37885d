"""Engines that run GPU kernels on a CPU."""
