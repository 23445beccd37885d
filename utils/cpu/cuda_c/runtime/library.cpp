// The face of a shared library that Python loads: linked in place of start.cpp. Kernels run on
// Python's own memory, and a mistake becomes a message, never the end of the process.
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include "internal.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace cuda_cpu {
extern bool quiet;
void reset_errors();
void* kernel_named(const char* name, int n_params, Invoker* invoke);
void signal_helpers(int number);
void* share_stacks(void* others);

static std::atomic<bool> interrupted{false};
static pthread_t launching;

// Ctrl-C while a kernel runs: every core leaves it. The threads tell each other by a signal of
// their own, which nothing else uses: a second SIGINT might come late, when Python's own handler is
// back, and interrupt what comes next.
static constexpr int tell = SIGURG;

static void leave_kernel(int) {
    if (!interrupted)
        return;  // late: this is another launch
    stop_requested = true;
    if (in_kernel())
        abandon_grid(cudaErrorLaunchFailure);
}
static void on_interrupt(int) {
    if (!interrupted.exchange(true)) {
        signal_helpers(tell);
        if (!pthread_equal(pthread_self(), launching))
            pthread_kill(launching, tell);
    }
    leave_kernel(tell);
}
}  // namespace cuda_cpu
using namespace cuda_cpu;

struct Buffer {
    void* start;
    size_t bytes;
    const char* name;
};

// The stacks of this library, or those of another one of the process, to be used from now on.
EXPORTED void* cuda_cpu_share_stacks(void* others) {
    return share_stacks(others);
}

// 0: done; 1: a mistake, told in `message`; 2: interrupted; 3: there is no such kernel.
EXPORTED int cuda_cpu_launch(const char* kernel, const unsigned* shape, size_t shared,
                             void** params, int n_params, const Buffer* buffers, int n_buffers,
                             char* message, size_t size) {
    static std::mutex one;
    std::lock_guard<std::mutex> l(one);
    Invoker invoke = nullptr;
    void* f = kernel_named(kernel, n_params, &invoke);
    if (!f)
        return 3;
    quiet = true;
    reset_errors();
    reports = 0;
    last_report().clear();
    forget_said();
    for (int i = 0; i < n_buffers; ++i)
        add_python_buffer(buffers[i].start, buffers[i].bytes, buffers[i].name);
    interrupted = stop_requested = false;
    launching = pthread_self();
    struct sigaction now = {}, before;
    now.sa_handler = on_interrupt;
    now.sa_flags = SA_ONSTACK | SA_NODEFER;
    sigaction(SIGINT, &now, &before);
    now.sa_handler = leave_kernel;
    sigaction(tell, &now, nullptr);  // and stays: it does nothing without an interrupt
    pending = {{shape[0], shape[1], shape[2]},
               {shape[3], shape[4], shape[5]},
               shared,
               nullptr,
               {"", 0},
               false,
               true};
    invoke(f, params);
    sigaction(SIGINT, &before, nullptr);
    cudaError_t e = cudaDeviceSynchronize();
    if (!e)
        e = cudaGetLastError();
    fflush(stdout);
    if (n_buffers)
        forget_python_buffers();
    if (interrupted)
        return 2;
    std::string text = last_report();
    if (e && text.empty())
        text = cudaGetErrorString(e);
    if (!e && reports == 0)
        return 0;
    snprintf(message, size, "%s", text.c_str());
    return 1;
}
