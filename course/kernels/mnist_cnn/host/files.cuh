// read_file gives a file's bytes; write_whole leaves the old file or the new one, never half of it.
#pragma once
#include <string>
#include <unistd.h>
#include <vector>
#include "errors.cuh"

typedef std::vector<unsigned char> Bytes;

inline Bytes read_file(const std::string& path) {
    FILE* file = fopen(path.c_str(), "rb");
    if (!file)
        fail("%s: no such file", path.c_str());
    fseek(file, 0, SEEK_END);
    Bytes bytes(ftell(file));
    rewind(file);
    if (fread(bytes.data(), 1, bytes.size(), file) != bytes.size())
        fail("%s cannot be read", path.c_str());
    fclose(file);
    return bytes;
}

// Write under another name, make sure that it is on the disk, and rename, which is one step.
inline void write_whole(const std::string& path, const Bytes& bytes) {
    std::string part = path + ".part";
    FILE* file = fopen(part.c_str(), "wb");
    bool good = file && fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    good = good && fflush(file) == 0;
    good = good && fsync(fileno(file)) == 0;  // on the disk, not only on its way there
    if (file)
        good = fclose(file) == 0 && good;
    good = good && rename(part.c_str(), path.c_str()) == 0;
    if (good)
        return;
    remove(part.c_str());
    fail("%s cannot be written (disk full?); what was there before is still there", path.c_str());
}
