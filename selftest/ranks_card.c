/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_card.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <ucp/api/ucp.h>

#include "base/file.h"
#include "base/log.h"
#include "selftest/ranks.h"
#include "selftest/ranks_netdev.h"

#ifndef NP_VERSION
#define NP_VERSION "0"
#endif

#define FILE_MAX  65536u
#define NCCL_CONF NP_SYSCONFDIR "/nccl.conf"

int np_ranks_card_add(struct np_ranks_card *card, const char *name, const char *value)
{
	struct np_ranks_field *grown = realloc(card->v, (card->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	card->v = grown;
	np_strcpy(grown[card->n].name, sizeof(grown->name), name);
	np_one_line(grown[card->n].name, sizeof(grown->name));
	np_strcpy(grown[card->n].value, sizeof(grown->value), value);
	np_one_line(grown[card->n].value, sizeof(grown->value));
	card->n++;
	return 0;
}

const char *np_ranks_card_get(const struct np_ranks_card *card, const char *name)
{
	for (size_t i = 0; i < card->n; i++)
		if (np_streq(card->v[i].name, name))
			return card->v[i].value;
	return "";
}

void np_ranks_card_done(struct np_ranks_card *card)
{
	free(card->v);
	memset(card, 0, sizeof(*card));
}

int np_ranks_card_write(const struct np_ranks_card *card, struct np_buf *out)
{
	for (size_t i = 0; i < card->n; i++)
		np_buf_printf(out, "%s=%s\n", card->v[i].name, card->v[i].value);
	return out->failed ? -ENOMEM : 0;
}

int np_ranks_card_read(const char *text, size_t len, struct np_ranks_card *out)
{
	_cleanup_free_ char *copy = text ? strndup(text, len) : strdup("");
	char *rest = NULL;
	int ret = copy ? 0 : -ENOMEM;

	memset(out, 0, sizeof(*out));
	for (char *line = copy ? strtok_r(copy, "\n", &rest) : NULL; line && ret == 0;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *equals = strchr(line, '=');

		if (!equals)
			continue;
		*equals = '\0';
		ret = np_ranks_card_add(out, line, equals + 1);
	}
	if (ret < 0)
		np_ranks_card_done(out);
	return ret;
}

bool np_ranks_assignment(char *line, const char **name, const char **value)
{
	char *text = np_strip(line), *equals = strchr(text, '=');
	size_t len;

	if (!equals || text[0] == '#' || equals == text)
		return false;
	*equals = '\0';
	*name = np_strip(text);
	text = np_strip(equals + 1);
	len = strlen(text);
	if (len >= 2 && (text[0] == '"' || text[0] == '\'') && text[len - 1] == text[0]) {
		text[len - 1] = '\0';
		text++;
	}
	*value = text;
	return (*name)[0] != '\0';
}

/* What the environment says against one line of the configuration. */
static int compare(struct np_ranks_card *card, const char *name, const char *value, bool set)
{
	char field[sizeof(card->v->name)];
	const char *is = getenv(name);
	int ret;

	if (is && np_streq(is, value))
		return 0;
	if (!is && !set)
		return 0;
	snprintf(field, sizeof(field), "%s.%.38s", is ? "differs" : "lacks", name);
	ret = np_ranks_card_add(card, field, is ? is : "");
	if (ret < 0 || (!is && setenv(name, value, 1) < 0))
		return -ENOMEM;
	snprintf(field, sizeof(field), "conf.%.38s", name);
	return np_ranks_card_add(card, field, value);
}

/* @set: NCCL reads its file by itself, UCX does not. */
static int compare_file(struct np_ranks_card *card, const char *path, bool set)
{
	np_auto_buf struct np_buf text = { 0 };
	char *rest = NULL;
	int ret = np_file_read_at(AT_FDCWD, path, FILE_MAX, &text);

	if (ret < 0) {
		if (ret != -ENOENT)
			np_warning("%s cannot be read: %s", path, strerror(-ret));
		return 0;
	}
	ret = 0;
	for (char *line = text.data ? strtok_r(text.data, "\n", &rest) : NULL; line && ret == 0;
	     line = strtok_r(NULL, "\n", &rest)) {
		const char *name, *value;

		if (np_ranks_assignment(line, &name, &value))
			ret = compare(card, name, value, set);
	}
	return ret;
}

static void host_name(char *out, size_t size)
{
	struct utsname names;

	np_strcpy(out, size, uname(&names) == 0 ? names.nodename : "?");
	out[strcspn(out, ".")] = '\0'; /* the same form as launchers use */
}

/* The namespace in which the pid is one. */
static void pid_namespace(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/ns/pid", out, size - 1);

	out[n < 0 ? 0 : n] = '\0';
}

static const char *version_of_nodeprep(void)
{
#ifdef NP_TEST_HOOKS
	const char *other = getenv("NP_TEST_RANKS_VERSION");

	if (other)
		return other;
#endif
	return NP_VERSION;
}

static int add_identity(struct np_ranks_card *card)
{
	char host[65], pid[16], space[64], protocol[16], cpus[16];
	const struct {
		const char *name, *value;
	} fields[] = {
		{ "protocol", protocol }, { "nodeprep", version_of_nodeprep() },
		{ "host", host },	  { "pid", pid },
		{ "pidns", space },	  { "ucx", ucp_get_version_string() },
		{ "cpus", cpus },
	};
	int ret = 0;

	host_name(host, sizeof(host));
	pid_namespace(space, sizeof(space));
	snprintf(cpus, sizeof(cpus), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	snprintf(protocol, sizeof(protocol), "%u", NP_RANKS_PROTOCOL);
	for (size_t i = 0; i < NP_ARRAY_SIZE(fields) && ret == 0; i++)
		ret = np_ranks_card_add(card, fields[i].name, fields[i].value);
	return ret;
}

static int add_netdev(struct np_ranks_card *card)
{
	struct np_ranks_netdev netdev;
	const char *tls = getenv("UCX_TLS");
	char mtu[16];
	int ret;

	np_ranks_netdev_find(getenv("UCX_NET_DEVICES"), &netdev);
	snprintf(mtu, sizeof(mtu), "%d", netdev.mtu);
	ret = np_ranks_card_add(card, "port", netdev.port);
	if (ret == 0)
		ret = np_ranks_card_add(card, "ifname", netdev.ifname);
	if (ret == 0)
		ret = np_ranks_card_add(card, "family", netdev.family);
	if (ret == 0)
		ret = np_ranks_card_add(card, "mtu", netdev.mtu > 0 ? mtu : "");
	if (ret == 0)
		ret = np_ranks_card_add(card, "firmware", netdev.firmware);
	return ret == 0 ? np_ranks_card_add(card, "tls", tls ? tls : "") : ret;
}

int np_ranks_card_make(const char *env_file, struct np_ranks_card *card, struct np_err *err)
{
	int ret;

	memset(card, 0, sizeof(*card));
	ret = add_identity(card);
	if (ret == 0)
		ret = compare_file(card, env_file, true);
	if (ret == 0)
		ret = compare_file(card, NCCL_CONF, false);
	if (ret == 0)
		ret = add_netdev(card);
	if (ret == 0)
		return 0;
	np_ranks_card_done(card);
	return np_err_nomem(err);
}
