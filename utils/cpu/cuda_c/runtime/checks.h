// What the slow checks know of each four bytes of memory: checks.cpp, checks_async.cpp.
#pragma once
#include "asynchronous.h"

namespace cuda_cpu {
// One access. Two of them are ordered when they belong to different launches, when the block's
// barrier or a meeting of their warp lies between, or the grid's barrier, or a fence that publishes
// the first (by its own thread, or by one that it has met since), if the other block has learnt of
// that fence: by an atomic operation on what was changed behind it, or by reading that.
struct Access {
    unsigned grid, block, generation, meetings, when;
    unsigned short tid;
    unsigned char bytes;  // which of the four, as bits
    bool atomic;
    const void* code;
};
struct Cell {  // four bytes of memory
    Access write, atomic, read[2];
    unsigned stored_grid, stored_block;
    unsigned char stored;  // shared memory: bytes that the block has written
};
Cell* cells_of(const char* start, size_t bytes);
bool ordered(const Access& a, const Block& b, bool shared);  // before what the running thread does
void remember(Cell& c, const Access& now, bool writes);
void access(const char* p, unsigned size, bool writes, bool atomic, const void* code);
unsigned meetings_of(const Block& b, unsigned tid);
bool said_before(const void* code, int kind);
const char* index_of(const Grid& g, unsigned tid);
extern unsigned clock_now;

// An access of the copy engine has this, and the number of the barrier that counted it in.
const unsigned engine_thread = 0x8000;
bool knows(const Block& b, const Access& a);  // by barriers in shared memory
const void* code_of(Site at);  // stands for a place in the program; site_of gives it back
}  // namespace cuda_cpu
