// y = a x with a sparse matrix in CSR, by cuSPARSE and by a kernel. spmv [rows each] [time]
#include <cusparse.h>
#include "clock.cuh"

struct Csr {
    int rows;
    std::vector<int> offsets, columns;  // row r is what lies from offsets[r] to offsets[r + 1]
    std::vector<float> values;
};

// Rows of `each` random elements; every fifth row is empty.
Csr random_csr(int rows, int each) {
    std::mt19937 engine(7);
    Csr a{rows, {0}, {}, {}};
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < (r % 5 == 4 ? 0 : each); i++)
            a.columns.push_back(engine() % rows);
        a.offsets.push_back(int(a.columns.size()));
    }
    a.values = random_floats(a.columns.size(), 8);
    return a;
}

std::vector<double> multiply(const Csr& a, const std::vector<float>& x) {
    std::vector<double> y(a.rows, 0.0);
    for (int r = 0; r < a.rows; r++)
        for (int i = a.offsets[r]; i < a.offsets[r + 1]; i++)
            y[r] += double(a.values[i]) * x[a.columns[i]];
    return y;
}

// A kernel of ours beside it: 8 neighbouring lanes a row, so that they read neighbours.
__global__ void spmv_lanes(float* y, const int* offsets, const int* columns, const float* values,
                           const float* x, int rows) {
    constexpr int LANES = 8;
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = thread / LANES, lane = thread % LANES;
    float sum = 0;
    if (row < rows)
        for (int i = offsets[row] + lane; i < offsets[row + 1]; i += LANES)
            sum += values[i] * x[columns[i]];
    for (int step = LANES / 2; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step, LANES);
    if (row < rows && lane == 0)
        y[row] = sum;
}

// The matrix on the GPU, three arrays.
struct DeviceCsr {
    Device<int> offsets, columns;
    Device<float> values;

    explicit DeviceCsr(const Csr& a) : offsets(a.offsets), columns(a.columns), values(a.values) {}
};

// y = a x by cuSPARSE: descriptors of the matrix and of both vectors, and a workspace.
struct SparseProduct {
    static constexpr float ALPHA = 1, BETA = 0;
    static constexpr auto PLAIN = CUSPARSE_OPERATION_NON_TRANSPOSE;
    static constexpr auto WAY = CUSPARSE_SPMV_ALG_DEFAULT;
    cusparseHandle_t handle;
    cusparseSpMatDescr_t matrix;
    cusparseDnVecDescr_t from, to;
    char* workspace = nullptr;

    SparseProduct(const DeviceCsr& a, int rows, float* x, float* y) {
        CHECK(cusparseCreate(&handle));
        CHECK(cusparseCreateCsr(&matrix, rows, rows, a.values.size, a.offsets, a.columns, a.values,
                                CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                CUDA_R_32F));
        CHECK(cusparseCreateDnVec(&from, rows, x, CUDA_R_32F));
        CHECK(cusparseCreateDnVec(&to, rows, y, CUDA_R_32F));
        size_t bytes = 0;
        CHECK(cusparseSpMV_bufferSize(handle, PLAIN, &ALPHA, matrix, from, &BETA, to, CUDA_R_32F,
                                      WAY, &bytes));
        if (bytes > 0)
            CHECK(cudaMalloc(&workspace, bytes));
    }
    void operator()() {
        CHECK(cusparseSpMV(handle, PLAIN, &ALPHA, matrix, from, &BETA, to, CUDA_R_32F, WAY,
                           workspace));
    }
    ~SparseProduct() {
        cudaFree(workspace);
        cusparseDestroyDnVec(to);
        cusparseDestroyDnVec(from);
        cusparseDestroySpMat(matrix);
        cusparseDestroy(handle);
    }
};

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const Csr a = random_csr(given.number(1, 40), given.number(2, 6));
    const std::vector<float> x = random_floats(a.rows, 9);
    const std::vector<double> right = multiply(a, x);
    DeviceCsr d_a(a);
    Device<float> d_x(x), d_y(a.rows);

    SparseProduct by_library(d_a, a.rows, d_x, d_y);
    by_library();
    require("cusparseSpMV", largest_error(d_y.host(), right), 1e-4);

    const int threads = 256, blocks = (a.rows * 8 + threads - 1) / threads;
    CHECK(cudaMemset(d_y, 0xff, a.rows * sizeof(float)));
    const auto by_kernel = [&] {
        spmv_lanes<<<blocks, threads>>>(d_y, d_a.offsets, d_a.columns, d_a.values, d_x, a.rows);
    };
    by_kernel();
    CHECK(cudaGetLastError());
    require("our kernel", largest_error(d_y.host(), right), 1e-4);

    if (wants_time(argc, argv)) {
        print_time("spmv", by_library);
        print_time("spmv_ours", by_kernel);
    }
}
