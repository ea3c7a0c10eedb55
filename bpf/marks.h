/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Places on the scale of virtual time, in bytes of service, as the core library has them
 * (crates/core/src/discipline/tide/mark.rs).
 *
 * The scale has no end: marks wrap around, as sequence numbers of TCP do, and are compared by
 * their distance, which is exact while it is below 2^63.
 */
#pragma once

/* The slots of a calendar are this long, and there are so many: marks that are all of them
 * apart share one. */
#define SLOT_BITS 10
#define SLOT (1ULL << SLOT_BITS)
#define SLOTS 4096

static __always_inline bool is_before_mark(u64 mark, u64 other)
{
	return (mark - other) >> 63;
}

/* How far a mark is ahead of another one; zero if it is not. */
static __always_inline u64 ahead_of(u64 mark, u64 other)
{
	return is_before_mark(mark, other) ? 0 : mark - other;
}

static __always_inline u64 latest(u64 mark, u64 other)
{
	return is_before_mark(mark, other) ? other : mark;
}

static __always_inline u64 earliest(u64 mark, u64 other)
{
	return is_before_mark(other, mark) ? other : mark;
}

static __always_inline u64 slot_of(u64 mark)
{
	return mark >> SLOT_BITS & (SLOTS - 1);
}

static __always_inline u64 start_of_slot(u64 mark)
{
	return mark & ~(SLOT - 1);
}

/* Whether a mark lies in an earlier slot than another one. */
static __always_inline bool is_slots_before(u64 mark, u64 other)
{
	return is_before_mark(start_of_slot(mark), start_of_slot(other));
}
