/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "agent/dask_files.h"

#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What systemd reads as it stands, without quotes (systemd.exec(5), EnvironmentFile=). */
static bool is_plain(const char *value)
{
	static const char all[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,:=^/+-@";

	return value[0] && strspn(value, all) == strlen(value);
}

static bool needs_cuda(const char *transport)
{
	return np_starts_with(transport, "cuda") || strcmp(transport, "gdr_copy") == 0;
}

/* distributed-ucxx makes a CUDA context wherever UCX_TLS has "cuda" in it, and cannot
 * start where there is no GPU. */
static void add_tls(const struct np_dask_input *in, struct np_buf *out)
{
	np_auto_strv struct np_strv all = { 0 };
	np_auto_buf struct np_buf kept = { 0 };
	size_t n = 0;

	if (in->gpu || !in->ucx_tls || in->ucx_tls[0] == '^')
		return;
	out->failed |= np_strv_split(&all, in->ucx_tls, ",") < 0;
	for (size_t i = 0; i < all.n; i++)
		if (!needs_cuda(all.v[i]))
			np_buf_printf(&kept, "%s%s", n++ ? "," : "", all.v[i]);
	out->failed |= kept.failed;
	if (n > 0 && n < all.n)
		np_buf_printf(out,
			      "# No GPU here: with \"cuda\" in UCX_TLS Dask would ask for a CUDA\n"
			      "# context and not start.\nUCX_TLS=%s\n",
			      kept.data ? kept.data : "");
}

static void add_ucx(const struct np_dask_input *in, struct np_buf *out)
{
	add_tls(in, out);
	if (in->infiniband && !in->automatic)
		np_buf_str(out, "UCX_MAX_RNDV_RAILS=1\n"
				"# rdmacm alone, which Dask would set, drops the fallback\n"
				"UCX_SOCKADDR_TLS_PRIORITY=rdmacm,tcp\n");
	if (in->whole_alloc)
		np_buf_str(out, "# the default of UCX " NP_UCX_WHOLE_ALLOC_SINCE
				", and this one is older\n" NP_UCX_WHOLE_ALLOC "=cuda\n");
	if (in->want->connect_timeout_s)
		np_buf_printf(out,
			      "# seconds; what distributed-ucxx and ucx-py read\n"
			      "UCXPY_CONNECT_TIMEOUT=%d\n",
			      in->want->connect_timeout_s);
	if (in->want->find_forks)
		np_buf_str(out,
			   "# A process that forks after UCX has started now says \"IB:\n"
			   "# ibv_fork_init() was disabled or failed, yet a fork() has been\n"
			   "# issued\": find what started it. Not for every day: such a child can\n"
			   "# corrupt memory that is registered.\n"
			   "UCX_IB_FORK_INIT=n\n");
}

/* The launcher starts a worker for each. Where the environment has another list than that
 * of ucx.env, somebody has set it, and it stays. */
static void add_gpus(const struct np_dask_input *in, struct np_buf *out)
{
	if (!in->want->per_gpu || !in->gpus || in->gpus->n == 0)
		return;
	np_buf_printf(
		out,
		"# A worker for each GPU, in the order of their PCI addresses, with the ports\n"
		"# that are nearest to it.\n"
		"NODEPREP_DASK_GPUS=%zu\n",
		in->gpus->n);
	if (in->want->tcp || !in->net_devices)
		return;
	np_buf_printf(out, "NODEPREP_DASK_NET_DEVICES=%s\n", in->net_devices);
	for (size_t i = 0; i < in->gpus->n; i++)
		if (in->gpus->v[i][0])
			np_buf_printf(out, "NODEPREP_DASK_NET_DEVICES_%zu=%s\n", i, in->gpus->v[i]);
}

int np_dask_env(const struct np_dask_input *in, struct np_buf *out, struct np_err *err)
{
	const struct np_want_dask *want = in->want;
	const char *protocol = want->tcp ? "tcp" : "ucx";
	struct np_buf text = { 0 };
	char shown[80];

	if (!is_plain(in->interface)) {
		np_err_set(err, -EINVAL, "dask.value_invalid",
			   "the name of interface %s cannot be written for systemd",
			   np_printable(in->interface, shown, sizeof(shown)));
		np_err_hint(err, "rename it, or name another in [dask] interface");
		return -EINVAL;
	}
	np_buf_printf(
		&text,
		"# Written by nodeprep; changes made here are lost. To change the values, edit\n"
		"# the [dask] section of /etc/nodeprep/nodeprep.conf and run: nodeprep apply\n"
		"# For nodeprep-dask-scheduler.service and nodeprep-dask-worker@.service.\n"
		"NODEPREP_DASK_PROTOCOL=%s\n"
		"NODEPREP_DASK_INTERFACE=%s\n",
		protocol, in->interface);
	if (want->scheduler[0]) {
		const char *colon = strchr(want->scheduler, ':');

		np_buf_printf(&text, "NODEPREP_DASK_PORT=");
		if (colon)
			np_buf_printf(&text, "%s\n", colon + 1);
		else
			np_buf_printf(&text, "%d\n", NP_DASK_PORT);
		np_buf_printf(&text, "NODEPREP_DASK_SCHEDULER=%s://%s", protocol, want->scheduler);
		if (!colon)
			np_buf_printf(&text, ":%d", NP_DASK_PORT);
		np_buf_str(&text, "\n");
	} else {
		np_buf_printf(&text, "NODEPREP_DASK_PORT=%d\n", NP_DASK_PORT);
	}
	if (want->prefix[0])
		np_buf_printf(&text, "PATH=%s/bin:" SYSTEM_PATH "\n", want->prefix);
	if (!want->tcp)
		add_ucx(in, &text);
	add_gpus(in, &text);
	if (text.failed) {
		np_buf_done(&text);
		return np_err_nomem(err);
	}
	np_buf_done(out);
	*out = text;
	return 0;
}
