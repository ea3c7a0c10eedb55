/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "cost.h"
#include "../deadlines.bpf.c"

/* A packet of best effort through its tree. */
static __always_inline void put(struct packet *packet, const struct rank *rank)
{
	packet->major = rank->major;
	bpf_spin_lock(&waiting_lock);
	tree_add(&waiting, &packet->node, is_before);
	bpf_spin_unlock(&waiting_lock);
}

/* And out of it: the other trees are empty. */
#define take_first take_waiting

#include "programs.h"
