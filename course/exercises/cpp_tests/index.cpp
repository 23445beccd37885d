// Tests of exercise c_for_cuda.index; the learner's file is "answer.h".
#include "tests.h"
#include "answer.h"

static void expect(int z, int y, int x, int height, int width, const char* reason,
                   const char* why) {
    size_t expected = ((size_t)z * (size_t)height + (size_t)y) * (size_t)width + (size_t)x;
    size_t got = index(z, y, x, height, width);
    if (got != expected)
        FAIL(reason, "`index(%d, %d, %d, height %d, width %d)` must be %zu, and is %zu. %s", z, y,
             x, height, width, expected, got, why);
}

void run_tests() {
    static_assert(sizeof(index(0, 0, 0, 1, 1)) == sizeof(size_t), "index must return a size_t");
    expect(0, 0, 0, 5, 9, "wrong_value", "The first element stands at 0.");
    expect(0, 0, 4, 5, 9, "wrong_value", "x steps by one element.");
    expect(0, 2, 3, 8, 8, "wrong_value", "y steps over a whole row.");
    expect(3, 0, 0, 8, 8, "wrong_value", "z steps over a whole picture.");
    expect(0, 2, 3, 5, 9, "only_square", "A row has `width` elements.");
    expect(2, 4, 3, 5, 9, "only_square", "A picture has `height * width` elements.");
    for (int i = 0; i < 200; ++i) {
        int height = random_int(1, 50), width = random_int(1, 50);
        expect(random_int(0, 20), random_int(0, height - 1), random_int(0, width - 1), height,
               width, "wrong_value", "");
    }
    expect(random_int(1000, 2000), 3000, 3000, 3001, 3001, "overflow",
           "One factor must be a size_t before it is multiplied.");
    expect(random_int(70000, 80000), 9, 9, 40000, 10, "overflow",
           "`z * height` alone may be more than an int can count.");
    expect(random_int(1, 9), 9, 9, 65536, 65536, "overflow",
           "A picture alone may have more elements than an unsigned counts.");
    expect(0, random_int(60000, 64000), 60000, 65000, 65000, "overflow",
           "One factor must be a size_t before it is multiplied.");
    expect(1, random_int(60000, 64000), 60000, 65000, 80000, "overflow",
           "`y * width` alone may be more than an unsigned can count.");
    for (int i = 0; i < 4; ++i)
        expect(random_int(1 << 28, 1 << 29), random_int(0, 99999), random_int(0, 99998), 100000,
               99999, "overflow",
               "A double counts whole numbers up to 2^53 only: multiply whole numbers.");
}
