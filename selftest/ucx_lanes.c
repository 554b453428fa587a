/* SPDX-License-Identifier: MIT */
#include "selftest/ucx_lanes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

void np_ucx_lanes_add(struct np_ucx_lanes *lanes, const char *transport, const char *device,
		      bool data)
{
	struct np_ucx_lane *lane;

	if (lanes->n == NP_ARRAY_SIZE(lanes->v))
		return;
	lane = &lanes->v[lanes->n++];
	np_strcpy(lane->transport, sizeof(lane->transport), transport);
	np_strcpy(lane->device, sizeof(lane->device), device);
	lane->data = data;
}

/* Words after "md[0]/tcp/sysdev[255]" tell what a lane is used for. */
static bool carries_data(char *uses)
{
	static const char *const not_data[] = { "md[", "addr[", "wireup", "keepalive",
						"p2p", "seg",	"cm" };
	char *rest = NULL;

	for (char *word = strtok_r(uses, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		bool data = word[0] < '0' || word[0] > '9'; /* a number belongs to "seg" */

		for (size_t i = 0; i < NP_ARRAY_SIZE(not_data); i++)
			if (np_starts_with(word, not_data[i]))
				data = false;
		if (data)
			return true;
	}
	return false;
}

/* "  1:tcp/ib0.8001.0 md[0] -> md[0]/tcp/sysdev[255] rma_bw#0 am": the number is
 * UCX's resource, the part after the last dot the path. */
static void parse_lane(char *text, struct np_ucx_lanes *out)
{
	char *uses = strstr(text, "->");
	char *name, *slash, *end, *dot;

	if (!uses)
		return;
	*uses = '\0';
	uses += 2;
	name = strchr(text, ':');
	if (!name)
		return;
	name++;
	end = name + strcspn(name, " ");
	*end = '\0';
	slash = strchr(name, '/');
	if (!slash || slash == name || slash[1] == '\0')
		return;
	*slash = '\0';
	dot = strrchr(slash + 1, '.');
	if (dot && dot[1] && dot[1 + strspn(dot + 1, "0123456789")] == '\0')
		*dot = '\0';
	np_ucx_lanes_add(out, name, slash + 1, carries_data(uses));
}

int np_ucx_lanes_parse(const char *text, struct np_ucx_lanes *out)
{
	memset(out, 0, sizeof(*out));
	while (text && *text) {
		size_t len = strcspn(text, "\n");
		char line[512];
		char *lane;

		if (len < sizeof(line)) {
			memcpy(line, text, len);
			line[len] = '\0';
			lane = strstr(line, "lane[");
			lane = lane ? strstr(lane, "]:") : NULL;
			if (lane)
				parse_lane(lane + 2, out);
		}
		text += len;
		text += *text == '\n';
	}
	return out->n > 0 ? 0 : -EINVAL;
}

int np_ucx_lanes_parse_memory(const char *text, const char *memory, struct np_ucx_lanes *out)
{
	static const char head[] = "UCP endpoint ";
	_cleanup_free_ char *section = NULL, *start = NULL;
	const char *at, *end;
	int ret;

	memset(out, 0, sizeof(*out));
	start = np_asprintf("%sfor %s\n", head, memory);
	if (!start || !text)
		return -EINVAL;
	at = strstr(text, start);
	if (!at)
		return -EINVAL;
	at += strlen(start);
	end = strstr(at, head);
	section = strndup(at, end ? (size_t)(end - at) : strlen(at));
	ret = section ? np_ucx_lanes_parse(section, out) : -EINVAL;
	for (size_t i = 0; i < out->n; i++)
		out->v[i].data = true;
	return ret;
}

static bool seen_before(const struct np_ucx_lanes *lanes, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (lanes->v[i].data &&
		    np_streq(lanes->v[i].transport, lanes->v[index].transport) &&
		    np_streq(lanes->v[i].device, lanes->v[index].device))
			return true;
	return false;
}

const char *np_ucx_lanes_str(const struct np_ucx_lanes *lanes, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < lanes->n && used < size; i++) {
		if (!lanes->v[i].data || seen_before(lanes, i))
			continue;
		used += (size_t)snprintf(out + used, size - used, "%s%s/%s", used ? ", " : "",
					 lanes->v[i].transport, lanes->v[i].device);
	}
	return out;
}

bool np_ucx_lanes_only(const struct np_ucx_lanes *lanes, const char *const *transports,
		       const char *device)
{
	size_t n_data = 0;

	for (size_t i = 0; i < lanes->n; i++) {
		bool wanted = false;

		if (!lanes->v[i].data)
			continue;
		n_data++;
		for (size_t t = 0; transports[t]; t++)
			wanted = wanted || np_streq(transports[t], lanes->v[i].transport);
		if (!wanted || (device && !np_streq(device, lanes->v[i].device)))
			return false;
	}
	return n_data > 0;
}

bool np_ucx_lanes_all(const struct np_ucx_lanes *lanes, const char *const *transports)
{
	for (size_t t = 0; transports[t]; t++) {
		bool found = false;

		for (size_t i = 0; i < lanes->n; i++)
			found = found || (lanes->v[i].data &&
					  np_streq(transports[t], lanes->v[i].transport));
		if (!found)
			return false;
	}
	return true;
}
