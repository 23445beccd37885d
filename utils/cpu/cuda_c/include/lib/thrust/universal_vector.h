#pragma once
#include "detail/vector.h"
