/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_DASK_FILES_H
#define NP_AGENT_DASK_FILES_H

#include "agent/config.h"
#include "agent/ucx_env.h"

/* The texts of /etc/dask/nodeprep.yaml and /etc/nodeprep/dask.env. Pure: no I/O. */

struct np_dask_input {
	const struct np_want_dask *want;
	const char *interface; /* the netdev that Dask is given */
	const char *ucx_tls;   /* what units get in UCX_TLS; NULL = nothing */
	bool automatic;	       /* UCX chooses its transports: [ucx] profile = auto */
	bool infiniband;       /* a port is usable */
	bool gpu;
	bool whole_alloc; /* UCX has to be told to register GPU memory by whole allocations */
	/* with want->per_gpu: of each GPU, by PCI address, the value of UCX_NET_DEVICES; ""
	 * = that of the node */
	const struct np_strv *gpus;
	const char *net_devices; /* of the node, in ucx.env; NULL = none */
	enum np_tri nvlink;	 /* what NVML says; UNKNOWN = nothing is written */
};

/* Both replace the contents of @out. Returns 0 or -ENOMEM. */
int np_dask_yaml(const struct np_dask_input *in, struct np_buf *out) np_must_check;

/* For the units of etc/systemd. Besides -ENOMEM: -EINVAL with message (code
 * "dask.value_invalid") for an interface whose name cannot stand in such a file. */
int np_dask_env(const struct np_dask_input *in, struct np_buf *out,
		struct np_err *err) np_must_check;

#endif
