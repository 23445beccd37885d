"""The data-parallel trainer on the CPU runtime: one rank, and two as threads of one process."""

import threading

import numpy as np
import pytest

from course.kernels.many_gpus import communicator as comm
from course.kernels.many_gpus.launch import launch
from course.kernels.many_gpus.trainer import ParallelTrainer
from course.kernels.mnist_cnn import fast
from course.kernels.mnist_cnn.pytorch import initial_weights
from tests.needs import without_gpu

HEAP, SCRATCH = 20 << 20, 1 << 16


class Threads:
    """A group of ranks that are threads."""

    def __init__(self, rank, size, barrier):
        self.rank, self.size, self._barrier = rank, size, barrier

    def all_gather(self, value=None):
        self._barrier.wait(60)


class InTurn(ParallelTrainer):
    """Trainers of one device: while one captures its graph, no other may wait for the device."""

    capturing = threading.Lock()

    def _create(self, *arguments):
        with self.capturing:
            super()._create(*arguments)
        self.communicator.group.all_gather()


def batches(count, batch, seed=0):
    random = np.random.default_rng(seed)
    return [
        (
            random.integers(0, 256, (batch, 28, 28), np.uint8),
            random.integers(0, 10, batch, np.uint8),
        )
        for _ in range(count)
    ]


@pytest.mark.nightly("by day four ranks train as the finale does on the whole batch")
def test_one_rank_trains_as_the_finale_does():
    weights, data = initial_weights(0), batches(2, 4)
    with fast.Trainer(weights, 4, 0.05, gradients=True) as alone:
        for images, labels in data:
            alone.step(images, labels)
        expected = alone.losses(), alone.weights()
    for statistics in (True, False):
        (communicator,) = comm.together(1, HEAP, SCRATCH)
        communicator.group = Threads(0, 1, threading.Barrier(1))
        with ParallelTrainer(communicator, weights, 4, 0.05, statistics=statistics) as trainer:
            for images, labels in data:
                trainer.step(images, labels)
            np.testing.assert_allclose(trainer.losses(), expected[0], rtol=1e-6)
            for name, value in trainer.weights().items():
                np.testing.assert_allclose(value, expected[1][name], rtol=1e-5, atol=1e-7)
        communicator.close()


def ranks_as_threads(_group, ranks, statistics, bucket, steps=3):
    """Train with ranks as threads, and compare with one trainer on the whole batch."""
    each = max(1, 4 // ranks)
    weights, data = initial_weights(0), batches(steps, each * ranks)
    pair = comm.together(ranks, HEAP * ranks // 2, SCRATCH, patience=60)
    barrier = threading.Barrier(ranks)
    results, errors = [None] * ranks, []

    def work(rank):
        try:
            pair[rank].group = Threads(rank, ranks, barrier)
            options = {"statistics": statistics, "bucket": bucket}
            with InTurn(pair[rank], weights, each, 0.05, **options) as trainer:
                for images, labels in data:
                    part = slice(rank * each, rank * each + each)
                    trainer.step(images[part].copy(), labels[part].copy())
                results[rank] = trainer.losses(), trainer.weights()
                pair[rank].check()
                barrier.wait(60)
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=[rank]) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    for other in results[1:]:
        for name in weights:
            assert np.array_equal(results[0][1][name], other[1][name]), name
        assert np.array_equal(results[0][0], other[0])
    if statistics:
        with fast.Trainer(weights, each * ranks, 0.05) as alone:
            for images, labels in data:
                alone.step(images, labels)
            np.testing.assert_allclose(results[0][0], alone.losses(), rtol=1e-3)
            for name, value in alone.weights().items():
                moved = np.linalg.norm(value - weights[name])
                assert np.linalg.norm(value - results[0][1][name]) <= 0.02 * moved, name
    for c in pair:
        c.close()


@pytest.mark.nightly("by day with four ranks, which have both")
@pytest.mark.parametrize("statistics, bucket", [(True, False), (False, True)])
def test_two_ranks_have_the_same_weights_and_those_of_the_whole_batch(statistics, bucket):
    launch(ranks_as_threads, 1, [2, statistics, bucket])  # in a fresh process: a fresh device


@without_gpu("one GPU need not run four ranks at a time that wait for one another")
def test_four_ranks_have_the_same_weights_and_those_of_the_whole_batch():
    launch(ranks_as_threads, 1, [4, True, True, 1])
