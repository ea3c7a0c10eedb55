/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "cost.h"
#include "../run2c.bpf.c"
#include "programs.h"
