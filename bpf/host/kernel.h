/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What stands for the kernel in tests on the host: the same names as in ../kernel.h, as
 * plain as can be. Lists and trees are one sorted chain, maps are chains, and time is what
 * the test says. Everything counts its objects, so that a leak is seen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;

#define SEC(name)
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define GLOBAL static
#define ARGUMENT(tag)
#define __kptr
#define __contains(type, member)
#define PROTECTED(section) static
#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define EBUSY 16
#define BPF_NOEXIST 1
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_F_NO_PREALLOC 1
#define READ_ONCE(place) (place)
#define within(number, most) ((number) & ((most) - 1))

struct sk_buff {
	u32 len;
	char cb[48];
	u8 *bytes;
	u64 handle;
	u16 merged_size, merged_packets;
};
struct __sk_buff;
struct nlattr;
struct netlink_ext_ack;
struct bpf_sk_buff_ptr;
struct qdisc_skb_cb { u32 pkt_len; };
struct Qdisc {
	u32 limit;
	struct { u32 qlen; } q;
	struct { u32 backlog, drops, overlimits; } qstats;
};
struct Qdisc_ops {
	char id[16];
	void *enqueue, *dequeue, *init, *reset, *destroy;
};

/* What the test sees: the time, packets that are lost, and when the timer is set to. */
static u64 host_now, host_timer, host_objects;
static void host_lost(struct sk_buff *skb);

static u64 bpf_ktime_get_ns(void) { return host_now; }

struct bpf_dynptr { struct sk_buff *skb; };
static int bpf_dynptr_from_skb(struct __sk_buff *skb, u64 flags, struct bpf_dynptr *to)
{
	(void)flags;
	to->skb = (void *)skb;
	return 0;
}
static void *bpf_dynptr_slice(const struct bpf_dynptr *from, u64 offset, void *buffer, u64 size)
{
	if (offset + size > from->skb->len)
		return NULL;
	/* A copy, so that what is read beyond it is found. */
	return memcpy(buffer, from->skb->bytes + offset, size);
}
static u16 merged_size(struct sk_buff *skb, u16 *packets)
{
	*packets = skb->merged_size ? skb->merged_packets : 1;
	return skb->merged_size;
}

static void *host_new(size_t size)
{
	host_objects++;
	return calloc(1, size);
}
static void host_drop(void *object)
{
	host_objects--;
	free(object);
}
#define new_object(type) ((type *)host_new(sizeof(type)))
#define drop_object(object) host_drop(object)

#define bpf_kptr_xchg(place, pointer)                                                          \
	({                                                                                     \
		void *before_ = *(place);                                                      \
		*(place) = (pointer);                                                          \
		before_;                                                                       \
	})
static void bpf_kfree_skb(struct sk_buff *skb) { host_lost(skb); }
static void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free)
{
	(void)to_free;
	host_lost(skb);
}
static void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 slack)
{
	(void)sch, (void)slack;
	host_timer = expire;
}
static void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb)
{
	(void)sch, (void)skb;
}

struct bpf_spin_lock { bool is_held; };
static void bpf_spin_lock(struct bpf_spin_lock *lock)
{
	if (lock->is_held)
		abort();
	lock->is_held = true;
}
static void bpf_spin_unlock(struct bpf_spin_lock *lock)
{
	if (!lock->is_held)
		abort();
	lock->is_held = false;
}

/* Lists and trees: a chain from the first to the last. */
struct bpf_list_node { struct bpf_list_node *next, *previous; };
struct bpf_list_head { struct bpf_list_node *first, *last; };
static void push_back(struct bpf_list_head *head, struct bpf_list_node *node)
{
	node->next = NULL;
	node->previous = head->last;
	*(head->last ? &head->last->next : &head->first) = node;
	head->last = node;
}
static struct bpf_list_node *host_unlink(struct bpf_list_head *head, struct bpf_list_node *node)
{
	if (!node)
		return NULL;
	*(node->previous ? &node->previous->next : &head->first) = node->next;
	*(node->next ? &node->next->previous : &head->last) = node->previous;
	return node;
}
static struct bpf_list_node *bpf_list_front(struct bpf_list_head *head) { return head->first; }
static struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head)
{
	return host_unlink(head, head->first);
}
static struct bpf_list_node *bpf_list_pop_back(struct bpf_list_head *head)
{
	return host_unlink(head, head->last);
}

#define bpf_rb_node bpf_list_node
#define bpf_rb_root bpf_list_head
static void tree_add(struct bpf_rb_root *root, struct bpf_rb_node *node,
		     bool(less)(struct bpf_rb_node *, const struct bpf_rb_node *))
{
	struct bpf_rb_node *before = root->last;

	while (before && less(node, before))
		before = before->previous;
	node->previous = before;
	node->next = before ? before->next : root->first;
	*(before ? &before->next : &root->first) = node;
	*(node->next ? &node->next->previous : &root->last) = node;
}
static struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root) { return root->first; }
/* A tree as flat as can be over the chain: each node is the middle of its part of it. */
static struct bpf_rb_node *host_middle(struct bpf_rb_root *root, size_t from, size_t to)
{
	struct bpf_rb_node *node = root->first;

	if (from == to)
		return NULL;
	for (size_t place = 0; place < from + (to - from) / 2; place++)
		node = node->next;
	return node;
}
static struct bpf_rb_node *host_child(struct bpf_rb_root *root, struct bpf_rb_node *node, bool right)
{
	size_t place = 0, from = 0, to = 0;

	for (struct bpf_rb_node *other = root->first; other; other = other->next)
		to++;
	for (struct bpf_rb_node *other = root->first; other != node; other = other->next)
		place++;
	for (;;) {
		size_t middle = from + (to - from) / 2;

		if (place == middle)
			return right ? host_middle(root, middle + 1, to)
				     : host_middle(root, from, middle);
		*(place < middle ? &to : &from) = place < middle ? middle : middle + 1;
	}
}
static struct bpf_rb_node *bpf_rbtree_root(struct bpf_rb_root *root)
{
	size_t count = 0;

	for (struct bpf_rb_node *node = root->first; node; node = node->next)
		count++;
	return host_middle(root, 0, count);
}
static struct bpf_rb_node *bpf_rbtree_left(struct bpf_rb_root *root, struct bpf_rb_node *node)
{
	return host_child(root, node, false);
}
static struct bpf_rb_node *bpf_rbtree_right(struct bpf_rb_root *root, struct bpf_rb_node *node)
{
	return host_child(root, node, true);
}
static struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root, struct bpf_rb_node *node)
{
	return host_unlink(root, node);
}

#define for_up_to(most) for (u64 turn_ = 0; turn_ < (most); turn_++)
#define for_each_below(name, most)                                                             \
	for (u64 turn_ = 0, *name = &turn_; turn_ < (most); turn_++)

/* Maps: a chain of entries for each, found by the address of the map. */
struct host_entry {
	struct host_entry *next;
	void *map;
	size_t key_size;
	u8 bytes[];
};
static struct host_entry *host_entries;
/* Values begin at a word. */
static size_t host_aligned(size_t size) { return (size + 7) & ~(size_t)7; }
static struct host_entry **host_find(void *map, const void *key, size_t key_size)
{
	struct host_entry **at = &host_entries;

	while (*at && ((*at)->map != map || memcmp((*at)->bytes, key, key_size)))
		at = &(*at)->next;
	return at;
}
static void *host_lookup(void *map, const void *key, size_t key_size)
{
	struct host_entry *entry = *host_find(map, key, key_size);

	return entry ? entry->bytes + host_aligned(key_size) : NULL;
}
static long host_insert(void *map, const void *key, size_t key_size, const void *value,
			size_t value_size)
{
	struct host_entry *entry;

	if (*host_find(map, key, key_size))
		return -1;
	entry = host_new(sizeof(*entry) + host_aligned(key_size) + value_size);
	*entry = (struct host_entry){ host_entries, map, key_size };
	memcpy(entry->bytes, key, key_size);
	memcpy(entry->bytes + host_aligned(key_size), value, value_size);
	host_entries = entry;
	return 0;
}
static long host_delete(void *map, const void *key, size_t key_size)
{
	struct host_entry **at = host_find(map, key, key_size), *entry = *at;

	if (!entry)
		return -1;
	*at = entry->next;
	host_drop(entry);
	return 0;
}
static long host_for_each(void *map, long (*call)(void *, void *, void *, void *), void *context)
{
	struct host_entry *entry = host_entries, *next;

	for (; entry; entry = next) {
		next = entry->next;
		if (entry->map == map)
			call(map, entry->bytes, entry->bytes + host_aligned(entry->key_size), context);
	}
	return 0;
}
/* An array has all its entries from the beginning; here, from when one is looked for. */
struct host_array {
	struct host_array *next;
	void *map;
	u8 *values;
};
static struct host_array *host_arrays;
static void *host_element(void *map, const u32 *at, size_t count, size_t value_size)
{
	struct host_array *array = host_arrays;

	while (array && array->map != map)
		array = array->next;
	if (!array) {
		array = malloc(sizeof(*array));
		*array = (struct host_array){ host_arrays, map, calloc(count, value_size) };
		host_arrays = array;
	}
	return *at < count ? array->values + *at * value_size : NULL;
}
/* A callback gets the map without its type, but every key has its own. */
#define host_number(member) (sizeof(*(member)) / sizeof(int))
#define bpf_map_lookup_elem(map, of)                                                           \
	(host_number((map)->type) == BPF_MAP_TYPE_ARRAY                                        \
		 ? host_element(map, (const void *)(of), host_number((map)->max_entries),      \
				sizeof(*(map)->value))                                         \
		 : host_lookup(map, of, sizeof(*(map)->key)))
#define bpf_map_update_elem(map, of, with, flags) \
	host_insert(map, of, sizeof(*(map)->key), with, sizeof(*(map)->value))
#define bpf_map_delete_elem(map, of) host_delete(map, of, sizeof(*(of)))
#define bpf_for_each_map_elem(map, call, context, flags) \
	host_for_each(map, (void *)(call), context)
