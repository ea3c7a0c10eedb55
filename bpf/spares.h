/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory for packets: that of packets which have left serves those that come.
 *
 * To have the kernel allocate an object for each packet and free it again took 400 to 600
 * instructions, about a fifth of what a packet cost. The price is what lies here while
 * fewer packets are queued than once were, up to 200 kB; `reset` gives it back.
 */
#pragma once

/* More than this are freed: a queue seldom varies by more within a moment. */
#define MOST_SPARES 1024

struct spare {
	struct packet __kptr *packet;
};

struct {
	int(*type)[BPF_MAP_TYPE_ARRAY];
	int(*max_entries)[MOST_SPARES];
	u32 *key;
	struct spare *value;
} spares SEC(".maps");

/* A stack: the one that was used last is the one that the processor's caches have. */
u32 spare_packets;

/* The topmost spare; NULL if there is none. */
static __always_inline struct packet *take_spare(void)
{
	struct spare *spare;
	u32 top = spare_packets - 1;

	/* Below zero is beyond the map. */
	spare = bpf_map_lookup_elem(&spares, &top);
	if (!spare)
		return NULL;
	spare_packets = top;
	return bpf_kptr_xchg(&spare->packet, NULL);
}

/* A packet that holds nothing; NULL if there is no memory. */
static __always_inline struct packet *new_packet(void)
{
	struct packet *packet = take_spare();

	return packet ? packet : new_object(struct packet);
}

static __always_inline void free_packet(struct packet *packet)
{
	u32 top = spare_packets;
	struct spare *spare = bpf_map_lookup_elem(&spares, &top);

	if (spare) {
		spare_packets = top + 1;
		packet = bpf_kptr_xchg(&spare->packet, packet);
	}
	if (packet)
		drop_object(packet);
}

static __always_inline void free_spares(void)
{
	for_up_to (MOST_SPARES) {
		struct packet *packet = take_spare();

		if (!packet)
			break;
		drop_object(packet);
	}
}
