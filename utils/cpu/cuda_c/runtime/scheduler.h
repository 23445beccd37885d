// What scheduler.cpp (threads), meetings.cpp, blocks.cpp, grids.cpp, stacks.cpp and shared.cpp
// share.
#pragma once
#include "asynchronous.h"
#include "fiber.h"

namespace cuda_cpu {
// Of each block: static variables, then the dynamic part
const size_t static_shared_max = 4 << 20, dynamic_shared_max = 256 << 10;

// ---- stacks.cpp
Fiber* take_fiber();
void give_fiber(Fiber* f);
Block* take_block();
void give_block(Block* b);
void return_slabs();  // after a grid; one inside another grid's thread keeps them

// ---- scheduler.cpp
void begin_tracking(Block& b);  // from now on its threads are accounted for one by one
// The stack to go on with: of a thread that can, of a new one, or of whoever runs the block. Null:
// `self`, which is just about to leave its stack, is the one that can.
void* next_stack(Block& b, const Thread* self = nullptr);
void complete_barrier(Block& b);
void fall_out_of_step(Block& b);
inline void any_order(Block& b) {
    if (hot.in_step)
        fall_out_of_step(b);
}

inline void sleep(Thread* t, Wait wait, Site at) {
    if (t->fiber != hot.fiber) {  // the first time: a thread that has waited keeps its stack
        t->tid = hot.tid;
        t->index = threadIdx;
        t->fiber = hot.fiber;
    }
    t->wait = wait;
    t->at = at;
}
const char* index_text(const uint3& i);

// ---- blocks.cpp
enum Outcome { ended, spinning_threads, waits_for_grid, stuck, failed };
unsigned blocks_of_cluster(const Grid& g);
void begin_block(Grid& g, Block& b, unsigned long long number);
unsigned first_spin();  // hot.spin at first: shuffled, a turn may be few atomic operations
Outcome run_block(Block& b);  // until all its threads have ended or none can go on
void end_block(Grid& g, Block* b);
void drop_block(Grid& g, Block* b);
void report_deadlock(Block& b);

// ---- shared.cpp
void set_dynamic_pointers(void* p);
}  // namespace cuda_cpu
