/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/dask_files.h"
#include "base/bytes.h"

/* Names and meanings are those of distributed-ucxx.yaml (distributed-ucxx 0.46 and newer
 * look below "distributed-ucxx:" first, then where ucx-py had them) and of
 * distributed.yaml. A key that is left out is null there: Dask's own default. */

static void add_bool(struct np_buf *out, const char *indent, const char *key, bool value)
{
	np_buf_printf(out, "%s%s: %s\n", indent, key, value ? "true" : "false");
}

static bool wants_context(const struct np_dask_input *in)
{
	return in->want->cuda_context == NP_CHOICE_AUTO ? in->gpu :
							  in->want->cuda_context == NP_CHOICE_YES;
}

/* The switches, the same under both names. */
static void add_switches(const struct np_dask_input *in, const char *indent, struct np_buf *out)
{
	if (!in->automatic) {
		add_bool(out, indent, "tcp", true);
		add_bool(out, indent, "infiniband", in->infiniband);
		add_bool(out, indent, "rdmacm", in->infiniband);
		add_bool(out, indent, "cuda-copy", in->gpu);
		if (in->want->nvlink != NP_CHOICE_AUTO)
			add_bool(out, indent, "nvlink", in->want->nvlink == NP_CHOICE_YES);
		else if (in->nvlink != NP_TRI_UNKNOWN)
			add_bool(out, indent, "nvlink", in->nvlink == NP_TRI_YES);
	}
	add_bool(out, indent, "create-cuda-context", wants_context(in));
	if (in->want->connect_timeout_s)
		np_buf_printf(out, "%sconnect-timeout: %d\n", indent, in->want->connect_timeout_s);
}

static void add_pool(const struct np_dask_input *in, const char *indent, struct np_buf *out)
{
	char text[NP_BYTES_STRLEN];

	if (in->want->pool_bytes)
		np_buf_printf(out, "%srmm:\n%s  pool-size: %" PRIu64 " # bytes: %s\n", indent,
			      indent, in->want->pool_bytes,
			      np_bytes_str(in->want->pool_bytes, text));
}

/* What the values mean, once, above both spellings. */
static void add_meanings(const struct np_dask_input *in, struct np_buf *out)
{
	if (in->automatic)
		np_buf_str(out,
			   "# No transport is named: UCX chooses (UCX_TLS=all, UCX 1.11.1 or\n"
			   "# newer). Scheduler and client need create-cuda-context too, then.\n");
	else
		np_buf_str(out,
			   "# infiniband, rdmacm: an InfiniBand port of this node is ACTIVE.\n"
			   "# cuda-copy: there is a GPU. nvlink: NVML says that GPUs have it;\n"
			   "# left out where nobody knows.\n");
	np_buf_str(out, "# create-cuda-context: a CUDA context comes before UCX starts, so that\n"
			"# UCX sees which HCA is near to the GPU.\n");
	if (in->want->pool_bytes)
		np_buf_str(
			out,
			"# pool-size: GPU memory that RMM takes at once and hands out itself.\n"
			"# Each buffer that NVLink or InfiniBand moves has to be mapped for each\n"
			"# pair of processes, up to hundreds of milliseconds; with a pool that is\n"
			"# one mapping. Size it to what a worker uses at least, at most to the\n"
			"# memory of the GPU less 1 or 2 GiB for contexts and libraries.\n"
			"# Scheduler and client that use UCX take as much on their own GPU.\n");
	if (in->want->connect_timeout_s)
		np_buf_str(
			out,
			"# connect-timeout: seconds to set up an endpoint. Too high, a worker\n"
			"# whose peer is gone seems frozen for as long; 60 has always been enough.\n"
			"# distributed-ucxx (up to 0.52) and ucx-py never read this key and give up\n"
			"# after 5 s. What they read, from 0.46 and 0.42 on, is the variable\n"
			"# UCXPY_CONNECT_TIMEOUT in /etc/nodeprep/dask.env. Every version reads\n"
			"# distributed.comm.timeouts.connect.\n");
}

static void add_ucx(const struct np_dask_input *in, struct np_buf *out)
{
	np_buf_str(out, "\n");
	add_meanings(in, out);
	np_buf_str(out, "\n# Read by distributed-ucxx 0.46 and newer.\ndistributed-ucxx:\n");
	add_switches(in, "  ", out);
	add_pool(in, "  ", out);
}

int np_dask_yaml(const struct np_dask_input *in, struct np_buf *out)
{
	struct np_buf text = { 0 };

	np_buf_str(&text,
		   "# Written by nodeprep; changes made here are lost. To change the values, edit\n"
		   "# the [dask] section of /etc/nodeprep/nodeprep.conf and run: nodeprep apply\n"
		   "# Dask reads every file in /etc/dask. ~/.config/dask and DASK_* variables win\n"
		   "# over it; UCX_* variables win over the transports that are named here.\n");
	if (!in->want->tcp)
		add_ucx(in, &text);
	np_buf_str(&text,
		   in->want->tcp ?
			   "\n# Dask's own tcp: nothing to say of UCX.\n" :
			   "\n# The same for ucx-py and for distributed-ucxx before 0.46.\n");
	np_buf_str(&text, "distributed:\n");
	if (!in->want->tcp || in->want->connect_timeout_s)
		np_buf_str(&text, "  comm:\n");
	if (in->want->connect_timeout_s)
		np_buf_printf(&text, "    timeouts:\n      connect: %ds\n",
			      in->want->connect_timeout_s);
	if (!in->want->tcp) {
		np_buf_str(&text, "    ucx:\n");
		add_switches(in, "      ", &text);
		add_pool(in, "  ", &text);
	}
	np_buf_str(&text,
		   "  worker:\n"
		   "    # network libraries do not survive a fork() after they have started\n"
		   "    multiprocessing-method: forkserver\n");
	if (text.failed) {
		np_buf_done(&text);
		return -ENOMEM;
	}
	np_buf_done(out);
	*out = text;
	return 0;
}
