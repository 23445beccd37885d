#pragma once
#include "../adjacent_difference.cuh"
