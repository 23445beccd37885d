// write_result leaves losses, accuracies and the time as JSON, for Python to read.
#pragma once
#include "files.cuh"

// A JSON list; digits: significant ones of each number.
template <class T>
std::string json(const std::vector<T>& values, int digits) {
    std::string list;
    for (T value : values) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, double(value));
        list += (list.empty() ? "" : ", ") + std::string(text);
    }
    return "[" + list + "]";
}

inline void write_result(const std::string& path, const std::vector<float>& losses,
                         const std::vector<double>& accuracies, float milliseconds) {
    FILE* file = fopen(path.c_str(), "w");
    if (!file)
        fail("%s cannot be written", path.c_str());
    fprintf(file, "{\"milliseconds\": %g, ", milliseconds);
    fprintf(file, "\"accuracies\": %s, ", json(accuracies, 6).c_str());
    fprintf(file, "\"losses\": %s}\n", json(losses, 9).c_str());
    if (fclose(file) != 0)
        fail("%s cannot be written", path.c_str());
}
