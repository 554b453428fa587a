# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# nodeprep.service with all that it is denied: the first start makes the node ready, files and
# a home included; enabled, the boot after that does it too.
# boot: systemd-unit
# seconds: 120
# reboots: 1
# hw: no, it reboots

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
unit() { systemctl show --value -p "$1" nodeprep.service; }
is_ready() {
	[ "$(unit Result)" = success ] || fail "nodeprep.service: $(unit Result): $(journalctl -b -u nodeprep --no-pager)"
	ip addr show ib0 | grep -q "inet 10.0.0.50/24" || fail "ib0 has no address"
	nodeprep_json 0 apply --no-selftest
	holds '.ready and .changed == false'
}

if [ "$STAGE" = 1 ]; then
	wait_for 30 test -e /sys/class/net/ib0
	chown alice: /home/alice
	printf '[netdev ib0]\naddress = 10.0.0.50/24\nmode = datagram\n[nccl]\nusers = alice\n' \
		>/etc/nodeprep/nodeprep.conf
	# the unit may set the mode, in /sys
	echo connected >/sys/class/net/ib0/mode || fail "this netdev has one mode"
	must 0 systemctl start nodeprep.service
	[ "$(cat /sys/class/net/ib0/mode)" = datagram ] || fail "the mode was not set"
	is_ready
	[ "$(stat -c %U /home/alice/.nccl.conf)" = alice ] || fail "no file in the home of alice"
	[ "$(stat -c %a /etc/nccl.conf)" = 644 ] || fail "nobody can read /etc/nccl.conf"
	must 0 systemctl enable nodeprep.service
	reboot_node
fi

wait_for 60 systemctl -q is-active nodeprep.service
is_ready
