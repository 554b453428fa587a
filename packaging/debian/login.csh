# SPDX-License-Identifier: MIT
# Debian's csh.login reads this folder, not /etc/profile.d: UCX's variables for csh and tcsh,
# once nodeprep(8) has written them.
if (-r /etc/profile.d/nodeprep-ucx.csh) then
  source /etc/profile.d/nodeprep-ucx.csh
endif
