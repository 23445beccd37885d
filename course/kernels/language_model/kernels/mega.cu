// nvcc -arch=sm_90 -cubin mega.cu
// A whole token of a language model in one launch. Each SM has one block: a thread that copies weights
// into a ring in shared memory, all of the token's from the first on without a pause, and WARPS warps
// that multiply. Between the parts of a layer all blocks wait for each other; meanwhile the ring fills.
// Grid: at most as many blocks as there are SMs; block: 32 * (WARPS + 1); shared memory: Shared.
#include "mega_parts.cuh"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "bulk copies need compute capability 9.0 (Hopper)"
#endif

struct Weights {
    const number *embedding, *norm_1, *norm_2, *norm;
    Matrices matrices;
};

struct Token {
    Shared& shared;
    const Sizes& sizes;
    const Weights& weights;
    const Between& between;
    const Cache& cache;
    Multiplier by;
    unsigned long long best = 0;  // of this thread's logits, as ranked

    // x = the embeddings of the sequences' tokens, each number by one thread of the grid.
    __device__ void embed() {
        int thread = blockIdx.x * 32 * WARPS + threadIdx.x;
        for (int i = thread; i < BATCH * sizes.width; i += gridDim.x * 32 * WARPS) {
            size_t row = shared.token[i / sizes.width];
            between.x[i] = (float)weights.embedding[row * sizes.width + i % sizes.width];
        }
    }

    // What all blocks need of each layer, and nobody has read yet, begins its way into L2.
    __device__ void fetch_gains() {
        constexpr int LINE = 128 / sizeof(number);
        int stride = gridDim.x * 32 * WARPS * LINE;
        int first = (blockIdx.x * 32 * WARPS + threadIdx.x) * LINE;
        for (int i = first; i < sizes.layers * sizes.width; i += stride) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"(weights.norm_1 + i));
            asm volatile("prefetch.global.L2 [%0];" ::"l"(weights.norm_2 + i));
        }
    }

    // One code for all products: five would not fit into the cache of instructions.
    __device__ void multiply(Kind kind, int layer) {
        const Matrix matrix = weights.matrices.of(kind, layer);
        const number* gain = gain_of(kind, layer);
        int stride = gridDim.x;
        int begin = by.share.first;
        int sequence = threadIdx.x / ROWS % BATCH;
        float factor = 1;
        Activations x;
#pragma unroll 1
        for (int first = begin; first < matrix.tiles; first += TILES * stride) {
#pragma unroll 1
            for (int i = 0; i < TILES && first + i * stride < matrix.tiles; i += TOGETHER) {
                bool is_first = first == begin && i == 0;
                int tile = first + i * stride;
                float sums[TOGETHER / 2][4] = {};
#pragma unroll 1
                for (int chunk = 0; chunk < matrix.chunks; ++chunk) {
                    if (is_first || matrix.chunks > 1)
                        load(x, kind, layer, gain, chunk, is_first);
#pragma unroll
                    for (int piece = 0; piece < PIECES; ++piece)
                        by.take_stages(sums, x, piece * PIECE_STEPS, tile, matrix.tiles);
                }
                by.leave(sums, i);
            }
            sync_warps();  // all warps have left their sums
            if (first == begin && gain)
                factor = norm_of(sequence);
            if (threadIdx.x < SUMS) {
                int tile = first + threadIdx.x / (ROWS * BATCH) * stride;
                float sum =
                    factor * by.sum_of(threadIdx.x / (ROWS * BATCH), sequence, threadIdx.x % ROWS);
                float other = __shfl_xor_sync(~0u, sum, PAIRS);
                if (tile < matrix.tiles)
                    store(kind, layer, tile, sequence, threadIdx.x % ROWS, sum, other);
            }
            by.turn ^= 1;  // a warp may leave its next sums while others still read
        }
        by.share.pass(matrix.tiles);
    }

    // Of the norm before a product; null where there is none.
    __device__ const number* gain_of(Kind kind, int layer) const {
        if (kind == PREDICT)
            return weights.norm;
        size_t place = (size_t)layer * sizes.width;
        if (kind == PROJECT)
            return weights.norm_1 + place;
        return kind == SWIGLU ? weights.norm_2 + place : nullptr;
    }

    // ---- what a product begins with

    // This warp's columns of a chunk. All sequences' numbers are on their way together.
    __device__ void load(Activations& x, Kind kind, int layer, const number* gain, int chunk,
                         bool is_first) {
        int column = threadIdx.x % 32 * EIGHT;
        int begin = chunk * CHUNK + threadIdx.x / 32 * SLICE;
        bool is_there = column < SLICE;
        float y[BATCH][EIGHT] = {};
        float squares[BATCH] = {};
        if (is_there && gain)
            normed(y, squares, gain, begin + column, kind == PROJECT && layer == 0);
        else if (is_there && kind == ADD_DOWN)
            hidden(y, begin + column);
        else if (is_there && begin + column < sizes.heads * HEAD)
#pragma unroll
            for (int sequence = 0; sequence < BATCH; ++sequence)
                attended(y[sequence], sizes, between, sequence, begin + column);
        if (is_there)
            for (int sequence = 0; sequence < BATCH; ++sequence)
                by.put(sequence, column, y[sequence]);
        by.take(x);
        if (gain && is_first)
            keep_squares(squares, chunk);
    }

    // Numbers of x times gain; what the norm multiplies them by can wait until after the product.
    // The first numbers are the embedding's: x is there one barrier later.
    __device__ void normed(float (&y)[BATCH][EIGHT], float (&squares)[BATCH], const number* gain,
                           int column, bool are_first) {
        if (column >= sizes.width)
            return;
        Eight gains = *(const Eight*)(gain + column);
#pragma unroll
        for (int sequence = 0; sequence < BATCH; ++sequence) {
            if (are_first) {
                size_t row = shared.token[sequence];
                widen(y[sequence], weights.embedding + row * sizes.width + column);
            } else {
                copy_eight(y[sequence], between.x + (size_t)sequence * sizes.width + column);
            }
        }
#pragma unroll
        for (int sequence = 0; sequence < BATCH; ++sequence)
            for (int j = 0; j < EIGHT; ++j) {
                squares[sequence] += y[sequence][j] * y[sequence][j];
                y[sequence][j] *= (float)gains.x[j];
            }
    }

    __device__ void hidden(float (&y)[BATCH][EIGHT], int column) {
        if (column >= sizes.hidden)
            return;
#pragma unroll
        for (int sequence = 0; sequence < BATCH; ++sequence)
            widen(y[sequence], between.hidden + (size_t)sequence * sizes.hidden + column);
    }

    // The squares of this warp's columns, chunk after chunk.
    __device__ void keep_squares(const float (&squares)[BATCH], int chunk) {
#pragma unroll
        for (int sequence = 0; sequence < BATCH; ++sequence) {
            float sum = squares[sequence];
            for (int other = 16; other > 0; other /= 2)
                sum += __shfl_xor_sync(~0u, sum, other);
            float& own = shared.squares[threadIdx.x / 32][sequence];
            if (threadIdx.x % 32 == 0)
                own = chunk ? own + sum : sum;
        }
    }

    // One over the root of a sequence's mean square.
    __device__ float norm_of(int sequence) const {
        float sum = 0;
        for (int w = 0; w < WARPS; ++w)
            sum += shared.squares[w][sequence];
        return rsqrtf(__fdividef(sum, sizes.width) + sizes.eps);
    }

    // ---- what becomes of a product: each thread has one sum, and that of row ± PAIRS

    __device__ void store(Kind kind, int layer, int tile, int sequence, int row, float sum,
                          float other) {
        if (kind == PREDICT) {
            int column = tile * ROWS + row;
            between.logits[(size_t)sequence * sizes.vocabulary + column] = sum;
            best = max(best, ranked(sum, column));
        } else if (kind == ADD_ATTENDED || kind == ADD_DOWN) {
            // atomic, because nobody waits for what was there; each number has one thread
            atomicAdd(&between.x[sequence * sizes.width + tile * ROWS + row], sum);
        } else if (row < PAIRS && kind == SWIGLU) {
            // four rows of the gate, and those of up
            float value = __fdividef(sum, 1 + __expf(-sum)) * other;
            between.hidden[sequence * sizes.hidden + tile * PAIRS + row] = (number)value;
        } else if (row < PAIRS) {
            store_pair(layer, tile, sequence, row, sum, other);
        }
    }

    // Two numbers of a head, half a head apart: a query, key or value. A tile has four such pairs.
    __device__ void store_pair(int layer, int tile, int sequence, int row, float left,
                               float right) {
        const float scale = rsqrtf(HEAD) * 1.44269504f;  // log2(e): weights are powers of 2
        int head = tile / (HEAD / ROWS);
        int i = tile % (HEAD / ROWS) * PAIRS + row;
        bool is_value = head >= sizes.heads + sizes.kv_heads;
        if (!is_value) {
            float2 turn = shared.turn[sequence][i];
            float turned = left * turn.x - right * turn.y;
            right = right * turn.x + left * turn.y;
            left = turned;
        }
        if (head < sizes.heads) {
            float* q = between.q + (sequence * sizes.heads + head) * HEAD;
            q[i] = left * scale;
            q[i + HEAD / 2] = right * scale;
            return;
        }
        number* to = is_value ? cache.values : cache.keys;
        int kv_head = head - sizes.heads - (is_value ? sizes.kv_heads : 0);
        to += cache.at(sizes, layer, shared.row_of_new[sequence], kv_head);
        to[i] = (number)left;
        to[i + HEAD / 2] = (number)right;
    }

    // The largest of all threads' logits: a thread's are all of one sequence.
    __device__ void tell_best() {
        for (int other = 1; other < ROWS; other *= 2)
            best = max(best, __shfl_xor_sync(~0u, best, other));
        if (threadIdx.x < SUMS && threadIdx.x % ROWS == 0)
            atomicMax(&between.best[threadIdx.x / ROWS % BATCH], best);
    }
};

// Each sequence's token and position, and the angles by which it turns pairs.
__device__ void note_positions(Shared& shared, const int* token, const int* position,
                               const float* frequency) {
    for (int n = threadIdx.x; n < BATCH * HEAD / 2; n += 32 * WARPS) {
        int sequence = n / (HEAD / 2);
        int i = n % (HEAD / 2);
        float2& turn = shared.turn[sequence][i];
        sincosf(position[sequence] * frequency[i], &turn.y, &turn.x);
        if (i == 0)
            shared.position[sequence] = position[sequence];
        if (i == 0)
            shared.token[sequence] = token[sequence];
    }
}

// token, position: of each sequence; both move on. frequency: angles of pairs at position 1.
// The matrices as megakernel.packed lays them out, all layers; all else as in Between, Cache, Sizes.
__global__ void __launch_bounds__(32 * (WARPS + 1), 1)
    decode_token(int* token, int* position, unsigned* arrived, float* x, float* q, number* results,
                 float* states, number* hidden, float* logits, unsigned long long* best,
                 number* keys, number* values, const int* table, const float* frequency,
                 const number* embedding, const number* norm_1, const number* norm_2,
                 const number* norm, const unsigned char* qkv, const unsigned char* out,
                 const unsigned char* gate_up, const unsigned char* down, const unsigned char* head,
                 const Sizes sizes) {
    extern __shared__ __align__(128) unsigned char memory[];
    Shared& shared = *(Shared*)memory;
    int rows = (sizes.heads + 2 * sizes.kv_heads) * HEAD;
    int chunks = (sizes.width + CHUNK - 1) / CHUNK;
    const Weights weights = {
        embedding,
        norm_1,
        norm_2,
        norm,
        {
            {qkv, rows / ROWS, chunks},
            {out, sizes.width / ROWS, (sizes.heads * HEAD + CHUNK - 1) / CHUNK},
            {gate_up, 2 * sizes.hidden / ROWS, chunks},
            {down, sizes.width / ROWS, (sizes.hidden + CHUNK - 1) / CHUNK},
            {head, sizes.vocabulary / ROWS, chunks},
            sizes.layers,
        },
    };
    if (threadIdx.x == 0)
        shared.ring.init();
    __syncthreads();
    if (threadIdx.x >= 32 * WARPS) {
        if (threadIdx.x == 32 * WARPS)
            Copier(shared.ring, weights.matrices).copy_all();
        return;
    }
    const Between between = {x, q, results, (float2*)states, hidden, logits, best};
    const Cache cache = {keys, values, table};
    Token of = {shared, sizes, weights, between, cache, {shared}};
    Grid grid = {arrived};
    note_positions(shared, token, position, frequency);
    sync_warps();  // positions are there
    note_rows(shared, sizes, cache);
    of.embed();
    of.fetch_gains();
#pragma unroll 1
    for (int n = 0; n <= PREDICT * sizes.layers; ++n) {
        int layer = n / PREDICT;
        Kind kind = weights.matrices.kind_at(n);
        if (kind == PROJECT)
            fetch_keys(shared, sizes, cache, layer);
        of.multiply(kind, layer);
        if (kind == PREDICT)
            break;
        grid.sync();  // queries, keys and values; or x; or hidden numbers
        if (kind != PROJECT)
            continue;
        attend(shared, sizes, between, cache, layer);
        grid.sync();  // all parts of attention
    }
    of.tell_best();
    sync_warps();  // this block has told its logits
    if (threadIdx.x == 0 && grid.last()) {
        *arrived = 0;
        for (int sequence = 0; sequence < BATCH; ++sequence) {
            token[sequence] = (int)~(unsigned)best[sequence];
            best[sequence] = 0;
            position[sequence] += sizes.advance;
        }
    }
}
