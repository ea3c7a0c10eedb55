/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What flows were promised, and whether they keep to what they said they would send.
 *
 * User space writes all of `contracts` before the program is loaded, in words (`contracts` of
 * crates/qdisc/src/layout.rs), and never again: new promises would not know what is queued
 * under the old ones. The core library has the principles (contract.rs, contract/policer.rs).
 * Tokens are counted in billionths of a bit, of which a byte is PER_BYTE; a staircase
 * remembers the packets from which it counts.
 */
#pragma once

#define PER_BYTE 8000000000ULL
/* Smaller packets count as much against a curve as one of this size. */
#define SMALLEST 40

/* Bounds of what user space may say. */
#define MOST_PROMISES 32
#define MOST_TERMS 4
#define MOST_STAIRCASES 8
#define MOST_PIECES 128
/* Two marks of a staircase differ by a smallest packet within its step. */
#define MOST_MARKS 2048

/* What a packet has to have to be of a flow. */
#define HAS_PROTOCOL 1
#define HAS_PORT 2
#define HAS_SOURCE 4
#define HAS_DESTINATION 8

struct term {
	/* Zero: a bucket of `size` billionths of a bit that fills at `pace` bits a second. Else
	 * a staircase of this number, from one on: `size` bytes every `pace` nanoseconds. */
	u64 staircase, size, pace;
};

struct promise {
	u64 has, protocol, port;
	u64 source[2], destination[2];
	/* Zero: best effort, with a weight. */
	u64 deadline, weight;
	u64 terms;
	struct term term[MOST_TERMS];
};

/* A straight piece of what promises leave of the link: from `start` on it is `value`
 * billionths of a bit and rises by `slope` in a nanosecond; zero is a jump. At most `most`
 * bytes can be demanded within it. */
struct piece {
	u64 start, value, slope, most;
};

struct contracts {
	u64 largest_packet;
	/* Best effort has no deadlines: it waits until nothing else does. */
	u64 only_when_idle;
	/* How much rises most within a nanosecond. */
	u64 steepest;
	/* What continues for ever. */
	struct piece tail;
	u64 promises, pieces;
	struct promise promise[MOST_PROMISES];
	struct piece piece[MOST_PIECES];
} contracts SEC(".data.contracts");

/* What a bucket lacks, and when that was counted. */
struct meter {
	u64 spent, counted;
} meters[MOST_PROMISES][MOST_TERMS];

struct mark {
	/* A packet's time, and the bytes that had passed before it. */
	u64 at, before;
};

struct staircase {
	u64 passed, marks;
	struct mark mark[MOST_MARKS];
} staircases[MOST_STAIRCASES];

static __always_inline bool fits(const struct promise *promise, const struct flow_key *key)
{
	u64 has = promise->has;

	if ((has & HAS_PROTOCOL) && key->protocol != promise->protocol)
		return false;
	if ((has & HAS_PORT) && be16(key->ports) != promise->port &&
	    be16(key->ports + 2) != promise->port)
		return false;
	if ((has & HAS_SOURCE) &&
	    (key->words[0] != promise->source[0] || key->words[1] != promise->source[1]))
		return false;
	return !(has & HAS_DESTINATION) || (key->words[2] == promise->destination[0] &&
					    key->words[3] == promise->destination[1]);
}

/* The number of the first promise that a flow fits; MOST_PROMISES if there is none. */
GLOBAL int find_promise(const struct flow_key *key ARGUMENT(nonnull))
{
	for_each_below (number, MOST_PROMISES) {
		u32 at = *number;

		if (at >= contracts.promises || at >= MOST_PROMISES)
			break;
		if (fits(&contracts.promise[at], key))
			return at;
	}
	return MOST_PROMISES;
}

/* What a bucket lacks by now. */
static __always_inline u64 spent_by(const struct meter *meter, u64 pace, u64 now)
{
	u64 low, high = multiply(pace, now - meter->counted, &low);

	return high || low >= meter->spent ? 0 : meter->spent - low;
}

static __always_inline bool bucket_has(const struct term *term, const struct meter *meter, u64 now,
				       u64 size)
{
	u64 needed = size * PER_BYTE;

	return needed <= term->size && spent_by(meter, term->pace, now) <= term->size - needed;
}

/* Whether a packet's bytes were due, counted from every packet that is remembered. */
static __always_inline bool staircase_has(const struct term *term, const struct staircase *stairs,
					  u64 now, u64 size)
{
	if (size > term->size)
		return false;
	for_each_below (number, MOST_MARKS) {
		const struct mark *mark = &stairs->mark[within(*number, MOST_MARKS)];
		u64 steps, low;

		if (*number >= stairs->marks)
			break;
		steps = (stairs->passed - mark->before + size + term->size - 1) / term->size;
		if (multiply(term->pace, steps - 1, &low) || low > now - mark->at)
			return false;
	}
	return true;
}

/* Lets a packet pass a staircase, and forgets the packets that it covers. */
static __always_inline void climb(const struct term *term, struct staircase *stairs, u64 now,
				  u64 size)
{
	u64 known = stairs->marks;

	stairs->marks = 0;
	for_each_below (number, MOST_MARKS) {
		struct mark mark = stairs->mark[within(*number, MOST_MARKS)];
		u64 periods = (now - mark.at) / term->pace, low;

		if (*number >= known)
			break;
		/* In whole periods since then, at least that much was due. */
		if (multiply(term->size, periods, &low) || low >= stairs->passed - mark.before)
			continue;
		stairs->mark[within(stairs->marks, MOST_MARKS)] = mark;
		stairs->marks++;
	}
	if (stairs->marks < MOST_MARKS) {
		stairs->mark[within(stairs->marks, MOST_MARKS)] =
			(struct mark){ now, stairs->passed };
		stairs->marks++;
	}
	stairs->passed += size;
}


/* Whether a packet keeps to a promise's curve; one that does counts from then on. */
GLOBAL int admit(u64 which, u64 now, u64 size)
{
	u64 at = within(which, MOST_PROMISES);
	const struct promise *promise = &contracts.promise[at];

	for_each_below (number, MOST_TERMS) {
		u64 place = within(*number, MOST_TERMS);
		const struct term *term = &promise->term[place];

		if (place >= promise->terms)
			break;
		if (term->staircase) {
			u64 stairs = within(term->staircase - 1, MOST_STAIRCASES);

			if (!staircase_has(term, &staircases[stairs], now, size))
				return 0;
		} else if (!bucket_has(term, &meters[at][place], now, size)) {
			return 0;
		}
	}
	for_each_below (number, MOST_TERMS) {
		u64 place = within(*number, MOST_TERMS);
		const struct term *term = &promise->term[place];

		if (place >= promise->terms)
			break;
		if (term->staircase) {
			u64 stairs = within(term->staircase - 1, MOST_STAIRCASES);

			climb(term, &staircases[stairs], now, size);
		} else {
			struct meter *meter = &meters[at][place];

			meter->spent = spent_by(meter, term->pace, now) + size * PER_BYTE;
			meter->counted = now;
		}
	}
	return 1;
}
