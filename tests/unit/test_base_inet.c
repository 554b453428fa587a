/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include "base/inet.h"

static void refused(const char *text, const char *part)
{
	struct np_inet a = { .family = 77 };
	struct np_err err;

	np_err_clear(&err);
	if (np_inet_parse(text, &a, &err) != -EINVAL)
		fail_msg("\"%.60s\" was taken", text);
	assert_int_equal(a.family, 77);
	assert_int_equal(err.num, -EINVAL);
	assert_string_equal(err.code, "usage.address");
	assert_true(err.hint[0]);
	if (!strstr(err.message, part))
		fail_msg("\"%s\" does not say \"%s\"", err.message, part);
	for (const char *c = err.message; *c; c++) /* one line, nothing for a terminal */
		assert_true(*c >= ' ' && *c <= '~');
	assert_int_equal(np_inet_parse(text, &a, NULL), -EINVAL);
}

/* C26 */
static void test_refused_addresses(void **state)
{
	char long_text[301];

	(void)state;
	memset(long_text, '1', 300);
	long_text[300] = '\0';
	refused("10.0.0.50", "no prefix length");
	refused("10.0.0.500/24", "not an IPv4 or IPv6 address");
	refused("10.0.0.50/33", "from 1 to 32");
	refused("10.0.0.0/24", "network address");
	refused("10.0.0.255/24", "broadcast address");
	refused("224.0.0.1/24", "multicast");
	refused("0.0.0.0/0", "0.0.0.0/8");
	refused("127.0.0.1/8", "loopback");
	refused("10.0.0.50/24;id", "prefix length");
	refused("", "not an IPv4 or IPv6 address");
	refused(long_text, "...");
	refused("fe80::1/129", "from 1 to 128");
	refused("10.0.0.50/", "prefix length");
	refused("10.0.0.50/-1", "prefix length");
	refused("10.0.0.50/ 24", "prefix length");
	refused("10.0.0.50/24 ", "prefix length");
	refused(" 10.0.0.50/24", "not an IPv4");
	refused("10.0.0.50/0x18", "prefix length");
	refused("10.0.0.50/4294967320", "prefix length");
	refused("10.0.0.50/24/24", "prefix length");
	refused("10.0.50/24", "not an IPv4");
	refused("010.0.0.50/24", "not an IPv4");
	refused("10.0.0.50/0", "prefix length 0");
	refused("240.0.0.1/4", "reserved");
	refused("255.255.255.255/32", "reserved");
	refused("10.0.0.50\n/24", "not an IPv4");
	refused("\033[2J/24", "not an IPv4");
	refused("/24", "not an IPv4");
	refused("::/64", "unspecified");
	refused("::1/128", "loopback");
	refused("ff02::1/64", "multicast");
	refused("::ffff:10.0.0.50/120", "IPv4-mapped");
	refused("fd00::/64", "anycast");
	refused("fd00::1/0", "prefix length 0");
	refused("fe80::1%ib0/64", "not an IPv4 or IPv6 address");
	refused("fd00::1", "no prefix length");
	refused(":/64", "not an IPv4");
}

static void test_taken_addresses(void **state)
{
	static const char *const texts[] = { "10.0.0.50/24",  "10.0.0.50/31",	    "10.0.0.51/31",
					     "10.0.0.50/32",  "10.0.0.1/30",	    "10.0.0.0/31",
					     "10.0.0.255/31", "10.0.0.0/23x",	    "10.0.1.0/23",
					     "10.0.0.255/23", "223.255.255.254/24", "fd00::50/64",
					     "fe80::1/64",    "fd00::/127",	    "fd00::/128",
					     "10.0.0.1/8" };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		char text[NP_INET_STRLEN];
		struct np_inet a, b;
		struct np_err err;

		np_err_clear(&err);
		if (strchr(texts[i], 'x')) /* the list itself can fail */ {
			assert_int_equal(np_inet_parse(texts[i], &a, &err), -EINVAL);
			continue;
		}
		if (np_inet_parse(texts[i], &a, &err) < 0)
			fail_msg("%s: %s", texts[i], err.message);
		assert_string_equal(np_inet_str(&a, text), texts[i]);
		assert_int_equal(np_inet_parse_any(texts[i], &b), 0);
		assert_true(np_inet_equal(&a, &b));
	}
}

static void test_parse_any(void **state)
{
	static const char *const bad[] = { "",		"/",	       "10.0.0.1",
					   "10.0.0.1/", "10.0.0.1/33", "x/1",
					   "::/129",	"1.2.3.4/1/2" };
	struct np_inet a = { .family = 77 };
	char big[200];

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad); i++)
		assert_int_equal(np_inet_parse_any(bad[i], &a), -EINVAL);
	memset(big, ':', sizeof(big) - 1);
	big[150] = '/';
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(np_inet_parse_any(big, &a), -EINVAL);
	assert_int_equal(a.family, 77);
	assert_int_equal(np_inet_parse_any("0.0.0.0/0", &a), 0);
	assert_int_equal(np_inet_parse_any("224.0.0.1/4", &a), 0);
	assert_int_equal(np_inet_parse_any("::/0", &a), 0);
}

static void test_broadcast(void **state)
{
	static const struct {
		const char *inet;
		uint8_t bytes[4];
	} cases[] = {
		{ "10.0.0.50/24", { 10, 0, 0, 255 } },	{ "10.0.0.50/8", { 10, 255, 255, 255 } },
		{ "10.0.0.50/30", { 10, 0, 0, 51 } },	{ "10.1.2.3/0", { 255, 255, 255, 255 } },
		{ "10.0.0.50/20", { 10, 0, 15, 255 } }, { "10.0.0.50/17", { 10, 0, 127, 255 } }
	};
	static const char *const none[] = { "10.0.0.50/31", "10.0.0.50/32", "fd00::1/64" };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_inet a = fb_inet(cases[i].inet);
		uint8_t out[4];

		assert_true(np_inet_broadcast(&a, out));
		assert_memory_equal(out, cases[i].bytes, 4);
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(none); i++) {
		struct np_inet a = fb_inet(none[i]);
		uint8_t out[4] = { 1, 2, 3, 4 };

		assert_false(np_inet_broadcast(&a, out));
		assert_memory_equal(out, "\1\2\3\4", 4);
	}
}

static void test_relations(void **state)
{
	struct np_inet a = fb_inet("10.0.0.7/20"), b = fb_inet("10.0.0.50/24"),
		       c = fb_inet("10.0.16.1/24"), six = fb_inet("fd00::1/64"),
		       zero = fb_inet("0.0.0.0/0"), zero6 = fb_inet("::/0");

	(void)state;
	assert_true(np_inet_overlap(&a, &b));
	assert_false(np_inet_overlap(&a, &c));
	assert_false(np_inet_same_subnet(&a, &b));
	assert_true(np_inet_contains(&a, &b));
	assert_false(np_inet_contains(&b, &c));
	assert_false(np_inet_overlap(&zero, &six));
	assert_true(np_inet_overlap(&zero, &a));
	assert_false(np_inet_contains(&zero6, &a));
	assert_false(np_inet_same_addr(&zero, &zero6));
}

static struct np_inet random_inet(uint64_t *random)
{
	struct np_inet a = { .family = fb_random(random) % 2 ? AF_INET : AF_INET6 };
	int bytes = a.family == AF_INET ? 4 : 16;

	for (int i = 0; i < bytes; i++)
		a.bytes[i] = (uint8_t)(fb_random(random) % 3 ? 0xff : fb_random(random));
	a.prefix_len = (uint8_t)(fb_random(random) % (uint32_t)(8 * bytes + 1));
	return a;
}

static bool bit_equal(const struct np_inet *a, const struct np_inet *b, int bits)
{
	for (int i = 0; i < bits; i++)
		if (((a->bytes[i / 8] ^ b->bytes[i / 8]) >> (7 - i % 8)) & 1)
			return false;
	return a->family == b->family;
}

static void test_properties(void **state)
{
	uint64_t random = 99;

	(void)state;
	for (int i = 0; i < 50000; i++) {
		struct np_inet a = random_inet(&random), b = random_inet(&random), back;
		int shorter = a.prefix_len < b.prefix_len ? a.prefix_len : b.prefix_len;
		char text[NP_INET_STRLEN];
		uint8_t broadcast[4];

		assert_int_equal(np_inet_parse_any(np_inet_str(&a, text), &back), 0);
		assert_true(np_inet_equal(&a, &back));
		assert_true(np_inet_overlap(&a, &b) == np_inet_overlap(&b, &a));
		assert_true(np_inet_overlap(&a, &b) == bit_equal(&a, &b, shorter));
		assert_true(np_inet_contains(&a, &a) && np_inet_overlap(&a, &a));
		assert_true(np_inet_contains(&a, &b) == bit_equal(&a, &b, a.prefix_len));
		assert_true(np_inet_same_subnet(&a, &b) ==
			    (a.prefix_len == b.prefix_len && bit_equal(&a, &b, a.prefix_len)));
		assert_true(np_inet_overlap(&a, &b) ==
			    (np_inet_contains(&a, &b) || np_inet_contains(&b, &a)));
		if (np_inet_broadcast(&a, broadcast)) {
			memcpy(back.bytes, broadcast, 4);
			assert_true(np_inet_contains(&a, &back));
			/* an address that was taken is not its own broadcast */
			if (np_inet_parse(text, &b, NULL) == 0)
				assert_true(memcmp(broadcast, a.bytes, 4) != 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_addresses), cmocka_unit_test(test_taken_addresses),
		cmocka_unit_test(test_parse_any),	  cmocka_unit_test(test_broadcast),
		cmocka_unit_test(test_relations),	  cmocka_unit_test(test_properties),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
