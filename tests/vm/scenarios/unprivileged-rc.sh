# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The rungs as a user without privilege: root's run as nobody and as alice, alice's own run.
# boot: rungs
# seconds: 240
# hw: yes

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
user=${NODEPREP_HW_USER:-alice}
id "$user" >/dev/null 2>&1 || skip "no user $user here: NODEPREP_HW_USER=NAME"
softib_node
must 0 nodeprep apply --ip "$IP" --no-selftest
nodeprep_json 0 selftest rc "${PATIENT[@]}"
rung_is rc ok
nodeprep_json 0 selftest tcp rc --run-as "$user" "${PATIENT[@]}"
rung_is rc ok
rung_is tcp ok
must 0 setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups nodeprep selftest rc "${PATIENT[@]}"
