/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A tree of packets by rank, equal ones by arrival: for LAS and all that order packets by
 * a number.
 *
 * A discipline's rank is two words, compared from first to last. The first packet and the
 * last one each cost O(log n). The kernel has no function for the last node of a tree;
 * the way there leads right from the root, and is no longer than the tree is high.
 */
#pragma once


struct packet {
	struct sk_buff HELD *skb;
	struct bpf_rb_node node;
	u64 major, minor;
	PACKET_FACTS
};

PROTECTED(tree) struct bpf_spin_lock tree_lock;
PROTECTED(tree) struct bpf_rb_root tree __contains(packet, node);

/* A tree of 2^32 packets would be at most so high. */
#define MOST_STEPS 64
#define level_of(rank) 0

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

static __always_inline void put(struct packet *packet, const struct rank *rank)
{
	packet->major = rank->major;
	packet->minor = rank->minor;
	bpf_spin_lock(&tree_lock);
	tree_add(&tree, &packet->node, is_before);
	bpf_spin_unlock(&tree_lock);
}

static __always_inline struct packet *take_first(void)
{
	struct bpf_rb_node *node;

	bpf_spin_lock(&tree_lock);
	node = bpf_rbtree_first(&tree);
	if (node)
		node = bpf_rbtree_remove(&tree, node);
	bpf_spin_unlock(&tree_lock);
	return node ? container_of(node, struct packet, node) : NULL;
}

static __always_inline struct packet *take_last(void)
{
	struct bpf_rb_node *node, *taken = NULL;

	bpf_spin_lock(&tree_lock);
	node = bpf_rbtree_root(&tree);
	if (node) {
		for_up_to (MOST_STEPS) {
			struct bpf_rb_node *next = bpf_rbtree_right(&tree, node);

			if (!next)
				break;
			node = next;
		}
		taken = bpf_rbtree_remove(&tree, node);
	}
	bpf_spin_unlock(&tree_lock);
	return taken ? container_of(taken, struct packet, node) : NULL;
}
