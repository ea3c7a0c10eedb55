#!/bin/sh
# Checks that every crate that can be published has what a stranger needs: a README,
# both licences, metadata for docs.rs, a version for each dependency, and no included
# file outside of the package. `make packages` also compiles them.
#
#   tools/check-packages.sh            checks the contents of the packages
#   tools/check-packages.sh build      also compiles each from its package alone
set -eu
cd "$(dirname "$0")/.."

failed=0
complain() {
    echo "$*" >&2
    failed=1
}

published= excluded=
for manifest in $(git ls-files '*Cargo.toml'); do
    name=$(sed -n 's/^name = "\(.*\)"/\1/p' "$manifest" | head -n 1)
    case $manifest in
    Cargo.toml | fuzz/libfuzzer/*) ;;
    *) if grep -q '^publish = false' "$manifest"; then
        excluded="$excluded --exclude $name"
    else
        published="$published $name"
        folder=$(dirname "$manifest")
        files=$(cargo package --package "$name" --list --locked --allow-dirty --quiet) || {
            failed=1
            continue
        }
        for file in README.md LICENSE-MIT LICENSE-APACHE; do
            echo "$files" | grep -qx "$file" || complain "$manifest: the package has no $file"
        done
        for key in 'description = ' 'readme = ' '\[package.metadata.docs.rs\]'; do
            grep -q "^$key" "$manifest" || complain "$manifest: there is no $key"
        done
        # How many folders upwards an include leads.
        for file in $(echo "$files" | grep '\.rs$'); do
            depth=$(dirname "$file" | sed 's/^\.$//' | awk -F/ '{ print NF }')
            ups=$(grep -oE 'include(_str|_bytes)?!\("(\.\./)+' "$folder/$file" |
                sed 's/^[^"]*"//' | awk -F/ '{ if (NF - 1 > most) most = NF - 1 } END { print most + 0 }')
            [ "$ups" -le "$depth" ] || complain "$folder/$file: it includes a file outside of the crate"
        done
    fi ;;
    esac
done
grep -nE '^tidegate-.*path = ' Cargo.toml | grep -v 'version = ' | while read -r line; do
    name=$(echo "$line" | sed 's/^[0-9]*://; s/ = .*//')
    case " $excluded " in *" $name "*) ;; *) echo "Cargo.toml:$line: there is no version" >&2 && exit 1 ;; esac
done || failed=1

[ $failed = 0 ] && echo "packages are complete:$published"
if [ "${1-}" = build ] && [ $failed = 0 ]; then
    # In a workspace of their own, where each finds the others as crates.io would give them.
    # What is missing or misnamed in a package is found by checking it, which takes a
    # quarter of the time of a build; crates of others were checked by clippy already.
    alone=target/packages/alone
    rm -rf target/packages
    # shellcheck disable=SC2086
    cargo package --workspace $excluded --locked --allow-dirty --quiet --no-verify \
        --target-dir target/packages
    mkdir -p "$alone"
    printf '[workspace]\nresolver = "3"\nmembers = ["*"]\n\n[patch.crates-io]\n' >"$alone/Cargo.toml"
    for name in $published; do
        # Packages have the date of 2006, by which Cargo would take changed ones for known.
        tar -xzmf target/packages/package/"$name"-[0-9]*.crate -C "$alone"
        mv "$alone/$name"-[0-9]* "$alone/$name"
        echo "$name = { path = \"$name\" }" >>"$alone/Cargo.toml"
    done
    cp Cargo.lock "$alone"
    for name in $published; do
        cargo check --manifest-path "$alone/Cargo.toml" --package "$name" --quiet --target-dir target
    done
    echo "packages compile by themselves:$published"
fi
exit $failed
