/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Run2C, running number two class: the start of every flow goes first. The core library
 * has the principle (crates/core/src/discipline/run2c.rs).
 */
#include "discipline.h"

#define KEEPS_FLOWS WHILE_ACTIVE
#include "threshold.h"

#include "queue.h"

QDISC("run2c")
