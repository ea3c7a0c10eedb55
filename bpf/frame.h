/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Between the bytes of a frame and what a discipline knows of it: flow, size, packets.
 *
 * Frames are read as the library `tidegate-wire` reads them, and one test holds the two
 * together: Ethernet with VLAN tags and PPPoE, IPv4 with its authentication header, IPv6
 * with its extension headers, ports of TCP, UDP, UDP-Lite, SCTP and DCCP. Pieces of a
 * datagram have no ports, so that they stay together. What is not IP is a flow by its
 * EtherType, and so is what contradicts itself: a queue is no firewall. A tower of more
 * than eight tags is not IP here; behind more than eight extension headers there are no
 * ports. The cost is one bounded read for each header.
 */
#pragma once

/* The 5-tuple: two addresses, two ports, a protocol; IPv4 as mapped into IPv6. */
struct flow_key {
	union {
		struct {
			u8 source[16], destination[16];
			u8 ports[4];
			u8 protocol, unused[3];
		};
		u64 words[5];
	};
};

struct facts {
	struct flow_key flow;
	/* What it takes of the link behind, and how many packets it is there. */
	u64 size, packets;
};

#define MOST_HEADERS 8

#define IPV4 0x0800
#define IPV6 0x86dd
#define CUSTOMER_TAG 0x8100
#define SERVICE_TAG 0x88a8
#define DOUBLE_TAG 0x9100
#define PPPOE_SESSION 0x8864
#define PPP_IPV4 0x0021
#define PPP_IPV6 0x0057

#define HOP_BY_HOP 0
#define TCP 6
#define UDP 17
#define DCCP 33
#define ROUTING 43
#define FRAGMENT 44
#define AUTHENTICATION 51
#define NO_NEXT_HEADER 59
#define DESTINATION_OPTIONS 60
#define SCTP 132
#define UDP_LITE 136
#define NO_PROTOCOL 255

enum kind { IS_IP, IS_OTHER, IS_MALFORMED };

static __always_inline u32 be16(const u8 *bytes)
{
	return (u32)bytes[0] << 8 | bytes[1];
}

/* What a packet of so many bytes takes of the link behind. */
static __always_inline u64 charge(u64 size)
{
	u64 framed = size + parameters.overhead;

	if (framed < parameters.least)
		framed = parameters.least;
	if (parameters.carrier == CARRIER_ATM)
		return (framed + 47) / 48 * 53;
	if (parameters.carrier == CARRIER_PTM)
		return framed + (framed + 63) / 64;
	return framed;
}

/* Both ports, if these bytes of the packet have them. */
static __always_inline void read_ports(struct bpf_dynptr *frame, u32 at, u32 end, u32 protocol,
				       struct flow_key *key)
{
	u8 buffer[4], *ports;

	if (protocol != TCP && protocol != UDP && protocol != DCCP && protocol != SCTP &&
	    protocol != UDP_LITE)
		return;
	if (at + 4 > end)
		return;
	ports = bpf_dynptr_slice(frame, at, buffer, 4);
	if (ports)
		__builtin_memcpy(key->ports, ports, 4);
}

/* The IPv4 packet at `at`, with this header; `length` becomes what it states. */
static __always_inline enum kind read_ipv4(struct bpf_dynptr *frame, const u8 *header, u32 at,
					   u32 frame_end, struct flow_key *key, u32 *length)
{
	u8 buffer[2], *extension;
	u32 headers, protocol, stated, end;
	bool is_fragment;

	headers = (header[0] & 15) * 4;
	if (headers < 20 || at + headers > frame_end)
		return IS_MALFORMED;
	stated = be16(header + 2);
	/* Headers that state no length are those of super-packets. */
	*length = stated ? stated : frame_end - at;
	end = stated < headers || at + stated > frame_end ? frame_end : at + stated;
	is_fragment = be16(header + 6) & 0x3fff;
	protocol = header[9];
	key->source[10] = key->source[11] = key->destination[10] = key->destination[11] = 0xff;
	__builtin_memcpy(key->source + 12, header + 12, 4);
	__builtin_memcpy(key->destination + 12, header + 16, 4);
	if (protocol == AUTHENTICATION && !is_fragment && at + headers + 12 <= end) {
		extension = bpf_dynptr_slice(frame, at + headers, buffer, 2);
		if (extension && extension[1] && at + headers + (extension[1] + 2) * 4 <= end) {
			protocol = extension[0];
			headers += (extension[1] + 2) * 4;
		}
	}
	if (*length < headers)
		return IS_MALFORMED;
	key->protocol = protocol;
	if (!is_fragment)
		read_ports(frame, at + headers, end, protocol, key);
	return IS_IP;
}

/* Bytes of headers that were read. It is in a map, of which the verifier follows nothing: so
 * it sees that every turn of a loop is like the one before. */
u64 header_bytes;

/* The IPv6 packet at `at`; `length` becomes what it states. */
static __always_inline enum kind read_ipv6(struct bpf_dynptr *frame, u32 at, u32 frame_end,
					   struct flow_key *key, u32 *length)
{
	u8 buffer[40], *header;
	u32 next, payload, end, headers, protocol;
	bool is_fragment = false;

	header = bpf_dynptr_slice(frame, at, buffer, 40);
	if (!header)
		return IS_MALFORMED;
	payload = be16(header + 4);
	next = header[6];
	__builtin_memcpy(key->source, header + 8, 16);
	__builtin_memcpy(key->destination, header + 24, 16);
	*length = payload || next == NO_NEXT_HEADER ? 40 + payload : frame_end - at;
	end = !payload || at + 40 + payload > frame_end ? frame_end : at + 40 + payload;
	protocol = next;
	header_bytes = 40;
	for_up_to (MOST_HEADERS) {
		u32 here, size;

		headers = READ_ONCE(header_bytes);
		here = at + headers;
		if (here + 8 > end)
			break;
		if (next != DESTINATION_OPTIONS && next != ROUTING && next != FRAGMENT &&
		    next != AUTHENTICATION && (next != HOP_BY_HOP || headers > 40))
			break;
		header = bpf_dynptr_slice(frame, here, buffer, 8);
		if (!header)
			break;
		if (next == FRAGMENT)
			size = 8;
		else if (next == AUTHENTICATION)
			size = header[1] ? (header[1] + 2) * 4 : ~0U;
		else
			size = (header[1] + 1) * 8;
		if (size > end - here)
			break;
		/* Later headers of a piece may be anything: its first one says what it is. */
		if (next == FRAGMENT && !is_fragment && (be16(header + 2) & 0xfff9)) {
			is_fragment = true;
			protocol = header[0];
		}
		next = header[0];
		header_bytes = headers + size;
	}
	headers = READ_ONCE(header_bytes);
	if (!is_fragment)
		protocol = next;
	if (*length < (is_fragment ? 40 : headers))
		return IS_MALFORMED;
	key->protocol = protocol;
	if (!is_fragment)
		read_ports(frame, at + headers, end, protocol, key);
	return IS_IP;
}

static __always_inline bool is_tag(u32 type)
{
	return type == CUSTOMER_TAG || type == SERVICE_TAG || type == DOUBLE_TAG;
}

/* Finds the IP packet in a frame: where it begins, and what the frame calls itself. */
static __always_inline enum kind find_packet(struct bpf_dynptr *frame, u32 *at, u32 *ether_type)
{
	u8 buffer[14], *header;
	u32 type;

	*at = 0;
	*ether_type = 0;
	if (!parameters.has_ethernet)
		return IS_IP;
	header = bpf_dynptr_slice(frame, 0, buffer, 14);
	if (!header)
		return IS_MALFORMED;
	type = *ether_type = be16(header + 12);
	*at = 14;
	/* Most frames have no tags, and are spared the loop. */
	if (is_tag(type)) {
		for_up_to (MOST_HEADERS) {
			if (!is_tag(type))
				break;
			header = bpf_dynptr_slice(frame, *at, buffer, 4);
			if (!header)
				return IS_MALFORMED;
			type = be16(header + 2);
			*at += 4;
		}
	}
	if (type == PPPOE_SESSION) {
		header = bpf_dynptr_slice(frame, *at, buffer, 8);
		if (!header)
			return IS_MALFORMED;
		type = be16(header + 6);
		*at += 8;
		return type == PPP_IPV4 || type == PPP_IPV6 ? IS_IP : IS_OTHER;
	}
	return type == IPV4 || type == IPV6 ? IS_IP : IS_OTHER;
}

/* What a super-packet's packets take of the link, each with headers of its own. */
static __always_inline void read_merged(struct sk_buff *skb, u32 at, u32 length,
					struct facts *facts)
{
	u64 headers, payload, rest;
	u16 packets, size = merged_size(skb, &packets);

	if (!size || packets < 2)
		return;
	/* The kernel has counted the headers of all packets already, with Ethernet's. */
	headers = (((struct qdisc_skb_cb *)skb->cb)->pkt_len - length) / (packets - 1);
	if (headers < at || headers > length)
		return;
	payload = length - headers;
	rest = payload > (u64)(packets - 1) * size ? payload - (u64)(packets - 1) * size : 0;
	headers -= at;
	facts->packets = packets;
	facts->size = (packets - 1) * charge(headers + size) + charge(headers + rest);
	statistics.super_packets++;
}

/*
 * What is known of a frame. The verifier looks at this function once and by itself: what it
 * may return would otherwise multiply with all that comes after it.
 */
GLOBAL int read_frame(struct sk_buff *skb ARGUMENT(trusted), struct facts *facts ARGUMENT(nonnull))
{
	u32 at = 0, ether_type = 0, length = 0, end = skb->len;
	enum kind kind = IS_MALFORMED;
	struct bpf_dynptr frame;
	u8 buffer[20], *header;

	__builtin_memset(facts, 0, sizeof(*facts));
	facts->packets = 1;
	if (!bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, &frame))
		kind = find_packet(&frame, &at, &ether_type);
	if (kind == IS_IP) {
		/* No IP packet is shorter. */
		header = bpf_dynptr_slice(&frame, at, buffer, 20);
		if (header && header[0] >> 4 == 4)
			kind = read_ipv4(&frame, header, at, end, &facts->flow, &length);
		else if (header && header[0] >> 4 == 6)
			kind = read_ipv6(&frame, at, end, &facts->flow, &length);
		else
			kind = IS_MALFORMED;
		if (kind == IS_IP && length > end - at)
			kind = IS_MALFORMED;
	}
	if (kind != IS_IP) {
		if (kind == IS_OTHER)
			statistics.other_frames++;
		else
			statistics.malformed_frames++;
		__builtin_memset(&facts->flow, 0, sizeof(facts->flow));
		facts->flow.ports[0] = facts->flow.ports[2] = ether_type >> 8;
		facts->flow.ports[1] = facts->flow.ports[3] = ether_type;
		facts->flow.protocol = NO_PROTOCOL;
		at = parameters.has_ethernet ? 14 : 0;
		length = end > at ? end - at : 0;
	}
	facts->size = charge(length);
	if (((struct qdisc_skb_cb *)skb->cb)->pkt_len > end)
		read_merged(skb, at, end, facts);
	return 0;
}
