#!/bin/bash
# SPDX-License-Identifier: MIT
# Between two scenarios of one boot: no HCA, no namespace, no file of nodeprep. The kernel
# modules stay loaded, but for those that scenarios bring. Run in the VM only.
for netns in $(ip netns list 2>/dev/null | cut -d' ' -f1); do
	ip netns pids "$netns" | xargs -r kill -9
	ip netns del "$netns"
done
for ca in /sys/kernel/debug/softib/*/; do
	[ -d "$ca" ] || continue
	# a device in a namespace that is gone comes back by itself
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		rdma link del "$(basename "$ca")" 2>/dev/null && break
		sleep 0.3
	done
done
for link in $(rdma link show 2>/dev/null | sed -n 's/^link \([^ ]*\)\/1 .*/\1/p'); do
	rdma link del "$link"
done
rdma system set netns shared 2>/dev/null
for pair in state=4 sm=Y connected=Y parent=Y group_mtu=4; do
	[ ! -e /sys/module/softib ] || echo "${pair#*=}" >"/sys/module/softib/parameters/${pair%=*}"
done
for module in /sys/module/*/parameters/hang /sys/module/gdrdrv/parameters/open_errno; do
	[ -e "$module" ] || continue
	case $module in */hang) echo N >"$module" ;; esac
	module=$(basename "${module%/parameters/*}")
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		rmmod "$module" 2>/dev/null && break
		sleep 0.3
	done
done
rm -rf /dev/gdrdrv "/lib/modules/$(uname -r)/updates" "/lib/modules/$(uname -r)/build" \
	/lib/modules/*-other /usr/src/gdrdrv-* /etc/modprobe.d/site.conf \
	/etc/modprobe.d/nodeprep.conf /etc/modules-load.d/nodeprep.conf
[ ! -e /run/vm.depmod ] || depmod
rm -f /run/vm.depmod
rm -rf /etc/nccl.conf /etc/nodeprep /etc/profile.d/nodeprep-* /root/.nccl.conf /home/alice/.nccl.conf \
	/etc/security/limits.d /var/lib/nodeprep /run/nodeprep
mkdir -p /etc/nodeprep
rmmod rdma_rxe dummy 2>/dev/null
for left in /sys/kernel/debug/softib/* /sys/class/infiniband/*; do
	[ ! -e "$left" ] || exit 1
done
