/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Two lists, one served before the other: for disciplines that rank a packet high or low.
 *
 * A discipline's first word of the rank is the level, 0 or 1. The end of the line, from
 * which a full buffer takes its victims, is the end of the low list, or of the high one if
 * that is empty. Everything costs O(1); one lock serves both.
 */
#pragma once


struct packet {
	struct sk_buff HELD *skb;
	struct bpf_list_node node;
	PACKET_FACTS
};

PROTECTED(levels) struct bpf_spin_lock levels_lock;
PROTECTED(levels) struct bpf_list_head high __contains(packet, node);
PROTECTED(levels) struct bpf_list_head low __contains(packet, node);

#define level_of(rank) ((rank).major & 1)

static __always_inline void put(struct packet *packet, const struct rank *rank)
{
	bpf_spin_lock(&levels_lock);
	if (level_of(*rank))
		push_back(&low, &packet->node);
	else
		push_back(&high, &packet->node);
	bpf_spin_unlock(&levels_lock);
}

static __always_inline struct packet *take_first(void)
{
	struct bpf_list_node *node;

	bpf_spin_lock(&levels_lock);
	node = bpf_list_pop_front(&high);
	if (!node)
		node = bpf_list_pop_front(&low);
	bpf_spin_unlock(&levels_lock);
	return node ? container_of(node, struct packet, node) : NULL;
}

static __always_inline struct packet *take_last(void)
{
	struct bpf_list_node *node;

	bpf_spin_lock(&levels_lock);
	node = bpf_list_pop_back(&low);
	if (!node)
		node = bpf_list_pop_back(&high);
	bpf_spin_unlock(&levels_lock);
	return node ? container_of(node, struct packet, node) : NULL;
}
