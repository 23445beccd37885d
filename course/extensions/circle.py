"""Two neurons that learn which points lie in a circle. It needs PyTorch and nothing else."""

from dataclasses import dataclass

import torch

POINTS = 96
RADIUS = 1.6**0.5
STARTS = 16  # networks that are trained side by side, each from its own random start
STEPS = 300
RATE = 0.05
ROWS = 16  # of letters, less one


@dataclass(frozen=True)
class TwoNeurons:
    """A network: weights [..., 2, 2], shifts [..., 1, 2], mix [..., 2, 1], base [..., 1, 1]."""

    activation: object
    weights: torch.Tensor
    shifts: torch.Tensor
    mix: torch.Tensor
    base: torch.Tensor

    def __call__(self, places):
        """Places [n, 2] -> numbers [..., n, 1]; what is above 0.5 is a yes."""
        return torch.sigmoid(self.score(places))

    def score(self, places):
        """What the sigmoid makes a number between 0 and 1 of."""
        weighed = places @ self.weights + self.shifts
        return self.activation(weighed) @ self.mix + self.base

    def right(self) -> int:
        """About how many of the points it is right."""
        places, inside = points(self.weights.device)
        return int(((self(places) > 0.5) == (inside > 0.5)).sum())

    def in_letters(self) -> str:
        """Where it says yes, as a terminal can show it: a letter is twice as high as wide."""
        steps = torch.linspace(-2, 2, 2 * ROWS + 1, device=self.weights.device)
        places = torch.cartesian_prod(steps[::2].flip(0), steps)
        yes = (self(places[:, [1, 0]]) > 0.5).view(ROWS + 1, -1).tolist()
        return "\n".join("".join("#" if each else "." for each in row) for row in yes)


def points(device="cpu"):
    """(places [POINTS, 2], whether each lies in the circle [POINTS, 1], as 1 or 0)."""
    random = torch.Generator().manual_seed(1)
    places = 4 * torch.rand(POINTS, 2, generator=random) - 2
    inside = places.norm(dim=1, keepdim=True) < RADIUS
    return places.to(device), inside.float().to(device)


def trained(activation, device="cpu") -> TwoNeurons:
    """The best of STARTS networks, all trained alike.

    activation: a function of a tensor [STARTS, POINTS, 2] that autograd can differentiate.
    """
    random = torch.Generator().manual_seed(0)
    shapes = (2, 2), (1, 2), (2, 1), (1, 1)
    weights = [torch.randn(STARTS, *shape, generator=random).to(device) for shape in shapes]
    network = TwoNeurons(activation, *(each.requires_grad_() for each in weights))
    places, inside = points(device)
    inside = inside.expand(STARTS, -1, -1)
    optimizer = torch.optim.Adam(weights, lr=RATE)
    loss_of = torch.nn.BCEWithLogitsLoss(reduction="none")
    for _ in range(STEPS):
        optimizer.zero_grad()
        losses = loss_of(network.score(places), inside).mean((1, 2))
        losses.sum().backward()
        optimizer.step()
    best = losses.argmin()
    return TwoNeurons(activation, *(each.detach()[best] for each in weights))
