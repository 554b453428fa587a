/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_super.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/ranks_board.h"
#include "selftest/ranks_odd.h"
#include "selftest/ranks_options.h"
#include "selftest/ranks_report.h"
#include "selftest/watch.h"

enum { EXIT_READY = 0, EXIT_NOT_READY = 1, EXIT_INTERNAL = 5 };

/* Of the deadline, what is kept for the report. */
#define RESERVE_MIN_MS 2000
#define RESERVE_MAX_MS 10000
/* Rank 0 tells the report so long before the deadline. */
#define TELL_MS 1000
/* Rank 0 asks each rank so often, but no more than so many in a second. */
#define ASK_EVERY_MS   500
#define ASK_PER_SECOND 400
/* After a rank that died: for what the others have to say. */
#define GRACE_MS 500
/* The same two where an answer may hold up the others (np_pmix_one_at_a_time). */
#define ASK_SELDOM_MS	 5000
#define LONG_GRACE_MS	 5000
#define MEMORY_MAX_RANKS 65536

#define KEY_CARD  "nodeprep-card"
#define KEY_BOARD "nodeprep-board"

/* ---- the beginning ---- */

static int take_signals_from_now(struct np_ranks_job *job)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCONT); /* Open MPI's first word to those that it will end */
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	job->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return job->signals < 0 ? -errno : 0;
}

static int allocate(struct np_ranks_job *job, struct np_err *err)
{
	size_t n = (size_t)job->size;

	if (job->size > MEMORY_MAX_RANKS)
		return np_err_set(err, -E2BIG, "ranks.too_many", "%d ranks; there may be %d",
				  job->size, MEMORY_MAX_RANKS);
	job->cards = calloc(n, sizeof(*job->cards));
	job->hosts = calloc(n, sizeof(*job->hosts));
	job->peers = malloc(n * sizeof(*job->peers));
	job->looks = calloc(n, sizeof(*job->looks));
	job->boards = calloc(n, sizeof(void *));
	job->board = mmap(NULL, np_ranks_board_size(job->size), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!job->cards || !job->hosts || !job->peers || !job->looks || !job->boards ||
	    job->board == MAP_FAILED)
		return np_err_nomem(err);
	for (size_t i = 0; i < n; i++)
		job->peers[i] = -1;
	job->board->protocol = NP_RANKS_PROTOCOL;
	job->board->rank = job->rank;
	job->board->size = job->size;
	job->board->err_peer = -1;
	job->board->peer = -1;
	job->board->lost = -1;
	return 0;
}

static int name_host(struct np_ranks_job *job, int rank)
{
	const char *own = np_ranks_card_get(&job->cards[rank], "host");
	char host[256];

	if (*own)
		np_strcpy(host, sizeof(host), own);
	else
		np_pmix_host(rank, host, sizeof(host));
	free(job->hosts[rank]);
	job->hosts[rank] = strdup(host[0] ? host : "an unknown host");
	return job->hosts[rank] ? 0 : -ENOMEM;
}

/* Those whose process can be seen from here. */
static void open_peers(struct np_ranks_job *job)
{
	const struct np_ranks_card *own = &job->cards[job->rank];

	for (int i = 0; i < job->size; i++) {
		const struct np_ranks_card *card = &job->cards[i];
		uint64_t pid;

		if (i == job->rank || !np_streq(job->hosts[i], job->hosts[job->rank]) ||
		    !np_streq(np_ranks_card_get(card, "pidns"), np_ranks_card_get(own, "pidns")) ||
		    np_parse_u64(np_ranks_card_get(card, "pid"), 10, INT32_MAX, &pid) < 0)
			continue;
		job->peers[i] = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	}
}

static int read_cards(struct np_ranks_job *job, int ms, struct np_err *err)
{
	for (int i = 0; i < job->size; i++) {
		np_auto_buf struct np_buf text = { 0 };

		if (np_ranks_look(job, i, KEY_CARD, ms, &text) == 0 &&
		    np_ranks_card_read(text.data, text.len, &job->cards[i]) < 0)
			return np_err_nomem(err);
		if (name_host(job, i) < 0)
			return np_err_nomem(err);
	}
	return 0;
}

/* Without the fence: who has given a card? Then the board names those who have not. */
static int name_absent(struct np_ranks_job *job, struct np_err *err)
{
	struct np_err ignored;
	char name[160];
	int absent = -1, n = 0;

	if (read_cards(job, 200, &ignored) < 0)
		return np_err_nomem(err);
	for (int i = 0; i < job->size; i++) {
		if (job->cards[i].n == 0 && i != job->rank) {
			absent = absent < 0 ? i : absent;
			n++;
		}
	}
	if (absent < 0)
		return -ETIMEDOUT;
	job->board->err_peer = absent;
	np_err_set(err, -ETIMEDOUT, "ranks.absent",
		   "%s and %d more did not come before the deadline",
		   np_ranks_name(job, absent, name), n - 1);
	if (n == 1)
		np_err_set(err, -ETIMEDOUT, "ranks.absent", "%s did not come before the deadline",
			   name);
	np_err_hint(err, "see on that host whether the program starts: its libraries, its user, "
			 "its cgroup; and that the launcher reaches it");
	return -ETIMEDOUT;
}

/* All must speak one language before they go on. */
static int one_version(struct np_ranks_job *job, struct np_err *err)
{
	const char *usual;
	char name[160];
	int odd = np_ranks_odd_one(job->cards, job->size, "nodeprep", &usual);

	if (odd < 0)
		return 0;
	job->board->err_peer = odd;
	np_err_set(err, -EPROTO, "ranks.version", "%s has nodeprep %s, others have %s",
		   np_ranks_name(job, odd, name), np_ranks_card_get(&job->cards[odd], "nodeprep"),
		   usual);
	np_err_hint(err, "install nodeprep %s on %s", usual, job->hosts[odd]);
	return -EPROTO;
}

/* The same of what they do: else they would wait for each other in vain. */
static int one_way(struct np_ranks_job *job, struct np_err *err)
{
	const char *usual;
	char name[160];
	int odd = np_ranks_odd_one(job->cards, job->size, "options", &usual);

	if (odd < 0)
		return 0;
	job->board->err_peer = odd;
	np_err_set(err, -EPROTO, "ranks.options_differ", "%s was started with %s, others with %s",
		   np_ranks_name(job, odd, name), np_ranks_card_get(&job->cards[odd], "options"),
		   usual);
	np_err_hint(err, "start all ranks with the same options");
	return -EPROTO;
}

static int give_card(struct np_ranks_job *job, struct np_err *err)
{
	struct np_ranks_card *card = &job->cards[job->rank];
	np_auto_buf struct np_buf text = { 0 };
	char options[160];
	int ret = np_ranks_card_make(job->options->config_env, card, err);

	if (ret < 0)
		return ret;
	np_ranks_options_str(job->options, options, sizeof(options));
	if (np_ranks_card_add(card, "options", options) < 0 || np_ranks_card_write(card, &text) < 0)
		return np_err_nomem(err);
	ret = np_pmix_put(KEY_CARD, text.data, text.len, err);
	np_ranks_card_done(card);
	return ret;
}

static int begin(struct np_ranks_job *job, struct np_err *err)
{
	int ret;

	job->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (job->wake < 0 || take_signals_from_now(job) < 0)
		return np_err_set(err, -errno, "", "no descriptor to wait for: %s",
				  strerror(errno));
	ret = np_pmix_open(job->wake, &job->rank, &job->size, err);
	if (ret == 0)
		ret = allocate(job, err);
	if (ret < 0)
		return ret;
	np_pmix_local(&job->local_rank, &job->local_size);
	ret = give_card(job, err);
	if (ret == 0)
		ret = np_ranks_meet(job, true, job->worker_deadline_ms, "what each is", err);
	if (ret == -ETIMEDOUT)
		ret = name_absent(job, err);
	else if (ret == 0)
		ret = read_cards(job, 5000, err);
	if (ret == 0) {
		open_peers(job);
		ret = one_version(job, err);
	}
	return ret == 0 ? one_way(job, err) : ret;
}

/* ---- rank 0: what all say ---- */

bool np_ranks_gather(struct np_ranks_job *job, bool *fatal)
{
	bool all = true;

	for (int i = 0; i < job->size; i++) {
		struct np_pmix_look *look = &job->looks[i];

		if (i == job->rank)
			continue;
		if (!job->boards[i] && look->state == 0 && look->out.data) {
			job->boards[i] =
				np_ranks_board_read(look->out.data, look->out.len, i, job->size);
			np_buf_done(&look->out);
		}
		if (job->boards[i]) {
			*fatal |= np_ranks_fatal(&job->boards[i]->err);
			continue;
		}
		all = false;
		if (look->state != 1)
			np_pmix_look(i, KEY_BOARD, false, look);
	}
	return all;
}

static int ask_every_ms(const struct np_ranks_job *job)
{
	int ms = job->size * 1000 / ASK_PER_SECOND;
	int least = np_pmix_one_at_a_time() ? ASK_SELDOM_MS : ASK_EVERY_MS;

	return ms < least ? least : ms;
}

bool np_ranks_lost(struct np_ranks_job *job)
{
	bool fatal = false;

	if (job->next_ask_ms == 0 && np_pmix_one_at_a_time())
		job->next_ask_ms = np_now_ms() + ask_every_ms(job);
	if (job->rank != 0 || np_now_ms() < job->next_ask_ms)
		return false;
	job->next_ask_ms = np_now_ms() + ask_every_ms(job);
	np_ranks_gather(job, &fatal);
	return fatal;
}

/* Until every board is there, or it makes no sense to wait on. */
static void gather_all(struct np_ranks_job *job)
{
	int64_t until = job->deadline_ms - TELL_MS, next = 0;
	int grace = np_pmix_one_at_a_time() ? LONG_GRACE_MS : GRACE_MS;
	bool in_grace = false;

	while (np_now_ms() < until) {
		bool fatal = np_ranks_fatal(&job->board->err) || job->gone >= 0 || job->ended;
		int64_t now = np_now_ms();

		if (now >= next) {
			if (np_ranks_gather(job, &fatal))
				return;
			next = now + 50;
		}
		if (fatal && !in_grace) {
			in_grace = true;
			until = now + grace < until ? now + grace : until;
		}
		np_ranks_pump(job, 20);
	}
}

/* ---- the end ---- */

static int tell(struct np_ranks_job *job)
{
	np_auto_buf struct np_buf text = { 0 };
	bool ready;

	gather_all(job);
	job->boards[job->rank] = job->board;
	ready = np_ranks_report(job, &text);
	if (text.failed || !text.data || np_watch_write(text.data) < 0) {
		np_error("cannot write the report");
		return EXIT_INTERNAL;
	}
	return ready ? EXIT_READY : EXIT_NOT_READY;
}

/* A rank that left out an exchange may not meet the others any more: it would be taken for
 * one that came to another exchange. */
static bool in_step(const struct np_ranks_board *board)
{
	return board && board->passed_all;
}

static bool all_in_step(const struct np_ranks_job *job)
{
	for (int i = 0; i < job->size; i++)
		if (!in_step(job->boards[i]))
			return false;
	return true;
}

/* For the end of the job, which rank 0 brings about. */
static int await_end(struct np_ranks_job *job, int64_t until)
{
	while (!job->ended && np_now_ms() < until)
		np_ranks_pump(job, 250);
	return job->ended ? -ECANCELED : -ETIMEDOUT;
}

/* Whoever ends with an error ends the job: nobody does before rank 0 has told all. */
static int part(struct np_ranks_job *job, int code)
{
	/* rank 1 speaks up for a rank 0 that does not, then any other */
	int64_t until = job->deadline_ms - TELL_MS / 2 + (job->rank > 1 ? TELL_MS : 0);
	struct np_err err;
	char name[160], message[256];
	int ret;

	if (job->rank == 0 && !all_in_step(job)) {
		np_pmix_abort(code, "nodeprep-ranks: not every rank came to the end");
		return code;
	}
	np_ranks_forget_peers(job); /* who is through the fence may go */
	ret = in_step(job->board) ? np_ranks_meet(job, false, until, "the end", &err) :
				    await_end(job, until);
	if (ret == 0) {
		np_pmix_close();
		return code;
	}
	while (job->ended && np_now_ms() < job->ended_ms + NP_RANKS_LINGER_MS)
		np_sleep_ms(50);
	if (ret == -ETIMEDOUT && job->rank != 0) {
		snprintf(message, sizeof(message), "%s did not report before the deadline",
			 np_ranks_name(job, 0, name));
		np_error("%s", message);
		np_pmix_abort(EXIT_NOT_READY, message);
	}
	return code == EXIT_READY ? EXIT_NOT_READY : code;
}

static void publish(struct np_ranks_job *job)
{
	struct np_err err;

	if (job->rank != 0 &&
	    np_pmix_put(KEY_BOARD, job->board, np_ranks_board_size(job->size), &err) < 0)
		np_error("%s", err.message);
}

const char *np_ranks_name(const struct np_ranks_job *job, int rank, char out[160])
{
	const char *port = np_ranks_card_get(&job->cards[rank], "port");

	snprintf(out, 160, "rank %d on %.64s%s%.64s%s", rank,
		 job->hosts[rank] ? job->hosts[rank] : "an unknown host", *port ? " (" : "", port,
		 *port ? ")" : "");
	return out;
}

static int reserve_ms(int timeout_ms)
{
	int ms = timeout_ms / 6;

	return ms < RESERVE_MIN_MS ? RESERVE_MIN_MS : ms > RESERVE_MAX_MS ? RESERVE_MAX_MS : ms;
}

int np_ranks_supervise(const struct np_ranks_options *options)
{
	struct np_ranks_job job = {
		.options = options,
		.wake = -1,
		.signals = -1,
		.link = -1,
		.worker_fd = -1,
		.gone = -1,
		.start_ms = np_now_ms(),
	};
	struct np_err err;
	int code = EXIT_READY;
	int ret;

	np_err_clear(&err);
	job.deadline_ms = job.start_ms + options->timeout_ms;
	job.worker_deadline_ms = job.deadline_ms - reserve_ms(options->timeout_ms);
	ret = begin(&job, &err);
	if (ret < 0 && (!job.board || err.code[0] == '\0' || np_streq(err.code, "ranks.pmix"))) {
		np_error("%s%s%s", err.message, err.hint[0] ? "; " : "", err.hint);
		return EXIT_INTERNAL;
	}
	if (!job.board)
		return EXIT_INTERNAL;
	if (ret == 0)
		ret = np_ranks_start_worker(&job, &err);
	if (ret == 0)
		np_ranks_watch_worker(&job);
	else
		job.board->err = err;
	publish(&job);
	if (job.rank == 0)
		code = tell(&job);
	else if (job.board->err.num < 0)
		code = EXIT_NOT_READY;
	return part(&job, code);
}
