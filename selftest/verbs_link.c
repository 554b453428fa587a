/* SPDX-License-Identifier: MIT */
#include "selftest/verbs_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/str.h"
#include "selftest/measure.h"
#include "selftest/memlock.h"
#include "selftest/rung.h"

#define RECEIVES 16
#define ACCESS	 (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* Tried in turn: what ib_write_lat takes, then less. */
static const uint32_t inline_sizes[] = { 220, 64, 0 };

/* Of a queue pair, IBA 11.2.4.2: local ACK timeout 4.096 us * 2^16 = 0.27 s, six times
 * again (seven is for ever to rxe); a receiver that is not ready is tried again as often
 * after 0.64 ms. */
#define ACK_TIMEOUT 16
#define RETRIES	    6
#define RNR_RETRIES 6
#define RNR_TIMER   12
#define HOP_LIMIT   64

static int cannot_make(const struct np_verbs_end *end, const char *what, int num,
		       struct np_err *err)
{
	uint64_t limit;
	char doing[96];

	num = num > 0 ? num : EIO;
	snprintf(doing, sizeof(doing), "making a %s on %s", what, end->dev.port.name);
	if (num == ENOMEM && np_memlock_limit(&limit))
		return np_memlock_error("verbs", doing, limit, err);
	np_err_set(err, -num, "selftest.verbs.create", "%s failed: %s", doing, strerror(num));
	np_err_hint(err, "see who uses up the HCA (rdma resource), a cgroup's rdma limits, and "
			 "the kernel log");
	return -num;
}

static int make_memory(struct np_verbs_end *end, size_t largest, struct np_err *err)
{
	size_t len = 2 * largest;
	char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t limit;
	char doing[64], text[32];

	if (memory == MAP_FAILED)
		return np_err_nomem(err);
	end->tx = memory;
	end->rx = memory + largest;
	errno = 0;
	end->mr = ibv_reg_mr(end->pd, memory, len, ACCESS);
	if (end->mr)
		return 0;
	if (errno == ENOMEM && np_memlock_limit(&limit) && np_memlock_pinned() + len > limit) {
		snprintf(doing, sizeof(doing), "registering %s", np_size_str(len, text));
		return np_memlock_error("verbs", doing, limit, err);
	}
	return cannot_make(end, "memory region", errno, err);
}

static int make_other_memory(struct np_verbs_end *end, const struct np_verbs_mem *mem,
			     size_t largest, struct np_err *err)
{
	int ret = mem->make(mem->ctx, end->pd, 2 * largest, ACCESS, &end->tx, &end->mr, err);

	if (ret == 0)
		end->rx = end->tx + largest;
	return ret;
}

static int make_qp(const struct np_verbs_link *link, struct np_verbs_end *end, struct np_err *err)
{
	/* what goes inline is read by the CPU: not out of other memory */
	size_t first = link->mem ? NP_ARRAY_SIZE(inline_sizes) - 1 : 0;

	for (size_t i = first; i < NP_ARRAY_SIZE(inline_sizes) && !end->qp; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = end->cq,
			.recv_cq = end->cq,
			.qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = NP_VERBS_DEPTH,
				 .max_recv_wr = RECEIVES,
				 .max_send_sge = 1,
				 .max_recv_sge = 1,
				 .max_inline_data = inline_sizes[i] },
		};

		errno = 0;
		end->qp = ibv_create_qp(end->pd, &attr);
		end->inline_max = inline_sizes[i];
	}
	return end->qp ? 0 : cannot_make(end, "queue pair", errno, err);
}

static int make_end(const struct np_verbs_link *link, struct np_verbs_end *end, struct np_err *err)
{
	int ret;

	errno = 0;
	end->pd = ibv_alloc_pd(end->dev.context);
	if (!end->pd)
		return cannot_make(end, "protection domain", errno, err);
	ret = link->mem ? make_other_memory(end, link->mem, link->largest, err) :
			  make_memory(end, link->largest, err);
	if (ret < 0)
		return ret;
	errno = 0;
	end->cq = ibv_create_cq(end->dev.context, NP_VERBS_DEPTH + RECEIVES, NULL, NULL, 0);
	if (!end->cq)
		return cannot_make(end, "completion queue", errno, err);
	return make_qp(link, end, err);
}

static int does_not_connect(const struct np_verbs_end *end, const char *to, int num,
			    struct np_err *err)
{
	num = num > 0 ? num : EIO;
	if (num == ETIMEDOUT || num == EHOSTUNREACH || num == ENETUNREACH) {
		np_err_set(err, -num, "selftest.verbs.no_path",
			   "the way from %s to its peer cannot be resolved: %s", end->dev.port.name,
			   strerror(num));
		np_err_hint(err, "check the addresses and routes of the ports' netdevs");
		return -num;
	}
	np_err_set(err, -num, "selftest.verbs.connect",
		   "the queue pair on %s does not go to %s: %s", end->dev.port.name, to,
		   strerror(num));
	np_err_hint(err, "see the state of the port, and the kernel log");
	return -num;
}

static int to_init(const struct np_verbs_link *link, int i, struct np_err *err)
{
	const struct np_verbs_end *end = &link->end[i];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = link->path.pkey_index[i],
		.port_num = (uint8_t)end->dev.num,
		.qp_access_flags = ACCESS,
	};
	int ret =
		ibv_modify_qp(end->qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	return ret ? does_not_connect(end, "INIT", ret, err) : 0;
}

static int to_rtr(const struct np_verbs_link *link, int i, struct np_err *err)
{
	const struct np_verbs_end *end = &link->end[i], *peer = &link->end[1 - i];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = link->path.mtu,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = { .dlid = peer->dev.port.lid, .port_num = (uint8_t)end->dev.num },
	};
	int ret;

	if (link->path.grh) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.hop_limit = HOP_LIMIT;
		attr.ah_attr.grh.sgid_index = (uint8_t)link->path.gid[i].index;
		memcpy(attr.ah_attr.grh.dgid.raw, link->path.gid[1 - i].raw, 16);
	}
	ret = ibv_modify_qp(end->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	return ret ? does_not_connect(end, "RTR", ret, err) : 0;
}

static int to_rts(const struct np_verbs_link *link, int i, struct np_err *err)
{
	const struct np_verbs_end *end = &link->end[i];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = ACK_TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_RETRIES,
		.sq_psn = end->psn,
		.max_rd_atomic = 1,
	};
	int ret = ibv_modify_qp(end->qp, &attr,
				IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);

	return ret ? does_not_connect(end, "RTS", ret, err) : 0;
}

static int join(struct np_verbs_link *link, struct np_err *err)
{
	int (*const steps[])(const struct np_verbs_link *, int,
			     struct np_err *) = { to_init, to_rtr, to_rts };

	for (size_t step = 0; step < NP_ARRAY_SIZE(steps); step++) {
		for (int i = 0; i < 2; i++) {
			int ret = steps[step](link, i, err);

			if (ret < 0)
				return ret;
		}
	}
	return 0;
}

static void say(const struct np_verbs_link *link)
{
	for (int i = 0; i < 2; i++) {
		const struct np_verbs_end *end = &link->end[i];
		char path[160];

		np_verbs_path_str(&end->dev.port, &link->path, i, path, sizeof(path));
		np_debug("verbs: %s, %s, queue pair 0x%x, inline to %u bytes", end->dev.port.name,
			 path, end->qp->qp_num, end->inline_max);
	}
}

int np_verbs_link_open(const struct np_verbs_spec *spec, struct np_verbs_link *link,
		       struct np_err *err)
{
	const struct np_verbs_port *ports[2];
	bool same = np_streq(spec->ca[0], spec->ca[1]) && spec->num[0] == spec->num[1];
	int ret = 0;

	memset(link, 0, sizeof(*link));
	link->largest = spec->largest;
	link->mem = spec->mem;
	if (link->mem) {
		link->host = malloc(link->largest);
		if (!link->host)
			return np_err_nomem(err);
	}
	link->deadline_ms = spec->deadline_ms;
	link->seed_base = np_seed_base();
	for (int i = 0; i < 2; i++) {
		struct np_verbs_end *end = &link->end[i];

		ret = np_verbs_dev_open(spec->ca[i], spec->num[i], &end->dev, err);
		if (ret < 0)
			return ret;
		/* packet sequence numbers have 24 bits */
		end->psn = (uint32_t)(link->seed_base >> (24 * i)) & 0xffffff;
	}
	ports[0] = &link->end[0].dev.port;
	ports[1] = same ? ports[0] : &link->end[1].dev.port;
	ret = np_verbs_choose(ports, spec->gid_index, &link->path, err);
	for (int i = 0; i < 2 && ret == 0; i++)
		ret = make_end(link, &link->end[i], err);
	if (ret == 0)
		ret = join(link, err);
	if (ret == 0)
		say(link);
	return ret;
}

void np_verbs_link_close(struct np_verbs_link *link)
{
	for (int i = 0; i < 2; i++) {
		struct np_verbs_end *end = &link->end[i];

		if (end->qp)
			ibv_destroy_qp(end->qp);
	}
	for (int i = 0; i < 2; i++) {
		struct np_verbs_end *end = &link->end[i];

		if (end->cq)
			ibv_destroy_cq(end->cq);
		if (end->mr)
			ibv_dereg_mr(end->mr);
		if (end->pd)
			ibv_dealloc_pd(end->pd);
		if (end->tx && link->mem)
			link->mem->release(link->mem->ctx, end->tx);
		else if (end->tx)
			munmap(end->tx, 2 * link->largest);
		np_verbs_dev_close(&end->dev);
	}
	free(link->host);
	memset(link, 0, sizeof(*link));
}
