/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "agent/nccl_conf.h"

/* NCCL keeps no more entries of a list (src/include/socket.h MAX_IFS,
 * src/transport/net_ib/common.h MAX_IB_DEVS; 16 for both before 2.18). */
#define MAX_IFNAMES 16
#define MAX_HCAS    32
/* NCCL cuts a name in a list here (src/include/utils.h, struct netIf). */
#define NAME_MAX_LEN 63
#define ANY_PORT     (-1)

/* A port as atoi() would read it; a missing one is any port. */
static int port_of(const char *s, size_t len)
{
	char digits[12];
	uint64_t port = 0;
	size_t n = 0;
	bool minus = false;

	if (len == 0)
		return ANY_PORT;
	while (len > 0 && isspace((unsigned char)*s))
		s++, len--;
	if (len > 0 && (*s == '-' || *s == '+')) {
		minus = *s == '-';
		s++, len--;
	}
	while (n < len && n < sizeof(digits) - 1 && isdigit((unsigned char)s[n])) {
		digits[n] = s[n];
		n++;
	}
	digits[n] = '\0';
	if (n == 0)
		return 0;
	if (np_parse_u64(digits, 10, INT_MAX, &port) < 0)
		port = INT_MAX;
	return minus ? -(int)port : (int)port;
}

/* Length of the field at @s, which ends at @separator or after @len bytes. */
static size_t field_len(const char *s, size_t len, char separator)
{
	const char *end = memchr(s, separator, len);

	return end ? (size_t)(end - s) : len;
}

static bool entry_matches(const char *entry, size_t len, bool exact, const char *name, int port)
{
	size_t name_len = field_len(entry, len, ':');
	size_t cut = name_len < NAME_MAX_LEN ? name_len : NAME_MAX_LEN;
	int entry_port = ANY_PORT;

	if (name_len < len) {
		const char *rest = entry + name_len + 1;

		entry_port = port_of(rest, field_len(rest, len - name_len - 1, ':'));
	}
	if (exact ? strlen(name) != cut : strlen(name) < cut)
		return false;
	return memcmp(name, entry, cut) == 0 &&
	       (port == ANY_PORT || entry_port == ANY_PORT || port == entry_port);
}

bool np_nccl_matches(const char *list, const char *name, int port)
{
	int max = port == ANY_PORT ? MAX_IFNAMES : MAX_HCAS;
	bool not = false, exact = false, found = false;
	int n = 0;

	if (!list)
		return true;
	if (*list == '^') {
		not = true;
		list++;
	}
	if (*list == '=') {
		exact = true;
		list++;
	}
	while (*list && n < max) {
		size_t len = strcspn(list, ",");

		if (len > 0 && *list != ':') {
			n++;
			found = found || entry_matches(list, len, exact, name, port);
		}
		list += len + (list[len] == ',' ? 1 : 0);
	}
	/* A list without entries takes everything. */
	return (n == 0 || found) != not ;
}

/* Splits "mlx5_0:1"; a netdev has no port. */
static bool split_port(const char *s, bool is_hca, char name[NAME_MAX_LEN + 1], int *port)
{
	const char *colon = is_hca ? strchr(s, ':') : NULL;
	size_t len = colon ? (size_t)(colon - s) : strlen(s);

	if (len == 0 || len > NAME_MAX_LEN)
		return false;
	memcpy(name, s, len);
	name[len] = '\0';
	*port = colon ? port_of(colon + 1, strlen(colon + 1)) : is_hca ? 1 : ANY_PORT;
	return true;
}

/* No entry of a list of netdevs begins like @name: so it is with nearly all of a host's
 * thousands of veths. */
static bool begins_nowhere(const char *value, const char *name)
{
	bool start = true;

	if (*value == '^')
		return false;
	for (value += *value == '='; *value; value++) {
		if (start && *value == *name)
			return false;
		start = *value == ',';
	}
	return true;
}

/* The value, which lists @wanted or all but those, takes each of @wanted and nothing else
 * of @all. */
static bool value_takes(const char *value, const struct np_strv *wanted, const struct np_strv *all,
			bool is_hca)
{
	const struct np_strv *lists[] = { wanted, all };
	char name[NAME_MAX_LEN + 1];
	int port;

	/* NCCL takes a one-letter NCCL_SOCKET_IFNAME for an unset one. */
	if (strlen(value) < 2)
		return false;
	for (size_t l = 0; l < NP_ARRAY_SIZE(lists); l++) {
		for (size_t i = 0; i < lists[l]->n; i++) {
			const char *s = lists[l]->v[i];

			if (!is_hca && begins_nowhere(value, s))
				continue;
			if (!split_port(s, is_hca, name, &port))
				return false;
			if (np_nccl_matches(value, name, port) != np_strv_has(wanted, s))
				return false;
		}
	}
	return true;
}

/* "a,b"; with @complement those of @all that are not in @names. */
static char *join(const char *prefix, const struct np_strv *names, const struct np_strv *but)
{
	struct np_buf out = { 0 };
	const char *separator = "";

	np_buf_str(&out, prefix);
	for (size_t i = 0; i < names->n; i++) {
		if (but && np_strv_has(but, names->v[i]))
			continue;
		np_buf_printf(&out, "%s%s", separator, names->v[i]);
		separator = ",";
	}
	if (out.failed) {
		np_buf_done(&out);
		return NULL;
	}
	return out.data;
}

/* Characters that NCCL's list gives a meaning of its own. NCCL before 2.30.7
 * drops a second '^' or '=' too. */
static bool names_ok(const struct np_strv *names, bool is_hca)
{
	for (size_t i = 0; i < names->n; i++) {
		const char *s = names->v[i];

		if (s[0] == '^' || s[0] == '=' || strchr(s, ',') || (!is_hca && strchr(s, ':')))
			return false;
	}
	return names->n > 0;
}

/* The plain form where it is enough (every NCCL reads it), else the exact one
 * (NCCL 2.5 and newer), else all but the others. */
static int list_value(const struct np_strv *wanted, const struct np_strv *all, bool is_hca,
		      char **out)
{
	static const char *const prefixes[] = { "", "=", "^=" };

	if (!names_ok(wanted, is_hca))
		return -EINVAL;
	for (size_t i = 0; i < NP_ARRAY_SIZE(prefixes); i++) {
		bool others = prefixes[i][0] == '^';
		_cleanup_free_ char *value =
			join(prefixes[i], others ? all : wanted, others ? wanted : NULL);

		if (!value)
			return -ENOMEM;
		if (others && (!is_hca || value[strlen(prefixes[i])] == '\0'))
			break;
		if (value_takes(value, wanted, all, is_hca)) {
			*out = np_steal_pointer(&value);
			return 0;
		}
	}
	return -ERANGE;
}

bool np_nccl_plain_is_exact(const char *name, const struct np_strv *all)
{
	char *names[] = { (char *)name, NULL };
	struct np_strv one = { .v = names, .n = 1 };

	return names_ok(&one, false) && value_takes(name, &one, all, false);
}

char *np_nccl_ifname_value(const struct np_strv *names, const struct np_strv *all)
{
	char *out = NULL;
	int r = list_value(names, all, false, &out);

	if (r < 0)
		errno = -r;
	return out;
}

int np_nccl_hca_value(const struct np_strv *ports, const struct np_strv *all_ports, char **out)
{
	bool all = true;

	for (size_t i = 0; i < all_ports->n; i++)
		all = all && np_strv_has(ports, all_ports->v[i]);
	if (all || ports->n == 0) {
		*out = NULL;
		return 0;
	}
	return list_value(ports, all_ports, true, out);
}
