/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Deadlines for best effort: the earliest with which all promises hold.
 *
 * The core library has the principle and the proof (assignment/bounded.rs): which packets
 * count, and that each straight piece of what promises leave has one candidate at a time. The
 * arithmetic differs and the deadlines do not: of two points of one piece, which one asks for
 * later ones is told by what lies between them, so that no product of a time since the
 * machine was started is ever needed. A packet that counts is a point; of all points, those
 * of a piece follow one another, and its candidates are a chain through them.
 */
#pragma once

#define MOST_POINTS 65536
#define NOBODY (~0ULL)

struct point {
	/* When the packet came, and the bytes that came before it. */
	u64 arrived, before;
	/* Its neighbours among the candidates of its piece. */
	u64 next, previous;
} points[MOST_POINTS];

/* The points whose demand lies on a piece: from `first` up to the first of the piece before. */
struct candidates {
	u64 first;
	/* When more bytes than this have come, its oldest point leaves it. */
	u64 leaves;
	/* The points that no later one outdoes. */
	u64 front, back;
} candidates[MOST_PIECES];

/* The number of the oldest point, and of the next one. */
u64 points_from, points_to;
/* Bytes since the past was forgotten. */
u64 assigned;
/* The last packet that became a point, and the point beyond the last piece that asks most. */
struct point last_point, nearest;
u64 has_last, has_nearest;

static __always_inline struct point *point_of(u64 number)
{
	return &points[within(number, MOST_POINTS)];
}

static __always_inline u64 at_most(u64 a, u64 b)
{
	return a + b < a ? NOBODY : a + b;
}

/* The deadline that a point asks for on a piece when so many bytes came from it on. */
static __always_inline u64 asks(const struct piece *piece, u64 arrived, u64 demanded)
{
	u64 at = at_most(arrived, piece->start), low, high;

	if (!piece->slope)
		return at;
	high = multiply(PER_BYTE, demanded, &low);
	if (!high && low <= piece->value) {
		u64 sooner = (piece->value - low) / piece->slope;

		return sooner < at ? at - sooner : 0;
	}
	high -= low < piece->value;
	return at_most(at, divide_up(high, low - piece->value, piece->slope));
}

/* The last point that a piece has gets a successor that is younger than all. */
static __always_inline void add_candidate(u64 at, u64 number)
{
	const struct piece *piece = &contracts.piece[within(at, MOST_PIECES)];
	struct candidates *of = &candidates[within(at, MOST_PIECES)];
	struct point *point = point_of(number);

	for_up_to (MOST_POINTS) {
		u64 back = READ_ONCE(of->back);
		struct point *other = point_of(back);

		if (back == NOBODY ||
		    (piece->slope && is_less(piece->slope, point->arrived - other->arrived,
					     PER_BYTE, point->before - other->before)))
			break;
		of->back = other->previous;
	}
	point->next = NOBODY;
	point->previous = of->back;
	if (of->back == NOBODY)
		of->front = number;
	else
		point_of(of->back)->next = number;
	of->back = number;
	if (of->leaves == NOBODY)
		of->leaves = at_most(point->before, piece->most);
}

/* Where the points of a piece end. */
static __always_inline u64 end_of(u64 at)
{
	return at ? candidates[within(at - 1, MOST_PIECES)].first : points_to;
}

/* Takes the oldest point from a piece; false if it has none. */
static __always_inline bool take_oldest(u64 at)
{
	const struct piece *piece = &contracts.piece[within(at, MOST_PIECES)];
	struct candidates *of = &candidates[within(at, MOST_PIECES)];
	u64 number = of->first, end = end_of(at);

	if (number >= end)
		return false;
	of->first = number + 1;
	if (of->front == number) {
		of->front = point_of(number)->next;
		if (of->front == NOBODY)
			of->back = NOBODY;
		else
			point_of(of->front)->previous = NOBODY;
	}
	of->leaves = number + 1 < end ? at_most(point_of(number + 1)->before, piece->most) : NOBODY;
	return true;
}

/* A point is beyond the last piece. */
static __always_inline void collapse(const struct point *point)
{
	if (has_nearest && !is_less(PER_BYTE, point->before - nearest.before,
				    contracts.tail.slope, point->arrived - nearest.arrived))
		return;
	nearest.arrived = point->arrived;
	nearest.before = point->before;
	has_nearest = 1;
}

/* The oldest of all points goes beyond the last piece. */
static __always_inline void collapse_oldest(void)
{
	collapse(point_of(points_from));
	points_from++;
}

/* Passes on the points whose demand has outgrown a piece. */
static __always_inline void pass_on(u64 at)
{
	for_up_to (MOST_POINTS) {
		u64 number = candidates[within(at, MOST_PIECES)].first;

		if (assigned <= candidates[within(at, MOST_PIECES)].leaves || !take_oldest(at))
			break;
		if (at + 1 < contracts.pieces)
			add_candidate(at + 1, number);
		else
			collapse_oldest();
	}
}

/* Makes a packet a point, if no earlier one always asks for more. */
GLOBAL int count_packet(u64 arrived, u64 before)
{
	struct point *point = point_of(points_to);

	if (has_last && before != last_point.before &&
	    !is_less(PER_BYTE, before - last_point.before, contracts.steepest,
		     arrived - last_point.arrived))
		return 0;
	last_point.arrived = arrived;
	last_point.before = before;
	has_last = 1;
	if (!contracts.pieces) {
		collapse(&last_point);
		return 0;
	}
	point->arrived = arrived;
	point->before = before;
	add_candidate(0, points_to);
	points_to++;
	return 0;
}

/* Passes on what has outgrown its piece, from the first piece to the last. */
GLOBAL int pass_all_on(void)
{
	for_each_below (number, MOST_PIECES) {
		if (*number >= contracts.pieces)
			break;
		pass_on(*number);
	}
	return 0;
}

/* Moves the points that are further back than the last piece beyond it. */
GLOBAL int forget_points(u64 deadline)
{
	for_up_to (MOST_POINTS) {
		u64 oldest = point_of(points_from)->arrived;

		if (points_from == points_to || deadline <= oldest ||
		    deadline - oldest <= contracts.tail.start)
			break;
		/* It is on the last piece that has any; those after that have none. */
		for_each_below (number, MOST_PIECES) {
			u64 at = contracts.pieces - 1 - *number;

			if (*number >= contracts.pieces || take_oldest(at))
				break;
			candidates[within(at, MOST_PIECES)].first++;
		}
		collapse_oldest();
	}
	return 0;
}

/* The latest deadline that any candidate asks for. */
u64 asked;

/* The deadline of a best-effort packet. */
GLOBAL u64 assign(u64 arrived, u64 size)
{
	u64 before = assigned;

	if (contracts.only_when_idle)
		return NOBODY;
	assigned += size;
	count_packet(arrived, before);
	pass_all_on();
	asked = has_nearest ? asks(&contracts.tail, nearest.arrived, assigned - nearest.before) : 0;
	for_each_below (number, MOST_PIECES) {
		u64 at = within(*number, MOST_PIECES), front = candidates[at].front, deadline;
		struct point *point = point_of(front);

		if (*number >= contracts.pieces)
			break;
		if (front == NOBODY)
			continue;
		deadline = asks(&contracts.piece[at], point->arrived, assigned - point->before);
		if (deadline > asked)
			asked = deadline;
	}
	forget_points(asked);
	return asked;
}

/* Forgets all packets. */
GLOBAL int forget_past(void)
{
	has_last = has_nearest = assigned = points_from = points_to = 0;
	for_each_below (number, MOST_PIECES) {
		if (*number >= contracts.pieces)
			break;
		candidates[within(*number, MOST_PIECES)] =
			(struct candidates){ 0, NOBODY, NOBODY, NOBODY };
	}
	return 0;
}
