/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The programs: nothing but another flow for each packet, that and the parse, that and all
 * of coming in and leaving.
 */
#pragma once

/* How many flows, and packets that stay queued; user space sets both. */
struct {
	u64 flows, backlog;
} cost SEC(".data.cost");
struct Qdisc root;
struct facts parsed;
u64 run;

/* Writes the next flow's port of an IPv4 datagram's sender into the frame. */
static __always_inline bool another_flow(struct __sk_buff *skb)
{
	u8 *data = (void *)(u64)skb->data, *end = (void *)(u64)skb->data_end;
	u64 flow = run++ & (READ_ONCE(cost.flows) - 1);

	if (data + 38 > end)
		return false;
	data[34] = 16 + (flow >> 8);
	data[35] = flow;
	return true;
}

SEC("tc") int cost_nothing(struct __sk_buff *skb)
{
	return another_flow(skb);
}

SEC("tc") int cost_parse(struct __sk_buff *skb)
{
	if (!another_flow(skb))
		return 0;
	read_frame(skb, &parsed);
	return 1;
}

SEC("tc") int cost_table(struct __sk_buff *skb)
{
	u64 now = bpf_ktime_get_ns();

	if (!another_flow(skb))
		return 0;
	read_frame(skb, &parsed);
	if (!join(&parsed.flow, now))
		return 0;
	leave(&parsed.flow, now);
	return 1;
}

/* A packet of memory through the list or the tree, which stays empty otherwise. */
SEC("tc") int cost_memory(struct __sk_buff *skb)
{
	struct packet *packet;
	struct rank rank = {};

	if (!another_flow(skb))
		return 0;
	packet = new_packet();
	if (!packet)
		return 0;
	put(packet, &rank);
	packet = take_first();
	if (!packet)
		return 0;
	free_packet(packet);
	return 1;
}

SEC("tc") int cost_all(struct __sk_buff *skb)
{
	if (!another_flow(skb))
		return 0;
	enqueue(skb, &root, NULL);
	if (root.q.qlen > READ_ONCE(cost.backlog))
		dequeue(&root);
	return 1;
}
