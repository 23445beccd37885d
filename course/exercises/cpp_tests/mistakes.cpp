// Tests of exercise c_for_cuda.mistakes; the learner's file is "answer.h".
#include "tests.h"
#include <string.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>
#include "answer.h"

// What is allocated now, by whatever means: the address sanitizer's own count.
extern "C" size_t __sanitizer_get_current_allocated_bytes();

// The answer's result for 250 bytes, all of one value, on a stack without zeros.
static int most_of(unsigned char value) {
    std::vector<unsigned char> bytes(250, value);
    dirty_stack();
    return most(bytes.data(), 250);
}

// Why a result is wrong, as far as bytes of one value tell.
static const char* reason() {
    int got = most_of(200), again = most_of(200);
    if (again == got + 250)
        return " The next call counts on from there: a static array keeps its counts.";
    if (got == 200)
        return " That is the byte itself. How often does it occur?";
    if (got == 249)
        return " Each byte counts, the first and the last too.";
    if (got == 0 || got > 250)
        return " What do fresh counts hold, before the first byte?";
    if (got == 250 && most_of(255) == 0)
        return " A byte can also be 255.";
    return "";
}

void run_tests() {
    for (int n : {1, 7, 300, 5000, 0, 32}) {
        int counts[256] = {}, expected = 0;
        unsigned char* exact = new unsigned char[n];  // its end is watched to the byte
        unsigned char before[5000];
        for (int i = 0; i < n; ++i) {
            exact[i] = before[i] = n == 32 ? 255 : random_int(0, n == 300 ? 3 : 255);
            expected = std::max(expected, ++counts[exact[i]]);
        }
        size_t allocated = __sanitizer_get_current_allocated_bytes();
        dirty_stack();
        int got = most(exact, n);
        size_t left = __sanitizer_get_current_allocated_bytes() - allocated;
        if (memcmp(exact, before, n))
            FAIL("modifies_input", "`a` is only read, and was changed.");
        if (got != expected)
            FAIL("wrong_value", "Of %d bytes the commonest comes %d times, and it gave %d.%s", n,
                 expected, got, reason());
        delete[] exact;
        if (left)
            FAIL("leak", "%zu bytes are still allocated after `most` has returned.", left);
    }
}
