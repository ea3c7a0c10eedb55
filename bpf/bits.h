/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Bits of a word, which BPF has no instruction for. Without branches: the verifier follows
 * each of them.
 */
#pragma once

/* Of a word that is not zero. */
static __always_inline u32 leading_zeros(u64 word)
{
	u32 zeros = 0;

	for (u32 half = 32; half; half >>= 1) {
		u32 is_zero = ((word >> (64 - half)) - 1) >> 63;

		zeros += is_zero * half;
		word <<= is_zero * half;
	}
	return zeros;
}

/* The highest bit of a word that is not zero, and the lowest one. */
static __always_inline u64 highest_bit(u64 word)
{
	return 63 - leading_zeros(word);
}

static __always_inline u64 lowest_bit(u64 word)
{
	return highest_bit(word & (0 - word));
}
