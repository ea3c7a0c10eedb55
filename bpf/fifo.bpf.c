/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * FIFO with drop-tail: the baseline. The core library has the principle
 * (crates/core/src/discipline/fifo.rs).
 */
#include "discipline.h"

struct state {
	u64 unused;
};

#define KEEPS_FLOWS NOT_AT_ALL
#define WHEN_FULL REFUSE
#include "flows.h"
#include "levels.h"

static __always_inline void rank_packet(struct rank *rank, struct state *flow,
					const struct arrival *arrival)
{
	rank->major = 0;
}

#include "queue.h"

QDISC("fifo")
