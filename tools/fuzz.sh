#!/bin/sh
# Searches with libFuzzer for inputs on which a target panics:
#
#   tools/fuzz.sh TARGET [SECONDS [FOLDER...]]    600 seconds unless told
#
# It starts from what is kept in fuzz/corpus/TARGET and from the folders, and adds what
# reaches new code to out/fuzz/TARGET. An input that panics is written to out/fuzz too:
# once the fault is mended, it joins the kept ones under the name of what it shows.
#
# This takes the compiler that the project has anyway, and a C++ compiler for libFuzzer.
# There is no address sanitizer, which would need a nightly compiler: the targets have
# no `unsafe`, in which it could find something.
set -eu

if [ $# -eq 0 ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
fi
target=$1
seconds=${2:-600}
if [ $# -gt 2 ]; then shift 2; else shift $#; fi
for folder; do
    shift
    set -- "$@" "$(realpath "$folder")"
done
cd "$(dirname "$0")/.."

if [ ! -d "fuzz/corpus/$target" ]; then
    echo "found no target '$target', expected one of" fuzz/corpus/* | sed 's|fuzz/corpus/||g' >&2
    exit 2
fi
if ! command -v c++ >/dev/null; then
    echo "Missing: a C++ compiler. On Debian, run 'apt-get install g++' as root." >&2
    exit 1
fi
host=$(rustc -vV | sed -n 's/^host: //p')
coverage='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4'
coverage="$coverage -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-trace-compares"
# With --target, programs of the build are left as they are.
RUSTFLAGS="--cfg fuzzing -Ccodegen-units=1 $coverage" \
    cargo build --release --locked --target "$host" --manifest-path fuzz/libfuzzer/Cargo.toml

mkdir -p "out/fuzz/$target"
TIDEGATE_FUZZ_TARGET=$target exec "fuzz/libfuzzer/target/$host/release/tidegate-libfuzzer" \
    -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="out/fuzz/$target-" \
    "out/fuzz/$target" "fuzz/corpus/$target" "$@"
