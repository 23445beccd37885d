// Of the driver's interface, what a kernel has to do with.
#pragma once
struct alignas(64) CUtensorMap {
    unsigned long long opaque[16];
};
