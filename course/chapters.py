"""The chapters of the course, in order. Which of them are written is seen from the files, not
stated here.
"""

from dataclasses import dataclass

from utils.files import ROOT

FOLDER = ROOT / "chapters"
START = ROOT / "course" / "index.ipynb"
TITLE = "CUDA, from a first thread index to beating PyTorch"  # everywhere: a test sees to it


@dataclass(frozen=True)
class Chapter:
    """One chapter: the part it belongs to, its file's name, title, minutes, and what it brings in
    one line.
    """

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
    def key(self):
        """What stays when the order changes: "ecosystem" for 01_ecosystem. Its modules and ids bear
        it.
        """
        return self.name[3:]

    @property
    def path(self):
        """Where its notebook is, or will be."""
        return FOLDER / f"{self.name}.ipynb"

    @property
    def written(self):
        """Whether its notebook exists."""
        return self.path.is_file()


GROUND = "The ground"
KERNELS = "Kernels"
CRAFT = "The craft"
FINALE = "The finale"
BEYOND = "Beyond"

CHAPTERS = (
    Chapter(
        GROUND,
        "01_ecosystem",
        "The ecosystem",
        85,
        "From frameworks down to silicon: one operation written seven ways, and where kernels fit "
        "in.",
    ),
    Chapter(
        GROUND,
        "02_your_gpu",
        "Your GPU",
        85,
        "Drivers, toolkits and versions that match: know your machine, and repair it.",
    ),
    Chapter(
        GROUND,
        "03_c_for_cuda",
        "C for CUDA",
        120,
        "The C and C++ that kernels need: pointers, layout in memory, structs, make, a debugger.",
    ),
    Chapter(
        GROUND,
        "04_meet_the_gpu",
        "Meet the GPU",
        120,
        "Why thousands of slow threads beat a few fast ones: SMs, warps, bandwidth.",
    ),
    Chapter(
        KERNELS,
        "05_first_kernels",
        "First kernels",
        120,
        "Threads, blocks and grids: your first kernels in Numba and in CUDA C, on real pictures.",
    ),
    Chapter(
        KERNELS,
        "06_memory",
        "Memory",
        120,
        "Coalescing, shared memory, bank conflicts, transfers: move less, and move it well.",
    ),
    Chapter(
        KERNELS,
        "07_synchronization",
        "Synchronization",
        115,
        "Barriers, races, atomics, warps, streams and graphs: when threads must agree.",
    ),
    Chapter(
        KERNELS,
        "08_profiling",
        "Profiling",
        120,
        "Measure before you change: events, profilers, sanitizers, machine code, rooflines.",
    ),
    Chapter(
        CRAFT,
        "09_libraries",
        "Libraries",
        120,
        "When not to write a kernel: cuBLAS, cuDNN, cuFFT, cuRAND, cuSPARSE, Thrust, CUB, CUTLASS.",
    ),
    Chapter(
        CRAFT,
        "10_reductions",
        "Reductions and scans",
        120,
        "Many values into one, running sums, compaction and sorting, up to the library's speed.",
    ),
    Chapter(
        CRAFT,
        "11_matmul",
        "The matmul ladder",
        120,
        "From three loops to the library's speed in float32, one rung at a time.",
    ),
    Chapter(
        CRAFT,
        "12_tensor_cores",
        "Tensor cores",
        120,
        "Matrix products in hardware: from WMMA to everything that Hopper has.",
    ),
    Chapter(
        CRAFT,
        "13_convolution",
        "Convolution",
        120,
        "One operation, five ways, forward and backward.",
    ),
    Chapter(
        CRAFT,
        "14_fourier",
        "The Fourier transform",
        120,
        "Waves instead of samples: the transform by hand, in n log n steps, and what it makes "
        "cheap.",
    ),
    Chapter(
        CRAFT,
        "15_triton",
        "Triton and tile languages",
        120,
        "Kernels over blocks of data: what the compiler takes over, and how to read what it made.",
    ),
    Chapter(
        CRAFT,
        "16_fusion",
        "Fusion",
        120,
        "Softmax, norms, losses, optimizers: kernels that need not talk through memory.",
    ),
    Chapter(
        CRAFT,
        "17_low_precision",
        "Low precision",
        120,
        "Numbers of 16, 8 and 4 bits: formats, scales that keep what matters, and what it costs.",
    ),
    Chapter(
        CRAFT,
        "18_pytorch_extensions",
        "PyTorch extensions",
        120,
        "A kernel of yours as a citizen of PyTorch: differentiable, compilable, installable.",
    ),
    Chapter(
        FINALE,
        "19_mnist_cnn",
        "A CNN by hand",
        120,
        "Every layer and every gradient of a network that reads digits, in hand-written CUDA.",
    ),
    Chapter(
        FINALE,
        "20_beating_pytorch",
        "Beating PyTorch",
        120,
        "The same training step, made faster than PyTorch's best, at equal accuracy.",
    ),
    Chapter(
        BEYOND,
        "21_many_gpus",
        "Many GPUs",
        120,
        "When one GPU is not enough: peer copies, all-reduce by hand, training in parallel.",
    ),
    Chapter(
        BEYOND,
        "22_attention",
        "Attention",
        120,
        "The layer that language models are made of, from three loops to one pass.",
    ),
    Chapter(
        BEYOND,
        "23_language_model",
        "A language model",
        120,
        "You begin a sentence, a model goes on: trained, decoded in one kernel, served to many.",
    ),
    Chapter(
        BEYOND,
        "24_estimates",
        "Say it before you run it",
        120,
        "A model of the machine: the time of a kernel before it has run, and what it waits for.",
    ),
    Chapter(
        BEYOND,
        "25_not_written",
        "Kernels that you did not write",
        120,
        "Twelve envelopes from a machine: right, fast, honest? You sign before the judge does.",
    ),
)


#: The way to the finale, an evening each: chapter -> what of yours runs at its end. The other
#: chapters are doors off it.
ROUTE = {
    "c_for_cuda": "a cudaMalloc of your own, in which no checker finds a mistake",
    "meet_the_gpu": "a count of the threads that keep a GPU's memory busy",
    "first_kernels": "a photograph turned by your own kernel, in Python and in CUDA C",
    "memory": "the same picture turned at the speed of a copy, through shared memory",
    "synchronization": "a histogram and a sum in which thousands of threads agree",
    "reductions": "a scan whose blocks look back at one another",
    "matmul": "a matrix product out of register tiles",
    "tensor_cores": "a product on tensor cores, from registers that you filled",
    "convolution": "a convolution whose matrix nobody makes",
    "fusion": "a sum and a normalization in one pass",
    "mnist_cnn": "a network that reads the digit you draw",
    "beating_pytorch": "that network's training step, in a race against PyTorch",
}
LONGEST_WAY = 24 * 60  # minutes of the route


#: Those that are written
WRITTEN = [chapter for chapter in CHAPTERS if chapter.written]


def notebooks():
    """All notebooks of the course in reading order: the start page, then the chapters that are
    written.
    """
    return [START, *sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))]
