/* SPDX-License-Identifier: MIT */
#include "test_netlink_help.h"

#include <pthread.h>
#include <signal.h>

#include "base/child.h"

static void no_carrier_ends_at_the_deadline(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	int64_t start;

	(void)state;
	set_carrier(fd, 0);
	assert_int_equal(np_netdev_set_up(nl, index_of("ib0"), "ib0", true, &err), 0);
	assert_int_equal(np_netdev_wait_running(nl, index_of("ib0"), 0, &err), 0);
	start = np_now_ms();
	assert_int_equal(np_netdev_wait_running(nl, index_of("ib0"), 300, &err), 0);
	assert_in_range(np_now_ms() - start, 299, 2000);
}

static void running_already(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");

	(void)state;
	set_carrier(fd, 1);
	assert_int_equal(np_netdev_set_up(nl, index_of("ib0"), "ib0", true, &err), 0);
	assert_int_equal(np_netdev_wait_running(nl, index_of("ib0"), 5000, &err), 1);
	assert_int_equal(np_netdev_wait_running(nl, index_of("ib0"), 0, &err), 1);
}

static void *carrier_later(void *arg)
{
	int on = 1;

	usleep(100 * 1000);
	ioctl(*(int *)arg, TUNSETCARRIER, &on);
	return NULL;
}

static void carrier_comes(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	int64_t start = np_now_ms();
	pthread_t thread;

	(void)state;
	set_carrier(fd, 0);
	assert_int_equal(np_netdev_set_up(nl, index_of("ib0"), "ib0", true, &err), 0);
	assert_int_equal(pthread_create(&thread, NULL, carrier_later, &fd), 0);
	assert_int_equal(np_netdev_wait_running(nl, index_of("ib0"), 20000, &err), 1);
	pthread_join(thread, NULL);
	assert_in_range(np_now_ms() - start, 90, 5000);
}

static void *close_later(void *arg)
{
	usleep(100 * 1000);
	close(*(int *)arg); /* the TAP goes with it */
	return NULL;
}

static void netdev_goes_away(void **state)
{
	int fd = make_ib("ib0"), ifindex = index_of("ib0");
	pthread_t thread;

	(void)state;
	set_carrier(fd, 0);
	assert_int_equal(np_netdev_set_up(nl, ifindex, "ib0", true, &err), 0);
	assert_int_equal(pthread_create(&thread, NULL, close_later, &fd), 0);
	assert_int_equal(np_netdev_wait_running(nl, ifindex, 20000, &err), -ENODEV);
	pthread_join(thread, NULL);
	assert_int_equal(np_netdev_wait_running(nl, ifindex, 20000, &err), -ENODEV);
}

static pthread_t waiter;

static void *noise(void *arg)
{
	/* More events than the socket holds, none of them ours, then carrier. */
	(void)arg;
	run("for i in $(seq 300); do echo link set lo up; echo link set lo down; done | "
	    "ip -batch - >/dev/null");
	return carrier_later(arg);
}

static void lost_events_are_no_lost_carrier(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");

	(void)state;
	set_carrier(fd, 0);
	assert_int_equal(np_netdev_set_up(nl, index_of("ib0"), "ib0", true, &err), 0);
	assert_int_equal(pthread_create(&waiter, NULL, noise, &fd), 0);
	assert_int_equal(np_netdev_wait_running(nl, index_of("ib0"), 20000, &err), 1);
	pthread_join(waiter, NULL);
}

static void *signal_later(void *arg)
{
	usleep(100 * 1000);
	pthread_kill(*(pthread_t *)arg, SIGTERM);
	return NULL;
}

/* Last: the flag stays. */
static void signal_ends_it(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	pthread_t self = pthread_self(), thread;
	int64_t start = np_now_ms();

	(void)state;
	np_signals_install();
	set_carrier(fd, 0);
	assert_int_equal(np_netdev_set_up(nl, index_of("ib0"), "ib0", true, &err), 0);
	assert_int_equal(pthread_create(&thread, NULL, signal_later, &self), 0);
	assert_int_equal(np_netdev_wait_running(nl, index_of("ib0"), 20000, &err), 0);
	pthread_join(thread, NULL);
	assert_in_range(np_now_ms() - start, 90, 5000);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fresh_net, close_net)
	const struct CMUnitTest tests[] = {
		T(no_carrier_ends_at_the_deadline),
		T(running_already),
		T(carrier_comes),
		T(netdev_goes_away),
		T(lost_events_are_no_lost_carrier),
		T(signal_ends_it),
	};

	need_namespaces("test_netlink_wait");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
