# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# `make demo-vm`: the main job on a node with real InfiniBand interfaces, as a new user
# would see it. Runs in the test VM; exits 0 only when each step came out as it must.
# seconds: 240

set -u
bad=0
ulimit -l unlimited
title() { printf '\n== %s\n' "$*"; }
say() { printf '   %s\n' "$*"; }
wrong() {
	say "WRONG: $*"
	bad=1
}
# run CODE COMMAND...: shown with all it says; kept in /tmp/out
run() {
	local want=$1 code=0
	shift
	say "\$ $*"
	"$@" >/tmp/out 2>&1 </dev/null || code=$?
	sed 's/^/   | /' /tmp/out
	if [ "$code" = "$want" ]; then say "exit code $code, as it must be"; else wrong "exit code $code, not $want"; fi
}
has() { grep -q -- "$1" /tmp/out || wrong "it does not say: $1"; }

title "The node: Debian's kernel $(uname -r), nothing set up yet"
say "its HCA is made of software; the kernel's ib_ipoib, ib_umad and ib_uverbs, libibumad,"
say "UCX and nodeprep itself are what a physical node runs"
modprobe softib
rdma link add mlx5_0 type softib netdev lo
[ "${NODEPREP_LOADS:-0}" = 1 ] || modprobe -a ib_uverbs ib_umad ib_ipoib rdma_ucm
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ -e /sys/class/net/ib0 ] && break
	sleep 0.2
done
run 0 ibstat
run 0 ip addr show ib0
has "state DOWN"

say "its processor is emulated: what it moves a second says nothing, and any speed will do"
mkdir -p /etc/nodeprep
printf '[selftest]\nmin_bandwidth_MBps.%s = 1\n' verbs rc >/etc/nodeprep/nodeprep.conf

title "1. One command makes it ready, and moves data to prove it"
run 0 nodeprep apply --ip 10.0.0.50/24 --timeout 90
has "netdev.address_add: 10.0.0.50/24"
has "ok      selftest umad mlx5_0:1"
has "ok      selftest verbs mlx5_0:1"
has "ok      selftest rc mlx5_0:1"
has "nodeprep apply: ready"
run 0 ip addr show ib0
has "UP,LOWER_UP"
has "inet 10.0.0.50/24"
run 0 cat /root/.nccl.conf /etc/nodeprep/ucx.env

title "2. Again: there is nothing to do"
run 0 nodeprep apply --ip 10.0.0.50/24 --no-selftest
has "ready, nothing to do"

title "3. The facts"
run 0 nodeprep show ports netdevs
has "mlx5_0"

title "4. The subnet manager lets the port go: the cause, and the fix"
echo INIT >/sys/kernel/debug/softib/mlx5_0/state
run 1 nodeprep check --ip 10.0.0.50/24
has "port.no_sm"

printf '\n'
if [ $bad = 0 ]; then say "demo-vm: each step came out as it must"; else say "demo-vm: something went wrong, see above"; fi
exit $bad
