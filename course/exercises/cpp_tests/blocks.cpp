// Tests of exercise c_for_cuda.blocks; the learner's file is "answer.h".
#include "tests.h"
#include "answer.h"

static void expect(const char* text, long long expected, long long got, const char* reason,
                   const char* why) {
    if (got != expected)
        FAIL(reason, "`%s` must be %lld, and is %lld. %s", text, expected, got, why);
}
#define EXPECT(expected, call, reason, why) expect(#call, expected, call, reason, why)

static const char* AROUND_N = "Put parentheses around `n`.";
static const char* AROUND_BLOCK = "Put parentheses around `block`, both times.";
static const char* AROUND_ALL = "Put parentheses around the whole.";

// The names are such as no macro gives to a variable of its own: those come last.
static void numbers(int whole, int ragged) {
    EXPECT(whole / 256, (BLOCKS(whole, 256)), "off_by_one",
           "The elements fill whole blocks: no block more is needed.");
    EXPECT(whole / 256 + 1, (BLOCKS(ragged, 256)), "wrong_value",
           "The last block is not full, and is needed all the same.");
    EXPECT(whole / 256 + 1, (BLOCKS(whole + 1, 256)), "off_by_one",
           "One element more than fills the blocks needs one block more.");
    EXPECT(0, (BLOCKS(0, 256)), "off_by_one", "No elements need no blocks.");
    EXPECT(11, (BLOCKS(1000, 96)), "wrong_value", "A block has any number of threads.");
}

static void precedence(int whole, int ragged, int few) {
    const int many = 1000;
    EXPECT((many - few + 127) / 128, (BLOCKS(many - few, 128)), "precedence", AROUND_N);
    EXPECT((many + 63 + few) / (64 + few), (BLOCKS(many, 64 + few)), "precedence", AROUND_BLOCK);
    EXPECT(whole / 256 + 1, (BLOCKS(few ? ragged : whole, 256)), "precedence", AROUND_N);
    EXPECT(((ragged | 1) + 63) / 64, (BLOCKS(ragged | 1, 64)), "precedence", AROUND_N);
    EXPECT((many + 63) / 64, (BLOCKS(many, few ? 64 : 32)), "precedence", AROUND_BLOCK);
    EXPECT((many + 63) / 64, (BLOCKS(many, 1 << 6)), "precedence", AROUND_BLOCK);
    EXPECT(2 * ((whole + 255) / 256), 2 * BLOCKS(whole, 256), "precedence", AROUND_ALL);
    EXPECT(10000 / ((ragged + 255) / 256), 10000 / BLOCKS(ragged, 256), "precedence", AROUND_ALL);
}

// With the macro on the left and on the right of operators of each rank.
static void in_expressions(int whole, int ragged) {
    const long long blocks = (ragged + 255) / 256;
    EXPECT(blocks * 2, BLOCKS(ragged, 256) * 2, "precedence", AROUND_ALL);
    EXPECT(blocks % 3, BLOCKS(ragged, 256) % 3, "precedence", AROUND_ALL);
    EXPECT(blocks / 2, BLOCKS(ragged, 256) / 2, "precedence", AROUND_ALL);
    EXPECT(1000 % blocks, 1000 % BLOCKS(ragged, 256), "precedence", AROUND_ALL);
    EXPECT(1000 - blocks, 1000 - BLOCKS(ragged, 256), "precedence", AROUND_ALL);
    EXPECT(blocks << 1, BLOCKS(ragged, 256) << 1, "precedence", AROUND_ALL);
    EXPECT(1, BLOCKS(whole, 256) == whole / 256, "precedence", AROUND_ALL);
    EXPECT(1, whole / 256 == BLOCKS(whole, 256), "precedence", AROUND_ALL);
    EXPECT(blocks & 6, BLOCKS(ragged, 256) & 6, "precedence", AROUND_ALL);
    EXPECT(7, BLOCKS(ragged, 256) ? 7 : 9, "precedence", AROUND_ALL);
    EXPECT(7, whole ? 7 : BLOCKS(ragged, 256), "precedence", AROUND_ALL);
}

static void types() {
    EXPECT(16777217, (BLOCKS(16777217, 1)), "wrong_value", "A float cannot hold every int.");
    EXPECT(19531250, (BLOCKS(5000000000LL, 256)), "wrong_value", "n may be a long long.");
    EXPECT(5000000000LL, (BLOCKS(5000000000LL, 1)), "wrong_value",
           "There may be more blocks than an int holds.");
}

#define NAMED(name)                                                              \
    {                                                                            \
        const char* why = "The macro has a variable `" #name "` of its own.";    \
        const int name = 1000;                                                   \
        expect("BLOCKS(" #name ", 256)", 4, BLOCKS(name, 256), "hidden", why);   \
    }                                                                            \
    {                                                                            \
        const char* why = "The macro has a variable `" #name "` of its own.";    \
        const int name = 256;                                                    \
        expect("BLOCKS(1000, " #name ")", 4, BLOCKS(1000, name), "hidden", why); \
    }

#define NAMES(f)                                                                                \
    f(a) f(b) f(n) f(m) f(k) f(x) f(y) f(t) f(q) f(r) f(N) f(B) f(n_) f(b_) f(_n) f(_b) f(size) \
        f(block) f(block_) f(_block) f(bs) f(count) f(total) f(result) f(blocks) f(tmp) f(temp) \
            f(value) f(rest) f(threads) f(elements)

static void names() {
    NAMES(NAMED)
}

void run_tests() {
    int whole = 256 * random_int(3, 90);
    int ragged = whole + random_int(1, 255);
    numbers(whole, ragged);
    precedence(whole, ragged, random_int(100, 200));
    in_expressions(whole, ragged);
    types();
    names();
}
