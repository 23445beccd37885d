"""The judge of softmax's rungs: right for rows of all kinds before they are timed.

    judge = climbing.Softmax()
    judge.climb("online", online)      # your Numba kernel, beside CUDA C
    judge.tried("online", online)      # right, or which rows are not; without it, the CUDA C

A Numba kernel that is given takes the place of the course's; CUDA C is built as the learner left it
in its cell. Both are called "yours" where they differ.
"""

import torch

from course.kernels.reductions.kernels import is_yours
from course.kernels.row_kernels import classic, cross_entropy, numba_softmax
from utils import compare, cuda, cuda_c, pick
from utils.engine import has_gpu
from utils.tools.diagnostics import LearnerError

# rows that are not ordinary
KINDS = {0: "with a -inf", 1: "with a NaN", 2: "of numbers far below 0"}
LOW = -200  # a row of such values: exp(value) is 0 in float32


class NotRight(LearnerError):
    """A rung gives something else than softmax."""


def for_numba(tensor):
    """A tensor as Numba's kernels take it."""
    return cuda.as_cuda_array(tensor) if tensor.is_cuda else tensor.numpy()


class Softmax:
    """Rows of random numbers, `x`; one of them has a -inf, one a NaN, in one all lie far below 0.

    kept: values of a thread where a row stays in registers. shorter: the first rows without their
    last column, so that a thread lacks an element even where a row of `x` fills all places.
    """

    def __init__(self):
        self.columns = pick(gpu=16_384, cpu=300)
        self.rows = classic.rows_for(self.columns, most=pick(gpu=1 << 14, cpu=6))
        self.threads = pick(gpu=512, cpu=64)
        self.kept = -(-self.columns // self.threads)
        device = "cuda" if has_gpu() else "cpu"
        self.x = torch.randn(self.rows, self.columns, device=device)
        self.x[0, 7] = -torch.inf
        self.x[1, 3] = torch.nan
        self.x[2] += LOW
        self.y = torch.empty_like(self.x)
        self.shorter = self.x[:4, :-1].contiguous()

    def numba(self, name: str):
        """The course's kernel in Numba."""
        if name == "one_read":
            return numba_softmax.one_read(self.columns, self.threads)
        return getattr(numba_softmax, name)

    def climb(self, name: str, kernel=None):
        """Check a rung in both languages, then time them in turn. NotRight where one is not."""
        kernel = kernel or self.numba(name)
        if is_yours(kernel, self.numba(name)):
            print("[yours: the Numba kernel of your cell]")
        rivals = {
            "Numba": self._numba(kernel),
            "CUDA C": self._cuda_c(name, self.x, self.y),
        }
        for label, run in rivals.items():
            self._check(label, run, self.x, self.y)
        return compare(rivals, bytes=2 * self.x.nbytes, name=f"softmax_rungs/{name}")

    def tried(self, name: str, kernel=None) -> None:
        """Say whether a rung is right as it stands now. Nothing is raised, nothing is timed."""
        if kernel is not None and is_yours(kernel, self.numba(name)):
            print("[yours: the Numba kernel of your cell]")
        classic.module.cache_clear()  # what is loaded is built anew, with the checks
        try:
            with cuda_c.checked():
                if kernel is None:
                    self._check_cuda_c(name)
                else:
                    self._check("Numba", self._numba(kernel), self.x, self.y)
        except LearnerError as mistake:
            print(mistake)
        else:
            print("✓ right, in rows with -inf, with NaN and far below 0, too")
        classic.module.cache_clear()

    def _numba(self, kernel):
        arrays = for_numba(self.y), for_numba(self.x)
        return lambda: kernel[self.rows, self.threads](*arrays)

    def _cuda_c(self, name, x, y):
        kept = f", {self.kept}" if name == "one_read" else ""
        kernel = classic.module("softmax.cu")[f"softmax_{name}<float{kept}>"]
        return lambda: kernel[len(x), self.threads](y, x, x.shape[1])

    def _check_cuda_c(self, name):
        """Both matrices; in Numba `kept` and the row's length are fixed when it is compiled."""
        for x, y in ((self.x, self.y), (self.shorter, torch.empty_like(self.shorter))):
            self._check("CUDA C", self._cuda_c(name, x, y), x, y)

    def _check(self, label, run, x, y):
        y.fill_(7)
        run()
        right = x.softmax(-1)
        near = torch.isclose(y, right, rtol=1e-4, atol=1e-7, equal_nan=True).all(-1)
        if not near.all():
            rows = (~near).nonzero()[:, 0].tolist()
            firsts = {KINDS.get(row, "an ordinary one"): row for row in reversed(rows)}
            raise NotRight(
                "\n".join(
                    f"{label}: row {row} ({kind}) begins with {y[row, 0].item():.3g}, and "
                    f"{right[row, 0].item():.3g} would be right"
                    for kind, row in sorted(firsts.items(), key=lambda item: item[1])
                )
            )


def tried_loss() -> None:
    """Say whether the loss and its gradient, by kernels/cross_entropy.cu as it stands now, are
    right. Nothing is raised.
    """
    device = "cuda" if has_gpu() else "cpu"
    scores = torch.randn(5, 300, device=device)
    right = torch.randint(300, (5,), device=device)
    weights = torch.rand(5, device=device)
    losses, log_sums = torch.empty(2, 5, device=device)
    gradient = torch.empty_like(scores)
    ignored = cross_entropy.IGNORED
    forward = classic.launcher("cross_entropy.cu", "cross_entropy", scores)
    forward(losses, log_sums, scores, right, scores.shape[1], ignored)
    backward = classic.launcher("cross_entropy.cu", "cross_entropy_backward", scores)
    backward(gradient, scores, log_sums, right, weights, scores.shape[1], ignored)
    leaf = scores.clone().requires_grad_()
    exact = torch.nn.functional.cross_entropy(leaf, right, reduction="none")
    (slope,) = torch.autograd.grad(exact, leaf, weights)
    for name, ours, theirs in (("loss", losses, exact), ("gradient", gradient, slope)):
        apart = (ours - theirs).abs().max().item()
        print(f"{name}: {'✓ right' if apart < 1e-4 else 'wrong'}, off by {apart:.1e}")
    print(f"a row's gradient adds up to {gradient[0].sum().item() + 0:.4f}, and 0 would be right")
