/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Arithmetic of 128 bits, of which BPF has none: what no word holds is two of them.
 */
#pragma once

/* A product of 128 bits: its high half, and in `low` the other. */
static __always_inline u64 multiply(u64 a, u64 b, u64 *low)
{
	u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32;
	u64 middle = a1 * b0 + (a0 * b0 >> 32);
	u64 cross = a0 * b1 + (u32)middle;

	*low = cross << 32 | (u32)(a0 * b0);
	return a1 * b1 + (middle >> 32) + (cross >> 32);
}

/* Whether a product is less than another one. */
static __always_inline bool is_less(u64 a, u64 b, u64 c, u64 d)
{
	u64 low, other_low, high = multiply(a, b, &low), other_high = multiply(c, d, &other_low);

	return high != other_high ? high < other_high : low < other_low;
}

/*
 * A quotient, rounded up; all ones if it is more than 64 bits. The divisor is below 2^40, so
 * that what remains has room for 23 bits more.
 */
static __always_inline u64 divide_up(u64 high, u64 low, u64 divisor)
{
	u64 rest, quotient;

	if (high >= divisor)
		return ~0ULL;
	if (!high)
		return low / divisor + (low % divisor != 0);
	rest = high << 18 | low >> 46;
	quotient = rest / divisor;
	rest = rest % divisor << 23 | (low >> 23 & 0x7fffff);
	quotient = quotient << 23 | rest / divisor;
	rest = rest % divisor << 23 | (low & 0x7fffff);
	quotient = quotient << 23 | rest / divisor;
	return rest % divisor && quotient != ~0ULL ? quotient + 1 : quotient;
}
