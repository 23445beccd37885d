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

int main(int argc, char** argv) {
    const bool sizes = argc > 2 && std::atoi(argv[2]);
    const Csr a = random_csr(sizes ? std::atoi(argv[1]) : 40, sizes ? std::atoi(argv[2]) : 6);
    const std::vector<float> x = random_floats(a.rows, 9);
    const int nonzeros = int(a.values.size());
    Device<int> offsets(a.offsets), columns(a.columns);
    Device<float> values(a.values), d_x(x), d_y(a.rows);

    cusparseHandle_t handle;
    CHECK(cusparseCreate(&handle));
    cusparseSpMatDescr_t matrix;
    CHECK(cusparseCreateCsr(&matrix, a.rows, a.rows, nonzeros, offsets, columns, values,
                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                            CUDA_R_32F));
    cusparseDnVecDescr_t from, to;
    CHECK(cusparseCreateDnVec(&from, a.rows, d_x, CUDA_R_32F));
    CHECK(cusparseCreateDnVec(&to, a.rows, d_y, CUDA_R_32F));

    const float alpha = 1, beta = 0;
    const auto whole = CUSPARSE_OPERATION_NON_TRANSPOSE;
    size_t bytes = 0;
    CHECK(cusparseSpMV_bufferSize(handle, whole, &alpha, matrix, from, &beta, to, CUDA_R_32F,
                                  CUSPARSE_SPMV_ALG_DEFAULT, &bytes));
    Device<char> workspace(bytes > 0 ? bytes : 1);
    const auto multiply_once = [&] {
        CHECK(cusparseSpMV(handle, whole, &alpha, matrix, from, &beta, to, CUDA_R_32F,
                           CUSPARSE_SPMV_ALG_DEFAULT, workspace));
    };
    multiply_once();
    require("cusparseSpMV", largest_error(d_y.host(), multiply(a, x)), 1e-4);

    const int threads = 256, blocks = (a.rows * 8 + threads - 1) / threads;
    const auto by_kernel = [&] {
        spmv_lanes<<<blocks, threads>>>(d_y, offsets, columns, values, d_x, a.rows);
    };
    by_kernel();
    CHECK(cudaGetLastError());
    require("our kernel", largest_error(d_y.host(), multiply(a, x)), 1e-4);

    if (wants_time(argc, argv)) {
        print_time("spmv", multiply_once);
        print_time("spmv_ours", by_kernel);
    }
    CHECK(cusparseDestroyDnVec(to));
    CHECK(cusparseDestroyDnVec(from));
    CHECK(cusparseDestroySpMat(matrix));
    CHECK(cusparseDestroy(handle));
}
