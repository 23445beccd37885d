// NCCL's ranks, as host threads or as one thread that puts their calls into groups.
//
// A call returns when its work is done, so a thread waits in it until the other ranks have made
// theirs; the last one does the work for all. What cannot go on is told with the lines of all
// ranks: calls that do not fit together, ranks that wait for each other, a rank that does not come.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dirent.h>
#include <map>
#include <string>
#include "collectives.h"

namespace cuda_cpu {
bool on_host_only(const void* p);

const double patience = 2;  // seconds in which the whole process does nothing
static std::mutex lock;
static std::condition_variable changed;

struct Call {  // of a group that is still open
    Rank* rank;
    std::shared_ptr<Pending> pending;
};
static thread_local int depth = 0;
static thread_local std::vector<Call> group;
static thread_local std::vector<Clique*> joining;  // cliques that this thread's group has joined
static thread_local int group_result = success;

static double cpu_seconds() {
    return double(std::clock()) / CLOCKS_PER_SEC;
}
// Of each thread: the seconds in which it ran or waited for a core (Linux; elsewhere nothing)
static std::map<int, double> wanted_seconds() {
    std::map<int, double> all;
    DIR* threads = opendir("/proc/self/task");
    while (dirent* thread = threads ? readdir(threads) : nullptr) {
        std::string path = std::string("/proc/self/task/") + thread->d_name + "/schedstat";
        FILE* file = fopen(path.c_str(), "r");
        unsigned long long ran, waited;
        if (file && fscanf(file, "%llu %llu", &ran, &waited) == 2)
            all[atoi(thread->d_name)] = 1e-9 * double(ran + waited);
        if (file)
            fclose(file);
    }
    if (threads)
        closedir(threads);
    return all;
}
// Whether a thread wanted a core for most of so many seconds: a busy machine may have given none.
static bool somebody_wants(std::map<int, double>& before, double seconds) {
    for (auto& [thread, wanted] : wanted_seconds())
        if (wanted - before[thread] > 0.5 * seconds)
            return true;
    return false;
}
// Waits until `done`, or until the process has done nothing for a while: then false. A look counts
// as a fifth of a second at most: the machine itself may have stood still.
template <class F>
static bool wait_for(std::unique_lock<std::mutex>& l, F done) {
    auto now = [] { return std::chrono::steady_clock::now(); };
    auto last = now();
    double used = cpu_seconds(), waited = 0;
    std::map<int, double> before;
    while (!done()) {
        changed.wait_for(l, std::chrono::milliseconds(100));
        waited += std::min(std::chrono::duration<double>(now() - last).count(), 0.2);
        last = now();
        bool over = waited > patience && !done();
        if (cpu_seconds() - used > 0.05 * patience || (over && somebody_wants(before, waited))) {
            used = cpu_seconds(), waited = 0;  // somebody works: begin again
            before.clear();
        } else if (over) {
            return false;
        } else if (before.empty() && waited > 0.2) {
            before = wanted_seconds();
        }
    }
    return true;
}
static int run(const std::vector<Call>& calls, Site) {
    std::unique_lock<std::mutex> l(lock);
    int result = success;
    for (const Call& call : calls) {
        call.rank->last = call.pending->call.at;
        call.rank->last_name = call.pending->call.name;
        call.rank->waiting.push_back(call.pending);
    }
    for (const Call& call : calls)
        progress(*call.rank->clique);
    changed.notify_all();
    for (const Call& call : calls) {
        Clique& c = *call.rank->clique;
        Pending& p = *call.pending;
        if (!p.done && all_wait(c))
            told_deadlock(c, p.call.at);
        if (!p.done && c.broken)
            p.done = true, p.result = system_error;
        if (!wait_for(l, [&] { return p.done; }))
            told_deadlock(c, p.call.at);
        changed.notify_all();
        result = result ? result : p.result;
    }
    for (const Call& call : calls) {
        auto& waiting = call.rank->waiting;
        waiting.erase(std::remove(waiting.begin(), waiting.end(), call.pending), waiting.end());
    }
    return result;
}

// ---- what is checked at once
static const char* wrong_buffer(const Rank* r, const Collective& t, bool send, std::string* what) {
    const void* p = send ? t.send : t.recv;
    size_t bytes = elements(t, send, int(r->clique->ranks.size())) * t.numbers.bytes;
    if (!bytes)
        return nullptr;
    if (!p || on_host_only(p)) {
        *what = p ? "is memory of the host" : "is a null pointer";
        return "host-pointer";
    }
    Allocation* a = in_arena(p) ? find_allocation(p) : nullptr;
    if (!a)
        return nullptr;
    std::string from = " (from cudaMalloc in " + line_of(a->at) + ")";
    if (!a->live) {
        *what = "was freed in " + line_of(a->freed_at);
        return "use-after-free";
    }
    const char* c = static_cast<const char*>(p);
    if (c < a->start || c + bytes > a->start + a->bytes) {
        *what = "has too few bytes: " + std::to_string(bytes) + " are needed, " +
                std::to_string(a->start + a->bytes - c) + " are left there" + from;
        return "collective-size";
    }
    if (a->kind == cudaMemoryTypeDevice && a->device != r->device) {
        *what = "is memory of device " + std::to_string(a->device) + from + ", but rank " +
                std::to_string(r->number) + " is on device " + std::to_string(r->device);
        return "wrong-device";
    }
    return nullptr;
}
static int check_call(const Rank* r, const Collective& t) {
    int size = int(r->clique->ranks.size());
    if (t.peer < 0 || t.peer >= size) {
        report("collective-mismatch", t.at, "%s: there is no rank %d among %d", t.name, t.peer,
               size);
        return invalid_argument;
    }
    if (size_t(t.stream) > 4 && t.stream->device != r->device) {
        report("wrong-device", t.at, "%s: the stream is of device %d, but rank %d is on device %d",
               t.name, t.stream->device, r->number, r->device);
        return invalid_usage;
    }
    for (bool send : {true, false}) {
        std::string what;
        if (!uses(t, r->number, send))
            continue;
        if (const char* kind = wrong_buffer(r, t, send, &what)) {
            report(kind, t.at, "%s: the %s buffer %s", t.name, send ? "send" : "receive",
                   what.c_str());
            return invalid_argument;
        }
    }
    return success;
}

int call_collective(Rank* r, Collective call) {
    if (!r || !find_numbers(call))
        return invalid_argument;
    if (wait_for_device())
        return cuda_error;
    if (int wrong = check_call(r, call)) {
        std::lock_guard<std::mutex> l(lock);
        break_clique(*r->clique, invalid_usage);  // the others would wait for it
        group_result = depth ? wrong : group_result;
        return wrong;
    }
    auto pending = std::make_shared<Pending>();
    pending->call = call;
    if (depth) {
        group.push_back({r, pending});
        return success;
    }
    return run({{r, pending}}, call.at);
}
int start_group() {
    ++depth;
    return success;
}
static int wait_joined(std::unique_lock<std::mutex>& l, Clique& c, Site at) {
    if (wait_for(l, [&] { return c.ready() || c.broken; }))
        return c.broken ? invalid_usage : success;
    told_deadlock(c, at);
    return system_error;
}
int end_group(Site at) {
    if (!depth)
        return invalid_usage;
    if (--depth)
        return success;
    std::vector<Call> calls;
    calls.swap(group);
    int result = group_result;
    group_result = success;
    {
        std::unique_lock<std::mutex> l(lock);
        for (Clique* c : joining)
            result = result ? result : wait_joined(l, *c, at);
        joining.clear();
    }
    return result ? result : run(calls, at);
}

// ---- cliques
static std::map<unsigned long long, Clique*>& cliques() {
    static auto* all = new std::map<unsigned long long, Clique*>;
    return *all;
}
unsigned long long new_clique_id() {
    static std::atomic<unsigned long long> next{1};
    return next++;
}
static int add_rank(Clique& c, int number, Rank* rank) {
    for (Rank* other : c.ranks)
        if (other && other->device == rank->device) {
            report("wrong-device", rank->joined,
                   "ranks %d and %d are both on device %d: each needs a device of its own "
                   "(cudaSetDevice before ncclCommInitRank)",
                   other->number, number, rank->device);
            break_clique(c, invalid_usage);
            return invalid_usage;
        }
    c.ranks[size_t(number)] = rank;
    changed.notify_all();
    return success;
}
int join_clique(Rank** out, int size, unsigned long long id, int number, Site at) {
    if (number < 0 || number >= size || !out)
        return invalid_argument;
    std::unique_lock<std::mutex> l(lock);
    Clique*& c = cliques()[id];
    if (!c) {
        c = new Clique;
        c->ranks.resize(size_t(size));
    }
    if (int(c->ranks.size()) != size || c->ranks[size_t(number)]) {
        report("collective-mismatch", at, "ncclCommInitRank: %s",
               int(c->ranks.size()) != size ? "the ranks were told different numbers of ranks"
                                            : "two ranks have the same number");
        break_clique(*c, invalid_usage);
        return invalid_argument;
    }
    Rank* rank = new Rank{c, number, this_device(), at, {}};
    if (int wrong = add_rank(*c, number, rank))
        return wrong;
    *out = rank;
    if (depth) {
        joining.push_back(c);
        return success;
    }
    return wait_joined(l, *c, at);
}
int make_clique(Rank** ranks, int size, const int* devices, Site at) {
    if (size < 1)
        return invalid_argument;
    std::lock_guard<std::mutex> l(lock);
    Clique* c = new Clique;
    c->ranks.resize(size_t(size));
    for (int i = 0; i < size; ++i) {
        int device = devices ? devices[i] : i;
        if (device < 0 || device >= device_count()) {
            report("wrong-device", at, "ncclCommInitAll: there is no device %d, there are %d",
                   device, device_count());
            return invalid_argument;
        }
        ranks[i] = new Rank{c, i, device, at, {}};
        if (int wrong = add_rank(*c, i, ranks[i]))
            return wrong;
    }
    return success;
}
int leave_clique(Rank* rank) {
    if (!rank)
        return success;
    std::lock_guard<std::mutex> l(lock);
    Clique* c = rank->clique;
    if (++c->left < int(c->ranks.size()))
        return success;  // the others may still be asked about it
    for (Rank* r : c->ranks)
        delete r;
    for (auto i = cliques().begin(); i != cliques().end();)
        i = i->second == c ? cliques().erase(i) : std::next(i);
    delete c;
    return success;
}
int clique_size(const Rank* r) {
    return int(r->clique->ranks.size());
}
int number_in_clique(const Rank* r) {
    return r->number;
}
int device_of_rank(const Rank* r) {
    return r->device;
}
}  // namespace cuda_cpu
