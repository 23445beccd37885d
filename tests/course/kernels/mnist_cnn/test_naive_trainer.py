"""The naive trainer is made of the learner's parts, and a wrong one is found by its gradient."""

import re
from pathlib import Path

import numpy as np
import pytest

from course import exercises, progress
from course.exercises import mnist_cnn
from course.kernels.mnist_cnn import drawing, files, naive_trainer, pytorch, tried
from course.kernels.mnist_cnn.forward import Forward
from tests.needs import cpp_compiler, without_gpu
from utils.data import mnist
from utils.tools import nvcc, process

SOLUTIONS = {id: exercises.EXERCISES[id] for id in naive_trainer.PARTS}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A learner's folder, and a progress file of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    (tmp_path / "build").mkdir()
    return tmp_path


def solve(id, text=None):
    """What is there once a learner has solved an exercise."""
    Path(SOLUTIONS[id].path).write_text(text or SOLUTIONS[id].solution)
    progress.record_solved(id)


def test_a_solved_exercise_is_a_file_that_is_no_starter(here):
    assert exercises.solved_files("mnist_cnn") == {}
    solve("mnist_cnn.wait")
    solve("mnist_cnn.backward", SOLUTIONS["mnist_cnn.backward"].starter)
    progress.record_solved("mnist_cnn.conv_weight")  # its file is gone
    assert exercises.solved_files("mnist_cnn") == {"mnist_cnn.wait": Path("build/losses.cuh")}


def test_it_says_whose_its_parts_are(here, capsys):
    naive_trainer.assemble({})
    assert capsys.readouterr().out.startswith("all 19 kernels are the course's")
    solve("mnist_cnn.norm_backward")
    solve("mnist_cnn.wait")
    naive_trainer.assemble(exercises.solved_files("mnist_cnn"))
    says = "yours: 1 of the 19 kernels (norm_backward) and Losses::wait; the rest is the course's\n"
    assert capsys.readouterr().out == says
    text = Path("build/train.cu").read_text()
    assert f'#include "{here / "build" / "norm_backward.cu"}"  // yours' in text


@pytest.fixture
def some():
    images, labels = mnist("train", subset=True)
    return pytorch.initial_weights(16), images[:5], labels[:5]


@without_gpu("it is built for the CPU")
def test_all_solutions_together_are_a_right_trainer(here, some, capsys):
    cpp_compiler()
    for id in SOLUTIONS:
        solve(id)
    naive_trainer.tried(exercises.solved_files("mnist_cnn"), *some)
    says = capsys.readouterr().out
    assert "yours: 4 of the 19 kernels (" in says
    assert ") and Network::backward and Losses::wait; the rest is the course's" in says
    assert "✓ one step on 5 digits: all ten gradients agree with autograd's" in says


@pytest.mark.nightly("by day all parts together are a right trainer")
@without_gpu("it is built for the CPU")
def test_a_part_that_went_wrong_later_is_found(here, some, capsys):
    cpp_compiler()
    solve("mnist_cnn.norm_backward", mnist_cnn.NORM_SOLUTION.replace("B * S;", "B;"))
    naive_trainer.tried(exercises.solved_files("mnist_cnn"), *some)
    says = capsys.readouterr().out
    assert "conv2.weight: its gradient is off by" in says
    needs = "in this order: norm_backward, conv_backward_weight, sum_over_batch. Is each there"
    assert needs in says


def test_what_the_way_back_names_is_what_the_program_launches():
    launch = re.compile(r"(\w+)<<<")
    folder = naive_trainer.TRAIN.parent
    block = launch.findall((folder / "block.cuh").read_text().split("Block::backward")[1])
    launches = launch.findall((folder / "backward.cuh").read_text()) + block + block
    named = [kernels.split(", ") for kernels in naive_trainer.WAY_BACK.values()]
    for kernels in named:
        left = iter(launches)
        assert all(kernel in left for kernel in kernels), f"not launched in this order: {kernels}"
    assert set(launches) == set(sum(named, []))


@pytest.mark.parametrize("name", tried.CHECKS)
def test_each_kernel_is_right_alone(name, capsys):
    tried.tried(name)
    assert f"✓ right: {name} agrees with float64" in capsys.readouterr().out


def test_the_forward_pass_from_python(some):
    weights, images, _ = some
    expected = pytorch.loss_and_gradients(weights, images, np.zeros(5))[1]
    assert np.abs(Forward(weights)(images) - expected).max() < 1e-4


def test_cut_files_are_short(tmp_path, some):
    _, images, labels = some
    images = np.concatenate([images] * 3)
    files.write_digits(tmp_path / "whole", "train", images, np.concatenate([labels] * 3))
    files.cut(tmp_path / "whole", tmp_path / "cut")
    sizes = {file.name: file.stat().st_size for file in (tmp_path / "cut").iterdir()}
    assert sizes == {"train-images-idx3-ubyte": 5000, "train-labels-idx1-ubyte": 23}


def test_the_drawn_examples_are_two_digits():
    seven, zero = drawing.examples()
    assert seven.shape == zero.shape == (28, 28)
    assert zero[14, 14] == 0 < zero.max()


def test_a_program_of_the_course_builds_where_it_stands(tmp_path):
    cpp_compiler()
    request = nvcc.Request(naive_trainer.TRAIN, output=tmp_path / "train", cpu=True)
    program = nvcc.build(request)
    assert program.is_file()
    for word in ("batch=16x", "steps=-3", "lr=-1"):  # refused before any file is read
        done = process.run([program, word], timeout=60)
        assert done.returncode == 1 and done.output.startswith(f"{word}: it must"), done.output


def test_the_rival_is_told_where_it_was_measured(capsys, monkeypatch):
    monkeypatch.setattr(naive_trainer.step_profile.engine, "has_gpu", lambda: False)
    naive_trainer.print_speed({"milliseconds": 1.0, "losses": [2.3]}, 16, 0.9, 0.9)
    says = capsys.readouterr().out
    assert "recorded on" in says and "PyTorch, eager:" in says
