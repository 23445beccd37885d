// read_order reads in which order the digits are used: for each epoch all of their numbers.
#pragma once
#include <cstring>
#include "files.cuh"

inline std::vector<int> read_order(const std::string& path, int digits) {
    const char* name = path.c_str();
    Bytes bytes = read_file(path);
    std::vector<int> order(bytes.size() / sizeof(int));
    memcpy(order.data(), bytes.data(), order.size() * sizeof(int));
    if (order.empty() || order.size() % digits)
        fail("%s holds %zu numbers, not %d an epoch", name, order.size(), digits);
    for (int digit : order)
        if (digit < 0 || digit >= digits)
            fail("%s is corrupt: digit %d of %d", name, digit, digits);
    return order;
}
