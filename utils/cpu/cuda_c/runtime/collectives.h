// NCCL's ranks: what collectives.cpp (the calls) and collectives_work.cpp (the work) share.
#pragma once
#include <memory>
#include <string>
#include <vector>
#include "internal.h"
#include "../include/detail/collectives.h"

namespace cuda_cpu {
enum Result {
    success = 0,
    cuda_error = 1,
    system_error = 2,
    invalid_argument = 4,
    invalid_usage = 5
};
struct Pending {
    Collective call;
    bool done = false;
    int result = success;
};
struct Clique {
    std::vector<Rank*> ranks;
    int left = 0;
    bool broken = false;  // by a mistake that was told: no rank waits any more
    Site joined = {"", 0};
    bool ready() const {
        return std::find(ranks.begin(), ranks.end(), nullptr) == ranks.end();
    }
};
struct Rank {
    Clique* clique;
    int number, device;
    Site joined;
    std::vector<std::shared_ptr<Pending>> waiting;
    Site last = {"", 0};  // the last call
    const char* last_name = nullptr;
};
bool find_numbers(Collective& t);  // collectives_numbers.cpp; false: there are no such
// collectives_work.cpp, all under the lock of collectives.cpp
void progress(Clique& c);  // does what all ranks have called for
bool all_wait(const Clique& c);
void break_clique(Clique& c, int result);
void told_deadlock(Clique& c, Site at);
size_t elements(const Collective& t, bool of_send, int ranks);  // in the buffer
bool uses(const Collective& t, int number, bool send);  // does this rank use that buffer?
std::string line_of(Site at);
}  // namespace cuda_cpu
