/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * EFD, early flow discard: the start of every burst goes first. The core library has the
 * principle (crates/core/src/discipline/efd.rs). Both levels are FIFO here. The packets of
 * a super-packet all go where its first one belongs.
 */
#include "discipline.h"

#define KEEPS_FLOWS WHILE_QUEUED
#include "threshold.h"

#include "queue.h"

QDISC("efd")
