/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * LARS, least attained recent service: LAS that forgets at a steady pace. The core library
 * has the principle (crates/core/src/discipline/lars.rs), and the same arithmetic: a packet
 * of L bytes at time t adds L * 2^(t / half_life) to its flow's service, as a mantissa of
 * 64 bits and an exponent, and nothing has to decay.
 */
#include "discipline.h"
#include "bits.h"
#include "wide.h"

/* Bytes times 2^(t / half_life): mantissa * 2^(exponent - 127), or both zero. */
struct inflated {
	u64 exponent, mantissa;
};

struct state {
	struct inflated attained;
};

#define KEEPS_FLOWS WHILE_ACTIVE
#define WHEN_FULL PUSH_OUT
#include "flows.h"
#include "ranked.h"

/* How large a byte is: half-lives that have passed until `since`, and the next one's part. */
u64 inflation_half_life, inflation_since, inflation_passed, inflation_rest;

/* 2^(2^-k) for k from 1 to 32, in units of 2^-63. */
static const u64 ROOTS[32] = {
	0xb504f333f9de6484, 0x9837f0518db8a96f, 0x8b95c1e3ea8bd6e7, 0x85aac367cc487b15,
	0x82cd8698ac2ba1d7, 0x8164d1f3bc030773, 0x80b1ed4fd999ab6c, 0x8058d7d2d5e5f6b1,
	0x802c6436d0e04f51, 0x8016302f17467628, 0x800b179c82028fd1, 0x80058baf7fee3b5d,
	0x8002c5d00fdcfcb7, 0x800162e61bed4a49, 0x8000b17292f702a4, 0x800058b92abbae02,
	0x80002c5c8dade4d7, 0x8000162e44eaf636, 0x80000b1721fa7c19, 0x8000058b90de7e4d,
	0x800002c5c8678f37, 0x80000162e431dba0, 0x800000b1721872d1, 0x80000058b90c1aa9,
	0x8000002c5c8605a4, 0x800000162e4300e6, 0x8000000b17217ff8, 0x800000058b90bfdd,
	0x80000002c5c85fe7, 0x8000000162e42ff2, 0x80000000b17217f8, 0x8000000058b90bfc,
};

/* The part of a half-life that `rest` is, in units of 2^-32; a half-life is under 2^47 ns. */
static __always_inline u64 part_of(u64 rest, u64 half_life)
{
	u64 shifted = rest << 16;

	return shifted / half_life << 16 | (shifted % half_life << 16) / half_life;
}

/* Half-lives that have passed: whole ones, and in `part` the next one's. */
static __always_inline u64 inflation_at(u64 now, u64 *part)
{
	u64 passed = now - inflation_since + inflation_rest;

	*part = part_of(passed % inflation_half_life, inflation_half_life);
	return inflation_passed + passed / inflation_half_life;
}

/*
 * Another half-life begins where the one before has come to. The first packet after the
 * change notices it.
 */
static __always_inline void set_half_life(u64 now, u64 half_life)
{
	u64 part = 0, low, high;

	if (inflation_half_life)
		inflation_passed = inflation_at(now, &part);
	high = multiply(part, half_life, &low);
	inflation_rest = high << 32 | low >> 32;
	inflation_since = inflation_half_life ? now : 0;
	inflation_half_life = half_life;
}

/*
 * 2^(part / 2^32) for parts of which one byte is not zero, the highest byte's first. The
 * verifier follows every branch of a program: it is spared 32 of them for each packet.
 */
u64 powers[4][256];

static __always_inline u64 times(u64 a, u64 b)
{
	u64 low, high = multiply(a, b, &low);

	return high << 1 | low >> 63;
}

/* Entries of the table that are ready. It is in a map: of that, the verifier follows nothing. */
u64 prepared;

/* Fills the table of powers. */
static __always_inline void prepare(void)
{
	const u64 one = 1ULL << 63;

	prepared = 0;
	for_up_to (4 * 256) {
		u64 entry = READ_ONCE(prepared), byte = entry >> 8 & 3, value = entry & 255;
		u64 product = one;

		for (u32 bit = 0; bit < 8; bit++) {
			u64 is_set = 0 - (value >> (7 - bit) & 1);

			product = times(product, one ^ ((ROOTS[byte * 8 + bit] ^ one) & is_set));
		}
		powers[byte][value] = product;
		prepared = entry + 1;
	}
}

/* 2^(part / 2^32), in units of 2^-63. */
static __always_inline u64 power(u64 part)
{
	u64 product = times(powers[0][part >> 24 & 255], powers[1][part >> 16 & 255]);

	product = times(product, powers[2][part >> 8 & 255]);
	return times(product, powers[3][part & 255]);
}

static __always_inline struct inflated inflate(u64 size, u64 now)
{
	u64 part, low, high, whole = inflation_at(now, &part);
	u32 zeros;

	if (!size)
		return (struct inflated){};
	high = multiply(size, power(part), &low);
	/* One byte: a power has its highest bit set. */
	if (!high)
		return (struct inflated){ whole + 64, low };
	zeros = leading_zeros(high);
	if (zeros)
		high = high << zeros | low >> (64 - zeros);
	return (struct inflated){ whole + 128 - zeros, high };
}

static __always_inline struct inflated sum(struct inflated a, struct inflated b)
{
	bool is_less = a.exponent != b.exponent ? a.exponent < b.exponent
						: a.mantissa < b.mantissa;
	struct inflated small = is_less ? a : b, large = is_less ? b : a;
	u64 shift = large.exponent - small.exponent, mantissa;

	mantissa = large.mantissa + (shift < 64 ? small.mantissa >> shift : 0);
	if (mantissa < large.mantissa)
		return (struct inflated){ large.exponent + 1, mantissa >> 1 | 1ULL << 63 };
	return (struct inflated){ large.exponent, mantissa };
}

static __always_inline void rank_packet(struct rank *rank, struct state *flow,
					const struct arrival *arrival)
{
	u64 half_life = READ_ONCE(parameters.half_life_ns);

	if (half_life != inflation_half_life)
		set_half_life(arrival->now, half_life ? half_life : 1);
	rank->major = flow->attained.exponent;
	rank->minor = flow->attained.mantissa;
	flow->attained = sum(flow->attained, inflate(arrival->size, arrival->now));
}

#define BEFORE_THE_FIRST() prepare()
#include "queue.h"

QDISC("lars")
