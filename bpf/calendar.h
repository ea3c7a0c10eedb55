/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Calendars: flows in slots that go round, as the core library has them
 * (crates/core/src/discipline/tide/calendar.rs).
 *
 * A bit for each slot says whether it is occupied, and a bit for each word of 64 such bits
 * whether any of them is set. To find the first or the last occupied slot takes three words
 * at most, however many flows there are and however far apart. The flows of a slot are a
 * chain in the order in which they came. There are two calendars, TURNS and TAILS, of 32 kB
 * each; the verifier looks at each of these functions once, for either.
 */
#pragma once

#include "bits.h"

#define WORDS 64

struct calendar {
	struct chain slots[SLOTS];
	u64 occupied[WORDS];
	/* Which of the words above are not zero. */
	u64 summary;
} calendars[CALENDARS];

/* Takes a flow out of a calendar, if it is in. */
GLOBAL int calendar_remove(u32 which, u32 number)
{
	u32 of = within(which, CALENDARS), slot, word;
	struct calendar *calendar = &calendars[of];
	struct flow *flow = flow_of(number);

	if (!flow || !flow->slot[of])
		return 0;
	slot = within(flow->slot[of] - 1, SLOTS);
	flow->slot[of] = 0;
	chain_remove(&calendar->slots[slot], of, number);
	if (!calendar->slots[slot].first) {
		word = within(slot / 64, WORDS);
		calendar->occupied[word] &= ~(1ULL << slot % 64);
		if (!calendar->occupied[word])
			calendar->summary &= ~(1ULL << word);
	}
	return 0;
}

/* Puts a flow behind the others of a slot, wherever it was before. */
GLOBAL int calendar_insert(u32 which, u32 number, u64 at)
{
	u32 of = within(which, CALENDARS), slot = within(at, SLOTS), word = within(slot / 64, WORDS);
	struct calendar *calendar = &calendars[of];
	struct flow *flow = flow_of(number);

	if (!flow)
		return 0;
	calendar_remove(of, number);
	chain_add(&calendar->slots[slot], of, number);
	flow->slot[of] = slot + 1;
	calendar->occupied[word] |= 1ULL << slot % 64;
	calendar->summary |= 1ULL << word;
	return 0;
}

/* The first flow of the first occupied slot from `start` on, all the way round. */
GLOBAL u32 first_from(u32 which, u64 start)
{
	struct calendar *calendar = &calendars[within(which, CALENDARS)];
	u32 word = within(start / 64, WORDS);
	u64 here = calendar->occupied[word] & (~0ULL << start % 64), later;

	if (!here) {
		/* Twice, for a shift by 64 is none. */
		later = calendar->summary & (~0ULL << word << 1);
		if (!later)
			later = calendar->summary;
		if (!later)
			return NOBODY;
		word = within(lowest_bit(later), WORDS);
		here = calendar->occupied[word];
	}
	return calendar->slots[within(64 * word + lowest_bit(here), SLOTS)].first;
}

/* The first flow of the last occupied slot, if counting begins at `start`. */
GLOBAL u32 last_from(u32 which, u64 start)
{
	struct calendar *calendar = &calendars[within(which, CALENDARS)];
	u64 end = start - 1;
	u32 word = within(end / 64, WORDS);
	u64 here = calendar->occupied[word] & (~0ULL >> (63 - end % 64)), earlier;

	if (!here) {
		earlier = calendar->summary & ~(~0ULL << word);
		if (!earlier)
			earlier = calendar->summary;
		if (!earlier)
			return NOBODY;
		word = within(highest_bit(earlier), WORDS);
		here = calendar->occupied[word];
	}
	return calendar->slots[within(64 * word + highest_bit(here), SLOTS)].first;
}
