/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "selftest/ranks_pair.h"
#include "selftest/ranks_ucx.h"

/* What each says before the allreduce. */
struct ready {
	char nccl;   /* it can use NCCL */
	char broken; /* a pair of it is broken: a ring would hang there */
};

static struct ready ready_of(const struct np_buf *part)
{
	struct ready ready = { 0, 1 };

	if (part->len == sizeof(ready))
		memcpy(&ready, part->data, sizeof(ready));
	return ready;
}

static bool has_broken_pair(const struct np_ranks *ranks)
{
	for (int i = 0; i < ranks->size; i++)
		if (ranks->board->cells[i].status > NP_CELL_OK)
			return true;
	return false;
}

static int odd_one(struct np_ranks *ranks, int able, int odd, const struct np_err *why,
		   struct np_err *err)
{
	bool own = odd == ranks->rank;

	ranks->board->err_peer = odd;
	np_err_set(err, -ENODEV, "ranks.gpu_differs",
		   "%d of %d ranks can use NCCL, rank %d on %s cannot%s%s", able, ranks->size, odd,
		   ranks->hosts[odd], own ? ": " : "", own ? why->message : "");
	np_err_hint(err, "give each rank a GPU of its own and NCCL, or reduce in host memory with "
			 "--host-memory");
	return -ENODEV;
}

/* NCCL where every rank can, host memory where none can, nothing where a pair is broken. */
static int choose_backend(struct np_ranks *ranks, enum np_ranks_backend *backend,
			  struct np_err *err)
{
	struct np_buf *all = calloc((size_t)ranks->size, sizeof(*all));
	struct ready mine = { .broken = has_broken_pair(ranks) };
	int able = 0, broken = 0, odd = -1, ret;
	struct np_err why;

	if (!all)
		return np_err_nomem(err);
	np_err_clear(&why);
	if (!ranks->options->host_only)
		mine.nccl = np_ranks_nccl_ready(ranks, &ranks->board->allreduce, &why);
	ret = np_ranks_share(ranks, "who has a GPU", &mine, sizeof(mine), all, err);
	for (int i = 0; i < ranks->size && ret == 0; i++) {
		struct ready ready = ready_of(&all[i]);

		able += ready.nccl;
		broken += ready.broken;
		if (!ready.nccl && odd < 0)
			odd = i;
	}
	if (ret == 0)
		np_ranks_parts_done(all, ranks->size);
	free(all);
	if (ret < 0)
		return ret;
	ranks->has_gpu = able == ranks->size;
	if (able > 0 && able < ranks->size)
		return odd_one(ranks, able, odd, &why, err);
	if (!broken)
		*backend = able > 0 ? NP_BACKEND_NCCL : NP_BACKEND_HOST;
	return 0;
}

static int allreduce(struct np_ranks *ranks, struct np_err *err)
{
	enum np_ranks_backend backend = NP_BACKEND_NONE;
	int64_t start = np_now_ms();
	int ret;

	if (ranks->options->no_allreduce)
		return 0;
	ranks->board->phase = NP_PHASE_ALLREDUCE;
	ret = choose_backend(ranks, &backend, err);
	if (ret < 0 || backend == NP_BACKEND_NONE)
		return ret;
	ranks->board->allreduce.backend = backend;
	ret = backend == NP_BACKEND_NCCL ?
		      np_ranks_allreduce_nccl(ranks, &ranks->board->allreduce, err) :
		      np_ranks_allreduce_host(ranks, &ranks->board->allreduce, err);
	ranks->board->allreduce_ms = (uint64_t)(np_now_ms() - start);
	return ret;
}

uint64_t np_ranks_rss_kb(void)
{
	char line[128];
	struct np_strv words = { 0 };
	uint64_t pages = 0;

	/* /proc/PID/statm: size and resident, in pages */
	if (np_file_read_line_at(AT_FDCWD, "/proc/self/statm", line, sizeof(line)) > 0 &&
	    np_strv_split(&words, line, " ") == 0 && words.n > 1 &&
	    np_parse_u64(words.v[1], 10, UINT32_MAX, &pages) < 0)
		pages = 0;
	np_strv_done(&words);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static int work(struct np_ranks *ranks, struct np_err *err)
{
	struct np_err ignored;
	int ret = np_ranks_ucx_open(ranks, err);

	ranks->board->open_kb = np_ranks_rss_kb();
	if (ret == 0 && !ranks->options->close_endpoints)
		ret = np_ranks_connect(ranks, err);
	ranks->board->connected_kb = np_ranks_rss_kb();
	if (ret == 0)
		ret = np_ranks_all_rounds(ranks, err);
	if (ret < 0)
		return ret;
	ret = allreduce(ranks, err);
	np_ranks_flush(ranks);
	/* who goes first would break the endpoints of those still at work */
	if (np_ranks_fence(ranks, "the end of the tests", &ignored) == 0)
		ranks->board->passed_all = 1;
	else if (ret == 0)
		*err = ignored;
	return ret == 0 ? err->num : ret;
}

void np_ranks_work(struct np_ranks *ranks)
{
	struct np_ranks_board *board = ranks->board;
	struct np_err err;

	np_err_clear(&err);
	np_ranks_tick(ranks);
	if (work(ranks, &err) < 0)
		board->err = err;
	board->rss_kb = np_ranks_rss_kb();
	board->phase = NP_PHASE_DONE;
	board->finished = 1;
	/* the endpoints of those still at work would break: the end of the supervisor is ours */
	if (board->err.num < 0) {
		close(ranks->link);
		for (;;)
			pause();
	}
}
