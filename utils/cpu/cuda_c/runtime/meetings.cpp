// Warp operations are meetings: each lane of a mask leaves its value and waits, the last one to
// come lets all go.
#include <cstring>
#include "scheduler.h"

namespace cuda_cpu {
static thread_local std::vector<Meeting*> free_meetings;  // kept for the next use

static void complete_meeting(Block& b, WarpState& w, Meeting* m) {
    for (Meeting** p = &w.meetings; *p; p = &(*p)->next)
        if (*p == m) {
            *p = m->next;
            break;
        }
    m->leaving = unsigned(__builtin_popcount(m->arrived));
    ++w.syncs;
    w.shuffles += m->op == op_shuffle;
    w.products += m->op == op_product || m->op == op_matrix;
    record_met(unsigned(&w - b.warps.data()), m->arrived, m->op == op_sync, m->at);
    if (checking && b.async_ready)
        checks_lanes_met(b, unsigned(&w - b.warps.data()), m->arrived);
    b.ready.append(m->waiting);
}

void thread_finished() {
    Block& b = *hot.block;
    any_order(b);
    ++b.finished;
    WarpState& w = b.warps[hot.tid >> 5];
    w.exited |= 1u << (hot.tid & 31);
    if (b.barrier.head && b.barrier.size + b.finished == hot.count)
        complete_barrier(b);
    for (Meeting* m = w.meetings; m;) {
        Meeting* next = m->next;
        if ((m->mask & ~w.exited) == m->arrived)
            complete_meeting(b, w, m);
        m = next;
    }
    if (b.cluster)
        cluster_thread_ended(b);
}

// Half a warp in one branch and half in the other are two instructions, which no GPU carries out.
static void check_place(const Meeting& m, const char* name, Site at) {
    if (m.op < op_aligned || (m.at.line == at.line && !strcmp(m.at.file, at.file)))
        return;
    report("warp-diverged", at,
           "%s is one instruction of the whole warp: here lane %u comes to it, while others have "
           "come to %s in line %d",
           name, hot.tid & 31, m.name, m.at.line);
    abandon_grid(cudaErrorIllegalInstruction);
}

Switch come(unsigned mask, WarpOp op, unsigned long long value, const char* name, Site at) {
    if (!hot.block) {
        report("host-code", at, "%s() can only be called in a kernel", name);
        std::exit(1);
    }
    Block& b = *hot.block;
    any_order(b);
    if (!hot.tracking)
        begin_tracking(b);
    unsigned warp = hot.tid >> 5, me = hot.tid & 31, bit = 1u << me;
    WarpState& w = b.warps[warp];
    if (!(mask & bit)) {
        report(
            "lane-not-in-mask", at,
            "%s() is called by lane %u, which is not in its mask 0x%08x: the mask must name every "
            "lane that takes part",
            name, me, mask);
        abandon_grid(cudaErrorIllegalInstruction);
    }
    unsigned lanes = hot.count - warp * 32;
    unsigned present = mask & ~w.exited & (lanes >= 32 ? ~0u : (1u << lanes) - 1);
    Meeting* m = w.meetings;
    while (m && (m->mask != mask || m->op != op))
        m = m->next;
    if (!m) {
        if (free_meetings.empty()) {
            m = new Meeting;
        } else {
            m = free_meetings.back();
            free_meetings.pop_back();
        }
        m->mask = mask;
        m->arrived = 0;
        m->op = op;
        m->waiting = List();
        m->name = name;
        m->at = at;
        m->next = w.meetings;
        w.meetings = m;
    }
    check_place(*m, name, at);
    m->arrived |= bit;
    m->value[me] = value;
    Thread* t = &b.threads[hot.tid];
    t->meeting = m;
    if (m->arrived == bit && m->arrived == present) {  // alone
        complete_meeting(b, w, m);
        return {nullptr, m};
    }
    sleep(t, at_meeting, at);
    m->waiting.push(t);
    if (m->arrived != present)
        return {t, next_stack(b)};
    complete_meeting(
        b, w, m);  // the last one, too, goes on in its turn: what lanes print comes in their order
    void* to = next_stack(b, t);
    return to ? Switch{t, to} : Switch{nullptr, m};
}

void part(Meeting* m) {
    if (--m->leaving == 0)
        free_meetings.push_back(m);
}

void warp_incomplete(unsigned present, const char* name, Site at) {
    report("warp-incomplete", at,
           "wmma's %s() needs all 32 lanes of the warp, but only %d of them take part: the others "
           "have ended, "
           "or the block's number of threads is no multiple of 32",
           name, __builtin_popcount(present));
    abandon_grid(cudaErrorIllegalInstruction);
}

void check_matrix(const void* p, size_t row_bytes, const char* name, Site at) {
    if (!checking || (size_t(p) % 32 == 0 && row_bytes % 16 == 0))
        return;
    report("misaligned", at,
           "wmma's %s() is given the address %p and rows that begin every %zu bytes: the address "
           "must be a "
           "multiple of 32, the distance of the rows a multiple of 16",
           name, p, row_bytes);
    abandon_grid(cudaErrorMisalignedAddress);
}
}  // namespace cuda_cpu
