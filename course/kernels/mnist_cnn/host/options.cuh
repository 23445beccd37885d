// Options come as name=value: files, batch size, learning rate, after how many steps to stop.
#pragma once
#include "errors.cuh"
#include <climits>
#include <string>

struct Options {
    std::string digits = "build/digits";
    std::string weights = "build/start.weights";
    std::string order = "build/order.bin";
    std::string checkpoint = "build/trained.weights";
    std::string result = "build/result.json";
    int batch = 256;
    int steps = 1 << 30;
    float lr = 0.02f;

    Options(int words, char** word) {
        for (int i = 1; i < words; ++i)
            take(word[i]);
    }

    void take(const std::string& word) {
        size_t equals = word.find('=');
        std::string name = word.substr(0, equals);
        std::string value = word.substr(equals + 1);
        if (name == "digits")
            digits = value;
        else if (name == "weights")
            weights = value;
        else if (name == "order")
            order = value;
        else if (name == "checkpoint")
            checkpoint = value;
        else if (name == "result")
            result = value;
        else if (name == "batch")
            batch = whole(word, value);
        else if (name == "steps")
            steps = whole(word, value);
        else if (name == "lr")
            lr = atof(value.c_str());
        else
            fail("unknown option %s", word.c_str());
        if (steps < 1)
            fail("%s: it must be at least 1", word.c_str());
        if (lr < 0)
            fail("%s: it must not be below 0, or every step goes uphill", word.c_str());
    }

    // A whole number with nothing behind it.
    static int whole(const std::string& word, const std::string& value) {
        char* end;
        long number = strtol(value.c_str(), &end, 10);
        if (value.empty() || *end != 0 || number < INT_MIN || number > INT_MAX)
            fail("%s: it must be a whole number", word.c_str());
        return number;
    }
};
