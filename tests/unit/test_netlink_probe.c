/* SPDX-License-Identifier: MIT */
/*
 * ARP probes as bytes, and over a real packet socket: a TUN of link type 32, at whose other
 * end the test plays the fabric.
 */
#include "probe_fabric.h"

#include <signal.h>

#include "base/child.h"
#include "netlink/probe.h"
#include "netlink/probe_arp.h"

static bool conflicts_n(const char *packet, size_t len, const char *own)
{
	/* a copy of that size, so that ASan sees an over-read */
	_cleanup_free_ char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, packet, len);
	return np_ib_arp_conflicts((const struct np_ib_arp *)copy, len, (const uint8_t *)own,
				   (const uint8_t *)IP50);
}

static bool conflicts(const char *packet)
{
	return conflicts_n(packet, LEN, OWN);
}

static void probe_as_in_the_rfc(void **state)
{
	static const char want[] = REQUEST OWN NO_IP NO_HW IP50;
	struct np_ib_arp arp;

	(void)state;
	assert_int_equal(sizeof(want) - 1, LEN);
	assert_int_equal(sizeof(arp), LEN);
	memset(&arp, 0xff, sizeof(arp));
	np_ib_arp_build((const uint8_t *)OWN, (const uint8_t *)IP50, &arp);
	assert_memory_equal(&arp, want, LEN);
}

static void who_is_in_the_way(void **state)
{
	(void)state;
	/* answers, announces, or asks for another as the owner */
	assert_true(conflicts(REPLY OTHER IP50 OWN NO_IP));
	assert_true(conflicts(REQUEST OTHER IP50 NO_HW IP50));
	assert_true(conflicts(REQUEST OTHER IP50 NO_HW IP51));
	/* is about to take it as well */
	assert_true(conflicts(REQUEST OTHER NO_IP NO_HW IP50));
	/* shares our port, in another network namespace: another queue pair */
	assert_true(conflicts(REPLY "\x80\x00\x00\x49\xfe\x80\0\0\0\0\0\0\x50\x6b\x4b\x03\x00\xf5"
				    "\xce\x9c" IP50 OWN NO_IP));
	assert_true(np_ib_hwaddr_guid((const uint8_t *)OTHER) == OTHER_GUID);
}

static void who_is_not(void **state)
{
	(void)state;
	/* we ourselves, whatever the mode flag says */
	assert_false(conflicts(REQUEST OWN NO_IP NO_HW IP50));
	assert_false(conflicts(REPLY OWN IP50 OTHER IP51));
	assert_false(conflicts(REPLY "\x00\x00\x00\x48\xfe\x80\0\0\0\0\0\0\x50\x6b\x4b\x03\x00\xf5"
				     "\xce\x9c" IP50 OTHER IP51));
	/* wants to talk to it, has another, is about to take another */
	assert_false(conflicts(REQUEST OTHER IP51 NO_HW IP50));
	assert_false(conflicts(REPLY OTHER IP51 OWN IP50));
	assert_false(conflicts(REQUEST OTHER NO_IP NO_HW IP51));
	/* a reply without a sender is no probe */
	assert_false(conflicts(REPLY OTHER NO_IP OWN IP50));
}

static void what_is_no_such_packet(void **state)
{
	static const char good[] = REPLY OTHER IP50 OWN NO_IP;

	(void)state;
	for (size_t len = 0; len < LEN; len++)
		assert_false(conflicts_n(good, len, OWN));
	assert_true(conflicts_n(good, LEN, OWN));
	/* Ethernet, ARP of another protocol, other lengths, an inverse ARP reply */
	assert_false(conflicts("\x00\x01\x08\x00\x14\x04\x00\x02" OTHER IP50 OWN NO_IP));
	assert_false(conflicts("\x00\x20\x86\xdd\x14\x04\x00\x02" OTHER IP50 OWN NO_IP));
	assert_false(conflicts("\x00\x20\x08\x00\x06\x04\x00\x02" OTHER IP50 OWN NO_IP));
	assert_false(conflicts("\x00\x20\x08\x00\x14\x10\x00\x02" OTHER IP50 OWN NO_IP));
	assert_false(conflicts(HEAD "\x00\x09" OTHER IP50 OWN NO_IP));
}

/* ---- over a packet socket ---- */

static struct np_probe question(const struct np_netdev *dev, const char *text)
{
	struct np_probe p = { .dev = dev, .outcome = 77, .owner_guid = 77 };

	assert_int_equal(np_inet_parse(text, &p.inet, &err), 0);
	return p;
}

static void silence_is_free(void **state)
{
	struct fabric f = { 0 };
	struct np_probe p[2];
	int64_t start;

	(void)state;
	begin_fabric(&f);
	p[0] = question(&f.dev, "10.0.0.50/24");
	p[1] = question(&f.dev, "10.0.0.51/24");
	start = np_now_ms();
	assert_int_equal(np_arp_probe(p, 2, 200, &err), 0);
	assert_true(np_now_ms() - start >= 199);
	end_fabric(&f);
	assert_int_equal(p[0].outcome, NP_PROBE_FREE);
	assert_int_equal(p[1].outcome, NP_PROBE_FREE);
	/* each asked for twice */
	assert_int_equal(f.asked, 4);
	assert_memory_equal(f.last[0], REQUEST OWN NO_IP NO_HW IP50, LEN);
	assert_memory_equal(f.last[1], REQUEST OWN NO_IP NO_HW IP51, LEN);
}

static void an_answer_names_its_port(void **state)
{
	(void)state;
	/* to the first probe, and to the second */
	for (int after = 1; after <= 2; after++) {
		struct fabric f = { .answer = REPLY OTHER IP50 OWN NO_IP, .after = after };
		int64_t start = np_now_ms();
		struct np_probe p;

		begin_fabric(&f);
		p = question(&f.dev, "10.0.0.50/24");
		assert_int_equal(np_arp_probe(&p, 1, 10000, &err), 0);
		assert_true(np_now_ms() - start < 9000);
		end_fabric(&f);
		assert_int_equal(p.outcome, NP_PROBE_IN_USE);
		assert_true(p.owner_guid == OTHER_GUID);
		assert_int_equal(f.asked, after);
	}
}

/* One of two is taken: the other one is waited for to the end, and free. */
static void each_has_its_own_outcome(void **state)
{
	struct fabric f = { .answer = REQUEST OTHER NO_IP NO_HW IP50, .after = 1 };
	struct np_probe p[3];

	(void)state;
	begin_fabric(&f);
	p[0] = question(&f.dev, "10.0.0.52/24");
	p[1] = question(&f.dev, "10.0.0.50/16");
	p[2] = question(&f.dev, "fd00::1/64");
	assert_int_equal(np_arp_probe(p, 3, 2000, &err), 0);
	end_fabric(&f);
	assert_int_equal(p[0].outcome, NP_PROBE_FREE);
	assert_int_equal(p[1].outcome, NP_PROBE_IN_USE);
	assert_int_equal(p[2].outcome, NP_PROBE_NOT_POSSIBLE);
}

static void is_not_possible(struct np_netdev dev, const char *why)
{
	struct np_probe p = question(&dev, "10.0.0.50/24");
	int64_t start = np_now_ms();

	assert_int_equal(np_arp_probe(&p, 1, 20000, &err), 0);
	assert_true(np_now_ms() - start < 10000);
	assert_int_equal(p.outcome, NP_PROBE_NOT_POSSIBLE);
	if (!strstr(p.why, why))
		fail_msg("\"%s\" does not say \"%s\"", p.why, why);
}

static void what_cannot_be_asked(void **state)
{
	struct fabric f = { 0 };
	struct np_netdev dev;

	(void)state;
	begin_fabric(&f);
	dev = f.dev;
	dev.flags &= ~(uint32_t)IFF_RUNNING;
	is_not_possible(dev, "no carrier");
	dev.flags = 0;
	is_not_possible(dev, "down");
	dev = f.dev;
	dev.hwaddr_len = 0;
	is_not_possible(dev, "no hardware address");
	dev = f.dev;
	dev.hwbroadcast_len = 6;
	is_not_possible(dev, "no hardware address");
	dev = f.dev;
	dev.type = 1;
	is_not_possible(dev, "no hardware address");
	dev = f.dev;
	dev.ifindex = 4711;
	is_not_possible(dev, "No such device");
	/* down by now, though it was up when it was looked at */
	assert_int_equal(np_netdev_set_up(nl, f.dev.ifindex, "ib0", false, &err), 0);
	is_not_possible(f.dev, "Network is down");
	end_fabric(&f);
	assert_int_equal(f.asked, 0);
}

static void *down_later(void *arg)
{
	struct np_err why = { 0 };

	usleep(100 * 1000);
	assert_int_equal(np_netdev_set_up(nl, *(int *)arg, "ib0", false, &why), 0);
	return NULL;
}

static void goes_down_meanwhile(void **state)
{
	struct fabric f = { 0 };
	pthread_t thread;

	(void)state;
	begin_fabric(&f);
	assert_int_equal(pthread_create(&thread, NULL, down_later, &f.dev.ifindex), 0);
	is_not_possible(f.dev, "Network is down");
	pthread_join(thread, NULL);
	end_fabric(&f);
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
	struct fabric f = { 0 };
	pthread_t self = pthread_self(), thread;
	int64_t start = np_now_ms();
	struct np_probe p;

	(void)state;
	begin_fabric(&f);
	np_signals_install();
	p = question(&f.dev, "10.0.0.50/24");
	assert_int_equal(pthread_create(&thread, NULL, signal_later, &self), 0);
	assert_int_equal(np_arp_probe(&p, 1, 20000, &err), -EINTR);
	pthread_join(thread, NULL);
	assert_true(np_now_ms() - start < 10000);
	assert_string_equal(err.code, "internal.interrupted");
	assert_true(err.hint[0]);
	end_fabric(&f);
}

#define IN_NET(test) cmocka_unit_test_setup_teardown(test, fresh_net, close_net)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe_as_in_the_rfc),
		cmocka_unit_test(who_is_in_the_way),
		cmocka_unit_test(who_is_not),
		cmocka_unit_test(what_is_no_such_packet),
		IN_NET(silence_is_free),
		IN_NET(an_answer_names_its_port),
		IN_NET(each_has_its_own_outcome),
		IN_NET(what_cannot_be_asked),
		IN_NET(goes_down_meanwhile),
		IN_NET(signal_ends_it),
	};

	need_namespaces("test_netlink_probe");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
