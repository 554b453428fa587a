/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/child.h"
#include "selftest/ranks.h"

/* What all ranks give in one exchange; more is a broken head. */
#define LEN_MAX (UINT64_C(1) << 32)

static int send_all(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int receive_all(int fd, void *data, size_t len)
{
	char *at = data;

	while (len > 0) {
		ssize_t n = recv(fd, at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EPIPE;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int np_ranks_send(int fd, const struct np_ranks_head *head, const void *data)
{
	int ret = send_all(fd, head, sizeof(*head));

	return ret < 0 || head->len == 0 ? ret : send_all(fd, data, head->len);
}

int np_ranks_receive(int fd, struct np_ranks_head *head, struct np_buf *data)
{
	_cleanup_free_ char *bytes = NULL;
	int ret = receive_all(fd, head, sizeof(*head));

	if (ret < 0)
		return ret;
	if (head->len > LEN_MAX)
		return -EPROTO;
	bytes = malloc(head->len + 1);
	if (!bytes)
		return -ENOMEM;
	ret = receive_all(fd, bytes, head->len);
	if (ret < 0)
		return ret;
	np_buf_done(data);
	np_buf_add(data, bytes, head->len);
	return data->failed ? -ENOMEM : 0;
}

/* ---- the worker's side ---- */

static void await_answer(struct np_ranks *ranks)
{
	struct pollfd answer = { .fd = ranks->link, .events = POLLIN };

	while (poll(&answer, 1, ranks->progress ? 1 : -1) == 0 && ranks->progress)
		ranks->progress(ranks);
}

static int ask(struct np_ranks *ranks, uint32_t what_kind, const char *what, const void *mine,
	       size_t len, struct np_buf *answer, struct np_err *err)
{
	struct np_ranks_head head = { .ask = what_kind, .len = len };
	uint32_t phase = ranks->board->phase;
	int ret;

	np_strcpy(head.what, sizeof(head.what), what);
	ranks->board->phase = NP_PHASE_EXCHANGE;
	ret = np_ranks_send(ranks->link, &head, mine);
	if (ret == 0) {
		await_answer(ranks);
		ret = np_ranks_receive(ranks->link, &head, answer);
	}
	np_ranks_tick(ranks);
	ranks->board->phase = phase;
	if (ret < 0)
		return np_err_set(err, ret, "ranks.exchange",
				  "the supervisor is gone while ranks exchanged %s", what);
	if (head.error < 0)
		return np_err_set(err, head.error, "ranks.exchange", "%.*s", (int)answer->len,
				  answer->data ? answer->data : "");
	return 0;
}

static int take_part(struct np_buf *part, const struct np_buf *all, size_t *at)
{
	uint64_t len;

	if (all->len - *at < sizeof(len))
		return -EPROTO;
	memcpy(&len, all->data + *at, sizeof(len));
	*at += sizeof(len);
	if (all->len - *at < len)
		return -EPROTO;
	np_buf_add(part, all->data + *at, len);
	*at += len;
	return part->failed ? -ENOMEM : 0;
}

int np_ranks_share(struct np_ranks *ranks, const char *what, const void *mine, size_t len,
		   struct np_buf *all, struct np_err *err)
{
	np_auto_buf struct np_buf answer = { 0 };
	size_t at = 0;
	int ret = ask(ranks, NP_ASK_SHARE, what, mine, len, &answer, err);

	if (ret < 0)
		return ret;
	memset(all, 0, (size_t)ranks->size * sizeof(*all));
	for (int i = 0; i < ranks->size && ret == 0; i++)
		ret = take_part(&all[i], &answer, &at);
	if (ret == 0)
		return 0;
	np_ranks_parts_done(all, ranks->size);
	return np_err_set(err, ret, "ranks.exchange", "the exchange of %s was cut short", what);
}

void np_ranks_parts_done(struct np_buf *all, int n)
{
	for (int i = 0; i < n; i++)
		np_buf_done(&all[i]);
}

int np_ranks_broadcast(struct np_ranks *ranks, const char *what, int root, void *data, size_t len,
		       struct np_err *err)
{
	struct np_buf *all = calloc((size_t)ranks->size, sizeof(*all));
	int ret;

	if (!all)
		return np_err_nomem(err);
	ret = np_ranks_share(ranks, what, data, ranks->rank == root ? len : 0, all, err);
	if (ret == 0 && all[root].len != len)
		ret = np_err_set(err, -EPROTO, "ranks.exchange",
				 "rank %d gave %zu bytes of %s, expected %zu", root, all[root].len,
				 what, len);
	else if (ret == 0 && all[root].data)
		memcpy(data, all[root].data, len);
	np_ranks_parts_done(all, ranks->size);
	free(all);
	return ret;
}

int np_ranks_fence(struct np_ranks *ranks, const char *what, struct np_err *err)
{
	np_auto_buf struct np_buf answer = { 0 };

	return ask(ranks, NP_ASK_FENCE, what, NULL, 0, &answer, err);
}

void np_ranks_tick(struct np_ranks *ranks)
{
	ranks->board->tick_ms = np_now_ms();
}

void np_ranks_quiet(struct np_ranks *ranks, int ms)
{
	np_ranks_tick(ranks);
	ranks->board->quiet_until_ms = ms > 0 ? np_now_ms() + ms : 0;
}

size_t np_ranks_board_size(int size)
{
	return sizeof(struct np_ranks_board) + (size_t)size * sizeof(struct np_ranks_cell);
}
