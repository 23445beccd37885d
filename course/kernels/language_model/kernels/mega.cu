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
    Matrix qkv, out, gate_up, down, head;
};

struct Token {
    Shared& shared;
    const Sizes& sizes;
    const Weights& weights;
    const Between& between;
    const Cache& cache;
    Multiplier by;

    // x = the embeddings of the sequences' tokens, each number by one thread of the grid.
    __device__ void embed(const int* token) {
        int thread = blockIdx.x * 32 * WARPS + threadIdx.x;
        for (int i = thread; i < BATCH * sizes.width; i += gridDim.x * 32 * WARPS) {
            size_t row = token[i / sizes.width];
            between.x[i] = (float)weights.embedding[row * sizes.width + i % sizes.width];
        }
    }

    // What all blocks need of each layer, and nobody has read yet, begins its way into L2.
    __device__ void fetch_gains() {
        constexpr int LINE = 128 / sizeof(number);
        int thread = blockIdx.x * 32 * WARPS + threadIdx.x;
        for (int i = thread * LINE; i < sizes.layers * sizes.width;
             i += gridDim.x * 32 * WARPS * LINE) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"(weights.norm_1 + i));
            asm volatile("prefetch.global.L2 [%0];" ::"l"(weights.norm_2 + i));
        }
    }

    // Norm, queries, keys and values; queries and keys turned; keys and values into the cache.
    // A tile has four pairs of a head: rows r and r + 4 are columns i and i + HEAD / 2.
    __device__ void project(int layer) {
        const number* gain = weights.norm_1 + (size_t)layer * sizes.width;
        const float scale = rsqrtf(HEAD) * 1.44269504f;  // log2(e): weights are powers of 2
        by.multiply(
            weights.qkv.of_layer(layer),
            [&](Activations& x, int chunk, bool is_first) {
                by.load_normed(x, chunk, is_first, between.x, gain, sizes.width);
            },
            [&](int tile, int sequence, int row, float left, float right) {
                if (row >= PAIRS)
                    return;
                int head = tile / (HEAD / ROWS);
                int i = tile % (HEAD / ROWS) * PAIRS + row;
                float factor = by.norm_of(sequence, sizes.width, sizes.eps);
                left *= factor;
                right *= factor;
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
                to += cache.at(sizes, layer, sequence, shared.position[sequence],
                               (head - sizes.heads) % sizes.kv_heads);
                to[i] = (number)left;
                to[i + HEAD / 2] = (number)right;
            });
    }

    // By one thread for each number; an atomic addition, because nobody waits for what was there.
    __device__ void add(int sequence, int row, float sum) {
        atomicAdd(&between.x[sequence * sizes.width + row], sum);
    }

    // x += out times what attention gave.
    __device__ void add_attended(int layer) {
        int columns = sizes.heads * HEAD;
        by.multiply(
            weights.out.of_layer(layer),
            [&](Activations& x, int chunk, bool) {
                by.load(x, chunk, columns, [&](float (&y)[EIGHT], int sequence, int column) {
                    attended(y, sizes, between, sequence, column);
                });
            },
            [&](int tile, int sequence, int row, float sum, float) {
                add(sequence, tile * ROWS + row, sum);
            });
    }

    // Norm, gate and up: hidden = silu(gate) up. A tile has four rows of the gate and those of up.
    __device__ void swiglu(int layer) {
        const number* gain = weights.norm_2 + (size_t)layer * sizes.width;
        by.multiply(
            weights.gate_up.of_layer(layer),
            [&](Activations& x, int chunk, bool is_first) {
                by.load_normed(x, chunk, is_first, between.x, gain, sizes.width);
            },
            [&](int tile, int sequence, int row, float gate, float up) {
                if (row >= PAIRS)
                    return;
                float factor = by.norm_of(sequence, sizes.width, sizes.eps);
                gate *= factor;
                float value = gate / (1 + expf(-gate)) * up * factor;
                between.hidden[sequence * sizes.hidden + tile * PAIRS + row] = (number)value;
            });
    }

    // x += down times hidden.
    __device__ void add_down(int layer) {
        by.multiply(
            weights.down.of_layer(layer),
            [&](Activations& x, int chunk, bool) {
                by.load(x, chunk, sizes.hidden, [&](float (&y)[EIGHT], int sequence, int column) {
                    size_t at = (size_t)sequence * sizes.hidden + column;
                    Eight from = *(const Eight*)(between.hidden + at);
                    for (int j = 0; j < EIGHT; ++j)
                        y[j] = (float)from.x[j];
                });
            },
            [&](int tile, int sequence, int row, float sum, float) {
                add(sequence, tile * ROWS + row, sum);
            });
    }

    // Norm and head: logits, and the largest one's rank. A thread's sums are all of one sequence.
    __device__ void predict() {
        unsigned long long most = 0;
        by.multiply(
            weights.head,
            [&](Activations& x, int chunk, bool is_first) {
                by.load_normed(x, chunk, is_first, between.x, weights.norm, sizes.width);
            },
            [&](int tile, int sequence, int row, float sum, float) {
                float logit = sum * by.norm_of(sequence, sizes.width, sizes.eps);
                int column = tile * ROWS + row;
                between.logits[(size_t)sequence * sizes.vocabulary + column] = logit;
                most = max(most, ranked(logit, column));
            });
        for (int other = 1; other < ROWS; other *= 2)
            most = max(most, __shfl_xor_sync(~0u, most, other));
        if (threadIdx.x < SUMS && threadIdx.x % ROWS == 0)
            atomicMax(&between.best[threadIdx.x / ROWS % BATCH], most);
    }
};

// The copying thread's way through the token: the matrices in the order of their use.
__device__ void copy_weights(Ring& ring, const Weights& weights, int layers) {
    Copier copier = {ring};
    for (int layer = 0; layer < layers; ++layer) {
        copier.copy(weights.qkv.of_layer(layer));
        copier.copy(weights.out.of_layer(layer));
        copier.copy(weights.gate_up.of_layer(layer));
        copier.copy(weights.down.of_layer(layer));
    }
    copier.copy(weights.head);
}

// Each sequence's position, and the angles by which it turns pairs.
__device__ void note_positions(Shared& shared, const int* position, const float* frequency) {
    for (int n = threadIdx.x; n < BATCH * HEAD / 2; n += 32 * WARPS) {
        int sequence = n / (HEAD / 2);
        int i = n % (HEAD / 2);
        float2& turn = shared.turn[sequence][i];
        sincosf(position[sequence] * frequency[i], &turn.y, &turn.x);
        if (i == 0)
            shared.position[sequence] = position[sequence];
    }
}

// token, position: of each sequence; both move on. frequency: angles of pairs at position 1.
// The matrices as megakernel.packed lays them out, all layers; all else as in Between, Cache, Sizes.
__global__ void __launch_bounds__(32 * (WARPS + 1), 1)
    decode_token(int* token, int* position, unsigned* arrived, float* x, float* q, float* results,
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
        {qkv, rows / ROWS, chunks},
        {out, sizes.width / ROWS, (sizes.heads * HEAD + CHUNK - 1) / CHUNK},
        {gate_up, 2 * sizes.hidden / ROWS, chunks},
        {down, sizes.width / ROWS, (sizes.hidden + CHUNK - 1) / CHUNK},
        {head, sizes.vocabulary / ROWS, chunks},
    };
    if (threadIdx.x == 0)
        shared.ring.init();
    __syncthreads();
    if (threadIdx.x >= 32 * WARPS) {
        if (threadIdx.x == 32 * WARPS)
            copy_weights(shared.ring, weights, sizes.layers);
        return;
    }
    const Between between = {x, q, results, (float2*)states, hidden, logits, best};
    const Cache cache = {keys, values, table};
    Token of = {shared, sizes, weights, between, cache, {shared}};
    Grid grid = {arrived};
    note_positions(shared, position, frequency);
    of.embed(token);
    of.fetch_gains();
    grid.sync();  // x is there
    for (int layer = 0; layer < sizes.layers; ++layer) {
        fetch_keys(shared, sizes, cache, layer);
        of.project(layer);
        grid.sync();  // queries, and the new key and value
        attend(shared, sizes, between, cache, layer);
        grid.sync();  // all parts of attention
        of.add_attended(layer);
        grid.sync();  // x with attention
        of.swiglu(layer);
        grid.sync();  // hidden numbers
        of.add_down(layer);
        grid.sync();  // x for the next layer
    }
    of.predict();
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
