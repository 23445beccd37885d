#pragma once
#include "detail/functional.h"
