#!/bin/sh
# Checks that texts agree: every link target of a page exists, and every source
# that code and pages cite (`EFD section 3.1`, `RFC 6298`, `Golestani 1994`) is
# listed in docs/references.md, and every test that docs/findings.md names exists.
set -eu
cd "$(dirname "$0")/.."

failed=0
complain() {
    echo "$*" >&2
    failed=1
}

links=0
for page in $(git ls-files '*.md'); do
    for target in $(grep -oE '\]\([^)# ]+|(src|srcset|href)="[^"# ]+' "$page" | sed 's/^](//; s/^[a-z]*="//'); do
        case $target in
        *:*) continue ;;
        esac
        links=$((links + 1))
        [ -e "$(dirname "$page")/$target" ] || complain "$page: the link target $target does not exist"
    done
done

# The tests that a page names are there.
tests=0
while IFS=' ' read -r file name; do
    tests=$((tests + 1))
    grep -q "fn $name\b" "crates/$file" || complain "docs/findings.md: crates/$file has no test $name"
done <<NAMED
$(grep -oE '`[a-z]+/[a-z_0-9/]+\.rs`: `[a-z_0-9]+`(, `[a-z_0-9]+`)*' docs/findings.md |
    tr -d '`,:' | awk '{ for (place = 2; place <= NF; place++) print $1, $place }')
NAMED

months='January|February|March|April|May|June|July|August|September|October|November|December'
texts() {
    git ls-files '*.rs' '*.md' '*.toml' | grep -vxE 'CHANGELOG.md|docs/references.md'
}
places='(section|table|figure|appendix|equation)s?'
keys=$({
    texts | xargs grep -ohE '\bRFC [0-9]+'
    texts | xargs grep -ohE "\b[A-Z][A-Z0-9]+,? $places [0-9A-Z]" | sed -E "s/,? $places .\$//"
    texts | xargs grep -ohE '[("][A-Z][a-z]+ (19|20)[0-9]{2}\b' | cut -c 2- | grep -vE "^($months) "
} | sort -u)
count=0
while read -r key; do
    count=$((count + 1))
    grep -q "^| $key |" docs/references.md && continue
    complain "docs/references.md lacks '$key', cited in" \
        $(texts | xargs grep -lw "$key")
done <<END
$keys
END

[ $failed = 0 ] && echo "All $links links have targets, all $tests tests named exist, and docs/references.md lists all $count sources cited"
exit $failed
