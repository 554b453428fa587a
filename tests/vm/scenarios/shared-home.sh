# shellcheck shell=bash disable=SC2016 # jq has its own $
# SPDX-License-Identifier: MIT
# C8: homes on a network file system (9p), which nodes with other interfaces may share. Nobody is asked to have
# a file there who was not named; who is named gets it, atomically, and a second run changes nothing.
# boot: shared-home
# seconds: 240
# share: yes
# hw: no, it mounts a folder of the host of the VM

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
modprobe -a virtio_pci 9p 9pnet_virtio
SUDO_USER=alice
export SUDO_USER
conf=/home/alice/.nccl.conf
trap 'umount /home/alice 2>/dev/null || :; rm -rf "$WORK"' EXIT

# share_home VERSION: 9P2000.u has a type of its own; 9P2000.L, the usual one, shows that of its server's disk
share_home() {
	say "$1"
	mount -t 9p -o "trans=virtio,version=$1" share /home/alice
	stat -f -c "file system type %t" /home/alice
	chown alice:alice /home/alice
	rm -f "$conf"

	nodeprep_json 0 apply --ip "$IP" --no-selftest
	check_is warn nccl.shared_home "$conf"
	[ ! -e "$conf" ] || fail "a shared home was written unasked"
	grep -qx "NCCL_SOCKET_IFNAME=$IFNAME" /etc/nccl.conf || fail "/etc/nccl.conf is to be preferred"
}

# looked at only: QEMU never answers the fsync of this one
share_home 9p2000.u
umount /home/alice

share_home 9p2000.L
printf 'NCCL_DEBUG=WARN\n' >"$conf"
chown alice:alice "$conf"
nodeprep_json 0 apply --ip "$IP" --no-selftest --user alice
holds 'any(.actions[]; .target == $f and .status == "done")' --arg f "$conf"
must 0 cat "$conf"
printf 'NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=%s\n' "$IFNAME" | cmp - "$WORK/out" || fail "not as it must be"
[ "$(stat -c %U:%a "$conf")" = alice:644 ] || fail "owner or mode: $(stat -c %U:%a "$conf")"
[ "$(find /home/alice -type f | wc -l)" = 1 ] || fail "something is left beside it"
nodeprep_json 0 apply --ip "$IP" --no-selftest --user alice
holds '.actions == [] and .changed == false'
umount /home/alice

say "a home of this node's own"
chown alice:alice /home/alice
nodeprep_json 0 apply --ip "$IP" --no-selftest
holds 'all(.checks[]; .code != "nccl.shared_home")'
[ -e "$conf" ] || fail "not written"
