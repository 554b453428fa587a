/* SPDX-License-Identifier: MIT */
/*
 * FAKE libnccl.so.2 (fake.h): sums over the "GPU memory" of the fake libcuda. FAKE_NCCL:
 *   version=N        what ncclGetVersion gives, default 22803
 *   fail=FUNCTION:N  that function returns N
 *   corrupt=N        element N of the last rank's sum is wrong by one
 *   old              it has no ncclGetVersion worth calling
 */
#include <math.h>
#include <stdio.h>

#include "fake.h"

struct fake_comm {
	int rank, n;
};

struct call {
	const float *send;
	float *receive;
	size_t count;
	struct fake_comm *comm;
};

static struct call calls[64];
static size_t n_calls;

static int plays(const char *function)
{
	const char *fail = fake_word("FAKE_NCCL", "fail=");
	size_t len = strlen(function);

	return fail && strncmp(fail, function, len) == 0 && fail[len] == ':' ?
		       (int)strtol(fail + len + 1, NULL, 10) :
		       0;
}

FAKE_EXPORT int ncclGetVersion(int *version)
{
	*version = (int)fake_number("FAKE_NCCL", "version=", 22803);
	return fake_word("FAKE_NCCL", "old") ? 4 : 0;
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
		comms[i] = malloc(sizeof(**comms));
		if (!comms[i])
			return 2;
		comms[i]->rank = i;
		comms[i]->n = n;
	}
	return plays("ncclCommInitAll");
}

FAKE_EXPORT int ncclCommDestroy(struct fake_comm *comm)
{
	free(comm);
	return 0;
}

FAKE_EXPORT int ncclCommAbort(struct fake_comm *comm)
{
	free(comm);
	return 0;
}

FAKE_EXPORT int ncclCommGetAsyncError(struct fake_comm *comm, int *result)
{
	(void)comm;
	*result = plays("ncclCommGetAsyncError");
	return 0;
}

FAKE_EXPORT int ncclGroupStart(void)
{
	n_calls = 0;
	return 0;
}

FAKE_EXPORT int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op,
			      struct fake_comm *comm, void *stream)
{
	(void)stream;
	if (type != 7 || op != 0 || n_calls == sizeof(calls) / sizeof(calls[0]))
		return 4;
	calls[n_calls++] = (struct call){ send, receive, count, comm };
	return plays("ncclAllReduce");
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
