# shellcheck shell=bash disable=SC2016 # jq has its own $
# SPDX-License-Identifier: MIT
# gdrdrv is wanted by the configuration: apply loads it with the options given, and lists it
# with them for the next boot. Loaded it stays, and is not loaded again.
# boot: modules
# seconds: 150
# hw: no, it brings a stand-in for gdrdrv

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
install_module gdrdrv gdrdrv
want_module gdrdrv "require = yes" "options = use_persistent_mapping=1 info_enabled=1"

say "not loaded yet: check says so, and plan would load it"
nodeprep_json 1 check --ip "$IP"
holds 'any(.checks[]; .target == "gdrdrv" and .status == "fail" and .code == "module.missing")'
must 1 test -e /sys/module/gdrdrv

say "apply loads it"
nodeprep_json 0 apply --ip "$IP" --no-selftest
holds '[.actions[] | select(.id == "module.load" and .target == "gdrdrv") | .status] == ["done"]'
is_live gdrdrv || fail "gdrdrv is not loaded"
must 0 cat /proc/driver/gdrdrv/params
grep -q "Use persistent mapping: yes" "$WORK/out" || fail "the options did not arrive"
must 0 cat /etc/modprobe.d/nodeprep.conf
grep -qx "options gdrdrv use_persistent_mapping=1 info_enabled=1" "$WORK/out" || fail "not for modprobe"
must 0 cat /etc/modules-load.d/nodeprep.conf
grep -qx gdrdrv "$WORK/out" || fail "not for the boot"
holds 'any(.checks[]; .target == "gdrdrv" and .status == "ok" and (.message | contains("driver 2.5")))'

say "ready, and nothing is loaded again"
nodeprep_json 0 apply --ip "$IP" --no-selftest
holds '.changed == false and .actions == []'
must 0 nodeprep show modules --json
jq -e 'any(.. | objects; .name? == "gdrdrv" and .state == "live")' "$WORK/out" >/dev/null ||
	fail "show modules does not have gdrdrv live"
