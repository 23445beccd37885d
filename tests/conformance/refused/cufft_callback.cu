// expect: cufftXtSetCallback; line 10; mode: fast
// Of cufftXt.h what cufft.h has is offered, and nothing else.
#include <cufftXt.h>
__device__ cufftComplex load(void*, size_t, void*, void*);
int main() {
    cufftHandle plan;
    cufftPlan1d(&plan, 8, CUFFT_C2C, 1);
    void* loads = (void*)load;
    cufftXtCallbackType kind = CUFFT_CB_LD_COMPLEX;
    cufftXtSetCallback(plan, &loads, kind, nullptr);
    cufftDestroy(plan);
}
