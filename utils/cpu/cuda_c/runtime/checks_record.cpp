// The accesses, barriers and fences of a launch, one by one in the order of the run, for whoever
// asked before it (utils/tracer): what each thread did, where, to which bytes.
#include <string.h>
#include "checks.h"

namespace cuda_cpu {
// As utils/tracer/record.py numbers them.
enum Kind {
    is_read,
    is_write,
    is_atomic,
    is_barrier = 6,
    is_syncwarp = 8,
    is_meeting,
    is_fence,
    is_begun,
    is_arrived
};
struct Recorded {
    long long kind, thread, code, line, shared, address, bytes;
    unsigned long long value;  // of what was read, up to 8 bytes
};
static size_t most_events = 0;  // 0: nobody asks
bool recording = false;
static std::vector<Recorded>& events() {
    static auto* v = new std::vector<Recorded>;
    return *v;
}
static void note(Recorded event, unsigned tid) {
    const dim3& block = hot.block->grid->block;
    event.thread = (long long)(hot.block->linear * block.x * block.y * block.z + tid);
    if (events().size() < most_events)
        events().push_back(event);
}
void record_begin_grid() {
    events().clear();
}
void record_access(const Use& use, bool shared) {
    if (!most_events)
        return;
    Kind kind = use.atomic ? is_atomic : use.writes ? is_write : is_read;
    Recorded event = {kind, 0, (long long)use.code, 0, 0, (long long)use.p, use.size, 0};
    size_t offset = size_t(use.p - hot.shared);
    if (shared && offset < hot.shared_bytes) {  // else it is another block's, of the cluster
        event.shared = 1;
        event.address = (long long)offset;
    }
    if (!use.writes)
        memcpy(&event.value, use.p, use.size < 8 ? use.size : 8);
    note(event, hot.tid);
}
void record_barrier(Site at) {
    if (most_events)
        note({is_barrier, 0, 0, at.line, 0, 0, 0, 0}, hot.tid);
}
void record_met(unsigned warp, unsigned lanes, bool for_order, Site at) {
    Kind kind = for_order ? is_syncwarp : is_meeting;
    for (unsigned lane = 0; most_events && lane < 32; ++lane)
        if (lanes >> lane & 1)
            note({kind, 0, 0, at.line, 0, 0, 0, 0}, warp * 32 + lane);
}
void record_flight(const Block& to, const char* p, size_t bytes, Site at, bool begins,
                   unsigned tid) {
    if (events().size() >= most_events)
        return;
    const dim3& block = to.grid->block;
    size_t threads = block.x * block.y * block.z;
    const Hot& own = &to == hot.block ? hot : to.hot;
    long long thread = (long long)(to.linear * threads + tid);
    events().push_back({begins ? is_begun : is_arrived, thread, 0, at.line, 1,
                        (long long)(p - own.shared), (long long)bytes, 0});
}
void record_fence() {
    if (most_events)
        note({is_fence, 0, 0, 0, 0, 0, 0, 0}, hot.tid);
}
}  // namespace cuda_cpu

// ---- what Python asks
#define EXPORTED extern "C" __attribute__((visibility("default")))
// From now on up to so many events of each launch are kept; 0: none.
EXPORTED void cuda_cpu_record(size_t most) {
    cuda_cpu::most_events = most;
    cuda_cpu::recording = most != 0;
    cuda_cpu::events().clear();
}
// Those of the last launch, and how many.
EXPORTED const cuda_cpu::Recorded* cuda_cpu_recorded(size_t* count) {
    *count = cuda_cpu::events().size();
    return cuda_cpu::events().data();
}
// The learner's line that a piece of code belongs to; 0: none.
EXPORTED int cuda_cpu_line(const void* code) {
    return cuda_cpu::site_of(code).line;
}
