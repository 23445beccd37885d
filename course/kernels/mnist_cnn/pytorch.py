"""The network in PyTorch: what every other version is compared with."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from course.kernels.mnist_cnn import EPS, MEAN, SHAPES, STD, check_weights


class CNN(nn.Module):
    """Pixels uint8 [B, 28, 28] to logits [B, 10]."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32, eps=EPS, track_running_stats=False)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(64, eps=EPS, track_running_stats=False)
        self.fc1 = nn.Linear(3136, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, images):
        x = scaled(images, self.fc1.weight.dtype)[:, None]
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 2)
        x = functional.max_pool2d(functional.relu(self.bn2(self.conv2(x))), 2)
        return self.fc2(functional.relu(self.fc1(x.flatten(1))))


def scaled(images: torch.Tensor, dtype=torch.float32) -> torch.Tensor:
    """Pixels 0..255 as numbers of mean 0 and deviation 1 (over MNIST), on the device that they are
    on.
    """
    return (images.to(dtype) / 255 - MEAN) / STD


def initial_weights(seed: int) -> dict[str, np.ndarray]:
    """The weights that training starts from, float32 by name: PyTorch's own initialization, drawn
    from `seed`.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return weights_of(CNN())


def weights_of(model: CNN) -> dict[str, np.ndarray]:
    """The model's weights by name, as NumPy arrays of their own."""
    return {name: model.get_parameter(name).detach().cpu().numpy().copy() for name in SHAPES}


def gradients_of(model: CNN) -> dict[str, np.ndarray]:
    """The gradients of the model's weights by name, as NumPy arrays of their own."""
    return {name: model.get_parameter(name).grad.detach().cpu().numpy().copy() for name in SHAPES}


def model_from(
    weights: dict[str, np.ndarray],
    device="cpu",
    dtype=torch.float32,
) -> CNN:
    """A model with these weights. Raises ValueError when a name or a shape is not the network's."""
    check_weights(weights)
    model = CNN()
    model.load_state_dict(
        {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
    )
    return model.to(device=device, dtype=dtype)


def loss_and_gradients(weights, images, labels, *, dtype=torch.float64):
    """One forward and backward pass by autograd, on the CPU and in float64 unless told otherwise.

    images: uint8 [B, 28, 28]; labels: [B]. Returns the loss, the logits [B, 10] and the gradients
        by name.
    """
    model = model_from(weights, dtype=dtype)
    logits = model(torch.from_numpy(np.ascontiguousarray(images)))
    loss = functional.cross_entropy(logits, torch.from_numpy(np.asarray(labels, np.int64)))
    loss.backward()
    return loss.item(), logits.detach().numpy(), gradients_of(model)


def train(
    model: CNN,
    loader,
    epochs: int,
    lr: float,
) -> list[float]:
    """Train in place with plain SGD; the loss of every step. `loader` is a loader.Loader."""
    device = next(model.parameters()).device
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    losses = []
    for epoch in range(epochs):
        for images, labels in loader.epoch(epoch, device):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            # fetching the number here would make the host wait for every step
            losses.append(loss.detach())
    return torch.stack(losses).tolist()


@torch.no_grad()
def accuracy(
    model: CNN,
    images: np.ndarray,
    labels: np.ndarray,
    batch: int = 1000,
) -> float:
    """Share of digits read right, 0 to 1. The statistics of batch norm are those of each `batch`
    digits.
    """
    device = next(model.parameters()).device
    right = 0
    for start in range(0, len(images), batch):
        chosen = slice(start, start + batch)
        logits = model(torch.from_numpy(images[chosen]).to(device))
        answers = logits.argmax(1).cpu().numpy()
        right += (answers == labels[chosen]).sum()
    return float(right) / len(images)
