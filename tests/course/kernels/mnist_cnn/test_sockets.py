"""Kernels of the learner's in the fast trainer: what fits, what is told, and what they train."""

import re

import numpy as np
import pytest
import torch
from torch.nn import functional

from course.exercises import beating_pytorch
from course.kernels.mnist_cnn import fast, pytorch
from course.kernels.mnist_cnn.sockets import SOCKETS, SocketError, check_kernel, checked
from tests.course.kernels.mnist_cnn.test_fast import EXACT, problem
from utils import data
from utils.cuda_c import CompileError
from utils.engine import has_gpu

ALL = list(SOCKETS.values())


def files(which):
    """All four, slow or good."""
    return {socket.name: getattr(socket, which) for socket in ALL}


def changed(tmp_path, name, old, new):
    """A good kernel with a few words changed, in a file of its own."""
    text = SOCKETS[name].good.read_text()
    assert text.count(old) == 1
    path = tmp_path / f"{name}.cu"
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize("which", ["slow", "good"])
@pytest.mark.parametrize("socket", ALL, ids=lambda socket: socket.name)
def test_ours_fit(socket, which):
    check_kernel(socket, getattr(socket, which))


@pytest.mark.parametrize("socket", ALL, ids=lambda socket: socket.name)
def test_the_header_says_what_each_takes(socket):
    header = (fast.KERNELS / "sockets.cuh").read_text()
    words = " ".join(re.sub(r"^//", "", line) for line in header.splitlines())
    assert str(socket.signature) in re.sub(r"\s+", " ", words).replace("* ", " *")


@pytest.mark.parametrize(
    "mine, words",
    [
        ({"haed": "build/head.cu"}, "no socket 'haed': there are patch_moments"),
        ({"head": "build/nowhere.cu"}, "your head: there is no file build/nowhere.cu. Run"),
        ({"head": SOCKETS["update"].good}, "has no kernel of that name; it has update"),
    ],
)
def test_what_is_not_there_is_said(mine, words):
    with pytest.raises(SocketError, match=words):
        checked(mine)


def test_other_parameters_are_said(tmp_path):
    path = changed(tmp_path, "update", "int splits,", "long long splits,")
    with pytest.raises(SocketError, match="other parameters") as error:
        checked({"update": path})
    assert "int splits, float rate)" in str(error.value)
    assert "long long splits, float rate)" in str(error.value)


def test_a_mistake_of_c_is_shown_in_its_line(tmp_path):
    path = changed(tmp_path, "update", "float4 now = w[i];", "float4 now = w[i]")
    with pytest.raises(CompileError, match=r"float4 now = w\[i\]"):
        checked({"update": path})


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("patch_moments", " : 0.328125f", " : 0"),
        ("conv1_pool", "float largest = 0;", "float largest = -INFINITY;"),
        ("head", "dh[e] = h[e] > 0 ? dh[e] : 0;", ""),
        ("update", "s < splits", "s < 1"),
    ],
)
def test_a_wrong_value_is_found_before_training(tmp_path, name, old, new):
    weights, _, _ = problem(2)
    path = changed(tmp_path, name, old, new)
    with pytest.raises(SocketError, match="must be right first") as error:
        fast.Trainer(weights, 2, 0.1, mine={name: path})
    assert re.search(r"at \[.*: got .*expected ", str(error.value))


def solved(folder, begin=""):
    """The exercises' solutions as files in a folder, behind this text each."""
    of_kernels = {each.kernel_name: each.solution for each in beating_pytorch.EXERCISES}
    for name in SOCKETS:
        (folder / f"{name}.cu").write_text(begin + of_kernels[name])
    return {name: folder / f"{name}.cu" for name in SOCKETS}


A_HELPER = "#include <cfloat>\n__device__ float relu(float x) { return x; }\n"
OTHERWISE = pytest.mark.nightly("by day the solutions in a graph; the course's are checked alone")


@pytest.mark.parametrize(
    "which, graph",
    [
        ("solved", True),
        pytest.param("solved", False, marks=OTHERWISE),
        pytest.param("slow", False, marks=OTHERWISE),
        pytest.param("good", False, marks=OTHERWISE),
        pytest.param("good", True, marks=OTHERWISE),
        pytest.param("slow", True, marks=OTHERWISE),
    ],
)
def test_the_step_stays_what_it_was_and_helpers_may_have_one_name(which, graph, tmp_path):
    own = solved(tmp_path, A_HELPER) if which == "solved" else files(which)
    batch = 200 if has_gpu() else 3
    weights, images, labels = problem(batch)
    results = []
    for mine in ({}, own):
        with fast.Trainer(weights, batch, 0.02, EXACT, mine=mine, graph=graph) as trainer:
            assert list(trainer.mine) == list(mine)
            trainer.step(images, labels)
            if "head" in mine:
                with pytest.raises(ValueError, match="hands on no logits"):
                    trainer.step_logits()
            some = trainer.logits(images[:2])  # leaves the training alone
            trainer.step(images, labels)
            results.append((trainer.losses(), trainer.weights(), some))
    (losses, weights, some), (own_losses, theirs, others) = results
    tolerance = 1e-2 if has_gpu() else 1e-5
    np.testing.assert_allclose(own_losses, losses, rtol=tolerance)
    np.testing.assert_allclose(others, some, atol=50 * tolerance)
    for name in weights:
        np.testing.assert_allclose(theirs[name], weights[name], atol=tolerance, err_msg=name)


def test_what_they_do_not_hand_on_is_said():
    weights, _, _ = problem(2)
    with pytest.raises(ValueError, match="kept by our update"):
        fast.Trainer(weights, 2, 0.1, gradients=True, mine={"update": SOCKETS["update"].good})


@pytest.mark.nightly("by day two of their steps are the same, to the last digits")
def test_with_the_exercises_solutions_it_learns_as_pytorch_does(tmp_path):
    """The gate, as a toy: zeros and ones without a GPU; PyTorch in fp32 beside it."""
    mine = solved(tmp_path)
    batch, steps, kinds, rate = (256, 100, 10, 0.05) if has_gpu() else (2, 8, 2, 0.01)
    images, labels = data.mnist(subset=True)
    chosen = labels < kinds
    images, labels = images[chosen], labels[chosen]
    train = 3 * len(labels) // 4
    order = np.random.default_rng(0).permutation(np.resize(np.arange(train), batch * steps))
    weights = pytorch.initial_weights(0)
    model = pytorch.model_from(weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    with fast.Trainer(weights, batch, rate, mine=mine) as trainer:
        for digits in order.reshape(steps, batch):
            trainer.step(images[digits], labels[digits])
            trainer.synchronize()
            answers = torch.from_numpy(labels[digits]).long()
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.from_numpy(images[digits])), answers).backward()
            optimizer.step()
        learnt = pytorch.model_from(trainer.weights())
    theirs = pytorch.accuracy(model, images[train:], labels[train:])
    ours = pytorch.accuracy(learnt, images[train:], labels[train:])
    assert theirs > 0.9
    assert ours > theirs - 0.03
