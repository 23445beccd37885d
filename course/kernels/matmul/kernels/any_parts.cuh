// Who computes which part of which tile, where blocks stay: what all roles must agree on.
#pragma once

// A part of a tile: its steps along k from `first` to before `last`.
struct Part {
    int tile, first, last;
};

// The parts of one worker, a block or a cluster of them. The first `whole` tiles come in turn. Each
// of the others is cut into as many parts, a worker each: they walk along k side by side, and what
// one has fetched the others find in the L2 cache.
struct CutParts {
    int steps, whole, left, cuts, workers, own, turn;

    __device__ CutParts(int tiles, int whole, int cuts, int steps, int workers, int own)
        : steps(steps),
          whole(whole),
          left(tiles - whole),
          cuts(cuts),
          workers(workers),
          own(own),
          turn(own) {}
    __device__ bool next(Part& part) {
        if (turn < whole) {
            part = {turn, 0, steps};
            turn += workers;
            return true;
        }
        if (turn == END || own >= left * cuts)
            return false;
        int piece = own % cuts;
        part = {whole + own / cuts, steps * piece / cuts, steps * (piece + 1) / cuts};
        turn = END;
        return true;
    }
    static constexpr int END = 0x7fffffff;
};

// The same where it does not matter who finds what in the cache: the last tiles are one stream of
// steps, of which every worker has an equal piece; then the first `whole` tiles come, in turn.
struct StreamedParts {
    int steps, whole, streamed, workers, turn;
    long long at, end;

    __device__ StreamedParts(int tiles, int whole, int steps, int workers, int own)
        : steps(steps), whole(whole), streamed(tiles - whole), workers(workers), turn(own) {
        at = begin_of(own);
        end = begin_of(own + 1);
    }
    __device__ long long begin_of(int worker) const {
        return (long long)streamed * steps * worker / workers;
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
        turn += workers;
        return part.tile < whole;
    }
    // Calls f(worker) for those after `own` that have a part of its tile, in their order.
    template <class F>
    __device__ void each_other(int tile, int own, F f) const {
        long long end_of_tile = (tile - whole + 1ll) * steps;
        for (int i = own + 1; i < workers && begin_of(i) < end_of_tile; ++i)
            if (begin_of(i) < begin_of(i + 1))
                f(i);
    }
};
