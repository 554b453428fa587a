# shellcheck shell=bash disable=SC2016 # jq has its own $
# SPDX-License-Identifier: MIT
# gdrdrv only registers a major: apply makes /dev/gdrdrv with it and with the configured mode
# and group. A wrong node, a file and a symlink at that name are replaced, and a symlink is
# not followed (C20).
# boot: modules
# seconds: 300
# hw: no, it brings a stand-in for gdrdrv

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
install_module gdrdrv gdrdrv
want_module gdrdrv "require = yes" "mode = 0660" "group = alice"

# node_is MODE USER GROUP: /dev/gdrdrv is the device of the registered major, and has them.
node_is() {
	local want have
	want=$(printf 'character special file %x 0 %s %s %s' "$(gdrdrv_major)" "$1" "$2" "$3")
	have=$(stat -c '%F %t %T %a %U %G' /dev/gdrdrv)
	[ "$have" = "$want" ] || fail "/dev/gdrdrv is: $have; wanted: $want"
	[ -z "$(find /dev -name '.gdrdrv*')" ] || fail "left in /dev: $(find /dev -name '.gdrdrv*')"
}
# made: apply makes the node as wanted, in one go.
made() {
	nodeprep_json 0 apply --ip "$IP" --no-selftest
	holds 'any(.actions[]; .id == "gdrdrv.node" and .target == "/dev/gdrdrv" and .status == "done")'
	node_is 660 root alice
	holds 'any(.checks[]; .target == "gdrdrv" and .status == "ok" and (.message | contains("driver 2.5")))'
}

say "loaded by this apply, no node"
made
nodeprep_json 0 apply --ip "$IP" --no-selftest
holds '.changed == false and .actions == []'
nodeprep_json 0 check --ip "$IP"

say "loaded before, no node"
rm /dev/gdrdrv
nodeprep_json 1 check --ip "$IP"
check_is fail gdrcopy.node_missing gdrdrv
made

say "a node of another major"
rm /dev/gdrdrv
mknod -m 0666 /dev/gdrdrv c 1 3
nodeprep_json 1 check --ip "$IP"
check_is fail gdrcopy.node_wrong gdrdrv
made

say "a block device of the same number"
rm /dev/gdrdrv
mknod -m 0666 /dev/gdrdrv b "$(gdrdrv_major)" 0
made

say "a regular file"
rm /dev/gdrdrv
echo keep >/dev/gdrdrv
made

say "a FIFO: nobody waits for its other end"
rm /dev/gdrdrv
mkfifo /dev/gdrdrv
made

say "a symlink to a file, and one to the right device: neither is followed"
mknod -m 0600 /dev/elsewhere c "$(gdrdrv_major)" 0
echo precious >"$WORK/precious"
chmod 0600 "$WORK/precious"
for there in "$WORK/precious" /dev/elsewhere; do
	rm /dev/gdrdrv
	ln -s "$there" /dev/gdrdrv
	made
	[ "$(cat "$WORK/precious") $(stat -c %a "$WORK/precious")" = "precious 600" ] || fail "the link was followed"
	[ "$(stat -c '%a %G' /dev/elsewhere)" = "600 root" ] || fail "the link was followed to the device"
done
rm /dev/elsewhere

say "mode and group were changed by hand"
inode=$(stat -c %i /dev/gdrdrv)
chmod 0600 /dev/gdrdrv
chown root:root /dev/gdrdrv
made
[ "$(stat -c %i /dev/gdrdrv)" = "$inode" ] || fail "the right node was not kept"

say "a directory is nobody's to remove"
rm /dev/gdrdrv
mkdir /dev/gdrdrv
nodeprep_json 1 apply --ip "$IP" --no-selftest
[ -d /dev/gdrdrv ] || fail "the directory is gone"
holds 'any(.checks[]; .target == "gdrdrv" and .status == "fail")'
rmdir /dev/gdrdrv

say "the major moves at the next load"
made
rmmod gdrdrv
insmod /vm/modules/gdrdrv.ko want_major=200 use_persistent_mapping=1
[ "$(gdrdrv_major)" = 200 ] || fail "major $(gdrdrv_major)"
made

say "another mode, and no group: that of the node stays; a new one is root's"
printf '[module gdrdrv]\nrequire = yes\nmode = 0666\n' >/etc/nodeprep/nodeprep.conf
nodeprep_json 0 apply --ip "$IP" --no-selftest
node_is 666 root alice
nodeprep_json 0 apply --ip "$IP" --no-selftest
holds '.changed == false and .actions == []'
rm /dev/gdrdrv
nodeprep_json 0 apply --ip "$IP" --no-selftest
node_is 666 root root
