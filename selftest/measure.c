/* SPDX-License-Identifier: MIT */
#include "selftest/measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "selftest/pattern.h"
#include "selftest/rung.h"

static const uint64_t quick_sizes[] = { 8, 4096, 65536, 1048576, 8388608 };
static const uint64_t full_sizes[] = {
	1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
};

const uint64_t *np_sizes(bool full, size_t *n)
{
	_Static_assert(NP_ARRAY_SIZE(full_sizes) <= NP_RUNG_SIZES_MAX, "too many sizes");
	*n = full ? NP_ARRAY_SIZE(full_sizes) : NP_ARRAY_SIZE(quick_sizes);
	return full ? full_sizes : quick_sizes;
}

double np_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double np_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), cmp_double);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

uint64_t np_seed_base(void)
{
	uint64_t base;

	if (getrandom(&base, sizeof(base), GRND_NONBLOCK) != sizeof(base))
		base = (uint64_t)np_now_us();
	return base;
}

#ifdef NP_TEST_HOOKS
/* Tests only: flips a bit in the middle of the message that NP_TEST_CORRUPT counts to. */
static void corrupt_for_test(char *received, size_t size, uint64_t nth)
{
	const char *wanted = getenv("NP_TEST_CORRUPT");
	uint64_t n;

	if (wanted && np_parse_u64(wanted, 10, UINT64_MAX, &n) == 0 && n == nth)
		received[size / 2] ^= 0x10;
}
#else
static inline void corrupt_for_test(char *received, size_t size, uint64_t nth)
{
	(void)received;
	(void)size;
	(void)nth;
}
#endif

int np_message_verify(char *received, size_t size, uint64_t seed, uint64_t nth, struct np_err *err)
{
	struct np_pattern_diff diff;
	char text[32];

	corrupt_for_test(received, size, nth);
	if (np_pattern_check(received, size, seed, &diff))
		return 0;
	np_err_set(
		err, -EBADMSG, "selftest.data_corrupt",
		"message %llu (%s) arrived corrupt: byte at offset %zu is 0x%02x, expected 0x%02x",
		(unsigned long long)nth, np_size_str(size, text), diff.offset, diff.got,
		diff.expected);
	np_err_hint(err, "take this node out of service and test its HCA, memory and PCIe link");
	return -EBADMSG;
}

int np_too_late(const char *doing, struct np_err *err)
{
	np_err_set(err, -ETIMEDOUT, "selftest.timeout", "%s did not end before the deadline",
		   doing);
	np_err_hint(err, "look at the port's error counters for a bad link, or allow more time "
			 "with --timeout");
	return -ETIMEDOUT;
}
