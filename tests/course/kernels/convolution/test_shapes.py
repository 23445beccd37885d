"""Sizes of convolutions, what is recorded of them, and how the copy engine is asked for pixels."""

import ctypes

import pytest
import torch
import torch.nn.functional as F

from course.kernels.convolution import hopper, records, tensor_maps
from course.kernels.convolution.shapes import RACED, Convolution, Problem


@pytest.mark.parametrize("stride, padding, dilation", [(1, 1, 1), (2, 0, 1), (3, 2, 2), (1, 4, 2)])
def test_the_result_is_as_large_as_pytorchs(stride, padding, dilation):
    conv = Convolution(1, 2, 11, 9, 3, 3, stride, padding, dilation)
    x, w = torch.zeros(1, 2, 11, 9), torch.zeros(3, 2, 3, 3)
    assert F.conv2d(x, w, **conv.options).shape == (1, 3, conv.p, conv.q)


def test_the_work_is_counted_in_all_directions_alike():
    conv = Convolution(2, 3, 5, 4, 6)
    assert conv.flops == 2 * (2 * 5 * 4) * 6 * 9 * 3


def test_the_data_gradient_begins_where_the_turned_filter_does():
    conv = Convolution(1, 8, 10, 12, 16, side=3, padding=0, dilation=2)
    problem = conv.backward_problem()
    assert (problem.height, problem.width) == (10, 12)
    assert (problem.channels, problem.outputs) == (16, 8)
    assert (problem.top, problem.left) == (-4, -4)


@pytest.mark.parametrize("width, rows", [(56, 4), (232, 1), (233, 0), (1, 78), (9, 21)])
def test_rows_of_a_patch(width, rows):
    assert hopper.halo_rows(width, 3) == rows
    pitch = width + 2
    assert not rows or (rows - 1) * pitch + width <= hopper.HALO_PIXELS


@pytest.mark.parametrize("tile", [hopper.WIDE, hopper.USUAL, hopper.NARROW])
def test_tiles_fit_an_sm_of_hopper(tile):
    assert tile.shared <= 227 << 10
    assert tile.threads <= 512


@pytest.mark.parametrize(
    "label, tile", [("256x28", hopper.USUAL), ("512x14", hopper.WIDE), ("64x56", hopper.NARROW)]
)
def test_the_tile_is_chosen_that_fills_its_rounds(label, tile, monkeypatch):
    monkeypatch.setattr(hopper, "sms", lambda: 132)
    conv = RACED[label]
    assert hopper.tile_for(conv.n * conv.p * conv.q, conv.k) == tile


def test_few_filters_have_a_tile_of_their_own():
    assert hopper.weights_tile(RACED["64x56"]).rows == 64
    assert hopper.weights_tile(RACED["512x14"]).rows == 256


@pytest.mark.parametrize(
    "tiles, steps, even, clusters",
    [(9, 784, True, 63), (9, 784, False, 66), (36, 196, True, 66), (1, 3, True, 3)],
)
def test_clusters_share_the_steps(tiles, steps, even, clusters, monkeypatch):
    monkeypatch.setattr(hopper, "sms", lambda: 132)
    assert hopper.clusters_for(hopper.WeightsTile(), tiles, steps, even) == clusters


class Driver:
    """Stands for the driver: keeps what it is asked to encode."""

    def __init__(self, failed=0):
        self.failed = failed
        self.calls = []

    def __getattr__(self, name):
        def encode(*arguments):
            self.calls.append((name, arguments))
            return self.failed

        return encode


def test_pixels_are_asked_for_as_the_driver_wants_it(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(tensor_maps, "has_gpu", lambda: True)
    monkeypatch.setattr(tensor_maps, "_driver", lambda: driver)
    x = torch.zeros(2, 7, 5, 16, dtype=torch.bfloat16)
    made = tensor_maps.pixels(x, 192, ((-1, -2), (-3, -4)), stride=2)
    ((name, sent),) = driver.calls
    assert name == "cuTensorMapEncodeIm2col"
    assert sent[0].value % 64 == 0  # or the driver refuses it
    assert list(sent[4]) == [16, 5, 7, 2]
    assert list(sent[5]) == [16 * 2, 5 * 16 * 2, 7 * 5 * 16 * 2]
    assert list(sent[6]) == [-2, -1] and list(sent[7]) == [-4, -3]  # columns first
    assert (sent[8].value, sent[9].value) == (64, 192)
    assert list(sent[10]) == [1, 2, 2, 1]
    assert made.tensor is x


def test_boxes_are_asked_for_innermost_first(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(tensor_maps, "has_gpu", lambda: True)
    monkeypatch.setattr(tensor_maps, "_driver", lambda: driver)
    tensor_maps.boxes(torch.zeros(4, 9, 64, dtype=torch.bfloat16), (128, 1, 64), swizzled=False)
    ((name, sent),) = driver.calls
    assert name == "cuTensorMapEncodeTiled"
    assert list(sent[6]) == [64, 1, 128]
    assert sent[9] == 0


def test_a_refused_map_says_what_was_asked_for(monkeypatch):
    monkeypatch.setattr(tensor_maps, "has_gpu", lambda: True)
    monkeypatch.setattr(tensor_maps, "_driver", lambda: Driver(failed=1))
    with pytest.raises(ValueError, match=r"shape \(3, 5\): CUDA error 1"):
        tensor_maps.boxes(torch.zeros(3, 5, dtype=torch.bfloat16), (64, 64))


def test_structs_are_as_large_as_in_cuda_c():
    assert ctypes.sizeof(tensor_maps.TensorMap) == 128
    assert ctypes.sizeof(Problem) == 11 * 4


RECORDED = {
    "conv/fprop/256x28/cudnn/rate": 700e12,
    "conv/fprop/256x28/usual/rate": 770e12,
    "conv/fprop/256x28/wide/rate": 400e12,
    "conv/fprop/256x28/wmma/rate": 70e12,
    "conv/fprop/256x28/share_of_cudnn": 1.1,
}


def entries(name):
    if name not in RECORDED:
        return None
    return {"value": RECORDED[name], "gpu": "a GPU", "date": "2026-01-02T00:00:00Z"}


def test_what_is_recorded_is_shown_and_what_is_not_says_so(monkeypatch, capsys):
    monkeypatch.setattr(records.results, "find", entries)
    records.recall("fprop", ("256x28", "512x14"))
    said = capsys.readouterr().out
    assert "recorded on a GPU, 2026-01-02" in said
    assert "770 TFLOP/s, 110% of cuDNN's speed" in said
    assert "512 channels, 14², 3 × 3 → 512: not recorded yet" in said
    assert "70 TFLOP/s, 10% of cuDNN's speed" in records.line("fprop", "256x28", "wmma")
    records.ratio("conv/nothing", "{}")
    assert capsys.readouterr().out == "not recorded yet\n"
