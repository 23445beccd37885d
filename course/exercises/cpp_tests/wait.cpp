// Tests of exercise mnist_cnn.wait; the learner's file is "answer.h". A step's loss is in its slot
// once its event was waited for; before that the slot holds what no step has lost.
#include "tests.h"
#include <cmath>
#include <limits>
#include <string>
#include <vector>

enum cudaError_t { cudaSuccess, cudaErrorNotReady };
static const char* const ERRORS[] = {"cudaSuccess", "cudaErrorNotReady"};
#define CHECK(call) check((call), #call)
static void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess)
        FAIL("wrong_value", "CHECK ends the program: `%s` says %s.", what, ERRORS[error]);
}
typedef size_t cudaEvent_t;  // the slot whose `done` it is; COPIED and more for `copied`
static const cudaEvent_t COPIED = 1000;
static const float NOT_YET = -12345;

struct Slot {
    float* loss;
    cudaEvent_t done, copied;
};
static Slot* slots;  // two
static std::vector<float> lost;  // of each step that has begun
static size_t asked;  // until which step
static bool polled;  // the last query said: not yet

static cudaError_t cudaEventSynchronize(cudaEvent_t done) {
    if (done >= COPIED)
        FAIL("race",
             "It waits for `copied`: then the batch has arrived, and the step that trains with it "
             "may still be running. The step is over when `done` has happened.");
    size_t step = lost.size();  // the last one that used this slot
    while (step > 0 && (step - 1) % 2 != done)
        --step;
    if (step == 0)
        FAIL("wrong_value",
             "It waits for slot %zu, which no step has used yet: step n, counted from 0, used "
             "slots[n %% 2].",
             done);
    if (step > asked)
        FAIL("other_means",
             "wait(%zu, slots) waits for step %zu, counted from 1, which has only begun: then "
             "nothing overlaps.",
             asked, step);
    *slots[done].loss = lost[step - 1];
    return cudaSuccess;
}

// Every other answer is that the event has not happened yet.
static cudaError_t cudaEventQuery(cudaEvent_t done) {
    polled = !polled;
    return polled ? cudaErrorNotReady : cudaEventSynchronize(done);
}

static cudaError_t cudaDeviceSynchronize() {
    if (lost.size() > asked)
        FAIL("other_means",
             "cudaDeviceSynchronize waits for all that the GPU has to do, step %zu included, which "
             "has only begun: then nothing overlaps. Wait for the event of one step.",
             lost.size());
    for (size_t step = asked > 2 ? asked - 2 : 0; step < asked; ++step)
        *slots[step % 2].loss = lost[step];
    return cudaSuccess;
}

struct Stopped {
    std::string says;
};
[[noreturn]] static void fail(const char* format, ...) {
    char text[1000];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    throw Stopped{text};
}
#include "answer.h"

// As the trainer does: a step begins, then all before it are waited for. ahead: by how many steps.
static void trains(const std::vector<float>& steps, size_t ahead) {
    Slot* two = new Slot[2];  // on the heap: what is behind them is watched
    float memory[2] = {NOT_YET, NOT_YET};
    two[0] = {&memory[0], 0, COPIED};
    two[1] = {&memory[1], 1, COPIED + 1};
    slots = two;
    lost.clear();
    Losses losses;
    size_t bad = 0;  // the first that is no number, from 1
    for (size_t n = steps.size(); n > 0; --n)
        bad = std::isfinite(steps[n - 1]) ? bad : n;
    try {
        while (asked = 0, lost.size() < steps.size() || losses.values.size() < steps.size()) {
            size_t before = losses.values.size();
            for (size_t n = 0; n < 2 && lost.size() < steps.size(); ++n)
                if (lost.size() < before + 2) {
                    memory[lost.size() % 2] = NOT_YET;
                    lost.push_back(steps[lost.size()]);
                }
            asked = lost.size() == steps.size() ? lost.size() : lost.size() - ahead;
            losses.wait(asked, slots);
            if (losses.values.size() != asked)
                FAIL("wrong_value",
                     "After wait(%zu, slots) `values.size()` must be %zu, and is %zu.", asked,
                     asked, losses.values.size());
            for (size_t n = 0; n < asked; ++n)
                if (losses.values[n] == NOT_YET && steps[n] != NOT_YET)
                    FAIL(
                        "race",
                        "The loss of step %zu was read before its event had happened: it may still "
                        "be on its way.",
                        n + 1);
                else if (std::isfinite(steps[n]) && losses.values[n] != steps[n])
                    FAIL("wrong_value", "values[%zu] must be %g, and is %g.", n, double(steps[n]),
                         double(losses.values[n]));
            if (bad && asked >= bad)
                FAIL("special_values", "The loss of step %zu was %g, and nothing stopped.", bad,
                     double(steps[bad - 1]));
            losses.wait(asked, slots);  // nothing is new
            if (losses.values.size() != asked)
                FAIL("wrong_value", "wait(%zu, slots) a second time must add nothing.", asked);
        }
    } catch (const Stopped& stopped) {
        if (!bad || asked < bad)
            FAIL("wrong_value", "It stopped though all losses were numbers, and said: %s",
                 stopped.says.c_str());
        unsigned long step = 0;
        if (sscanf(stopped.says.c_str(), "step %lu", &step) != 1)
            FAIL("wrong_value",
                 "The message must begin with the step, as in: step 7: the loss is "
                 "nan. It was: %s",
                 stopped.says.c_str());
        if (step == bad - 1)
            FAIL("off_by_one",
                 "Steps are counted from 1: it was step %zu, and the message says %lu.", bad, step);
        if (step != bad)
            FAIL("wrong_value", "It was step %zu, and the message says %lu.", bad, step);
        delete[] two;
        return;
    }
    delete[] two;
}

void run_tests() {
    const float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> steps;
    for (int n = random_int(5, 9); n > 0; --n)
        steps.push_back(random_int(1, 100000) / 1000.0f);
    trains({steps[0]}, 0);
    trains(steps, 1);
    trains(steps, 0);
    steps[2] = 3e38f;  // large, and a number
    trains(steps, 1);
    for (float bad : {std::nanf(""), infinity, -infinity})
        for (size_t ahead : {1, 0}) {
            std::vector<float> broken = steps;
            broken[random_int(0, steps.size() - 1)] = bad;
            trains(broken, ahead);
        }
}
