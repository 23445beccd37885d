"""Work that need not go through memory in between: fused kernels.

block: bias, GELU, dropout, residual and layer norm, forward and backward. adamw: an optimizer's
step over all tensors in one launch. linear_cross_entropy: a loss without all its logits. rightness,
bench: checked and raced on a GPU; in_chapter, records: what the chapter shows of it.
"""
