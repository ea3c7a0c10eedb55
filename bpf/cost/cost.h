/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A discipline as a program that any kernel runs on demand (BPF_PROG_TEST_RUN), to measure
 * what it costs: parse, table of flows, rank, memory, list or tree, shaper, and statistics are
 * the real code. What only a qdisc may do is left out: to hold a packet, to lose it, to set
 * the timer, and the kernel's own locks and counts around it.
 *
 * A file includes this, then its discipline, then programs.h.
 */
#pragma once

/* The packet here is what the kernel gives to classifiers, and has a member more. */
#define __sk_buff packet_without_members
#include "../kernel.h"
#undef __sk_buff
struct __sk_buff {
	u32 len, before_cb[11], cb[5], before_data[2], data, data_end;
};
#define sk_buff __sk_buff

/* A qdisc of our own, in a map. */
struct qdisc_of_map {
	u32 limit;
	struct { u32 qlen; } q;
	struct { u32 backlog, drops, overlimits; } qstats;
};
#define Qdisc qdisc_of_map
struct length_of_map { u32 pkt_len; };
#define qdisc_skb_cb length_of_map

#undef ARGUMENT
#define ARGUMENT(tag) ARGUMENT_##tag
#define ARGUMENT_trusted
#define ARGUMENT_nonnull __attribute__((btf_decl_tag("arg:nonnull")))

#define HELD
#define hold(place, skb) ((void *)0)
#define bpf_kfree_skb(skb)
#define bpf_qdisc_skb_drop(skb, to_free)
#define bpf_qdisc_watchdog_schedule(sch, expire, slack) ((void)(expire))
#define bpf_qdisc_bstats_update(sch, skb)
#define bpf_dynptr_from_skb(skb, flags, to) (bpf_dynptr_from_skb)((void *)(skb), flags, to)
#define merged_size(skb, packets) (*(packets) = 1, 0)
