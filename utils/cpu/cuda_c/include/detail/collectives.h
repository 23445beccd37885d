// What lib/nccl.h asks of the runtime (runtime/collectives.cpp): ranks that make the same calls.
#pragma once
#include "api_types.h"
#include "thread.h"

namespace cuda_cpu {
enum class CollectiveKind { all_reduce, reduce, broadcast, all_gather, reduce_scatter, send, recv };

// What a call does with the numbers of its type.
struct Numbers {
    const char* type;
    size_t bytes;
    void (*combine)(void* to, const void* from, size_t count);
    void (*finish)(void* to, size_t count, int ranks);  // of a mean, or null
};
// One rank's call.
struct Collective {
    CollectiveKind kind;
    const char* name;  // of the function
    const void* send;
    void* recv;
    size_t count;  // of elements: what the function is given
    int type, operation, peer;  // NCCL's numbers; peer: the root, or the other rank
    cudaStream_t stream;
    Site at;
    Numbers numbers = {};  // the runtime finds them
};
struct Rank;  // a communicator, as one rank has it

// All return an ncclResult_t.
int join_clique(Rank** rank, int size, unsigned long long id, int number, Site at);
int make_clique(Rank** ranks, int size, const int* devices, Site at);
int leave_clique(Rank* rank);
int call_collective(Rank* rank, Collective call);
int start_group();
int end_group(Site at);
unsigned long long new_clique_id();
int clique_size(const Rank* rank);
int number_in_clique(const Rank* rank);
int device_of_rank(const Rank* rank);
}  // namespace cuda_cpu
