// How mistakes are told: "file:line: error: what happened [kind]", then kernel, block and thread.
// Also what kernels print, and the signal handler that turns a fault into such a message and into
// the error code that a GPU gives.
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>
#include "asynchronous.h"

namespace cuda_cpu {
std::atomic<int> reports{0};
static std::mutex lock;
std::string& last_report() {
    static auto* s = new std::string;
    return *s;
}
bool quiet = false;  // reports are handed to Python and not printed

static std::string where_text(Site at) {
    char text[1200];
    if (at.line > 0)
        snprintf(text, sizeof text, "%s:%d: ", at.file, at.line);
    else
        text[0] = 0;
    return text;
}
static std::string context() {
    if (!in_kernel())
        return "";
    const Callers& callers = hot.block->grid->callers;
    if (callers.count)
        return "\n    in the work of " + library_call(callers).name;
    char text[300];
    std::string device = device_count() > 1 ? " on device " + std::to_string(this_device()) : "";
    snprintf(text, sizeof text, "\n    in kernel `%s`%s, block (%u,%u,%u), thread (%u,%u,%u)",
             hot.block->grid->work.kernel->name, device.c_str(), blockIdx.x, blockIdx.y, blockIdx.z,
             threadIdx.x, threadIdx.y, threadIdx.z);
    return text;
}
static std::string formatted(const char* format, va_list args) {
    char text[4096];
    vsnprintf(text, sizeof text, format, args);
    return text;
}
static void emit(const std::string& s) {
    std::lock_guard<std::mutex> l(lock);
    last_report() += s;
    if (quiet)
        return;
    fflush(stdout);
    (void)!write(2, s.data(), s.size());
}
void report(const char* kind, Site at, const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::string text = formatted(format, args);
    va_end(args);
    if (!at.line && in_kernel() && hot.block->grid->callers.count)
        at = library_call(hot.block->grid->callers).at;
    int n = reports.fetch_add(1);
    if (n < 20)
        emit(where_text(at) + "error: " + text + " [" + kind + "]" + context() + "\n");
    if (n == 20)
        emit("(further mistakes are not shown)\n");
}
void note(Site at, const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::string text = formatted(format, args);
    va_end(args);
    emit(where_text(at) + "note: " + text + "\n");
}

// ---- printf in kernels
static std::string& kept() {
    static auto* s = new std::string;
    return *s;
}
void keep_printed(const std::string& text) {
    std::lock_guard<std::mutex> l(lock);
    kept() += text;
}
void flush_printed() {
    std::string text;
    {
        std::lock_guard<std::mutex> l(lock);
        text.swap(kept());
    }
    if (!text.empty())
        fwrite(text.data(), 1, text.size(), stdout);
    if (!quiet)
        fflush(stdout);
}
int device_printf(const char* format, ...) {
    va_list args;
    va_start(args, format);
    int n;
    if (!in_kernel()) {
        n = vprintf(format, args);
    } else {
        char text[2048];
        va_list again;
        va_copy(again, args);
        n = vsnprintf(text, sizeof text, format, args);
        std::string& out = hot.block->printed;
        if (n >= int(sizeof text)) {
            std::string more(size_t(n) + 1, 0);
            vsnprintf(&more[0], more.size(), format, again);
            out.append(more.data(), size_t(n));
        } else if (n > 0) {
            out.append(text, size_t(n));
        }
        va_end(again);
        n = 0;  // a kernel's printf returns the number of its arguments
        for (const char* c = format; *c; ++c)
            if (*c == '%' && *++c != '%')
                ++n;
    }
    va_end(args);
    return n;
}

void assert_failed(const char* expression, const char* file, unsigned line, const char* function) {
    std::string f = function;
    size_t lambda = f.find("::<lambda");
    if (lambda != std::string::npos)
        f.resize(lambda);
    if (!in_kernel()) {
        fflush(stdout);
        fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, f.c_str(), expression);
        abort();
    }
    char text[2048];
    snprintf(text, sizeof text,
             "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
             line, f.c_str(), blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
             threadIdx.z, expression);
    emit(text);
    abandon_grid(cudaErrorAssert);
}
void trap(Site at) {
    note(at, "__trap() was called in block (%u,%u,%u), thread (%u,%u,%u)", blockIdx.x, blockIdx.y,
         blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    if (in_kernel())
        abandon_grid(cudaErrorLaunchFailure);
    abort();
}

// ---- faults
bool in_stack_guard(const void* p, const Fiber* f);
bool below_stack(const void* sp, const Fiber* f);
bool in_device_arena(const void* p);

// Whether the access was one to another device's memory without permission; then it is told.
bool report_peer(const Allocation* a, Site at, const char* verb) {
    int device = this_device();
    if (a->kind != cudaMemoryTypeDevice || may_reach(device, a->device))
        return false;
    report("peer-access", at,
           "a kernel of device %d %s memory of device %d (from cudaMalloc in line %d), and has no "
           "permission: cudaSetDevice(%d), then cudaDeviceEnablePeerAccess(%d, 0)",
           device, verb, a->device, a->at.line, device, a->device);
    return true;
}
static void explain_fault(int signal, int reason, void* address, void* code, void* stack) {
    const char* c = static_cast<const char*>(address);
    Site at = engine_at.line ? engine_at : site_of(code);
    if (signal == SIGFPE) {
        report("division-by-zero", at,
               "an integer is divided by zero (a GPU goes on with a meaningless value)");
        return;
    }
#if defined(__linux__) && defined(__x86_64__)
    if (signal == SIGSEGV && reason == SI_KERNEL) {  // the processor does not say which address
        report("misaligned", at,
               "access to an address that is not aligned as its type needs (a float4 needs a "
               "multiple of 16), or "
               "that is no address at all");
        return;
    }
#endif
    (void)reason;
    if (in_kernel()) {
        Grid& g = *hot.block->grid;
        const char* end = hot.shared + hot.shared_bytes;
        if (in_stack_guard(address, hot.fiber) || below_stack(stack, hot.fiber)) {
            report(
                "stack-overflow", at,
                "this thread's stack is full: endless recursion, or local arrays that are too big");
        } else if (c >= end && c < end + 16384 && g.shared == 0) {
            report(
                "missing-shared-size", at,
                "the kernel uses an extern __shared__ array, but the launch in line %d gives it no "
                "bytes: kernel<<<blocks, threads, BYTES>>>",
                g.at.line);
        } else if (c >= end && c < end + 16384) {
            report("out-of-bounds", at,
                   "access past the end of the %zu bytes of dynamic shared memory that the launch "
                   "in line %d "
                   "gives",
                   g.shared, g.at.line);
        } else if (in_arena(address)) {
            Allocation* a = find_allocation(address);
            if (a && !a->live)
                report("use-after-free", at, "access to %s (in line %d)",
                       describe(address, 1).c_str(), a->freed_at.line);
            else if (a && c >= a->start && c < a->start + a->bytes && report_peer(a, at, "uses"))
                ;
            else
                report(
                    "out-of-bounds", at, "access %s",
                    a ? describe(address, 1).c_str() : "far outside of any cudaMalloc'ed memory");
        } else if (size_t(address) < 65536) {
            report("null-pointer", at,
                   "access through a null pointer (address 0x%zx): was the memory allocated?",
                   size_t(address));
        } else {
            report("out-of-bounds", at,
                   "access to address %p, where there is no memory: a wild pointer or an index far "
                   "out of range",
                   address);
        }
        return;
    }
    if (in_device_arena(address)) {
        Allocation* a = find_allocation(address);
        if (a && a->live && c >= a->start && c < a->start + a->bytes)
            report("host-dereferences-device", at,
                   "host code reads or writes device memory (%s); copy it with cudaMemcpy first",
                   describe(address, 1).c_str());
        else
            report("host-dereferences-device", at, "host code reads or writes %s",
                   a ? describe(address, 1).c_str() : "memory of the device");
    } else if (in_arena(address)) {
        Allocation* a = find_allocation(address);
        report(a && !a->live ? "use-after-free" : "out-of-bounds", at,
               "host code reads or writes %s",
               a ? describe(address, 1).c_str() : "outside of any allocation");
    } else {
        report("crash", at,
               "host code %s address %p: a null or wild pointer, or an array that is too small",
               signal == SIGBUS ? "cannot reach" : "reads or writes", address);
    }
}

static struct sigaction before[32];
static void pc_of(void* context, void** pc, void** sp) {
    (void)sp;
#if defined(__linux__) && defined(__x86_64__)
    *pc = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[16]);
    *sp = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[15]);
#elif defined(__linux__) && defined(__aarch64__)
    *pc = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
    *sp = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.sp);
#elif defined(__APPLE__) && defined(__aarch64__)
    *pc = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext->__ss.__pc);
#elif defined(__APPLE__)
    *pc = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext->__ss.__rip);
#else
    *pc = nullptr;
#endif
}

static void on_fault(int number, siginfo_t* info, void* context) {
    void *pc = nullptr, *sp = nullptr;
    pc_of(context, &pc, &sp);
    if (!in_kernel() && quiet && !in_arena(info->si_addr)) {  // in Python, and not ours
        struct sigaction& old = before[number];
        if (old.sa_flags & SA_SIGINFO && old.sa_sigaction) {
            old.sa_sigaction(number, info, context);
        } else {
            sigaction(number, &old, nullptr);
            raise(number);
        }
        return;
    }
    static thread_local bool explaining = false;
    if (explaining) {
        signal(number, SIG_DFL);
        raise(number);
    }
    explaining = true;
    explain_fault(number, info->si_code, info->si_addr, pc, sp);
    explaining = false;
    if (in_kernel()) {
        bool kernel_says = number == SIGSEGV && info->si_addr == nullptr && info->si_code > 3;
        abandon_grid(number == SIGFPE ? cudaErrorLaunchFailure
                     : kernel_says    ? cudaErrorMisalignedAddress
                                      : cudaErrorIllegalAddress);
    }
    fflush(stdout);
    struct sigaction plain = {};
    plain.sa_handler = SIG_DFL;
    sigaction(number, &plain, nullptr);
    raise(number);
}

void catch_signals() {
    static thread_local bool done = false;
    if (done)
        return;
    done = true;
    stack_t s = {};
    s.ss_size = 256 << 10;
    s.ss_sp = mmap(nullptr, s.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&s, nullptr);
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction a = {};
        a.sa_sigaction = on_fault;
        a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        for (int n : {SIGSEGV, SIGBUS, SIGFPE})
            sigaction(n, &a, &before[n]);
    });
}

// ---- end of a program
void at_exit() {
    std::string lost;
    {
        std::lock_guard<std::mutex> l(lock);
        lost.swap(kept());
    }
    if (!lost.empty())
        note({"", 0},
             "a kernel printed something, but the program ended without cudaDeviceSynchronize(): "
             "on a GPU it is lost "
             "[printf-without-synchronize]. It was:\n%s",
             lost.c_str());
    on_exit_checks();
    int n = reports.load();
    if (n == 0)
        report_leaks();
    if (checking && n) {
        fflush(stdout);
        emit(std::to_string(n) + (n == 1 ? " mistake was" : " mistakes were") + " found.\n");
        _exit(1);
    }
}
}  // namespace cuda_cpu
