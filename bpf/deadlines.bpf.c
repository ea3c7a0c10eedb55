/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Earliest deadline first, with best effort early among the promises. The core library has the
 * principle (crates/core/src/discipline/deadlines.rs).
 *
 * Packets wait in three trees: real time by deadline; best effort by the tags of fair queueing;
 * and its head, alone, with a deadline of its own. Excess that a packet of its 5-tuple
 * overtakes is looked for among the best effort that came between, one step along the tree
 * for each: O(k log n) for k packets, and what keeps to a curve is not frequent.
 */
#include "discipline.h"
#include "wide.h"
#include "promises.h"
#include "assignment.h"

/* What is known of a 5-tuple with packets in the queue. */
struct state {
	/* Packets that have joined, and how many of each kind are there. */
	u64 joined, real_time, excess, unpromised;
	/* No packet of the excess has a lower number, nor a lower tag. */
	u64 oldest_excess, excess_major, excess_minor;
	/* The latest deadline of its real-time packets. */
	u64 latest;
	/* The last tag of its best effort. */
	u64 tag_major, tag_minor;
};

#define KEEPS_FLOWS WHILE_QUEUED
#include "flows.h"

/*
 * `level` is REAL_TIME or BEST_EFFORT, and BEYOND_A_PROMISE with the latter; `rank` is the
 * packet's number within its 5-tuple.
 */
#define REAL_TIME 0
#define BEST_EFFORT 1
#define BEYOND_A_PROMISE 2

struct packet {
	struct sk_buff HELD *skb;
	struct bpf_rb_node node;
	/* A deadline, or a tag: bytes over weight in units of 2^-32, in two words. */
	u64 major, minor;
	/* Best effort: the latest deadline of the real-time packets of its 5-tuple. */
	u64 after;
	PACKET_FACTS
};

PROTECTED(promised) struct bpf_spin_lock promised_lock;
PROTECTED(promised) struct bpf_rb_root promised __contains(packet, node);
PROTECTED(waiting) struct bpf_spin_lock waiting_lock;
PROTECTED(waiting) struct bpf_rb_root waiting __contains(packet, node);
PROTECTED(chosen) struct bpf_spin_lock chosen_lock;
PROTECTED(chosen) struct bpf_rb_root chosen __contains(packet, node);

#define BEFORE_THE_FIRST() forget_past()
#define AFTER_THE_LAST() (has_head = 0, forget_past())

/* Whether a best-effort packet stands among the deadlines, and its own. */
u64 has_head, head_deadline;
/* The tag of the head, or of the last one there was. */
u64 virtual_major, virtual_minor;
/* The last tag of each best-effort flow that has a weight. */
struct tag {
	u64 major, minor;
} tags[MOST_PROMISES];
/* Real-time packets that are queued, and their bytes. */
u64 promised_packets, promised_bytes;

#include "qdisc.h"

#define MOST_STEPS 64

static bool is_before(struct bpf_rb_node *left, const struct bpf_rb_node *right)
{
	struct packet *a = container_of(left, struct packet, node);
	struct packet *b = container_of(right, struct packet, node);

	if (a->major != b->major)
		return a->major < b->major;
	if (a->minor != b->minor)
		return a->minor < b->minor;
	return a->number < b->number;
}

/* The real-time packet that is due first, if it is due no later than the head. */
static __always_inline struct packet *take_promised(void)
{
	struct bpf_rb_node *node;

	bpf_spin_lock(&promised_lock);
	node = bpf_rbtree_first(&promised);
	if (node) {
		if (has_head && head_deadline < container_of(node, struct packet, node)->major)
			node = NULL;
		else
			node = bpf_rbtree_remove(&promised, node);
	}
	bpf_spin_unlock(&promised_lock);
	return node ? container_of(node, struct packet, node) : NULL;
}

static __always_inline struct packet *take_waiting(void)
{
	struct bpf_rb_node *node;

	bpf_spin_lock(&waiting_lock);
	node = bpf_rbtree_first(&waiting);
	if (node)
		node = bpf_rbtree_remove(&waiting, node);
	bpf_spin_unlock(&waiting_lock);
	return node ? container_of(node, struct packet, node) : NULL;
}

static __always_inline struct packet *take_head(void)
{
	struct bpf_rb_node *node;

	bpf_spin_lock(&chosen_lock);
	node = bpf_rbtree_first(&chosen);
	if (node)
		node = bpf_rbtree_remove(&chosen, node);
	bpf_spin_unlock(&chosen_lock);
	has_head = 0;
	return node ? container_of(node, struct packet, node) : NULL;
}

/* The best effort that would be served last. */
static __always_inline struct packet *take_last(void)
{
	struct bpf_rb_node *node, *taken = NULL;

	bpf_spin_lock(&waiting_lock);
	node = bpf_rbtree_root(&waiting);
	if (node) {
		for_up_to (MOST_STEPS) {
			struct bpf_rb_node *next = bpf_rbtree_right(&waiting, node);

			if (!next)
				break;
			node = next;
		}
		taken = bpf_rbtree_remove(&waiting, node);
	}
	bpf_spin_unlock(&waiting_lock);
	return taken ? container_of(taken, struct packet, node) : take_head();
}

static __always_inline struct packet *take_first(void)
{
	struct packet *packet = take_head();

	if (!packet)
		packet = take_promised();
	return packet ? packet : take_waiting();
}

/* What is known of the 5-tuple of a packet that is queued. */
static __always_inline struct flow *known(const struct flow_key *key)
{
	return bpf_map_lookup_elem(&flows, key);
}

/* One packet is gone, sent or lost; its 5-tuple's counts were right until now. */
static __always_inline void forget_packet(struct Qdisc *sch, const struct taken *taken, u64 now)
{
	struct flow *flow = known(&taken->flow);

	if (taken->level == REAL_TIME) {
		promised_packets--;
		promised_bytes -= taken->size;
	}
	if (flow) {
		if (taken->level == REAL_TIME)
			flow->state.real_time--;
		else if (taken->level & BEYOND_A_PROMISE)
			flow->state.excess--;
		else
			flow->state.unpromised--;
	}
	leave(&taken->flow, now);
	count_out(sch, taken);
}

/* Puts the next best-effort packet among the deadlines, if none is there. */
static __always_inline void choose_head(u64 now)
{
	struct packet *packet;
	struct flow_key key;
	struct flow *flow;

	if (has_head)
		return;
	packet = take_waiting();
	if (!packet)
		return;
	virtual_major = packet->major;
	virtual_minor = packet->minor;
	head_deadline = assign(now, packet->size > SMALLEST ? packet->size : SMALLEST);
	key.words[0] = packet->flow0;
	key.words[1] = packet->flow1;
	key.words[2] = packet->flow2;
	key.words[3] = packet->flow3;
	key.words[4] = packet->flow4;
	flow = known(&key);
	if (flow && flow->state.real_time && packet->after > head_deadline)
		head_deadline = packet->after;
	has_head = 1;
	bpf_spin_lock(&chosen_lock);
	tree_add(&chosen, &packet->node, is_before);
	bpf_spin_unlock(&chosen_lock);
}

/* Where the search for what was overtaken stands: behind this place in the order of tags. */
u64 searched_major, searched_minor, searched_number;

/*
 * Takes the next packet behind that place if it is excess of the 5-tuple with a number below
 * `before`; else moves the place behind it. Nothing is left when it says so.
 */
static __always_inline struct packet *take_overtaken(const struct flow_key *key, u64 before,
						     bool *is_over)
{
	struct bpf_rb_node *node, *next = NULL, *taken = NULL;

	*is_over = true;
	bpf_spin_lock(&waiting_lock);
	node = bpf_rbtree_root(&waiting);
	for_up_to (MOST_STEPS) {
		struct packet *packet;

		if (!node)
			break;
		packet = container_of(node, struct packet, node);
		if (packet->major > searched_major ||
		    (packet->major == searched_major &&
		     (packet->minor > searched_minor || (packet->minor == searched_minor &&
							 packet->number > searched_number)))) {
			next = node;
			node = bpf_rbtree_left(&waiting, node);
		} else {
			node = bpf_rbtree_right(&waiting, node);
		}
	}
	if (next) {
		struct packet *packet = container_of(next, struct packet, node);
		bool is_same = packet->flow0 == key->words[0] && packet->flow1 == key->words[1] &&
			       packet->flow2 == key->words[2] && packet->flow3 == key->words[3] &&
			       packet->flow4 == key->words[4];

		/* Those of a 5-tuple have their tags in the order of their numbers. */
		*is_over = is_same && packet->rank >= before;
		searched_major = packet->major;
		searched_minor = packet->minor;
		searched_number = packet->number;
		if (is_same && !*is_over && (packet->level & BEYOND_A_PROMISE))
			taken = bpf_rbtree_remove(&waiting, next);
	}
	bpf_spin_unlock(&waiting_lock);
	return taken ? container_of(taken, struct packet, node) : NULL;
}

/* Loses a packet that nothing was promised to any more. */
static __always_inline void lose_excess(struct Qdisc *sch, struct packet *packet, u64 now)
{
	struct taken taken;
	struct sk_buff *skb = unpack(packet, &taken);

	forget_packet(sch, &taken, now);
	sch->qstats.drops++;
	statistics.excess_packets += taken.packets;
	if (skb)
		bpf_kfree_skb(skb);
}

/* Loses the excess that `sent`, a real-time packet of its 5-tuple, has overtaken. */
static __always_inline void lose_overtaken(struct Qdisc *sch, const struct taken *sent, u64 now)
{
	struct flow *flow = known(&sent->flow);
	struct packet *packet;
	bool is_over;

	if (!flow || !flow->state.excess || flow->state.oldest_excess > sent->rank)
		return;
	flow->state.oldest_excess = sent->rank;
	if (has_head) {
		bool is_overtaken;

		packet = take_head();
		if (!packet)
			return;
		is_overtaken = packet->flow0 == sent->flow.words[0] &&
			       packet->flow1 == sent->flow.words[1] &&
			       packet->flow2 == sent->flow.words[2] &&
			       packet->flow3 == sent->flow.words[3] &&
			       packet->flow4 == sent->flow.words[4] &&
			       (packet->level & BEYOND_A_PROMISE) && packet->rank < sent->rank;
		if (is_overtaken) {
			lose_excess(sch, packet, now);
		} else {
			has_head = 1;
			bpf_spin_lock(&chosen_lock);
			tree_add(&chosen, &packet->node, is_before);
			bpf_spin_unlock(&chosen_lock);
		}
	}
	searched_major = flow->state.excess_major;
	searched_minor = flow->state.excess_minor;
	searched_number = 0;
	for_up_to (MOST_PACKETS) {
		if (!flow->state.excess)
			break;
		packet = take_overtaken(&sent->flow, sent->rank, &is_over);
		if (packet)
			lose_excess(sch, packet, now);
		if (is_over)
			break;
	}
}

/* Gives up best effort until a real-time packet fits, or there is none left. */
static __always_inline void make_room(struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free,
				      struct limits limits, u64 size, u64 now)
{
	stretch(&limits, sch);
	for_up_to (MOST_PACKETS) {
		struct packet *packet;
		struct sk_buff *skb;
		struct taken taken;

		if (has_room(&limits, sch, size))
			break;
		packet = take_last();
		if (!packet)
			break;
		skb = unpack(packet, &taken);
		forget_packet(sch, &taken, now);
		/* The packet that comes has no number yet. */
		push_aside(skb, sch, to_free, &taken, NEVER);
	}
}

/* Gives a best-effort packet its tag. */
static __always_inline void tag_packet(struct packet *packet, struct state *state, u64 which,
				       u64 size)
{
	u64 at = within(which, MOST_PROMISES), weight = 1, share;
	u64 major = virtual_major, minor = virtual_minor;
	bool is_weighted = which < MOST_PROMISES && !contracts.promise[at].deadline;

	if (state->tag_major > major || (state->tag_major == major && state->tag_minor > minor)) {
		major = state->tag_major;
		minor = state->tag_minor;
	}
	if (is_weighted) {
		weight = contracts.promise[at].weight;
		if (tags[at].major > major ||
		    (tags[at].major == major && tags[at].minor > minor)) {
			major = tags[at].major;
			minor = tags[at].minor;
		}
	}
	share = weight ? (size << 32) / weight : 0;
	minor += share;
	major += minor < share;
	if (is_weighted) {
		tags[at].major = major;
		tags[at].minor = minor;
	}
	packet->major = state->tag_major = major;
	packet->minor = state->tag_minor = minor;
}

static __always_inline int enqueue(struct sk_buff *skb, struct Qdisc *sch,
				   struct bpf_sk_buff_ptr *to_free)
{
	struct limits limits = limits_now();
	u64 now = bpf_ktime_get_ns(), which, promise, level = BEST_EFFORT;
	struct packet *packet;
	struct facts facts;
	struct state *state;
	struct flow *flow;

	arrive(skb, &facts);
	/* A super-packet is in the way of others for longer than was promised; to lose all of
	 * them would end every connection through another interface that merges packets. */
	if (facts.size > contracts.largest_packet * facts.packets)
		goto excess;
	which = find_promise(&facts.flow);
	promise = which < MOST_PROMISES ? contracts.promise[within(which, MOST_PROMISES)].deadline
					: 0;
	flow = known(&facts.flow);
	if (promise && (!flow || !flow->queued || !flow->state.unpromised)) {
		/* A packet that finds no room was never there, for its curve either. */
		if (promised_packets >= limits.packets ||
		    promised_bytes + facts.size > limits.bytes)
			goto refused;
		if (admit(which, now, facts.size > SMALLEST ? facts.size : SMALLEST))
			level = REAL_TIME;
		else if (READ_ONCE(parameters.drops_excess))
			goto excess;
	}
	if (level == BEST_EFFORT) {
		if (!has_room(&limits, sch, facts.size))
			goto refused;
		if (promise)
			level |= BEYOND_A_PROMISE;
	}
	packet = new_packet();
	if (!packet)
		goto no_memory;
	if (level == REAL_TIME)
		make_room(sch, to_free, limits, facts.size, now);
	flow = join(&facts.flow, now);
	if (!flow) {
		free_packet(packet);
		goto no_memory;
	}
	state = &flow->state;
	pack(packet, skb, &facts, now, to_free);
	packet->level = level;
	packet->rank = ++state->joined;
	if (level == REAL_TIME) {
		packet->major = now + promise < now ? NEVER : now + promise;
		packet->minor = 0;
		state->real_time++;
		if (state->latest < packet->major)
			state->latest = packet->major;
		promised_packets++;
		promised_bytes += facts.size;
		bpf_spin_lock(&promised_lock);
		tree_add(&promised, &packet->node, is_before);
		bpf_spin_unlock(&promised_lock);
	} else {
		packet->after = state->real_time ? state->latest : 0;
		tag_packet(packet, state, which, facts.size);
		if (!(level & BEYOND_A_PROMISE)) {
			state->unpromised++;
		} else if (!state->excess++) {
			state->oldest_excess = state->joined;
			state->excess_major = packet->major;
			state->excess_minor = packet->minor;
		}
		bpf_spin_lock(&waiting_lock);
		tree_add(&waiting, &packet->node, is_before);
		bpf_spin_unlock(&waiting_lock);
	}
	count_in(sch, &facts, level, now);
	if (level != REAL_TIME)
		choose_head(now);
	if (statistics.flows > statistics.flows_peak)
		statistics.flows_peak = statistics.flows;
	return NET_XMIT_SUCCESS;
excess:
	statistics.excess_packets += facts.packets;
	return turn_away(skb, sch, to_free);
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
	struct packet *packet = take_promised();

	if (!packet)
		packet = take_head();
	if (!packet)
		return false;
	*skb = unpack(packet, taken);
	if (taken->level == REAL_TIME)
		lose_overtaken(sch, taken, now);
	forget_packet(sch, taken, now);
	choose_head(now);
	/* Nothing that has a deadline waits: the past binds nothing. */
	if (!sch->q.qlen && has_last)
		forget_past();
	return true;
}

QDISC("deadlines")
