#!/bin/sh
# Runs the tests of live links that take more than this machine's kernel may have: a router
# whose packets nftables holds, and frames with VLAN tags between offloads. Takes some
# minutes.
set -eu
cd "$(dirname "$0")/.."

nft=$(PATH="$PATH:/sbin:/usr/sbin" command -v nft) ||
    { echo 'Missing: nft, of the package nftables' >&2; exit 1; }
router=$(tools/built.sh --package tidegate --test command_line)
tools/in-guest.sh router "$router" link_router \
    "${CARGO_TARGET_DIR:-$PWD/target}/debug/tidegate" "$nft" "$(command -v setpriv)"
frames=$(tools/built.sh --package tidegate-judge --test link)
tools/in-guest.sh frames "$frames" tags_fragments_and_jumbo_frames_pass
