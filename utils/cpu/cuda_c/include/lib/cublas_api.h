// The part of cublas_v2.h that says what there is.
#pragma once
#include "cublas_v2.h"
