// Linked into programs, not into the libraries that Python loads.
#include <cstdlib>
#include "internal.h"

namespace cuda_cpu {
void at_exit();
extern bool tells_how_far;
struct Start {
    Start() {
        catch_signals();
        tells_how_far = true;
        std::atexit(at_exit);
    }
};
static Start start;
}  // namespace cuda_cpu
