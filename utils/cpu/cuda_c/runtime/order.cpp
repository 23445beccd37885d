// Which work waits for which, for the slow checks. Here all work is done at once, in the order of
// the calls, so a missing event never shows in a result: this file keeps what a GPU would know.
//
// Every piece of work in a stream is an operation with a number. A stream's clock says how many
// operations of each stream it is behind (vector clocks: C. Fidge, 1988); an event carries the
// clock of the stream that it was recorded in. The host threads share one clock, since how they
// wait for each other is not known: this may hide a mistake, and never invents one.
#include <algorithm>
#include "internal.h"

namespace cuda_cpu {
typedef std::vector<unsigned> Clock;

static std::recursive_mutex lock;
static Clock host, now;  // now: what the running operation is behind
static unsigned running = 0;

static std::vector<Operation>& operations() {
    static auto* all = new std::vector<Operation>(1);
    return *all;
}
struct KnownStream {
    const Stream* stream;
    Clock clock;
};
static std::vector<KnownStream>& known() {  // by Stream::number
    static auto* all = new std::vector<KnownStream>(1);
    return *all;
}

static void join(Clock& clock, const Clock& other) {
    if (clock.size() < other.size())
        clock.resize(other.size());
    for (size_t i = 0; i < other.size(); ++i)
        clock[i] = std::max(clock[i], other[i]);
}

static bool blocking(const Stream* s) {
    return !s->is_default && !(s->flags & cudaStreamNonBlocking);
}
// The stream's clock, with what a new operation in it would wait for.
static Clock& brought_up(Stream* s) {
    if (!s->number) {
        s->number = unsigned(known().size());
        known().push_back({s, {}});
    }
    Clock clock = host;
    for (const KnownStream& other : known()) {
        if (!other.stream || other.stream->device != s->device)
            continue;
        bool waits =
            s->is_default ? blocking(other.stream) : blocking(s) && other.stream->is_default;
        if (waits)  // the default stream and the streams that wait for it take turns
            join(clock, other.clock);
    }
    Clock& own = known()[s->number].clock;
    join(own, clock);
    return own;
}

// Everything runs in turn under --check: its books are kept by one thread at a time.
Turn::Turn() {
    if (checking)
        lock.lock();
}
Turn::~Turn() {
    if (checking)
        lock.unlock();
}

unsigned begin_operation(Stream* s, Site at, const char* what) {
    if (!checking || in_kernel())
        return running;
    Turn turn;
    Clock& clock = brought_up(s);
    if (clock.size() <= s->number)
        clock.resize(s->number + 1);
    unsigned count = ++clock[s->number];
    operations().push_back({s->number, count, s->device, at, what});
    now = clock;
    running = unsigned(operations().size() - 1);
    return running;
}
unsigned running_operation() {
    return running;
}
const Operation& operation(unsigned number) {
    return operations()[number];
}
static bool within(const Operation& o, const Clock& clock) {
    return o.stream < clock.size() && o.count <= clock[o.stream];
}
bool before_this(unsigned number) {
    return number == 0 || number == running || within(operations()[number], now);
}
bool host_waited_for(unsigned number) {
    return number == 0 || within(operations()[number], host);
}

void order_record(Event* e, Stream* s) {
    if (!checking)
        return;
    Turn turn;
    e->behind = brought_up(s);
}
void order_wait(Stream* s, const Event* e) {
    if (!checking)
        return;
    Turn turn;
    join(brought_up(s), e->behind);
}
void order_host_behind(const Event* e) {
    if (!checking)
        return;
    Turn turn;
    join(host, e->behind);
}
void order_host_behind(Stream* s) {
    if (!checking)
        return;
    Turn turn;
    join(host, brought_up(s));
}
void order_host_behind_device(int device) {  // -1: all of them
    if (!checking)
        return;
    Turn turn;
    for (const KnownStream& k : known())
        if (k.stream && (device < 0 || k.stream->device == device))
            join(host, k.clock);
}
// A kernel publishes for the host, too, what it has stored; host code that has seen a flag set
// behind that need not wait for the kernel's end to read it.
void order_fence() {
    operations()[running].fenced = true;
}
void order_host_behind_fence(unsigned number) {
    const Operation& o = operations()[number];
    if (!o.fenced)
        return;
    Clock clock = known()[o.stream].clock;
    clock[o.stream] = o.count;
    join(host, clock);
}
// Work that these streams have just begun together, an operation each: it cannot end in one before
// all have come to it. But a stream that has ended its own part knows nothing of the others' ends.
void order_together(const std::vector<Stream*>& streams) {
    if (!checking)
        return;
    Turn turn;
    Clock before;
    for (Stream* s : streams) {
        Clock own = known()[s->number].clock;
        --own[s->number];
        join(before, own);
    }
    for (Stream* s : streams)
        join(known()[s->number].clock, before);
}
}  // namespace cuda_cpu
