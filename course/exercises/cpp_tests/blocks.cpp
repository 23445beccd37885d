// Tests of exercise c_for_cuda.blocks; the learner's file is "answer.h".
#include "tests.h"
#include "answer.h"

static void expect(const char* text, int expected, int got, const char* reason, const char* why) {
    if (got != expected)
        FAIL(reason, "`%s` must be %d, and is %d. %s", text, expected, got, why);
}
#define EXPECT(expected, call, reason, why) expect(#call, expected, call, reason, why)

void run_tests() {
    int n = 256 * random_int(3, 90), m = n + random_int(1, 255), a = 1000, b = random_int(100, 200);
    EXPECT(n / 256, (BLOCKS(n, 256)), "off_by_one",
           "The elements fill whole blocks: no block more is needed.");
    EXPECT(n / 256 + 1, (BLOCKS(m, 256)), "wrong_value",
           "The last block is not full, and is needed all the same.");
    EXPECT(n / 256 + 1, (BLOCKS(n + 1, 256)), "off_by_one",
           "One element more than fills the blocks needs one block more.");
    EXPECT(0, (BLOCKS(0, 256)), "off_by_one", "No elements need no blocks.");
    EXPECT((a - b + 127) / 128, (BLOCKS(a - b, 128)), "precedence", "Put parentheses around `n`.");
    EXPECT((a + 64 + b - 1) / (64 + b), (BLOCKS(a, 64 + b)), "precedence",
           "Put parentheses around `block`, both times.");
    EXPECT((b ? n : m) / 256, (BLOCKS(b ? n : m, 256)), "precedence",
           "Put parentheses around `n`.");
    EXPECT(2 * ((n + 255) / 256), 2 * BLOCKS(n, 256), "precedence",
           "Put parentheses around the whole.");
    EXPECT(10000 / ((m + 255) / 256), 10000 / BLOCKS(m, 256), "precedence",
           "Put parentheses around the whole.");
}
