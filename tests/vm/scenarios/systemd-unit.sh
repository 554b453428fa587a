# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# nodeprep.service with all that it is denied: the first start makes the node ready, files and
# a home included. Enabled, the next boot does it while the subnet manager is late, and before
# network-online.target, remote file systems, slurmd and Dask. systemd-unit-again goes on.
# boot: systemd-unit
# seconds: 150
# reboots: 1
# hw: no, it reboots

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
value() { systemctl show --value -p "$2" "$1"; }
unit() { value nodeprep.service "$1"; }
microseconds() { sed 's/\.\(..\).*/\10000/' "$1"; }
has_ip() { ip addr show ib0 | grep -q "inet 10.0.0.50/24"; }
is_ready() {
	[ "$(unit Result)" = success ] || fail "nodeprep.service: $(unit Result): $(journalctl -b -u nodeprep --no-pager)"
	has_ip || fail "ib0 has no address"
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

	# at the next boot the port is INIT until nodeprep is at work: stand-ins for the subnet
	# manager, and for who wants the interface ready
	echo "options softib state=2" >/etc/modprobe.d/softib.conf
	stand_in() {
		printf '[Unit]\nWants=network-online.target\n[Service]\n%s\nExecStart=/bin/bash -c "%s"\n[Install]\nWantedBy=multi-user.target\n' \
			"$2" "$3" >"/etc/systemd/system/$1.service"
		must 0 systemctl enable "$1.service"
	}
	stand_in vm-sm "" "until ip addr show ib0 | grep -q 10.0.0.50; do sleep 0.2; done; cp /proc/uptime /run/vm-addressed; sleep 2; cp /proc/uptime /run/vm-sm; echo ACTIVE >/sys/kernel/debug/softib/mlx5_0/state"
	for name in slurmd dask-worker; do
		stand_in "$name" $'Type=oneshot\nRemainAfterExit=yes' "ip addr show ib0 >/run/vm-$name"
	done
	reboot_node
fi

say "ib0 is addressed at multi-user, and the order is right"
must 0 systemctl is-active multi-user.target nodeprep.service
# as docs/deploy.md says
must 0 systemctl status --no-pager nodeprep.service
must 0 journalctl --no-pager -b -u nodeprep.service
is_ready
must 0 systemd-analyze critical-chain --fuzz=1h slurmd.service
! journalctl -b --no-pager | grep "ordering cycle" || fail "units are in a cycle"
began=$(unit ExecMainStartTimestampMonotonic)
ready=$(unit ActiveEnterTimestampMonotonic)
addressed=$(microseconds /run/vm-addressed)
up=$(microseconds /run/vm-sm)
echo "nodeprep.service began at $began us, was ready at $ready us; ib0 had its address by $addressed us, the port was set ACTIVE at $up us"
((began < addressed && up < ready)) || fail "the port did not come up while it ran"
[ "$(unit NRestarts)" = 0 ] || fail "it was not waited for"
before() {
	local at
	at=$(value "$2" ActiveEnterTimestampMonotonic)
	echo "$2 at $at us"
	((at > 0 && at <= $1)) || fail "$2 at $at us, which is late"
}
before "$began" systemd-modules-load.service
before "$began" systemd-udev-trigger.service
# found by udev, so these come while it runs, and it waits
for name in rdma-load-modules@infiniband.service rdma-load-modules@rdma.service rdma-hw.target; do
	before "$addressed" "$name"
done
for name in network-online.target remote-fs-pre.target slurmd.service dask-worker.service multi-user.target; do
	at=$(value "$name" InactiveExitTimestampMonotonic)
	echo "$name at $at us"
	((at >= ready)) || fail "$name at $at us, not after nodeprep.service"
done
for name in slurmd dask-worker; do
	if ! grep -q "LOWER_UP.*state UP" "/run/vm-$name" || ! grep -q "inet 10.0.0.50/24" "/run/vm-$name"; then
		fail "$name did not find ib0 ready: $(cat "/run/vm-$name")"
	fi
done
