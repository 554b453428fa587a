# shellcheck shell=bash disable=SC2016 # filters of jq
# SPDX-License-Identifier: MIT
# Another node has the address: apply asks by ARP over real IPoIB, refuses with the port GUID
# of that node, and leaves this one as it was. What this node holds already, and an address that
# nobody has, go on; --no-probe does not ask; without carrier nothing can be asked.
# boot: two-nodes
# seconds: 150
# hw: no, it makes namespaces of HCAs

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
two_nodes
# what nodeprep_json runs
nodeprep() { node 1 nodeprep "$@"; }
# the kernel chooses a queueing discipline, and an MTU, when a netdev first comes up
state() {
	ip -n n1 -o addr show ib0 scope global
	ip -n n1 -o link show ib0 | sed 's/mtu [0-9]* qdisc [a-z_]*//'
	node 1 find /etc /root ! -type d -newer "$WORK/begin"
}
refused() {
	nodeprep_json 3 apply "$@" --no-selftest
	holds '.error.code == "netdev.address_in_use" and .changed == false and .ready == false'
	holds '.error.message | contains("10.0.0.52") and contains($g) and contains("ib0")' --arg g "$guid"
	state >"$WORK/after"
	diff "$WORK/before" "$WORK/after" || fail "node 1 is not as it was"
}

must 0 node 2 nodeprep apply --ip 10.0.0.52/24 --no-selftest
# 80:00:...:50:6b:4b:03:00:f5:00:01 -> 506b:4b03:00f5:0001
guid=$(node 2 cat /sys/class/net/ib0/address | tail -c 24 | sed 's/\(..\):\(..\)/\1\2/g')
echo "node 2 is port GUID $guid"
touch "$WORK/begin"

say "ib0 is down"
state >"$WORK/before"
refused --ip 10.0.0.52/24
holds '[.actions[] | select(.id == "netdev.link" and .status == "undone")] | length == 1'
holds 'all(.actions[]; .status == "undone")'
holds '.error.hint | contains("0x" + ($g | gsub(":"; "")))' --arg g "$guid"

say "a free one beside it is not put on either"
refused --ip 10.0.0.53/24 --ip 10.0.0.52/24

say "ib0 is up: it is asked on before anything is touched"
must 0 ip -n n1 addr add 10.0.0.51/24 dev ib0
must 0 ip -n n1 link set ib0 up
wait_for 10 node 1 sh -c 'ip link show ib0 | grep -q LOWER_UP'
state >"$WORK/before"
refused --ip 10.0.0.52/24
holds '.actions == []'

say "--no-probe"
nodeprep_json 0 apply --ip 10.0.0.52/24 --no-selftest --no-probe
holds 'any(.actions[]; .id == "netdev.address_add" and .status == "done")'

say "what is here already is not asked for: a second apply, and another length"
nodeprep_json 0 apply --ip 10.0.0.52/24 --no-selftest
holds '.changed == false'
nodeprep_json 0 apply --ip 10.0.0.52/16 --no-selftest
must 0 ip -n n1 addr show ib0
grep -q "10.0.0.52/16" "$WORK/out" || fail "the length did not change"

say "nobody has it"
must 0 ip -n n1 addr flush dev ib0 scope global
must 0 ip -n n1 link set ib0 down
nodeprep_json 0 apply --ip 10.0.0.53/24 --no-selftest
holds 'all(.checks[]; .code != "netdev.not_probed")'

say "no subnet manager, no carrier: it goes on, and the report says that nobody was asked"
must 0 ip -n n1 addr flush dev ib0 scope global
must 0 ip -n n1 link set ib0 down
softib_set mlx5_0 state INIT
nodeprep_json 1 apply --ip 10.0.0.54/24 --no-selftest --timeout 3
has_code netdev.not_probed ib0
has_code port.no_sm mlx5_0:1
must 0 ip -n n1 addr show ib0
grep -q "10.0.0.54/24" "$WORK/out" || fail "the address did not go on"
