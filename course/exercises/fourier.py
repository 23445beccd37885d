"""The exercises of the chapter The Fourier transform."""

import math

import numpy as np
from numba import cuda

from course.checking.inputs import (
    a_thread_each,
    columns_and_rows,
    lengths,
    some_numbers,
    some_zeros,
    uniform,
)
from course.checking.model import Demand, Exercise, Hypothesis, Launch, Out, Wrong
from course.checking.quiz import Quiz, one_of


def as_pairs(values):
    """Complex numbers as pairs of floats: one more axis, of 2."""
    return np.stack([values.real, values.imag], axis=-1)


def as_complex(pairs):
    """Pairs of floats as complex numbers in float64."""
    pairs = np.asarray(pairs, np.float64)
    return pairs[..., 0] + 1j * pairs[..., 1]


# ---- back: the inverse, down the columns


@cuda.jit
def back(out, x):
    c, n = cuda.grid(2)
    rows, columns = x.shape[0], x.shape[1]
    if n < rows and c < columns:
        real, imaginary = 0.0, 0.0
        for k in range(rows):
            angle = 2 * math.pi * (n * k % rows) / rows
            cosine, sine = math.cos(angle), math.sin(angle)
            real += x[k, c, 0] * cosine - x[k, c, 1] * sine
            imaginary += x[k, c, 0] * sine + x[k, c, 1] * cosine
        out[n, c, 0] = real / rows
        out[n, c, 1] = imaginary / rows


def without_first(x):
    """x with zeros in its first row."""
    return np.concatenate([np.zeros_like(x[:1]), x[1:]])


def lost_turns(trace):
    """A reason to reject angles whose whole turns used up the bits of their fractions."""
    x, out = trace.results["x"], trace.results["out"]
    exact = as_pairs(np.fft.ifft(as_complex(x), axis=0))
    error = np.abs(out - exact).max() / np.abs(exact).max()
    if error <= 2e-6:  # float32 sums of these 150 rows stay below 1e-6
        return None
    says = (
        f"With {len(x)} rows it is off by {error:.0e} of the largest value. A float32 has 24 bits"
        " for the whole angle, and whole turns use them up: take them away first (`% rows`). And"
        " where a root is multiplied on from step to step, its rounding errors grow: compute each"
        " from its own angle."
    )
    return "wrong_value", says, None


BACK = Exercise(
    id="fourier.back",
    title="Back, down the columns",
    minutes=10,
    task=(
        "`x[k, c]` holds, as pairs (real, imaginary), the transforms of the columns of a"
        " matrix. Write the inverse: `out[n, c]` is 1/rows times the sum over k of `x[k, c]`, each"
        " turned *forwards* by n k / rows of a full turn. The starter transforms the *rows*,"
        " and forward."
    ),
    starter="""
@cuda.jit
def back(out, x):
    c, n = cuda.grid(2)
    rows, columns = x.shape[0], x.shape[1]
    if n < rows and c < columns:
        real, imaginary = 0.0, 0.0
        for k in range(columns):
            angle = -2 * math.pi * (c * k % columns) / columns
            cosine, sine = math.cos(angle), math.sin(angle)
            real += x[n, k, 0] * cosine - x[n, k, 1] * sine
            imaginary += x[n, k, 0] * sine + x[n, k, 1] * cosine
        out[n, c, 0] = real
        out[n, c, 1] = imaginary
""",
    solution=back,
    inputs=lambda rng, shape: {"out": Out((*shape, 2)), "x": some_zeros(rng, *shape, 2)},
    reference=lambda out, x: as_pairs(np.fft.ifft(as_complex(x), axis=0)),
    specials="finite",  # products of complex numbers are expanded in several ways
    shapes=((1, 1), (1, 5), (5, 1), (2, 3), (7, 4), (3, 3), (8, 8), (5, 11)),
    fresh=some_numbers((1, 10), (1, 10)),
    large=((300, 1), (1, 66_000)),
    block=(8, 4, 1),
    other_block=(3, 16, 1),
    extents=columns_and_rows,
    rtol=1e-4,
    demand=Demand((150, 1), lost_turns),
    race_free=True,
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Each term is turned backwards, as in the forward transform: the sign is wrong.",
            lambda out, x: as_pairs(np.fft.fft(as_complex(x), axis=0) / x.shape[0]),
        ),
        Hypothesis(
            "wrong_value",
            "Every value is too large by the same factor, the number of terms in the sum.",
            lambda out, x: as_pairs(np.fft.ifft(as_complex(x), axis=0) * x.shape[0]),
        ),
        Hypothesis(
            "swapped_axes",
            "It transforms the rows back, not the columns.",
            lambda out, x: as_pairs(np.fft.ifft(as_complex(x), axis=1)),
        ),
        Hypothesis(
            "wrong_value",
            "The term k = 0 is missing from the sum.",
            lambda out, x: as_pairs(np.fft.ifft(without_first(as_complex(x)), axis=0)),
        ),
        Hypothesis(
            "wrong_value",
            "The real part of (a + i b) (c + i s) is a c - b s: i times i is -1.",
            lambda out, x: as_pairs(
                np.fft.ifft(as_complex(x).conj(), axis=0).real
                + 1j * np.fft.ifft(as_complex(x), axis=0).imag
            ),
        ),
    ),
    hints=(
        "Three things differ from the starter. Which axis does the sum run over?",
        (
            "The sum runs over k, the row of `x`, for a fixed column c; the angle has the row n of"
            " the result in it, and `rows` where `columns` was."
        ),
        (
            "The inverse turns the other way: `+2 * math.pi * (n * k % rows) / rows`. And the sum"
            " of `rows` terms is divided by `rows`."
        ),
    ),
    wrong=(
        ("= 2 * math.pi", "= -2 * math.pi", "wrong_value"),
        (("real / rows", "real"), ("imaginary / rows", "imaginary"), "wrong_value"),
        (
            ("real / rows", "real / columns"),
            ("imaginary / rows", "imaginary / columns"),
            "only_square",
        ),
        ("n < rows and c < columns", "True", "missing_guard"),
        ("n < rows and c < columns", "n < rows", "missing_guard"),
        (
            ("for k in range(rows)", "for k in range(columns)"),
            ("(n * k % rows) / rows", "(c * k % columns) / columns"),
            (
                "x[k, c, 0] * cosine - x[k, c, 1] * sine",
                "x[n, k, 0] * cosine - x[n, k, 1] * sine",
            ),
            (
                "x[k, c, 0] * sine + x[k, c, 1] * cosine",
                "x[n, k, 0] * sine + x[n, k, 1] * cosine",
            ),
            ("real / rows", "real / columns"),
            ("imaginary / rows", "imaginary / columns"),
            "swapped_axes",
        ),
        ("* cosine - x", "* cosine + x", "wrong_value"),
        (
            "2 * math.pi * (n * k % rows) / rows",
            "np.float32(2 * math.pi * n * k / rows)",
            "wrong_value",
        ),
        ("for k in range(rows)", "for k in range(1, rows)", "wrong_value"),
        (
            "            angle =",
            "            if x[k, c, 0] == 0:\n                continue\n            angle =",
            "wrong_value",
        ),
    ),
)


# ---- exchange: all passes in one row of shared memory

POINTS = 128


@cuda.jit
def fft_rows(out, x):
    real = cuda.shared.array(128, np.float32)
    imag = cuda.shared.array(128, np.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    for n in range(t, 128, 64):
        real[n], imag[n] = x[row, n, 0], x[row, n, 1]
    done = 1
    while done < 128:
        cuda.syncthreads()
        k = t % done
        angle = -math.pi * k / done
        cosine, sine = math.cos(angle), math.sin(angle)
        a, b = real[t], imag[t]
        c = real[t + 64] * cosine - imag[t + 64] * sine
        d = real[t + 64] * sine + imag[t + 64] * cosine
        cuda.syncthreads()
        to = 2 * t - k
        real[to], imag[to] = a + c, b + d
        real[to + done], imag[to + done] = a - c, b - d
        done *= 2
    cuda.syncthreads()
    for n in range(t, 128, 64):
        out[row, n, 0], out[row, n, 1] = real[n], imag[n]


@cuda.jit
def fft_two_rows(out, x):
    real = cuda.shared.array((2, 128), np.float32)
    imag = cuda.shared.array((2, 128), np.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    for n in range(t, 128, 64):
        real[0, n], imag[0, n] = x[row, n, 0], x[row, n, 1]
    now, done = 0, 1
    while done < 128:
        cuda.syncthreads()
        k = t % done
        angle = -math.pi * k / done
        cosine, sine = math.cos(angle), math.sin(angle)
        a, b = real[now, t], imag[now, t]
        c = real[now, t + 64] * cosine - imag[now, t + 64] * sine
        d = real[now, t + 64] * sine + imag[now, t + 64] * cosine
        now = 1 - now
        to = 2 * t - k
        real[now, to], imag[now, to] = a + c, b + d
        real[now, to + done], imag[now, to + done] = a - c, b - d
        done *= 2
    cuda.syncthreads()
    for n in range(t, 128, 64):
        out[row, n, 0], out[row, n, 1] = real[now, n], imag[now, n]


def two_rows(trace):
    """A reason to reject a kernel with more than one row of complex numbers in shared memory."""
    shared = {
        memory.root: int(np.prod(memory.shape)) * memory.dtype.itemsize
        for memory in trace.events.memories
        if memory.space == "shared"
    }
    used, row = sum(shared.values()) // trace.blocks, 8 * POINTS
    if used <= row:
        return None
    says = (
        f"Keep the one row: a block uses {used:,} bytes of shared memory, and {POINTS} points of 8"
        f" bytes are {row:,}."
    )
    return "other_means", says, None


EXCHANGE = Exercise(
    id="fourier.exchange",
    title="The exchange",
    minutes=10,
    one_block=True,
    task=(
        "Each block of 64 threads transforms one row of 128 points, in seven passes of Stockham's"
        " kind, in one row of shared memory. It has races: cure them, and keep the one row."
    ),
    starter="""
@cuda.jit
def fft_rows(out, x):
    real = cuda.shared.array(128, np.float32)
    imag = cuda.shared.array(128, np.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    for n in range(t, 128, 64):
        real[n], imag[n] = x[row, n, 0], x[row, n, 1]
    done = 1
    while done < 128:
        k = t % done
        angle = -math.pi * k / done
        cosine, sine = math.cos(angle), math.sin(angle)
        a, b = real[t], imag[t]
        c = real[t + 64] * cosine - imag[t + 64] * sine
        d = real[t + 64] * sine + imag[t + 64] * cosine
        to = 2 * t - k
        real[to], imag[to] = a + c, b + d
        real[to + done], imag[to + done] = a - c, b - d
        cuda.syncthreads()
        done *= 2
    for n in range(t, 128, 64):
        out[row, n, 0], out[row, n, 1] = real[n], imag[n]
""",
    solution=fft_rows,
    inputs=lambda rng, rows: {
        "out": Out((*rows, POINTS, 2)),
        "x": some_zeros(rng, *rows, POINTS, 2),
    },
    reference=lambda out, x: as_pairs(np.fft.fft(as_complex(x))),
    specials="finite",
    shapes=lengths(1, 2),
    fresh=some_numbers((1, 3)),
    large=(20,),
    orders=1,
    launches=lambda rows: [Launch((rows[0], 1, 1), (64, 1, 1))],
    extents=lambda rows: (64 * rows[0], 1, 1),
    rtol=1e-4,
    demand=Demand((1,), two_rows),
    race_free=True,
    hints=(
        "Thread 1 writes places 2 and 3 in the first pass. Who reads them in that same pass?",
        (
            "Every thread must have *read* its two points before anyone writes: a barrier between"
            " the two halves of the loop's body."
        ),
        (
            "And everything must be *written* before anyone reads: a barrier between one pass and"
            " the next. (In the first pass each thread reads only what it brought itself, and in"
            " the end it stores only what it wrote itself.)"
        ),
    ),
    wrong=(
        ("        cuda.syncthreads()\n        to = ", "        to = ", "race"),
        ("        cuda.syncthreads()\n        k = ", "        k = ", "race"),
        (
            ("        cuda.syncthreads()\n        k", "        cuda.syncwarp()\n        k"),
            ("        cuda.syncthreads()\n        to", "        cuda.syncwarp()\n        to"),
            "race",
        ),
        ("angle = -math.pi", "angle = math.pi", "wrong_value"),
        ("to = 2 * t - k", "to = 2 * t", "race"),
        ("while done < 128", "while done < 64", "wrong_value"),
        ("k = t % done", "k = t", "race"),
        Wrong(fft_two_rows, "other_means"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Each pass turns forwards. This is the inverse transform, without its factor 1/128.",
            lambda out, x: as_pairs(np.fft.ifft(as_complex(x)) * POINTS),
        ),
        Hypothesis(
            "wrong_value",
            "The last pass is missing: these are two transforms of 64 points each.",
            lambda out, x: as_pairs(
                np.concatenate(
                    [np.fft.fft(as_complex(x)[..., half::2]) for half in (0, 1)], axis=-1
                )
            ),
        ),
    ),
)


# ---- pass_4: four points in a thread, half as many passes

COMPLEX = """
__device__ float2 operator+(float2 a, float2 b) {
    return {a.x + b.x, a.y + b.y};
}
__device__ float2 operator-(float2 a, float2 b) {
    return {a.x - b.x, a.y - b.y};
}
__device__ float2 operator*(float2 a, float2 b) {
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}
__device__ float2 root(int k, int n) {  // exp(-2 pi i k / n)
    float2 w;
    sincospif(-2.0f * k / n, &w.y, &w.x);
    return w;
}
"""

PASS_4_CU = (
    COMPLEX
    + """
// Thread j: points j, j + n / 4, j + n / 2 and j + 3 n / 4.
__global__ void pass_4(float2* out, const float2* in, int n, int done) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int quarter = n / 4;
    if (j >= quarter)
        return;
    int k = j % done;
    float2 a = in[j];
    float2 b = in[j + quarter] * root(k, 4 * done);
    float2 c = in[j + 2 * quarter] * root(2 * k, 4 * done);
    float2 d = in[j + 3 * quarter] * root(3 * k, 4 * done);
    float2 turned = {b.y - d.y, d.x - b.x};  // -i (b - d)
    int to = 4 * j - 3 * k;
    out[to] = a + c + (b + d);
    out[to + done] = a - c + turned;
    out[to + 2 * done] = a + c - (b + d);
    out[to + 3 * done] = a - c - turned;
}
"""
)


IN_ORDER = (0, 1, 2, 3)


def passed(pairs, done, sign=-1, turns=IN_ORDER, order=IN_ORDER, side_by_side=False, read=IN_ORDER):
    """One pass of radix 4, after Stockham, in float64, as pairs.

    done: so many points are transformed among themselves before it. sign: of the angles. turns: by
    how many times the angle each point is turned. order: which result is stored where.
    side_by_side: whether a thread's four points are neighbours. read: which of them is taken for
    which.
    """
    x = as_complex(pairs)
    j = np.arange(x.size // 4)
    k = j % done
    places = [4 * j + m if side_by_side else j + m * j.size for m in read]
    angles = [sign * 2j * np.pi * k * m / (4 * done) for m in turns]
    parts = [x[at] * np.exp(angle) for at, angle in zip(places, angles, strict=True)]
    results = np.fft.fft(parts, axis=0) if sign < 0 else np.fft.ifft(parts, axis=0) * 4
    out = np.empty(x.size, complex)
    for m, which in enumerate(order):
        out[4 * j - 3 * k + m * done] = results[which]
    return as_pairs(out)


def mistaken(says, **change):
    """A named mistake of a pass, as `passed` makes it."""
    return Hypothesis(
        "wrong_value", says, lambda **given: passed(given["in"], given["done"], **change)
    )


PASS_4 = Exercise(
    id="fourier.pass_4",
    title="Four points in a thread",
    minutes=15,
    kind="cuda_c",
    kernel_name="pass_4",
    path="build/pass_4.cu",
    task=(
        "This is the pass of radix 2 in CUDA C, for n / 2 threads with two points each. Make it a"
        " pass of radix 4, for n / 4 threads: thread j reads the four points j, j + n/4, j + n/2"
        " and j + 3 n/4, turns number m of them by m k / (4 done) of a turn, transforms the four,"
        " and writes the results where they belong, `done` apart. (For radix 2 that was from"
        " 2 j - k on.) A transform of four points a, b,"
        " c, d is a + b + c + d, a - i b - c + i d, a - b + c - d, a + i b - c - i d, and -i (x, y)"
        " is (y, -x)."
    ),
    starter="%%writefile build/pass_4.cu"
    + COMPLEX
    + """
// Thread j: points j and j + n / 2. done: 1, 4, 16 ... points are transformed already.
__global__ void pass_4(float2* out, const float2* in, int n, int done) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int half = n / 2;
    if (j >= half)
        return;
    int k = j % done;
    float2 a = in[j];
    float2 b = in[j + half] * root(k, 2 * done);
    int to = 2 * j - k;
    out[to] = a + b;
    out[to + done] = a - b;
}
""",
    solution=PASS_4_CU,
    inputs=lambda rng, shape: {
        "out": Out((shape[0], 2)),
        "in": uniform(rng, shape[0], 2),
        "n": shape[0],
        "done": shape[1],
    },
    reference=lambda **given: passed(given["in"], given["done"]),
    specials="finite",
    rtol=1e-4,
    shapes=((4, 1), (16, 1), (16, 4), (64, 4), (64, 16), (256, 1), (256, 64)),
    large=(1 << 18, 1 << 14),  # k, too, is more than a byte counts
    fresh=lambda rng: (256, int(rng.choice((1, 4, 16, 64)))),
    extents=lambda shape: (shape[0] // 4, 1, 1),
    other_block=(64, 1, 1),
    is_square=lambda shape: False,
    elements=8,  # floats
    probe=(256, 4),
    hints=(
        "`half` becomes `quarter`, in the guard, too. Which four points does thread j read, and by"
        " which root is each multiplied?",
        "The second is turned by `root(k, 4 * done)`, the third by `root(2 * k, 4 * done)`, the"
        " fourth by `root(3 * k, 4 * done)`. Of `b` and `d` you need the sum, and -i times the"
        " difference. The transform in which place j is result k begins at place j - k. Where does"
        " the one begin that joins it with three more?",
        "-i (b - d) is `{b.y - d.y, d.x - b.x}`. The four results go to `to`, `to + done`,"
        " `to + 2 * done` and `to + 3 * done`, with `to = 4 * j - 3 * k`.",
    ),
    wrong=(
        ("{b.y - d.y, d.x - b.x}", "{d.y - b.y, b.x - d.x}", "wrong_value"),
        ("int to = 4 * j - 3 * k;", "int to = 4 * j;", "race"),
        ("int k = j % done;", "signed char k = j % done;", "only_small"),
        (
            ("root(k, 4", "root(0 * k, 4"),
            ("root(2 * k", "root(0 * k"),
            ("root(3 * k", "root(0 * k"),
            "wrong_value",
        ),
        (("root(2 * k, ", "root(k, "), ("root(3 * k, ", "root(k, "), "wrong_value"),
        (
            ("root(k, 4", "root(k, 2"),
            ("root(2 * k, 4", "root(2 * k, 2"),
            ("root(3 * k, 4", "root(3 * k, 2"),
            "wrong_value",
        ),
        (
            ("to + done", "to + 1"),
            ("to + 2 * done", "to + 2"),
            ("to + 3 * done", "to + 3"),
            "race",
        ),
        (
            ("in[j + quarter]", "in[4 * j + 1]"),
            ("in[j + 2 * quarter]", "in[4 * j + 2]"),
            ("in[j + 3 * quarter]", "in[4 * j + 3]"),
            ("in[j];", "in[4 * j];"),
            "wrong_value",
        ),
        (
            ("in[j + quarter]", "in[j + quarter * 2]"),
            ("in[j + 2 * quarter]", "in[j + quarter]"),
            "wrong_value",
        ),
        ("    if (j >= quarter)\n        return;\n", "", "missing_guard"),
        ("j >= quarter", "j > quarter", "missing_guard"),
        (
            ("out[to + done] = a - c + turned;", "out[to + 2 * done] = a - c + turned;"),
            ("out[to + 2 * done] = a + c - (b + d);", "out[to + done] = a + c - (b + d);"),
            "wrong_value",
        ),
    ),
    hypotheses=(
        mistaken("It turns forwards: this is a pass of the inverse.", sign=1),
        mistaken(
            "The twiddles are missing: the four points are not turned before the transform.",
            turns=(0, 0, 0, 0),
        ),
        mistaken(
            "All points are turned by the same angle. Point m must go m times as far as point 1.",
            turns=(0, 1, 1, 1),
        ),
        mistaken(
            "Results 1 and 3 have changed places: -i (b - d) has the wrong sign.",
            order=(0, 3, 2, 1),
        ),
        mistaken("Results 1 and 2 have changed places.", order=(0, 2, 1, 3)),
        mistaken(
            "Points 1 and 2 have changed places: b is at j + n / 4, and c at j + n / 2.",
            read=(0, 2, 1, 3),
        ),
        mistaken(
            "The points are turned twice as far as they should be: point m turns by"
            " m k / (4 done) of a turn.",
            turns=(0, 2, 4, 6),
        ),
        mistaken(
            "The four points of a thread lie n / 4 apart, and you read four neighbours.",
            side_by_side=True,
        ),
    ),
)


# ---- apart: two real rows out of one complex transform


@cuda.jit
def apart(out, z):
    k = cuda.grid(1)
    points = z.shape[0]
    if k < points:
        mirror = (points - k) % points
        real, imag = z[k, 0], z[k, 1]
        other_real, other_imag = z[mirror, 0], -z[mirror, 1]
        out[0, k, 0] = (real + other_real) / 2
        out[0, k, 1] = (imag + other_imag) / 2
        out[1, k, 0] = (imag - other_imag) / 2
        out[1, k, 1] = (other_real - real) / 2


def taken_apart(z):
    """The transforms of the real parts and of the imaginary parts."""
    row = np.fft.ifft(as_complex(z))
    return np.stack([as_pairs(np.fft.fft(row.real)), as_pairs(np.fft.fft(row.imag))])


def mirrored(z, before):
    """The values of z at points - before - k."""
    points = len(z)
    return as_complex(z)[(points - before - np.arange(points)) % points]


def halves(z, others):
    """Half the sum of z and others, and half their difference, divided by i."""
    z = as_complex(z)
    return np.stack([as_pairs((z + others) / 2), as_pairs((z - others) / 2j)])


APART = Exercise(
    id="fourier.apart",
    title="Two for one",
    minutes=10,
    task=(
        "`z` is the transform, as pairs (real, imaginary), of a + i b, where the rows a and b are"
        " *real*. Write the transform of a to `out[0]` and that of b to `out[1]`. The transform of"
        " a real row has conjugate values at k and at points - k; what is at points is at 0."
    ),
    starter="""
@cuda.jit
def apart(out, z):
    k = cuda.grid(1)
    points = z.shape[0]
    if k < points:
        out[0, k, 0] = z[k, 0]  # this is a's and b's together
        out[0, k, 1] = z[k, 1]
""",
    solution=apart,
    inputs=lambda rng, shape: {"out": Out((2, *shape, 2)), "z": some_zeros(rng, *shape, 2)},
    reference=lambda out, z: taken_apart(z),
    specials="finite",
    shapes=lengths(1, 2, 3, 8, 16, 31, 32, 33, 64, 100),
    fresh=some_numbers((2, 150)),
    large=(66_000,),
    extents=a_thread_each,
    other_block=(96, 1, 1),
    is_square=lambda shape: False,
    rtol=1e-4,
    race_free=True,
    hints=(
        "Z = A + i B. What is the conjugate of Z at points - k, in terms of A and B at k?",
        (
            "It is A - i B at k, since A and B equal their own mirrored conjugates. So the sum of"
            " Z and it is 2 A, and their difference is 2 i B."
        ),
        ("The mirror of 0 is 0: `(points - k) % points`. To divide x + i y by i gives y - i x."),
    ),
    wrong=(
        ("(points - k) % points", "points - k", "off_by_one"),
        ("(points - k) % points", "-k & (points - 1)", "only_powers"),
        ("(points - k) % points", "points - 1 - k", "wrong_value"),
        ("-z[mirror, 1]", "z[mirror, 1]", "wrong_value"),
        ("(imag + other_imag)", "(imag - other_imag)", "wrong_value"),
        (
            ("(imag + other_imag) / 2", "np.float32(0)"),
            ("(other_real - real) / 2", "np.float32(0)"),
            "wrong_value",
        ),
        (
            ("out[0, k, 0]", "out[1 - 0, k, 0]"),
            ("out[0, k, 1]", "out[1 - 0, k, 1]"),
            ("out[1, k, 0]", "out[0, k, 0]"),
            ("out[1, k, 1]", "out[0, k, 1]"),
            "wrong_value",
        ),
        ("k < points", "True", "missing_guard"),
        (
            ("(real + other_real) / 2", "real + other_real"),
            ("(imag + other_imag) / 2", "imag + other_imag"),
            ("(imag - other_imag) / 2", "imag - other_imag"),
            ("(other_real - real) / 2", "other_real - real"),
            "wrong_value",
        ),
        ("(other_real - real)", "(real - other_real)", "wrong_value"),
        (
            ("out[1, k, 0] = (imag - other_imag)", "out[1, k, 1] = (imag - other_imag)"),
            ("out[1, k, 1] = (other_real - real)", "out[1, k, 0] = (real - other_real)"),
            "wrong_value",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Every value is twice as large as it should be.",
            lambda out, z: 2 * taken_apart(z),
        ),
        Hypothesis(
            "wrong_value",
            "The part that belongs to b has not been divided by i.",
            lambda out, z: as_pairs(as_complex(taken_apart(z)) * np.array([[1], [1j]])),
        ),
        Hypothesis(
            "wrong_value",
            "b's imaginary part has the wrong sign: x + i y divided by i is y - i x.",
            lambda out, z: np.stack([taken_apart(z)[0], taken_apart(z)[1] * (1, -1)]),
        ),
        Hypothesis(
            "wrong_value",
            "The value at points - k must be conjugated first: its imaginary part changes sign.",
            lambda out, z: halves(z, mirrored(z, 0)),
        ),
        Hypothesis(
            "wrong_value",
            "a and b have changed places: the half of the sum is a's, and belongs to `out[0]`.",
            lambda out, z: taken_apart(z)[::-1],
        ),
        Hypothesis(
            "wrong_value",
            "The real parts are right. The imaginary parts are 0, and should not be.",
            lambda out, z: taken_apart(z) * (1, 0),
        ),
        Hypothesis(
            "wrong_value",
            "b is right. For a, too, the value at points - k must be conjugated first.",
            lambda out, z: np.stack([halves(z, mirrored(z, 0))[0], taken_apart(z)[1]]),
        ),
        Hypothesis(
            "wrong_value",
            "The mirror of k is points - k (index 0 for k = 0), not points - 1 - k.",
            lambda out, z: halves(z, mirrored(z, 1).conj()),
        ),
    ),
)


EXERCISES = (BACK, EXCHANGE, PASS_4, APART)


QUIZZES = (
    Quiz(
        id="fourier.q_exchanges",
        question=(
            "4,096 points, sixteen in each thread's registers, passes of radix 16. How often do"
            " the threads exchange points through shared memory?"
        ),
        answer=2,
        unit="times",
        explain_right="16³ = 4,096: three passes, and an exchange between one and the next.",
        explain={
            3: "That is the number of passes. The exchanges are between them.",
            11: "With radix 2 there would be 12 passes and 11 exchanges. Here it is radix 16.",
            None: "How many passes of radix 16 make 4,096 points? What stands between them?",
        },
    ),
    Quiz(
        id="fourier.q_bin",
        question=(
            "A sound of 8,000 samples per second, 400 of them transformed. In which bin is a tone"
            " of 440 Hz?"
        ),
        answer=22,
        explain_right="The bins lie 8,000 / 400 = 20 Hz apart.",
        explain={
            440: "That would need bins of 1 Hz, so a whole second: 8,000 samples.",
            20: "That is the distance between two bins, in Hz. How many such steps lead to 440 Hz?",
            None: "Bin k is k turns in the 400 samples. How long do 400 samples last?",
        },
    ),
    Quiz(
        id="fourier.q_wrap",
        question=(
            "A picture of 1,024 × 1,024 is filtered by 15 × 15 taps through a transform of its own"
            " size. In how many of the 1,024 rows did nothing come round from the other edge?"
        ),
        answer=1010,
        unit="rows",
        explain_right="Of 15 taps in a row, 14 can reach over the edge: 1,024 - 14.",
        explain={
            1009: "The first tap lies on the point itself, so only 14 can reach over the edge.",
            1024: "The transform takes the picture as periodic: what leaves below enters above.",
            None: "How far can a filter of 15 taps reach over the last row?",
        },
    ),
    one_of(
        "fourier.q_passes",
        "A transform of 65,536 points takes two passes over memory, not one. Why?",
        (
            "It has too many additions for one kernel",
            "A kernel may run as long as it likes. Where are the points while they are mixed?",
        ),
        (
            "Its points do not fit one block's registers and shared memory",
            (
                "512 KB must be exchanged, and a block has 227 KB at most. So blocks exchange them"
                " through memory."
            ),
        ),
        (
            "The two passes need different twiddles",
            "So do the passes within a block, and they share a kernel.",
        ),
        answer="b",
    ),
)
