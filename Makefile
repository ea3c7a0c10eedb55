# `make demo` and `make test` install what is missing on Debian; the other targets expect it.

# rustup installs cargo here, and not every shell has it in its path.
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help demo deb wheel site test golden generated lint checks fmt bench packages pages kernel-guest kernel-native kernel-page kernel-lines kernel-live kernel-qdisc bpf link-cells link-page live-bed live-pages link-faults link-soak clean compiler

help:
	@echo 'make demo    build Tidegate and compare disciplines on a built-in household link'
	@echo 'make deb     build the Debian package of the program and the gateway'
	@echo 'make wheel   build the package for Python'
	@echo 'make site    build the documentation as a site'
	@echo 'make test    everything that CI runs: lint, checks, packages, tests, demo, deb, Python, site'
	@echo 'make golden  compare the golden runs with the kept results, to the byte'
	@echo 'make generated  write the schemas, the tables of pages and the classes of Python from the code'
	@echo 'make lint    formatting, clippy and rustdoc, warnings are errors'
	@echo 'make checks  licences and sources of dependencies, links, citations and packages'
	@echo 'make fmt     format the code'
	@echo 'make bench   list the benchmarks'
	@echo 'make packages  compile every crate from its package alone, as crates.io would'
	@echo 'make pages   repeat the measurements of the papers, the survey, multiplexed pages and the gateways (half an hour on two cores)'
	@echo 'make kernel-guest   measure Linux in a QEMU guest again (two hours of one core)'
	@echo 'make kernel-native  measure the kernel of this machine again (an hour and a half, as root)'
	@echo 'make kernel-page    compare the simulator with what was measured of Linux (a minute)'
	@echo 'make link-cells   measure the papers on the live link of this machine again (twenty minutes, as root)'
	@echo 'make link-page    compare the simulator with what was measured of the live link (a minute)'
	@echo 'make kernel-lines   type the lines of verdicts into Linux, in a QEMU guest (a minute)'
	@echo 'make kernel-live    test live links with nftables and VLANs, in a QEMU guest (two minutes)'
	@echo 'make kernel-qdisc   test the queues of the kernel, in a QEMU guest (ten minutes)'
	@echo 'make bpf     compile the programs of the kernel again; needs clang 19'
	@echo 'make live-bed       run a gateway and its rivals on networks of this machine (ten minutes, as root)'
	@echo 'make live-pages     load pages in a browser on such a network (half an hour, as root)'
	@echo 'make link-faults    kill a live link a hundred times, flood it, and more (six minutes, as root)'
	@echo 'make link-soak      fill a live link for half an hour (as root)'
	@echo 'make clean   remove what was built'

demo: compiler
	cargo build --release --locked --package tidegate
	@tools/demo.sh

deb: compiler
	@tools/require.sh package
	cargo build --release --locked --package tidegate
	@tools/build-deb.sh

wheel: compiler
	@tools/check-python.sh wheel

site: compiler
	cargo doc --workspace --no-deps --locked
	cargo build --release --locked --package tidegate
	@tools/check-site.sh

test: lint checks packages
	@tools/require.sh network || true
	@tools/require.sh servers || true
	@tools/require.sh clock || true
	cargo test --workspace --exclude tidegate-py --lib --bins --tests --locked
	cargo test --workspace --exclude tidegate-py --doc --locked
	@$(MAKE) --no-print-directory demo
	@tools/check-pages.sh
	@tools/check-deb.sh
	@tools/check-python.sh
	@tools/check-site.sh

golden: compiler
	cargo test --package tidegate --test golden --locked

generated: compiler
	UPDATE_GENERATED=1 cargo test --package tidegate-core --locked \
		--test disciplines --test requests pages::
	UPDATE_GENERATED=1 cargo test --package tidegate-sim --locked \
		--test scenario_files up_to_date
	UPDATE_GENERATED=1 cargo test --package tidegate-sim --locked --test tcp the_page_says_what_comes_out
	@tools/check-python.sh classes

lint: compiler
	@if tools/require.sh rustfmt; then set -x; cargo fmt --all --check; fi
	@if tools/require.sh clippy; then set -x; \
		cargo clippy --workspace --all-targets --locked -- -D warnings; fi
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked

checks: compiler
	tools/check-dependencies.sh
	tools/check-docs.sh
	tools/check-packages.sh

fmt: compiler
	cargo fmt --all

bench:
	@echo 'cargo bench --package tidegate-core --bench disciplines     nanoseconds per packet'
	@echo 'cargo bench --package tidegate-core --bench instructions    instructions; needs valgrind'
	@echo 'cargo bench --package tidegate-core --bench requests        nanoseconds per request'
	@echo 'cargo bench --package tidegate-core --bench assignments     nanoseconds per deadline'
	@echo 'cargo bench --package tidegate-sim --bench kernel           the event kernel alone'
	@echo 'python3 benches/whole_run.py 5                              whole runs, beside ns-3'
	@echo 'python3 benches/sweeps.py                                   sweeps in Python; needs the wheel'
	@echo 'How results are kept: CONTRIBUTING.md, "Measurements"'

packages: compiler
	tools/check-packages.sh build

pages: compiler
	cargo run --release --locked --package tidegate -- reproduce --out docs/reproduction
	cargo run --release --locked --package tidegate-study --example survey -- docs/comparison
	cargo run --release --locked --package tidegate-study --example tide -- docs/tide
	cargo run --release --locked --package tidegate-study --example l4s -- docs/l4s.md
	cargo run --release --locked --package tidegate-study --example video -- docs/video.md
	cargo run --release --locked --package tidegate-study --example quic -- docs/quic.md
	cargo run --release --locked --package tidegate-study --example multiplexed -- docs/comparison.md
	cargo run --release --locked --package tidegate-study --example lookups -- docs/comparison.md
	cargo run --release --locked --package tidegate-study --example gateway_comparison -- docs/requests/comparison.md
	cargo run --release --locked --package tidegate-study --example where_msf_helps -- docs/requests/where.md
	cargo run --release --locked --package tidegate-study --example access_point -- docs/access-point.md

# For some cells only: make kernel-guest ARGUMENTS='--cells fq_codel --json'
kernel-guest kernel-native kernel-page: compiler
	cargo run --release --locked --package tidegate-judge -- $(@:kernel-%=%) $(ARGUMENTS)

# For some cells only: make link-cells ARGUMENTS='--cells link-efd'
link-cells: compiler
	@tools/require.sh network || true
	cargo run --release --locked --package tidegate-judge -- link $(ARGUMENTS)

link-page: compiler
	cargo run --release --locked --package tidegate-judge -- link-page $(ARGUMENTS)

kernel-lines: compiler
	tools/check-lines.sh

kernel-live: compiler
	@tools/require.sh network || true
	tools/check-live.sh

kernel-qdisc: compiler
	tools/check-qdisc.sh

bpf:
	tools/build-bpf.sh

# Another case, or some ways only: make live-bed ARGUMENTS='silent-2 --ways msf,htb'
live-bed: ARGUMENTS ?= saturated-2
live-bed: compiler
	@tools/require.sh network || true
	@tools/require.sh rivals || true
	cargo build --release --locked --package tidegate
	cargo run --release --locked --package tidegate-judge -- gateway $(ARGUMENTS)

# Some ways only: make live-pages ARGUMENTS='--ways none,msf --rounds 1'
live-pages: compiler
	@tools/require.sh network || true
	@tools/require.sh rivals || true
	@tools/require.sh browser || true
	cargo build --release --locked --package tidegate
	cargo run --release --locked --package tidegate-judge -- pages $(ARGUMENTS)

# How often and for how long; a flood lasts so long for each discipline.
link-faults: compiler
	@tools/require.sh network || true
	TIDEGATE_KILLS=100 TIDEGATE_REMOVALS=20 TIDEGATE_FLOOD_SECONDS=20 TIDEGATE_FRAME_ROUNDS=5000 \
		cargo test --locked --package tidegate --test faults -- --nocapture --test-threads 1

# In seconds: make link-soak DURATION=180
link-soak: DURATION ?= 1800
link-soak: compiler
	@tools/require.sh network || true
	TIDEGATE_LINK_SOAK_SECONDS=$(DURATION) \
		cargo test --locked --package tidegate --test faults -- --nocapture soak

clean: compiler
	cargo clean

compiler:
	@tools/require.sh compiler
