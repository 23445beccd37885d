"""Weights of fewer bits: codes, and a scale for each 128 columns of a row.

4 bits: from -8 to 7 times the scale; 8 bits: e4m3 times the scale, up to 448.
"""

from dataclasses import dataclass

import torch

from utils.occupancy import ceil_div

GROUP = 128  # columns that share a scale
MOST = {4: 7.0, 8: 448.0}  # the code of a group's largest weight
MATRICES = ("embedding", "qkv", "out", "gate_up", "down")


@dataclass(frozen=True)
class Quantized:
    """codes: as numbers [..., rows, columns], in float32. scales: bfloat16 [..., rows, groups]."""

    codes: torch.Tensor
    scales: torch.Tensor

    def weights(self) -> torch.Tensor:
        """What the codes stand for, in float32."""
        columns = self.codes.shape[-1]
        return self.codes * self.scales.float().repeat_interleave(GROUP, -1)[..., :columns]


def quantized(weights, bits: int) -> Quantized:
    """Weights [..., rows, columns] in 4 or 8 bits."""
    columns = weights.shape[-1]
    groups = ceil_div(columns, GROUP)
    padded = torch.nn.functional.pad(weights.float(), (0, groups * GROUP - columns))
    largest = padded.unflatten(-1, (groups, GROUP)).abs().amax(-1)
    scales = (largest / MOST[bits]).clamp(min=2**-60).bfloat16()
    ratios = weights.float() / scales.float().repeat_interleave(GROUP, -1)[..., :columns]
    if bits == 4:
        return Quantized(ratios.round().clamp(-8, 7), scales)
    return Quantized(ratios.clamp(-448, 448).to(torch.float8_e4m3fn).float(), scales)


def rounded(weights: dict, bits: int) -> dict:
    """All weights, the matrices as `bits` bits have them, in float32.

    What a loss in quality is measured with, and what kernels of such weights are held to.
    """
    if bits == 16:
        return weights
    return {
        name: quantized(weight, bits).weights() if name in MATRICES else weight
        for name, weight in weights.items()
    }
