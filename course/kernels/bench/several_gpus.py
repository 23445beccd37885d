"""What several GPUs of one machine are worth: one model's token in parts, and attention in a ring.

    python -m course.kernels.bench.several_gpus --out FOLDER --budget 340

runs both benches, one after the other, and leaves in the folder what each of them writes, and the
entries of both for assets/results in several_gpus.jsonl. Without two GPUs both check their ranks in
one process, and nothing is measured.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

#: Each bench's module, and its share of the budget
BENCHES = {
    "course.kernels.language_model.serving.bench_parallel": 0.37,
    "course.kernels.attention.bench_ring": 0.63,
}
BUDGET = 340.0  # seconds


def main() -> int:
    """Command line; returns the exit status: 1 if a bench failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed, lines = [], []
    for module, share in BENCHES.items():
        name = module.rpartition(".")[2]
        report = options.out / f"{name}.json"
        command = [sys.executable, "-m", module, "--out", str(report)]
        done = subprocess.run([*command, "--budget", f"{share * options.budget:.0f}"])
        if done.returncode or json.loads(report.read_text(encoding="utf-8"))["errors"]:
            failed.append(name)
        measured = report.with_suffix(".jsonl")
        if measured.exists():
            lines.append(measured.read_text(encoding="utf-8"))
    if lines:
        (options.out / "several_gpus.jsonl").write_text("".join(lines), encoding="utf-8")
    print(f"failed: {', '.join(failed)}" if failed else "both benches are done")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
