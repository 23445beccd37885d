// y = w x where two of every four neighbouring weights are zero: cuSPARSELt. sparse24 [side] [time]
#include <cuda_bf16.h>
#include <cusparse.h>
#include <cusparseLt.h>
#include "clock.cuh"

constexpr unsigned ALIGNMENT = 16;  // bytes

std::vector<__nv_bfloat16> rounded(const std::vector<float>& values) {
    std::vector<__nv_bfloat16> result(values.size());
    for (size_t i = 0; i < values.size(); i++)
        result[i] = __float2bfloat16(values[i]);
    return result;
}

// The largest error of some rows of w x, with the weights as they were pruned.
double error_of(const std::vector<__nv_bfloat16>& y, const std::vector<__nv_bfloat16>& w,
                const std::vector<__nv_bfloat16>& x, int side) {
    double largest = 0;
    for (int row : {0, side / 2, side - 1})
        for (int column = 0; column < side; column += 5) {
            double right = 0;
            for (int p = 0; p < side; p++)
                right += double(__bfloat162float(w[size_t(row) * side + p])) *
                         __bfloat162float(x[size_t(p) * side + column]);
            const double error =
                std::fabs(__bfloat162float(y[size_t(row) * side + column]) - right);
            largest = error <= largest ? largest : error;
        }
    return largest;
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int side = given.number(1, 256);
    const size_t size = size_t(side) * side;
    const auto x = rounded(random_floats(size, 1));
    Device<__nv_bfloat16> w(rounded(random_floats(size, 2))), d_x(x);
    Device<__nv_bfloat16> y(size);

    cusparseLtHandle_t handle;
    CHECK(cusparseLtInit(&handle));
    cusparseLtMatDescriptor_t sparse, dense;
    CHECK(cusparseLtStructuredDescriptorInit(&handle, &sparse, side, side, side, ALIGNMENT,
                                             CUDA_R_16BF, CUSPARSE_ORDER_ROW,
                                             CUSPARSELT_SPARSITY_50_PERCENT));
    CHECK(cusparseLtDenseDescriptorInit(&handle, &dense, side, side, side, ALIGNMENT, CUDA_R_16BF,
                                        CUSPARSE_ORDER_ROW));
    cusparseLtMatmulDescriptor_t operation;
    const auto plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
    CHECK(cusparseLtMatmulDescriptorInit(&handle, &operation, plain, plain, &sparse, &dense, &dense,
                                         &dense, CUSPARSE_COMPUTE_32F));
    cusparseLtMatmulAlgSelection_t choice;
    cusparseLtMatmulPlan_t plan;
    CHECK(cusparseLtMatmulAlgSelectionInit(&handle, &choice, &operation,
                                           CUSPARSELT_MATMUL_ALG_DEFAULT));
    CHECK(cusparseLtMatmulPlanInit(&handle, &plan, &operation, &choice));

    // Two of four go, the smallest; what stays is packed, with 2 bits each to say where it was.
    CHECK(cusparseLtSpMMAPrune(&handle, &operation, w, w, CUSPARSELT_PRUNE_SPMMA_STRIP, nullptr));
    size_t bytes = 0, packing_bytes = 0, workspace_bytes = 0;
    CHECK(cusparseLtSpMMACompressedSize(&handle, &plan, &bytes, &packing_bytes));
    Device<char> packed(bytes), packing(packing_bytes + 1);
    CHECK(cusparseLtSpMMACompress(&handle, &plan, w, packed, packing, nullptr));
    CHECK(cusparseLtMatmulGetWorkspace(&handle, &plan, &workspace_bytes));
    Device<char> workspace(std::max(workspace_bytes, size_t(64) << 20));
    const float alpha = 1, beta = 0;
    const auto multiply = [&] {
        CHECK(cusparseLtMatmul(&handle, &plan, &alpha, packed, d_x, &beta, y, y, workspace, nullptr,
                               0));
    };
    multiply();
    CHECK(cudaDeviceSynchronize());
    std::printf("packed weights: %.1f %% of the bytes\n", 100.0 * bytes / (2.0 * side * side));
    require("2:4 product", error_of(y.host(), w.host(), x, side), 0.02 * std::sqrt(side));
    if (wants_time(argc, argv)) {
        print_time("sparse24", multiply);
        // Not what the heuristic thinks, but what is fastest here: tries all, keeps it in the plan.
        CHECK(cusparseLtMatmulSearch(&handle, &plan, &alpha, packed, d_x, &beta, y, y,
                                     workspace.data, nullptr, 0));
        multiply();
        require("2:4 product, searched", error_of(y.host(), w.host(), x, side),
                0.02 * std::sqrt(side));
        print_time("sparse24_searched", multiply);
    }
    CHECK(cusparseLtMatmulPlanDestroy(&plan));
    CHECK(cusparseLtDestroy(&handle));
}
