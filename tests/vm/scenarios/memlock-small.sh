# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# A login limit of memlock that is too small for the HCA: the rung fails and names the limit, its
# line and the fix. A caller with a small limit of its own makes no difference.
# boot: rungs
# seconds: 90
# hw: yes

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
must 0 nodeprep apply --ip "$IP" --no-selftest
# what the caller has makes no difference; what the user gets at login does
mkdir -p /etc/security/limits.d
echo '* - memlock 64' >/etc/security/limits.d/zz-site.conf
nodeprep_json 1 selftest rc "${PATIENT[@]}"
holds 'all(.selftest[]; .status == "fail" and .code == "selftest.rc.memlock" and (.message | contains("64 KiB") and contains("/etc/security/limits.d/zz-site.conf:1")))'
holds 'all(.selftest[]; .hint | contains("memlock"))'
rm /etc/security/limits.d/zz-site.conf
echo '* - memlock unlimited' >/etc/security/limits.d/zz-site.conf
ulimit -l 64
nodeprep_json 0 selftest rc "${PATIENT[@]}"
