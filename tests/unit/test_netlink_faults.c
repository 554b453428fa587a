/* SPDX-License-Identifier: MIT */
#include "test_netlink_help.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "netlink/rdma.h"

/* What goes wrong between the kernel and us. recvmsg and setsockopt of this
 * program stand before those of the C library. */
static int enobufs, interrupted, eintr, forged;
static int no_rdma; /* errno of its sockets */
static bool old_kernel, mutate;
static unsigned int seed;

void __asan_poison_memory_region(const volatile void *at, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *at, size_t size) __attribute__((weak));

static void change_messages(char *data, size_t len)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)data;

	for (; NLMSG_OK(nlh, len); nlh = NLMSG_NEXT(nlh, len)) {
		if (interrupted > 0)
			nlh->nlmsg_flags |= NLM_F_DUMP_INTR;
		for (int i = 0; mutate && nlh->nlmsg_len > NLMSG_HDRLEN && i < 3; i++) {
			size_t at = (size_t)rand_r(&seed) % (nlh->nlmsg_len - NLMSG_HDRLEN);
			static const unsigned char edges[] = { 0, 1, 3, 4, 5, 0x7f, 0x80, 0xff };

			((unsigned char *)NLMSG_DATA(nlh))[at] = edges[rand_r(&seed) % 8];
		}
	}
}

ssize_t recvmsg(int fd, struct msghdr *mh, int flags)
{
	struct iovec *iov = mh->msg_iov;
	ssize_t n;

	if (eintr > 0 && eintr--) {
		errno = EINTR;
		return -1;
	}
	if (enobufs > 0 && enobufs--) {
		errno = ENOBUFS;
		return -1;
	}
	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(iov->iov_base, iov->iov_len);
	/* A forgery is a look at the true answer, spoilt, from another sender. */
	n = syscall(SYS_recvmsg, fd, mh, forged > 0 ? flags | MSG_PEEK : flags);
	if (n < 0 || (size_t)n > iov->iov_len)
		return n;
	change_messages(iov->iov_base, (size_t)n);
	if (interrupted > 0)
		interrupted--;
	/* Nothing may be read beyond what came. */
	if (__asan_poison_memory_region && (size_t)n < iov->iov_len)
		__asan_poison_memory_region((char *)iov->iov_base + n, iov->iov_len - (size_t)n);
	if (forged > 0) {
		forged--;
		((struct nlmsghdr *)iov->iov_base)->nlmsg_type = NLMSG_DONE;
		((struct sockaddr_nl *)mh->msg_name)->nl_pid = 4711;
	}
	return n;
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	if (old_kernel && level == SOL_NETLINK) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)syscall(SYS_setsockopt, fd, level, option, value, size);
}

int socket(int family, int type, int protocol)
{
	if (no_rdma && family == AF_NETLINK && protocol == NETLINK_RDMA) {
		errno = no_rdma;
		return -1;
	}
	return (int)syscall(SYS_socket, family, type, protocol);
}

static int busy_net(void **state)
{
	no_rdma = 0;
	enobufs = interrupted = eintr = forged = 0;
	old_kernel = mutate = false;
	if (fresh_net(state) < 0)
		return -1;
	return run(
		"ip link add eth1 type veth peer name peer1 && ip link set eth1 up && "
		"ip link set peer1 up && ip link property add dev eth1 altname also-eth1 && "
		"ip addr add 10.0.0.1/24 brd + dev eth1 && ip addr add 10.0.0.2/24 dev eth1 && "
		"ip addr add 2001:db8::1/64 dev eth1 nodad && ip addr add 10.1.0.1/24 dev peer1 && "
		"ip route add default nexthop via 10.0.0.9 dev eth1 nexthop via 10.1.0.9 dev peer1");
}

static void expect_all(void)
{
	np_auto_netdevs struct np_netdevs all = { 0 }, named = { 0 };
	np_auto(np_routes_done) struct np_routes routes = { 0 };
	char text[256];

	assert_int_equal(np_netdevs_observe_all(nl, 0, &all, &err), 0);
	assert_int_equal(all.n, 3);
	assert_string_equal(addr_list(&all.v[0], text, sizeof(text)),
			    "10.0.0.1/24 10.0.0.2/24 2001:db8::1/64 ");
	named = observe("also-eth1", 0);
	assert_int_equal(named.n, 1);
	assert_string_equal(addr_list(&named.v[0], text, sizeof(text)),
			    "10.0.0.1/24 10.0.0.2/24 2001:db8::1/64 ");
	assert_int_equal(np_routes_observe(nl, NULL, &routes, &err), 0);
	assert_int_equal(routes.n, 5);
}

static void lost_messages_are_asked_again(void **state)
{
	(void)state;
	for (int n = 1; n < 5; n++) {
		enobufs = n;
		expect_all();
		assert_int_equal(enobufs, 0);
	}
}

static void interrupted_dumps_are_repeated(void **state)
{
	(void)state;
	for (int n = 1; n < 9; n++) {
		interrupted = n;
		expect_all();
		assert_int_equal(interrupted, 0);
	}
}

static void interrupted_for_ever_is_an_error(void **state)
{
	struct np_netdevs all = { 0 };

	(void)state;
	interrupted = 1000000;
	assert_int_equal(np_netdevs_observe_all(nl, 0, &all, &err), -EAGAIN);
	assert_null(all.v);
	assert_string_equal(err.code, "netlink.query");
	assert_non_null(strstr(err.message, "interrupted"));
	assert_string_not_equal(err.hint, "");
	interrupted = 0;
	expect_all();
}

static void signals_do_not_cut_answers(void **state)
{
	(void)state;
	eintr = 3;
	expect_all();
}

static void messages_of_others_are_ignored(void **state)
{
	(void)state;
	for (forged = 5; forged;)
		expect_all();
}

static void kernels_without_strict_checks(void **state)
{
	struct np_netdev_addr addr = address("10.0.0.1/24");

	(void)state;
	old_kernel = true;
	np_netlink_close(&nl);
	assert_int_equal(np_netlink_open(&nl, &err), 0);
	expect_all();
	/* No reason then, but a proper error all the same. */
	addr.inet.prefix_len = 33;
	assert_int_equal(np_addr_add(nl, index_of("eth1"), "eth1", &addr, &err), -EINVAL);
	assert_non_null(strstr(err.message, "cannot add 10.0.0.1/33 to eth1: Invalid argument"));
}

/* Bytes that no kernel sends: any answer will do, but no crash and no read
 * beyond the datagram. */
static void nonsense_is_survived(void **state)
{
	const struct np_netdev_addr addr = address("10.0.0.2/24");
	np_auto_strv struct np_strv names = { 0 };
	unsigned int failures = 0;

	(void)state;
	assert_int_equal(np_strv_add(&names, "eth1"), 0);
	assert_int_equal(np_strv_add(&names, "also-eth1"), 0);
	mutate = true;
	for (seed = 1; seed < 500; seed++) {
		np_auto_netdevs struct np_netdevs all = { 0 }, named = { 0 };
		np_auto(np_routes_done) struct np_routes routes = { 0 };
		struct np_addr_owner owner;

		failures += np_netdevs_observe_all(nl, NP_NETDEV_STATS, &all, &err) < 0;
		failures += np_netdevs_observe_named(nl, &names, 0, &named, &err) < 0;
		failures += np_routes_observe(nl, NULL, &routes, &err) < 0;
		failures += np_addr_find_owner(nl, &addr.inet, 0, &owner, &err) < 0;
		failures += np_addr_lookup_owner(nl, &addr.inet, &owner, &err) < 0;
		failures += np_netdev_set_up(nl, 4711, "none", true, &err) < 0;
	}
	assert_in_range(failures, 1, 6 * 500);
	mutate = false;
	expect_all();
}

/* A kernel without it, or a container's filter: nobody can be named, and that is all. */
static void without_rdma_nobody_is_known(void **state)
{
	static const int why[] = { EPROTONOSUPPORT, EPERM, EACCES, EAFNOSUPPORT };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(why); i++) {
		np_auto_rdma_users struct np_rdma_users users = { .known = true };

		no_rdma = why[i];
		assert_int_equal(np_rdma_users_observe(0, &users, &err), 0);
		assert_false(users.known);
		assert_int_equal(users.n, 0);
	}
	for (int i = 0; i < 2; i++) {
		np_auto_rdma_users struct np_rdma_users users = { 0 };

		no_rdma = i ? EMFILE : ENOBUFS;
		assert_true(np_rdma_users_observe(0, &users, &err) < 0);
		assert_string_equal(err.code, "netlink.query");
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, busy_net, close_net)
	const struct CMUnitTest tests[] = {
		T(lost_messages_are_asked_again),
		T(interrupted_dumps_are_repeated),
		T(interrupted_for_ever_is_an_error),
		T(signals_do_not_cut_answers),
		T(messages_of_others_are_ignored),
		T(kernels_without_strict_checks),
		T(nonsense_is_survived),
		T(without_rdma_nobody_is_known),
	};

	need_namespaces("test_netlink_faults");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
