"""A classifier's last layer and its loss without all its logits at a time.

Tokens go through in chunks: a chunk's logits are computed, turned into their own gradient, used
for both gradients, and forgotten. Source of the method: Hsu et al., "Liger Kernel", 2024.
"""

import torch

from course.kernels.row_kernels.cross_entropy import IGNORED, loss_and_gradient

CHUNK = 2048  # tokens: fewer make slower products, more take more memory


def loss_and_gradients(x, weights, targets, chunk: int = CHUNK, ignored: int = IGNORED):
    """(mean loss, dx, dweights) of cross_entropy(x weightsᵀ, targets).

    x: [tokens, width]; weights: [classes, width]; targets: int64 [tokens]. float32 or bfloat16.
    chunk: tokens whose logits exist at a time.
    """
    counted = (targets != ignored).sum()
    weight_of_token = (1 / counted.clamp(min=1)).float().expand(chunk).contiguous()
    dx = torch.empty_like(x)
    dweights = torch.empty_like(weights)
    losses = []
    for start in range(0, len(x), chunk):
        part = slice(start, start + chunk)
        logits = x[part] @ weights.T
        of_tokens = weight_of_token[: len(logits)]
        loss, slope = loss_and_gradient(logits, targets[part], of_tokens, ignored, out=logits)
        torch.mm(slope, weights, out=dx[part])
        torch.addmm(dweights, slope.T, x[part], beta=int(start > 0), out=dweights)
        losses.append(loss)
        del logits, slope  # before the next chunk's are made
    return torch.cat(losses).sum() / counted, dx, dweights


def plain(x, weights, targets, ignored: int = IGNORED):
    """The same as everybody writes it: all logits, then the loss, then autograd."""
    x = x.detach().requires_grad_()
    weights = weights.detach().requires_grad_()
    loss = plain_loss(x, weights, targets, ignored)
    return loss.detach(), *torch.autograd.grad(loss, (x, weights))


def plain_loss(x, weights, targets, ignored: int = IGNORED):
    """The mean loss of all tokens, in float32."""
    logits = (x @ weights.T).float()
    return torch.nn.functional.cross_entropy(logits, targets, ignore_index=ignored)


def peak_bytes(run) -> int:
    """The most bytes that run() had on the GPU beyond what was there before, results included."""
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before
