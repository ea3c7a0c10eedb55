/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What every discipline includes first: the kernel, or what stands for it in tests on the
 * host; parameters and statistics; frames; and what the queue notes on a packet.
 */
#pragma once

#ifdef ON_HOST
#include "host/kernel.h"
#else
#include "kernel.h"
#endif
#include "parameters.h"
#include "frame.h"

/* How a packet has the kernel's, and gives it back for another one. */
#ifndef HELD
#define HELD __kptr
#define hold(place, skb) bpf_kptr_xchg(place, skb)
#endif

/* How long flows are remembered: KEEPS_FLOWS of a discipline (flows.h). */
#define NOT_AT_ALL 0
#define WHILE_QUEUED 1
#define WHILE_ACTIVE 2

/* What a full buffer does: WHEN_FULL of a discipline (queue.h). */
#define REFUSE 0
#define PUSH_OUT 1

/*
 * What is noted on a packet, apart from its place. All are words: the verifier refuses a
 * store that spans two members of an object, as compilers make of narrower ones.
 */
#define PACKET_FACTS                                                                           \
	u64 flow0, flow1, flow2, flow3, flow4;                                                 \
	u64 size, packets, arrived, number, level, rank;

/* The same of a packet that has left the queue. */
struct taken {
	struct flow_key flow;
	u64 size, packets, arrived, number, level, rank;
};

/* A packet's place: two words, compared from first to last. */
struct rank {
	u64 major, minor;
};

/* A packet that is to be ranked. */
struct arrival {
	u64 now, size, packets;
	/* Whether its flow has others in the queue. */
	bool has_queued;
};
