/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tide: fair queueing in which a flow that begins has a head start of a bounded size. The
 * core library has the principle (crates/core/src/discipline/tide.rs), and the same names
 * and arithmetic.
 *
 * Packets wait in a list for each flow. Backlogged flows are in a calendar by the tag of what
 * they send next, those with two packets or more in another one by that of their end, and
 * flows that are remembered without a packet in a chain, of which one is looked at for each
 * packet that comes or leaves. All that takes O(1) for a packet. Where core takes many
 * steps, so does this: CoDel may drop all of a queue but 10 packets in a call, and a packet
 * may push out as many as it takes the room of. There is no cap but the 32 768 packets that
 * are ever queued, and each of them joined once.
 *
 * What differs from core: nothing is marked (codel.h); and no more packets than that are
 * queued, nor flows remembered.
 */
#include "discipline.h"
#include "marks.h"
#include "codel.h"

/* What is known of a flow. */
struct state {
	u64 tag;
	/* Since when nothing has been queued. */
	u64 idle_since;
	struct law law;
};

#include "numbered.h"
#include "calendar.h"

#define MOST_CREDIT 300000ULL
/* A full packet of Ethernet, with its header. */
#define PACKET 1514ULL
/* A packet counts for no more than this in tags. */
#define MOST_COST (1ULL << 20)
/* Flows in credit pay one byte for so many to those that have used theirs up. */
#define TOLL 8
/* How many credits a payer may be lent. */
#define LOAN 8
/* The greatest distance of a tag from virtual time: after it, and before it. */
#define FARTHEST (LOAN * MOST_CREDIT + MOST_COST)
#define BEHIND (MOST_CREDIT + PACKET + 2 * SLOT)
/* An idle flow's tag is let off a byte in this time. */
#define RELIEF (1ULL << 18)
/* What CoDel leaves alone. */
#define FLOOR (10 * PACKET)

u64 virtual_time;
/* What flows in credit have had and not paid for, while payers wait. */
u64 owed;
/* What flows in credit have had by which virtual time has not moved on yet. */
u64 passed;
/* Flows that are remembered without a packet, in the order in which they are looked at. */
struct chain idle_flows;
u64 idle_count;
/* The turn that `choose_flow` has decided: whether a payer has it, and the first of them. */
struct {
	bool is_paid;
	u32 payer;
	u64 payer_tag;
} turn;

static __always_inline u64 credit(void)
{
	u64 bytes = READ_ONCE(parameters.credit_bytes);

	return bytes < MOST_CREDIT ? bytes : MOST_CREDIT;
}

static __always_inline bool is_in_credit(u64 tag)
{
	return is_slots_before(tag, virtual_time);
}

/* Whether there are so many flows that idle ones have to go: more than the buffer has room
 * for full packets. */
static __always_inline bool is_crowded(void)
{
	u64 most = READ_ONCE(parameters.limit_packets), count = statistics.flows;

	return count > most || (count > 1 && count * PACKET > READ_ONCE(parameters.limit_bytes));
}

/* What an idle flow has had beyond where a flow begins, less what it has been let off; zero
 * if it could be forgotten. */
static __always_inline u64 standing(const struct state *state, u64 now)
{
	u64 had = ahead_of(state->tag, virtual_time - credit());
	u64 relief = (now - state->idle_since) / RELIEF;

	had = had > relief ? had - relief : 0;
	return had > PACKET ? had : 0;
}

static __always_inline void forget_flow(struct flow *flow, u32 number)
{
	chain_remove(&idle_flows, ASIDE, number);
	idle_count--;
	give_up_flow(flow, number);
}

/* Looks at one idle flow. */
GLOBAL int look_at_idle(u64 now)
{
	u32 number = idle_flows.first;
	struct flow *flow = flow_of(number);

	if (!flow)
		return 0;
	if (is_crowded() || !standing(&flow->state, now)) {
		forget_flow(flow, number);
	} else {
		chain_remove(&idle_flows, ASIDE, number);
		chain_add(&idle_flows, ASIDE, number);
	}
	return 0;
}

/* The number of the flow that a packet joins, which is idle no longer; nobody's if nothing
 * more can be remembered. */
GLOBAL u32 admit(const struct flow_key *key ARGUMENT(nonnull), u64 now)
{
	u32 number = number_of(key), first;
	u64 begin = virtual_time - credit(), had = 0;
	struct flow *flow, *longest;

	if (!number && (first = idle_flows.first) && (longest = flow_of(first))) {
		/* It would have to go all the same: there are more than the buffer holds. */
		forget_flow(longest, first);
		number = number_of(key);
	}
	flow = flow_of(number);
	if (!flow)
		return NOBODY;
	if (flow->in_use && !flow->packets) {
		chain_remove(&idle_flows, ASIDE, number);
		idle_count--;
		had = standing(&flow->state, now);
		if (had)
			flow->state.tag = begin + had;
		else
			flow->state = (struct state){ .tag = begin };
		return number;
	}
	if (!flow->in_use) {
		use_flow(flow, number);
		flow->state = (struct state){ .tag = begin };
	}
	first = idle_flows.first;
	longest = flow_of(first);
	if (longest && is_crowded())
		forget_flow(longest, first);
	return number;
}

/* The last packet of a flow has left. */
static __always_inline void emptied(struct flow *flow, u32 number, u64 now)
{
	calendar_remove(HEADS, number);
	calendar_remove(TAILS, number);
	flow->state.idle_since = now;
	if (standing(&flow->state, now)) {
		chain_add(&idle_flows, ASIDE, number);
		idle_count++;
	} else {
		give_up_flow(flow, number);
	}
}

/* Puts a backlogged flow where its tail belongs. Being served moves the head of a queue and
 * not the tail. */
static __always_inline void place_tail(struct flow *flow, u32 number)
{
	u64 bytes = flow->bytes, slot;

	if (flow->packets < 2) {
		calendar_remove(TAILS, number);
		return;
	}
	if (bytes > BEHIND + FARTHEST)
		bytes = BEHIND + FARTHEST;
	slot = slot_of(earliest(flow->state.tag + bytes, virtual_time + FARTHEST));
	if (flow->slot[TAILS] != slot + 1)
		calendar_insert(TAILS, number, slot);
}

/* A packet has come into a queue. */
GLOBAL int place_joined(u32 number)
{
	struct flow *flow = flow_of(number);

	if (!flow)
		return 0;
	if (flow->packets == 1)
		calendar_insert(HEADS, number, slot_of(flow->state.tag));
	place_tail(flow, number);
	return 0;
}

/* A packet has been taken from the head of a queue, and none been sent. */
GLOBAL int place_rest(u32 number, u64 now)
{
	struct flow *flow = flow_of(number);

	if (!flow)
		return 0;
	if (flow->packets)
		place_tail(flow, number);
	else
		emptied(flow, number, now);
	return 0;
}

/* Moves virtual time on without a payer in turn, but with it the beginning of new flows no
 * further than a packet beyond the flow that is in turn, which is at `least`. */
static __always_inline void move_on(u64 to, u64 least)
{
	virtual_time = latest(virtual_time, earliest(to, least + credit() + PACKET));
}

/* Whether the toll goes to the first payer now, while the flow in turn is at `least`. Who has
 * been lent much has to take virtual time along. */
static __always_inline bool is_due(u64 least)
{
	u64 loan = credit() * LOAN;

	if (owed < credit() * TOLL)
		return false;
	if (ahead_of(turn.payer_tag, virtual_time) > loan)
		move_on(turn.payer_tag - loan, least);
	return ahead_of(turn.payer_tag, virtual_time) <= loan;
}

/* The flow that is served now; nobody if no packet waits. */
GLOBAL u32 choose_flow(void)
{
	u32 first = first_from(HEADS, slot_of(virtual_time - BEHIND));
	struct flow *flow = flow_of(first), *payer;
	u64 tag;

	if (!flow)
		return NOBODY;
	tag = flow->state.tag;
	turn.is_paid = !is_in_credit(tag);
	if (turn.is_paid) {
		virtual_time = latest(virtual_time, tag);
		return first;
	}
	turn.payer = first_from(HEADS, slot_of(virtual_time));
	payer = flow_of(turn.payer);
	if (!payer)
		return NOBODY;
	turn.payer_tag = payer->state.tag;
	if (is_in_credit(turn.payer_tag))
		turn.payer = NOBODY;
	else
		turn.is_paid = is_due(tag);
	return turn.is_paid ? turn.payer : first;
}

/* Nothing is queued: every tag is now before where flows begin. */
static __always_inline void forget_all(void)
{
	virtual_time = start_of_slot(virtual_time + FARTHEST + MOST_CREDIT);
	owed = 0;
	passed = 0;
}

/* Counts a packet that is sent, and puts its flow where it belongs. */
GLOBAL int count_sent(u32 number, u64 size, u64 now, bool is_last)
{
	struct flow *flow = flow_of(number);
	u64 cost = size < MOST_COST ? size : MOST_COST, part, share, to;

	if (!flow)
		return 0;
	if (turn.is_paid) {
		owed = owed > cost * TOLL ? owed - cost * TOLL : 0;
	} else {
		owed = turn.payer ? owed + cost : 0;
		/* What is left of the division counts next time. */
		part = TOLL * (statistics.flows - idle_count);
		passed += cost;
		share = passed / part;
		passed -= share * part;
		to = virtual_time + share;
		if (turn.payer)
			to = earliest(to, turn.payer_tag);
		move_on(to, flow->state.tag);
	}
	flow->state.tag += cost;
	if (flow->packets) {
		calendar_insert(HEADS, number, slot_of(flow->state.tag));
		place_tail(flow, number);
	} else {
		if (is_last)
			forget_all();
		emptied(flow, number, now);
	}
	return 0;
}

/* Takes any packet out of the order. */
static __always_inline struct packet *take_first(void)
{
	struct flow *flow = flow_of(first_from(HEADS, 0));

	return flow ? queue_take(flow) : NULL;
}

/* A packet of a flow has been taken out of the order. */
static __always_inline void leave(const struct flow_key *key, u64 now)
{
	u32 *number = bpf_map_lookup_elem(&numbers, key);

	if (number)
		place_rest(*number, now);
}

#define AFTER_THE_LAST() forget_all()
#include "qdisc.h"

/* A wait that is acceptable: where a packet takes longer, CoDel would never leave off. */
static __always_inline u64 target(void)
{
	u64 packets = transmission(PACKET) * 3 / 2;

	return packets > TARGET ? packets : TARGET;
}

/* When the head of a queue came, and its size. */
static __always_inline bool look_at_head(struct flow *flow, u64 *arrived, u64 *size)
{
	struct bpf_list_node *node;

	bpf_spin_lock(&flow->lock);
	node = bpf_list_front(&flow->queue);
	if (node) {
		*arrived = container_of(node, struct packet, node)->arrived;
		*size = container_of(node, struct packet, node)->size;
	}
	bpf_spin_unlock(&flow->lock);
	return node;
}

/* Where CoDel's call stands. It is in a map, of which the verifier follows nothing. */
u64 codel_call;

/* Drops the heads of a payer's queue that CoDel wants to go. */
static __always_inline void drop_late(struct Qdisc *sch, struct flow *flow, u64 now)
{
	u64 acceptable = target();

	codel_call = AT_FIRST;
	for_up_to (MOST_PACKETS) {
		u64 arrived = now, size = 0;
		struct packet *packet;
		struct taken taken;
		struct sk_buff *skb;
		bool is_fine;

		if (!look_at_head(flow, &arrived, &size))
			break;
		is_fine = now - arrived < acceptable || flow->bytes - size <= FLOOR;
		if (!has_to_go(&flow->state.law, now, is_fine, &codel_call))
			break;
		packet = queue_take(flow);
		if (!packet)
			break;
		skb = unpack(packet, &taken);
		count_out(sch, &taken);
		sch->qstats.drops++;
		statistics.early_packets += taken.packets;
		if (skb)
			bpf_kfree_skb(skb);
	}
}

static __always_inline bool send_next(struct Qdisc *sch, u64 now, struct taken *taken,
				      struct sk_buff **skb)
{
	struct packet *packet;
	struct flow *flow;
	u32 number;

	look_at_idle(now);
	number = choose_flow();
	flow = flow_of(number);
	if (!flow)
		return false;
	if (turn.is_paid)
		drop_late(sch, flow, now);
	packet = queue_take(flow);
	if (!packet)
		return false;
	*skb = unpack(packet, taken);
	count_out(sch, taken);
	count_sent(number, taken->size, now, !sch->q.qlen);
	return true;
}

/* Makes room for packet `number` of flow `own`; returns whether that was lost itself. */
static __always_inline bool push_out(struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free, u32 own,
				     u64 number, u64 limit_packets, u64 limit_bytes, u64 now)
{
	bool is_lost = false;

	for_up_to (MOST_PACKETS) {
		struct packet *packet;
		struct flow *flow;
		struct taken taken;
		struct sk_buff *skb;
		u32 last;

		if (sch->q.qlen <= limit_packets && statistics.queued_bytes <= limit_bytes)
			break;
		last = last_from(TAILS, slot_of(virtual_time - BEHIND));
		/* All queues have one packet: the newest of all is what has just come. */
		if (!last)
			last = own;
		flow = flow_of(last);
		if (!flow)
			break;
		packet = queue_take(flow);
		if (!packet)
			break;
		skb = unpack(packet, &taken);
		count_out(sch, &taken);
		place_rest(last, now);
		sch->qstats.drops++;
		if (taken.number == number) {
			is_lost = true;
			statistics.refused_packets += taken.packets;
		} else {
			statistics.pushed_out_packets += taken.packets;
		}
		if (skb)
			bpf_qdisc_skb_drop(skb, to_free);
	}
	return is_lost;
}

static __always_inline int enqueue(struct sk_buff *skb, struct Qdisc *sch,
				   struct bpf_sk_buff_ptr *to_free)
{
	u64 limit_packets = READ_ONCE(parameters.limit_packets);
	u64 limit_bytes = READ_ONCE(parameters.limit_bytes);
	u64 now = bpf_ktime_get_ns(), number;
	struct packet *packet;
	struct facts facts;
	struct flow *flow;
	bool is_lost = false;
	u32 own;

	if (limit_packets > MOST_PACKETS)
		limit_packets = MOST_PACKETS;
	read_frame(skb, &facts);
	statistics.arrived_packets += facts.packets;
	statistics.arrived_bytes += facts.size;
	look_at_idle(now);
	/* It would push out everything else and still not fit. */
	if (facts.size > limit_bytes)
		goto refused;
	/* A buffer that was made smaller keeps what it holds. */
	if (limit_packets < sch->q.qlen)
		limit_packets = sch->q.qlen;
	if (limit_bytes < statistics.queued_bytes)
		limit_bytes = statistics.queued_bytes;
	packet = new_packet();
	if (!packet)
		goto no_memory;
	own = admit(&facts.flow, now);
	flow = flow_of(own);
	if (!flow) {
		free_packet(packet);
		/* Each number has a packet queued: the one that comes would be pushed out. */
		if (sch->q.qlen >= MOST_PACKETS)
			goto refused;
		goto no_memory;
	}
	pack(packet, skb, &facts, now, to_free);
	packet->level = 0;
	packet->rank = 0;
	number = packet->number;
	queue_add(flow, packet, facts.size);
	count_in(sch, &facts, 0, now);
	place_joined(own);
	if (sch->q.qlen > limit_packets || statistics.queued_bytes > limit_bytes)
		is_lost = push_out(sch, to_free, own, number, limit_packets, limit_bytes, now);
	if (statistics.flows > statistics.flows_peak)
		statistics.flows_peak = statistics.flows;
	return is_lost ? NET_XMIT_DROP : NET_XMIT_SUCCESS;
no_memory:
	statistics.no_memory_packets += facts.packets;
	goto drop;
refused:
	statistics.refused_packets += facts.packets;
drop:
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

QDISC("tide")
