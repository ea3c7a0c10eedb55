#!/bin/sh
# Checks dependencies against deny.toml: every licence is allowed, all code comes
# from crates.io, and none needs a newer compiler than the project does. Needs only
# cargo; building cargo-deny would take longer than building Tidegate.
set -eu
cd "$(dirname "$0")/.."

allowed=$(sed -n 's/^allow = \[\(.*\)\]$/\1/p' deny.toml)
crates=$(cargo tree --workspace --locked --prefix none --format '{p}|{l}' | sed '/^$/d; s/ (\*)$//' | sort -u)

# Turns 'MIT OR (A AND B)' into '1|(0&0)', where AND binds more tightly, as it
# should, and leaves the arithmetic to the shell.
failed=0
while IFS='|' read -r crate licence; do
    term=$(printf '%s\n' "$licence" | awk -v allowed="$allowed" '{
        gsub(/ WITH /, "+"); gsub(/\//, " OR "); gsub(/[()]/, " & ")
        for (i = 1; i <= NF; i++) {
            name = $i; sub(/\+/, " WITH ", name)
            if ($i == "OR") $i = "|"
            else if ($i == "AND") $i = "&"
            else if ($i != "(" && $i != ")") $i = index(allowed, "\"" name "\"") > 0
        }
        print
    }')
    if [ "$((${term:-0}))" = 0 ]; then
        echo "$crate: licence '$licence' is not among those allowed in deny.toml: $allowed" >&2
        failed=1
    fi
done <<END
$crates
END

if grep '^source = ' Cargo.lock | grep -v '"registry+https://github.com/rust-lang/crates.io-index"'; then
    echo "Cargo.lock: some code does not come from crates.io" >&2
    failed=1
fi

# No CI builds with the oldest compiler (docs/adr/0008-oldest-compiler.md), so only
# the declarations of dependencies can be checked.
least=$(sed -n 's/^rust-version *= *"\([0-9.]*\)".*/\1/p' Cargo.toml)
newest=$(cargo metadata --format-version 1 --locked | grep -oE '"rust_version":"[0-9.]+"' |
    grep -oE '[0-9.]+' | sort -V | tail -n 1)
if [ "$(printf '%s\n%s.0\n' "$newest" "$least" | sort -V | tail -n 1)" != "$least.0" ]; then
    echo "Cargo.lock: a dependency needs Rust $newest, and rust-version is $least" >&2
    failed=1
fi

[ $failed = 0 ] && echo "$(echo "$crates" | wc -l) crates have licences and sources that deny.toml allows"
exit $failed
