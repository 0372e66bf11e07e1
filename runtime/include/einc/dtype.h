// SPDX-License-Identifier: Apache-2.0
// Element types, by their path in an installed package: there this is the file itself.
#pragma once
#include "runtime/base/dtype.h"
