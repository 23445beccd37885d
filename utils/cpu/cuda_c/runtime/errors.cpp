// What has gone wrong, and who has been told: the last error of each host thread, and the one of a
// kernel that failed, after which nothing runs any more.
#include "api.h"

namespace cuda_cpu {
static thread_local cudaError_t last_error = cudaSuccess;
static std::atomic<int> sticky{0};  // of a kernel that failed: nothing runs any more
static std::atomic<bool> told{
    false};  // the program has waited for the device since, and so it knows
static Site failed_launch = {"", 0};  // a launch that failed and that nobody has asked about
static cudaError_t failed_launch_error = cudaSuccess;
static std::string failed_kernel;

cudaError_t fail(cudaError_t e) {
    if (e)
        last_error = e;
    return e;
}
static thread_local bool in_callback = false;  // of a stream: no call is allowed there
bool callback_running() {
    return in_callback;
}
Callback::Callback() {
    in_callback = true;
}
Callback::~Callback() {
    in_callback = false;
}
bool broken() {
    return !in_kernel() && sticky.load(std::memory_order_relaxed);
}
cudaError_t kernel_error() {
    return cudaError_t(sticky.load());
}
cudaError_t sticky_error() {
    if (in_callback)
        return fail(cudaErrorNotPermitted);
    return broken() && told ? fail(cudaError_t(sticky.load())) : cudaSuccess;
}
cudaError_t wait_for_device() {
    if (broken())
        told = true;
    return sticky_error();
}
void set_sticky(cudaError_t e) {
    int none = 0;
    sticky.compare_exchange_strong(none, int(e));
}
void reset_errors() {
    sticky = 0;
    told = false;
    last_error = cudaSuccess;
}
void asked() {
    failed_launch_error = cudaSuccess;
}

void launch_failed(cudaError_t e, Site at, const char* kernel) {
    fail(e);
    failed_launch = at;
    failed_launch_error = e;
    failed_kernel = kernel;
}

void on_exit_checks() {
    if (failed_launch_error)
        report("unchecked-launch", failed_launch,
               "the launch of kernel `%s` failed and nobody asked: \"%s\". The kernel did not "
               "run; check cudaGetLastError() after each launch",
               failed_kernel.c_str(), cudaGetErrorString(failed_launch_error));
}

cudaError_t with_errors_apart(const std::function<void()>& work) {
    cudaError_t before = last_error;
    last_error = cudaSuccess;
    work();
    cudaError_t e = last_error;
    asked();  // the caller has the code
    if (!e)
        last_error = before;
    return e;
}
}  // namespace cuda_cpu

using namespace cuda_cpu;

const char* cudaGetErrorName(cudaError_t e) {
    switch (e) {
#define X(name, value, text) \
    case name:               \
        return #name;
#include "../include/detail/errors.inc"
#undef X
    }
    return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t e) {
    switch (e) {
#define X(name, value, text) \
    case name:               \
        return text;
#include "../include/detail/errors.inc"
#undef X
    }
    return "unrecognized error code";
}
// As in CUDA 13: every call after a kernel's fault returns its error again, but each report is
// handed out once.
cudaError_t cudaGetLastError() {
    asked();
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}
cudaError_t cudaPeekAtLastError() {
    asked();
    return last_error;
}
