"""The exercises of the chapter Your GPU."""

import re

from course.checking.inputs import arguments_of
from course.checking.model import Exercise, Wrong
from course.checking.quiz import one_of

# ---- runs: which driver runs which toolkit


def runs(driver, toolkit, ptx_only):
    if toolkit <= driver:
        return True
    return toolkit[0] == driver[0] and not ptx_only


RUNS = Exercise(
    id="your_gpu.runs",
    title="Does it start?",
    minutes=5,
    kind="function",
    task=(
        "`driver` is the newest CUDA version that the driver runs, `toolkit` the one that a program"
        " was built with, both as `(major, minor)`. `ptx_only` says that the program holds PTX and"
        " no machine code for this GPU. Return `True` if its kernels run, else `False`."
    ),
    starter="""
def runs(driver, toolkit, ptx_only):
    # tuples compare as versions do: (12, 4) < (12, 8) < (13, 0)
    ...
""",
    solution=runs,
    inputs=arguments_of(runs),
    reference=runs,
    shapes=(
        ((13, 0), (13, 0), False),
        ((13, 0), (13, 0), True),
        ((13, 1), (12, 4), False),
        ((13, 0), (12, 8), True),
        ((12, 4), (12, 8), False),
        ((12, 4), (12, 8), True),
        ((12, 9), (13, 0), False),
        ((12, 9), (13, 0), True),
        ((13, 0), (11, 8), False),
        ((13, 2), (12, 1), False),
        ((12, 2), (12, 1), True),
        ((13, 0), (13, 1), False),
        ((13, 0), (13, 1), True),
        ((12, 8), (12, 8), True),
    ),
    fresh=lambda rng: (
        (int(rng.integers(11, 14)), int(rng.integers(0, 9))),
        (int(rng.integers(11, 14)), int(rng.integers(0, 9))),
        bool(rng.integers(2)),
    ),
    draws=lambda some: some.tuples(
        some.tuples(some.integers(11, 14), some.integers(0, 12)),
        some.tuples(some.integers(11, 14), some.integers(0, 12)),
        some.booleans(),
    ),
    hints=(
        (
            "An older or equal toolkit always runs: drivers are backward compatible. Which case is"
            " left?"
        ),
        "A newer *minor* version of the same major version: machine code runs, PTX does not.",
        "`toolkit <= driver or (toolkit[0] == driver[0] and not ptx_only)`",
    ),
    wrong=(
        (
            "toolkit[0] == driver[0] and not ptx_only",
            "False",
            "wrong_value",
            "Within one major version machine code of a newer toolkit runs, too (minor version"
            " compatibility).",
        ),
        (
            "toolkit <= driver",
            "toolkit[0] <= driver[0]",
            "wrong_value",
            "The driver must translate PTX, and cannot read that of a toolkit newer than itself.",
        ),
        (
            "if toolkit <=",
            "if toolkit[0] == driver[0] and toolkit <=",
            "wrong_value",
            "A newer driver still runs programs of older major versions.",
        ),
        (
            ("toolkit <= driver", "driver <= toolkit"),
            ("toolkit[0] == driver[0] and not ptx_only", "False"),
            "wrong_value",
            "The driver may be newer than the toolkit, not the other way round.",
        ),
        ("toolkit[0] == driver[0] and not ptx_only", "ptx_only", "wrong_value"),
        (
            "not ptx_only",
            "ptx_only",
            "wrong_value",
            "The other way round: PTX is what this driver cannot translate; machine code runs.",
        ),
        (
            "toolkit <= driver",
            "toolkit < driver",
            "off_by_one",
            "A driver also translates PTX of exactly its own version.",
        ),
        (
            "if toolkit <= driver:",
            "if toolkit <= driver and not ptx_only:",
            "wrong_value",
            "PTX is no hindrance where the driver is as new as the toolkit: it translates it.",
        ),
        (
            "toolkit <= driver",
            "toolkit[0] <= driver[0] and toolkit[1] <= driver[1]",
            "wrong_value",
            "Part by part, 12.8 is not below 13.0, because 8 is above 0: compare the whole tuples.",
        ),
    ),
)


# ---- smi_line: a line of nvidia-smi for a program


def free_memory(line):
    index, name, total, used, capability = line.split(", ")
    major, minor = capability.split(".")
    return int(total.split()[0]) - int(used.split()[0]), int(major), int(minor)


def free_memory_by_spaces(line):
    words = line.split()
    major, minor = words[-1].split(".")
    return int(words[3]) - int(words[5]), int(major), int(minor)


def first_numbers(line):
    index, total, used, major, minor = re.findall(r"\d+", line)[:5]
    return int(total) - int(used), int(major), int(minor)


SMI_LINE = Exercise(
    id="your_gpu.smi_line",
    title="Read a line of nvidia-smi",
    minutes=5,
    kind="function",
    task=(
        "A script asks `nvidia-smi --query-gpu=index,name,memory.total,memory.used,compute_cap"
        " --format=csv,noheader` and gets lines such as `0, NVIDIA L4, 23034 MiB, 1034 MiB, 8.9`."
        " Return `(free, major, minor)`: the free memory in MiB and the two parts of the compute"
        " capability, all whole numbers."
    ),
    starter="""
def free_memory(line): ...  # "0, NVIDIA L4, 23034 MiB, 1034 MiB, 8.9" -> (22000, 8, 9)
""",
    solution=free_memory,
    inputs=lambda rng, case: {"line": case[0]},
    reference=free_memory,
    shapes=(
        ("0, NVIDIA L4, 23034 MiB, 1034 MiB, 8.9",),
        ("1, NVIDIA GeForce RTX 4060 Ti, 16380 MiB, 380 MiB, 8.9",),
        ("0, Tesla T4, 15360 MiB, 0 MiB, 7.5",),
        ("3, NVIDIA H100 80GB HBM3, 81559 MiB, 80559 MiB, 9.0",),
        ("0, NVIDIA B200, 183359 MiB, 4 MiB, 10.0",),
        ("7, NVIDIA GeForce RTX 5090, 32607 MiB, 607 MiB, 12.0",),
        ("0, Orin (nvgpu), 30697 MiB, 697 MiB, 8.7",),
        ("0, NVIDIA GB10, 122570 MiB, 570 MiB, 12.1",),
    ),
    draws=lambda some: some.tuples(
        some.builds(
            "{0[0]}, {0[1]}, {0[2]} MiB, {0[3]} MiB, {0[4]}.{0[5]}".format,
            some.tuples(
                some.integers(0, 15),
                some.sampled_from(("NVIDIA L4", "Tesla T4", "NVIDIA A100-SXM4-80GB")),
                some.integers(50_000, 200_000),
                some.integers(0, 50_000),
                some.integers(7, 12),
                some.integers(0, 9),
            ),
        )
    ),
    hints=(
        'The fields are separated by a comma and a space: `line.split(", ")` gives five texts.',
        '`"23034 MiB".split()[0]` is the number as text; `int` makes it a number.',
        (
            "The capability is `major.minor`, and the major part may have two digits:"
            ' `capability.split(".")`.'
        ),
    ),
    wrong=(
        (
            "int(total.split()[0]) - ",
            "",
            "wrong_value",
            "That is what is used. Free is the total without it.",
        ),
        (
            " - int(used.split()[0])",
            "",
            "wrong_value",
            "That is all the memory; some of it is in use.",
        ),
        (
            "int(major), int(minor)",
            "int(line[-3]), int(line[-1])",
            "wrong_value",
            "Since Blackwell the major part can have two digits.",
        ),
        (
            "int(major), int(minor)",
            "int(float(capability)), int((float(capability) - int(float(capability))) * 10)",
            "wrong_value",
            "In floats, 8.7 - 8 is a little less than 0.7: split the capability as a text.",
        ),
        Wrong(
            first_numbers,
            "wrong_value",
            "Names have digits, too (L4, RTX 4060): split the line at its commas first.",
        ),
        Wrong(free_memory_by_spaces, "crashed"),
        ("int(major), int(minor)", "float(capability), 0", "wrong_dtype"),
    ),
)


# ---- bandwidth: from clock and bus width to the least time of a kernel


def least_microseconds(memory_khz, bus_bits, reads, writes, n):
    moved = 4 * n * (reads + writes)
    per_second = 2 * memory_khz * 1000 * bus_bits // 8
    return moved * 10**6 // per_second


BANDWIDTH = Exercise(
    id="your_gpu.bandwidth",
    title="How long at the least?",
    minutes=6,
    kind="function",
    task=(
        "A kernel reads `reads` arrays and writes `writes` arrays of `n` float32 each, all from"
        " and to the GPU's memory, whose clock (in kHz) and bus width (in bits) the driver tells."
        " No kernel is faster than its bytes. Return the least time that they take on paper, in"
        " whole microseconds, rounded down."
    ),
    starter="""
def least_microseconds(memory_khz, bus_bits, reads, writes, n):
    # the bytes to move, the bytes per second, and then microseconds
    ...
""",
    solution=least_microseconds,
    inputs=arguments_of(least_microseconds),
    reference=least_microseconds,
    shapes=(
        (1_215_000, 5120, 2, 1, 1 << 25),
        (877_000, 4096, 1, 1, 1 << 20),
        (5_001_000, 256, 3, 2, 10_000_000),
        (10_501_000, 384, 1, 0, 1 << 28),
        (2_619_000, 5120, 2, 1, 1 << 30),
        (7_001_000, 128, 0, 1, 5),
        (7_001_000, 192, 2, 1, 1 << 28),
        (877_000, 5120, 2, 1, 1 << 31),
        (1_000_000, 4096, 1, 1, 128_000_000),
        (9_501_000, 128, 4, 4, 33_333_333),
    ),
    fresh=lambda rng: (
        int(rng.integers(800, 14_000)) * 1000,
        int(rng.integers(1, 96)) * 64,
        int(rng.integers(1, 5)),
        int(rng.integers(1, 3)),
        int(rng.integers(10**6, 10**9)),
    ),
    draws=lambda some: some.tuples(
        some.integers(800_000, 14_000_000),
        some.integers(1, 128).map(lambda n: 64 * n),
        some.integers(0, 9),
        some.integers(0, 9),
        some.integers(0, 2**32),
    ),
    hints=(
        "How many bytes are `n` float32? How many arrays of them cross the bus?",
        (
            "Bytes per second: two transfers in each cycle, `bus_bits // 8` bytes in each. The"
            " clock is in thousands of cycles per second."
        ),
        "A second has 10⁶ microseconds. Multiply first, and divide once, by `//`, at the end.",
    ),
    wrong=(
        (
            "2 * memory",
            "memory",
            "wrong_value",
            "Twice too long: a float32 has 4 bytes, and there are two transfers in each cycle.",
        ),
        (
            " // 8",
            "",
            "wrong_value",
            "The bus carries bits; a byte has 8 of them.",
        ),
        (
            " * 1000 * ",
            " * ",
            "wrong_value",
            "The clock is in kHz: thousands of cycles per second.",
        ),
        (
            "4 * n",
            "n",
            "wrong_value",
            "A float32 has 4 bytes.",
        ),
        (
            "(reads + writes)",
            "reads",
            "wrong_value",
            "What is written crosses the bus as well.",
        ),
        (
            "(reads + writes)",
            "reads * writes",
            "wrong_value",
            "Each array crosses the bus once: add the two numbers.",
        ),
        (
            "moved * 10**6 // per_second",
            "moved * 1000 // (per_second // 10**9 * 10**6)",
            "wrong_value",
            "Divide once, at the end: the bandwidth is no whole number of GB/s.",
        ),
        (
            "moved * 10**6 // per_second",
            "round(moved * 10**6 / per_second)",
            "off_by_one",
            "Whole microseconds, rounded down: `//` does that, `round` takes the nearest.",
        ),
        (
            "10**6",
            "1000",
            "wrong_value",
            "These are milliseconds; a second has 10⁶ microseconds.",
        ),
        ("10**6 //", "10**6 /", "wrong_dtype"),
    ),
)


# ---- keep: is this the machine that one pays for


def keep(line):
    name, driver, total, used, capability = line.split(", ")
    branch = int(driver.split(".")[0])
    major, minor = capability.split(".")
    if (int(major), int(minor)) < (7, 5) and branch != 580:
        return False
    is_empty = 100 * int(used.split()[0]) <= int(total.split()[0])
    return branch >= 580 and is_empty


def newer_than_text(line):
    name, driver, total, used, capability = line.split(", ")
    if capability < "7.5" and not driver.startswith("580."):
        return False
    return driver >= "580" and 100 * int(used.split()[0]) <= int(total.split()[0])


KEEP = Exercise(
    id="your_gpu.keep",
    title="Do you keep this machine?",
    minutes=7,
    kind="function",
    task=(
        "You have rented a Linux machine with a GPU, for kernels in C++ and Numba. `line` is what"
        " `nvidia-smi"
        " --query-gpu=name,driver_version,memory.total,memory.used,compute_cap"
        " --format=csv,noheader` says there, such as `NVIDIA L4, 580.95.05, 23034 MiB, 4 MiB, 8.9`."
        " Return `True` if you keep the machine, else `False`. Its driver must be of branch 580 or"
        " a later one, and of exactly 580 for a compute capability below 7.5. At most 1 % of the"
        " memory may be in use."
    ),
    starter="""
def keep(line):
    # "NVIDIA L4, 580.95.05, 23034 MiB, 4 MiB, 8.9" -> True
    ...
""",
    solution=keep,
    inputs=lambda rng, case: {"line": case[0]},
    reference=keep,
    shapes=(
        ("NVIDIA L4, 580.95.05, 23034 MiB, 4 MiB, 8.9",),
        ("NVIDIA L4, 570.86.15, 23034 MiB, 4 MiB, 8.9",),
        ("Tesla V100-SXM2-16GB, 580.95.05, 16384 MiB, 1 MiB, 7.0",),
        ("Tesla V100-SXM2-16GB, 590.44.01, 16384 MiB, 1 MiB, 7.0",),
        ("Tesla P100-PCIE-16GB, 590.44.01, 16384 MiB, 0 MiB, 6.0",),
        ("Quadro P4000, 580.65.06, 8192 MiB, 60 MiB, 6.1",),
        ("NVIDIA A16, 590.48.01, 15000 MiB, 150 MiB, 8.6",),
        ("NVIDIA B200, 590.44.01, 183359 MiB, 4 MiB, 10.0",),
        ("NVIDIA GeForce RTX 5090, 1000.12, 32607 MiB, 7 MiB, 12.0",),
        ("NVIDIA H100 80GB HBM3, 580.65.06, 81559 MiB, 40010 MiB, 9.0",),
        ("NVIDIA A10, 580.105.08, 23000 MiB, 230 MiB, 8.6",),
        ("NVIDIA A10, 580.105.08, 23000 MiB, 231 MiB, 8.6",),
        ("Tesla T4, 590.44.01, 15360 MiB, 0 MiB, 7.5",),
        ("Tesla T4, 550.54.15, 15360 MiB, 0 MiB, 7.5",),
        ("Tesla T4, 595.58.03, 15360 MiB, 9 MiB, 7.5",),
        ("NVIDIA TITAN V, 595.58.03, 12288 MiB, 0 MiB, 7.0",),
        ("NVIDIA A10, 590.44.01, 20000 MiB, 390 MiB, 8.6",),
        ("NVIDIA L40S, 595.10, 46068 MiB, 9000 MiB, 8.9",),
    ),
    draws=lambda some: some.tuples(
        some.builds(
            "{0[0]}, {0[1]}.{0[2]:02}, {0[3]} MiB, {0[4]} MiB, {0[5]}".format,
            some.tuples(
                some.sampled_from(("NVIDIA L4", "Tesla T4", "NVIDIA A100-SXM4-80GB")),
                some.sampled_from((470, 550, 575, 579, 580, 590, 595, 1000)),
                some.integers(0, 150),
                some.integers(8_000, 200_000),
                some.integers(0, 4_000),
                some.sampled_from(("6.1", "7.0", "7.2", "7.5", "8.9", "10.0", "12.1")),
            ),
        )
    ),
    hints=(
        'Take the line apart first: `line.split(", ")` gives five texts. Which are numbers?',
        "The branch is what stands before the first point: `int(driver.split('.')[0])`.",
        (
            "Compare the capability as a pair of whole numbers, `(7, 0) < (7, 5)`: as texts,"
            ' "10.0" comes before "7.5".'
        ),
    ),
    wrong=(
        Wrong(
            newer_than_text,
            "wrong_value",
            'Texts are compared letter by letter: "10.0" comes before "7.5". Make numbers of them.',
        ),
        (
            " and branch != 580",
            "",
            "wrong_value",
            "Branch 580 still drives GPUs below 7.5: keep those.",
        ),
        (
            "    if (int(major), int(minor)) < (7, 5) and branch != 580:\n        return False\n",
            "",
            "wrong_value",
            "A branch later than 580 does not drive a GPU below 7.5 any more.",
        ),
        (
            "branch >= 580 and is_empty",
            "branch >= 580",
            "wrong_value",
            "Somebody else uses that memory: look at `memory.used`.",
        ),
        (
            "branch >= 580 and is_empty",
            "is_empty",
            "wrong_value",
            "A driver older than 580 does not run what CUDA 13 has built.",
        ),
        (
            "branch >= 580",
            "branch == 580",
            "wrong_value",
            "A later branch than 580 is as good, for a GPU of 7.5 or above.",
        ),
        (
            "<= int(total",
            "< int(total",
            "off_by_one",
            "Exactly 1 % in use is allowed.",
        ),
        (
            "100 * int(used.split()[0]) <= int(total.split()[0])",
            "100 * int(used.split()[0]) // int(total.split()[0]) <= 1",
            "wrong_value",
            "231 of 23,000 MiB is more than 1 %: do not round before you compare.",
        ),
        (
            "branch >= 580",
            "branch > 580",
            "off_by_one",
            "Branch 580 itself is new enough.",
        ),
        (
            "< (7, 5) and",
            "<= (7, 5) and",
            "off_by_one",
            "7.5 itself, such as a T4, is not below 7.5: later branches drive it.",
        ),
        (
            "(int(major), int(minor)) < (7, 5)",
            "int(major) < 7",
            "wrong_value",
            "7.0 and 7.2 are below 7.5, too: compare both parts.",
        ),
        ('int(driver.split(".")[0])', "float(driver)", "crashed"),
    ),
)


# ---- loads: does this program hold code for this GPU


def _target(name):
    digits = name.split("_")[1]
    return int(digits[:-1]), int(digits[-1])


def loads(code, gpu):
    how = 0
    for name in code:
        kind, number = name.split("_")
        target = int(number[:-1]), int(number[-1])
        if kind == "sm" and target[0] == gpu[0] and target <= gpu:
            how = 2
        elif kind == "compute" and target <= gpu:
            how = max(how, 1)
    return how


LOADS = Exercise(
    id="your_gpu.loads",
    title="Will it load on that GPU?",
    minutes=6,
    kind="function",
    task=(
        "`code` lists what a program holds, such as `['sm_80', 'compute_90']`: machine code for"
        " 8.0, PTX for 9.0. `gpu` is a compute capability such as `(8, 9)`. Return 2 if machine"
        ' code fits, else 1 if the driver can translate PTX, else 0 ("no kernel image is'
        ' available"). The last digit of a name is the minor part: `sm_100` is 10.0.'
    ),
    starter="""
def loads(code, gpu):
    for name in code:
        kind, number = name.split("_")
        ...  # (major, minor) of this name; does it fit the GPU?
""",
    solution=loads,
    inputs=lambda rng, case: {"code": list(case[0]), "gpu": case[1]},
    reference=loads,
    shapes=(
        (("sm_80",), (8, 0)),
        (("sm_80",), (8, 9)),
        (("sm_89",), (8, 6)),
        (("sm_80",), (9, 0)),
        (("sm_80", "compute_80"), (9, 0)),
        (("compute_90", "sm_90"), (9, 0)),
        (("compute_80", "sm_86"), (8, 9)),
        (("compute_90",), (8, 9)),
        (("sm_75", "sm_100", "compute_100"), (12, 0)),
        (("sm_100",), (10, 3)),
        (("sm_103",), (10, 0)),
        (("sm_120",), (12, 1)),
        (("compute_75",), (12, 1)),
        (("sm_86", "compute_120"), (8, 0)),
        (("sm_90",), (10, 0)),
        (("compute_89", "compute_100"), (9, 0)),
        (("sm_75", "compute_75"), (7, 5)),
        (("sm_80", "compute_80", "compute_90"), (8, 9)),
    ),
    draws=lambda some: some.tuples(
        some.lists(
            some.builds(
                "{}_{}".format,
                some.sampled_from(("sm", "compute")),
                some.sampled_from((75, 80, 86, 89, 90, 100, 103, 120)),
            ),
            max_size=4,
            unique=True,
        ).map(tuple),
        some.sampled_from(
            ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1))
        ),
    ),
    hints=(
        "`int(number[:-1]), int(number[-1])` are the two parts, and tuples compare as versions do.",
        "Machine code: the same major part, and a minor part that is not above the GPU's.",
        "PTX: any capability that is not above the GPU's. Remember the better of the two.",
    ),
    wrong=(
        (
            ("target[0] == gpu[0] and target <= gpu", "target == gpu"),
            ('"compute" and target <= gpu', '"compute" and target == gpu'),
            "wrong_value",
            "Code need not be for exactly this GPU: minor versions, and PTX, look upward.",
        ),
        (
            "target[0] == gpu[0] and ",
            "",
            "wrong_value",
            "Machine code of an older major version does not run: it is another instruction set.",
        ),
        (
            "target[0] == gpu[0] and target <= gpu",
            "target[0] == gpu[0]",
            "wrong_value",
            "Within a major version machine code runs on the same or a higher minor part only.",
        ),
        (
            '"compute" and target <= gpu',
            '"compute"',
            "wrong_value",
            "PTX for a newer capability uses what an older GPU does not have.",
        ),
        (
            '"compute" and',
            '"compute" and target[0] == gpu[0] and',
            "wrong_value",
            "PTX is translated for every newer GPU, across major versions.",
        ),
        (
            '"compute" and target <= gpu',
            '"compute" and target[0] <= gpu[0] and target[1] <= gpu[1]',
            "wrong_value",
            "Part by part, 8.9 is not below 9.0, because 9 is above 0: compare the pairs.",
        ),
        (
            "target[0] == gpu[0] and target <= gpu",
            "target == gpu",
            "wrong_value",
            "Machine code runs on a higher minor version of its major one, too.",
        ),
        (
            ("how = 2", "return 2"),
            ("how = max(how, 1)", "return 1"),
            "wrong_value",
            "The first that fits is not always the best: machine code may stand further on.",
        ),
        (
            "how = max(how, 1)",
            "how = 1",
            "wrong_value",
            "PTX that stands further on must not take the place of machine code that fits.",
        ),
        (
            '"compute" and target <= gpu',
            '"compute" and target >= gpu',
            "wrong_value",
            "The other way round: PTX is translated for its own capability and for later ones.",
        ),
        (
            "target[0] == gpu[0] and target <= gpu",
            "target[0] == gpu[0] and target >= gpu",
            "wrong_value",
            "The other way round: machine code runs where the GPU's minor part is the same or"
            " higher.",
        ),
        (
            "int(number[:-1]), int(number[-1])",
            "int(number[0]), int(number[1:])",
            "wrong_value",
            "Only the last digit is the minor part: `sm_100` is 10.0.",
        ),
    ),
)

EXERCISES = (RUNS, SMI_LINE, BANDWIDTH, KEEP, LOADS)

QUIZZES = (
    one_of(
        "your_gpu.q_mismatch",
        (
            "Yesterday all was well. Today: `Failed to initialize NVML: Driver/library version"
            " mismatch`. What happened?"
        ),
        (
            "An automatic update replaced the driver; its old kernel module still runs",
            "Library and kernel module must be the same version. A restart loads the new module.",
        ),
        (
            "The CUDA toolkit is newer than the driver",
            (
                'That gives "CUDA driver version is insufficient". Here two parts of the driver'
                " itself disagree."
            ),
        ),
        (
            "PyTorch was built with another CUDA version",
            "NVML belongs to the driver; PyTorch is not involved.",
        ),
        answer="a",
    ),
    one_of(
        "your_gpu.q_insufficient",
        (
            "nvidia-smi says `CUDA Version: 12.4`. Your program says `CUDA driver version is"
            " insufficient for CUDA runtime version`. What is the cause?"
        ),
        (
            "It was built with CUDA 12.8",
            (
                "The same major version: the program starts. Only its PTX, if it needs that, would"
                " be refused."
            ),
        ),
        ("It was built with CUDA 13", "Only a newer major version is refused at the start."),
        (
            "No toolkit 12.4 is installed",
            (
                "The corner of nvidia-smi says what the driver can run, not what is installed. A"
                " program brings its runtime."
            ),
        ),
        answer="b",
    ),
    one_of(
        "your_gpu.q_container",
        (
            "nvidia-smi works on the host. In a container: `libcuda.so.1: cannot open shared object"
            " file`. What is the cause?"
        ),
        (
            "The image lacks a driver: install one in the Dockerfile",
            (
                "A driver in the image would have to match the host's kernel module exactly. It"
                " comes from outside."
            ),
        ),
        (
            "The container was started without --gpus all",
            (
                "The driver belongs to the host. --gpus all brings its libraries and device "
                "files into"
                " the container."
            ),
        ),
        (
            "The image's CUDA toolkit is too old",
            "The toolkit brings the runtime (libcudart). libcuda is part of the driver.",
        ),
        answer="b",
    ),
    one_of(
        "your_gpu.q_image",
        (
            "Built with `nvcc -gencode arch=compute_80,code=sm_80`, a program runs on an A100"
            " (8.0). On an H100 (9.0): `no kernel image is available for execution on the device`."
            " What would have helped?"
        ),
        (
            "nvcc -arch=sm_80, which keeps the PTX as well",
            (
                "-arch=sm_80 means code=[sm_80,compute_80]: the driver translates the PTX "
                "for the newer"
                " GPU."
            ),
        ),
        ("A newer driver", "No driver turns machine code of one generation into that of another."),
        ("-O3", "It sets how hard the compilers work, not for which GPU."),
        answer="a",
    ),
)
