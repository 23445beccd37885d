"""A Llama-shaped language model, one token at a time: kernels, their proof and their race.

The shapes and weights are in `problem.py`, the same in plain PyTorch in `reference.py`.
"""
