#!/bin/sh
# Joins captures into <name>.pcapng, of each frame the first 256 bytes, and
# writes what tshark says of each frame to <name>.tsv:
#
#   expect.sh <name> <capture>...
#
# Needs tshark and mergecap; README.md says which version wrote what is kept.
set -eu
name=$1
shift
mergecap -a -I all -s 256 -w "$name.pcapng" "$@"

# A field that a frame has several times, for example in a tunnel, stands in
# its column with commas between. Reassembly is off, so that each frame is told
# by itself.
set --
for field in frame.len frame.cap_len frame.protocols \
    ip.src ip.dst ip.cur_rt ip.proto ip.len ip.dsfield.dscp ip.dsfield.ecn \
    ip.flags.mf ip.frag_offset ip.checksum.status ah.next_header \
    ipv6.src ipv6.dst ipv6.nxt ipv6.plen ipv6.tclass.dscp ipv6.tclass.ecn \
    ipv6.hopopts.nxt ipv6.dstopts.nxt ipv6.routing.nxt ipv6.fraghdr.nxt \
    ipv6.fraghdr.more ipv6.fraghdr.offset \
    tcp.srcport tcp.dstport udp.srcport udp.dstport sctp.srcport sctp.dstport \
    dccp.srcport dccp.dstport \
    tcp.hdr_len tcp.seq_raw tcp.ack_raw tcp.flags tcp.len tcp.option_kind; do
    set -- "$@" -e "$field"
done
tshark -r "$name.pcapng" -n -T fields -E header=y "$@" \
    -o ip.defragment:FALSE -o ipv6.defragment:FALSE -o ip.check_checksum:TRUE \
    -o tcp.desegment_tcp_streams:FALSE >"$name.tsv"
