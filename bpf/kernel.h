/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the disciplines use of the kernel.
 *
 * These are declarations of our own with the members that are used and no others: libbpf
 * finds each member in the running kernel by its name (CO-RE), so that one object fits
 * every kernel that has BPF qdiscs (Linux 6.16 and later, CONFIG_NET_SCH_BPF). Functions
 * of the kernel go by the names that end in _impl: these are there from 6.16 on, the
 * short ones came later.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef _Bool bool;
#define NULL ((void *)0)
#define true 1
#define false 0

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))
#define __ksym __attribute__((section(".ksyms")))
#define __kptr __attribute__((btf_type_tag("kptr")))
#define __contains(type, member) __attribute__((btf_decl_tag("contains:" #type ":" #member)))
/* A lock and what it protects share a section of their own. */
#define PROTECTED(section) \
	SEC(".data." #section) __attribute__((visibility("hidden"), aligned(8)))

/* A function that the verifier looks at by itself, and what it may take for granted. */
#define GLOBAL __attribute__((noinline))
#define ARGUMENT(tag) __attribute__((btf_decl_tag("arg:" #tag)))

#define container_of(pointer, type, member) \
	((type *)((void *)(pointer) - __builtin_offsetof(type, member)))

/* Types that the verifier knows by name and size. */
struct bpf_spin_lock { u32 value; };
struct bpf_list_head { u64 opaque[2]; } __attribute__((aligned(8)));
struct bpf_list_node { u64 opaque[3]; } __attribute__((aligned(8)));
struct bpf_rb_root { u64 opaque[2]; } __attribute__((aligned(8)));
struct bpf_rb_node { u64 opaque[4]; } __attribute__((aligned(8)));
struct bpf_dynptr { u64 opaque[2]; } __attribute__((aligned(8)));
struct bpf_iter_num { u64 opaque[1]; } __attribute__((aligned(8)));

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sk_buff {
	u32 len;
	char cb[48];
	u32 end;
	u8 *head;
};
struct skb_shared_info {
	u16 gso_size;
	u16 gso_segs;
};
struct qdisc_skb_cb {
	u32 pkt_len;
};
struct qdisc_skb_head {
	u32 qlen;
};
struct gnet_stats_queue {
	u32 backlog;
	u32 drops;
	u32 overlimits;
};
struct Qdisc {
	u32 limit;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};
#pragma clang attribute pop

/* Never looked into, but functions of the kernel are found by types that are complete. */
struct __sk_buff { u32 len; };
struct bpf_sk_buff_ptr { u8 opaque; };
struct nlattr { u16 length; };
struct netlink_ext_ack { u8 opaque; };

/* The members that a discipline sets; its name first, where the loader finds it. */
struct Qdisc_ops {
	char id[16];
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct bpf_sk_buff_ptr *);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	void (*destroy)(struct Qdisc *);
};

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define EBUSY 16

/* Helpers, by their numbers. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
					 u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static void (*const bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static void (*const bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const bpf_for_each_map_elem)(void *map, void *call, void *context,
					   u64 flags) = (void *)164;
static void *(*const bpf_kptr_xchg)(void *place, void *pointer) = (void *)194;

#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_F_NO_PREALLOC 1

/* Functions of the kernel. */
extern void *bpf_obj_new_impl(u64 type, void *meta) __ksym;
extern void bpf_obj_drop_impl(void *object, void *meta) __ksym;
extern int bpf_list_push_back_impl(struct bpf_list_head *head, struct bpf_list_node *node,
				   void *meta, u64 offset) __ksym;
extern struct bpf_list_node *bpf_list_front(struct bpf_list_head *head) __ksym;
extern struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head) __ksym;
extern struct bpf_list_node *bpf_list_pop_back(struct bpf_list_head *head) __ksym;
extern int bpf_rbtree_add_impl(struct bpf_rb_root *root, struct bpf_rb_node *node,
			       bool(less)(struct bpf_rb_node *, const struct bpf_rb_node *),
			       void *meta, u64 offset) __ksym;
extern struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root) __ksym;
extern struct bpf_rb_node *bpf_rbtree_root(struct bpf_rb_root *root) __ksym;
extern struct bpf_rb_node *bpf_rbtree_right(struct bpf_rb_root *root,
					    struct bpf_rb_node *node) __ksym;
extern struct bpf_rb_node *bpf_rbtree_left(struct bpf_rb_root *root,
					   struct bpf_rb_node *node) __ksym;
extern struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root,
					     struct bpf_rb_node *node) __ksym;
extern void bpf_kfree_skb(struct sk_buff *skb) __ksym;
extern void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 slack) __ksym;
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;
extern int bpf_dynptr_from_skb(struct __sk_buff *skb, u64 flags, struct bpf_dynptr *to) __ksym;
extern void *bpf_dynptr_slice(const struct bpf_dynptr *from, u64 offset, void *buffer,
			      u64 size) __ksym;
extern int bpf_iter_num_new(struct bpf_iter_num *iterator, int from, int to) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *iterator) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *iterator) __ksym;

#define new_object(type) ((type *)bpf_obj_new_impl(__builtin_btf_type_id(*(type *)0, 0), NULL))
#define drop_object(object) bpf_obj_drop_impl(object, NULL)
#define push_back(head, node) bpf_list_push_back_impl(head, node, NULL, 0)
#define tree_add(root, node, less) bpf_rbtree_add_impl(root, node, less, NULL, 0)

/*
 * A loop that the verifier needs not unroll. The iterator is destroyed on every way out.
 */
#define for_up_to(most)                                                                        \
	for (struct bpf_iter_num iterator __attribute__((cleanup(bpf_iter_num_destroy))),      \
	     *started = (bpf_iter_num_new(&iterator, 0, most), &iterator);                     \
	     bpf_iter_num_next(started);)

/* The same with a number from 0 on, of which the verifier knows nothing: mask it. */
#define for_each_below(number, most)                                                           \
	for (struct bpf_iter_num iterator __attribute__((cleanup(bpf_iter_num_destroy))),      \
	     *started = (bpf_iter_num_new(&iterator, 0, most), &iterator);                     \
	     started; started = NULL)                                                          \
		for (const int *number; (number = bpf_iter_num_next(started));)

/* The verifier has to see each of these loads and stores as it stands. */
#define READ_ONCE(place) (*(volatile typeof(place) *)&(place))

/* A number below `most`, a power of two, in a way that compilers leave to the verifier. */
#define within(number, most)                                                                   \
	({                                                                                     \
		u64 number_ = (number);                                                        \
		asm volatile("" : "+r"(number_));                                              \
		number_ & ((most) - 1);                                                        \
	})

/* What the kernel says of a super-packet; a size of zero for any other. */
static __always_inline u16 merged_size(struct sk_buff *skb, u16 *packets)
{
	struct skb_shared_info *shared = (void *)(skb->head + skb->end);
	u16 size = 0;

	*packets = 1;
	if (bpf_probe_read_kernel(&size, sizeof(size),
				  __builtin_preserve_access_index(&shared->gso_size)) ||
	    !size)
		return 0;
	if (bpf_probe_read_kernel(packets, sizeof(*packets),
				  __builtin_preserve_access_index(&shared->gso_segs)) ||
	    !*packets)
		*packets = 1;
	return size;
}
