/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A qdisc of a discipline that is a rank: every packet gets its place when it comes.
 *
 * A discipline's file says what is known of a flow (`struct state`), how a packet is ranked
 * (`rank_packet`), how long flows are remembered (KEEPS_FLOWS), and what a full buffer does
 * (WHEN_FULL): refuse the packet that comes, or give up the one at the end of the line, which
 * may be the same. The rest is here and in qdisc.h, and does what the core library does, to
 * the nanosecond: one test gives both the same packets.
 */
#pragma once

#include "qdisc.h"

/* What else a discipline notes of a packet that is sent, with so many left. */
#ifndef AFTER_SENDING
#define AFTER_SENDING(taken, left)
#endif

/* Gives up the end of the line until the rest fits; returns whether `number` was in it. */
static __always_inline bool push_out(struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free,
				     const struct limits *limits, u64 number, u64 now)
{
	bool is_lost = false;

	for_up_to (MOST_PACKETS) {
		struct packet *packet;
		struct sk_buff *skb;
		struct taken taken;

		if (is_within(limits, sch))
			break;
		packet = take_last();
		if (!packet)
			break;
		skb = unpack(packet, &taken);
		leave(&taken.flow, now);
		count_out(sch, &taken);
		if (push_aside(skb, sch, to_free, &taken, number))
			is_lost = true;
	}
	return is_lost;
}

static __always_inline int enqueue(struct sk_buff *skb, struct Qdisc *sch,
				   struct bpf_sk_buff_ptr *to_free)
{
	struct limits limits = limits_now();
	u64 now = bpf_ktime_get_ns(), number, level;
	struct packet *packet;
	struct facts facts;
	struct arrival arrival;
	struct rank rank = {};
	struct flow *flow;
	bool is_lost = false;

	arrive(skb, &facts);
	if (WHEN_FULL == REFUSE) {
		if (!has_room(&limits, sch, facts.size))
			goto refused;
	} else {
		/* It would push out everything else and still not fit. */
		if (facts.size > limits.bytes)
			goto refused;
		stretch(&limits, sch);
	}
	packet = new_packet();
	if (!packet)
		goto no_memory;
	flow = join(&facts.flow, now);
	if (!flow) {
		free_packet(packet);
		goto no_memory;
	}
	arrival = (struct arrival){ now, facts.size, facts.packets, flow->queued > 1 };
	rank_packet(&rank, &flow->state, &arrival);
	level = level_of(rank);
	pack(packet, skb, &facts, now, to_free);
	packet->level = level;
	packet->rank = rank.major;
	number = packet->number;
	put(packet, &rank);
	count_in(sch, &facts, level, now);
	/* There mostly is room, and packets are spared the loop. */
	if (WHEN_FULL == PUSH_OUT && !is_within(&limits, sch))
		is_lost = push_out(sch, to_free, &limits, number, now);
	if (statistics.flows > statistics.flows_peak)
		statistics.flows_peak = statistics.flows;
	return is_lost ? NET_XMIT_DROP : NET_XMIT_SUCCESS;
no_memory:
	statistics.no_memory_packets += facts.packets;
	return turn_away(skb, sch, to_free);
refused:
	statistics.refused_packets += facts.packets;
	return turn_away(skb, sch, to_free);
}

static __always_inline bool send_next(struct Qdisc *sch, u64 now, struct taken *taken,
				      struct sk_buff **skb)
{
	struct packet *packet = take_first();

	if (!packet)
		return false;
	*skb = unpack(packet, taken);
	leave(&taken->flow, now);
	count_out(sch, taken);
	AFTER_SENDING(*taken, sch->q.qlen);
	return true;
}
