// Cooperative groups: blocks, tiles of a warp, coalesced threads, grids, and what they can do
// together.
#pragma once
#include "cuda_runtime.h"
#include "lib/macros_aside.inc"

#include "detail/ptx/declarations.h"

namespace cuda_cpu {
void grid_barrier(Site at);
bool grid_is_cooperative();
}  // namespace cuda_cpu

namespace cooperative_groups {
using ::cuda_cpu::Site;

inline unsigned thread_rank_in_block() {
    return ::cuda_cpu::hot.tid;
}

class thread_group;  // below

// What tiles of more than 32 threads exchange values in: a piece for each warp.
const unsigned most_tile_bytes = 32;
template <unsigned MaxBlockSize = 1024>
struct block_tile_memory {
    alignas(16) char pieces[(MaxBlockSize + 31) / 32][most_tile_bytes];
};

class thread_block {
  public:
    static constexpr unsigned block_wide = 1;
    char (*pieces)[most_tile_bytes] = nullptr;  // of a block_tile_memory
    static void sync(CUDA_CPU_HERE) {
        __syncthreads(at);
    }
    void barrier_arrive() const {}
    void barrier_wait(CUDA_CPU_HERE) const {
        __syncthreads(at);
    }
    static unsigned thread_rank() {
        return thread_rank_in_block();
    }
    static unsigned size() {
        return blockDim.x * blockDim.y * blockDim.z;
    }
    static unsigned num_threads() {
        return size();
    }
    static dim3 group_index() {
        return dim3(blockIdx);
    }
    static dim3 thread_index() {
        return dim3(threadIdx);
    }
    static dim3 group_dim() {
        return blockDim;
    }
    static dim3 dim_threads() {
        return blockDim;
    }
};
inline thread_block this_thread_block() {
    return thread_block();
}
template <unsigned MaxBlockSize>
inline thread_block this_thread_block(block_tile_memory<MaxBlockSize>& memory) {
    thread_block block;
    block.pieces = memory.pieces;
    return block;
}

class grid_group {
  public:
    bool is_valid() const {
        return ::cuda_cpu::grid_is_cooperative();
    }
    void sync(CUDA_CPU_HERE) const {
        ::cuda_cpu::grid_barrier(at);
    }
    static unsigned long long block_rank() {
        return (blockIdx.z * (unsigned long long)gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    }
    static unsigned long long num_blocks() {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    static unsigned long long thread_rank() {
        return block_rank() * thread_block::size() + thread_rank_in_block();
    }
    static unsigned long long size() {
        return num_blocks() * thread_block::size();
    }
    static unsigned long long num_threads() {
        return size();
    }
    static dim3 group_dim() {
        return gridDim;
    }
    static dim3 dim_blocks() {
        return gridDim;
    }
    static dim3 block_index() {
        return dim3(blockIdx);
    }
};
inline grid_group this_grid() {
    return grid_group();
}

namespace detail {
// Some lanes of one warp, in the order of their numbers. Everything that tiles and coalesced groups
// have in common.
class lanes {
  public:
    explicit lanes(unsigned mask) : mask_(mask) {}
    unsigned thread_rank() const {
        return unsigned(__popc(mask_ & ((1u << ::cuda_cpu::lane()) - 1)));
    }
    unsigned size() const {
        return unsigned(__popc(mask_));
    }
    unsigned num_threads() const {
        return size();
    }
    void sync(CUDA_CPU_HERE) const {
        __syncwarp(mask_, at);
    }
    int any(int p, CUDA_CPU_HERE) const {
        return __any_sync(mask_, p, at);
    }
    int all(int p, CUDA_CPU_HERE) const {
        return __all_sync(mask_, p, at);
    }
    unsigned ballot(int p, CUDA_CPU_HERE) const {
        return ranks(__ballot_sync(mask_, p, at));
    }
    template <class T>
    T shfl(T v, int rank, CUDA_CPU_HERE) const {
        return take(v, rank, at);
    }
    template <class T>
    T shfl_down(T v, unsigned delta, CUDA_CPU_HERE) const {
        unsigned r = thread_rank() + delta;
        return take(v, int(r < size() ? r : thread_rank()), at);
    }
    template <class T>
    T shfl_up(T v, unsigned delta, CUDA_CPU_HERE) const {
        unsigned r = thread_rank();
        return take(v, int(r >= delta ? r - delta : r), at);
    }
    template <class T>
    T shfl_xor(T v, unsigned bits, CUDA_CPU_HERE) const {
        unsigned r = thread_rank() ^ bits;
        return take(v, int(r < size() ? r : thread_rank()), at);
    }
    template <class T>
    unsigned match_any(T v, CUDA_CPU_HERE) const {
        return ranks(__match_any_sync(mask_, v, at));
    }
    template <class T>
    unsigned match_all(T v, int& pred, CUDA_CPU_HERE) const {
        return ranks(__match_all_sync(mask_, v, &pred, at));
    }
    unsigned mask() const {
        return mask_;
    }

  protected:
    unsigned ranks(unsigned lanes) const {  // bits of lanes to bits of ranks
        unsigned r = 0;
        int n = 0;
        for (int i = 0; i < 32; ++i)
            if (mask_ >> i & 1)
                r |= (lanes >> i & 1) << n++;
        return r;
    }
    template <class T>
    T take(T v, int rank, Site at) const {
        int source = __fns(mask_, 0, rank % int(size()) + 1);
        if constexpr (sizeof(T) <= 8) {
            return ::cuda_cpu::take_from(mask_, v, source, "shfl", at);
        } else {  // larger values: in pieces
            unsigned long long piece[(sizeof(T) + 7) / 8] = {};
            std::memcpy(piece, &v, sizeof(T));
            for (auto& p : piece)
                p = ::cuda_cpu::take_from(mask_, p, source, "shfl", at);
            std::memcpy(&v, piece, sizeof(T));
            return v;
        }
    }
    unsigned mask_;
};
}  // namespace detail

class coalesced_group : public detail::lanes {
  public:
    explicit coalesced_group(unsigned mask) : lanes(mask) {}
    unsigned meta_group_rank() const {
        return 0;
    }
    unsigned meta_group_size() const {
        return 1;
    }
};
__attribute__((noinline)) inline coalesced_group coalesced_threads(CUDA_CPU_HERE) {
    return coalesced_group(::cuda_cpu::active_lanes(__builtin_return_address(0), at));
}

template <unsigned Size, class Parent = thread_block, bool ManyWarps = (Size > 32)>
class thread_block_tile : public detail::lanes {
    static_assert(Size && (Size & (Size - 1)) == 0,
                  "a tile has 1, 2, 4, 8, 16, 32, 64, 128, 256 or 512 threads");

    static constexpr bool of_block = std::is_same_v<Parent, thread_block>;
    static unsigned parent_size() {
        if constexpr (of_block)
            return thread_block::size();
        else
            return Parent::size();
    }

  public:
    thread_block_tile() : lanes(tile_mask()) {}
    template <class P>
    thread_block_tile(const thread_block_tile<Size, P>& o) : lanes(o.mask()) {}
    static constexpr unsigned size() {
        return Size;
    }
    static constexpr unsigned num_threads() {
        return Size;
    }
    static unsigned thread_rank() {
        return thread_rank_in_block() % Size;
    }
    unsigned meta_group_rank() const {
        return thread_rank_in_block() % (of_block ? 1024 : parent_size()) / Size;
    }
    unsigned meta_group_size() const {
        return (parent_size() + Size - 1) / Size;
    }
    template <class T>
    T shfl(T v, int rank, CUDA_CPU_HERE) const {
        return take(v, rank & int(Size - 1), at);
    }

  private:
    static unsigned tile_mask() {
        unsigned all = Size == 32 ? ~0u : (1u << (Size & 31)) - 1;
        return all << (::cuda_cpu::lane() / Size * Size);
    }
};
template <class Parent>
class thread_block_tile<1, Parent, false> : public detail::lanes {
  public:
    thread_block_tile() : lanes(1u << ::cuda_cpu::lane()) {}
    unsigned meta_group_rank() const {
        return thread_rank_in_block();
    }
    unsigned meta_group_size() const {
        return thread_block::size();
    }
};

// A tile of several warps. They meet at a barrier of their own, behind those that PTX numbers, and
// exchange values in the memory that this_thread_block() was given.
template <unsigned Size, class Parent>
class thread_block_tile<Size, Parent, true> {
    static_assert((Size & (Size - 1)) == 0 && Size <= 1024, "a tile has a power of two of threads");

  public:
    explicit thread_block_tile(char (*pieces)[most_tile_bytes]) : pieces_(pieces) {}
    static constexpr unsigned size() {
        return Size;
    }
    static constexpr unsigned num_threads() {
        return Size;
    }
    static unsigned thread_rank() {
        return thread_rank_in_block() % Size;
    }
    static unsigned meta_group_rank() {
        return thread_rank_in_block() / Size;
    }
    static unsigned meta_group_size() {
        return (thread_block::size() + Size - 1) / Size;
    }
    char (*pieces() const)[most_tile_bytes] {
        return pieces_;
    }
    void sync(CUDA_CPU_HERE) const {
        ::cuda_cpu::ptx::tile_barrier(meta_group_rank(), Size, at);
    }
    int any(int p, CUDA_CPU_HERE) const {
        return fold(warp().any(p, at), [](int a, int b) { return a | b; }, at);
    }
    int all(int p, CUDA_CPU_HERE) const {
        return fold(warp().all(p, at), [](int a, int b) { return a & b; }, at);
    }
    template <class T>
    T shfl(T v, unsigned rank, CUDA_CPU_HERE) const {
        if (thread_rank() == rank)
            piece<T>(0) = v;
        sync(at);
        T r = piece<T>(0);
        sync(at);
        return r;
    }
    // Of the values that the warps have, each the same in all its lanes.
    template <class T, class Op>
    T fold(T v, Op op, Site at) const {
        if (::cuda_cpu::lane() == 0)
            piece<T>(thread_rank() / 32) = v;
        sync(at);
        T r = piece<T>(0);
        for (unsigned i = 1; i < Size / 32; ++i)
            r = op(r, piece<T>(i));
        sync(at);
        return r;
    }
    static thread_block_tile<32> warp() {
        return {};
    }

  private:
    template <class T>
    T& piece(unsigned warp_of_tile) const {
        static_assert(sizeof(T) <= most_tile_bytes, "a tile exchanges values of up to 32 bytes");
        return *reinterpret_cast<T*>(pieces_[meta_group_rank() * (Size / 32) + warp_of_tile]);
    }
    char (*pieces_)[most_tile_bytes];
};

template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
    if constexpr (Size <= 32)
        return thread_block_tile<Size, Parent>();
    else if constexpr (std::is_same_v<Parent, thread_block>)
        return thread_block_tile<Size, Parent>(parent.pieces);
    else
        return thread_block_tile<Size, Parent>(parent.pieces());
}

// Any of the above, known at run time only.
class thread_group {
  public:
    thread_group(const thread_block&) : whole_(true), lanes_(0) {}
    thread_group(const detail::lanes& l) : whole_(false), lanes_(l) {}
    void sync(CUDA_CPU_HERE) const {
        if (whole_)
            __syncthreads(at);
        else
            lanes_.sync(at);
    }
    unsigned size() const {
        return whole_ ? thread_block::size() : lanes_.size();
    }
    unsigned num_threads() const {
        return size();
    }
    unsigned thread_rank() const {
        return whole_ ? thread_rank_in_block() : lanes_.thread_rank();
    }
    bool is_valid() const {
        return true;
    }
    unsigned mask() const {
        return lanes_.mask();
    }
    bool whole() const {
        return whole_;
    }
    const detail::lanes& lanes() const {
        return lanes_;
    }

  private:
    bool whole_;
    detail::lanes lanes_;
};
inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
    unsigned first = parent.thread_rank() / size * size, mask = 0, rank = 0;
    if (parent.whole())
        return detail::lanes((size == 32 ? ~0u : (1u << size) - 1) << (first & 31));
    for (int i = 0; i < 32; ++i)
        if (parent.mask() >> i & 1) {
            if (rank >= first && rank < first + size)
                mask |= 1u << i;
            ++rank;
        }
    return detail::lanes(mask);
}
inline thread_group tiled_partition(const thread_block& b, unsigned size) {
    return tiled_partition(thread_group(b), size);
}
inline coalesced_group tiled_partition(const coalesced_group& g, unsigned size) {
    return coalesced_group(tiled_partition(thread_group(g), size).mask());
}

template <class Group>
inline coalesced_group binary_partition(const Group& g, bool p, CUDA_CPU_HERE) {
    unsigned yes = __ballot_sync(g.mask(), p, at);
    return coalesced_group(p ? yes : g.mask() & ~yes);
}
template <class Group, class T>
inline coalesced_group labeled_partition(const Group& g, T label, CUDA_CPU_HERE) {
    return coalesced_group(__match_any_sync(g.mask(), label, at));
}

template <class Group>
inline void sync(const Group& g, CUDA_CPU_HERE) {
    g.sync(at);
}
template <class Group>
inline unsigned thread_rank(const Group& g) {
    return unsigned(g.thread_rank());
}
template <class Group>
inline unsigned group_size(const Group& g) {
    return unsigned(g.size());
}
template <class Group>
inline void wait(const Group& g, CUDA_CPU_HERE) {
    g.sync(at);
}
template <unsigned, class Group>
inline void wait_prior(const Group& g, CUDA_CPU_HERE) {
    g.sync(at);
}

template <class T = void>
struct plus {
    T operator()(T a, T b) const {
        return a + b;
    }
};
template <class T = void>
struct less {
    T operator()(T a, T b) const {
        return b < a ? b : a;
    }
};
template <class T = void>
struct greater {
    T operator()(T a, T b) const {
        return a < b ? b : a;
    }
};
template <class T = void>
struct bit_and {
    T operator()(T a, T b) const {
        return a & b;
    }
};
template <class T = void>
struct bit_or {
    T operator()(T a, T b) const {
        return a | b;
    }
};
template <class T = void>
struct bit_xor {
    T operator()(T a, T b) const {
        return a ^ b;
    }
};
template <>
struct plus<void> {
    template <class T>
    T operator()(T a, T b) const {
        return a + b;
    }
};
template <>
struct less<void> {
    template <class T>
    T operator()(T a, T b) const {
        return b < a ? b : a;
    }
};
template <>
struct greater<void> {
    template <class T>
    T operator()(T a, T b) const {
        return a < b ? b : a;
    }
};

template <class Group, class T, class Op>
inline T reduce(const Group& g, T v, Op op, CUDA_CPU_HERE) {
    T r = g.shfl(v, 0, at);
    for (unsigned i = 1; i < g.size(); ++i)
        r = op(r, g.shfl(v, int(i), at));
    return r;
}
template <unsigned Size, class Parent, class T, class Op>
inline T reduce(const thread_block_tile<Size, Parent, true>& tile, T v, Op op, CUDA_CPU_HERE) {
    return tile.fold(reduce(tile.warp(), v, op, at), op, at);
}
template <class Group, class T, class Op>
inline T inclusive_scan(const Group& g, T v, Op op, CUDA_CPU_HERE) {
    T r = g.shfl(v, 0, at);
    for (unsigned i = 1; i < g.size(); ++i) {
        T next = g.shfl(v, int(i), at);
        if (i <= g.thread_rank())
            r = op(r, next);
    }
    return r;
}
template <class Group, class T>
inline T inclusive_scan(const Group& g, T v, CUDA_CPU_HERE) {
    return inclusive_scan(g, v, plus<T>(), at);
}
template <class Group, class T, class Op>
inline T exclusive_scan(const Group& g, T v, Op op, CUDA_CPU_HERE) {
    T before = g.shfl_up(inclusive_scan(g, v, op, at), 1, at);
    return g.thread_rank() == 0 ? T() : before;
}
template <class Group, class T>
inline T exclusive_scan(const Group& g, T v, CUDA_CPU_HERE) {
    return exclusive_scan(g, v, plus<T>(), at);
}
template <class Group, class F>
inline void invoke_one(const Group& g, F&& f) {
    if (g.thread_rank() == 0)
        f();
}

// Copies by all threads of the group; done at once, so that waiting is a barrier only.
template <class Group>
inline void memcpy_async(const Group& g, void* to, const void* from, size_t bytes) {
    for (size_t i = g.thread_rank(); i < bytes; i += g.size())
        static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
}
template <class Group, class T>
inline void memcpy_async(const Group& g, T* to, size_t to_count, const T* from, size_t from_count) {
    memcpy_async(g, (void*)to, (const void*)from,
                 (to_count < from_count ? to_count : from_count) * sizeof(T));
}
}  // namespace cooperative_groups

// ---- clusters: blocks that run side by side and reach each other's shared memory
namespace cooperative_groups {
class cluster_group {
  public:
    struct arrival_token {};
    static arrival_token barrier_arrive(CUDA_CPU_HERE) {
        ::cuda_cpu::ptx::cluster_arrive(at);
        return {};
    }
    static void barrier_wait(arrival_token, CUDA_CPU_HERE) {
        ::cuda_cpu::ptx::cluster_wait(at);
    }
    static void barrier_wait(CUDA_CPU_HERE) {
        ::cuda_cpu::ptx::cluster_wait(at);
    }
    static void sync(CUDA_CPU_HERE) {
        ::cuda_cpu::ptx::cluster_arrive(at);
        ::cuda_cpu::ptx::cluster_wait(at);
    }
    static unsigned block_rank() {
        return ::cuda_cpu::ptx::cluster_special(0);
    }
    static unsigned num_blocks() {
        return ::cuda_cpu::ptx::cluster_special(1);
    }
    static dim3 block_index() {
        using ::cuda_cpu::ptx::cluster_special;
        return dim3(cluster_special(2), cluster_special(3), cluster_special(4));
    }
    static dim3 dim_blocks() {
        using ::cuda_cpu::ptx::cluster_special;
        return dim3(cluster_special(5), cluster_special(6), cluster_special(7));
    }
    static unsigned num_threads() {
        return num_blocks() * unsigned(thread_block::size());
    }
    static unsigned size() {
        return num_threads();
    }
    static unsigned thread_rank() {
        return block_rank() * unsigned(thread_block::size()) + thread_rank_in_block();
    }
    // Where a shared variable lies in the block `rank`.
    template <class T>
    static T* map_shared_rank(T* p, int rank, CUDA_CPU_HERE) {
        using namespace ::cuda_cpu::ptx;
        unsigned there = map_address(shared_address(p, at), unsigned(rank), at);
        return reinterpret_cast<T*>(shared_pointer(there, at));
    }
    static unsigned query_shared_rank(const void* p, CUDA_CPU_HERE) {
        return ::cuda_cpu::ptx::shared_address(p, at) >> 24;
    }
};
inline cluster_group this_cluster() {
    return cluster_group();
}
}  // namespace cooperative_groups

#include "lib/macros_back.inc"
