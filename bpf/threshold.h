/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The rank of EFD and Run2C: high until a flow has had so much, low from then on.
 *
 * When the threshold is raised while packets flow, a flow that has low packets queued stays
 * low until it has none, so that none of its packets overtakes another.
 */
#pragma once

struct state {
	/* What has come of it, in packets or bytes as the threshold. */
	u64 volume;
	u64 is_low;
};

#define WHEN_FULL PUSH_OUT
#include "flows.h"
#include "levels.h"

static __always_inline void rank_packet(struct rank *rank, struct state *flow,
					const struct arrival *arrival)
{
	if (!arrival->has_queued)
		flow->is_low = 0;
	if (flow->volume >= READ_ONCE(parameters.threshold))
		flow->is_low = 1;
	rank->major = flow->is_low;
	flow->volume += READ_ONCE(parameters.threshold_in_bytes) ? arrival->size
								 : arrival->packets;
}
