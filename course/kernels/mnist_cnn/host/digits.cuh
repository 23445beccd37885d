// read_digits reads MNIST's IDX files into pinned memory, and says what is wrong with them.
#pragma once
#include <algorithm>
#include "files.cuh"

struct Digits {
    int count;
    unsigned char* images;  // [count][784]
    unsigned char* labels;  // [count]
};

// Four bytes, the most significant first.
inline size_t big_endian(const unsigned char* b) {
    return size_t(b[0]) << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

// The bytes in an IDX file, [count] or [count][28][28]. Its header: 0, 0, 8 for unsigned bytes, the
// number of dimensions, each dimension in 4 bytes.
inline Bytes read_idx(const std::string& path, int dimensions, int& count) {
    Bytes bytes = read_file(path);
    const char* name = path.c_str();
    const Bytes kind = {0, 0, 8, (unsigned char)dimensions};
    size_t header = 4 + 4 * dimensions;
    bool long_enough = bytes.size() >= header;
    if (!long_enough || !std::equal(kind.begin(), kind.end(), bytes.begin()))
        fail("%s is corrupt: not an IDX file of bytes in %d dimensions", name, dimensions);
    count = big_endian(&bytes[4]);
    size_t expected = count;
    for (int d = 1; d < dimensions; ++d) {
        size_t side = big_endian(&bytes[4 + 4 * d]);
        if (side != 28)
            fail("%s is corrupt: digits are 28 x 28", name);
        expected *= side;
    }
    size_t present = bytes.size() - header;
    if (present != expected)
        fail("%s is corrupt: %zu bytes, its header asks for %zu", name, present, expected);
    bytes.erase(bytes.begin(), bytes.begin() + header);
    return bytes;
}

// A copy in pinned memory.
inline unsigned char* pinned(const Bytes& bytes) {
    unsigned char* memory;
    CHECK(cudaMallocHost(&memory, bytes.size()));
    std::copy(bytes.begin(), bytes.end(), memory);
    return memory;
}

inline Digits read_digits(const std::string& folder, const std::string& name) {
    int images;
    int labels;
    std::string path = folder + "/" + name;
    Bytes pixels = read_idx(path + "-images-idx3-ubyte", 3, images);
    Bytes answers = read_idx(path + "-labels-idx1-ubyte", 1, labels);
    if (images != labels)
        fail("%s: %d images, but %d labels", name.c_str(), images, labels);
    if (images == 0)
        fail("%s: no digits", name.c_str());
    for (unsigned char label : answers)
        if (label > 9)
            fail("%s is corrupt: a label is %d", name.c_str(), label);
    return {images, pinned(pixels), pinned(answers)};
}
