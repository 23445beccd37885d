// Which tiles of C there are, and who computes which part of them: what the producer and the
// consumers of any.cu must agree on.
#pragma once
#include "any_type.cuh"
#include "hopper_rounds.cuh"

// A part of a tile: its steps along k from `first` to before `last`.
struct Part {
    int tile, first, last;
};

// A cluster's parts. `streamed` tiles are cut into one stream of steps, of which every cluster has
// an equal piece; then the other tiles come whole, in turn.
struct Parts {
    int steps, whole, streamed, clusters, turn;
    long long at, end;

    __device__ Parts(int tiles, int whole, int steps, int clusters, int own)
        : steps(steps), whole(whole), streamed(tiles - whole), clusters(clusters), turn(own) {
        at = begin_of(own);
        end = begin_of(own + 1);
    }
    __device__ long long begin_of(int cluster) const {
        return (long long)streamed * steps * cluster / clusters;
    }
    __device__ bool next(Part& part) {
        if (at < end) {
            int tile = at / steps;
            int first = at - (long long)tile * steps;
            int last = min((long long)steps, first + end - at);
            part = {whole + tile, first, last};
            at += last - first;
            return true;
        }
        part = {turn, 0, steps};
        turn += clusters;
        return part.tile < whole;
    }
    // Where the stream has all of a tile's steps behind it.
    __device__ long long end_of(int tile) const {
        return (tile - whole + 1ll) * steps;
    }
};
