// What ranks do together, and what is told when they cannot.
#include <algorithm>
#include <string.h>
#include "collectives.h"

namespace cuda_cpu {
// ---- what is told
std::string line_of(Site at) {
    return "line " + std::to_string(at.line);
}
static std::string doing(const Rank* r, int number) {
    std::string who = "rank " + std::to_string(number);
    if (!r)
        return who + " has not joined";
    for (const auto& p : r->waiting)
        if (!p->done) {
            std::string text = who + " waits in " + p->call.name;
            bool direct =
                p->call.kind == CollectiveKind::send || p->call.kind == CollectiveKind::recv;
            if (direct)
                text += (p->call.kind == CollectiveKind::send ? " to rank " : " from rank ") +
                        std::to_string(p->call.peer);
            return text + " (" + line_of(p->call.at) + ")";
        }
    if (r->last_name)
        return who + " has called nothing since " + r->last_name + " (" + line_of(r->last) + ")";
    return who + " has called nothing";
}
static std::string everyone(const Clique& c) {
    std::string text;
    for (size_t i = 0; i < c.ranks.size(); ++i)
        text += (i ? "; " : "") + doing(c.ranks[i], int(i));
    return text;
}
void break_clique(Clique& c, int result) {
    c.broken = true;
    for (Rank* r : c.ranks)
        for (auto& p : r ? r->waiting : std::vector<std::shared_ptr<Pending>>())
            if (!p->done) {
                p->done = true;
                p->result = result;
            }
}
static void told_mismatch(Clique& c, const std::vector<Rank*>& ranks,
                          const std::vector<Pending*>& calls, const char* what) {
    std::string text;
    for (size_t i = 0; i < calls.size(); ++i) {
        const Collective& t = calls[i]->call;
        text += std::string(i ? "; " : "") + "rank " + std::to_string(ranks[i]->number) +
                " calls " + t.name + " of " + std::to_string(t.count) + " " + t.numbers.type +
                " in " + line_of(t.at);
    }
    report("collective-mismatch", calls.back()->call.at,
           "the ranks' calls differ in %s: %s. All ranks must make the same calls in the same "
           "order: a GPU would hang here, or mix up the numbers",
           what, text.c_str());
    break_clique(c, invalid_usage);
}

// ---- the work
size_t elements(const Collective& t, bool of_send, int ranks) {
    bool gathered = t.kind == CollectiveKind::all_gather && !of_send;
    bool scattered = t.kind == CollectiveKind::reduce_scatter && of_send;
    return t.count * size_t(gathered || scattered ? ranks : 1);
}
bool uses(const Collective& t, int number, bool send) {
    switch (t.kind) {
        case CollectiveKind::send:
            return send;
        case CollectiveKind::recv:
            return !send;
        case CollectiveKind::broadcast:
            return !send || number == t.peer;
        case CollectiveKind::reduce:
            return send || number == t.peer;
        default:
            return true;
    }
}
static Stream* stream_on(cudaStream_t s, int device) {
    int before = this_device();
    set_this_device(device);
    Stream* found = stream_of(s);
    set_this_device(before);
    return found;
}
// Each rank's part of the work as an operation of its stream, for the slow checks.
static void note_work(const std::vector<Rank*>& ranks, const std::vector<Pending*>& calls) {
    if (!checking)
        return;
    Turn turn;
    std::vector<Stream*> streams;
    for (size_t i = 0; i < ranks.size(); ++i) {
        const Collective& t = calls[i]->call;
        int size = int(ranks[i]->clique->ranks.size());
        streams.push_back(stream_on(t.stream, ranks[i]->device));
        begin_operation(streams.back(), t.at, t.name);
        if (uses(t, ranks[i]->number, true))
            check_range(t.send, elements(t, true, size) * t.numbers.bytes, false, t.at);
        if (uses(t, ranks[i]->number, false))
            check_range(t.recv, elements(t, false, size) * t.numbers.bytes, true, t.at);
    }
    order_together(streams);
}
typedef std::vector<char> Bytes;
static Bytes reduced(const std::vector<Pending*>& calls, size_t count) {
    const Collective& first = calls[0]->call;
    size_t bytes = count * first.numbers.bytes;
    Bytes sum(bytes), other(bytes);
    memcpy(sum.data(), first.send, bytes);
    for (size_t r = 1; r < calls.size(); ++r) {
        memcpy(other.data(), calls[r]->call.send, bytes);
        first.numbers.combine(sum.data(), other.data(), count);
    }
    if (first.numbers.finish)
        first.numbers.finish(sum.data(), count, int(calls.size()));
    return sum;
}
static void perform(const std::vector<Rank*>& ranks, const std::vector<Pending*>& calls) {
    note_work(ranks, calls);
    const Collective& first = calls[0]->call;
    size_t n = calls.size(), bytes = first.count * first.numbers.bytes;
    Bytes data;
    open_device();
    switch (first.kind) {
        case CollectiveKind::all_reduce:
        case CollectiveKind::reduce:
            data = reduced(calls, first.count);
            for (size_t r = 0; r < n; ++r)
                if (uses(first, int(r), false))
                    memcpy(calls[r]->call.recv, data.data(), bytes);
            break;
        case CollectiveKind::reduce_scatter:
            data = reduced(calls, first.count * n);
            for (size_t r = 0; r < n; ++r)
                memcpy(calls[r]->call.recv, data.data() + r * bytes, bytes);
            break;
        case CollectiveKind::all_gather:
            data.resize(n * bytes);
            for (size_t r = 0; r < n; ++r)
                memcpy(data.data() + r * bytes, calls[r]->call.send, bytes);
            for (size_t r = 0; r < n; ++r)
                memcpy(calls[r]->call.recv, data.data(), n * bytes);
            break;
        case CollectiveKind::broadcast:
            for (size_t r = 0; r < n; ++r)
                memmove(calls[r]->call.recv, calls[size_t(first.peer)]->call.send, bytes);
            break;
        default:  // a pair: what the first sends the second receives
            memmove(calls[1]->call.recv, first.send, bytes);
    }
    close_device();
    for (Pending* p : calls)
        p->done = true;
}

// ---- who can go on
static bool direct(const Pending& p) {
    return p.call.kind == CollectiveKind::send || p.call.kind == CollectiveKind::recv;
}
static Pending* first_collective(Rank* r) {
    for (auto& p : r->waiting)
        if (!p->done && !direct(*p))
            return p.get();
    return nullptr;
}
static bool progress_collective(Clique& c) {
    std::vector<Pending*> calls;
    for (Rank* r : c.ranks) {
        Pending* p = first_collective(r);
        if (!p)
            return false;
        calls.push_back(p);
    }
    const Collective& first = calls[0]->call;
    const char* what = nullptr;
    for (Pending* p : calls) {
        const Collective& t = p->call;
        if (t.kind != first.kind)
            what = "the function";
        else if (t.type != first.type)
            what = "the type";
        else if (t.count != first.count)
            what = "the count";
        else if (t.operation != first.operation || t.peer != first.peer)
            what = "the operation or the root";
        if (what)
            break;
    }
    if (what)
        told_mismatch(c, c.ranks, calls, what);
    else
        perform(c.ranks, calls);
    return true;
}
static Pending* matching(Rank* r, CollectiveKind kind, int peer) {
    for (auto& p : r->waiting)
        if (!p->done && p->call.kind == kind && p->call.peer == peer)
            return p.get();
    return nullptr;
}
static bool progress_pair(Clique& c) {
    for (Rank* from : c.ranks)
        for (Rank* to : c.ranks) {
            Pending* send = matching(from, CollectiveKind::send, to->number);
            Pending* recv = matching(to, CollectiveKind::recv, from->number);
            if (!send || !recv)
                continue;
            if (send->call.count * send->call.numbers.bytes !=
                recv->call.count * recv->call.numbers.bytes)
                told_mismatch(c, {from, to}, {send, recv}, "the count or the type");
            else
                perform({from, to}, {send, recv});
            return true;
        }
    return false;
}
void progress(Clique& c) {
    if (!c.ready())
        return;
    while (!c.broken && (progress_collective(c) || progress_pair(c)))
        ;
}
// Every rank's thread waits, and nothing fits together.
bool all_wait(const Clique& c) {
    return c.ready() && std::all_of(c.ranks.begin(), c.ranks.end(), [](Rank* r) {
               return std::any_of(r->waiting.begin(), r->waiting.end(),
                                  [](auto& p) { return !p->done; });
           });
}

void told_deadlock(Clique& c, Site at) {
    if (c.broken)
        return;
    bool alone = std::count_if(c.ranks.begin(), c.ranks.end(), [](Rank* r) {
                     return r && !r->last_name && r->waiting.empty();
                 }) > 0;
    report("deadlock", at, "the ranks wait for ever: %s. %s", everyone(c).c_str(),
           alone ? "All ranks must call; a thread that drives several ranks puts their calls "
                   "between ncclGroupStart and ncclGroupEnd"
                 : "All ranks must make the same calls in the same order");
    break_clique(c, system_error);
}
}  // namespace cuda_cpu
