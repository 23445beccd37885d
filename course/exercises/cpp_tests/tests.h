// In front of every test program. FAIL's reason is a key of REASONS in course/exercises/model.py.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#define FAIL(reason, ...)             \
    do {                              \
        printf("\nFAIL %s ", reason); \
        printf(__VA_ARGS__);          \
        printf("\n");                 \
        exit(1);                      \
    } while (0)

static uint64_t random_state;
static int random_int(int low, int high)  // low to high, both included
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return low + (int)((random_state >> 33) % (uint64_t)(high - low + 1));
}

// Leave no zeros where the next function's variables will lie: one that nobody sets is then seen.
__attribute__((noinline, no_sanitize_address)) static void dirty_stack() {
    static unsigned char pattern = 0x7e;
    pattern ^= 0x80;  // a large number below zero, then one above
    volatile unsigned char stack[4096];
    for (unsigned i = 0; i < sizeof stack; ++i)
        stack[i] = pattern;
}

void run_tests();
int main(int, char** argv) {
    random_state = strtoull(argv[1], nullptr, 10);
    run_tests();
    printf("\nPASS\n");
}
