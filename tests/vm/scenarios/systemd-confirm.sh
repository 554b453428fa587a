# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# apply --confirm, and the node boots before anybody confirmed: by a shutdown, which has the guard take the run back,
# by the end of the power, and by a reboot whose guard was killed. The next apply or confirm then takes it back
# first. What the kernel held has ended with the boot, and nobody tries to undo it.
# boot: systemd-undo
# seconds: 120
# reboots: 3
# hw: no, it reboots

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
state=/var/lib/nodeprep
unconfirmed() {
	nodeprep_json 0 apply --ip "$IP" --no-selftest --confirm 600
	holds '.changed and .ready'
	check_is warn confirm.pending node "600 s"
	[ -s $state/journal.json ] || fail "no journal"
	files_are ours
}
kill_guard() {
	pkill -KILL -x nodeprep-guard
	wait_for 5 sh -c "! pgrep -x nodeprep-guard"
}
say "stage $STAGE"
wait_for 30 test -e /sys/class/net/ib0
case $STAGE in
1)
	printf 'NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=eth0\n' >/etc/nccl.conf
	touch -d "2020-02-03 04:05:06" /etc/nccl.conf
	remember before
	# what apply makes of it, to compare with
	nodeprep_json 0 apply --ip "$IP" --no-selftest
	remember ours
	nodeprep_json 0 revert
	files_are before
	unconfirmed
	say "the clock of the day jumps, forwards and back: the time to confirm is another one"
	for jump in "+3 hours" "-6 hours" "+3 hours"; do
		date -s "$jump"
		sleep 6 # the guard looks every 5 s
		nodeprep_json 3 apply --ip "$IP" --no-selftest
		holds '.error.code == "confirm.waiting"'
		pgrep -x nodeprep-guard >/dev/null || fail "nobody waits any more"
	done
	files_are ours
	reboot_node
	;;
2)
	say "the guard was told to end by the shutdown, and took it back"
	files_are before
	[ ! -e $state/journal.json ] || fail "the journal is still there"
	no_address
	nodeprep_json 4 confirm
	holds '.error.code == "confirm.too_late"'
	nodeprep_json 0 revert
	holds '.actions == []'
	unconfirmed
	kill_guard
	expect_cut
	cut_power
	;;
3)
	say "the power ended: the next apply takes it back, and then does its own"
	files_are ours
	no_address
	printf '[netdev ib0]\naddress = 10.0.0.51/24\n' >/etc/nodeprep/nodeprep.conf
	nodeprep_json 0 apply --no-selftest
	holds 'any(.checks[]; .code == "confirm.expired" and .target == "node")'
	holds '.ready and .changed'
	ip -o -4 addr show ib0 | grep -q " 10.0.0.51/24 " || fail "no address"
	rm /etc/nodeprep/nodeprep.conf
	nodeprep_json 0 revert
	files_are before
	no_address
	unconfirmed
	kill_guard
	reboot_node
	;;
4)
	say "nobody was left to take it back: confirm comes too late, and does it"
	files_are ours
	no_address
	nodeprep_json 4 confirm
	holds '.error.code == "confirm.too_late"'
	files_are before
	[ ! -e $state/journal.json ] || fail "the journal is still there"
	nodeprep_json 4 confirm
	nodeprep_json 0 revert
	holds '.changed == false and .actions == []'
	no_leftovers
	;;
esac
