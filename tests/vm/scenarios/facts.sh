# shellcheck shell=bash disable=SC2016 # jq has its own $
# SPDX-License-Identifier: MIT
# What show says of ports and netdevs is what the kernel says of them; show, plan and check
# change nothing.
# boot: links
# seconds: 60
# hw: yes

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
# without the times that are left to addresses which expire
state() {
	ip -d addr show "$IFNAME" | sed 's/\(valid_lft\|preferred_lft\) [^ ]*//g'
	find /etc/nodeprep /etc/nccl.conf /etc/profile.d /root/.nccl.conf /var/lib/nodeprep \
		-exec ls -ld --full-time {} + 2>/dev/null || :
}
state >"$WORK/before"

nodeprep_json 0 show ports netdevs
for dir in /sys/class/infiniband/*/ports/*; do
	port=${dir##*/} ca=${dir#/sys/class/infiniband/} ca=${ca%%/*}
	is() {
		holds 'any(.show.ports[]; .ca == $ca and .port == ($port | tonumber) and (.[$key] | tostring) == $value)' \
			--arg ca "$ca" --arg port "$port" --arg key "$1" --arg value "$2"
	}
	is state "$(sed 's/.*: //' "$dir/state")"
	is phys_state "$(sed 's/.*: //' "$dir/phys_state")"
	is link_layer "$(cat "$dir/link_layer")"
	is lid "$(($(cat "$dir/lid")))"
	is sm_lid "$(($(cat "$dir/sm_lid")))"
done
holds '.show.ports | length == $n' --argjson n "$(find /sys/class/infiniband/*/ports/* -maxdepth 0 | wc -l)"
netdev=/sys/class/net/$IFNAME
holds 'any(.show.netdevs[]; .name == $name and .mode == $mode and .mtu == $mtu and .ifindex == $index and .ca == $ca)' \
	--arg name "$IFNAME" --arg ca "$CA" --arg mode "$(cat "$netdev/mode")" \
	--argjson mtu "$(cat "$netdev/mtu")" --argjson index "$(cat "$netdev/ifindex")"

nodeprep plan --ip "$IP" --json >"$WORK/json"
nodeprep check --ip "$IP" --json >"$WORK/json" || :
state | cmp - "$WORK/before" || fail "show, plan or check changed something"
