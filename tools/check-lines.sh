#!/bin/sh
# Types the lines of every verdict into a kernel that has all queues, in a guest of QEMU, and
# what undoes them: the test of the same lines that `make test` runs on this machine's kernel.
# Fetches the guest's kernel once (130 MB); takes some minutes.
set -eu
cd "$(dirname "$0")/.."

folder=${CARGO_TARGET_DIR:-target}/kernel-guest
test=the_kernel_takes_every_line
agent=$(cargo test --locked --package tidegate --bin tidegate --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
[ -n "$agent" ] || { echo 'the test of the lines cannot be built' >&2; exit 1; }
status=0
tools/kernel-guest.sh "$folder" "$agent" || status=$?
[ $status != 3 ] || { echo 'SKIP the lines in a guest: the reason is above'; exit 0; }
[ $status = 0 ] || exit $status

lines=$folder/lines
rm -rf "$lines"
mkdir -p "$lines/files"
cat >"$lines/files/init" <<'INIT'
#!/bin/sh
export PATH=/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for module in /lib/modules/*/*.ko; do name=${module##*/}; modprobe "${name%.ko}" 2>/dev/null; done
INIT
cat >>"$lines/files/init" <<INIT
tidegate-judge $test --nocapture --test-threads 1 >/dev/ttyS1 2>&1
poweroff -f
INIT
chmod +x "$lines/files/init"
# An archive behind another one replaces its files.
cp "$folder/root.cpio" "$lines/initramfs"
bytes=$(wc -c <"$lines/initramfs")
truncate -s $(((bytes + 511) / 512 * 512)) "$lines/initramfs"
(cd "$lines/files" && find . | busybox cpio -o -H newc 2>/dev/null) >>"$lines/initramfs"
timeout 900 qemu-system-x86_64 -accel tcg -cpu max -smp 1 -m 1024 -display none -no-reboot \
    -nic none -serial "file:$lines/console" -serial "file:$lines/results" \
    -append 'console=ttyS0 quiet panic=-1 mitigations=off' \
    -kernel "$folder/vmlinuz" -initrd "$lines/initramfs" </dev/null
echo "Linux $(cat "$folder/release")"
cat "$lines/results"
grep --quiet 'test result: ok. 1 passed' "$lines/results" && ! grep --quiet SKIP "$lines/results"
