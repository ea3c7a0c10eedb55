/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What is known of flows, and for how long.
 *
 * An entry lives at least as long as its flow has a packet in the queue: if it died
 * before, the flow would start afresh and overtake its own past. A discipline chooses what
 * comes then (KEEPS_FLOWS). WHILE_QUEUED: with the flow's last packet all that is known of it
 * is void, so that no more flows are known than packets are queued. WHILE_ACTIVE: that is so
 * at the next of the sweeps, which are `sweep` apart, that finds nothing of the flow queued
 * and no arrival within `idle`. NOT_AT_ALL: all packets are of one flow.
 *
 * No sweep is made, and a void entry stays in the table: whether it counts is told when the
 * flow comes again. To take it out and put it in again for every packet that is alone in
 * the queue would cost a third of all that such a packet costs. When the table is full, it
 * is looked through, once, for entries that are void. WHILE_QUEUED that is so at a few
 * thousand more than count, and takes a tenth of a millisecond. WHILE_ACTIVE the table holds
 * 65 536: what was silent for half of the time in which it filled is forgotten, or if
 * nothing was, all that has nothing queued, which takes some milliseconds, and only a flood
 * of new flows causes it.
 *
 * The kernel's table hashes with a seed of its own.
 */
#pragma once

/* Void entries that stay for flows that come again, WHILE_QUEUED. */
#define SPARE 4096

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

/* Entries, void ones too. */
u64 entries;
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
		entries--;
	return 0;
}

/* Makes room in a full table. */
GLOBAL int forget_flows(u64 now)
{
	u64 silence = (now - crowded_at) / 2, before = entries;

	if (silence > parameters.idle_ns)
		silence = parameters.idle_ns;
	forget_until = now - silence;
	bpf_for_each_map_elem(&flows, forget_old, NULL, 0);
	if (entries == before) {
		forget_until = now;
		bpf_for_each_map_elem(&flows, forget_old, NULL, 0);
	}
	crowded_at = now;
	if (KEEPS_FLOWS == WHILE_ACTIVE) {
		statistics.crowded++;
		statistics.flows = entries;
	}
	return 0;
}

/* Whether what an entry says does not count any more. */
static __always_inline bool is_void(const struct flow *flow, u64 now)
{
	u64 due;

	if (flow->queued)
		return false;
	if (KEEPS_FLOWS == WHILE_QUEUED)
		return true;
	if (!parameters.sweep_ns)
		return false;
	due = now - now % parameters.sweep_ns;
	return due > flow->left && due - flow->last_arrival >= parameters.idle_ns;
}

/* Whether there is no room for one more entry. */
static __always_inline bool is_full(void)
{
	if (KEEPS_FLOWS == WHILE_QUEUED)
		return entries >= statistics.flows + SPARE;
	return entries >= MOST_FLOWS;
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

		if (is_full())
			forget_flows(now);
		bpf_map_update_elem(&flows, key, &fresh, BPF_NOEXIST);
		flow = bpf_map_lookup_elem(&flows, key);
		if (!flow)
			return NULL;
		entries++;
		if (KEEPS_FLOWS == WHILE_ACTIVE)
			statistics.flows++;
	} else if (is_void(flow, now)) {
		__builtin_memset(&flow->state, 0, sizeof(flow->state));
	}
	if (KEEPS_FLOWS == WHILE_QUEUED && !flow->queued)
		statistics.flows++;
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
	if (KEEPS_FLOWS == WHILE_QUEUED)
		statistics.flows--;
	else
		flow->left = now;
}
