// Tests of exercise c_for_cuda.allocate; the learner's file is "answer.h".
#include "tests.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

// Whether the address sanitizer knows an address as that of allocated memory.
extern "C" int __sanitizer_get_ownership(const volatile void* address);

static size_t last_bytes, allocations, last_count;
static bool only_asked;  // whether what is asked for is counted, and `allocate` ends there
static jmp_buf was_asked;
static void count(size_t bytes) {
    last_bytes = bytes;
    ++allocations;
    if (bytes > PTRDIFF_MAX)
        FAIL("overflow", "malloc was asked for %zu bytes: a number below 0 became a size.", bytes);
    if (only_asked)
        longjmp(was_asked, 1);
}
static void* counted(size_t bytes) {
    count(bytes);
    return malloc(bytes);
}
static void* counted2(size_t n, size_t bytes) {
    count(n * bytes);
    return calloc(n, bytes);
}
namespace std {  // for those who write std::malloc
using ::counted;
using ::counted2;
}  // namespace std
#define malloc counted
#define calloc counted2
#include "answer.h"
#undef malloc
#undef calloc

// Whether each byte of an element is the number that was asked for.
static bool is_memset(float element, float value) {
    unsigned char bytes[sizeof element];
    memset(bytes, (int)value, sizeof bytes);
    return value != 0 && memcmp(&element, bytes, sizeof bytes) == 0;
}

// More bytes than 32 bits count: there may be no room for them.
static void asks_for_many(int n) {
    float* out = nullptr;
    only_asked = true;
    last_bytes = n * sizeof(float);  // also where malloc is never asked
    if (!setjmp(was_asked))
        allocate(&out, n, 1);
    only_asked = false;
    if (last_bytes != n * sizeof(float))
        FAIL("overflow",
             "%d floats take %zu bytes; malloc was asked for %zu. Count bytes in a size_t: "
             "`n * sizeof(float)` is one.",
             n, n * sizeof(float), last_bytes);
}

void run_tests() {
    for (int n : {1, 4, 100, 37, 300, 5}) {
        float value = (float)random_int(-99, 99) / 4, *poison = (float*)&last_count, *out = poison;
        if (n == 5)
            value = -0.0f;
        allocations = last_bytes = 0;
        dirty_stack();
        int error = allocate(&out, n, value);
        if (out == poison)
            FAIL("unwritten", "The caller's pointer was never set. `*out = ...` writes there.");
        if (error)
            FAIL("wrong_value", "`allocate(&p, %d, ...)` must return 0, and returned %d.", n,
                 error);
        if (!out)
            FAIL("wrong_value", "The caller's pointer is nullptr after `allocate(&p, %d, ...)`.",
                 n);
        if (!allocations && __sanitizer_get_ownership(out))
            FAIL("wrong_free",
                 "This memory is not from malloc, and the caller will `free` it: what `new` gives, "
                 "only `delete` may take back.");
        if (!allocations)
            FAIL("dangling", "The caller got an address, and no memory from malloc is behind it.");
        if (allocations > 1)
            FAIL("leak", "malloc was called %zu times, and one address went out.", allocations);
        if (last_bytes != n * sizeof(float))
            FAIL("wrong_size", "%d floats take %zu bytes; malloc was asked for %zu.", n,
                 n * sizeof(float), last_bytes);
        for (int i = 0; i < n; ++i)
            if (memcmp(&out[i], &value, sizeof value) != 0)
                FAIL("wrong_value", "Element %d of %d is %g, not %g.%s", i, n, out[i], value,
                     is_memset(out[i], value) ? " `memset` sets bytes, not floats." : "");
        free(out);
    }
    for (int n : {0, -3}) {
        float mark, *out = &mark;
        allocations = 0;
        int error = allocate(&out, n, 1);
        if (error != 1)
            FAIL("wrong_value", "`allocate(&p, %d, ...)` must return 1, and returned %d.", n,
                 error);
        if (allocations)
            FAIL("leak", "`allocate(&p, %d, ...)` fails and still takes memory.", n);
        if (out)
            FAIL("wrong_value",
                 "After `allocate(&p, %d, ...)` the caller's pointer must be nullptr.", n);
    }
    asks_for_many((1 << 30) + random_int(1, 500));
}
