// cuFFT on the CPU: complex and real transforms of any size in one to three dimensions, single and
// double, batched.
//
// As in NVIDIA's library nothing is scaled: forward then inverse multiplies by the number of
// points. The last dimension is the fastest; a real transform stores n / 2 + 1 of its last
// dimension's frequencies. What is missing (cufftXt..., callbacks, half precision) does not
// compile.
#pragma once
#define _CUFFT_H_  // asked for by helper_cuda.h
#include "cufft/transform.h"
#include "macros_aside.inc"

// A handle without a plan yet: cufftMakePlan... gives it one.
inline cufftResult cufftCreate(cufftHandle* h) {
    auto& plans = ::cuda_cpu::fft_plans();
    plans.push_back({});
    *h = (int)plans.size() - 1;
    return CUFFT_SUCCESS;
}
inline cufftResult cufftDestroy(cufftHandle h) {
    if (!::cuda_cpu::find_plan(h))
        return CUFFT_INVALID_PLAN;
    ::cuda_cpu::find_plan(h)->live = false;
    return CUFFT_SUCCESS;
}

// A plan for `batch` transforms. With inembed or onembed null the data is dense, and strides and
// distances are ignored.
inline cufftResult cufftMakePlanMany(cufftHandle h, int rank, int* n, int* inembed, int istride,
                                     int idist, int* onembed, int ostride, int odist,
                                     cufftType type, int batch, size_t* work_bytes) {
    ::cuda_cpu::FftPlan* made = ::cuda_cpu::find_plan(h);
    if (!made || made->made)
        return CUFFT_INVALID_PLAN;
    if (rank < 1 || rank > 3 || !n)
        return CUFFT_INVALID_VALUE;
    if (batch < 1)
        return CUFFT_INVALID_SIZE;
    ::cuda_cpu::FftPlan plan = *made;
    plan.rank = rank;
    plan.batch = batch;
    plan.type = type;
    plan.made = true;
    for (int d = 0; d < rank; d++) {
        if (n[d] < 1)
            return CUFFT_INVALID_SIZE;
        plan.n[3 - rank + d] = n[d];
    }
    int half = plan.n[2] / 2 + 1;
    int last_in = type == CUFFT_C2R || type == CUFFT_Z2D ? half : plan.n[2];
    int last_out = type == CUFFT_R2C || type == CUFFT_D2Z ? half : plan.n[2];
    auto layout = [&](int last, int* embed, int stride, int distance) {
        ::cuda_cpu::FftLayout l;
        l.e1 = rank > 2 && embed ? embed[1] : plan.n[1];
        l.e2 = embed ? embed[rank - 1] : last;
        l.stride = embed ? stride : 1;
        l.distance = embed ? distance : (long)plan.n[0] * plan.n[1] * last;
        return l;
    };
    bool dense = plan.dense = !inembed || !onembed;
    plan.in = layout(last_in, dense ? nullptr : inembed, istride, idist);
    plan.out = layout(last_out, dense ? nullptr : onembed, ostride, odist);
    *made = plan;
    if (work_bytes)
        *work_bytes = plan.work_bytes();
    return CUFFT_SUCCESS;
}
inline cufftResult cufftMakePlan1d(cufftHandle h, int nx, cufftType type, int batch,
                                   size_t* work_bytes) {
    return cufftMakePlanMany(h, 1, &nx, nullptr, 1, nx, nullptr, 1, nx, type, batch, work_bytes);
}
inline cufftResult cufftMakePlan2d(cufftHandle h, int nx, int ny, cufftType type,
                                   size_t* work_bytes) {
    int n[] = {nx, ny};
    return cufftMakePlanMany(h, 2, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, work_bytes);
}
inline cufftResult cufftMakePlan3d(cufftHandle h, int nx, int ny, int nz, cufftType type,
                                   size_t* work_bytes) {
    int n[] = {nx, ny, nz};
    return cufftMakePlanMany(h, 3, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, work_bytes);
}

// Both steps in one call.
inline cufftResult cufftPlanMany(cufftHandle* h, int rank, int* n, int* inembed, int istride,
                                 int idist, int* onembed, int ostride, int odist, cufftType type,
                                 int batch) {
    cufftHandle made;
    cufftCreate(&made);
    cufftResult result = cufftMakePlanMany(made, rank, n, inembed, istride, idist, onembed, ostride,
                                           odist, type, batch, nullptr);
    if (result == CUFFT_SUCCESS)
        *h = made;
    else
        cufftDestroy(made);
    return result;
}
inline cufftResult cufftPlan1d(cufftHandle* h, int nx, cufftType type, int batch) {
    return cufftPlanMany(h, 1, &nx, nullptr, 1, nx, nullptr, 1, nx, type, batch);
}
inline cufftResult cufftPlan2d(cufftHandle* h, int nx, int ny, cufftType type) {
    int n[] = {nx, ny};
    return cufftPlanMany(h, 2, n, nullptr, 1, 0, nullptr, 1, 0, type, 1);
}
inline cufftResult cufftPlan3d(cufftHandle* h, int nx, int ny, int nz, cufftType type) {
    int n[] = {nx, ny, nz};
    return cufftPlanMany(h, 3, n, nullptr, 1, 0, nullptr, 1, 0, type, 1);
}

inline cufftResult cufftSetStream(cufftHandle h, cudaStream_t stream) {
    if (!::cuda_cpu::find_plan(h))
        return CUFFT_INVALID_PLAN;
    ::cuda_cpu::find_plan(h)->stream = stream;
    return CUFFT_SUCCESS;
}
// The memory that a plan works in: its own, or, without automatic allocation, the caller's. Sizes
// are a whole copy of the data; NVIDIA's library often needs less.
inline cufftResult cufftGetSize(cufftHandle h, size_t* work_bytes) {
    ::cuda_cpu::FftPlan* plan = ::cuda_cpu::find_plan(h);
    if (!plan || !plan->made)
        return CUFFT_INVALID_PLAN;
    *work_bytes = plan->work_bytes();
    return CUFFT_SUCCESS;
}
inline cufftResult cufftEstimate1d(int nx, cufftType type, int batch, size_t* work_bytes) {
    if (nx < 1 || batch < 1)
        return CUFFT_INVALID_SIZE;
    ::cuda_cpu::FftPlan plan;
    plan.n[2] = nx;
    plan.batch = batch;
    plan.type = type;
    *work_bytes = plan.work_bytes();
    return CUFFT_SUCCESS;
}
inline cufftResult cufftSetAutoAllocation(cufftHandle h, int automatic) {
    ::cuda_cpu::FftPlan* plan = ::cuda_cpu::find_plan(h);
    if (!plan)
        return CUFFT_INVALID_PLAN;
    plan->own_work_area = automatic;
    return CUFFT_SUCCESS;
}
inline cufftResult cufftSetWorkArea(cufftHandle h, void* work_area) {
    ::cuda_cpu::FftPlan* plan = ::cuda_cpu::find_plan(h);
    if (!plan)
        return CUFFT_INVALID_PLAN;
    plan->work_area = work_area;
    plan->own_work_area = false;
    return CUFFT_SUCCESS;
}
inline cufftResult cufftGetVersion(int* version) {
    *version = 12000;
    return CUFFT_SUCCESS;
}

inline cufftResult cufftExecC2C(cufftHandle h, cufftComplex* in, cufftComplex* out, int direction) {
    return ::cuda_cpu::fft_execute(h, CUFFT_C2C, in, out, direction);
}
inline cufftResult cufftExecZ2Z(cufftHandle h, cufftDoubleComplex* in, cufftDoubleComplex* out,
                                int direction) {
    return ::cuda_cpu::fft_execute(h, CUFFT_Z2Z, in, out, direction);
}
inline cufftResult cufftExecR2C(cufftHandle h, cufftReal* in, cufftComplex* out) {
    return ::cuda_cpu::fft_execute(h, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
inline cufftResult cufftExecD2Z(cufftHandle h, cufftDoubleReal* in, cufftDoubleComplex* out) {
    return ::cuda_cpu::fft_execute(h, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}
inline cufftResult cufftExecC2R(cufftHandle h, cufftComplex* in, cufftReal* out) {
    return ::cuda_cpu::fft_execute(h, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
inline cufftResult cufftExecZ2D(cufftHandle h, cufftDoubleComplex* in, cufftDoubleReal* out) {
    return ::cuda_cpu::fft_execute(h, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}
#include "macros_back.inc"
