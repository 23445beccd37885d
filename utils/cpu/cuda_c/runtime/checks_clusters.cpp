// Races between the blocks of a cluster, in each other's shared memory. What a block knows of
// another one is kept for the whole block: this may hide a mistake, and never invents one.
#include "checks.h"

namespace cuda_cpu {
static bool holds(const Block& b, const char* p) {
    return p >= b.memory && p < b.memory + b.hot.shared_bytes;
}
Block* cluster_owner(const Block& b, const char* p) {
    if (!b.cluster)
        return nullptr;
    for (Block* other : b.cluster->blocks)
        if (other != &b && holds(*other, p))
            return other;
    return nullptr;
}
static const Block* member(const Cluster& c, unsigned linear) {
    for (const Block* b : c.blocks)
        if (b->linear == linear)
            return b;
    return nullptr;
}

static ClusterBlock& known_of(const Block& b) {
    std::vector<ClusterBlock>& all = b.cluster->known;
    all.resize(b.cluster->blocks.size());
    return all[b.cluster_rank];
}

// ---- barrier.cluster
void checks_cluster_arrives(Block& b, unsigned phase) {
    std::vector<std::array<ClusterArrival, 4>>& all = known_of(b).arrivals;
    all.resize(b.hot.count);
    all[hot.tid][phase % 4] = {phase, clock_now};
    ++clock_now;
}
void checks_cluster_waited(Block& b, unsigned phase) {
    unsigned& last = known_of(b).waited;
    if (last == ~0u || last < phase)
        last = phase;
}
// Did its thread arrive, behind it, for the last phase that this block has waited for?
static bool met_since(const Access& a, const Block& other, const Block& b) {
    unsigned phase = known_of(b).waited;
    if (phase == ~0u)
        return false;
    const auto& arrivals = known_of(other).arrivals;
    if (a.tid >= arrivals.size())
        return true;  // the block had ended before
    const ClusterArrival& arrival = arrivals[a.tid][phase % 4];
    return arrival.phase != phase || a.when <= arrival.when;  // likewise its thread
}

// ---- barriers in shared memory that another block arrives at
void peers_learn(Peers& to, const Peers& from) {
    for (auto [block, when] : from)
        to[block] = std::max(to[block], when);
}
Peers peers_told(const Block& b) {
    if (!b.cluster)
        return {};
    Peers known = known_of(b).peers;
    known[b.linear] = clock_now;
    return known;
}
void checks_peer_arrives(const Block& from, MBarrier& m) {
    peers_learn(m.peers_arrived, peers_told(from));
}
void checks_peers_waited(Block& b, const MBarrier& m) {
    if (b.cluster)
        peers_learn(known_of(b).peers, m.peers_over);
}

bool ordered_in_cluster(const Access& a, const Block& b) {
    const Block* other = b.cluster ? member(*b.cluster, a.block) : nullptr;
    if (!other || a.tid & engine_thread)
        return true;
    if (met_since(a, *other, b))
        return true;
    const Peers& peers = known_of(b).peers;
    auto known = peers.find(a.block);
    return known != peers.end() && known->second >= a.when;
}
}  // namespace cuda_cpu
