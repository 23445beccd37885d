// Real kernels once more, against plain loops on the host: sgemv, a 2-D stencil, prefix sums over
// blocks, bitonic sort.
#include <cstdio>
#include <vector>

__global__ void gemv(const float* a, const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return;
    float sum = 0;
    for (int j = threadIdx.x; j < cols; j += 32)
        sum += a[row * cols + j] * x[j];
    for (int k = 16; k > 0; k /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, k);
    if (threadIdx.x == 0)
        y[row] = sum;
}

template <int R>
__global__ void blur(const int* in, int* out, int w, int h) {
    extern __shared__ int tile[];
    const int pitch = blockDim.x + 2 * R;
    int x0 = blockIdx.x * blockDim.x - R, y0 = blockIdx.y * blockDim.y - R;
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < pitch * (int)(blockDim.y + 2 * R);
         i += blockDim.x * blockDim.y) {
        int x = min(max(x0 + i % pitch, 0), w - 1), y = min(max(y0 + i / pitch, 0), h - 1);
        tile[i] = in[y * w + x];
    }
    __syncthreads();
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    int sum = 0;
    for (int dy = 0; dy <= 2 * R; dy++)
        for (int dx = 0; dx <= 2 * R; dx++)
            sum += tile[(threadIdx.y + dy) * pitch + threadIdx.x + dx];
    out[y * w + x] = sum;
}

__global__ void bitonic(int* data) {
    extern __shared__ int s[];
    int t = threadIdx.x, n = blockDim.x;
    s[t] = data[t];
    __syncthreads();
    for (int k = 2; k <= n; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int other = t ^ j;
            if (other > t && (s[t] > s[other]) == ((t & k) == 0)) {
                int v = s[t];
                s[t] = s[other];
                s[other] = v;
            }
            __syncthreads();
        }
    data[t] = s[t];
}

__global__ void scan_blocks(const int* in, int* out, int* totals, int n) {
    __shared__ int a[2][128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t, from = 0;
    a[0][t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int k = 1; k < 128; k *= 2, from ^= 1) {
        a[from ^ 1][t] = a[from][t] + (t >= k ? a[from][t - k] : 0);
        __syncthreads();
    }
    if (i < n)
        out[i] = a[from][t];
    if (t == 127)
        totals[blockIdx.x] = a[from][127];
}
__global__ void add_totals(int* out, const int* totals, int n) {
    __shared__ int before;
    if (threadIdx.x == 0) {
        before = 0;
        for (int b = 0; b < blockIdx.x; b++)
            before += totals[b];
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] += before;
}

template <class T>
T* device(const std::vector<T>& v) {
    T* p;
    cudaMalloc(&p, v.size() * sizeof(T));
    cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
    return p;
}
template <class T>
int wrong(T* p, const std::vector<T>& want) {
    std::vector<T> got(want.size());
    cudaMemcpy(got.data(), p, got.size() * sizeof(T), cudaMemcpyDeviceToHost);
    cudaFree(p);
    int n = 0;
    for (size_t i = 0; i < got.size(); i++)
        n += !(got[i] == want[i]);
    return n;
}

int main() {
    const int rows = 37, cols = 53, w = 45, h = 29, n = 1000;
    std::vector<float> a(rows * cols), x(cols), y(rows, 0);
    for (int i = 0; i < rows * cols; i++)
        a[i] = i % 13 - 6;
    for (int j = 0; j < cols; j++)
        x[j] = j % 5 - 2;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            y[i] += a[i * cols + j] * x[j];
    float *da = device(a), *dx = device(x), *dy = device(std::vector<float>(rows, -1));
    gemv<<<(rows + 3) / 4, dim3(32, 4)>>>(da, dx, dy, rows, cols);
    printf("gemv %d wrong, %g\n", wrong(dy, y), y[36]);
    cudaFree(da);
    cudaFree(dx);

    std::vector<int> image(w * h), blurred(w * h, 0);
    for (int i = 0; i < w * h; i++)
        image[i] = i * 31 % 97;
    for (int r = 0; r < h; r++)
        for (int c = 0; c < w; c++)
            for (int dr = -2; dr <= 2; dr++)
                for (int dc = -2; dc <= 2; dc++) {
                    int rr = r + dr < 0    ? 0
                             : r + dr >= h ? h - 1
                                           : r + dr,
                        cc = c + dc < 0    ? 0
                             : c + dc >= w ? w - 1
                                           : c + dc;
                    blurred[r * w + c] += image[rr * w + cc];
                }
    int *di = device(image), *db = device(std::vector<int>(w * h, -1));
    blur<2><<<dim3((w + 15) / 16, (h + 7) / 8), dim3(16, 8), 20 * 12 * sizeof(int)>>>(di, db, w, h);
    printf("blur %d wrong, %d\n", wrong(db, blurred), blurred[w * h - 1]);
    cudaFree(di);

    std::vector<int> values(512), sorted(512);
    for (int i = 0; i < 512; i++)
        values[i] = i * 97 % 512, sorted[i] = i;
    int* dv = device(values);
    bitonic<<<1, 512, 512 * sizeof(int)>>>(dv);
    printf("sort %d wrong\n", wrong(dv, sorted));

    std::vector<int> in(n), sums(n);
    for (int i = 0, s = 0; i < n; i++)
        in[i] = i % 7 - 2, sums[i] = s += in[i];
    int *din = device(in), *dout = device(in), *totals = device(std::vector<int>(8, 0));
    scan_blocks<<<8, 128>>>(din, dout, totals, n);
    add_totals<<<8, 128>>>(dout, totals, n);
    printf("scan %d wrong, %d\n", wrong(dout, sums), sums[n - 1]);
    cudaFree(din);
    cudaFree(totals);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
