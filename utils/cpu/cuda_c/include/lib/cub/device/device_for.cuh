#pragma once
#include "../device.cuh"
