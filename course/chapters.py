"""The chapters of the course, in order. Which of them are written is seen from the files, not stated here."""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "chapters"


@dataclass(frozen=True)
class Chapter:
    """One chapter: the part it belongs to, its name, title, what it brings in one line, and its minutes."""

    part: str
    name: str
    title: str
    minutes: int
    brings: str

    @property
    def number(self):
        """1 for 01_ecosystem."""
        return int(self.name[:2])

    @property
    def path(self):
        """Where its notebook is, or will be."""
        return FOLDER / f"{self.name}.ipynb"

    @property
    def written(self):
        """Whether its notebook exists."""
        return self.path.is_file()

    @property
    def exercises(self):
        """The ids of its exercises, in order."""
        from course.exercises import EXERCISES

        return tuple(e.id for e in EXERCISES.values() if e.chapter == self.name)

    @property
    def questions(self):
        """The ids of its recall questions."""
        from course.exercises import QUIZZES

        return tuple(id for id in QUIZZES if id.startswith(f"{self.number:02d}."))


GROUND, KERNELS, CRAFT, FINALE = "The ground", "Kernels", "The craft", "The finale"
CHAPTERS = (
    Chapter(GROUND, "01_ecosystem", "The ecosystem", 75,
            "From frameworks down to silicon: one operation written seven ways, and where kernels fit in."),
    Chapter(GROUND, "02_your_gpu", "Your GPU", 40,
            "Drivers, toolkits and versions that match: know your machine, and repair it."),
    Chapter(GROUND, "03_c_for_cuda", "C for CUDA", 75,
            "The C and C++ that kernels need: pointers, layout in memory, structs, make, a debugger."),
    Chapter(GROUND, "04_meet_the_gpu", "Meet the GPU", 80,
            "Why thousands of slow threads beat a few fast ones: SMs, warps, bandwidth."),
    Chapter(KERNELS, "05_first_kernels", "First kernels", 90,
            "Threads, blocks and grids: your first kernels in Numba and in CUDA C, on real pictures."),
    Chapter(KERNELS, "06_memory", "Memory", 120,
            "Coalescing, shared memory, bank conflicts, transfers: move less, and move it well."),
    Chapter(KERNELS, "07_synchronization", "Synchronization", 120,
            "Barriers, races, atomics, warps, streams and graphs: when threads must agree."),
    Chapter(KERNELS, "08_profiling", "Profiling", 90,
            "Measure before you change: events, profilers, sanitizers, machine code, rooflines."),
    Chapter(CRAFT, "09_reductions", "Reductions and scans", 90,
            "Many values into one, running sums, and the softmax and normalizations built on them."),
    Chapter(CRAFT, "10_matmul", "The matmul ladder", 180,
            "From twenty lines to the library's speed, one rung at a time."),
    Chapter(CRAFT, "11_fusion", "Fusion and low precision", 90,
            "Many small kernels made one; half precision, bfloat16, eight bits and quantization."),
    Chapter(CRAFT, "12_libraries", "Libraries", 90,
            "When not to write a kernel: cuBLAS, CUTLASS, cuDNN, cuFFT, cuRAND, Thrust and CUB, NCCL."),
    Chapter(CRAFT, "13_triton", "Triton", 90,
            "Kernels over blocks of data, in Python, and what the compiler takes over from you."),
    Chapter(CRAFT, "14_convolution_fft", "Convolution and FFT", 120,
            "One operation, four ways: direct, tiled, as a matrix product, and through Fourier."),
    Chapter(CRAFT, "15_pytorch_extensions", "PyTorch extensions", 90,
            "Your own differentiable operations in PyTorch: forward, backward, gradients checked."),
    Chapter(FINALE, "16_mnist_cnn", "A CNN by hand", 180,
            "Every layer and every gradient of a network that reads digits, in hand-written CUDA."),
    Chapter(FINALE, "17_beating_pytorch", "Beating PyTorch", 180,
            "The same training step, made faster than PyTorch's best, at equal accuracy."),
)
