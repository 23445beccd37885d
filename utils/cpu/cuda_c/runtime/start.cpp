// Linked into programs, not into the libraries that Python loads.
#include <cstdlib>
#include "internal.h"

namespace cuda_cpu {
void at_exit();
struct Start {
    Start() {
        catch_signals();
        std::atexit(at_exit);
    }
};
static Start start;
}  // namespace cuda_cpu
