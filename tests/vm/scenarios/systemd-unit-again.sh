# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# On the node of systemd-unit, booted and ready: what nodeprep.service tries again and what it
# does not; an interface that comes back gets its address, a child that somebody makes starts
# nothing, a revert stays; the hook of the packages.
# boot: systemd-unit
# seconds: 300
# hw: no, it stops ports and takes ib_ipoib away

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
HOOK=/usr/libexec/nodeprep/post-install
value() { systemctl show --value -p "$2" "$1"; }
unit() { value nodeprep.service "$1"; }
has_ip() { ip addr show ib0 | grep -q "inet 10.0.0.50/24"; }
says() { journalctl -b --no-pager -o cat -u "$1" | grep -qF -e "$2"; }
config() {
	printf '[netdev ib0]\n%s\nmode = datagram\n[nccl]\nusers = alice\n' "$1" >/etc/nodeprep/nodeprep.conf
	[ $# = 1 ] || printf '%s\n' "${@:2}" >>/etc/nodeprep/nodeprep.conf
}
ADDRESS="address = 10.0.0.50/24"

say "a late subnet manager is tried again, for as long as it takes"
mkdir -p /run/systemd/system/nodeprep.service.d
printf '[Service]\nRestartSec=1\n' >/run/systemd/system/nodeprep.service.d/vm.conf
must 0 systemctl daemon-reload
config "$ADDRESS" "[ports]" "wait = 1"
softib_set mlx5_0 state INIT
must 1 systemctl restart nodeprep.service
again() { [ "$(unit NRestarts)" -ge 1 ]; }
wait_for 40 again
has_ip || fail "the address went"
softib_set mlx5_0 state ACTIVE
wait_for 40 systemctl -q is-active nodeprep.service
has_ip || fail "the address went"

say "what does not come by itself is not tried again"
config "$ADDRESS" "[module gdrdrv]" "require = yes"
must 1 systemctl restart nodeprep.service
[ "$(unit ActiveState) $(unit SubState) $(unit NRestarts)" = "failed failed 0" ] || fail "$(systemctl status nodeprep.service)"
says nodeprep.service "nodeprep: fail gdrdrv: " || fail "not a word of why"

say "no address: nothing to do, said, and no failure"
config "mtu = keep"
must 0 systemctl restart nodeprep.service
[ "$(unit ActiveState) $(unit Result)" = "inactive exec-condition" ] || fail "$(systemctl status nodeprep.service)"
says nodeprep.service "pending: no address is configured" || fail "not a word of it"

say "the interface comes back, and gets its address by itself"
config "$ADDRESS"
must 0 systemctl start nodeprep.service
index() { cat /sys/class/net/ib0/ifindex; }
reload() {
	before=$(index)
	modprobe -r ib_ipoib
	modprobe ib_ipoib
	wait_for 10 test -e /sys/class/net/ib0
	[ "$(index)" != "$before" ] || fail "it is the same interface"
}
reload
wait_for 40 has_ip
done_with() { [ "$(value "nodeprep-netdev@$1.service" Result) $(value "nodeprep-netdev@$1.service" ActiveState)" = "$2 inactive" ]; }
wait_for 40 done_with ib0 success
has_ip || fail "no address"

say "a child that somebody makes starts nothing"
ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001
wait_for 40 done_with ib0.8001 exec-condition
[ "$(value nodeprep-netdev@ib0.8001.service ExecMainStartTimestampMonotonic)" = 0 ] || fail "it was started"
ip link del ib0.8001

say "the hook: nothing to change; after a revert it is all done again, and the interface is the same"
hook() {
	must 0 "$HOOK"
	grep -qF -e "$1" "$WORK/err" || fail "it does not say '$1'"
}
same=$(index)
hook "nothing to change"
must 0 nodeprep revert
no_address
hook "ready: "
has_ip || fail "the hook set no address"
[ "$(index)" = "$same" ] || fail "the interface was made anew"

say "what was reverted does not come back with the interface"
must 0 nodeprep revert
reload
skipped() { [ "$(value nodeprep-netdev@ib0.service ConditionResult)" = no ]; }
wait_for 40 skipped
no_address
