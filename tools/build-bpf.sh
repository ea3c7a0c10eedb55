#!/bin/sh
# Compiles bpf/*.bpf.c into crates/qdisc/objects, or into the folder that is named. The
# compiler is clang 19: another one would make other bytes, and a test compares them.
set -eu
cd "$(dirname "$0")/../bpf"
to=${1:-../crates/qdisc/objects}
for compiler in clang-19 llvm-strip-19; do
    command -v $compiler >/dev/null ||
        { echo "Missing: $compiler. On Debian, run 'apt-get install clang-19 llvm-19' as root." >&2; exit 1; }
done
mkdir -p "$to"
for source in *.bpf.c; do
    object=$to/${source%.bpf.c}.o
    clang-19 -O2 -g -target bpf -mcpu=v3 -Wall -Werror -fdebug-prefix-map="$PWD"=bpf \
        -c "$source" -o "$object"
    # What is left of the debugging information is what the kernel reads.
    llvm-strip-19 -g "$object"
done
