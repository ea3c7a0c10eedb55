/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What all qdiscs have, whatever order they keep: packets of memory, rate, counting, and the
 * kernel's five calls. A discipline says which packets it takes in (`enqueue`) and which one
 * is next (`send_next`); queue.h has both for those that rank packets on arrival.
 *
 * A BPF qdisc can only stand at the root of a device, so it holds packets back to a rate
 * by itself. A packet may leave when the one before is on the wire, `free_at`; a queue that
 * was empty starts anew. A call that comes late within the credit loses nothing. The timer
 * looks again after ten milliseconds at the latest, so that another rate is noticed.
 *
 * The kernel holds the lock of the root around every call, so that nothing here runs
 * twice at once. The locks of lists and trees are what the verifier asks for; nothing
 * ever waits for them.
 */
#pragma once

#include "spares.h"

/* What a discipline prepares when a device gets it. */
#ifndef BEFORE_THE_FIRST
#define BEFORE_THE_FIRST()
#endif

/* What it forgets when all packets are taken away. */
#ifndef AFTER_THE_LAST
#define AFTER_THE_LAST()
#endif

/* Takes in a packet, or loses it; returns what became of it, in the kernel's numbers. */
static int enqueue(struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free);

/* Takes the next packet out of the queue and all that is known of it; false if there is none. */
static bool send_next(struct Qdisc *sch, u64 now, struct taken *taken, struct sk_buff **skb);

/* Takes any packet out of the order. */
static struct packet *take_first(void);

#define NEVER (~0ULL)
#define LOOK_AGAIN_NS 10000000ULL

/* When the last bit of the packet before has left. */
u64 free_at;
/* When the next packet is due; NEVER while there is none. */
u64 due = NEVER;
/* Packets that ever joined. */
u64 joined;

/* How long the link takes for so many bytes. */
static __always_inline u64 transmission(u64 size)
{
	u64 rate = READ_ONCE(parameters.rate);

	return rate ? (size * 8000000000ULL + rate - 1) / rate : 0;
}

/* Where a delay is counted. */
static __always_inline u32 delay_step(u64 delay)
{
	u32 octave = 0;
	u64 units = delay >> 12;

	if (units >> 28)
		return DELAY_STEPS - 1;
	if (units < 8)
		return units;
	for (u64 left = units, half = 16; half; half >>= 1) {
		if (left >> half) {
			octave += half;
			left >>= half;
		}
	}
	return (octave - 2) * 8 + (units >> (octave - 3) & 7);
}

/* One packet more is in the queue. */
static __always_inline void count_in(struct Qdisc *sch, const struct facts *facts, u64 level,
				     u64 now)
{
	if (!sch->q.qlen)
		due = now > free_at ? now : free_at;
	sch->q.qlen++;
	sch->qstats.backlog += facts->size;
	statistics.queued_packets += facts->packets;
	statistics.queued_bytes += facts->size;
	statistics.level_packets[level & 1] += facts->packets;
	statistics.level_bytes[level & 1] += facts->size;
	statistics.level_enqueued[level & 1] += facts->packets;
}

/* One packet of the queue is there no more. */
static __always_inline void count_out(struct Qdisc *sch, const struct taken *taken)
{
	u64 level = taken->level & 1;

	sch->q.qlen--;
	sch->qstats.backlog -= taken->size;
	statistics.queued_packets -= taken->packets;
	statistics.queued_bytes -= taken->size;
	statistics.level_packets[level] -= taken->packets;
	statistics.level_bytes[level] -= taken->size;
}

/* The most that may be queued, in packets and in bytes. */
struct limits {
	u64 packets, bytes;
};

static __always_inline struct limits limits_now(void)
{
	u64 packets = READ_ONCE(parameters.limit_packets);

	return (struct limits){ packets < MOST_PACKETS ? packets : MOST_PACKETS,
				READ_ONCE(parameters.limit_bytes) };
}

/* A buffer that was made smaller keeps what it holds. */
static __always_inline void stretch(struct limits *limits, const struct Qdisc *sch)
{
	if (limits->packets < sch->q.qlen)
		limits->packets = sch->q.qlen;
	if (limits->bytes < statistics.queued_bytes)
		limits->bytes = statistics.queued_bytes;
}

static __always_inline bool is_within(const struct limits *limits, const struct Qdisc *sch)
{
	return sch->q.qlen <= limits->packets && statistics.queued_bytes <= limits->bytes;
}

/* Whether a packet of this size can come as well. */
static __always_inline bool has_room(const struct limits *limits, const struct Qdisc *sch,
				     u64 size)
{
	return sch->q.qlen < limits->packets && statistics.queued_bytes + size <= limits->bytes;
}

/* Reads a packet that comes, and counts it. */
static __always_inline void arrive(struct sk_buff *skb, struct facts *facts)
{
	read_frame(skb, facts);
	statistics.arrived_packets += facts->packets;
	statistics.arrived_bytes += facts->size;
}

/* Loses a packet that has come; for which reason is counted elsewhere. */
static __always_inline int turn_away(struct sk_buff *skb, struct Qdisc *sch,
				     struct bpf_sk_buff_ptr *to_free)
{
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

/* Loses a packet of the queue for the sake of packet `number`; returns whether that is the
 * same. */
static __always_inline bool push_aside(struct sk_buff *skb, struct Qdisc *sch,
				       struct bpf_sk_buff_ptr *to_free,
				       const struct taken *taken, u64 number)
{
	bool is_same = taken->number == number;

	sch->qstats.drops++;
	if (is_same)
		statistics.refused_packets += taken->packets;
	else
		statistics.pushed_out_packets += taken->packets;
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	return is_same;
}

/* Puts an skb into a packet, with what is known of it but its level and rank. */
static __always_inline void pack(struct packet *packet, struct sk_buff *skb,
				 const struct facts *facts, u64 now,
				 struct bpf_sk_buff_ptr *to_free)
{
	packet->flow0 = facts->flow.words[0];
	packet->flow1 = facts->flow.words[1];
	packet->flow2 = facts->flow.words[2];
	packet->flow3 = facts->flow.words[3];
	packet->flow4 = facts->flow.words[4];
	packet->size = facts->size;
	packet->packets = facts->packets;
	packet->arrived = now;
	packet->number = ++joined;
	skb = hold(&packet->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
}

/* Takes a packet apart: what is known of it, and what the kernel calls it. */
static __always_inline struct sk_buff *unpack(struct packet *packet, struct taken *taken)
{
	struct sk_buff *skb;

	taken->flow.words[0] = packet->flow0;
	taken->flow.words[1] = packet->flow1;
	taken->flow.words[2] = packet->flow2;
	taken->flow.words[3] = packet->flow3;
	taken->flow.words[4] = packet->flow4;
	taken->size = packet->size;
	taken->packets = packet->packets;
	taken->arrived = packet->arrived;
	taken->number = packet->number;
	taken->level = packet->level;
	taken->rank = packet->rank;
	skb = hold(&packet->skb, NULL);
	free_packet(packet);
	return skb;
}

static __always_inline struct sk_buff *dequeue(struct Qdisc *sch)
{
	struct taken taken;
	struct sk_buff *skb;
	u64 now, start, credit, late;

	if (!sch->q.qlen)
		return NULL;
	now = bpf_ktime_get_ns();
	if (now < due || !READ_ONCE(parameters.rate)) {
		/* Always the same times: the kernel need not set its timer again. */
		u64 look = now - now % LOOK_AGAIN_NS + LOOK_AGAIN_NS;

		statistics.held_back++;
		sch->qstats.overlimits++;
		bpf_qdisc_watchdog_schedule(sch, due > now && due < look ? due : look, 0);
		return NULL;
	}
	if (!send_next(sch, now, &taken, &skb))
		return NULL;
	credit = parameters.credit_ns;
	late = now > credit ? now - credit : 0;
	start = due > late ? due : late;
	free_at = start + transmission(taken.size);
	due = sch->q.qlen ? free_at : NEVER;
	statistics.sent_packets += taken.packets;
	statistics.sent_bytes += taken.size;
	statistics.delay_sum_ns += now - taken.arrived;
	{
		u32 step = (taken.level & 1) * DELAY_STEPS + delay_step(now - taken.arrived);

		if (step < LEVELS * DELAY_STEPS)
			statistics.delays[step]++;
	}
	/* There always is one, but the verifier does not know. */
	if (!skb)
		return NULL;
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

static __always_inline int init(struct Qdisc *sch)
{
	/* There is one queue here, and so one device can have it. */
	if (statistics.in_use)
		return -EBUSY;
	statistics.in_use = 1;
	BEFORE_THE_FIRST();
	sch->limit = limits_now().packets;
	if (!sch->limit)
		sch->limit = 1;
	return 0;
}

/* The kernel calls this of one that `init` has refused as well: that has no limit. */
static __always_inline void destroy(struct Qdisc *sch)
{
	if (sch->limit)
		statistics.in_use = 0;
}

static __always_inline void reset(struct Qdisc *sch)
{
	u64 now = bpf_ktime_get_ns();

	for_up_to (MOST_PACKETS) {
		struct packet *packet = take_first();
		struct taken taken;
		struct sk_buff *skb;

		if (!packet)
			break;
		skb = unpack(packet, &taken);
		leave(&taken.flow, now);
		count_out(sch, &taken);
		statistics.cleared_packets += taken.packets;
		if (skb)
			bpf_kfree_skb(skb);
	}
	free_spares();
	AFTER_THE_LAST();
	due = NEVER;
	free_at = 0;
}

/* The kernel's calls, each with its arguments in an array. */
#define QDISC(name)                                                                            \
	SEC("struct_ops/enqueue") int qdisc_enqueue(u64 *arguments)                            \
	{                                                                                      \
		return enqueue((void *)arguments[0], (void *)arguments[1],                     \
			       (void *)arguments[2]);                                          \
	}                                                                                      \
	SEC("struct_ops/dequeue") struct sk_buff *qdisc_dequeue(u64 *arguments)                \
	{                                                                                      \
		return dequeue((void *)arguments[0]);                                          \
	}                                                                                      \
	SEC("struct_ops/init") int qdisc_init(u64 *arguments)                                  \
	{                                                                                      \
		return init((void *)arguments[0]);                                             \
	}                                                                                      \
	SEC("struct_ops/reset") void qdisc_reset(u64 *arguments)                               \
	{                                                                                      \
		reset((void *)arguments[0]);                                                   \
	}                                                                                      \
	SEC("struct_ops/destroy") void qdisc_destroy(u64 *arguments)                           \
	{                                                                                      \
		destroy((void *)arguments[0]);                                                 \
	}                                                                                      \
	SEC(".struct_ops.link")                                                                \
	struct Qdisc_ops qdisc = {                                                             \
		.id = name,                                                                    \
		.enqueue = (void *)qdisc_enqueue,                                              \
		.dequeue = (void *)qdisc_dequeue,                                              \
		.init = (void *)qdisc_init,                                                    \
		.reset = (void *)qdisc_reset,                                                  \
		.destroy = (void *)qdisc_destroy,                                              \
	};                                                                                     \
	char LICENSE[] SEC("license") = "Dual MIT/GPL";
