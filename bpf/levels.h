/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Two lists, one served before the other: for disciplines that rank a packet high or low.
 *
 * A discipline's first word of the rank is the level, 0 or 1. The end of the line, from
 * which a full buffer takes its victims, is the end of the low list, or of the high one if
 * that is empty. Everything costs O(1).
 */
#pragma once


struct packet {
	struct sk_buff __kptr *skb;
	struct bpf_list_node node;
	PACKET_FACTS
};

PROTECTED(high) struct bpf_spin_lock high_lock;
PROTECTED(high) struct bpf_list_head high __contains(packet, node);
PROTECTED(low) struct bpf_spin_lock low_lock;
PROTECTED(low) struct bpf_list_head low __contains(packet, node);

#define level_of(rank) ((rank).major & 1)

static __always_inline void put(struct packet *packet, const struct rank *rank)
{
	if (level_of(*rank)) {
		bpf_spin_lock(&low_lock);
		push_back(&low, &packet->node);
		bpf_spin_unlock(&low_lock);
	} else {
		bpf_spin_lock(&high_lock);
		push_back(&high, &packet->node);
		bpf_spin_unlock(&high_lock);
	}
}

static __always_inline struct packet *take_first(void)
{
	struct bpf_list_node *node;

	bpf_spin_lock(&high_lock);
	node = bpf_list_pop_front(&high);
	bpf_spin_unlock(&high_lock);
	if (!node) {
		bpf_spin_lock(&low_lock);
		node = bpf_list_pop_front(&low);
		bpf_spin_unlock(&low_lock);
		if (!node)
			return NULL;
	}
	return container_of(node, struct packet, node);
}

static __always_inline struct packet *take_last(void)
{
	struct bpf_list_node *node;

	bpf_spin_lock(&low_lock);
	node = bpf_list_pop_back(&low);
	bpf_spin_unlock(&low_lock);
	if (!node) {
		bpf_spin_lock(&high_lock);
		node = bpf_list_pop_back(&high);
		bpf_spin_unlock(&high_lock);
		if (!node)
			return NULL;
	}
	return container_of(node, struct packet, node);
}
