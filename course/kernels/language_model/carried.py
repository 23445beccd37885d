"""The trained model that the repository carries, so that a laptop, too, hears a model that speaks.

`python -m course.kernels.language_model.train` makes it, on a GPU: weights of 16 bits and merges in
`assets/data/language_model.npz`, and how they were made in the JSON beside it.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import torch

from course.kernels.language_model.problem import SMALL, Config
from course.kernels.language_model.tokens import Tokens
from utils.files import ROOT, write_whole

PATH = ROOT / "assets" / "data" / "language_model.npz"


def model(dtype=torch.float32, device="cpu") -> tuple[Config, dict, Tokens]:
    """(sizes, weights as `problem.weights` has them, the vocabulary)."""
    with np.load(PATH) as held:
        merges = held["merges"].tolist()
        weights = {name: torch.from_numpy(held[name]) for name in SMALL.shapes}
    weights = {name: weight.to(device, dtype) for name, weight in weights.items()}
    return SMALL, weights, Tokens(merges)


def facts() -> dict:
    """How it was made: losses by step, held-out loss, seconds, the GPU, the day."""
    return json.loads(PATH.with_suffix(".json").read_text(encoding="utf-8"))


def keep(config: Config, weights: dict, merges, told: dict, path: Path = PATH) -> None:
    """Write both files."""
    halves = {name: weight.cpu().numpy().astype(np.float16) for name, weight in weights.items()}
    np.savez(path, merges=np.array(merges, np.uint16), **halves)
    told = {"config": dataclasses.asdict(config), **told}
    write_whole(path.with_suffix(".json"), json.dumps(told, indent=1) + "\n")
