"""Work that need not go through memory in between: fused kernels.

block: bias, GELU, dropout, residual and layer norm, forward and backward. adamw: an optimizer's
step over all tensors in one launch. linear_cross_entropy: a loss without its logits. generated:
kernels from source made at run time. bench: all of it against its rivals on a GPU.
"""
