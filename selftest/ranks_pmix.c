/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_pmix.h"

#include <errno.h>
#include <pmix.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* A look-up may take so long that its server has to ask another one; with PMIX_TIMEOUT 0 it
 * would wait without end where the value is not there yet. */
#define LOOK_SECONDS 2

static pmix_proc_t self, everybody;
static int wake_fd = -1;
/* PMIx reads these until the answer is there */
static pmix_info_t collect_info, meet_info, look_info;

/* One look-up. PMIx keeps pointers into it until it has answered, whoever waits for it. */
struct asked {
	pmix_proc_t proc;
	pmix_key_t key;
	struct np_pmix_look *look;
	bool started;
	_Atomic bool done;
	struct asked *next;
};

/* Those that were not answered when last looked at; the caller's thread alone has the list. */
static struct asked *all_asked;
static bool one_at_a_time;

bool np_pmix_launched(void)
{
	return getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK");
}

static int failed(pmix_status_t status, const char *doing, struct np_err *err)
{
	np_err_set(err, status == PMIX_ERR_TIMEOUT ? -ETIMEDOUT : -EIO, "ranks.pmix",
		   "PMIx failed while %s: %s", doing, PMIx_Error_string(status));
	np_err_hint(err, "see that the launcher's PMIx and this program's (%s) go together",
		    PMIx_Get_version());
	return err ? err->num : -EIO;
}

static void wake(void)
{
	uint64_t one = 1;

	/* the counter of an eventfd does not fill up by ones */
	if (write(wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* A number of the job or of a rank, or @fallback. */
static int number(uint32_t rank, const char *key, int fallback)
{
	pmix_value_t *value = NULL;
	pmix_proc_t proc;
	int out = fallback;

	PMIX_LOAD_PROCID(&proc, self.nspace, rank);
	if (PMIx_Get(&proc, key, NULL, 0, &value) != PMIX_SUCCESS || !value)
		return fallback;
	if (value->type == PMIX_UINT32)
		out = (int)value->data.uint32;
	else if (value->type == PMIX_UINT16)
		out = value->data.uint16;
	PMIX_VALUE_RELEASE(value);
	return out;
}

/* "PMIx 5.0.1, repo rev: ...", "OpenPMIx 4.2.2, ..." */
static uint64_t major_version(const char *text)
{
	const char *digits = strpbrk(text, "0123456789");
	char first[16] = "";
	uint64_t major;

	if (digits)
		snprintf(first, sizeof(first), "%.*s", (int)strspn(digits, "0123456789"), digits);
	/* one that does not say is taken for a new one */
	return np_parse_u64(first, 10, UINT32_MAX, &major) < 0 ? UINT32_MAX : major;
}

static const char *version(void)
{
#ifdef NP_TEST_HOOKS
	const char *other = getenv("NP_TEST_PMIX_VERSION");

	if (other)
		return other;
#endif
	return PMIx_Get_version();
}

static void prepare(void)
{
	int seconds = LOOK_SECONDS;
	bool yes = true, no = false;

	PMIX_LOAD_PROCID(&everybody, self.nspace, PMIX_RANK_WILDCARD);
	PMIX_INFO_LOAD(&collect_info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
	PMIX_INFO_LOAD(&meet_info, PMIX_COLLECT_DATA, &no, PMIX_BOOL);
	PMIX_INFO_LOAD(&look_info, PMIX_TIMEOUT, &seconds, PMIX_INT);
	/* PMIx 5 and 6 go through all look-ups that are pending with what belonged to the one
	 * just answered and is freed by then (_getnb_cbfunc of 5.0.0 to 6.0.0): a second one
	 * that is pending crashes the process. */
	one_at_a_time = major_version(version()) >= 5;
	if (one_at_a_time)
		np_debug("PMIx: one look-up at a time");
}

int np_pmix_open(int wake_to, int *rank, int *size, struct np_err *err)
{
	pmix_status_t status = PMIx_Init(&self, NULL, 0);
	int n;

	if (status != PMIX_SUCCESS)
		return failed(status, "joining the job", err);
	wake_fd = wake_to;
	prepare();
	n = number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, -1);
	if (n <= 0 || self.rank >= (uint32_t)n)
		return failed(PMIX_ERR_NOT_FOUND, "asking for the number of ranks", err);
	*rank = (int)self.rank;
	*size = n;
	return 0;
}

void np_pmix_local(int *local_rank, int *local_size)
{
	*local_rank = number(self.rank, PMIX_LOCAL_RANK, 0);
	*local_size = number(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE, 1);
}

void np_pmix_host(int rank, char *out, size_t size)
{
	pmix_value_t *value = NULL;
	pmix_proc_t proc;

	out[0] = '\0';
	PMIX_LOAD_PROCID(&proc, self.nspace, (uint32_t)rank);
	if (PMIx_Get(&proc, PMIX_HOSTNAME, NULL, 0, &value) != PMIX_SUCCESS || !value)
		return;
	if (value->type == PMIX_STRING)
		np_strcpy(out, size, value->data.string);
	PMIX_VALUE_RELEASE(value);
}

void np_pmix_close(void)
{
	PMIx_Finalize(NULL, 0);
}

int np_pmix_put(const char *key, const void *data, size_t len, struct np_err *err)
{
	pmix_value_t value;
	pmix_status_t status;

	PMIX_VALUE_CONSTRUCT(&value);
	value.type = PMIX_BYTE_OBJECT;
	value.data.bo.bytes = (char *)(uintptr_t)data; /* it only reads */
	value.data.bo.size = len;
	status = PMIx_Put(PMIX_GLOBAL, key, &value);
	if (status == PMIX_SUCCESS)
		status = PMIx_Commit();
	return status == PMIX_SUCCESS ? 0 : failed(status, "publishing a value", err);
}

static void fence_done(pmix_status_t status, void *arg)
{
	_Atomic int *state = arg;

	*state = status == PMIX_SUCCESS ? 0 : status == PMIX_ERR_TIMEOUT ? -ETIMEDOUT : -EIO;
	wake();
}

int np_pmix_fence(bool collect, _Atomic int *state, struct np_err *err)
{
	pmix_status_t status;

	*state = 1;
	status = PMIx_Fence_nb(&everybody, 1, collect ? &collect_info : &meet_info, 1, fence_done,
			       (void *)state);
	if (status == PMIX_SUCCESS)
		return 0;
	*state = status == PMIX_OPERATION_SUCCEEDED ? 0 : -EIO;
	return *state == 0 ? 0 : failed(status, "meeting the other ranks", err);
}

static void look_done(pmix_status_t status, pmix_value_t *value, void *arg)
{
	struct asked *asked = arg;
	struct np_pmix_look *look = asked->look;
	int state = status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT ? -ENOENT : -EIO;

	if (status == PMIX_SUCCESS && value && value->type == PMIX_BYTE_OBJECT) {
		np_buf_add(&look->out, value->data.bo.bytes, value->data.bo.size);
		state = look->out.failed ? -ENOMEM : 0;
	}
	look->state = state; /* from now on the look may be gone */
	asked->done = true;
	wake();
}

bool np_pmix_one_at_a_time(void)
{
	return one_at_a_time;
}

static void start(struct asked *asked)
{
	pmix_status_t status =
		PMIx_Get_nb(&asked->proc, asked->key, &look_info, 1, look_done, asked);

	asked->started = true;
	if (status == PMIX_SUCCESS)
		return;
	asked->look->state = status == PMIX_ERR_NOT_FOUND ? -ENOENT : -EIO;
	asked->done = true;
}

void np_pmix_go_on(void)
{
	bool busy = false;

	for (struct asked **p = &all_asked; *p;) {
		struct asked *asked = *p;

		if (asked->done) {
			*p = asked->next;
			free(asked);
			continue;
		}
		busy |= asked->started;
		p = &asked->next;
	}
	for (struct asked *a = all_asked; a && !(busy && one_at_a_time); a = a->next) {
		if (a->started)
			continue;
		start(a);
		busy = !a->done;
	}
}

int np_pmix_look(int rank, const char *key, bool first, struct np_pmix_look *look)
{
	struct asked *asked = calloc(1, sizeof(*asked));
	struct asked **p = &all_asked;

	if (!asked) {
		look->state = -ENOMEM;
		return -ENOMEM;
	}
	PMIX_LOAD_PROCID(&asked->proc, self.nspace, (uint32_t)rank);
	PMIX_LOAD_KEY(asked->key, key);
	asked->look = look;
	np_buf_done(&look->out);
	look->state = 1;
	while (!first && *p)
		p = &(*p)->next;
	asked->next = *p;
	*p = asked;
	np_pmix_go_on();
	return look->state == 1 ? 0 : look->state;
}

void np_pmix_abort(int status, const char *message)
{
	PMIx_Abort(status, message, NULL, 0);
}
