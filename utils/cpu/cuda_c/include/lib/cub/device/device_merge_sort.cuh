#pragma once
#include "../device_sort.cuh"
