/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What is known of flows, and for how long.
 *
 * An entry lives at least as long as its flow has a packet in the queue: if it died
 * before, the flow would start afresh and overtake its own past. A discipline chooses what
 * comes then (KEEPS_FLOWS). WHILE_QUEUED: the entry dies with the flow's last packet, so that there are
 * never more entries than packets. WHILE_ACTIVE: it dies at the next of the sweeps, which
 * are `sweep` apart, that finds nothing of it queued and no arrival within `idle`. No sweep
 * is made: whether one would have removed the entry is told when the flow comes again.
 * NOT_AT_ALL: all packets are of one flow.
 *
 * The kernel's table hashes with a seed of its own. When it is full, all entries are
 * looked through, once: what was silent for half of the time in which it filled is
 * forgotten, or if nothing was, all that has nothing queued. That takes some milliseconds
 * of one core for 65 536 new flows, and only a flood of them causes it.
 */
#pragma once


struct flow {
	struct state state;
	u64 queued;
	u64 last_arrival;
	/* When its last packet left the queue. */
	u64 left;
};

struct {
	int(*type)[BPF_MAP_TYPE_HASH];
	int(*max_entries)[MOST_FLOWS];
	int(*map_flags)[BPF_F_NO_PREALLOC];
	struct flow_key *key;
	struct flow *value;
} flows SEC(".maps");

/* When the table was last full. */
u64 crowded_at;
/* Stands for every flow where none is told from another. */
struct flow everybody;

/* What arrived until then is forgotten. The verifier follows what is in a map, not on a stack. */
u64 forget_until;

static long forget_old(void *map, const struct flow_key *key, struct flow *flow, void *context)
{
	if (!flow->queued && flow->last_arrival <= forget_until &&
	    !bpf_map_delete_elem(map, key))
		statistics.flows--;
	return 0;
}

/* Makes room in a full table. */
GLOBAL int forget_flows(u64 now)
{
	u64 silence = (now - crowded_at) / 2, before = statistics.flows;

	if (silence > parameters.idle_ns)
		silence = parameters.idle_ns;
	forget_until = now - silence;
	bpf_for_each_map_elem(&flows, forget_old, NULL, 0);
	if (statistics.flows == before) {
		forget_until = now;
		bpf_for_each_map_elem(&flows, forget_old, NULL, 0);
	}
	crowded_at = now;
	statistics.crowded++;
	return 0;
}

/* Whether a sweep has removed an entry that is still there. */
static __always_inline bool is_forgotten(const struct flow *flow, u64 now)
{
	u64 due;

	if (KEEPS_FLOWS != WHILE_ACTIVE || flow->queued || !parameters.sweep_ns)
		return false;
	due = now - now % parameters.sweep_ns;
	return due > flow->left && due - flow->last_arrival >= parameters.idle_ns;
}

/* A packet of the flow joins the queue; NULL if nothing more can be remembered. */
static __always_inline struct flow *join(const struct flow_key *key, u64 now)
{
	struct flow *flow;

	if (KEEPS_FLOWS == NOT_AT_ALL)
		return &everybody;
	flow = bpf_map_lookup_elem(&flows, key);
	if (!flow) {
		struct flow fresh = {};

		if (KEEPS_FLOWS == WHILE_ACTIVE && statistics.flows >= MOST_FLOWS)
			forget_flows(now);
		bpf_map_update_elem(&flows, key, &fresh, BPF_NOEXIST);
		flow = bpf_map_lookup_elem(&flows, key);
		if (!flow)
			return NULL;
		statistics.flows++;
	} else if (is_forgotten(flow, now)) {
		__builtin_memset(&flow->state, 0, sizeof(flow->state));
	}
	flow->queued++;
	flow->last_arrival = now;
	return flow;
}

/* A packet of the flow has left the queue, sent or lost. */
static __always_inline void leave(const struct flow_key *key, u64 now)
{
	struct flow *flow;

	if (KEEPS_FLOWS == NOT_AT_ALL)
		return;
	flow = bpf_map_lookup_elem(&flows, key);
	if (!flow || --flow->queued)
		return;
	if (KEEPS_FLOWS == WHILE_QUEUED) {
		bpf_map_delete_elem(&flows, key);
		statistics.flows--;
	} else {
		flow->left = now;
	}
}
