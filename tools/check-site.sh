#!/bin/sh
# Builds the site from the pages, the command line, Python's docstrings and the documentation of
# the crates, into target/site. Links and anchors that lead nowhere fail.
#
# It needs what `cargo doc` and `cargo build --release` have made.
set -eu
cd "$(dirname "$0")/.."

. tools/python.sh
environment site mkdocs-material==9.8.2 mkdocstrings-python==2.0.11 ||
    skip 'packages from PyPI cannot be had'
NO_MKDOCS_2_WARNING=1 "$scratch/site/bin/mkdocs" build --quiet --site-dir "$target/site"
echo "The site is target/site/index.html, with $(find "$target/site" -name index.html -not -path '*/rust-doc/*' | wc -l) pages"
