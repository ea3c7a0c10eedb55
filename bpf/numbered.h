/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Flows by number, each with a list of its packets: for disciplines that choose a flow when
 * a packet is to leave, and not a packet's place when it comes.
 *
 * A flow keeps its number while it is known. Chains of numbers, through links within the
 * flows, give any order in O(1). Numbers begin at one, so that zero is nobody.
 *
 * A flow is in use or void. What is void counts no more, but its entry stays in the table of
 * 5-tuples: to take it out and put it in again for each packet that is alone in the queue
 * would cost a third of all that such a packet costs. A flow that comes again has its number
 * back, and a new one takes over the number that has been void for longest, once there are
 * SPARE of them or all numbers are given.
 *
 * More flows than packets are never in use, so 32 768 suffice. They take 6 MB, from the
 * time at which the program is loaded.
 */
#pragma once

#define NOBODY 0
/* Void entries that stay for flows that come again. */
#define SPARE 1024
/* All that may have packets queued. */
#define MOST_NUMBERS MOST_PACKETS

/* The chains that a flow may be in, each by links of its own: of a slot of each calendar, and
 * either of void flows or of what its discipline keeps. */
#define TURNS 0
#define TAILS 1
#define CALENDARS 2
#define ASIDE 2
#define CHAINS 3

struct packet {
	struct sk_buff HELD *skb;
	struct bpf_list_node node;
	PACKET_FACTS
};

struct link {
	u32 previous, next;
};

struct chain {
	u32 first, last;
};

struct flow {
	struct bpf_spin_lock lock;
	struct bpf_list_head queue __contains(packet, node);
	struct flow_key key;
	u64 in_use;
	/* What the queue holds. */
	u64 packets, bytes;
	struct link links[CHAINS];
	/* Its slot in each calendar, from one on; zero while it is in none. */
	u32 slot[CALENDARS];
	struct state state;
};

struct {
	int(*type)[BPF_MAP_TYPE_ARRAY];
	int(*max_entries)[MOST_NUMBERS + 1];
	u32 *key;
	struct flow *value;
} flows SEC(".maps");

/* The number of a 5-tuple. While an entry is replaced, there is one more. */
struct {
	int(*type)[BPF_MAP_TYPE_HASH];
	int(*max_entries)[MOST_NUMBERS + 1];
	int(*map_flags)[BPF_F_NO_PREALLOC];
	struct flow_key *key;
	u32 *value;
} numbers SEC(".maps");

/* The highest number that was ever given. */
u32 highest_number;
struct chain void_flows;
u64 void_count;

/* NULL of nobody. */
static __always_inline struct flow *flow_of(u32 number)
{
	return number ? bpf_map_lookup_elem(&flows, &number) : NULL;
}

/* Puts a flow that is not in it at the end of a chain. */
static __always_inline void chain_add(struct chain *chain, u32 which, u32 number)
{
	struct flow *flow = flow_of(number), *before = flow_of(chain->last);

	if (!flow)
		return;
	flow->links[which].previous = chain->last;
	flow->links[which].next = NOBODY;
	if (before)
		before->links[which].next = number;
	else
		chain->first = number;
	chain->last = number;
}

/* Takes a flow out of the chain that it is in. */
static __always_inline void chain_remove(struct chain *chain, u32 which, u32 number)
{
	struct flow *flow = flow_of(number), *before, *after;

	if (!flow)
		return;
	before = flow_of(flow->links[which].previous);
	after = flow_of(flow->links[which].next);
	if (before)
		before->links[which].next = flow->links[which].next;
	else
		chain->first = flow->links[which].next;
	if (after)
		after->links[which].previous = flow->links[which].previous;
	else
		chain->last = flow->links[which].previous;
}

static __always_inline void queue_add(struct flow *flow, struct packet *packet, u64 size)
{
	flow->packets++;
	flow->bytes += size;
	bpf_spin_lock(&flow->lock);
	push_back(&flow->queue, &packet->node);
	bpf_spin_unlock(&flow->lock);
}

/* Takes out the packet at the head of a queue. */
static __always_inline struct packet *queue_take(struct flow *flow)
{
	struct bpf_list_node *node;
	struct packet *packet;

	bpf_spin_lock(&flow->lock);
	node = bpf_list_pop_front(&flow->queue);
	bpf_spin_unlock(&flow->lock);
	if (!node)
		return NULL;
	packet = container_of(node, struct packet, node);
	flow->packets--;
	flow->bytes -= packet->size;
	return packet;
}

/* The number of a 5-tuple, known or not; nobody's if there is none left, or no memory. */
static __always_inline u32 number_of(const struct flow_key *key)
{
	u32 *known = bpf_map_lookup_elem(&numbers, key), number;
	struct flow *flow;
	bool is_taken_over;

	if (known)
		return *known;
	is_taken_over = void_count >= SPARE || highest_number >= MOST_NUMBERS;
	number = is_taken_over ? void_flows.first : highest_number + 1;
	flow = flow_of(number);
	if (!flow || bpf_map_update_elem(&numbers, key, &number, BPF_NOEXIST))
		return NOBODY;
	if (is_taken_over) {
		bpf_map_delete_elem(&numbers, &flow->key);
	} else {
		highest_number = number;
		chain_add(&void_flows, ASIDE, number);
		void_count++;
	}
	flow->key = *key;
	return number;
}

/* A void flow comes into use. */
static __always_inline void use_flow(struct flow *flow, u32 number)
{
	chain_remove(&void_flows, ASIDE, number);
	void_count--;
	flow->in_use = 1;
	statistics.flows++;
}

/* A flow that is in no chain is void. */
static __always_inline void give_up_flow(struct flow *flow, u32 number)
{
	chain_add(&void_flows, ASIDE, number);
	void_count++;
	flow->in_use = 0;
	statistics.flows--;
}
