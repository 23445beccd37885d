// c = a b in bfloat16 by CUTLASS, on Hopper: the kernel is put together from templates.
// a and c row-major, b column-major. cutlass_gemm [side] [time]
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>
#include "clock.cuh"

using Number = cutlass::bfloat16_t;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
using Tile = cute::Shape<cute::_128, cute::_256, cute::_64>;  // of c, and a step along k
using Cluster = cute::Shape<cute::_2, cute::_1, cute::_1>;  // blocks that share what they load
using Arch = cutlass::arch::Sm90;
using Kind = cutlass::arch::OpClassTensorOp;
constexpr int ALIGNED = 8;  // elements: 16 bytes

// What happens to a tile of sums before it is stored.
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    Arch, Kind, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto, float, float,
    Number, Rows, ALIGNED, Number, Rows, ALIGNED,
    cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;

// How tiles of a and b come and are multiplied; as many stages as shared memory has room for.
using Stages = cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
    sizeof(typename Epilogue::SharedStorage))>;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    Arch, Kind, Number, Rows, ALIGNED, Number, Columns, ALIGNED, float, Tile, Cluster, Stages,
    cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;

using Kernel =
    cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

typename Gemm::Arguments arguments(Number* c, const Number* a, const Number* b, int side) {
    const auto stride = [side](auto kind) {
        return cutlass::make_cute_packed_stride(decltype(kind){}, {side, side, 1});
    };
    return {cutlass::gemm::GemmUniversalMode::kGemm,
            {side, side, side, 1},
            {a, stride(typename Kernel::StrideA{}), b, stride(typename Kernel::StrideB{})},
            {{1.0f, 0.0f},
             c,
             stride(typename Kernel::StrideC{}),
             c,
             stride(typename Kernel::StrideD{})}};
}

std::vector<Number> rounded(const std::vector<float>& values) {
    return std::vector<Number>(values.begin(), values.end());
}

double error_of(const std::vector<Number>& c, const std::vector<Number>& a,
                const std::vector<Number>& b, int side) {
    double largest = 0;
    for (int row : {0, side / 2, side - 1})
        for (int column = 0; column < side; column += 31) {
            double right = 0;
            for (int p = 0; p < side; p++)
                right +=
                    double(float(a[size_t(row) * side + p])) * float(b[size_t(column) * side + p]);
            const double error = std::fabs(float(c[size_t(row) * side + column]) - right);
            largest = error <= largest ? largest : error;
        }
    return largest;
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int side = given.number(1, 512);
    const size_t size = size_t(side) * side;
    const auto a = rounded(random_floats(size, 1));
    const auto b = rounded(random_floats(size, 2));
    Device<Number> d_a(a), d_b(b), d_c(size);
    Gemm gemm;
    const auto asked = arguments(d_c, d_a, d_b, side);
    Device<char> workspace(Gemm::get_workspace_size(asked) + 1);
    CHECK(gemm.can_implement(asked));
    CHECK(gemm.initialize(asked, workspace.data));
    CHECK(gemm.run());
    CHECK(cudaDeviceSynchronize());
    require("CUTLASS", error_of(d_c.host(), a, b, side), 0.02 * std::sqrt(side));
    if (wants_time(argc, argv))
        print_time("cutlass", [&] { CHECK(gemm.run()); });
}
