#!/bin/sh
# Holds the order of the crates: each depends only on crates that stand before it
# here, apart from what its tests need (twins, for example). A crate that is not in the order is refused.
set -eu
cd "$(dirname "$0")/.."

order='core wire scenarios sim study papers cli'
failed=0
before=
for crate in $order; do
    case $crate in
    scenarios) manifest=scenarios/Cargo.toml ;;
    *) manifest=crates/$crate/Cargo.toml ;;
    esac
    used=$(sed -n '/^\[dependencies\]/,/^\[/s/^tidegate-\([a-z]*\).*/\1/p' "$manifest")
    for other in $used; do
        case " $before " in
        *" $other "*) ;;
        *)
            echo "$manifest: tidegate-$other does not stand before tidegate-$crate" >&2
            failed=1
            ;;
        esac
    done
    before="$before $crate"
done
for folder in crates/*; do
    case " $order twins " in
    *" ${folder#crates/} "*) ;;
    *)
        echo "$folder: it has no place in the order that tools/check-arrows.sh holds" >&2
        failed=1
        ;;
    esac
done

[ $failed = 0 ] && echo "no arrow points back: $order"
exit $failed
