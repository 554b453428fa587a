/* SPDX-License-Identifier: MIT */
#include "netlink/observe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <string.h>

#include "base/file.h"

#define SYS_NET "/sys/class/net"

void np_netdevs_done(struct np_netdevs *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->n; i++)
		np_netdev_done(&list->v[i]);
	free(list->v);
	memset(list, 0, sizeof(*list));
}

const struct np_netdev *np_netdevs_find(const struct np_netdevs *list, const char *name_or_altname)
{
	/* An altname is never another netdev's name. */
	for (size_t i = 0; i < list->n; i++)
		if (np_streq(list->v[i].name, name_or_altname) ||
		    np_strv_has(&list->v[i].altnames, name_or_altname))
			return &list->v[i];
	return NULL;
}

/* Files such as bonding_masters are no netdevs. */
static int add_name(const char *name, unsigned char type, void *arg)
{
	return type == DT_REG ? 0 : np_strv_add(arg, name);
}

int np_netdev_names(struct np_strv *out, struct np_err *err)
{
	np_auto_strv struct np_strv names = { 0 };
	int r = np_dir_each(AT_FDCWD, SYS_NET, add_name, &names);

	if (r == -ENOMEM)
		return np_err_nomem(err);
	if (r < 0)
		return np_err_set(err, r, "netlink.query", "cannot read %s: %s", SYS_NET,
				  strerror(-r));
	*out = names;
	memset(&names, 0, sizeof(names));
	return 0;
}

const char *np_ipoib_mode_str(enum np_ipoib_mode mode)
{
	switch (mode) {
	case NP_IPOIB_DATAGRAM:
		return "datagram";
	case NP_IPOIB_CONNECTED:
		return "connected";
	case NP_IPOIB_MODE_UNKNOWN:
		break;
	}
	return "unknown";
}

const char *np_operstate_str(uint8_t operstate)
{
	/* RFC 2863 ifOperStatus, numbered as in linux/if.h. */
	static const char *const words[] = {
		[IF_OPER_UNKNOWN] = "unknown", [IF_OPER_NOTPRESENT] = "notpresent",
		[IF_OPER_DOWN] = "down",       [IF_OPER_LOWERLAYERDOWN] = "lowerlayerdown",
		[IF_OPER_TESTING] = "testing", [IF_OPER_DORMANT] = "dormant",
		[IF_OPER_UP] = "up",
	};

	return operstate < NP_ARRAY_SIZE(words) ? words[operstate] : "unknown";
}

const char *np_hwaddr_str(const struct np_netdev *dev, char out[32 * 3])
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	for (size_t i = 0; i < dev->hwaddr_len && i < sizeof(dev->hwaddr); i++) {
		if (i)
			out[n++] = ':';
		out[n++] = digits[dev->hwaddr[i] >> 4];
		out[n++] = digits[dev->hwaddr[i] & 15];
	}
	out[n] = '\0';
	return out;
}
