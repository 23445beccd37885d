// Planted mistakes, one a kernel; the program takes its name.
// expect has not filled yet; line 96; case bulk_no_wait
// expect has not filled yet; line 110; case bulk_parity
// expect announced bytes that no copy brings; line 47; case expect_too_much
// expect fewer bytes than the copies bring; line 54; case expect_too_little
// expect has not filled yet; line 154; case expect_forgotten
// expect lacks 1 of its 2 arrivals; line 47; case arrivals_too_few
// expect there is no barrier at this place; line 39; case barrier_not_initialised
// expect has not filled yet; line 197; case try_wait_once
// expect multiples of 16; line 54; case bulk_size
// expect out-of-bounds; line 54; case bulk_past_source
// expect something has been written over the barrier; line 39; case barrier_overwritten
// expect is on its way; line 54; case block_ends
// expect lacks 0 of the 1; line 39; case ring_not_emptied
// expect nothing orders the two; line 54; case ring_arrives_first
// expect [deadlock] / [async-race]; line 47 or 54; case ring_parity_stands
// expect lacks 31 of its 32 arrivals; line 47; case ring_one_arrives
// expect lacks 32 of its 32 arrivals; line 47; case ring_first_round
// expect fence.proxy.async; line 61; case store_no_fence
// expect no thread and no copy has written; line 61; case store_no_sync
// expect before this copy has read; line 61; case store_not_waited
// expect close its group; line 61; case store_no_commit
// expect has not read yet; line 455; case store_box_reused
// expect has not filled yet; line 466; case cp_no_wait
// expect has not filled yet; line 475; case cp_no_commit
// expect has not filled yet; line 487; case cp_waits_for_older
// expect nothing orders the two; line 75; case cp_no_barrier
// expect out-of-bounds; line 75; case cp_past_source
#include <cstdio>
#include <cstring>
__device__ unsigned address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}
__device__ void init(unsigned long long* b, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(b)), "r"(arrivals));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect(unsigned long long* b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(b)),
                 "r"(bytes)
                 : "memory");
}
__device__ void arrive(unsigned long long* b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(b)) : "memory");
}
__device__ void wait(unsigned long long* b, int parity) {
    asm volatile(
        "{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra "
        "again; }" ::"r"(address(b)),
        "r"(parity)
        : "memory");
}
__device__ void load(void* to, const void* from, int bytes, unsigned long long* b) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(address(to)),
        "l"(from), "r"(bytes), "r"(address(b))
        : "memory");
}
__device__ void store(void* to, const void* from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(address(from)), "r"(bytes)
                 : "memory");
}
__device__ void commit_stores() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ void stores_have_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ void show() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ void copy(float* to, const float* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address(to)), "l"(from)
                 : "memory");
}
__device__ void close_group() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int OPEN>
__device__ void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(OPEN) : "memory");
}
// Nobody waits for the barrier that counts the copy in.
__global__ void bulk_no_wait(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 128);
        load(box, in, 128, &full);
    }
    __syncthreads();

    out[threadIdx.x] = box[threadIdx.x];
}

// The first phase has parity 0: who waits for parity 1 passes at once.
__global__ void bulk_parity(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 128);
        load(box, in, 128, &full);
    }
    __syncthreads();
    wait(&full, 1);
    out[threadIdx.x] = box[threadIdx.x];
}

// 256 bytes are announced, 128 come.
__global__ void expect_too_much(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 256);
        load(box, in, 128, &full);
    }
    __syncthreads();
    wait(&full, 0);
    out[threadIdx.x] = box[threadIdx.x];
}

// Two copies of 64 bytes each, but only 64 bytes are announced.
__global__ void expect_too_little(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 64);
        load(box, in, 64, &full);
        load(box + 16, in + 16, 64, &full);
    }
    __syncthreads();
    wait(&full, 0);
    wait(&full, 1);
    out[threadIdx.x] = box[threadIdx.x];
}

// An arrival without the announcement of bytes: the phase is over before the copy arrives.
__global__ void expect_forgotten(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        arrive(&full);
        load(box, in, 128, &full);
    }
    __syncthreads();
    wait(&full, 0);
    out[threadIdx.x] = box[threadIdx.x];
}

// The barrier waits for two arrivals, and only one thread arrives.
__global__ void arrivals_too_few(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 2);
        expect(&full, 128);
        load(box, in, 128, &full);
    }
    __syncthreads();
    wait(&full, 0);
    out[threadIdx.x] = box[threadIdx.x];
}

// The barrier is never initialised.
__global__ void barrier_not_initialised(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        expect(&full, 128);
        load(box, in, 128, &full);
    }
    __syncthreads();
    wait(&full, 0);
    out[threadIdx.x] = box[threadIdx.x];
}

// try_wait may come back before the phase is over: it belongs in a loop.
__global__ void try_wait_once(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 128);
        load(box, in, 128, &full);
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; }" ::"r"(
                     address(&full))
                 : "memory");
    out[threadIdx.x] = box[threadIdx.x];
}

// A bulk copy moves multiples of 16 bytes.
__global__ void bulk_size(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 124);
        load(box, in, 124, &full);
    }
    __syncthreads();
    wait(&full, 0);
    out[threadIdx.x] = box[threadIdx.x];
}

// The copy reads 64 bytes past the end of the array.
__global__ void bulk_past_source(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 128);
        load(box, in + 16, 128, &full);
    }
    __syncthreads();
    wait(&full, 0);
    out[threadIdx.x] = box[threadIdx.x];
}

// A loop that clears one element too many clears the barrier behind the box.
struct Shared_barrier_overwritten {
    float box[32];
    unsigned long long full;
};
__global__ void barrier_overwritten(float* out, const float* in) {
    __shared__ __align__(128) Shared_barrier_overwritten s;
    if (threadIdx.x == 0) {
        init(&s.full, 1);
        float* box = s.box;
        for (int i = 0; i <= 32; ++i)
            box[i] = 0;
        expect(&s.full, 128);
        load(s.box, in, 128, &s.full);
    }
    __syncthreads();
    wait(&s.full, 0);
    out[threadIdx.x] = s.box[threadIdx.x];
}

// The block ends while a copy to its shared memory is on its way.
__global__ void block_ends(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 128);
        load(box, in, 128, &full);
    }
    out[threadIdx.x] = 1;
}

// The producer does not wait until the stage has been read.
__global__ void ring_not_emptied(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full, empty;
    if (threadIdx.x == 0) {
        init(&full, 1);
        init(&empty, 32);
    }
    __syncthreads();
    float sum = 0;
    if (threadIdx.x >= 32) {
        if (threadIdx.x == 32)
            for (int i = 0; i < 4; ++i) {
                expect(&full, 128);
                load(box, in + i * 32, 128, &full);
            }
    } else {
        for (int i = 0; i < 4; ++i) {
            wait(&full, i % 2);
            sum += box[threadIdx.x];
            arrive(&empty);
        }
        out[threadIdx.x] = sum;
    }
}

// The consumer gives the stage back before it has read it.
__global__ void ring_arrives_first(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full, empty;
    if (threadIdx.x == 0) {
        init(&full, 1);
        init(&empty, 32);
    }
    __syncthreads();
    float sum = 0;
    if (threadIdx.x >= 32) {
        if (threadIdx.x == 32)
            for (int i = 0; i < 4; ++i) {
                wait(&empty, i % 2 ^ 1);
                expect(&full, 128);
                load(box, in + i * 32, 128, &full);
            }
    } else {
        for (int i = 0; i < 4; ++i) {
            wait(&full, i % 2);
            arrive(&empty);
            sum += box[threadIdx.x];
        }
        out[threadIdx.x] = sum;
    }
}

// The consumer forgets that the parity changes with each round.
__global__ void ring_parity_stands(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full, empty;
    if (threadIdx.x == 0) {
        init(&full, 1);
        init(&empty, 32);
    }
    __syncthreads();
    float sum = 0;
    if (threadIdx.x >= 32) {
        if (threadIdx.x == 32)
            for (int i = 0; i < 4; ++i) {
                wait(&empty, i % 2 ^ 1);
                expect(&full, 128);
                load(box, in + i * 32, 128, &full);
            }
    } else {
        for (int i = 0; i < 4; ++i) {
            wait(&full, 0);
            sum += box[threadIdx.x];
            arrive(&empty);
        }
        out[threadIdx.x] = sum;
    }
}

// The barrier expects all 32 consumers, and one of them arrives.
__global__ void ring_one_arrives(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full, empty;
    if (threadIdx.x == 0) {
        init(&full, 1);
        init(&empty, 32);
    }
    __syncthreads();
    float sum = 0;
    if (threadIdx.x >= 32) {
        if (threadIdx.x == 32)
            for (int i = 0; i < 4; ++i) {
                wait(&empty, i % 2 ^ 1);
                expect(&full, 128);
                load(box, in + i * 32, 128, &full);
            }
    } else {
        for (int i = 0; i < 4; ++i) {
            wait(&full, i % 2);
            sum += box[threadIdx.x];
            if (threadIdx.x == 0)
                arrive(&empty);
        }
        out[threadIdx.x] = sum;
    }
}

// In the first round the stage is free: a producer that waits for parity 0 waits for ever.
__global__ void ring_first_round(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full, empty;
    if (threadIdx.x == 0) {
        init(&full, 1);
        init(&empty, 32);
    }
    __syncthreads();
    float sum = 0;
    if (threadIdx.x >= 32) {
        if (threadIdx.x == 32)
            for (int i = 0; i < 4; ++i) {
                wait(&empty, i % 2);
                expect(&full, 128);
                load(box, in + i * 32, 128, &full);
            }
    } else {
        for (int i = 0; i < 4; ++i) {
            wait(&full, i % 2);
            sum += box[threadIdx.x];
            arrive(&empty);
        }
        out[threadIdx.x] = sum;
    }
}

// The copy engine may not see what threads have written.
__global__ void store_no_fence(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    box[threadIdx.x] = in[threadIdx.x];

    __syncthreads();
    if (threadIdx.x == 0) {
        store(out, box, 128);
        commit_stores();
        stores_have_read();
    }
}

// The copy begins before all threads have written.
__global__ void store_no_sync(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    box[threadIdx.x] = in[threadIdx.x];
    show();
    if (threadIdx.x == 0) {
        store(out, box, 128);
        commit_stores();
        stores_have_read();
    }
}

// The block ends before its shared memory has been read.
__global__ void store_not_waited(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    box[threadIdx.x] = in[threadIdx.x];
    show();
    __syncthreads();
    if (threadIdx.x == 0) {
        store(out, box, 128);
        commit_stores();
    }
}

// Without commit_group there is no group to wait for.
__global__ void store_no_commit(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    box[threadIdx.x] = in[threadIdx.x];
    show();
    __syncthreads();
    if (threadIdx.x == 0) {
        store(out, box, 128);
        stores_have_read();
    }
}

// The box is filled anew before the copy has read it.
__global__ void store_box_reused(float* out, const float* in) {
    __shared__ __align__(128) float box[32];
    box[threadIdx.x] = in[threadIdx.x];
    show();
    __syncthreads();
    if (threadIdx.x == 0) {
        store(out, box, 128);
        commit_stores();
    }
    __syncthreads();
    box[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        stores_have_read();
}

// A barrier does not wait for cp.async.
__global__ void cp_no_wait(float* out, const float* in) {
    __shared__ float box[32];
    copy(box + threadIdx.x, in + threadIdx.x);
    close_group();
    __syncthreads();
    out[threadIdx.x] = box[31 - threadIdx.x];
}

// What is in no group is not waited for.
__global__ void cp_no_commit(float* out, const float* in) {
    __shared__ float box[32];
    copy(box + threadIdx.x, in + threadIdx.x);
    wait_for_groups<0>();
    __syncthreads();
    out[threadIdx.x] = box[31 - threadIdx.x];
}

// wait_group 1 leaves the younger group under way, and that is the one which is read.
__global__ void cp_waits_for_older(float* out, const float* in) {
    __shared__ float box[64];
    copy(box + threadIdx.x, in + threadIdx.x);
    close_group();
    copy(box + 32 + threadIdx.x, in + threadIdx.x);
    close_group();
    wait_for_groups<1>();
    __syncthreads();
    out[threadIdx.x] = box[63 - threadIdx.x];
}

// Each thread waits for its own copies only: what others have copied needs a barrier too.
__global__ void cp_no_barrier(float* out, const float* in) {
    __shared__ float box[32];
    copy(box + threadIdx.x, in + threadIdx.x);
    close_group();
    wait_for_groups<0>();
    out[threadIdx.x] = box[31 - threadIdx.x];
}

// cp.async reads past the end of the array.
__global__ void cp_past_source(float* out, const float* in) {
    __shared__ float box[32];
    copy(box + threadIdx.x, in + threadIdx.x + 1);
    close_group();
    wait_for_groups<0>();
    __syncthreads();
    out[threadIdx.x] = box[31 - threadIdx.x];
}

int main(int, char** arguments) {
    const char* name = arguments[1];
    int count = strstr(name, "ring") ? 128 : 32;
    float *in, *out;
    cudaMalloc(&in, count * sizeof(float));
    cudaMalloc(&out, count * sizeof(float));
    cudaMemset(in, 0, count * sizeof(float));
    if (!strcmp(name, "bulk_no_wait"))
        bulk_no_wait<<<1, 32>>>(out, in);
    if (!strcmp(name, "bulk_parity"))
        bulk_parity<<<1, 32>>>(out, in);
    if (!strcmp(name, "expect_too_much"))
        expect_too_much<<<1, 32>>>(out, in);
    if (!strcmp(name, "expect_too_little"))
        expect_too_little<<<1, 32>>>(out, in);
    if (!strcmp(name, "expect_forgotten"))
        expect_forgotten<<<1, 32>>>(out, in);
    if (!strcmp(name, "arrivals_too_few"))
        arrivals_too_few<<<1, 32>>>(out, in);
    if (!strcmp(name, "barrier_not_initialised"))
        barrier_not_initialised<<<1, 32>>>(out, in);
    if (!strcmp(name, "try_wait_once"))
        try_wait_once<<<1, 32>>>(out, in);
    if (!strcmp(name, "bulk_size"))
        bulk_size<<<1, 32>>>(out, in);
    if (!strcmp(name, "bulk_past_source"))
        bulk_past_source<<<1, 32>>>(out, in);
    if (!strcmp(name, "barrier_overwritten"))
        barrier_overwritten<<<1, 32>>>(out, in);
    if (!strcmp(name, "block_ends"))
        block_ends<<<1, 32>>>(out, in);
    if (!strcmp(name, "ring_not_emptied"))
        ring_not_emptied<<<1, 64>>>(out, in);
    if (!strcmp(name, "ring_arrives_first"))
        ring_arrives_first<<<1, 64>>>(out, in);
    if (!strcmp(name, "ring_parity_stands"))
        ring_parity_stands<<<1, 64>>>(out, in);
    if (!strcmp(name, "ring_one_arrives"))
        ring_one_arrives<<<1, 64>>>(out, in);
    if (!strcmp(name, "ring_first_round"))
        ring_first_round<<<1, 64>>>(out, in);
    if (!strcmp(name, "store_no_fence"))
        store_no_fence<<<1, 32>>>(out, in);
    if (!strcmp(name, "store_no_sync"))
        store_no_sync<<<1, 32>>>(out, in);
    if (!strcmp(name, "store_not_waited"))
        store_not_waited<<<1, 32>>>(out, in);
    if (!strcmp(name, "store_no_commit"))
        store_no_commit<<<1, 32>>>(out, in);
    if (!strcmp(name, "store_box_reused"))
        store_box_reused<<<1, 32>>>(out, in);
    if (!strcmp(name, "cp_no_wait"))
        cp_no_wait<<<1, 32>>>(out, in);
    if (!strcmp(name, "cp_no_commit"))
        cp_no_commit<<<1, 32>>>(out, in);
    if (!strcmp(name, "cp_waits_for_older"))
        cp_waits_for_older<<<1, 32>>>(out, in);
    if (!strcmp(name, "cp_no_barrier"))
        cp_no_barrier<<<1, 32>>>(out, in);
    if (!strcmp(name, "cp_past_source"))
        cp_past_source<<<1, 32>>>(out, in);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
