/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What user space says to a discipline, and what it asks.
 *
 * Every member has 64 bits and stands once, in the order in which user space has its
 * name (crates/qdisc/src/layout.rs): no other agreement is needed. User space replaces all
 * of `parameters` while packets flow. Each word is read whole, so that a packet in between
 * meets some old and some new ones, and nothing worse.
 */
#pragma once

struct parameters {
	/* Bits per second; zero holds everything back. */
	u64 rate;
	/* A late call within this time loses nothing of the rate. */
	u64 credit_ns;
	/* The buffer; of the two limits, one is the largest number. */
	u64 limit_packets;
	u64 limit_bytes;
	/* What a packet takes of the link behind. */
	u64 overhead;
	u64 least;
	u64 carrier;
	/* Whether frames begin with an Ethernet header. */
	u64 has_ethernet;
	/* Of EFD and Run2C, and whether it counts bytes. */
	u64 threshold;
	u64 threshold_in_bytes;
	/* How long flows are remembered. */
	u64 sweep_ns;
	u64 idle_ns;
	/* Of LARS. */
	u64 half_life_ns;
	/* Of deadlines: packets beyond a promise are lost at once. */
	u64 drops_excess;
	/* Of tide: what a flow that begins may send before it has to share. */
	u64 credit_bytes;
};

#define CARRIER_BYTES 0
#define CARRIER_ATM 1
#define CARRIER_PTM 2

/* Delays are counted in steps of an eighth of an octave from 33 us on, up to 18 minutes. */
#define DELAY_STEPS 216
#define LEVELS 2

struct statistics {
	/* One while a device has the discipline. */
	u64 in_use;
	/* Packets as the link behind carries them: those of a super-packet count each. */
	u64 arrived_packets;
	u64 arrived_bytes;
	u64 sent_packets;
	u64 sent_bytes;
	u64 refused_packets;
	u64 pushed_out_packets;
	u64 early_packets;
	u64 excess_packets;
	u64 no_memory_packets;
	/* Packets that went with the queue: the device went down, or the discipline away. */
	u64 cleared_packets;
	u64 queued_packets;
	u64 queued_bytes;
	u64 flows;
	u64 flows_peak;
	/* How often there were too many flows, so that some were forgotten sooner. */
	u64 crowded;
	u64 super_packets;
	u64 other_frames;
	u64 malformed_frames;
	/* How often the rate held a packet back. */
	u64 held_back;
	u64 delay_sum_ns;
	u64 level_enqueued[LEVELS];
	u64 level_packets[LEVELS];
	u64 level_bytes[LEVELS];
	u64 delays[LEVELS * DELAY_STEPS];
};

/* User space finds both by the names of their sections. */
struct parameters parameters SEC(".data.parameters");
struct statistics statistics SEC(".data.statistics");

/* More packets than this are never queued, whatever the buffer. */
#define MOST_PACKETS 32768
/* More flows than this are never remembered; an address has as many ports. */
#define MOST_FLOWS 65536

/* A word of the user's text about this queue, which lives as long as the queue. */
struct {
	int(*type)[BPF_MAP_TYPE_ARRAY];
	int(*max_entries)[1];
	u32 *key;
	char (*value)[16384];
} note SEC(".maps");
