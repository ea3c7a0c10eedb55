/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "cost.h"
#include "../tide.bpf.c"

/* A flow is found, entered and left, as by a packet that is alone. */
static __always_inline bool join(const struct flow_key *key, u64 now)
{
	return admit(key, now);
}

/* A packet through the queue of the first flow. */
static __always_inline void put(struct packet *packet, const struct rank *rank)
{
	struct flow *flow = flow_of(1);

	if (flow)
		queue_add(flow, packet, rank->major);
	else
		free_packet(packet);
}

static __always_inline struct packet *take_of_first(void)
{
	struct flow *flow = flow_of(1);

	return flow ? queue_take(flow) : NULL;
}
#define take_first take_of_first

#include "programs.h"
