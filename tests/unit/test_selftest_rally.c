/* SPDX-License-Identifier: MIT */
/* Round trips back to back: between two workers of this process, over UCX's tcp on lo. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/child.h"
#include "selftest/ucp_rally.h"

static struct np_ucp_spec spec = {
	.rung = "tcp",
	.tls = "tcp",
	.net_devices = "lo",
	.mem = &np_ucp_mem_host,
};

static void how_many(void **state)
{
	(void)state;
	assert_int_equal(np_ucp_rally_trips(0), 10000);
	assert_int_equal(np_ucp_rally_trips(0.4), 10000);
	assert_int_equal(np_ucp_rally_trips(25), 1000);
	assert_int_equal(np_ucp_rally_trips(1e9), 3);
}

/* Opens, and measures the latency of 8 bytes. @corrupt: the message that is damaged. */
static int latency(const char *corrupt, double *us, struct np_err *err)
{
	struct np_ucp_buffers buffers = { 0 };
	struct np_ucp_link link;
	int ret;

	np_err_clear(err);
	spec.deadline_ms = np_now_ms() + 20000;
	if (corrupt)
		setenv("NP_TEST_CORRUPT", corrupt, 1);
	assert_int_equal(np_ucp_link_open(&link, &spec, err), 0);
	assert_int_equal(np_ucp_buffers_alloc(&buffers, &spec, err), 0);
	ret = np_ucp_latency(&link, &buffers, 8, us, err);
	unsetenv("NP_TEST_CORRUPT");
	np_ucp_finish(&link, &buffers, ret);
	return ret;
}

static void every_last_message_is_compared(void **state)
{
	/* both messages of each trip that is verified by itself */
	unsigned int before = 2 * (NP_UCP_WARM_UP + NP_UCP_TRIPS_MAX);
	struct np_err err;
	char nth[16];
	double us = 0;

	(void)state;
	assert_int_equal(latency(NULL, &us, &err), 0);
	assert_true(us > 0);
	for (unsigned int i = 1; i <= 2; i++) {
		snprintf(nth, sizeof(nth), "%u", before + i);
		assert_int_equal(latency(nth, &us, &err), -EBADMSG);
		assert_string_equal(err.code, "selftest.data_corrupt");
	}
	/* and there are no others */
	snprintf(nth, sizeof(nth), "%u", before + 3);
	assert_int_equal(latency(nth, &us, &err), 0);
}

static void late(void **state)
{
	struct np_ucp_buffers buffers = { 0 };
	struct np_ucp_message m[2];
	struct np_ucp_link link;
	struct np_ucp_side side;
	struct np_err err;
	double us;

	(void)state;
	np_err_clear(&err);
	spec.deadline_ms = np_now_ms() + 20000;
	assert_int_equal(np_ucp_link_open(&link, &spec, &err), 0);
	assert_int_equal(np_ucp_buffers_alloc(&buffers, &spec, &err), 0);
	for (size_t i = 0; i < 2; i++)
		np_ucp_message_next(&buffers, i, 8, &m[i]);
	/* nobody answers */
	side = (struct np_ucp_side){ &link, 0, &m[0], &m[1], "sending 8 B", { 0 }, { 0 } };
	spec.deadline_ms = np_now_ms() + 200;
	assert_int_equal(np_ucp_rally_serve(&side, 10, &us, &err), -ETIMEDOUT);
	assert_string_equal(err.code, "selftest.timeout");
	np_ucp_finish(&link, &buffers, -ETIMEDOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(how_many),
		cmocka_unit_test(every_last_message_is_compared),
		cmocka_unit_test(late),
	};

	int failed;

	failed = cmocka_run_group_tests(tests, NULL, NULL);
	fflush(NULL);
	_exit(failed); /* the late link is left as it is */
}
