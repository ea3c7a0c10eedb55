/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "cost.h"
#include "../lars.bpf.c"
#include "programs.h"
