/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The law of CoDel in the form of RFC 8289, as the core library has it
 * (crates/core/src/discipline/codel_law.rs): when the packet at the head of a queue has to go.
 *
 * It is asked about one head after the other until one may leave. A program of a qdisc may
 * read a packet and not write it, so that nothing is marked here: what core marks where its
 * sender understands that is dropped.
 */
#pragma once

/* RFC 8289 sections 4.4 and 4.3. */
#define TARGET 5000000ULL
#define INTERVAL 100000000ULL
/* For so many intervals, dropping resumes at the rate that was needed (section 5.5). */
#define RECENT_INTERVALS 16

/* A queue's state (section 5.2). */
struct law {
	/* When the wait will have been at least the target for an interval; zero while it is
	 * below. */
	u64 first_above;
	u64 is_dropping;
	u64 drop_next;
	/* Drops since dropping began, or as many as the rate stands for, and what that was. */
	u64 count, last_count;
};

/* Where a call stands: the heads before have gone, or one has with which dropping began. */
#define AT_FIRST 0
#define HAS_DROPPED 1
#define HAS_BEGUN 2

/*
 * The time from one drop to the next: the interval over the root of their number, rounded
 * down (section 5.6). The square of the interval is below 2^54.
 */
GLOBAL u64 drop_spacing(u64 count)
{
	u64 square = INTERVAL * INTERVAL / (count ? count : 1), root = 0;

	for (u64 bit = 1 << 26; bit; bit >>= 1) {
		u64 next = root | bit;

		/* Without a branch: all ones if it is no more than the root. */
		root |= bit & (((square - next * next) >> 63) - 1);
	}
	return root;
}

/* Whether the wait of the head has been too long for an interval (section 5.6). */
static __always_inline bool is_late(struct law *law, u64 now, bool is_fine)
{
	if (is_fine) {
		law->first_above = 0;
		return false;
	}
	if (!law->first_above) {
		law->first_above = now + INTERVAL;
		return false;
	}
	return now >= law->first_above;
}

static __always_inline void start_dropping(struct law *law, u64 now)
{
	u64 gained = law->count - law->last_count;
	bool is_recent = law->last_count && (now < law->drop_next ||
					     now - law->drop_next < INTERVAL * RECENT_INTERVALS);

	law->is_dropping = 1;
	law->count = gained > 1 && is_recent ? gained : 1;
	law->last_count = law->count;
	law->drop_next = now + drop_spacing(law->count);
}

/*
 * Whether the head has to go, if its wait is fine or not and the call stands there; then it
 * stands where it says. The state is that of after the drop.
 */
static __always_inline bool has_to_go(struct law *law, u64 now, bool is_fine, u64 *call)
{
	bool late = is_late(law, now, is_fine);

	if (*call == HAS_BEGUN)
		return false;
	if (!law->is_dropping) {
		if (!late)
			return false;
		start_dropping(law, now);
		*call = HAS_BEGUN;
		return true;
	}
	law->is_dropping = late;
	if (!late)
		return false;
	/* From the time at which that was due, not from now: the rate is kept even where
	 * packets are further apart than drops. */
	if (*call == HAS_DROPPED)
		law->drop_next += drop_spacing(law->count);
	if (now < law->drop_next)
		return false;
	law->count++;
	*call = HAS_DROPPED;
	return true;
}
