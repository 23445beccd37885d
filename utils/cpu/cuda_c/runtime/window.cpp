// Addresses in shared memory as numbers of 32 bits, as PTX has them. The dynamic part ends at 256
// KiB, so that a descriptor of wgmma can hold every address; static variables lie below it. In a
// cluster the upper byte is the block's rank.
#include <stdarg.h>
#include "asynchronous.h"

namespace cuda_cpu {
static const unsigned window = 256 << 10, rank_shift = 24;
thread_local Site engine_at = {"", 0};
bool uses_asm = false;

static unsigned static_bytes(const Block& b) {
    return b.hot.shared_bytes - window;
}
static unsigned dynamic_start(const Block& b) {
    return unsigned(b.hot.dynamic_shared - b.memory) - static_bytes(b);
}
char* shared_at(const Block& b, unsigned offset) {
    if (offset < window && offset >= dynamic_start(b))
        return b.memory + static_bytes(b) + offset;
    return b.memory + (offset < window ? offset : offset - window);
}
unsigned address_of(const Block& b, const char* p) {
    unsigned offset = unsigned(p - b.memory);
    if (offset >= static_bytes(b))
        offset -= static_bytes(b);
    else if (offset >= dynamic_start(b))
        offset += window;
    return offset | (b.cluster ? b.cluster_rank << rank_shift : 0);
}

void refuse(const char* kind, Site at, const char* format, ...) {
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    report(kind, at, "%s", text);
    if (!in_kernel())
        std::exit(1);
    abandon_grid(cudaErrorIllegalInstruction);
}

// Its memory is kept until the whole cluster has ended: the program goes on, as it may on a GPU.
static void tell_cluster_exit(unsigned rank, Site at) {
    if (!hot.block->grid->told_exit.exchange(true))
        report("cluster-exit", at,
               "this uses the shared memory of block %u of the cluster, which has ended: let no "
               "block end before the others are done with its memory (barrier.cluster.arrive and "
               ".wait at its end)",
               rank);
}

InShared find_shared(unsigned long long address, Site at) {
    Block* b = hot.block;
    if (!b)
        refuse("host-code", at, "shared memory is used outside of a kernel");
    unsigned rank = unsigned(address >> rank_shift);
    if (b->cluster) {
        if (rank >= b->cluster->blocks.size())
            refuse("out-of-bounds", at, "address 0x%llx is in no block of the cluster", address);
        b = b->cluster->blocks[rank];
        if (b != hot.block && b->left_cluster)
            tell_cluster_exit(rank, at);
    } else if (address >> 32 || rank) {
        refuse("out-of-bounds", at,
               "0x%llx is no address in shared memory: convert the pointer with "
               "__cvta_generic_to_shared",
               address);
    }
    unsigned offset = address & ((1u << rank_shift) - 1);
    if (offset >= static_bytes(*b) + window)
        refuse("out-of-bounds", at, "address 0x%llx is past the end of shared memory", address);
    return {shared_at(*b, offset), b};
}

namespace ptx {
char* shared_pointer(u64 address, Site at) {
    return find_shared(address, at).p;
}
u32 shared_address(const void* p, Site at) {
    const char* c = static_cast<const char*>(p);
    Block* b = hot.block;
    if (!b)
        refuse("host-code", at, "an address in shared memory is asked for outside of a kernel");
    auto inside = [c](const Block* o) {
        return c >= o->memory && c <= o->memory + o->hot.shared_bytes;
    };
    if (inside(b))
        return address_of(*b, c);
    if (b->cluster)
        for (Block* other : b->cluster->blocks)
            if (inside(other))
                return address_of(*other, c);
    refuse("not-shared-memory", at,
           "this pointer does not point to shared memory, but is converted to an address there");
}
u32 map_address(u64 address, u32 rank, Site at) {
    unsigned blocks = hot.block->cluster ? unsigned(hot.block->cluster->blocks.size()) : 1;
    if (rank >= blocks)
        refuse("out-of-bounds", at, "mapa: the cluster has %u block%s, and none of rank %u", blocks,
               blocks == 1 ? "" : "s", rank);
    return u32(address & ((1u << rank_shift) - 1)) | (hot.block->cluster ? rank << rank_shift : 0);
}
bool in_shared(u64 address) {
    const char* p = reinterpret_cast<const char*>(address);
    return hot.block && p >= hot.shared && p < hot.shared + hot.shared_bytes;
}
u32 dynamic_bytes() {
    return u32(hot.block->grid->shared);
}
u32 processors() {
    return cuda_cpu::processors;
}
u32 processor() {
    return u32(hot.block->linear % cuda_cpu::processors);
}
void misaligned(const char* p, unsigned bytes, Site at) {
    refuse("misaligned", at, "an access of %u bytes at an address that is no multiple of %u (%p)",
           bytes, bytes, static_cast<const void*>(p));
}
}  // namespace ptx
}  // namespace cuda_cpu
