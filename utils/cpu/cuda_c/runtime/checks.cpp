// The slow checks. The compiler is told to instrument for ThreadSanitizer and for bounds
// (-fsanitize=thread,bounds), but the sanitizers' libraries are not linked: the functions that it
// calls before every access to memory are ours (checks_hooks.cpp). So each access is known with its
// size and its place in the program, and is held against
//   - the allocations and the block's shared variables: out of bounds, use after free, host and
//     device mixed up (here);
//   - what other threads did to the same four bytes since the last barrier: data races
//     (checks_races.cpp), of other streams (checks_operations.cpp), of copies (checks_async.cpp);
//   - what has been written: reads of values that nobody has stored.
// Everything runs on one core here, so none of this needs a lock.
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>
#include "checks.h"

namespace cuda_cpu {
bool checking = true;
bool innermost_is_ours(const void* code);
bool inside_shared_variable(size_t offset, size_t bytes);
bool on_host_stack(const void* p);
bool in_stack(const void* p, const Fiber* f);
__attribute__((weak)) size_t host_heap_bytes(const void*) {
    return 0;
}  // in Python

struct Shadow {
    const char* start;
    size_t bytes;
    Cell* cells;
};
static std::unordered_map<const char*, Shadow>& shadows() {
    static auto* m = new std::unordered_map<const char*, Shadow>;
    return *m;
}
Cell* cells_of(const char* start, size_t bytes) {
    static Shadow last = {};
    if (last.start == start && last.bytes == bytes)
        return last.cells;
    Shadow& s = shadows()[start];
    if (s.bytes != bytes) {
        size_t n = (bytes / 4 + 2) * sizeof(Cell);
        void* p = mmap(nullptr, n, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return nullptr;
        s = {start, bytes, static_cast<Cell*>(p)};
    }
    last = s;
    return s.cells;
}

static bool library_code(
    const void* code) {  // of our own headers (cuBLAS, Thrust ...), which may touch device memory
    static auto* known = new std::unordered_map<const void*, bool>;
    auto i = known->find(code);
    if (i != known->end())
        return i->second;
    return (*known)[code] = innermost_is_ours(code);
}

static void wrong_access(const char* kind, const Use& use, const std::string& what) {
    settle_unwritten();  // an index that nobody wrote may have led here
    report(kind, site_of(use.code), "this %s %s", use.writes ? "writes" : "reads", what.c_str());
    if (in_kernel())
        abandon_grid(cudaErrorIllegalAddress);
}
static void check_alignment(const Use& use) {
    unsigned size = use.size;
    bool whole = size > 1 && size <= 16 && (size & (size - 1)) == 0;
    if (!whole || in_pieces || size_t(use.p) % size == 0 || use.atomic)
        return;
    report(
        "misaligned", site_of(use.code),
        "an access of %u bytes at an address that is no multiple of %u (%p): a vector type such as "
        "float4 needs an aligned address",
        size, size, static_cast<const void*>(use.p));
    abandon_grid(cudaErrorMisalignedAddress);
}

// threadIdx and its like: in a kernels library they are thread-local memory on the heap, perhaps
// next to a NumPy array.
static bool is_index_variable(const char* p) {
    auto within = [p](const void* variable, size_t bytes) {
        return p >= static_cast<const char*>(variable) &&
               p < static_cast<const char*>(variable) + bytes;
    };
    return within(&threadIdx, sizeof threadIdx) || within(&blockIdx, sizeof blockIdx) ||
           within(&blockDim, sizeof blockDim) || within(&gridDim, sizeof gridDim) ||
           within(&hot, sizeof hot);
}

// ---- global memory
static bool holds(const Allocation& a, const Use& use) {
    return a.live && use.p >= a.start && use.p + use.size <= a.start + a.bytes;
}
static void outside_of_allocations(const Allocation* a, const Use& use) {
    if (!in_kernel() && library_code(use.code))
        return;
    std::string what = std::to_string(use.size) + " bytes, " +
                       (a ? describe(use.p, use.size) : "outside of any allocation");
    bool freed = a && !a->live && use.p >= a->start && use.p < a->start + a->bytes;
    wrong_access(freed ? "use-after-free" : "out-of-bounds", use, what);
}
static void host_access(const Allocation& a, const Use& use) {
    if (library_code(use.code)) {
        if (use.writes)
            note_stored(a, use.p, use.size);
        return;
    }
    if (a.kind != cudaMemoryTypeDevice)
        return host_too_early(a, use);
    if (said_before(use.code, 4))
        return;
    report("host-dereferences-device", site_of(use.code),
           "host code %s device memory (%s); copy it with cudaMemcpy first",
           use.writes ? "writes" : "reads", describe(use.p, use.size).c_str());
    fflush(stdout);
    _exit(1);
}
static void global_access(const Use& use) {
    static Allocation* last = nullptr;
    Allocation* a = last && holds(*last, use) ? last : find_allocation(use.p);
    if (!a || !holds(*a, use))
        return outside_of_allocations(a, use);
    last = a;
    if (!in_kernel())
        return host_access(*a, use);
    if (a->kind == cudaMemoryTypeDevice && !may_reach(this_device(), a->device) &&
        report_peer(a, site_of(use.code), use.writes ? "writes" : "reads"))
        abandon_grid(cudaErrorIllegalAddress);
    check_alignment(use);
    note_access(use, false);
    note_device_use(*a, use);
    quick_remembers(*a);
    if (Cell* cells = cells_of(a->start, a->bytes))
        history(cells, size_t(use.p - a->start), use, nullptr);
}
static void buffer_access(const Allocation& a, const Use& use) {
    if (!holds(a, use))
        wrong_access("out-of-bounds", use,
                     std::to_string(use.size) + " bytes, " + describe(use.p, use.size));
    note_access(use, false);
    if (use.writes)
        counts.stored |= 1ull << python_buffer_number(a);
    if (Cell* cells = cells_of(a.start, a.bytes))
        history(cells, size_t(use.p - a.start), use, nullptr);
}

// ---- shared memory
static void outside_of_dynamic(const Use& use, const char* dynamic) {
    size_t given = hot.block->grid->shared;
    if (given == 0) {
        report("missing-shared-size", site_of(use.code),
               "the kernel uses an extern __shared__ array, but the launch in line %d gives "
               "it no bytes: kernel<<<blocks, threads, BYTES>>>",
               hot.block->grid->at.line);
        abandon_grid(cudaErrorIllegalAddress);
    }
    wrong_access("out-of-bounds", use,
                 std::to_string(use.size) + " bytes at byte " +
                     std::to_string(long(use.p - dynamic)) + " of the " + std::to_string(given) +
                     " bytes of dynamic shared memory that the launch gives");
}
static void check_shared_bounds(size_t offset, const Use& use, const char* dynamic) {
    size_t given = hot.block->grid->shared;
    bool in_dynamic = use.p >= dynamic || offset >= hot.shared_bytes - (256u << 10);
    if (in_dynamic && (!given || use.p < dynamic || use.p + use.size > dynamic + given))
        outside_of_dynamic(use, dynamic);
    if (!in_dynamic && !inside_shared_variable(offset, use.size))
        wrong_access("out-of-bounds", use,
                     std::to_string(use.size) + " bytes of shared memory outside of its variables");
}
static void shared_access(size_t offset, const Use& use) {
    check_shared_bounds(offset, use, hot.dynamic_shared);
    check_alignment(use);
    note_access(use, true);
    if (hot.block->async_ready)
        checks_async_access(use.p, use.size, use.writes, use.code);
    if (Cell* cells = cells_of(hot.shared, hot.shared_bytes))
        history(cells, offset, use, hot.block);
}
static void access_in_cluster(const Block& owner, const Use& use) {
    size_t offset = size_t(use.p - owner.memory);
    check_shared_bounds(offset, use, owner.hot.dynamic_shared);
    check_alignment(use);
    note_access(use, true);
    if (Cell* cells = cells_of(owner.memory, owner.hot.shared_bytes))
        history(cells, offset, use, &owner);
}

// ---- memory of the host
static bool is_device_variable(const Use& use) {
    Segment segment = static_segment(use.p);
    if (!segment.bytes)
        return false;
    counts_variable(use);
    bool made_here = use.writes && !use.atomic && library_code(use.code);
    if (made_here)  // a table of our own headers, when it is first used
        return true;
    if (Cell* cells = cells_of(segment.start, segment.bytes))
        history(cells, size_t(use.p - segment.start), use, nullptr, false);
    return true;
}
static void host_memory(const Use& use) {
    if (is_device_variable(use))
        return;
    size_t heap = host_heap_bytes(use.p);
    if ((!heap && !on_host_stack(use.p)) || is_registered(use.p))
        return;
    bool library = hot.block->grid->callers.count;
    if (!library && !site_of(use.code).line)  // last: it asks another program
        return;
    std::string what =
        heap ? "the " + std::to_string(heap) + " bytes that host code has from new or malloc"
             : "the host's stack";
    report("host-pointer-in-kernel", site_of(use.code),
           "the kernel %s memory of the host (%s): a kernel needs memory from cudaMalloc "
           "or cudaMallocManaged, also behind the pointers in a struct",
           use.writes ? "writes" : "reads", what.c_str());
    abandon_grid(cudaErrorIllegalAddress);
}
static bool is_argument(const char* p) {  // copied for each thread
    const char* arguments = static_cast<const char*>(hot.block->grid->work.body);
    return p >= arguments && p < arguments + 4096;
}

void use_memory(const Use& use) {
    const char* p = use.p;
    settle_pending();
    if (counts.absent)
        stores_absent(use);
    learn_and_tell(use);
    if (any_taken && !in_kernel())
        host_uses_taken(use);
    if (in_arena(p))
        return global_access(use);
    if (!in_kernel())
        return;
    size_t offset = size_t(p - hot.shared);
    if (offset < hot.shared_bytes)
        return shared_access(offset, use);
    if (const Block* owner = cluster_owner(*hot.block, p))
        return access_in_cluster(*owner, use);
    const char* end = hot.shared + hot.shared_bytes;
    if (p >= end && p < end + 16384)
        outside_of_dynamic(use, hot.dynamic_shared);
    if (hot.block->async_ready)
        checks_sums(p, use.code);
    if (!hot.fiber || in_stack(p, hot.fiber) || is_index_variable(p))
        return;
    if (Allocation* a = find_python_buffer(p))
        return buffer_access(*a, use);
    if (!is_argument(p))
        host_memory(use);
}

// Global memory, an array of Python's and a device variable, too: there a volatile access is one that others may be at.
bool is_global(const char* p) {
    return in_arena(p) || find_python_buffer(p) || static_segment(p).bytes;
}

void check_atomic(const volatile void* p, unsigned bytes, const void* code) {
    const char* address = const_cast<const char*>(static_cast<const volatile char*>(p));
    bool looks = only_looks();
    use_memory({address, bytes, true, true, true, looks, static_cast<const char*>(code) - 1});
}
}  // namespace cuda_cpu
