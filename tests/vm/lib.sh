# shellcheck shell=bash disable=SC2016,SC2034 # filters of jq; variables of the scenarios
# SPDX-License-Identifier: MIT
# What the scenarios share; sourced by each. A scenario runs as root under bash -eu: in
# the test VM, or on a physical node with NODEPREP_HW=1. It ends with 0 when all came as
# it must, with 77 after skip, with anything else when it failed.
set -eEu
HW=${NODEPREP_HW:-0}
IP=${NODEPREP_HW_IP:-10.0.0.50/24}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# The rungs' deadline is for real HCAs; an emulated processor needs more.
PATIENT=(--timeout 90)
[ "$HW" = 0 ] || PATIENT=(${NODEPREP_HW_TIMEOUT:+--timeout "$NODEPREP_HW_TIMEOUT"})

# Nor is an emulated processor slow by any fault of a port.
if [ "$HW" = 0 ]; then
	mkdir -p /etc/nodeprep/conf.d
	printf '[selftest]\nmin_bandwidth_MBps.%s = 1\n' verbs rc >/etc/nodeprep/conf.d/emulated.conf
fi

say() { echo "--- $*"; }
fail() {
	echo "FAIL: $*"
	exit 1
}
skip() {
	echo "skip: $*"
	exit 77
}
trap 'echo "FAIL: line $LINENO: $BASH_COMMAND" >&2' ERR

# What a login on such a node has; a stock Debian gives 8 MiB, too little for any HCA.
ulimit -l unlimited

# reboot_node: ends this stage; the scenario runs again after the reboot with STAGE one
# higher. In the systemd form only, and as many times as `# reboots:` says.
STAGE=$(cat /vm/stage 2>/dev/null || echo 1)
reboot_node() {
	echo $((STAGE + 1)) >/vm/stage
	exit 88
}

# expect_cut, then cut_power: the same by the end of the power. What is not on the disk by then is
# lost; the host is told before, since nothing can be said after.
expect_cut() {
	echo $((STAGE + 1)) >/vm/stage
	sync
	echo "@@VM reboot (power cut) $(cut -d' ' -f1 /proc/uptime)"
	sleep 0.5 # the serial line
	echo 1 >/proc/sys/kernel/sysrq
}
cut_power() {
	echo b >/proc/sysrq-trigger
	sleep 60
	fail "the node is still there after its power was cut"
}

# ---- before and after an undo, over boots (systemd form) ----
# remember NAME, files_are NAME: content, mode and owner of all files in /etc and the homes; those
# called before also with the time of nccl.conf, which a revert brings back.
node_files() {
	(cd / && find etc root home -xdev -type f ! -path "etc/nodeprep/conf.d/*" \
		-exec stat -c "%n %a %u %g" {} + -exec md5sum {} + | sort)
	[ "$1" != before ] || stat -c "%n %y" /etc/nccl.conf
}
remember() { node_files "$1" >"/var/lib/vm-$1"; }
files_are() { node_files "$1" | diff "/var/lib/vm-$1" - || fail "files are not as they were: $1"; }
no_address() { [ -z "$(ip -o -4 addr show ib0)" ] || fail "ib0 has an address"; }
# no temporary file, and nothing that was set aside
no_leftovers() {
	local left
	left=$(find /etc /root /home /var/lib/nodeprep /run/nodeprep -xdev \( -name ".*.nodeprep*" -o -name "*damaged*" \
		-o -name "*other-machine*" \) 2>/dev/null || :)
	[ -z "$left" ] || fail "left behind: $left"
}

# must CODE COMMAND...: runs it, shows what it says, and fails unless it exits with CODE.
must() {
	local want=$1 code=0
	shift
	echo "\$ $*"
	"$@" >"$WORK/out" 2>"$WORK/err" || code=$?
	cat "$WORK/out" "$WORK/err"
	[ "$code" = "$want" ] || fail "exit $code, not $want: $*"
}

# nodeprep_json CODE ARGUMENTS...: as must, with --json; the document is then in $WORK/json.
nodeprep_json() {
	local want=$1 code=0
	shift
	echo "\$ nodeprep $* --json"
	nodeprep "$@" --json >"$WORK/json" 2>"$WORK/err" || code=$?
	if ! jq -e .schema "$WORK/json" >/dev/null 2>&1; then
		cat "$WORK/json" "$WORK/err"
		fail "no JSON document: nodeprep $*"
	fi
	jq -rc '(.actions[] | "  \(.status) \(.target) \(.id): \(.from // "-") -> \(.to // "-")"),
		(.checks[] | "  \(.status) \(.target) \(.code // .id): \(.message // "")"),
		(.selftest[] | "  \(.status) \(.rung) \(.device): \(.message // "")"),
		(.error // empty | "  error \(.code): \(.message)")' "$WORK/json"
	cat "$WORK/err"
	[ "$code" = "$want" ] || fail "exit $code, not $want: nodeprep $*"
}

# holds FILTER [JQ OPTIONS]: the last document satisfies the jq filter.
holds() {
	local filter=$1
	shift
	jq -e "$@" "$filter" "$WORK/json" >/dev/null || fail "not so: $filter"
}
has_code() { holds 'any(.checks[], .selftest[]; .code == $c and .target + (.device // "") == $t)' --arg c "$1" --arg t "$2"; }
rung_is() { holds '[.selftest[] | select(.rung == $r) | if .status == "warn" and .code == "selftest.slow" then "ok" else .status end] | any(. == $s)' --arg r "$1" --arg s "$2"; }

# check_is STATUS CODE TARGET [TEXT]: the last document has that check, and its message holds TEXT.
check_is() {
	holds 'any(.checks[]; .status == $s and .code == $c and .target == $t and (.message | contains($m)))' \
		--arg s "$1" --arg c "$2" --arg t "$3" --arg m "${4:-}"
}
# hint_has TARGET TEXT: so does the hint of a check of TARGET.
hint_has() { holds 'any(.checks[]; .target == $t and (.hint // "" | contains($m)))' --arg t "$1" --arg m "$2"; }
# said_once TARGET TEXT: the message of each check of TARGET holds TEXT, and but once.
said_once() {
	holds '[.checks[] | select(.target == $t)] | length > 0 and all(.message | indices($m) | length == 1)' \
		--arg t "$1" --arg m "$2"
}

# ---- one rung by the self-test's own program ----
SELFTEST=/usr/libexec/nodeprep/nodeprep-selftest
AS=() # what to run it by
# rung CODE RUNG ARGUMENTS...: runs it, shows its entries, insists on the exit code; the
# document is then in $WORK/json.
rung() {
	local want=$1 code=0
	shift
	echo "\$ nodeprep-selftest $*"
	"${AS[@]}" "$SELFTEST" "$@" --timeout-ms 90000 >"$WORK/json" 2>"$WORK/err" || code=$?
	jq -rc '.selftest[] | "  \(.status) \(.device) \(.code): \(.message) [\(.transport)] \(.sizes | map([.size_bytes, .latency_us, .bandwidth_MBps])) \(.counters // "")"' "$WORK/json" || cat "$WORK/json"
	cat "$WORK/err"
	[ "$code" = "$want" ] || fail "exit $code, not $want: $*"
}
# code_is CODE STATUS: of its only entry; message_has TEXT
code_is() { holds '.selftest | length == 1 and .[0].code == $c and .[0].status == $s' --arg c "$1" --arg s "$2"; }
message_has() { holds '.selftest[0].message | contains($m)' --arg m "$1"; }

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
	local until=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$until" ] || fail "still not so after the time: $*"
		sleep 0.1
	done
}

# What a node's boot loads (udev and the units of rdma-core). NODEPREP_LOADS=1 leaves it
# to nodeprep.
load_modules() {
	[ "${NODEPREP_LOADS:-0}" = 0 ] || return 0
	[ "$HW" = 0 ] || return 0
	modprobe -a ib_uverbs ib_umad ib_ipoib rdma_ucm
}

# ---- modules that are no good, and the stand-in for gdrdrv (in the VM only) ----
# install_module FILE NAME [KERNEL]: FILE of tests/vm/broken/README.md as the module NAME, where DKMS puts it.
install_module() {
	local tree="/lib/modules/${3:-$(uname -r)}"
	mkdir -p "$tree/updates/dkms"
	cp "/vm/modules/$1.ko" "$tree/updates/dkms/$2.ko"
	: >/run/vm.depmod
	depmod "${3:-$(uname -r)}"
}
# module_param MODULE NAME=VALUE...: of a module that is loaded.
module_param() {
	local module=$1 pair
	shift
	for pair; do echo "${pair#*=}" >"/sys/module/$module/parameters/${pair%%=*}"; done
}
# want_module NAME LINE...: a section of nodeprep.conf.
want_module() {
	printf '[module %s]\n' "$1" >>/etc/nodeprep/nodeprep.conf
	shift
	printf '%s\n' "$@" >>/etc/nodeprep/nodeprep.conf
}
is_live() { [ "$(cat "/sys/module/$1/initstate" 2>/dev/null)" = live ]; }
gdrdrv_major() { awk '$2 == "gdrdrv" { print $1 }' /proc/devices; }

# ---- the software HCA (in the VM only) ----
# softib_param NAME=VALUE...: for HCAs added from now on; tests/vm/softib/README.md has the list.
softib_param() {
	local pair
	modprobe softib
	for pair; do
		echo "${pair#*=}" >"/sys/module/softib/parameters/${pair%%=*}"
	done
}
# softib_add CA...: each with one port, ACTIVE unless the parameter state says otherwise.
softib_add() {
	local ca
	modprobe softib
	for ca; do
		rdma link add "$ca" type softib netdev lo
		wait_for 5 test -e "/sys/class/infiniband/$ca/ports/1/state"
	done
}
# softib_set CA KNOB VALUE: see tests/vm/softib/README.md
softib_set() { echo "$3" >"/sys/kernel/debug/softib/$1/$2"; }
# the usual node: mlx5_0, and with it ib0
softib_node() {
	if [ "$HW" = 0 ]; then
		softib_add "${@:-mlx5_0}"
		load_modules
		[ "${NODEPREP_LOADS:-0}" = 1 ] || wait_for 5 test -e /sys/class/net/ib0
	fi
	CA=${NODEPREP_HW_CA:-mlx5_0}
	IFNAME=${NODEPREP_HW_IFNAME:-ib0}
}
running() { [ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" = 1 ]; }

# ---- two nodes in one VM ----
# two_nodes: network namespaces n1 and n2, each with its own HCA (mlx5_0, mlx5_1), its ib0
# (down) and its files.
two_nodes() {
	local n
	# must come before the first namespace; HCAs then belong to one namespace each
	rdma system set netns exclusive
	softib_add mlx5_0 mlx5_1
	load_modules
	wait_for 5 test -e /sys/class/net/ib1
	for n in 1 2; do
		ip netns add "n$n"
		ip -n "n$n" link set lo up
		rdma dev set "mlx5_$((n - 1))" netns "n$n"
	done
	for n in 1 2; do
		mkdir -p "$WORK/n$n"/root "$WORK/n$n"/run "$WORK/n$n"/var/lib
		cp -r /etc "$WORK/n$n/etc"
		# the move made a new netdev, and it is still in the first namespace
		wait_for 10 netdev_of "mlx5_$((n - 1))"
		ip link set "$(netdev_of "mlx5_$((n - 1))")" netns "n$n" name ib0
	done
	must 0 ip -n n1 link show ib0
	must 0 ip -n n2 link show ib0
}
# netdev_of HCA: by its GUID, which ends in the number of the HCA in the order of adding
netdev_of() {
	local file
	file=$(grep -l ":0${1#mlx5_}\$" /sys/class/net/ib*/address) && basename "$(dirname "$file")"
}
# node N COMMAND...: on that node; its /etc, /root, /var and /run are its own.
node() {
	local n=$1
	shift
	ip netns exec "n$n" bash -c 'for d in etc root var run; do mount --bind "$0/$d" "/$d"; done
		exec "$@"' "$WORK/n$n" "$@"
}
