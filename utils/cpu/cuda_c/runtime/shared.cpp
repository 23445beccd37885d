// Where the variables of a kernel lie in the shared memory of its blocks.
#include "scheduler.h"

namespace cuda_cpu {
unsigned shared_capacity() {
    return 227 << 10;
}
static std::vector<std::pair<unsigned, unsigned>>& shared_variables() {
    static auto* v = new std::vector<std::pair<unsigned, unsigned>>;
    return *v;
}
bool inside_shared_variable(size_t offset, size_t bytes) {
    for (auto& v : shared_variables())
        if (offset >= v.first && offset + bytes <= v.first + v.second)
            return true;
    return false;
}
// The variable that this is in.
bool shared_variable_at(size_t offset, size_t& from, size_t& to) {
    for (auto& v : shared_variables()) {
        if (offset < v.first || offset >= v.first + v.second)
            continue;
        from = v.first;
        to = v.first + v.second;
        return true;
    }
    return false;
}
void place_shared(unsigned* place, unsigned bytes, Site at, unsigned aligned) {
    static std::mutex lock;
    static unsigned next = 256;
    std::lock_guard<std::mutex> l(lock);
    Kernel& k = *hot.block->grid->work.kernel;
    if (*place)
        return;
    if (next + bytes + 256 > static_shared_max || k.placed_shared + bytes > 49152) {
        report("too-much-shared-memory", at,
               "the __shared__ variables of kernel `%s` take %u bytes; a block has at most 49152 "
               "bytes of them (more is "
               "possible with extern __shared__ and cudaFuncSetAttribute)",
               k.name, k.placed_shared + bytes);
        abandon_grid(cudaErrorInvalidConfiguration);
    }
    if (aligned > 128)
        next = (next + aligned - 1) / aligned * aligned;
    k.placed_shared += bytes;
    k.static_shared = std::max(k.static_shared, k.placed_shared);
    *place = next;
    if (checking)
        shared_variables().emplace_back(next, bytes);
    next += (bytes + 127) / 128 * 128;
    if (checking)
        next += 128;
}

static std::vector<void (*)(void*)>& dynamic_pointers() {
    static auto* v = new std::vector<void (*)(void*)>;
    return *v;
}
DynamicPointer::DynamicPointer(void (*set)(void*)) {
    dynamic_pointers().push_back(set);
}
void set_dynamic_pointers(void* p) {
    for (auto set : dynamic_pointers())
        set(p);
}

void* dynamic_shared() {
    if (!hot.block)
        return nullptr;
    hot.block->grid->work.kernel->uses_dynamic_shared = true;
    return hot.dynamic_shared;
}
}  // namespace cuda_cpu
