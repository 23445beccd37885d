// flags: -lcublasLt
// cuBLASLt: descriptors, layouts, preference, heuristics, epilogues, row-major, batches, statuses.
#include <cstdio>
#include <cublasLt.h>

struct Matmul {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    Matmul(int m, int n, int k, int lda) {
        cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, m, k, lda);
        cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, k, n, k);
        cublasLtMatrixLayoutCreate(&c, CUDA_R_32F, m, n, m);
    }
    ~Matmul() {
        cublasLtMatmulDescDestroy(desc);
        for (auto layout : {a, b, c})
            cublasLtMatrixLayoutDestroy(layout);
    }
    void epilogue(cublasLtEpilogue_t kind, float* bias) {
        cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &kind, sizeof kind);
        cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    }
    int run(cublasLtHandle_t lt, float alpha, const float* x, const float* y, float beta,
            float* z) {
        return cublasLtMatmul(lt, desc, &alpha, x, a, y, b, &beta, z, c, z, c, nullptr, nullptr, 0,
                              0);
    }
};

void show(const float* z, int n) {
    cudaDeviceSynchronize();
    for (int i = 0; i < n; i++)
        printf("%g ", z[i]);
    printf("\n");
}

int main() {
    const int m = 4, n = 4, k = 8;
    cublasLtHandle_t lt;
    cublasLtCreate(&lt);
    float *x, *y, *z, *bias;
    for (float** p : {&x, &y, &z, &bias})
        cudaMallocManaged(p, 64 * sizeof(float));
    auto reset = [&] {
        cudaDeviceSynchronize();
        for (int i = 0; i < 64; i++)
            x[i] = i % 7 - 3, y[i] = i % 5 - 2, z[i] = i, bias[i] = 10 * i - 15;
    };
    for (auto kind : {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS,
                      CUBLASLT_EPILOGUE_RELU_BIAS}) {
        reset();
        Matmul p(m, n, k, m);
        p.epilogue(kind, bias);
        printf("%d: ", p.run(lt, 2, x, y, 1, z));
        show(z, m * n);
    }
    {  // A as rows: the same numbers, read the other way round
        reset();
        Matmul p(m, n, k, k);
        cublasLtOrder_t rows = CUBLASLT_ORDER_ROW;
        cublasLtMatrixLayoutSetAttribute(p.a, CUBLASLT_MATRIX_LAYOUT_ORDER, &rows, sizeof rows);
        printf("%d: ", p.run(lt, 1, x, y, 0, z));
        show(z, m * n);
    }
    {  // two products in one call
        reset();
        Matmul p(m, n, 4, m);
        int two = 2;
        int64_t apart = 16;
        for (auto layout : {p.a, p.b, p.c}) {
            cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &two,
                                             sizeof two);
            cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                             &apart, sizeof apart);
        }
        printf("%d: ", p.run(lt, 1, x, y, 0, z));
        show(z, 2 * m * n);
    }
    Matmul p(m, n, k, m);
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulPreferenceCreate(&preference);
    uint64_t none = 0;
    int wrong_size = 0;
    printf("%d\n", cublasLtMatmulPreferenceSetAttribute(preference,
                                                        CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                        &wrong_size, sizeof wrong_size));
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &none, sizeof none);
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    int status = cublasLtMatmulAlgoGetHeuristic(lt, p.desc, p.a, p.b, p.c, p.c, preference, 1,
                                                &best, &found);
    printf("%d %d %zu %d\n", status, found, best.workspaceSize, best.state);
    float one = 1, zero = 0;
    status = cublasLtMatmul(lt, p.desc, &one, x, p.a, y, p.b, &zero, z, p.c, z, p.c, &best.algo,
                            nullptr, 0, 0);
    printf("%d: ", status);
    show(z, 4);
    Matmul other(m, n, k - 1, m);  // op(A) has 7 columns, op(B) 8 rows
    printf("%d\n", cublasLtMatmul(lt, p.desc, &one, x, other.a, y, p.b, &zero, z, p.c, z, p.c,
                                  nullptr, nullptr, 0, 0));
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtDestroy(lt);
    for (float* q : {x, y, z, bias})
        cudaFree(q);
}
