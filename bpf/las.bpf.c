/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * LAS, least attained service: the flow that has had least goes first. The core library
 * has the principle (crates/core/src/discipline/las.rs).
 */
#include "discipline.h"

struct state {
	/* Bytes that have come of it. */
	u64 attained;
};

#define KEEPS_FLOWS WHILE_ACTIVE
#define WHEN_FULL PUSH_OUT
#include "flows.h"
#include "ranked.h"

static __always_inline void rank_packet(struct rank *rank, struct state *flow,
					const struct arrival *arrival)
{
	rank->major = flow->attained;
	flow->attained += arrival->size;
}

#include "queue.h"

QDISC("las")
