#!/bin/sh
# Measures on this machine's kernel what the disciplines' programs take for a packet, but for
# what only a qdisc may do (bpf/cost/cost.h). Takes root's rights and clang 19, some seconds,
# and a folder for the programs.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${CARGO_TARGET_DIR:-$here/target}/bpf-cost}
mkdir -p "$folder"
cd "$here/bpf/cost"
for source in *.cost.c; do
    clang-19 -O2 -g -target bpf -mcpu=v3 -Wall -Werror -c "$source" \
        -o "$folder/${source%.cost.c}.o"
done
cd "$here"
export TIDEGATE_COST_OBJECTS="$folder"
cargo test --locked --package tidegate-qdisc --test native -- --ignored --nocapture
