/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * SCFQ, self-clocked fair queueing: every backlogged flow gets an equal share. The core
 * library has the principle (crates/core/src/discipline/scfq.rs). Tags begin at zero when
 * the queue is empty; 2^64 bytes do not pass before that.
 */
#include "discipline.h"

struct state {
	/* The tag of the last packet that came. */
	u64 last_tag;
};

/* The tag of the packet in service. */
u64 virtual_time;

#define KEEPS_FLOWS WHILE_QUEUED
#define WHEN_FULL REFUSE
#include "flows.h"
#include "ranked.h"

static __always_inline void rank_packet(struct rank *rank, struct state *flow,
					const struct arrival *arrival)
{
	if (flow->last_tag < virtual_time)
		flow->last_tag = virtual_time;
	flow->last_tag += arrival->size;
	rank->major = flow->last_tag;
}

#define AFTER_SENDING(taken, left) virtual_time = (left) ? (taken).rank : 0
#include "queue.h"

QDISC("scfq")
