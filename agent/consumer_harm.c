/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "agent/consumer_harm.h"
#include "base/memlock.h"

static bool has_infiniband(const struct np_facts *facts)
{
	for (size_t i = 0; i < facts->cas.n; i++)
		for (size_t p = 0; p < facts->cas.v[i].n_ports; p++)
			if (facts->cas.v[i].ports[p].state == NP_PORT_ACTIVE &&
			    facts->cas.v[i].ports[p].link_layer == NP_LL_INFINIBAND)
				return true;
	return false;
}

/* ---- NCCL ---- */

static void judge_no_infiniband(const char *name, const char *value, const char *target,
				struct np_checks *out)
{
	np_checks_add(out, "file", target, NP_CHECK_WARN, "nccl.no_infiniband",
		      "remove the line: NCCL takes InfiniBand where it is there",
		      "with %s=%.60s NCCL leaves this node's InfiniBand ports alone, and goes "
		      "over TCP",
		      name, value);
}

static void judge_nccl(const char *name, const char *value, const char *target,
		       const struct np_facts *facts, struct np_checks *out)
{
	bool infiniband = has_infiniband(facts);
	uint64_t n;

	if (infiniband && np_streq(name, "NCCL_NET") && strcasecmp(value, "socket") == 0)
		judge_no_infiniband(name, value, target, out);
	/* -1, and what is no number, is as if it were not set */
	if (np_parse_u64(value, 10, INT_MAX, &n) < 0)
		return;
	if (infiniband && np_streq(name, "NCCL_IB_DISABLE") && n != 0)
		judge_no_infiniband(name, value, target, out);
	if (facts->gpus.n > 1 && n != 0 &&
	    (np_streq(name, "NCCL_P2P_DISABLE") || np_streq(name, "NCCL_SHM_DISABLE")))
		np_checks_add(out, "file", target, NP_CHECK_WARN, "nccl.path_disabled",
			      "remove the line, unless it goes around a known fault",
			      "with %s=%.60s the %zu GPUs of this node exchange data over slower "
			      "paths",
			      name, value, facts->gpus.n);
	if (infiniband && np_streq(name, "NCCL_IB_GID_INDEX"))
		np_checks_add(out, "file", target, NP_CHECK_WARN, "nccl.gid_index",
			      "remove the line: NCCL 2.21 and newer choose the GID themselves",
			      "NCCL_IB_GID_INDEX=%.60s holds for each port: one whose table has "
			      "no such GID fails",
			      value);
}

/* ---- UCX ---- */

static bool is_listed(const char *list, const char *const names[])
{
	for (; *list; list += strspn(list, ",")) {
		size_t len = strcspn(list, ",");
		/* "rc:aux", "\rc_verbs": an alias and a part of it */
		size_t skip = *list == '\\', n = strcspn(list, ":,");

		for (size_t i = 0; names[i]; i++)
			if (n - skip == strlen(names[i]) &&
			    strncmp(list + skip, names[i], n - skip) == 0)
				return true;
		list += len;
	}
	return false;
}

/* Transports of UCX over InfiniBand, and the names that stand for several. */
static bool takes_infiniband(const char *tls)
{
	static const char *const any[] = { "all",     "ALL",	  "ib",	     "rc", "rc_v",
					   "rc_x",    "rc_verbs", "rc_mlx5", "ud", "ud_v",
					   "ud_x",    "ud_verbs", "ud_mlx5", "dc", "dc_x",
					   "dc_mlx5", "gga_mlx5", NULL };
	static const char *const every[] = { "all", "ALL", "ib", NULL };

	return *tls == '^' ? !is_listed(tls + 1, every) : is_listed(tls, any);
}

static void judge_ucx(const char *name, const char *value, const char *target,
		      const struct np_facts *facts, struct np_checks *out)
{
	static const char *const tcp[] = { "tcp", NULL };

	if (np_streq(name, "UCX_TLS") && value[0] && has_infiniband(facts) &&
	    !takes_infiniband(value))
		np_checks_add(out, "file", target, NP_CHECK_WARN, "ucx.no_infiniband",
			      "add rc to it, or remove the line",
			      "UCX_TLS=%.80s has no transport for this node's InfiniBand ports",
			      value);
	if (np_streq(name, "UCX_SOCKADDR_TLS_PRIORITY") && value[0] && !is_listed(value, tcp))
		np_checks_add(out, "file", target, NP_CHECK_WARN, "ucx.no_sockaddr_fallback",
			      "set it to rdmacm,tcp, or remove the line",
			      "UCX_SOCKADDR_TLS_PRIORITY=%.60s leaves no tcp: where rdmacm cannot "
			      "connect, nothing else is tried",
			      value);
}

void np_consumer_judge_harm(const char *name, const char *value, const char *target,
			    const struct np_facts *facts, struct np_checks *out)
{
	if (np_starts_with(name, "NCCL_"))
		judge_nccl(name, value, target, facts, out);
	else
		judge_ucx(name, value, target, facts, out);
}

/* ---- limits ---- */

/* LimitMEMLOCK= as systemd has it: "infinity", "64K", "8M:16M" (soft and hard). */
bool np_consumer_unit_memlock(const char *text, uint64_t *bytes)
{
	static const char suffixes[] = "KMGTPE";
	size_t len = strcspn(text, ":");
	const char *suffix = len ? strchr(suffixes, text[len - 1]) : NULL;
	unsigned int shift = suffix ? 10 * (unsigned int)(suffix - suffixes + 1) : 0;
	char digits[24];
	uint64_t n;

	if (len == strlen("infinity") && strncmp(text, "infinity", len) == 0) {
		*bytes = NP_UNLIMITED;
		return true;
	}
	len -= suffix ? 1 : 0;
	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (np_parse_u64(digits, 10, UINT64_MAX >> shift, &n) < 0)
		return false;
	*bytes = n << shift;
	return true;
}

void np_consumer_judge_memlock(uint64_t bytes, const char *target, const struct np_facts *facts,
			       struct np_checks *out)
{
	char text[NP_MEMLOCK_STRLEN];

	/* what one queue pair of UCX and its receive buffers take, and some room */
	if (bytes >= (uint64_t)64 << 20 || !has_infiniband(facts))
		return;
	np_checks_add(out, "limits", target, NP_CHECK_WARN, "limits.low_memlock",
		      "raise it: limits.conf for logins, LimitMEMLOCK= for services",
		      "%s of memory can be pinned: too little to register buffers with an HCA",
		      np_memlock_str(bytes, text));
}
