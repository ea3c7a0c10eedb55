/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "cost.h"
#include "../fifo.bpf.c"
#include "programs.h"
