// Sums and the like of NCCL's types, in the order of its ncclDataType_t and ncclRedOp_t.
#include "collectives.h"
#include "numbers.h"

namespace cuda_cpu {
const int mean_of = 4;  // ncclAvg
template <class T>
struct Reduce {
    static auto wide(T value) {  // half and bfloat16 are reckoned with as floats
        if constexpr (std::is_arithmetic_v<T>)
            return value;
        else
            return ptx::worth(value);
    }
    using Wide = decltype(wide(T()));
    template <class F>
    static void each(void* to, const void* from, size_t count, F f) {
        for (size_t i = 0; i < count; i++) {
            T& a = static_cast<T*>(to)[i];
            auto result = f(wide(a), wide(static_cast<const T*>(from)[i]));
            if constexpr (std::is_arithmetic_v<T>)
                a = T(result);
            else
                a = ptx::to_small<T>(result);
        }
    }
    static void sum(void* to, const void* from, size_t count) {
        each(to, from, count, [](Wide a, Wide b) { return a + b; });
    }
    static void product(void* to, const void* from, size_t count) {
        each(to, from, count, [](Wide a, Wide b) { return a * b; });
    }
    static void larger(void* to, const void* from, size_t count) {
        each(to, from, count, [](Wide a, Wide b) { return a < b ? b : a; });
    }
    static void smaller(void* to, const void* from, size_t count) {
        each(to, from, count, [](Wide a, Wide b) { return b < a ? b : a; });
    }
    static void mean(void* to, size_t count, int ranks) {
        each(to, to, count, [=](Wide a, Wide) { return a / Wide(ranks); });
    }
    static Numbers of(const char* type, int operation) {
        void (*const functions[])(void*, const void*, size_t) = {sum, product, larger, smaller,
                                                                 sum};
        return {type, sizeof(T), functions[operation], operation == mean_of ? mean : nullptr};
    }
};
bool find_numbers(Collective& t) {
    static const struct {
        const char* type;
        Numbers (*of)(const char* type, int operation);
    } types[] = {
        {"ncclInt8", Reduce<signed char>::of}, {"ncclUint8", Reduce<unsigned char>::of},
        {"ncclInt32", Reduce<int>::of},        {"ncclUint32", Reduce<unsigned>::of},
        {"ncclInt64", Reduce<long long>::of},  {"ncclUint64", Reduce<unsigned long long>::of},
        {"ncclFloat16", Reduce<ptx::f16>::of}, {"ncclFloat32", Reduce<float>::of},
        {"ncclFloat64", Reduce<double>::of},   {"ncclBfloat16", Reduce<ptx::bf16>::of}};
    if (unsigned(t.type) >= std::size(types) || unsigned(t.operation) > mean_of)
        return false;
    t.numbers = types[t.type].of(types[t.type].type, t.operation);
    return true;
}
}  // namespace cuda_cpu
