/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "netlink/observe.h"

#define FILE_MAX ((size_t)1024 * 1024)

/* Each look: NP_TRI_YES manages it, NP_TRI_NO, NP_TRI_UNKNOWN cannot be told. */

static enum np_tri from_errno(int rc)
{
	return rc == -ENOENT || rc == -ENOTDIR ? NP_TRI_NO : NP_TRI_UNKNOWN;
}

static int read_file(const char *root, const char *path, struct np_buf *out)
{
	_cleanup_free_ char *full = np_asprintf("%s%s", root, path);

	return full ? np_file_read_at(AT_FDCWD, full, FILE_MAX, out) : -ENOMEM;
}

/* The value of "KEY=" at the start of a line of @text (cut in place), or NULL. */
static char *value_of(char *text, const char *key)
{
	size_t len = strlen(key);

	for (char *line; (line = strsep(&text, "\n"));) {
		line = np_strip(line);
		if (np_starts_with(line, key) && line[len] == '=')
			return np_strip(line + len + 1);
	}
	return NULL;
}

/* A daemon's file about netdev @ifindex: the value of @key, in @out. */
static enum np_tri daemon_value(const char *root, const char *dir, int ifindex, const char *key,
				char *out, size_t size)
{
	np_auto_buf struct np_buf buf = { 0 };
	char path[64];
	const char *value;
	int rc;

	snprintf(path, sizeof(path), "%s/%d", dir, ifindex);
	rc = read_file(root, path, &buf);
	if (rc < 0)
		return from_errno(rc);
	value = buf.data ? value_of(buf.data, key) : NULL;
	np_strcpy(out, size, value ? value : "");
	return value ? NP_TRI_YES : NP_TRI_NO;
}

static enum np_tri network_manager(const char *root, int ifindex, const char *name)
{
	char value[32];
	enum np_tri has = daemon_value(root, "/run/NetworkManager/devices", ifindex, "managed",
				       value, sizeof(value));
	bool managed;

	(void)name;
	if (has != NP_TRI_YES)
		return has;
	return np_parse_bool(value, &managed) == 0 && managed ? NP_TRI_YES : NP_TRI_NO;
}

static enum np_tri networkd(const char *root, int ifindex, const char *name)
{
	char value[32];
	enum np_tri has = daemon_value(root, "/run/systemd/netif/links", ifindex, "ADMIN_STATE",
				       value, sizeof(value));

	(void)name;
	if (has != NP_TRI_YES)
		return has;
	return np_streq(value, "unmanaged") ? NP_TRI_NO : NP_TRI_YES;
}

/* Whether a line "iface NAME ...", "auto NAME...", "allow-hotplug NAME..." of
 * interfaces(5) names @name; continued lines count as one. */
static bool stanza_names(char *text, const char *name)
{
	char *newline;

	while ((newline = strstr(text, "\\\n")))
		newline[0] = newline[1] = ' ';
	for (char *line; (line = strsep(&text, "\n"));) {
		char *word = strsep(&line, " \t\r");
		bool only_first;

		while (word && !*word && line)
			word = strsep(&line, " \t\r");
		if (!word || !(np_streq(word, "iface") || np_streq(word, "auto") ||
			       np_starts_with(word, "allow-")))
			continue;
		only_first = np_streq(word, "iface");
		while ((word = strsep(&line, " \t\r"))) {
			if (np_streq(word, name))
				return true;
			if (*word && only_first)
				break;
		}
	}
	return false;
}

static enum np_tri file_names(const char *root, const char *path, const char *name)
{
	np_auto_buf struct np_buf buf = { 0 };
	int rc = read_file(root, path, &buf);

	if (rc < 0)
		return from_errno(rc);
	return buf.data && stanza_names(buf.data, name) ? NP_TRI_YES : NP_TRI_NO;
}

static enum np_tri directory_names(const char *root, const char *path, const char *name)
{
	_cleanup_free_ char *full = np_asprintf("%s%s", root, path);
	_cleanup_closedir_ DIR *dir = full ? opendir(full) : NULL;
	enum np_tri result = NP_TRI_NO;
	struct dirent *entry;

	if (!dir)
		return full ? from_errno(-errno) : NP_TRI_UNKNOWN;
	while ((entry = readdir(dir))) {
		_cleanup_free_ char *file = NULL;
		enum np_tri found;

		if (entry->d_name[0] == '.' || entry->d_type == DT_DIR)
			continue;
		file = np_asprintf("%s/%s", path, entry->d_name);
		found = file ? file_names(root, file, name) : NP_TRI_UNKNOWN;
		if (found == NP_TRI_YES)
			return found;
		if (found == NP_TRI_UNKNOWN)
			result = found;
	}
	return result;
}

static enum np_tri ifupdown(const char *root, int ifindex, const char *name)
{
	char path[sizeof("/run/network/ifstate.") + IFNAMSIZ];
	np_auto_buf struct np_buf state = { 0 };
	enum np_tri in_file, in_dir;

	(void)ifindex;
	/* Empty once it was taken down. */
	snprintf(path, sizeof(path), "/run/network/ifstate.%s", name);
	if (read_file(root, path, &state) == 0 && state.len > 0)
		return NP_TRI_YES;
	in_file = file_names(root, "/etc/network/interfaces", name);
	if (in_file == NP_TRI_YES)
		return in_file;
	in_dir = directory_names(root, "/etc/network/interfaces.d", name);
	return in_dir == NP_TRI_NO ? in_file : in_dir;
}

void np_manager_look(const char *root, int ifindex, const char *name, char *out, size_t size)
{
	static const struct {
		const char *word;
		enum np_tri (*look)(const char *root, int ifindex, const char *name);
	} managers[] = {
		{ "NetworkManager", network_manager },
		{ "systemd-networkd", networkd },
		{ "ifupdown", ifupdown },
	};
	bool unknown = false;

	for (size_t i = 0; i < NP_ARRAY_SIZE(managers); i++) {
		enum np_tri manages = managers[i].look(root, ifindex, name);

		if (manages == NP_TRI_YES) {
			np_strcpy(out, size, managers[i].word);
			return;
		}
		unknown |= manages == NP_TRI_UNKNOWN;
	}
	np_strcpy(out, size, unknown ? "" : "none");
}
