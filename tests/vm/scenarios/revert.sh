# shellcheck shell=bash disable=SC2016 # jq has its own $
# SPDX-License-Identifier: MIT
# apply on a node that has booted with nothing, and back: modules that nodeprep loaded and nobody uses are gone, what
# hangs on more than a use count stays with a word, files and netdev are as they were. A second revert does nothing.
# Then once more with what people have: their addresses, their files, a program that holds a module.
# What came along with them goes as well, last first, where nobody uses it.
# boot: bare-revert
# seconds: 300
# hw: no, it takes modules away

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
loaded() { cut -d' ' -f1 /proc/modules | sort; }
# more_than LIST: modules that are there now and were not in LIST
more_than() { loaded | grep -vxFf "$1" || :; }
files() { (cd / && find etc root home var/lib -xdev ! -path "etc/nodeprep/conf.d*" ! -path "var/lib/nodeprep*" \
	-exec stat -c "%n %F %a %u %g %y" {} + | grep -v " directory " | sort
	find etc root home -xdev -type f -exec busybox md5sum {} + | sort); }
netdev() { ip -o addr show ib0 | sed "s/ tentative//; s/valid_lft.*//" && cat /sys/class/net/ib0/{mode,mtu,flags}; }

export NODEPREP_LOADS=1
softib_node
[ ! -e /sys/module/ib_ipoib ] || fail "this boot is not bare: ib_ipoib is there"
loaded >"$WORK/modules"
files >"$WORK/files"

say "apply and back"
nodeprep_json 0 apply --ip "$IP" --no-selftest
jq -r '.actions[] | select(.id == "module.load" and .status == "done") | .target' "$WORK/json" | sort >"$WORK/ours"
for module in ib_ipoib ib_umad; do
	grep -qx "$module" "$WORK/ours" || fail "apply did not load $module"
done
came=$(more_than "$WORK/modules" | grep -vxFf "$WORK/ours" | tr '\n' ' ')
[ "$came" = "configfs ib_cm iw_cm rdma_cm " ] || fail "came along: $came"
holds 'any(.actions[]; .target == "rdma_ucm" and (.to | startswith("loaded, with ") and contains("rdma_cm")))'
jq -e '[.since_first[].module // empty] | contains(["configfs", "ib_cm", "iw_cm", "rdma_cm"])' \
	/var/lib/nodeprep/record.json >/dev/null || fail "what came along is not in the record"
nodeprep_json 0 revert
holds '.ready and .changed'
holds '[.actions[] | select(.id == "module.unload" and .status == "done") | .target] | contains(["ib_umad"])'
# last first: nothing goes before what uses it
holds '[.actions[] | select(.id == "module.unload" and .status == "done") | .target] | index("rdma_ucm") < index("rdma_cm")
	and index("rdma_cm") < index("iw_cm") and index("rdma_cm") < index("configfs")'
check_is warn revert.module_kept ib_cm "it stays loaded: ib_ipoib uses it"
check_is warn revert.module_kept ib_ipoib "it stays loaded"
for module in ib_umad rdma_ucm rdma_cm iw_cm configfs; do
	[ ! -e "/sys/module/$module" ] || fail "$module is still there"
done
# ib_uverbs is the driver's need here: it was there before
[ -e /sys/module/ib_uverbs ] || fail "a module was taken away that nodeprep did not load"
is_live ib_ipoib || fail "ib_ipoib was taken away"
# each module of ours is gone, or there is a word on it
while read -r module; do
	[ ! -e "/sys/module/$module" ] || check_is warn revert.module_kept "$module" "it stays loaded"
done <"$WORK/ours"
left=$(more_than "$WORK/modules" | tr '\n' ' ')
[ "$left" = "ib_cm ib_ipoib " ] || fail "left behind: $left"
files | diff "$WORK/files" - || fail "files are not as they were"
[ -z "$(ip -o -4 addr show ib0)" ] || fail "ib0 still has an address"
[ "$(($(cat /sys/class/net/ib0/flags) & 1))" = 0 ] || fail "ib0 is still up"
[ "$(ls -A /var/lib/nodeprep)" = record.json ] || fail "more than the record of what was kept: $(ls -A /var/lib/nodeprep)"

say "again"
loaded >"$WORK/modules"
nodeprep_json 0 revert
holds '.changed == false and .actions == []'
loaded | diff "$WORK/modules" - || fail "the second revert changed modules"

say "a node on which people have been"
ip link set ib0 up
ip addr add 10.9.9.9/24 brd + dev ib0
printf 'NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=eth0\n' >/etc/nccl.conf
chmod 0640 /etc/nccl.conf
chown 1000:1000 /etc/nccl.conf
touch -d "2020-02-03 04:05:06" /etc/nccl.conf
wait_for 10 running ib0
wait_for 10 sh -c "! ip addr show ib0 | grep -q tentative"
files >"$WORK/files"
netdev >"$WORK/netdev"
loaded >"$WORK/modules"
nodeprep_json 0 apply --ip "$IP" --no-selftest
holds 'any(.actions[]; .id == "module.load" and .target == "ib_umad" and .status == "done")'
exec 9<>/dev/infiniband/umad0
# one that somebody has mounted is in use; what came before it still goes
mkdir -p "$WORK/configfs"
mount -t configfs none "$WORK/configfs"
nodeprep_json 0 revert
holds '.ready and .changed'
check_is warn revert.module_kept ib_umad "it is in use"
is_live ib_umad || fail "ib_umad was taken from under a program"
check_is warn revert.module_kept configfs "it stays loaded: it is in use"
is_live configfs || fail "configfs was taken from under a mount"
[ ! -e /sys/module/rdma_cm ] || fail "rdma_cm is still there"
umount "$WORK/configfs"
files | diff "$WORK/files" - || fail "files are not as they were"
netdev | diff "$WORK/netdev" - || fail "ib0 is not as it was"
exec 9>&-

say "nobody holds it any more"
nodeprep_json 0 revert
holds '[.actions[].target] | contains(["configfs", "ib_umad"])'
loaded | diff "$WORK/modules" - || fail "modules are not as they were"
nodeprep_json 0 revert
holds '.changed == false and .actions == []'

say "one that was there before, and one that somebody loads beside it"
modprobe iw_cm
loaded >"$WORK/before"
nodeprep_json 0 apply --ip "$IP" --no-selftest
holds 'any(.actions[]; .target == "rdma_ucm" and (.to | contains("iw_cm") | not))'
nodeprep_json 0 revert
loaded | diff "$WORK/before" - || fail "modules are not as they were"
modprobe -r iw_cm
loaded | diff "$WORK/modules" - || fail "iw_cm was held by something"

say "a run that was killed while it loaded"
nodeprep apply --ip "$IP" --no-selftest --json >"$WORK/killed" 2>&1 &
apply=$!
while [ ! -e /sys/module/iw_cm ] && kill -0 "$apply"; do :; done
kill -9 "$apply"
wait "$apply" || :
[ -e /var/lib/nodeprep/journal.json ] || fail "apply had ended: $(cat "$WORK/killed")"
sleep 2 # its child ends after the module in hand
[ -n "$(more_than "$WORK/modules")" ] || fail "nothing was loaded"
nodeprep_json 0 revert
holds '[.actions[] | select(.id == "module.unload" and .status == "done") | .target] | contains(["iw_cm"])'
loaded | diff "$WORK/modules" - || fail "modules are not as they were"

say "the last run alone"
nodeprep_json 0 apply --ip "$IP" --no-selftest
printf '[netdev ib0]\naddress = %s\nmode = connected\n' "$IP" >/etc/nodeprep/nodeprep.conf
nodeprep_json 0 apply --no-selftest
[ "$(cat /sys/class/net/ib0/mode)" = connected ] || fail "ib0 is not connected"
nodeprep_json 0 revert --last
[ "$(cat /sys/class/net/ib0/mode)" = datagram ] || fail "ib0 is still connected"
ip -o -4 addr show ib0 | grep -q " $IP " || fail "the run before the last one was taken back as well"
rm /etc/nodeprep/nodeprep.conf
nodeprep_json 0 revert
files | diff "$WORK/files" - || fail "files are not as they were"
netdev | diff "$WORK/netdev" - || fail "ib0 is not as it was"
loaded | diff "$WORK/modules" - || fail "modules are not as they were"
