// Tests of exercise c_for_cuda.mean_max; the learner's file is "answer.h".
#include "tests.h"
#include "answer.h"

static int values[70000];

// What comes of adding up in a float, each value divided by `share` first.
static float in_floats(const int* a, int n, int share) {
    float sum = 0;
    for (int i = 0; i < n; ++i)
        sum += (float)a[i] / share;
    return sum;
}

void run_tests() {
    for (int n : {1, 2, 7, 300, 33, 5, 3, 4, 70000}) {
        long long sum = 0;
        int top = -2147483647 - 1, top_at = 0;
        for (int i = 0; i < n; ++i) {
            int& v = values[i];
            v = n == 7 ? random_int(-90, -10) : random_int(-50, 50);
            if (n == 3)
                v += 2000000000;
            if (n == 2)
                v = sum ? -1999999997 : 2000000000;  // a float would lose the 3
            if (n == 4)
                v = -2147483647 - 1;  // nothing is less
            sum += v;
            if (v > top)
                top = v, top_at = i;
        }
        if (n == 5 || n == 33) {  // the largest is the last, or the first
            const int end = n == 5 ? n - 1 : 0;
            values[top_at] = values[end];
            values[end] = top;
        }
        int* exact = new int[n];  // its end is watched to the byte
        for (int i = 0; i < n; ++i)
            exact[i] = values[i];
        float mean = __builtin_nanf("");
        int largest = 2147483647;  // above all values, so that it must be set
        dirty_stack();
        mean_max(exact, n, &mean, &largest);
        for (int i = 0; i < n; ++i)
            if (exact[i] != values[i])
                FAIL("modifies_input", "a[%d] was %d and is now %d.", i, values[i], exact[i]);
        float again = 0;
        if (mean != mean)
            mean_max(exact, n, &again, &largest);
        delete[] exact;
        if (again != 0)
            FAIL("wrong_value", "`mean` is added to what the caller left there. Set it first.");
        if (mean != mean)
            FAIL("unwritten", "`mean` never arrived at the caller. `*mean = ...` writes there.");
        if (largest == 2147483647)
            FAIL("unwritten",
                 "`largest` never arrived at the caller. `*largest = ...` writes there.");
        const char* why = "";
        if (largest == 0)
            why = " All of them may be negative.";
        else if (largest == (int)(float)top)
            why = " A float keeps the first 24 bits of a number: keep the largest in an int.";
        if (largest != top)
            FAIL("wrong_value", "The largest of %d values is %d, and it gave %d.%s", n, top,
                 largest, why);
        float expected = (float)sum / n;
        why = "";
        if (mean == sum / n)
            why = " int / int is an int: cast before dividing.";
        else if (mean == in_floats(values, n, 1) / n || mean == in_floats(values, n, n))
            why =
                " A float keeps the first 24 bits of each sum: add up in a long long, or in a "
                "double.";
        else if (mean == (float)(sum - values[0]) / n || mean == (float)(sum - values[n - 1]) / n)
            why = " Each value counts, a[0] and the last one too.";
        if (std::abs(mean - expected) > 1e-4f + 1e-6f * std::abs(expected))
            FAIL("wrong_value", "The mean of %d values with the sum %lld is %g, and it gave %g.%s",
                 n, sum, expected, mean, why);
    }
}
