/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tide: fair queueing in which a flow that begins has a head start of a bounded size. The
 * core library has the principle (crates/core/src/discipline/tide.rs), and the same names
 * and arithmetic.
 *
 * Packets wait in a list for each flow. Backlogged flows are in a calendar in the order of
 * their turns, those with two packets or more in another one by the tag of their end, and
 * flows that are remembered without a packet in a chain, of which one is looked at for each
 * packet that leaves. All that takes O(1) for a packet. Where core takes many
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
	/* Where its turn is, while it is backlogged. */
	u64 rank;
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
#define MOST_COST (1ULL << 19)
/* Flows in credit pay one byte for so many to those that have used theirs up. */
#define TOLL 8
/* How many credits a payer may be lent. */
#define LOAN 8
/* The initial window of most senders: what waits counts up to it, and CoDel leaves as much
 * alone. */
#define WINDOW (10 * PACKET)
/* The greatest distance of turns and tails from virtual time: after it, and before it. */
#define FARTHEST (LOAN * MOST_CREDIT + 2 * MOST_COST)
#define BEHIND (MOST_CREDIT + PACKET + WINDOW + 2 * SLOT)
/* An idle flow's tag is let off a byte in this time. */
#define RELIEF (1ULL << 18)

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

	return had > relief ? had - relief : 0;
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
	calendar_remove(TURNS, number);
	calendar_remove(TAILS, number);
	flow->state.idle_since = now;
	if (standing(&flow->state, now)) {
		chain_add(&idle_flows, ASIDE, number);
		idle_count++;
	} else {
		give_up_flow(flow, number);
	}
}

/* Puts a flow into a slot of a calendar; it keeps its place if it is there already. */
static __always_inline void keep_in(u32 which, struct flow *flow, u32 number, u64 slot)
{
	if (flow->slot[which] != slot + 1)
		calendar_insert(which, number, slot);
}

/* Puts a backlogged flow where its turn and its tail belong. */
static __always_inline void place(struct flow *flow, u32 number)
{
	struct state *state = &flow->state;
	/* More than any tag is ahead of another, if that is what it is. */
	u64 waiting = flow->bytes < BEHIND + FARTHEST ? flow->bytes : BEHIND + FARTHEST;
	u64 counts = waiting < WINDOW ? waiting : WINDOW;

	state->rank = state->tag;
	if (is_in_credit(state->tag))
		state->rank = earliest(state->tag + counts, start_of_slot(virtual_time) - 1);
	keep_in(TURNS, flow, number, slot_of(state->rank));
	if (flow->packets < 2)
		calendar_remove(TAILS, number);
	else
		keep_in(TAILS, flow, number,
			slot_of(earliest(state->tag + waiting, virtual_time + FARTHEST)));
}

/* Puts a payer behind those that are where it is now. Being served moves the head of a queue
 * and not its tail; but one packet is no queue, drops make it shorter, and what is very large
 * does not count in full. */
static __always_inline void place_payer(struct flow *flow, u32 number, u64 sent, bool lost)
{
	flow->state.rank = flow->state.tag;
	calendar_insert(TURNS, number, slot_of(flow->state.rank));
	if (flow->packets < 2 || lost || sent > MOST_COST || flow->bytes > MOST_COST)
		place(flow, number);
}

/* A packet has come into a queue, or gone from its head without being sent. */
GLOBAL int place_flow(u32 number, u64 now)
{
	struct flow *flow = flow_of(number);

	if (!flow)
		return 0;
	if (flow->packets)
		place(flow, number);
	else
		emptied(flow, number, now);
	return 0;
}

/* Moves virtual time on without a payer in turn, but with it the beginning of new flows no
 * further than a packet beyond `rank`, where the turn is. */
static __always_inline void move_on(u64 to, u64 rank)
{
	virtual_time = latest(virtual_time, earliest(to, rank + credit() + PACKET));
}

/* Whether the toll goes to the first payer now, while a flow in credit has its turn at `rank`.
 * Who has been lent much has to take virtual time along. */
static __always_inline bool is_due(u64 rank)
{
	u64 loan = credit() * LOAN;

	if (owed < credit() * TOLL)
		return false;
	if (ahead_of(turn.payer_tag, virtual_time) > loan)
		move_on(turn.payer_tag - loan, rank);
	return ahead_of(turn.payer_tag, virtual_time) <= loan;
}

/* The flow that is served now; nobody if no packet waits. */
GLOBAL u32 choose_flow(void)
{
	u32 first = first_from(TURNS, slot_of(virtual_time - BEHIND));
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
	turn.payer = first_from(TURNS, slot_of(virtual_time));
	payer = flow_of(turn.payer);
	if (!payer)
		return NOBODY;
	turn.payer_tag = payer->state.tag;
	if (is_in_credit(turn.payer_tag))
		turn.payer = NOBODY;
	else
		turn.is_paid = is_due(flow->state.rank);
	return turn.is_paid ? turn.payer : first;
}

/* Nothing is queued: every tag is now before where flows begin. */
static __always_inline void forget_all(void)
{
	virtual_time = start_of_slot(virtual_time + FARTHEST + MOST_CREDIT);
	owed = 0;
	passed = 0;
}

/* Counts a packet that is sent, and puts its flow where it belongs; `lost` says whether others
 * were dropped from the same queue, `is_last` whether nothing is queued any more. */
GLOBAL int count_sent(u32 number, u64 size, u64 now, bool lost, bool is_last)
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
		move_on(to, flow->state.rank);
	}
	flow->state.tag += cost;
	if (flow->packets) {
		if (is_in_credit(flow->state.tag))
			place(flow, number);
		else
			place_payer(flow, number, size, lost);
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
	struct flow *flow = flow_of(first_from(TURNS, 0));

	return flow ? queue_take(flow) : NULL;
}

/* A packet of a flow has been taken out of the order. */
static __always_inline void leave(const struct flow_key *key, u64 now)
{
	u32 *number = bpf_map_lookup_elem(&numbers, key);

	if (number)
		place_flow(*number, now);
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

/* Drops the heads of a payer's queue that CoDel wants to go; returns whether there were any. */
static __always_inline bool drop_late(struct Qdisc *sch, struct flow *flow, u64 now)
{
	u64 acceptable = target();
	bool lost = false;

	codel_call = AT_FIRST;
	for_up_to (MOST_PACKETS) {
		u64 arrived = now, size = 0;
		struct packet *packet;
		struct taken taken;
		struct sk_buff *skb;
		bool is_fine;

		if (!look_at_head(flow, &arrived, &size))
			break;
		is_fine = now - arrived < acceptable || flow->bytes - size <= WINDOW;
		if (!has_to_go(&flow->state.law, now, is_fine, &codel_call))
			break;
		packet = queue_take(flow);
		if (!packet)
			break;
		skb = unpack(packet, &taken);
		count_out(sch, &taken);
		sch->qstats.drops++;
		statistics.early_packets += taken.packets;
		lost = true;
		if (skb)
			bpf_kfree_skb(skb);
	}
	return lost;
}

static __always_inline bool send_next(struct Qdisc *sch, u64 now, struct taken *taken,
				      struct sk_buff **skb)
{
	struct packet *packet;
	struct flow *flow;
	bool lost = false;
	u32 number;

	look_at_idle(now);
	number = choose_flow();
	flow = flow_of(number);
	if (!flow)
		return false;
	if (turn.is_paid)
		lost = drop_late(sch, flow, now);
	packet = queue_take(flow);
	if (!packet)
		return false;
	*skb = unpack(packet, taken);
	count_out(sch, taken);
	count_sent(number, taken->size, now, lost, !sch->q.qlen);
	return true;
}

/* Makes room for packet `number` of flow `own`; returns whether that was lost itself. */
static __always_inline bool push_out(struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free,
				     const struct limits *limits, u32 own, u64 number, u64 now)
{
	bool is_lost = false;

	for_up_to (MOST_PACKETS) {
		struct packet *packet;
		struct flow *flow;
		struct taken taken;
		struct sk_buff *skb;
		u32 last;

		if (is_within(limits, sch))
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
		place_flow(last, now);
		if (push_aside(skb, sch, to_free, &taken, number))
			is_lost = true;
	}
	return is_lost;
}

static __always_inline int enqueue(struct sk_buff *skb, struct Qdisc *sch,
				   struct bpf_sk_buff_ptr *to_free)
{
	struct limits limits = limits_now();
	u64 now = bpf_ktime_get_ns(), number;
	struct packet *packet;
	struct facts facts;
	struct flow *flow;
	bool is_lost = false;
	u32 own;

	arrive(skb, &facts);
	/* It would push out everything else and still not fit. */
	if (facts.size > limits.bytes)
		goto refused;
	stretch(&limits, sch);
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
	place_flow(own, now);
	if (!is_within(&limits, sch))
		is_lost = push_out(sch, to_free, &limits, own, number, now);
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

QDISC("tide")
