/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_ucx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/memlock.h"
#include "selftest/ucp_move.h"
#include "selftest/ucx_log.h"

/* Opening devices and their drivers, once. */
#define OPEN_MS 60000
/* A connection is made anew when its first packet is lost, after 1 s and 3 s with TCP. */
#define CONNECT_PATIENCE_MS 5000
/* A new endpoint may take the driver a while, then and when the peer answers. */
#define CONNECT_QUIET_MS 15000
#define CLOSE_MS	 1000
#define FLUSH_MS	 2000

uint64_t np_ranks_tag(enum np_ranks_tag what, int number, int sender)
{
	return (uint64_t)what << 56 | ((uint64_t)number & 0xffffff) << 32 | (uint32_t)sender;
}

static int ucx_error(ucs_status_t status, const char *doing, struct np_err *err)
{
	const char *said = np_ucx_log_first();
	uint64_t limit;

	if ((np_ucx_log_memlock() || status == UCS_ERR_NO_MEMORY) && np_memlock_limit(&limit)) {
		np_err_set(err, -ENOMEM, "ranks.memlock",
			   "UCX could not pin memory while %s: the limit is %llu KiB", doing,
			   (unsigned long long)limit / 1024);
		np_err_hint(err, "raise memlock for this user and for the launcher's daemons: "
				 "[limits] in nodeprep.conf; LimitMEMLOCK=infinity of slurmd");
		return -ENOMEM;
	}
	np_err_set(err, -EIO, "ranks.ucx", "UCX failed while %s: %s%s%s", doing,
		   ucs_status_string(status), *said ? ": " : "", said);
	np_err_hint(err, status == UCS_ERR_NO_DEVICE ?
				 "see which transports and devices there are: ucx_info -d; and "
				 "what UCX_TLS and UCX_NET_DEVICES say" :
				 "read UCX's own messages on stderr");
	return -EIO;
}

/* ---- opening ---- */

static void progress(struct np_ranks *ranks)
{
	for (int i = 0; i < 64; i++)
		ucp_worker_progress(ranks->ucx->link.worker[0]);
}

static bool alive(void *arg)
{
	np_ranks_tick(arg);
	return false;
}

static int open_worker(struct np_ranks_ucx *ucx, struct np_err *err)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
		.features = UCP_FEATURE_TAG,
		.estimated_num_eps = (size_t)ucx->n,
	};
	ucp_worker_params_t worker = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE,
	};
	ucp_config_t *config = NULL;
	ucs_status_t status;

	status = ucp_config_read(NULL, NULL, &config);
	if (status != UCS_OK)
		return ucx_error(status, "reading its configuration", err);
	status = ucp_init(&params, config, &ucx->link.context);
	ucp_config_release(config);
	if (status != UCS_OK)
		return ucx_error(status, "opening its transports", err);
	status = ucp_worker_create(ucx->link.context, &worker, &ucx->link.worker[0]);
	if (status == UCS_OK && np_ucx_log_memlock()) /* it would try for ever */
		status = UCS_ERR_NO_MEMORY;
	return status == UCS_OK ? 0 : ucx_error(status, "opening its devices", err);
}

static int learn_addresses(struct np_ranks *ranks, struct np_err *err)
{
	struct np_ranks_ucx *ucx = ranks->ucx;
	struct np_buf *all = calloc((size_t)ranks->size, sizeof(*all));
	ucp_address_t *own = NULL;
	ucs_status_t status;
	size_t len = 0;
	int ret;

	if (!all)
		return np_err_nomem(err);
	status = ucp_worker_get_address(ucx->link.worker[0], &own, &len);
	if (status != UCS_OK) {
		free(all);
		return ucx_error(status, "asking for its address", err);
	}
	np_debug("UCX address: %zu bytes", len);
	ret = np_ranks_share(ranks, "UCX addresses", own, len, all, err);
	ucp_worker_release_address(ucx->link.worker[0], own);
	for (int i = 0; i < ranks->size && ret == 0; i++)
		ucx->peers[i].address = all[i];
	free(all);
	return ret;
}

int np_ranks_new_buffers(struct np_ranks *ranks, struct np_err *err)
{
	struct np_ranks_ucx *ucx = ranks->ucx;

	ucx->size = ranks->options->size_bytes;
	ucx->tx = np_ucp_mem_host.alloc(NULL, ucx->size, err);
	ucx->rx = ucx->tx ? np_ucp_mem_host.alloc(NULL, ucx->size, err) : NULL;
	if (!ucx->rx)
		return -ENOMEM;
	ucx->words = calloc(1, NP_RANKS_WORDS);
	return ucx->words ? 0 : np_err_nomem(err);
}

/* Else the connection to a peer that is cut off holds up those to all others, for minutes;
 * what the environment says wins. UCX warns of a variable that it has no use for. */
static int nonblocking_tcp(const char *tls)
{
	if (tls && !strstr(tls, "tcp") && !strstr(tls, "all") && tls[0] != '^')
		return 0;
	return setenv("UCX_TCP_CONN_NB", "y", 0);
}

int np_ranks_ucx_open(struct np_ranks *ranks, struct np_err *err)
{
	struct np_ranks_ucx *ucx = calloc(1, sizeof(*ucx));
	static const char name[] = "ranks";
	const char *tls = getenv("UCX_TLS");
	int ret;

	if (!ucx)
		return np_err_nomem(err);
	ranks->ucx = ucx;
	ucx->ranks = ranks;
	ucx->n = ranks->size;
	ucx->current = -1;
	ucx->peers = calloc((size_t)ranks->size, sizeof(*ucx->peers));
	if (!ucx->peers)
		return np_err_nomem(err);
	ucx->spec.rung = name;
	ucx->spec.tls = tls ? tls : "what UCX chose";
	ucx->spec.mem = &np_ucp_mem_host;
	ucx->link.spec = &ucx->spec;
	ucx->link.peer_status = UCS_OK;
	ucx->link.peer_failed = alive;
	ucx->link.peer_arg = ranks;
	ucx->link.crowded = ranks->local_size > sysconf(_SC_NPROCESSORS_ONLN);
	if (nonblocking_tcp(tls) < 0)
		return np_err_nomem(err);
	ranks->board->phase = NP_PHASE_UCX;
	np_ucx_log_start();
	np_ranks_quiet(ranks, OPEN_MS);
	ret = open_worker(ucx, err);
	np_ranks_quiet(ranks, 0);
	if (ret < 0)
		return ret;
	ranks->progress = progress;
	ret = np_ranks_new_buffers(ranks, err);
	return ret == 0 ? learn_addresses(ranks, err) : ret;
}

/* ---- endpoints ---- */

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct np_ranks_peer *peer = arg;
	struct np_ranks_ucx *ucx = peer->ucx;

	(void)ep;
	peer->status = status;
	if (ucx->ranks->board->lost < 0 && !ucx->ranks->options->close_endpoints)
		ucx->ranks->board->lost = (int)(peer - ucx->peers);
	if (ucx->current >= 0 && &ucx->peers[ucx->current] == peer)
		ucx->link.peer_status = status;
}

static int open_endpoint(struct np_ranks_ucx *ucx, int to, struct np_err *err)
{
	struct np_ranks_peer *peer = &ucx->peers[to];
	ucp_ep_params_t params;
	ucs_status_t status;

	if (peer->ep)
		return 0;
	if (peer->address.len == 0)
		return np_err_set(err, -EPROTO, "ranks.ucx", "it gave no address");
	memset(&params, 0, sizeof(params));
	params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
			    UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
	params.address = (const ucp_address_t *)peer->address.data;
	/* shared memory cannot tell of a failed peer: UCX would take tcp within a host, which no
	 * job does that has the choice. Such peers are watched as processes. */
	params.err_mode = np_streq(ucx->ranks->hosts[to], ucx->ranks->hosts[ucx->ranks->rank]) ?
				  UCP_ERR_HANDLING_MODE_NONE :
				  UCP_ERR_HANDLING_MODE_PEER;
	params.err_handler.cb = on_error;
	params.err_handler.arg = peer;
	peer->ucx = ucx;
	peer->status = UCS_OK;
	np_ranks_quiet(ucx->ranks, CONNECT_QUIET_MS);
	status = ucp_ep_create(ucx->link.worker[0], &params, &peer->ep);
	if (status == UCS_OK)
		return 0;
	peer->ep = NULL;
	return ucx_error(status, "connecting", err);
}

int np_ranks_turn_to(struct np_ranks *ranks, int peer, int timeout_ms, struct np_err *err)
{
	struct np_ranks_ucx *ucx = ranks->ucx;
	int64_t until = np_now_ms() + timeout_ms;
	int ret = open_endpoint(ucx, peer, err);

	ucx->current = peer;
	ucx->link.ep[0] = ucx->peers[peer].ep;
	ucx->link.peer_status = ucx->peers[peer].status;
	ucx->spec.deadline_ms = until < ranks->deadline_ms ? until : ranks->deadline_ms;
	return ret;
}

void np_ranks_close(struct np_ranks *ranks, int to)
{
	struct np_ranks_ucx *ucx = ranks->ucx;
	struct np_ranks_peer *peer = &ucx->peers[to];
	ucp_request_param_t param = { 0 };
	int64_t until = np_now_ms() + CLOSE_MS;
	ucs_status_ptr_t closing;

	if (!peer->ep)
		return;
	if (peer->cut || peer->status != UCS_OK) {
		param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
		param.flags = UCP_EP_CLOSE_FLAG_FORCE;
	}
	closing = ucp_ep_close_nbx(peer->ep, &param);
	while (UCS_PTR_IS_PTR(closing) && ucp_request_check_status(closing) == UCS_INPROGRESS &&
	       np_now_ms() < until)
		ucp_worker_progress(ucx->link.worker[0]);
	if (UCS_PTR_IS_PTR(closing))
		ucp_request_free(closing);
	peer->ep = NULL;
	ucx->link.ep[0] = NULL;
	ucx->current = -1;
}

void np_ranks_flush(struct np_ranks *ranks)
{
	struct np_ranks_ucx *ucx = ranks->ucx;
	int64_t until = np_now_ms() + FLUSH_MS;
	ucp_request_param_t param = { 0 };
	ucs_status_ptr_t flush = ucp_worker_flush_nbx(ucx->link.worker[0], &param);

	while (UCS_PTR_IS_PTR(flush) && ucp_request_check_status(flush) == UCS_INPROGRESS &&
	       np_now_ms() < until) {
		ucp_worker_progress(ucx->link.worker[0]);
		np_ranks_tick(ranks);
	}
	if (UCS_PTR_IS_PTR(flush))
		ucp_request_free(flush);
}

/* ---- waiting ---- */

static bool all_done(struct np_ucp_request *requests, size_t n, ucs_status_t *failed)
{
	for (size_t i = 0; i < n; i++) {
		ucs_status_t status = np_ucp_request_status(&requests[i]);

		if (status == UCS_INPROGRESS)
			return false;
		if (status != UCS_OK)
			*failed = status;
	}
	return true;
}

/* Between two looks: nothing at first, then longer, so that many ranks may share a
 * processor. */
static void rest(struct np_ranks *ranks, int64_t since_ms)
{
	if (since_ms >= 2)
		np_sleep_ms(1);
	np_ranks_tick(ranks);
}

int np_ranks_await(struct np_ranks *ranks, struct np_ucp_request *requests, size_t n,
		   int patience_ms, const char *doing, struct np_err *err)
{
	struct np_ucp_link *link = &ranks->ucx->link;
	int64_t start = np_now_ms();
	ucs_status_t failed = UCS_OK;

	for (;;) {
		int64_t since = np_now_ms() - start;

		if (all_done(requests, n, &failed) || failed != UCS_OK)
			break;
		failed = link->peer_status;
		if (failed != UCS_OK)
			break;
		if (since > patience_ms || start + since > ranks->deadline_ms)
			return np_err_set(err, -ETIMEDOUT, "ranks.no_answer",
					  "no answer within %d s while %s", (int)(since / 1000),
					  doing);
		for (int i = 0; i < 64; i++)
			np_ucp_link_progress(link);
		rest(ranks, since);
	}
	if (failed != UCS_OK)
		return ucx_error(failed, doing, err);
	for (size_t i = 0; i < n; i++) {
		if (UCS_PTR_IS_PTR(requests[i].ptr))
			ucp_request_free(requests[i].ptr);
		requests[i].ptr = NULL;
	}
	return 0;
}

void np_ranks_cell_fail(struct np_ranks *ranks, int peer, enum np_ranks_cell_status status,
			const struct np_err *why)
{
	struct np_ranks_board *board = ranks->board;

	ranks->ucx->peers[peer].cut = true;
	board->cells[peer].status = (uint8_t)status;
	if (board->n_notes < NP_RANKS_NOTES_MAX) {
		struct np_ranks_note *note = &board->notes[board->n_notes];

		note->peer = peer;
		np_strcpy(note->code, sizeof(note->code), why->code);
		np_strcpy(note->message, sizeof(note->message), why->message);
	}
	board->n_notes++;
	np_debug("rank %d: %s", peer, why->message);
}

/* ---- the first message from and to each ---- */

/* What each peer has of it. */
struct hello {
	struct np_ucp_request send, receive;
	uint64_t out, in;
	bool sent, heard;
};

static uint64_t hello_words(int from, int to)
{
	return UINT64_C(0x6e6f646570726570) ^ ((uint64_t)from << 32 | (uint32_t)to);
}

static void say_hello(struct np_ranks *ranks, int peer, struct hello *hello)
{
	struct np_ranks_ucx *ucx = ranks->ucx;
	struct np_ucp_message out, in;

	hello->out = hello_words(ranks->rank, peer);
	out = (struct np_ucp_message){ .tag = np_ranks_tag(NP_TAG_HELLO, 0, ranks->rank),
				       .tx = (char *)&hello->out,
				       .size = sizeof(hello->out) };
	in = (struct np_ucp_message){ .tag = np_ranks_tag(NP_TAG_HELLO, 0, peer),
				      .rx = (char *)&hello->in,
				      .size = sizeof(hello->in) };
	np_ucp_post_receive(&ucx->link, 0, &in, &hello->receive);
	ucx->link.ep[0] = ucx->peers[peer].ep;
	np_ucp_post_send(&ucx->link, 0, &out, &hello->send);
}

/* How many more are through since the last time. */
static int count_new(struct np_ranks *ranks, struct hello *all, int *missing)
{
	int n = 0;

	*missing = 0;
	for (int i = 0; i < ranks->size; i++) {
		struct hello *h = &all[i];

		if (i == ranks->rank || ranks->ucx->peers[i].cut)
			continue;
		if (!h->sent && np_ucp_request_status(&h->send) == UCS_OK) {
			h->sent = true;
			n++;
		}
		if (!h->heard && np_ucp_request_status(&h->receive) == UCS_OK) {
			h->heard = true;
			n++;
		}
		if ((!h->sent || !h->heard) && ranks->ucx->peers[i].status == UCS_OK)
			++*missing;
	}
	return n;
}

/* Goes on while there is progress, and a while longer. */
static void hear_all(struct np_ranks *ranks, struct hello *all)
{
	int64_t half = (ranks->deadline_ms + np_now_ms()) / 2, last = np_now_ms();
	int missing = 1;

	while (missing > 0) {
		int64_t now = np_now_ms();

		for (int i = 0; i < 256; i++)
			np_ucp_link_progress(&ranks->ucx->link);
		if (count_new(ranks, all, &missing) > 0)
			last = now;
		if (now > half || now - last > CONNECT_PATIENCE_MS)
			return;
		rest(ranks, now - last);
	}
}

/* Both sides must agree on which pairs are there. */
static int agree(struct np_ranks *ranks, const struct hello *all, struct np_err *err)
{
	size_t n = (size_t)ranks->size;
	_cleanup_free_ char *mine = calloc(n, 1);
	struct np_buf *theirs = calloc(n, sizeof(*theirs));
	int ret;

	if (!mine || !theirs) {
		free(theirs);
		return np_err_nomem(err);
	}
	for (size_t i = 0; i < n; i++)
		mine[i] = all[i].heard && all[i].in == hello_words((int)i, ranks->rank);
	ret = np_ranks_share(ranks, "who reaches whom", mine, n, theirs, err);
	for (int i = 0; i < ranks->size && ret == 0; i++) {
		bool here = mine[i], there = theirs[i].len == n && theirs[i].data[ranks->rank];
		ucs_status_t status = ranks->ucx->peers[i].status;
		struct np_err why;

		if (i == ranks->rank || ranks->ucx->peers[i].cut || (here && there))
			continue;
		np_err_set(&why, -EHOSTUNREACH, "ranks.unreachable", "%s%s%s",
			   here	 ? "its messages arrive, those to it do not" :
			   there ? "messages to it arrive, its own do not" :
				   "nothing arrives either way",
			   status != UCS_OK ? ": " : "",
			   status != UCS_OK ? ucs_status_string(status) : "");
		np_ranks_cell_fail(ranks, i, NP_CELL_MISSING, &why);
	}
	if (ret == 0)
		np_ranks_parts_done(theirs, ranks->size);
	free(theirs);
	return ret;
}

int np_ranks_connect(struct np_ranks *ranks, struct np_err *err)
{
	/* the library may write to it after a failure: never freed then */
	struct hello *all = calloc((size_t)ranks->size, sizeof(*all));
	int64_t start = np_now_ms();
	int ret;

	if (!all)
		return np_err_nomem(err);
	ranks->board->phase = NP_PHASE_CONNECT;
	for (int step = 1; step < ranks->size; step++) {
		int peer = (ranks->rank + step) % ranks->size;
		struct np_err why;

		np_ranks_tick(ranks);
		if (open_endpoint(ranks->ucx, peer, &why) < 0) {
			np_strcpy(why.code, sizeof(why.code), "ranks.unreachable");
			np_ranks_cell_fail(ranks, peer, NP_CELL_MISSING, &why);
			continue;
		}
		say_hello(ranks, peer, &all[peer]);
	}
	hear_all(ranks, all);
	ret = agree(ranks, all, err);
	ranks->board->connect_ms = (uint64_t)(np_now_ms() - start);
	return ret;
}
