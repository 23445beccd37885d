// Stacks of waiting threads, and blocks with their shared memory: both are kept for the next use.
#include <pthread.h>
#include <sys/mman.h>
#include "scheduler.h"

namespace cuda_cpu {
static const size_t stack_bytes = 256 << 10, page = 4096 * 4;

// Stacks come in slabs: one mapping, and a page between two stacks that nobody may touch.
static constexpr int slab_fibers = 64;
static constexpr size_t slab_bytes = slab_fibers * (stack_bytes + page);

// What no grid uses. All libraries of kernels in a process take from the same (share_stacks):
// Linux allows 65,530 mappings a process, a guard page makes two of them, and Python may hold
// hundreds of libraries.
struct Stacks {
    std::mutex lock;
    std::vector<Fiber*> slabs;  // each the first of its fibers
    int made = 0;  // fibers
};
static Stacks* stacks = new Stacks;  // never destroyed: helpers may outlive main

void* share_stacks(void* others) {
    if (others)
        stacks = static_cast<Stacks*>(others);
    return stacks;
}

struct Worker {
    Fiber* free_fibers = nullptr;
    std::vector<Fiber*> slabs;
    std::vector<Block*> free_blocks;
    int in_use = 0;  // fibers
};
static thread_local Worker worker;

static Fiber* make_slab() {  // with the lock of `stacks`
    char* slab = static_cast<char*>(mmap(nullptr, slab_bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (slab == MAP_FAILED) {
        report("out-of-memory", {"", 0},
               "there is no memory left for the stacks of %d waiting threads", stacks->made);
        std::abort();
    }
    Fiber* all = new Fiber[slab_fibers];
    for (int i = 0; i < slab_fibers; ++i) {
        char* start = slab + size_t(i) * (stack_bytes + page);
        if (stacks->made < 16384)
            mprotect(start, page, PROT_NONE);
        all[i].stack = start + page;
        all[i].size = stack_bytes;
        all[i].number = i;
    }
    stacks->made += slab_fibers;
    return all;
}
static Fiber* take_slab() {
    std::lock_guard<std::mutex> l(stacks->lock);
    if (stacks->slabs.empty())
        return make_slab();
    Fiber* all = stacks->slabs.back();
    stacks->slabs.pop_back();
    return all;
}
void return_slabs() {  // after a grid; one inside another grid's thread keeps them
    Worker& w = worker;
    if (w.in_use)
        return;
    std::lock_guard<std::mutex> l(stacks->lock);
    stacks->slabs.insert(stacks->slabs.end(), w.slabs.rbegin(), w.slabs.rend());
    w.slabs.clear();
    w.free_fibers = nullptr;
}

Fiber* take_fiber() {
    Worker& w = worker;
    if (!w.free_fibers) {
        Fiber* all = take_slab();
        w.slabs.push_back(all);
        for (int i = slab_fibers - 1; i >= 0; --i) {
            all[i].next = w.free_fibers;
            w.free_fibers = &all[i];
        }
    }
    Fiber* f = w.free_fibers;
    w.free_fibers = f->next;
    ++w.in_use;
    return f;
}
void give_fiber(Fiber* f) {
    f->next = worker.free_fibers;
    worker.free_fibers = f;
    --worker.in_use;
}
bool in_stack_guard(const void* p, const Fiber* f) {
    const char* c = static_cast<const char*>(p);
    return f && c >= f->stack - page && c < f->stack + 512;
}
bool in_stack(const void* p, const Fiber* f) {
    return p >= f->stack && p < f->stack + f->size;
}
bool below_stack(const void* sp, const Fiber* f) {  // a frame too big for the stack
    const char* c = static_cast<const char*>(sp);
    return c && f && c < f->stack && c > f->stack - (size_t(1) << 30);
}

Block* take_block() {
    Worker& w = worker;
    if (!w.free_blocks.empty()) {
        Block* b = w.free_blocks.back();
        w.free_blocks.pop_back();
        return b;
    }
    Block* b = new Block();
    size_t bytes = static_shared_max + dynamic_shared_max;
    char* m = static_cast<char*>(mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    mprotect(m + bytes, page, PROT_NONE);
    b->memory = m;
    return b;
}
void give_block(Block* b) {
    worker.free_blocks.push_back(b);
}

bool on_host_stack(
    const void* p) {  // of the thread that launched: all stacks of kernels lie elsewhere
#ifdef __linux__
    static thread_local char *low = nullptr, *high = nullptr;
    if (!high) {
        pthread_attr_t a;
        size_t size = 0;
        void* start = nullptr;
        pthread_getattr_np(pthread_self(), &a);
        pthread_attr_getstack(&a, &start, &size);
        pthread_attr_destroy(&a);
        low = static_cast<char*>(start);
        high = low + size;
    }
    return p >= low && p < high;
#else
    (void)p;
    return false;
#endif
}
}  // namespace cuda_cpu
