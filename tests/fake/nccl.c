/* SPDX-License-Identifier: MIT */
/*
 * FAKE libnccl.so.2 (fake.h): sums over the "GPU memory" of the fake libcuda, in one process
 * or, through shared memory named after the unique id, over processes of one host. FAKE_NCCL:
 *   version=N        what ncclGetVersion gives, default 22803
 *   fail=FUNCTION:N  that function returns N
 *   corrupt=N        element N of the last rank's sum is wrong by one; with on=, of that rank's
 *   old              it has no ncclGetVersion worth calling
 *   never=init, never=reduce   a rank's work is under way for ever
 *   short            a rank leaves rank 0 out of sums of int64
 *   slow=N           a sum takes N milliseconds for each MiB longer
 *   hang=FUNCTION    it never returns
 *   crash=FUNCTION   it ends the process by SIGSEGV
 *   room=NAME        a part of the names of its shared memory, for who clears it away
 *   on=R             all of this in the process of rank R (PMIX_RANK) alone
 */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "fake.h"

#define RANKS_MAX 64
#define SLOT	  262144

/* What the processes share. */
struct room {
	atomic_uint here;
	atomic_uint at[RANKS_MAX]; /* barriers that each has come to */
	char slots[RANKS_MAX][SLOT];
};

struct fake_comm {
	int rank, n;
	/* of one that is alone in its process */
	struct room *room;
	char name[64];
	bool blocking, has_thread;
	pthread_t thread;
	atomic_int state; /* 7 = under way */
	atomic_bool aborted;
	unsigned int barriers;
	/* what it works at */
	const void *send;
	void *receive;
	size_t count;
	int type;
};

struct fake_id {
	char bytes[128];
};

struct fake_config {
	size_t size;
	unsigned int magic, version;
	int blocking;
};

struct call {
	const float *send;
	float *receive;
	size_t count;
	struct fake_comm *comm;
};

static struct call calls[64];
static size_t n_calls;

static bool is_on(void)
{
	const char *rank = getenv("PMIX_RANK");
	long on = fake_number("FAKE_NCCL", "on=", -1);

	return on < 0 || (rank && strtol(rank, NULL, 10) == on);
}

static const char *word(const char *name)
{
	return is_on() ? fake_word("FAKE_NCCL", name) : NULL;
}

/* @text begins with the name, and the name ends there. */
static bool names(const char *text, const char *function)
{
	size_t len = strlen(function);

	return text && strncmp(text, function, len) == 0 && strchr(" :", text[len]);
}

static int plays(const char *function)
{
	const char *fail = word("fail="), *hang = word("hang="), *crash = word("crash=");

	if (names(crash, function))
		raise(SIGSEGV);
	while (names(hang, function))
		pause();
	return names(fail, function) ? (int)strtol(strchr(fail, ':') + 1, NULL, 10) : 0;
}

static bool never(const char *what)
{
	const char *text = word("never=");

	return text && strncmp(text, what, strlen(what)) == 0;
}

FAKE_EXPORT int ncclGetVersion(int *version)
{
	*version = is_on() ? (int)fake_number("FAKE_NCCL", "version=", 22803) : 22803;
	return word("old") ? 4 : 0;
}

FAKE_EXPORT const char *ncclGetErrorString(int result)
{
	return result == 2 ? "unhandled system error" : "played by a fake";
}

FAKE_EXPORT const char *ncclGetLastError(struct fake_comm *comm)
{
	(void)comm;
	return "the last words of a fake\n";
}

FAKE_EXPORT int ncclCommInitAll(struct fake_comm **comms, int n, const int *devices)
{
	(void)devices;
	for (int i = 0; i < n; i++) {
		comms[i] = calloc(1, sizeof(**comms));
		if (!comms[i])
			return 2;
		comms[i]->rank = i;
		comms[i]->n = n;
	}
	return plays("ncclCommInitAll");
}

/* ---- ranks in processes of their own ---- */

FAKE_EXPORT int ncclGetUniqueId(struct fake_id *id)
{
	memset(id, 0, sizeof(*id));
	if (getrandom(id->bytes, 8, 0) != 8)
		return 2;
	return plays("ncclGetUniqueId");
}

/* False: it was aborted. */
static bool barrier(struct fake_comm *comm)
{
	unsigned int mine = ++comm->barriers;

	atomic_store(&comm->room->at[comm->rank], mine);
	for (int i = 0; i < comm->n; i++)
		while (atomic_load(&comm->room->at[i]) < mine) {
			if (atomic_load(&comm->aborted))
				return false;
			sched_yield();
		}
	return true;
}

static bool wait_for_abort(struct fake_comm *comm)
{
	while (!atomic_load(&comm->aborted))
		usleep(1000);
	return false;
}

static void *join_room(void *arg)
{
	struct fake_comm *comm = arg;
	int fd = shm_open(comm->name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	int result = 2;

	if (fd >= 0 && ftruncate(fd, sizeof(struct room)) == 0) {
		comm->room =
			mmap(NULL, sizeof(struct room), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (comm->room == MAP_FAILED)
			comm->room = NULL;
	}
	if (fd >= 0)
		close(fd);
	if (comm->room)
		result = (never("init") ? wait_for_abort(comm) : barrier(comm)) ? 0 : 6;
	if (comm->rank == 0 || result)
		shm_unlink(comm->name);
	atomic_store(&comm->state, result);
	return NULL;
}

static void add(struct fake_comm *comm, size_t at, size_t len)
{
	size_t size = comm->type == 4 ? 8 : 4;
	int first = word("short") && comm->type == 4;

	for (size_t i = 0; i < len / size; i++) {
		int64_t whole = 0;
		float sum = 0;

		for (int r = first; r < comm->n; r++) {
			if (comm->type == 4)
				whole += ((int64_t *)comm->room->slots[r])[i];
			else
				sum += ((float *)comm->room->slots[r])[i];
		}
		if (comm->type == 4)
			((int64_t *)comm->receive)[at / size + i] = whole;
		else
			((float *)comm->receive)[at / size + i] = sum;
	}
}

static void *reduce(void *arg)
{
	struct fake_comm *comm = arg;
	size_t size = comm->count * (comm->type == 4 ? 8 : 4);
	long wrong = word("corrupt=") ? fake_number("FAKE_NCCL", "corrupt=", -1) : -1;
	bool mine = fake_number("FAKE_NCCL", "on=", -1) >= 0 || comm->rank + 1 == comm->n;
	bool good = !never("reduce") || wait_for_abort(comm);

	if (word("slow="))
		usleep((useconds_t)(fake_number("FAKE_NCCL", "slow=", 0) * (long)(size >> 10)));
	for (size_t at = 0; at < size && good; at += SLOT) {
		size_t len = size - at < SLOT ? size - at : SLOT;

		memcpy(comm->room->slots[comm->rank], (const char *)comm->send + at, len);
		good = barrier(comm);
		if (good)
			add(comm, at, len);
		good = good && barrier(comm);
	}
	if (good && mine && comm->type == 7 && wrong >= 0 && (size_t)wrong < comm->count)
		((float *)comm->receive)[wrong] += 1;
	atomic_store(&comm->state, good ? 0 : 6);
	return NULL;
}

/* Now, or in a thread where calls do not block. */
static int start(struct fake_comm *comm, void *(*work)(void *))
{
	if (comm->has_thread)
		pthread_join(comm->thread, NULL);
	comm->has_thread = false;
	atomic_store(&comm->state, 7);
	if (comm->blocking) {
		work(comm);
		return atomic_load(&comm->state);
	}
	if (pthread_create(&comm->thread, NULL, work, comm) != 0)
		return 2;
	comm->has_thread = true;
	return 7;
}

static int init_rank(struct fake_comm **out, int n, struct fake_id id, int rank, bool blocking)
{
	struct fake_comm *comm = calloc(1, sizeof(*comm));
	const char *room = fake_word("FAKE_NCCL", "room=");
	uint64_t number;

	if (!comm || n > RANKS_MAX)
		return 2;
	memcpy(&number, id.bytes, sizeof(number));
	snprintf(comm->name, sizeof(comm->name), "/np-fake-nccl-%.*s-%016llx",
		 room ? (int)strcspn(room, " ") : 0, room ? room : "", (unsigned long long)number);
	comm->rank = rank;
	comm->n = n;
	comm->blocking = blocking;
	*out = comm;
	return start(comm, join_room);
}

FAKE_EXPORT int ncclCommInitRank(struct fake_comm **comm, int n, struct fake_id id, int rank)
{
	int result = plays("ncclCommInitRank");

	return result ? result : init_rank(comm, n, id, rank, true);
}

FAKE_EXPORT int ncclCommInitRankConfig(struct fake_comm **comm, int n, struct fake_id id, int rank,
				       struct fake_config *config)
{
	int result = plays("ncclCommInitRankConfig");

	/* as NCCL checks it */
	if (config->size < sizeof(*config) || config->magic != 0xcafebeef ||
	    config->version < 21400)
		return 4;
	return result ? result : init_rank(comm, n, id, rank, config->blocking != 0);
}

FAKE_EXPORT int ncclCommCount(struct fake_comm *comm, int *n)
{
	*n = comm->n;
	return plays("ncclCommCount");
}

FAKE_EXPORT int ncclCommFinalize(struct fake_comm *comm)
{
	(void)comm;
	return plays("ncclCommFinalize");
}

static int end(struct fake_comm *comm)
{
	if (comm->has_thread)
		pthread_join(comm->thread, NULL);
	if (comm->room)
		munmap(comm->room, sizeof(*comm->room));
	free(comm);
	return 0;
}

FAKE_EXPORT int ncclCommDestroy(struct fake_comm *comm)
{
	return end(comm);
}

FAKE_EXPORT int ncclCommAbort(struct fake_comm *comm)
{
	atomic_store(&comm->aborted, true);
	plays("ncclCommAbort");
	return end(comm);
}

FAKE_EXPORT int ncclCommGetAsyncError(struct fake_comm *comm, int *result)
{
	*result = plays("ncclCommGetAsyncError");
	if (*result == 0)
		*result = atomic_load(&comm->state);
	return 0;
}

/* ---- collectives ---- */

FAKE_EXPORT int ncclGroupStart(void)
{
	n_calls = 0;
	return 0;
}

FAKE_EXPORT int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op,
			      struct fake_comm *comm, void *stream)
{
	int result;

	(void)stream;
	if ((type != 7 && (type != 4 || !comm->room)) || op != 0)
		return 4;
	result = plays("ncclAllReduce");
	if (comm->room && result == 0) {
		/* a user has to wait for what is under way */
		if (atomic_load(&comm->state) == 7)
			return 5;
		comm->send = send;
		comm->receive = receive;
		comm->count = count;
		comm->type = type;
		return start(comm, reduce);
	}
	if (n_calls == sizeof(calls) / sizeof(calls[0]))
		return 4;
	calls[n_calls++] = (struct call){ send, receive, count, comm };
	return result;
}

FAKE_EXPORT int ncclGroupEnd(void)
{
	long wrong = fake_number("FAKE_NCCL", "corrupt=", -1);
	int result = plays("ncclGroupEnd");

	if (result || n_calls == 0)
		return result;
	if (n_calls != (size_t)calls[0].comm->n)
		return 5;
	for (size_t c = 0; c < n_calls; c++) {
		/* a rung repeats the same sum to time it: once is enough */
		if (calls[c].count > 4096 && !isnan(calls[c].receive[calls[c].count - 1]))
			continue;
		for (size_t i = 0; i < calls[c].count; i++) {
			float sum = 0;

			for (size_t r = 0; r < n_calls; r++)
				sum += calls[r].send[i];
			calls[c].receive[i] = sum + (c + 1 == n_calls && (long)i == wrong);
		}
	}
	return 0;
}
