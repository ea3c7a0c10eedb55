#!/bin/sh
# Builds the wheel, installs it where there is no compiler, and checks it there: the tests, the
# examples in docstrings and pages, types, stubs, and the module that the registry makes.
#
# What it uses from PyPI is pinned: a release of somebody else must not break a build here.
#
#   tools/check-python.sh          all of that
#   tools/check-python.sh wheel    only builds target/wheels/tidegate-*.whl
#   tools/check-python.sh classes  also writes the classes that are made of Rust
#
# The release program, which `make demo` builds, is compared with it.
set -eu
cd "$(dirname "$0")/.."

. tools/python.sh
environment build maturin==1.16.0 || skip 'packages from PyPI cannot be had'
rm -rf "$target/wheels"
(cd python && "$scratch/build/bin/maturin" build --release --locked --quiet \
    --target-dir "$target" --out "$target/wheels")
wheel=$(ls "$target"/wheels/tidegate-*.whl)
[ "${1-}" != wheel ] || { echo "$wheel"; exit 0; }

rm -rf "$scratch/check" "$scratch/examples"
mkdir -p "$scratch/examples"
environment check --requirement python/requirements.txt "$wheel"
cd python
# What the library says of its types; it is there already.
rm -rf "$scratch/stubs"
"$scratch/build/bin/maturin" generate-stubs --profile release --locked --quiet --target-dir "$target" \
    --out "$scratch/stubs"
export TIDEGATE_STUBS="$scratch/stubs/tidegate/_native.pyi"
export PATH="$scratch/check/bin:/nowhere"
export PYTHONDONTWRITEBYTECODE=1
[ "${1-}" != classes ] || exec python generate.py --write
TIDEGATE=$target/release/tidegate pytest -p no:cacheprovider
installed=$(python -c 'import tidegate; print(tidegate.__path__[0])')
# What examples write has a folder of its own.
here=$(pwd)
(cd "$scratch/examples" && python -m pytest -p no:cacheprovider -c "$here/pyproject.toml" \
    --doctest-modules --doctest-glob='*.md' --import-mode=importlib \
    "$installed" "$here/README.md" "$here/../docs/python.md")
mypy --cache-dir "$scratch/mypy" src tests generate.py
python -m mypy.stubtest --mypy-config-file pyproject.toml tidegate._native
