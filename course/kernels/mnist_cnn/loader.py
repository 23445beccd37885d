"""Batches of digits: all of them in host memory, shuffled by seed and epoch, the next batch copied
while one trains.
"""

from collections.abc import Iterator

import numpy as np
import torch

from course.kernels.mnist_cnn import check_digits


class Loader:
    """Shuffled batches of a set of digits.

    images: uint8 [n, 28, 28]; labels: whole numbers [n], 0 to 9. seed: of the order.
    A set that the batch size does not divide loses its last, smaller batch in each epoch
    (`last="drop"`), because fixed sizes are what graphs and compiled steps need; the next epoch's
    order leaves out other digits.
    `last="keep"` keeps it.
    Raises ValueError for no data, for data that is not digits, and for a batch size that the set
    does not allow.
    """

    def __init__(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        batch: int,
        seed: int = 0,
        *,
        last: str = "drop",
    ):
        check_digits(images, labels)
        check_batch(batch, len(images))
        if last not in ("drop", "keep"):
            raise ValueError(f'last must be "drop" or "keep", not {last!r}')
        self.images = np.ascontiguousarray(images)
        self.labels = np.ascontiguousarray(labels, dtype=np.uint8)
        self.batch = batch
        self.seed = seed
        self.last = last

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.order(0))

    def shuffled(self, epoch: int) -> np.ndarray:
        """The numbers of all digits in the order of an epoch, the same for every version."""
        rng = np.random.default_rng([self.seed, epoch])
        return rng.permutation(len(self.images))

    def order(self, epoch: int) -> list[np.ndarray]:
        """Which digits make up each batch of an epoch."""
        shuffled = self.shuffled(epoch)
        starts = range(0, len(shuffled), self.batch)
        batches = [shuffled[start : start + self.batch] for start in starts]
        if self.last == "drop" and len(batches[-1]) < self.batch:
            batches.pop()
        return batches

    def host_batches(self, epoch: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The epoch's batches as NumPy arrays: images uint8 [B, 28, 28], labels uint8 [B]."""
        for chosen in self.order(epoch):
            yield self.images[chosen], self.labels[chosen]

    def epoch(
        self,
        epoch: int,
        device="cpu",
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The epoch's batches as tensors on `device`: images uint8 [B, 28, 28], labels int64 [B].

        On a GPU a batch is gathered into one of two pinned buffers and copied on a stream of its
        own, while the batch before it trains.
        """
        if torch.device(device).type == "cuda":
            yield from self._on_gpu(epoch, torch.device(device))
            return
        for images, labels in self.host_batches(epoch):
            yield torch.from_numpy(images), torch.from_numpy(labels).long()

    def _on_gpu(self, epoch, device):
        copies = torch.cuda.Stream(device)
        training = torch.cuda.current_stream(device)
        slots = [_Slot(self.batch) for _ in range(2)]
        order = self.order(epoch)
        following = slots[0].send(self, order[0], copies, device)
        for number in range(len(order)):
            images, labels = following
            training.wait_event(slots[number % 2].copied)
            after = number + 1
            if after < len(order):  # in flight while the caller works on this one
                following = slots[after % 2].send(self, order[after], copies, device)
            for tensor in (images, labels):
                # its memory is not reused before `training` is done with it
                tensor.record_stream(training)
            yield images, labels.long()


class _Slot:
    """Pinned memory for one batch, and the event of the last copy out of it."""

    def __init__(self, batch):
        self.images = torch.empty(
            (batch, 28, 28),
            dtype=torch.uint8,
            pin_memory=True,
        )
        self.labels = torch.empty(batch, dtype=torch.uint8, pin_memory=True)
        self.copied = torch.cuda.Event()

    def send(self, loader, chosen, stream, device):
        """Gather the chosen digits once the last copy is done, and start the copy to the GPU."""
        self.copied.synchronize()
        n = len(chosen)  # (mode="clip": NumPy then writes straight into `out`)
        np.take(
            loader.images,
            chosen,
            axis=0,
            out=self.images[:n].numpy(),
            mode="clip",
        )
        np.take(
            loader.labels,
            chosen,
            out=self.labels[:n].numpy(),
            mode="clip",
        )
        with torch.cuda.stream(stream):
            images = self.images[:n].to(device, non_blocking=True)
            labels = self.labels[:n].to(device, non_blocking=True)
            self.copied.record(stream)
        return images, labels


def check_batch(batch: int, digits: int) -> None:
    """Raises ValueError for a batch size that a set of this many digits does not allow."""
    if batch < 1:
        raise ValueError(f"the batch size must be at least 1, not {batch}")
    if batch > digits:
        raise ValueError(f"a batch of {batch:,} is more than the {digits:,} digits that there are")
