# shellcheck shell=bash disable=SC2016 # jq has its own $
# SPDX-License-Identifier: MIT
# The module is there and does not load: built for another kernel, damaged, blacklisted,
# replaced by a command, an init that fails (C23). The code says which, the message has the
# kernel's own line, once. require = yes fails the node; auto warns, and the node is ready.
# boot: modules
# seconds: 300
# hw: no, it changes the module tree

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
kernel=$(uname -r)
want_module gdrdrv "require = yes"
# refused CODE: apply tries gdrdrv, it fails, and the node's other things are done.
refused() {
	nodeprep_json 1 apply --ip "$IP" --no-selftest
	holds '[.actions[] | select(.id == "module.load") | .target + " " + .status] == ["gdrdrv failed"]'
	holds '[.checks[] | select(.target == "gdrdrv") | .status + " " + .code] == ["fail " + $c]' --arg c "$1"
	holds '.ready == false and all(.checks[]; .target == "gdrdrv" or .status != "fail")'
	[ ! -e /sys/module/gdrdrv ] || fail "gdrdrv is loaded"
}

say "built for another release, with another ABI"
install_module gdrdrv-release gdrdrv
refused module.vermagic
said_once gdrdrv "gdrdrv: disagrees about version of symbol module_layout"
check_is fail module.vermagic gdrdrv "built for another kernel: ${kernel%-*-*}-2-amd64 SMP preempt"
check_is fail module.vermagic gdrdrv "here is $kernel"
hint_has gdrdrv "kernel $kernel"

say "built for a kernel of another configuration"
install_module gdrdrv-flags gdrdrv
refused module.vermagic
said_once gdrdrv "gdrdrv: version magic '$kernel SMP mod_unload modversions ' should be '$kernel SMP preempt mod_unload modversions '"

say "damaged"
install_module gdrdrv-format gdrdrv
refused module.format

say "an option that it does not take"
install_module gdrdrv gdrdrv
printf '[module gdrdrv]\nrequire = yes\noptions = open_errno=yes\n' >/etc/nodeprep/nodeprep.conf
refused module.option
said_once gdrdrv "gdrdrv: \`yes' invalid for parameter \`open_errno'"
! grep -q gdrdrv /etc/modules-load.d/nodeprep.conf 2>/dev/null || fail "the next boot would fail"

say "and without that option"
printf '[module gdrdrv]\nrequire = yes\n' >/etc/nodeprep/nodeprep.conf
nodeprep_json 0 apply --ip "$IP" --no-selftest
is_live gdrdrv || fail "gdrdrv is not loaded"
rmmod gdrdrv

say "blacklisted: nothing is tried"
mkdir -p /etc/modprobe.d
echo "blacklist gdrdrv" >/etc/modprobe.d/site.conf
nodeprep_json 1 apply --ip "$IP" --no-selftest
holds '[.checks[] | select(.target == "gdrdrv") | .status + " " + .code] == ["fail module.blacklisted"]'
check_is fail module.blacklisted gdrdrv "/etc/modprobe.d/site.conf"
holds 'all(.actions[]; .id != "module.load")'
must 1 test -e /sys/module/gdrdrv

say "a command in its place: it is not run"
echo "install gdrdrv /bin/touch $WORK/ran" >/etc/modprobe.d/site.conf
nodeprep_json 1 apply --ip "$IP" --no-selftest
check_is fail module.install_command gdrdrv "/etc/modprobe.d/site.conf"
must 1 test -e "$WORK/ran"
rm /etc/modprobe.d/site.conf

say "its init fails"
rm /etc/nodeprep/nodeprep.conf
install_module nvidia_peermem nvidia_peermem
for pair in "19 No such device" "5 Input/output error" "22 Invalid argument"; do
	printf '[module nvidia_peermem]\nrequire = yes\noptions = init_errno=%s\n' "${pair%% *}" >/etc/nodeprep/nodeprep.conf
	nodeprep_json 1 apply --ip "$IP" --no-selftest
	holds '[.checks[] | select(.target == "nvidia_peermem") | .status + " " + .code] == ["fail module.init_failed"]'
	said_once nvidia_peermem "${pair#* }"
	said_once nvidia_peermem "nvidia_peermem: no firmware in slot 3"
	must 1 test -e /sys/module/nvidia_peermem
done

say "auto: warnings, and the node is ready"
rmmod rdma_ucm
install_module rdma_ucm rdma_ucm
printf '[module rdma_ucm]\nrequire = auto\noptions = init_errno=5\n' >/etc/nodeprep/nodeprep.conf
nodeprep_json 0 apply --ip "$IP" --no-selftest
check_is warn module.init_failed rdma_ucm "rdma_ucm: no firmware in slot 3"
holds '.ready'
echo "blacklist rdma_ucm" >/etc/modprobe.d/site.conf
nodeprep_json 0 apply --ip "$IP" --no-selftest
check_is warn module.blacklisted rdma_ucm "/etc/modprobe.d/site.conf"
holds '.ready and .changed == false'

say "what was asked for with no: not looked at"
printf '[module rdma_ucm]\nrequire = no\n' >/etc/nodeprep/nodeprep.conf
nodeprep_json 0 apply --ip "$IP" --no-selftest
holds 'all(.checks[]; .target != "rdma_ucm")'
