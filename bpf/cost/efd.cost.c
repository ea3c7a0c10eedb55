/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "cost.h"
#include "../efd.bpf.c"
#include "programs.h"
