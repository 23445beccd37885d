// Tests of exercise c_for_cuda.mean_max; the learner's file is "answer.h".
#include "tests.h"
#include "answer.h"
#include <cmath>
#include <vector>

void run_tests() {
    for (int n : {1, 2, 7, 100, 33, 5, 3}) {
        std::vector<int> a(n);
        long long sum = 0;
        int top = -2147483647;
        for (int& v : a) {
            v = n == 7 ? random_int(-90, -10) : random_int(-50, 50);
            if (n == 3)
                v += 2000000000;
            sum += v;
            if (v > top)
                top = v;
        }
        int* exact = new int[n];  // its end is watched to the byte
        for (int i = 0; i < n; ++i)
            exact[i] = a[i];
        float mean = NAN;
        int largest = 2147483647;  // above all values, so that it must be set
        mean_max(exact, n, &mean, &largest);
        for (int i = 0; i < n; ++i)
            if (exact[i] != a[i])
                FAIL("modifies_input", "a[%d] was %d and is now %d.", i, a[i], exact[i]);
        delete[] exact;
        if (std::isnan(mean))
            FAIL("unwritten", "`mean` never arrived at the caller. `*mean = ...` writes there.");
        if (largest == 2147483647)
            FAIL("unwritten",
                 "`largest` never arrived at the caller. `*largest = ...` writes there.");
        if (largest != top)
            FAIL("wrong_value", "The largest of %d values is %d, and it gave %d.%s", n, top,
                 largest, largest == 0 ? " All of them may be negative." : "");
        float expected = (float)sum / n;
        if (std::fabs(mean - expected) > 1e-4f + 1e-6f * std::fabs(expected))
            FAIL("wrong_value", "The mean of %d values with the sum %lld is %g, and it gave %g.%s",
                 n, sum, expected, mean,
                 mean == sum / n ? " int / int is an int: cast before dividing." : "");
    }
}
