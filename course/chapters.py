"""The chapters of the course, in order. Which of them are written is seen from the files, not stated here."""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "chapters"


@dataclass(frozen=True)
class Chapter:
    """One chapter: its number, notebook, title, what it brings in one line, and how long it takes."""

    number: int
    file: str
    title: str
    brings: str
    minutes: int

    @property
    def path(self):
        """Where its notebook is, or will be."""
        return FOLDER / self.file

    @property
    def written(self):
        """Whether its notebook exists."""
        return self.path.is_file()

    @property
    def exercises(self):
        """The ids of its exercises, in order."""
        from course.exercises import EXERCISES

        return tuple(e.id for e in EXERCISES.values() if f"{e.chapter}.ipynb" == self.file)


CHAPTERS = (
    Chapter(
        1,
        "01_ecosystem.ipynb",
        "The ecosystem",
        "From frameworks down to silicon: one operation written seven ways, and where kernels fit in.",
        45,
    ),
    Chapter(
        2,
        "02_your_gpu.ipynb",
        "Your GPU",
        "Drivers, toolkits and versions that match; know your machine, and repair it.",
        40,
    ),
    Chapter(
        3,
        "03_c_for_cuda.ipynb",
        "C for CUDA",
        "The C and C++ that kernels need: pointers, layout in memory, structs, make, a debugger.",
        75,
    ),
    Chapter(
        4,
        "04_meet_the_gpu.ipynb",
        "Meet the GPU",
        "Why thousands of slow threads beat a few fast ones: SMs, warps, bandwidth.",
        50,
    ),
    Chapter(
        5,
        "05_first_kernels.ipynb",
        "First kernels",
        "Threads, blocks and grids; your first kernels in Numba and in CUDA C, on real pictures.",
        90,
    ),
    Chapter(
        6,
        "06_memory.ipynb",
        "Memory",
        "Coalescing, shared memory, bank conflicts, transfers: move less, and move it well.",
        120,
    ),
    Chapter(
        7,
        "07_synchronization.ipynb",
        "Synchronization",
        "Barriers, races, atomics, warps, streams and graphs: when threads must agree.",
        120,
    ),
    Chapter(
        8,
        "08_profiling.ipynb",
        "Profiling",
        "Measure before you change: events, profilers, sanitizers, machine code, rooflines.",
        90,
    ),
    Chapter(
        9,
        "09_reductions.ipynb",
        "Reductions and scans",
        "Many values into one, running sums, and the softmax and normalizations built on them.",
        90,
    ),
    Chapter(
        10,
        "10_matmul.ipynb",
        "The matmul ladder",
        "From twenty lines to the library's speed, one rung at a time.",
        180,
    ),
    Chapter(
        11,
        "11_fusion.ipynb",
        "Fusion and low precision",
        "Many small kernels made one; half precision, bfloat16, eight bits and quantization.",
        90,
    ),
    Chapter(
        12,
        "12_libraries.ipynb",
        "Libraries",
        "cuBLAS and its variants, CUTLASS, cuDNN, cuFFT, cuRAND, Thrust and CUB, NCCL: when not to write a"
        " kernel.",
        90,
    ),
    Chapter(
        13,
        "13_triton.ipynb",
        "Triton",
        "Kernels over blocks of data in Python, and what the compiler takes over from you.",
        90,
    ),
    Chapter(
        14,
        "14_convolution_fft.ipynb",
        "Convolution and FFT",
        "From the definition to tiled, matmul-based and Fourier convolution.",
        120,
    ),
    Chapter(
        15,
        "15_pytorch_extensions.ipynb",
        "PyTorch extensions",
        "Your own differentiable operations in PyTorch: forward, backward, tests, torch.compile.",
        90,
    ),
    Chapter(
        16,
        "16_mnist_cnn.ipynb",
        "A CNN by hand",
        "Every layer and every gradient of a network that reads digits, in hand-written CUDA.",
        180,
    ),
    Chapter(
        17,
        "17_beating_pytorch.ipynb",
        "Beating PyTorch",
        "The same training step, made faster than PyTorch's best, at equal accuracy.",
        180,
    ),
)
