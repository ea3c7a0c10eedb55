/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Gives recorded arrivals to a discipline on the host, and says what becomes of them.
 *
 * Compiled with -DDISCIPLINE='"las.bpf.c"'. Reads from standard input, in the byte order
 * of the machine: the words of `struct parameters`, and of `struct contracts` if the discipline
 * has them; then, until the end, records that begin with a word for what they are. 0: an arrival, with its time, its length, and its bytes.
 * 1: other parameters, with their time. What may leave before a record is sent first, at
 * each time that the timer says.
 *
 * Prints a line for each packet: "sent TIME NUMBER" or "lost TIME NUMBER", numbers in order
 * of arrival from 0 on; at the end "counted WORD..." with the words of `struct statistics`.
 */
#define ON_HOST
#include DISCIPLINE

static void host_lost(struct sk_buff *skb)
{
	printf("lost %llu %llu\n", host_now, skb->handle);
	free(skb->bytes);
	host_drop(skb);
}

static bool read_all(void *to, size_t size)
{
	return fread(to, 1, size, stdin) == size;
}

/* Sends what may leave until then. */
static void serve(struct Qdisc *sch, u64 until)
{
	for (;;) {
		u64 arguments[] = { (u64)(uintptr_t)sch };
		struct sk_buff *skb;

		host_timer = ~0ULL;
		skb = qdisc_dequeue(arguments);
		if (skb) {
			printf("sent %llu %llu\n", host_now, skb->handle);
			free(skb->bytes);
			host_drop(skb);
			continue;
		}
		/* Nothing waits, or not until then. */
		if (!sch->q.qlen || host_timer > until)
			return;
		host_now = host_timer;
	}
}

int main(void)
{
	struct Qdisc sch = {}, second = {};
	u64 at_init[] = { (u64)(uintptr_t)&sch, 0, 0 };
	u64 at_second[] = { (u64)(uintptr_t)&second, 0, 0 };
	u64 kind, time, handle = 0, objects;

	if (!read_all(&parameters, sizeof(parameters)))
		return 2;
#ifdef MOST_PROMISES
	if (!read_all(&contracts, sizeof(contracts)))
		return 2;
#endif
	if (qdisc_init(at_init))
		return 2;
	if (qdisc_init(at_second) != -EBUSY)
		return 3;
	/* So the kernel does. */
	qdisc_destroy(at_second);
	if (!statistics.in_use)
		return 3;
	while (read_all(&kind, sizeof(kind)) && read_all(&time, sizeof(time))) {
		serve(&sch, time);
		host_now = time;
		if (kind == 0) {
			struct sk_buff *skb = host_new(sizeof(*skb));
			u64 length, arguments[] = { (u64)(uintptr_t)skb, (u64)(uintptr_t)&sch, 0 };

			if (!read_all(&length, sizeof(length)))
				return 2;
			skb->len = length;
			((struct qdisc_skb_cb *)skb->cb)->pkt_len = length;
			skb->handle = handle++;
			skb->bytes = malloc(length + 1);
			if (!read_all(skb->bytes, length))
				return 2;
			qdisc_enqueue(arguments);
		} else if (!read_all(&parameters, sizeof(parameters))) {
			return 2;
		}
	}
	serve(&sch, ~0ULL);
	printf("counted");
	for (size_t word = 0; word < sizeof(statistics) / sizeof(u64); word++)
		printf(" %llu", ((u64 *)&statistics)[word]);
	printf("\n");
	qdisc_reset(at_init);
	qdisc_destroy(at_init);
	/* What is left is known flows. */
	objects = host_objects;
	for (struct host_entry *entry = host_entries; entry; entry = entry->next)
		objects--;
	return objects || sch.q.qlen || sch.qstats.backlog || statistics.in_use ? 4 : 0;
}
