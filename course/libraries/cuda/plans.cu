// A plan made once, and one made in every turn of the loop: cuFFT. plans [n] [time]
#include <chrono>
#include <cufft.h>
#include "helpers.cuh"

constexpr int TURNS = 20;

// Wall clock of a turn in µs, the GPU's work included.
template <typename Work>
double microseconds(Work work) {
    CHECK(cudaDeviceSynchronize());
    const auto begin = std::chrono::steady_clock::now();
    for (int turn = 0; turn < TURNS; turn++)
        work();
    CHECK(cudaDeviceSynchronize());
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    return took.count() / TURNS;
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int n = given.number(1, 64);
    const std::vector<float> host = random_floats(2 * n, 1);
    Device<float> x(host);
    const auto data = reinterpret_cast<cufftComplex*>(x.data);

    cufftHandle plan;
    CHECK(cufftPlan1d(&plan, n, CUFFT_C2C, 1));
    const auto with_plan = [&] { CHECK(cufftExecC2C(plan, data, data, CUFFT_FORWARD)); };
    const auto plan_in_loop = [&] {
        cufftHandle again;
        CHECK(cufftPlan1d(&again, n, CUFFT_C2C, 1));
        CHECK(cufftExecC2C(again, data, data, CUFFT_INVERSE));  // back, so that both are checked
        CHECK(cufftDestroy(again));
    };
    with_plan();
    plan_in_loop();
    std::vector<double> right(host.begin(), host.end());
    for (double& value : right)
        value *= n;
    require("both plans, there and back", largest_error(x.host(), right), 1e-5 * n);
    if (argc > 2) {
        std::printf("TIME plan_once %.3f 0\n", microseconds(with_plan) / 1e3);
        std::printf("TIME plan_in_loop %.3f 0\n", microseconds(plan_in_loop) / 1e3);
    }
    CHECK(cufftDestroy(plan));
}
