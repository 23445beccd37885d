"""The digit network: reference, loader, files, drawing, and the CUDA C trainer."""

import json
import os
import resource
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from course.kernels.mnist_cnn import SHAPES, drawing, files, layers, naive_trainer, pytorch, seven
from course.kernels.mnist_cnn.loader import Loader
from course.pictures import mnist_cnn as pictures
from tests.processes import completed
from utils.data import mnist
from utils.tools import nvcc


@pytest.fixture(scope="module")
def digits():
    return mnist("train", subset=True)


def some(digits, end, start=0):
    """(images, labels) of a few digits."""
    images, labels = digits
    return images[start:end], labels[start:end]


@pytest.fixture(scope="module")
def weights():
    return pytorch.initial_weights(16)


# ---- the reference ---


@pytest.mark.parametrize("batch", [1, 3, 7])
def test_reference_agrees_with_autograd(digits, weights, batch):
    images, labels = some(digits, batch)
    weights = {
        name: value + np.float32(0.1) * (value.ndim == 1) for name, value in weights.items()
    }  # beta, gamma: not 0 and 1
    loss, logits, gradients = pytorch.loss_and_gradients(weights, images, labels)
    ours = layers.loss_and_gradients(
        {k: v.astype(float) for k, v in weights.items()}, images, labels
    )
    assert np.isclose(ours[0], loss, rtol=1e-12)
    assert np.allclose(ours[1], logits, rtol=1e-10, atol=1e-10)
    assert list(gradients) == list(SHAPES)
    for name in SHAPES:
        scale = np.abs(gradients[name]).max()
        assert scale > 0 and np.abs(ours[2][name] - gradients[name]).max() < 1e-9 * scale + 1e-12, (
            name
        )


@pytest.mark.parametrize("height, width", [(1, 1), (5, 7), (2, 9)])
def test_convolution_of_awkward_pictures(height, width):
    rng = np.random.default_rng(height)
    x, w, dy = (
        rng.normal(size=(3, 2, height, width)),
        rng.normal(size=(5, 2, 3, 3)),
        rng.normal(size=(3, 5, height, width)),
    )
    tx, tw = (torch.tensor(a, requires_grad=True) for a in (x, w))
    y = functional.conv2d(tx, tw, padding=1)
    y.backward(torch.tensor(dy))
    assert np.allclose(layers.conv2d(x, w), y.detach())
    dx, dw = layers.conv2d_backward(dy, x, w)
    assert np.allclose(dx, tx.grad) and np.allclose(dw, tw.grad)


def test_pooling_gives_ties_to_the_first():
    x = np.random.default_rng(1).integers(0, 2, (2, 3, 7, 5)).astype(float)
    tx = torch.tensor(x, requires_grad=True)
    functional.max_pool2d(tx, 2).sum().backward()
    y, winner = layers.maxpool2x2(x)
    assert np.array_equal(layers.maxpool2x2_backward(np.ones_like(y), winner, x.shape), tx.grad)


def test_cross_entropy_of_large_logits_is_finite():
    loss, softmax = layers.cross_entropy(np.array([[1000.0, -1000.0] + [0.0] * 8]), np.array([1]))
    assert loss == 2000 and np.isfinite(softmax).all()


def test_initial_weights_follow_their_seed_alone():
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    one, two, other = map(pytorch.initial_weights, (3, 3, 4))
    assert torch.rand(1) == expected  # the global generator was left alone
    assert all(np.array_equal(one[n], two[n]) for n in SHAPES)
    assert not np.array_equal(one["fc1.weight"], other["fc1.weight"])
    assert all(one[n].shape == SHAPES[n] and one[n].dtype == np.float32 for n in SHAPES)


def test_weights_that_are_not_the_networks_are_refused(weights):
    with pytest.raises(ValueError, match="conv1.weight must have shape"):
        pytorch.model_from({**weights, "conv1.weight": np.zeros((32, 1, 5, 5), np.float32)})
    with pytest.raises(ValueError, match="weights are conv1.weight"):
        pytorch.model_from({"conv1.weight": weights["conv1.weight"]})
    with pytest.raises(ValueError, match="fc2.bias holds numbers that are not finite"):
        pytorch.check_weights({**weights, "fc2.bias": np.full(10, np.nan, np.float32)})


# ---- the loader ---


def test_an_epoch_uses_each_digit_once_and_the_next_another_order(digits):
    images, labels = some(digits, 50)
    loader = Loader(images, labels, 10, seed=5)
    first, second = np.concatenate(loader.order(0)), np.concatenate(loader.order(1))
    assert sorted(first) == list(range(50)) and not np.array_equal(first, second)
    assert np.array_equal(first, np.concatenate(Loader(images, labels, 10, seed=5).order(0)))
    for chosen, (pixels, answers) in zip(loader.order(0), loader.epoch(0), strict=True):
        assert np.array_equal(pixels, images[chosen]) and answers.dtype == torch.int64
        assert np.array_equal(answers, labels[chosen])


@pytest.mark.parametrize("last, sizes", [("drop", [20, 20]), ("keep", [20, 20, 10])])
def test_a_batch_that_does_not_divide_the_set(digits, last, sizes):
    loader = Loader(*some(digits, 50), 20, last=last)
    assert [len(batch) for batch in loader.order(0)] == sizes
    assert [len(images) for images, _ in loader.epoch(0)] == sizes
    assert len(loader) == len(sizes)


def test_what_cannot_be_loaded_is_refused(digits):
    images, labels = some(digits, 50)
    refused = {
        "at least 1": (images, labels, -3),
        "must be at least 1, not 0": (images, labels, 0),
        "more than the 50 digits": (images, labels, 51),
        "no digits": (images[:0], labels[:0], 1),
        "as many labels": (images, labels[:49], 5),
        "float32": (images.astype(np.float32), labels, 5),
        "label 7 is 10": (images, np.where(np.arange(50) == 7, 10, labels), 5),
    }
    for message, arguments in refused.items():
        with pytest.raises(ValueError, match=message):
            Loader(*arguments)
    with pytest.raises(ValueError, match="drop"):
        Loader(images, labels, 5, last="some")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="copies to a GPU need one")
def test_batches_arrive_on_the_gpu_as_they_were(digits):
    loader = Loader(*some(digits, 500), 64, last="keep")
    sent = [(i.clone(), a.clone()) for i, a in loader.epoch(2, "cuda")]
    for chosen, (images, labels) in zip(loader.order(2), sent, strict=True):
        assert np.array_equal(images.cpu(), loader.images[chosen]) and np.array_equal(
            labels.cpu(), loader.labels[chosen]
        )


# ---- files ---


def test_weights_survive_a_file(tmp_path, weights):
    files.save_weights(tmp_path / "new" / "w.bin", weights)
    read = files.load_weights(tmp_path / "new" / "w.bin")
    assert all(np.array_equal(read[name], weights[name]) for name in SHAPES)


def test_half_a_weights_file_is_refused(tmp_path, weights):
    path = tmp_path / "w.bin"
    files.save_weights(path, weights)
    content = path.read_bytes()
    for broken in (content[:-4], content + b"1234", b"", b"X" + content[1:]):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="no checkpoint"):
            files.load_weights(path)


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "w.bin"
    files.write_whole(path, b"old")

    def full(_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_whole(path, b"new, and longer")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["w.bin"]


# ---- drawing ---


def test_a_drawing_is_fitted_and_centred():
    corner = np.zeros((28, 28), np.uint8)
    corner[2:8, 3:6] = 200
    image = drawing.like_mnist(corner)
    rows, columns = np.nonzero(image)
    assert image.shape == (28, 28) and image.dtype == np.uint8 and np.ptp(rows) == 19
    assert abs((image.sum(1) @ np.arange(28)) / image.sum() - 13.5) <= 0.5
    assert abs((image.sum(0) @ np.arange(28)) / image.sum() - 13.5) <= 0.5
    assert not drawing.like_mnist(np.zeros((28, 28), np.uint8)).any()


def test_the_square_reads_what_is_drawn():
    seen = []
    square = drawing.square(lambda image: seen.append(image) or "a seven")
    square.pixels = drawing.strokes([[(0.3, 0.25), (0.7, 0.25), (0.45, 0.8)]]).ravel().tolist()
    assert square.answer == "a seven" and np.array_equal(seen[0], drawing.like_mnist(seen[0]))
    square.pixels = [0] * 784
    assert square.answer == "" and len(seen) == 1


def test_pictures_say_what_they_show():
    for fig in (
        pictures.weights_by_layer(),
        pictures.losses({"one": [2.0, 1.0], "two": [2.0, 1.1]}),
        pictures.distances({"one": np.array([1e-7, 1e-3])}),
    ):
        assert fig.alt and fig._repr_mimebundle_()["text/html"]


def test_a_digits_way_through_the_network_ends_in_its_logits():
    images, _ = mnist("test", subset=True)
    weights = pytorch.initial_weights(0)
    sheet = pictures.network(weights, 2)
    with torch.no_grad():
        logits = pytorch.model_from(weights)(torch.from_numpy(images[:16]))[2]
    assert sheet.alt.endswith(f"8: {logits[8]:.1f}, 9: {logits[9]:.1f}.")
    assert sheet.svg().count("<image ") == 1 + 4 * pictures.SHOWN + 1
    assert sheet.svg().count(f"fill:{pictures.BLOCK_COLOURS[4]}") == 1


def test_a_pixel_was_used_by_nine_outputs_with_the_taps_turned():
    assert "line by line, they took it by taps 9 8 7 6 5 4 3 2 1." in pictures.used_by().alt


def test_a_pixel_in_the_corner_was_used_by_four():
    said = pictures.used_by(row=0, column=4).alt
    assert "4 outputs used the pixel in row 0, column 4 of 5 × 5" in said
    assert "by taps 6 5 3 2." in said


def test_a_batch_is_gathered_when_its_slot_is_free():
    sheet = pictures.two_slots(steps=4, gather=3, copy=2, train=8)
    assert sheet.alt == (
        "In time: step 2's batch is gathered once step 0 is done; step 3's batch is gathered once "
        "step 1 is done."
    )
    assert sheet.svg().count(">done</text>") == 2


def test_a_linear_layer_is_three_products():
    said = pictures.linear(64).alt
    assert "y is x times wᵀ, a sum over K; dx is dy times w, a sum over N" in said
    assert "dw is dyᵀ times x, a sum over B" in said and "B = 64, K = 3136, N = 128" in said


def test_a_verdict_says_what_each_answer_has_and_what_it_is_off_by():
    p = np.array([0.5, 0.3, 0.2, *np.zeros(7)])
    assert "reads 0. 0: 50%, 1: 30%" in pictures.verdict(seven.IMAGE, p).alt
    blamed = pictures.verdict(seven.IMAGE, p, right=1)
    assert "Off by +0.50, -0.70, +0.20" in blamed.alt and ">-0.70</text>" in blamed.svg()


def test_one_number_that_moves_takes_its_company_along():
    assert pictures.company(3).alt == "1, 1, 3, 3 become -1.00, -1.00, 1.00, 1.00."
    assert "become -0.82, -0.82, 0.00, 1.63" in pictures.company(7).alt


def test_the_untrained_network_takes_the_seven_for_a_three_and_after_a_step_for_a_seven():
    weights = pytorch.initial_weights(16)
    p = seven.probabilities(weights)
    assert p.sum() == pytest.approx(1) and p.argmax() == 3
    assert seven.probabilities(seven.after_a_step(weights, lr=0.1)).argmax() == 7


# ---- the trainer in CUDA C ---


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A folder with the trainer's program, as the chapter assembles it from the course's parts."""
    folder = tmp_path_factory.mktemp("tree") / "chapters"
    naive_trainer.assemble({}, folder / "build" / "train.cu")
    return folder


@pytest.fixture(scope="module")
def trainer(source, digits, weights):
    """Runs the chapter's trainer on 21 digits, on the CPU. Options as keywords; returns what it
    did.
    """
    program = nvcc.build(nvcc.Request(source / "build" / "train.cu", ["-O3"], cpu=True))
    folder = source / "build" / "digits"
    files.write_digits(folder, "train", *some(digits, 21))
    files.write_digits(folder, "t10k", *some(digits, 40, 30))
    files.save_weights(source / "build" / "start.weights", weights)
    files.write_order(source / "build" / "order.bin", Loader(*some(digits, 21), 7, seed=2), 2)

    def run(preexec_fn=None, **options):
        words = [f"{name}={value}" for name, value in ({"batch": 7} | options).items()]
        return completed(
            [program.resolve(), *words], cwd=source, timeout=600, preexec_fn=preexec_fn
        )

    return run


def result_in(source):
    """What the trainer wrote at its end."""
    return json.loads((source / "build" / "result.json").read_text())


def test_one_step_is_the_gradient(trainer, source, digits, weights):
    """With lr = 1 the weights move by the gradient itself: held to float64 autograd, for an odd
    batch.
    """
    done = trainer(steps=1, lr=1, checkpoint="build/one.weights")
    assert done.returncode == 0, done.stderr
    chosen = Loader(*some(digits, 21), 7, seed=2).order(0)[0]
    loss, _, gradients = pytorch.loss_and_gradients(weights, digits[0][chosen], digits[1][chosen])
    moved = files.load_weights(source / "build" / "one.weights")
    for name in SHAPES:
        step = weights[name].astype(float) - moved[name]
        error = np.linalg.norm(step - gradients[name]) / np.linalg.norm(gradients[name])
        assert error < 1e-3, (name, error)  # a difference of float32 weights: the step loses digits
    assert abs(result_in(source)["losses"][0] - loss) < 1e-5


def test_losses_follow_pytorchs(trainer, source, digits, weights):
    done = trainer(lr=0.01)
    assert done.returncode == 0, done.stderr
    loader = Loader(*some(digits, 21), 7, seed=2)
    expected = pytorch.train(pytorch.model_from(weights, dtype=torch.float64), loader, 2, 0.01)
    result = result_in(source)
    assert len(result["losses"]) == 6 and len(result["accuracies"]) == 2
    assert np.abs(np.array(result["losses"]) - expected).max() < 1e-2
    assert np.abs(np.array(result["losses"]) - expected)[:2].max() < 1e-4


def test_a_batch_that_does_not_divide_drops_the_rest(trainer, source):
    assert trainer(batch=8).returncode == 0
    assert len(result_in(source)["losses"]) == 2 * 2


@pytest.mark.parametrize(
    "options, message",
    [
        ({"batch": 0}, "batch=0: it must be between 1 and the 21 digits"),
        ({"batch": 22}, "batch=22: it must be between 1"),
        ({"digits": "build/nowhere"}, "no such file"),
        ({"weights": "build/order.bin"}, "is no checkpoint of this network"),
        ({"order": "build/start.weights"}, "not 21 an epoch"),
        ({"bathc": 3}, "unknown option bathc=3"),
    ],
)
def test_what_cannot_be_is_said(trainer, options, message):
    done = trainer(**options)
    assert done.returncode == 1 and message in done.stderr


@pytest.mark.parametrize(
    "break_it",
    [
        lambda b: b[:-1],
        lambda b: b + b"0",
        lambda b: b"\x1f\x8b" + b[2:],
        lambda b: b[:5],
        lambda b: b"",
    ],
)
def test_corrupt_digits_are_named(trainer, source, break_it):
    broken = source / "build" / "broken"
    shutil.rmtree(broken, ignore_errors=True)
    shutil.copytree(source / "build" / "digits", broken)
    path = broken / "train-images-idx3-ubyte"
    path.write_bytes(break_it(path.read_bytes()))
    done = trainer(digits="build/broken")
    assert done.returncode == 1 and "is corrupt" in done.stderr and path.name in done.stderr


def test_a_wrong_label_is_named(trainer, source):
    broken = source / "build" / "labels"
    shutil.copytree(source / "build" / "digits", broken)
    path = broken / "train-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes()[:-1] + b"\x0b")
    done = trainer(digits="build/labels")
    assert done.returncode == 1 and "a label is 11" in done.stderr


def test_a_loss_that_is_no_number_stops_and_keeps_the_old_checkpoint(trainer, source):
    kept = source / "build" / "kept.weights"
    kept.write_bytes(b"the old one")
    done = trainer(lr=1e30, checkpoint="build/kept.weights")
    assert done.returncode == 1 and "step 2: the loss is" in done.stderr
    assert kept.read_bytes() == b"the old one" and not kept.with_suffix(".weights.part").exists()


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(trainer, source):
    kept = source / "build" / "full.weights"
    kept.write_bytes(b"the old one")

    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        signal.signal(
            signal.SIGXFSZ, signal.SIG_IGN
        )  # a write beyond the limit fails as on a full disk

    done = trainer(steps=1, checkpoint="build/full.weights", preexec_fn=small_disk)
    assert done.returncode == 1 and "cannot be written" in done.stderr
    assert kept.read_bytes() == b"the old one" and not Path(f"{kept}.part").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to RLIMIT_AS")
def test_out_of_memory_says_what_to_do(trainer, source, digits):
    images, labels = (np.concatenate([a] * 10) for a in digits)
    files.write_digits(source / "build" / "many", "train", images, labels)
    files.write_digits(source / "build" / "many", "t10k", images[:10], labels[:10])
    files.write_order(source / "build" / "many.bin", Loader(images, labels, 20000), 1)

    def small_memory():
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))

    done = trainer(
        batch=20000, digits="build/many", order="build/many.bin", preexec_fn=small_memory
    )
    assert (
        done.returncode == 1
        and "out of memory" in done.stderr
        and "Try a smaller batch" in done.stderr
    ), done.stderr


@pytest.mark.nightly("the chapter builds and runs the same program under the same checks")
def test_a_step_touches_nothing_else_and_does_not_race(source, digits, trainer):
    """Under the CPU runtime's slow checks: bounds, races, uninitialised memory."""
    folder = source / "build"
    files.write_digits(folder / "two", "train", *some(digits, 2))
    files.write_digits(folder / "two", "t10k", *some(digits, 1))
    files.write_order(folder / "two.bin", Loader(*some(digits, 2), 2), 1)
    program = nvcc.build(
        nvcc.Request(folder / "train.cu", output=folder / "checked", cpu=True, check=True)
    )
    done = completed(
        [program.resolve(), "batch=2", "digits=build/two", "order=build/two.bin"], cwd=source
    )
    assert done.returncode == 0 and done.stderr == "" and "step 1: loss" in done.stdout


def test_a_program_for_another_gpu_is_explained(tmp_path):
    """The advice is in the error that a kernel without code for this GPU gives."""
    main = 'int main() { check(cudaErrorNoKernelImageForDevice, "k"); }'
    header = naive_trainer.TRAIN.parents[1] / "host" / "errors.cuh"
    (tmp_path / "other.cu").write_text(f'#include "{header}"\n{main}\n')
    program = nvcc.build(nvcc.Request(tmp_path / "other.cu", cpu=True))
    done = completed([program.resolve()])
    assert done.returncode == 1 and "Compile it on this one" in done.stderr


def test_whole_files_are_named_in_the_program_file(source):
    """train.cu compiles where it stands, and so does what is assembled."""
    text = naive_trainer.TRAIN.read_text()
    assembled = (source / "build" / "train.cu").read_text()
    assert len(naive_trainer.INCLUDE.findall(text)) == len(naive_trainer.INCLUDE.findall(assembled))
    for file in naive_trainer.INCLUDE.findall(assembled):
        assert Path(file).is_file()
