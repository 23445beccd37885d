// load_weights and save_weights: a checkpoint is the eight bytes "DIGITCNN", then all tensors.
#pragma once
#include "files.cuh"

const std::string MAGIC = "DIGITCNN";

// `tensors` lie on the GPU; `sizes` says how many floats each has.
template <int count>
void load_weights(float* const (&tensors)[count], const int (&sizes)[count],
                  const std::string& path) {
    Bytes bytes = read_file(path);
    size_t expected = MAGIC.size();
    for (int size : sizes)
        expected += size * sizeof(float);
    std::string begin(bytes.begin(), bytes.begin() + std::min(bytes.size(), MAGIC.size()));
    if (bytes.size() != expected || begin != MAGIC)
        fail("%s is no checkpoint of this network, or not all of one", path.c_str());
    const unsigned char* from = &bytes[MAGIC.size()];
    for (int t = 0; t < count; ++t) {
        size_t length = sizes[t] * sizeof(float);
        CHECK(cudaMemcpy(tensors[t], from, length, cudaMemcpyHostToDevice));
        from += length;
    }
}

template <int count>
void save_weights(float* const (&tensors)[count], const int (&sizes)[count],
                  const std::string& path) {
    Bytes bytes(MAGIC.begin(), MAGIC.end());
    for (int t = 0; t < count; ++t) {
        size_t begin = bytes.size();
        size_t length = sizes[t] * sizeof(float);
        bytes.resize(begin + length);
        CHECK(cudaMemcpy(&bytes[begin], tensors[t], length, cudaMemcpyDeviceToHost));
    }
    write_whole(path, bytes);
}
