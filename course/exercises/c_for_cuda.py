"""The exercises of the chapter C for CUDA: plain C++, checked with the sanitizers."""

from course.checking.answers import replace
from course.checking.cpp import CppExercise
from course.checking.model import Wrong
from course.checking.quiz import Quiz, one_of

# ---- mean_max: results go out through pointers

MEAN_MAX = """
// The mean and the largest of n values (n is at least 1).
void mean_max(const int* a, int n, float* mean, int* largest) {
    long long sum = 0;
    *largest = a[0];
    for (int i = 0; i < n; ++i) {
        sum += a[i];
        if (a[i] > *largest)
            *largest = a[i];
    }
    *mean = (float)sum / n;
}
"""

MEAN_MAX_EXERCISE = CppExercise(
    id="c_for_cuda.mean_max",
    title="Two results at once",
    minutes=5,
    path="build/mean_max.h",
    task=(
        "Write `mean_max`, which gives back the mean and the largest of `n` values through two"
        " pointers. The values are ints, large ones too, and may all be negative; the mean is a"
        " float; `n` is at least 1."
    ),
    starter="""
%%writefile build/mean_max.h
// The mean and the largest of n values (n is at least 1).
void mean_max(const int* a, int n, float* mean, int* largest) {
    // your code
}
""",
    solution=MEAN_MAX,
    tests="mean_max.cpp",
    hints=(
        "`mean` is an address. The float that lives there is `*mean`.",
        "Start with `*largest = a[0];`, not with 0: all values may be negative.",
        "`sum / n` of two ints cuts the fraction off. `(float)sum / n` does not.",
    ),
    wrong=(
        ("*mean = (float)sum / n", "*mean = sum / n", "wrong_value"),
        ("*mean = (float)sum / n", "*mean = (float)(sum / n)", "wrong_value"),
        ("*largest = a[0];", "*largest = 0;", "wrong_value"),
        ("i < n;", "i <= n;", "out_of_bounds"),
        (
            "*mean = (float)sum / n;",
            "float m = (float)sum / n; mean = &m;",
            "unwritten",
        ),
        ("*mean = (float)sum / n", "*mean += (float)sum / n", "wrong_value"),
        (
            ("float* mean", "float mean"),
            ("*mean =", "mean ="),
            "does_not_compile",
        ),
        ("i < n;", "i < n - 1;", "wrong_value"),
        (
            "    long long sum",
            "    n = (short)n;\n    long long sum",
            "wrong_value",
        ),
        ("long long sum = 0", "double sum", "wrong_value"),
        ("long long sum = 0", "float sum = 0", "wrong_value"),
    ),
)


# ---- blocks: a macro without parentheses

BLOCKS = """
// How many blocks of `block` threads cover n elements.
#define BLOCKS(n, block) (((n) + (block) - 1) / (block))
"""

BLOCKS_EXERCISE = CppExercise(
    id="c_for_cuda.blocks",
    title="A macro that holds",
    minutes=4,
    path="build/blocks.h",
    task=(
        "Repair the macro `BLOCKS(n, block)`: how many blocks of `block` threads cover `n`"
        " elements? It must hold whatever is put in (`BLOCKS(a - b, 64 + c)`) and wherever it"
        " stands (`2 * BLOCKS(n, 256)`). `n` may be a long long."
    ),
    starter="""
%%writefile build/blocks.h
// How many blocks of `block` threads cover n elements.
#define BLOCKS(n, block) n + block - 1 / block
""",
    solution=BLOCKS,
    tests="blocks.cpp",
    hints=(
        "The formula is (n + block - 1) / block: the sum first.",
        "Write the text that comes out for `BLOCKS(a - b, 64 + c)`. Where does the division end?",
        "Parentheses around each parameter, around the sum, and around the whole.",
    ),
    wrong=(
        (
            "(((n) + (block) - 1) / (block))",
            "(n + block - 1) / block",
            "precedence",
        ),
        (
            "(((n) + (block) - 1) / (block))",
            "((n) + (block) - 1) / (block)",
            "precedence",
        ),
        ("/ (block))", "/ block)", "precedence"),
        ("(((n) + (block) - 1) / (block))", "((n) / (block) + 1)", "off_by_one"),
        ("(((n) + (block) - 1) / (block))", "((n) / (block))", "wrong_value"),
        (
            "((n) + (block) - 1)",
            "(((n) + (block) - 1) & -(block))",
            "wrong_value",
        ),
        ("/ (block))", "/ (block));", "does_not_compile"),
        (
            "(((n) + (block) - 1) / (block))",
            "({ int b = (block); ((n) + b - 1) / b; })",
            "hidden",
        ),
    ),
)


# ---- index: row-major in three dimensions, without overflow

INDEX = """
#include <cstddef>

// Where picture z, row y, column x stands in a stack of pictures of height rows and width columns.
size_t index(int z, int y, int x, int height, int width) {
    return ((size_t)z * height + y) * width + x;
}
"""

BODY = "((size_t)z * height + y) * width + x"

INDEX_EXERCISE = CppExercise(
    id="c_for_cuda.index",
    title="One picture in a long stack",
    minutes=5,
    path="build/index.h",
    task=(
        "Pictures of `height` rows and `width` columns lie in memory one behind another, row-major."
        " Return where picture `z`, row `y`, column `x` stands. There may be more elements than an"
        " int can count."
    ),
    starter="""
%%writefile build/index.h
#include <cstddef>

// Where picture z, row y, column x stands in a stack of pictures of height rows and width columns.
size_t index(int z, int y, int x, int height, int width) {
    return 0;  // your code
}
""",
    solution=INDEX,
    tests="index.cpp",
    hints=(
        "A step in x is one element, a step in y is a row of `width`, a step in z a whole picture.",
        "z * height + y counts all rows before this one. Each is `width` long.",
        "`(size_t)z * height` multiplies as size_t. `(size_t)(z * height)` overflows first.",
    ),
    wrong=(
        (BODY, "(z * height + y) * width + x", "overflow"),
        (BODY, "(size_t)((z * height + y) * width + x)", "overflow"),
        (BODY, "(size_t)z * height * width + y * width + x", "overflow"),
        (BODY, "((size_t)z * width + y) * height + x", "only_square"),
        (BODY, "((size_t)x * height + y) * width + z", "wrong_value"),
        (BODY, "(size_t)z * height + y * width + x", "wrong_value"),
        (BODY, "(size_t)(((double)z * height + y) * width + x)", "overflow"),
        ("size_t index", "int index", "does_not_compile"),
    ),
)


# ---- allocate: a pointer to a pointer

ALLOCATE = """
#include <cstdlib>

// Fresh memory for n floats, all of them `value`, in *out; returns 0.
// For n <= 0: nullptr, returns 1.
int allocate(float** out, int n, float value) {
    *out = nullptr;
    if (n <= 0)
        return 1;
    *out = (float*)malloc(n * sizeof(float));
    for (int i = 0; i < n; ++i)
        (*out)[i] = value;
    return 0;
}
"""

MALLOC = "*out = (float*)malloc(n * sizeof(float));"

ALLOCATE_EXERCISE = CppExercise(
    id="c_for_cuda.allocate",
    title="Your own cudaMalloc",
    minutes=7,
    path="build/allocate.h",
    task=(
        "Write `allocate(float **out, int n, float value)` in the manner of cudaMalloc: memory for"
        " `n` floats from `malloc`, all set to `value`, its address in the caller's pointer, and 0"
        " returned. When `n` is not positive, return 1 and leave nullptr in the caller's pointer."
        " Large `n` have more bytes than an int can count."
    ),
    starter="""
%%writefile build/allocate.h
#include <cstdlib>

// Fresh memory for n floats, all of them `value`, in *out; returns 0.
// For n <= 0: nullptr; returns 1.
int allocate(float** out, int n, float value) {
    return 0;  // your code
}
""",
    solution=ALLOCATE,
    tests="allocate.cpp",
    hints=(
        "`out` is the address of the caller's pointer. The caller's pointer is `*out`.",
        "malloc counts bytes and returns a void *: `*out = (float *)malloc(n * sizeof(float));`",
        "`*out[i]` means `*(out[i])`. The i-th float is `(*out)[i]`.",
    ),
    wrong=(
        (
            ("*out = nullptr", "float* p"),
            ("*out = (float*)", "p = (float*)"),
            ("(*out)[i] = value;", "p[i] = value;\n    out = &p;"),
            "unwritten",
        ),
        ("malloc(n * sizeof(float))", "malloc(n)", "out_of_bounds"),
        ("if (n <= 0)", "if (n == 0)", "overflow"),
        ("(float*)malloc(", "(float*)realloc(&n, ", "dangling"),
        ("malloc(n * sizeof(float))", "malloc(n * sizeof(out))", "wrong_size"),
        ("i < n;", "i <= n;", "out_of_bounds"),
        (
            "    for (int i = 0; i < n; ++i)\n        (*out)[i] = value;\n",
            "    __builtin_memset(*out, value, n * sizeof(float));\n",
            "wrong_value",
        ),
        (MALLOC, "static float mine[100];\n    *out = mine;", "dangling"),
        (MALLOC, "float mine[100];\n    *out = mine;", "dangling"),
        (MALLOC, "*out = new float[n];", "wrong_free"),
        ("(*out)[i]", "*out[i]", "out_of_bounds"),
        (
            "    *out = nullptr;\n    if (n <= 0)\n        return 1;\n",
            "",
            "wrong_value",
        ),
    ),
)


# ---- try: a macro like CHECK

TRY = """
void report(const char* file, int line, const char* text, int error);  // the checker brings it

// Run `call` once. When its value is not 0, report it, and return it from the function that
// TRY stands in.
#define TRY(call)                                      \\
    do {                                               \\
        int error_ = (call);                           \\
        if (error_ != 0) {                             \\
            report(__FILE__, __LINE__, #call, error_); \\
            return error_;                             \\
        }                                              \\
    } while (0)
"""

TRY_EXERCISE = CppExercise(
    id="c_for_cuda.try",
    title="A macro that gives up",
    minutes=10,
    path="build/try.h",
    task=(
        "Write `TRY(call)`, a CHECK that ends not the program but the function it stands in. It"
        " runs `call` **once**, and when the value is not 0, it calls `report(file, line, text of"
        " the call, value)` and returns that value. `if (ready) TRY(f()); else ...` must work."
    ),
    starter="""
%%writefile build/try.h
void report(const char* file, int line, const char* text, int error);  // the checker brings it

// Run `call` once. When its value is not 0, report it,
// and return it from the function that TRY stands in.
#define TRY(call) (call)
""",
    solution=TRY,
    tests="try.cpp",
    hints=(
        "Begin with the CHECK of this chapter: it has the same shape.",
        (
            "Keep the value in a variable, `int error_ = (call);`: then the call stands in the"
            " macro once."
        ),
        (
            "`do { ... } while (0)` makes one statement; `#call` is the text; a \\ ends each line"
            " but the last."
        ),
    ),
    wrong=(
        Wrong(
            replace(TRY, "int error_ = (call);", "").replace("error_", "(call)"), "evaluated_twice"
        ),
        (("do {", "{   "), ("} while (0)", "}"), "does_not_compile"),
        ("return error_;", "", "wrong_value"),
        ("return error_;", "__builtin_exit(error_);", "wrong_value"),
        ("#call, error_", '"call", error_', "wrong_value"),
        ("error_ != 0", "error_ == 0", "wrong_value"),
        Wrong(TRY.replace("error_", "error"), "wrong_value"),
        ("__LINE__", "__COUNTER__", "wrong_value"),
    ),
)


# ---- raii: who owns it when it moves?

RAII = """
#include <cstddef>

// n values of type T on the device, freed when their owner goes.
template <typename T>
struct DeviceArray {
    T* data = nullptr;
    size_t size = 0;

    explicit DeviceArray(size_t n) : size(n) {
        cudaMalloc(&data, n * sizeof(T));
    }
    ~DeviceArray() {
        cudaFree(data);
    }

    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;

    DeviceArray(DeviceArray&& other) : data(other.data), size(other.size) {
        other.data = nullptr;
        other.size = 0;
    }
};
"""

MOVE_BODY = """        other.data = nullptr;
        other.size = 0;
"""
MOVE = f"""    DeviceArray(DeviceArray&& other) : data(other.data), size(other.size) {{
{MOVE_BODY}    }}
"""

RAII_EXERCISE = CppExercise(
    id="c_for_cuda.raii",
    title="Memory with one owner",
    minutes=12,
    path="build/owner.h",
    task=(
        "Complete `DeviceArray`. Its constructor allocates `n` values of type `T` with cudaMalloc,"
        " its destructor frees them, copies are forbidden. New: it can be **moved**, so that a"
        " function can hand it on. The move constructor takes over the memory, and leaves the old"
        " one empty: `nullptr`, size 0. (The checker brings its own cudaMalloc and cudaFree, which"
        " count.)"
    ),
    starter="""
%%writefile build/owner.h
#include <cstddef>

// n values of type T on the device, freed when their owner goes.
template <typename T>
struct DeviceArray {
    T* data = nullptr;
    size_t size = 0;

    explicit DeviceArray(size_t n) : size(n) {}  // allocate

    // free, forbid copies, allow moves: DeviceArray(DeviceArray &&other)
};
""",
    solution=RAII,
    tests="raii.cpp",
    hints=(
        (
            "`cudaMalloc(&data, n * sizeof(T))` in the constructor, `cudaFree(data)` in"
            " `~DeviceArray()`."
        ),
        "Copies are forbidden by the two `= delete` lines of this chapter.",
        (
            "`DeviceArray(DeviceArray &&other) : data(other.data), size(other.size) { ... }` takes"
            " over; the body empties `other`."
        ),
        "cudaFree(nullptr) does nothing, so the destructor of an empty owner is harmless.",
    ),
    wrong=(
        ("cudaFree(data);", "", "leak"),
        ("cudaMalloc(&data, n * sizeof(T))", "cudaMalloc(&data, n)", "wrong_size"),
        ("n * sizeof(T)", "n * sizeof(float)", "wrong_size"),
        (MOVE_BODY, "", "double_free"),
        (MOVE_BODY, f"cudaFree(other.data);{MOVE_BODY}", "use_after_free"),
        ("        other.size = 0;\n", "", "wrong_value"),
        Wrong(RAII.replace("= delete", "= default"), "double_free"),
        (MOVE, "", "wrong_value"),
        ("cudaMalloc(", "T* data;\n        cudaMalloc(", "unwritten"),
    ),
)

# ---- mistakes: a leak, an index, memory that nobody set

MISTAKES = """
// How often the commonest of the n bytes in `a` occurs.
int most(const unsigned char* a, int n) {
    int* counts = new int[256]();
    for (int i = 0; i < n; ++i)
        ++counts[a[i]];
    int best = 0;
    for (int byte = 0; byte < 256; ++byte)
        if (counts[byte] > best)
            best = counts[byte];
    delete[] counts;
    return best;
}
"""
CLEARED = "new int[256]();"

MISTAKES_EXERCISE = CppExercise(
    id="c_for_cuda.mistakes",
    title="Three mistakes",
    minutes=7,
    path="build/most.h",
    task=(
        "`most` counts how often each byte occurs in `a`, and returns the largest of the counts."
        " It looks well, and yet it makes three mistakes of this section. Repair it until neither"
        " the result nor a sanitizer says anything against it."
    ),
    starter="""
%%writefile build/most.h
// How often the commonest of the n bytes in `a` occurs.
int most(const unsigned char* a, int n) {
    int* counts = new int[256];
    for (int i = 0; i <= n; ++i)
        ++counts[a[i]];
    int best = 0;
    for (int byte = 0; byte < 256; ++byte)
        if (counts[byte] > best)
            best = counts[byte];
    return best;
}
""",
    solution=MISTAKES,
    tests="mistakes.cpp",
    hints=(
        "Run the check: its report names one mistake at a time. What does each line of it say?",
        "An array of n bytes has the elements 0 to n - 1. And what do fresh counts hold?",
        "What `new[]` gives, `delete[]` takes back, after its last use.",
    ),
    wrong=(
        ("i < n", "i <= n", "out_of_bounds"),
        (CLEARED, "new int[256];", "wrong_value"),
        (
            ("int* counts = new int[256]();", "int counts[256];"),
            ("    delete[] counts;\n", ""),
            "wrong_value",
        ),
        ("    delete[] counts;\n", "", "leak"),
        ("delete[] counts", "delete counts", "wrong_free"),
        (
            ("    delete[] counts;\n", ""),
            ("    int best = 0;", "    delete[] counts;\n    int best = 0;"),
            "use_after_free",
        ),
        (CLEARED, "new int[256];\n    memset(counts, 0, 256);", "wrong_value"),
        ("new int[256]()", "new int[255]()", "out_of_bounds"),
    ),
)

EXERCISES = (
    MEAN_MAX_EXERCISE,
    BLOCKS_EXERCISE,
    INDEX_EXERCISE,
    ALLOCATE_EXERCISE,
    TRY_EXERCISE,
    RAII_EXERCISE,
    MISTAKES_EXERCISE,
)

QUIZZES = (
    Quiz(
        id="c_for_cuda.q_pointer_bytes",
        question="`double a[10]; double *p = a + 3;` How many bytes behind `a` does `p` point?",
        answer=24,
        unit="bytes",
        explain_right="Pointers step in elements: 3 doubles of 8 bytes.",
        explain={
            3: "That would be 3 bytes. A pointer to double steps by whole doubles.",
            12: "That would be floats. A double takes 8 bytes.",
            None: "Count elements first, then multiply by the size of one.",
        },
    ),
    one_of(
        "c_for_cuda.q_malloc",
        "Why does `cudaMalloc(&d_a, bytes)` take the address of the pointer?",
        (
            "Because d_a lives on the device",
            "d_a is a host variable. The memory that its value points to is on the device.",
        ),
        (
            "Because it must change d_a, and its return value is an error code",
            "To change a variable of yours a function needs its address. d_a is such a variable.",
        ),
        ("Because a float * takes less space than a float **", "All pointers have the same size."),
        answer="b",
    ),
    one_of(
        "c_for_cuda.q_unsigned",
        "In a kernel, for the first thread of a block: is `threadIdx.x - 1 < 0`?",
        ("Yes", "It would be with `int i = threadIdx.x`. An unsigned number is never below 0."),
        ("No", "threadIdx.x is unsigned: 0 - 1 is the largest there is. Put it into an int first."),
        (
            "It depends on the GPU",
            "Unsigned arithmetic is the same everywhere: modulo 2 to the 32.",
        ),
        answer="b",
    ),
)
