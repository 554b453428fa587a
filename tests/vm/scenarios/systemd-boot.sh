# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# A node that boots with systemd, udev and rdma-core's units, which load what they load on any
# node. apply makes it ready; after a reboot the files are as they were and only the netdev's
# runtime state is to be done again.
# boot: systemd-plain
# seconds: 120
# reboots: 1
# hw: no, it reboots

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
written() { (cd / && find root/.nccl.conf etc/nccl.conf etc/nodeprep etc/profile.d/nodeprep-* \
	-type f 2>/dev/null | sort | xargs md5sum); }

say "stage $STAGE: what the boot loaded"
wait_for 30 test -e /sys/class/net/ib0
[ "$(systemctl is-active multi-user.target)" = active ] || fail "multi-user.target is not reached"
for module in ib_uverbs rdma_ucm ib_ipoib ib_umad; do
	wait_for 30 test -e "/sys/module/$module"
done
for unit in rdma-load-modules@rdma rdma-load-modules@infiniband; do
	wait_for 30 systemctl -q is-active "$unit"
done
[ -z "$(systemctl --failed --no-legend --plain)" ] || fail "failed units: $(systemctl --failed --no-legend --plain)"

if [ "$STAGE" = 1 ]; then
	nodeprep_json 0 apply --ip 10.0.0.50/24 --no-selftest
	holds '.changed and .ready'
	holds 'any(.actions[]; .id == "netdev.address_add" and .status == "done")'
	holds 'all(.actions[]; .id != "module.load")'
	written >/var/lib/vm-written
	[ -s /var/lib/vm-written ] || fail "no file was written"
	cat /proc/sys/kernel/random/boot_id >/var/lib/vm-boot
	reboot_node
fi

[ "$(cat /var/lib/vm-boot)" != "$(cat /proc/sys/kernel/random/boot_id)" ] || fail "this is the same boot"
written | cmp - /var/lib/vm-written || fail "the files changed over the reboot"
! ip addr show ib0 | grep -q "inet 10.0.0.50" || fail "ib0 has an address before apply"
nodeprep_json 0 apply --ip 10.0.0.50/24 --no-selftest
holds '.changed and .ready and (.actions | length > 0 and all(.id | startswith("netdev.")))'
written | cmp - /var/lib/vm-written || fail "the second apply wrote files"
nodeprep_json 0 apply --ip 10.0.0.50/24 --no-selftest
holds '.changed == false'
