/* SPDX-License-Identifier: MIT */
#include "agent/address_resolve.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/address_lookup.h"
#include "agent/select.h"

/* ---- offset ---- */

static const struct np_inet *first_ipv4(const struct np_netdev *dev)
{
	for (size_t i = 0; dev && i < dev->n_addrs; i++)
		if (dev->addrs[i].inet.family == AF_INET &&
		    dev->addrs[i].scope == RT_SCOPE_UNIVERSE &&
		    !(dev->addrs[i].flags & IFA_F_SECONDARY))
			return &dev->addrs[i].inet;
	return NULL;
}

/* "eth0 (192.168.3.7/16), eth1 (...)": the facts have the NICs of interest alone. */
static int list_addressed(struct np_buf *out, struct np_err *err)
{
	np_auto_netlink struct np_netlink *nl = NULL;
	struct np_netdevs all = { 0 };
	int r = np_netlink_open(&nl, err);

	if (r == 0)
		r = np_netdevs_observe_all(nl, NP_NETDEV_BASIC, &all, err);
	for (size_t i = 0; r == 0 && i < all.n; i++) {
		const struct np_inet *inet = first_ipv4(&all.v[i]);
		char text[NP_INET_STRLEN];

		if (inet)
			np_buf_printf(out, "%s%s (%s)", out->len ? ", " : "", all.v[i].name,
				      np_inet_str(inet, text));
	}
	np_netdevs_done(&all);
	return r;
}

static int resolve_offset(struct np_address_source *src, const struct np_facts *facts,
			  struct np_inet *out, struct np_err *err)
{
	const struct np_netdev *dev = np_netdevs_find(&facts->netdevs, src->subject);
	const struct np_inet *inet = first_ipv4(dev);
	np_auto_buf struct np_buf list = { 0 };
	char text[NP_INET_STRLEN];
	int r;

	if (inet) {
		snprintf(src->by, sizeof(src->by), "%s, %s", dev->name, np_inet_str(inet, text));
		return np_address_source_offset(src, inet, out, err);
	}
	r = list_addressed(&list, err);
	if (r < 0)
		return r;
	np_err_set(err, -ENODEV, dev ? "address.offset_no_address" : "address.offset_no_netdev",
		   "%s \"%s\"%s; the interfaces with a global IPv4 address are: %s",
		   dev ? "the interface" : "no interface", src->subject,
		   dev ? " has no global IPv4 address" : "", list.data ? list.data : "none");
	np_err_hint(err, dev ? "name another one, or run nodeprep after the network" :
			       "name one of them in offset:");
	return -ENODEV;
}

/* ---- one source ---- */

static int check_usable(const struct np_address_source *src, const struct np_inet *inet,
			struct np_err *err)
{
	struct np_inet same;
	char text[NP_INET_STRLEN];
	int r = np_inet_parse(np_inet_str(inet, text), &same, err);

	/* the same words, but it is the node that is at fault, not how it was called */
	if (r < 0) {
		np_strcpy(err->code, sizeof(err->code), "address.unusable");
		np_err_context(err, "%s", src->by);
		np_err_hint(err,
			    src->kind == NP_SOURCE_OFFSET ?
				    "choose another PREFIX or LEN" :
				    "correct it in /etc/hosts or DNS, or ask for another name");
	}
	return r;
}

static int resolve_hosts(struct np_address_source *src, const char *node_name, struct np_inet *out,
			 struct np_err *err)
{
	char name[NP_HOST_NAME_LEN];
	int r = np_address_source_name(src, node_name, name, err);

	if (r < 0)
		return r;
	np_strcpy(src->by, sizeof(src->by), name);
	return np_address_lookup_name(name, src->prefix_len, out, err);
}

static int resolve_map(struct np_address_source *src, const char *node_name, struct np_inet *out,
		       struct np_err *err)
{
	int line, r = np_address_lookup_map(src->subject, node_name, out, &line, err);

	if (r == 0)
		snprintf(src->by, sizeof(src->by), "%s:%d", src->subject, line);
	return r;
}

static bool needs_node_name(const struct np_address_source *src)
{
	return src->kind == NP_SOURCE_MAP ||
	       (src->kind == NP_SOURCE_HOSTS &&
		(strstr(src->subject, "%h") || strstr(src->subject, "%H")));
}

static int ask(struct np_address_source *src, const struct np_facts *facts, struct np_inet *out,
	       struct np_err *err)
{
	struct utsname node;

	if (src->kind == NP_SOURCE_OFFSET)
		return resolve_offset(src, facts, out, err);
	if (uname(&node) < 0)
		node.nodename[0] = '\0';
	if (needs_node_name(src) && !np_host_name_is_own(node.nodename)) {
		char shown[80];

		np_err_set(err, -ENOENT, "address.host_name",
			   "this node has no name of its own yet: \"%s\"",
			   np_printable(node.nodename, shown, sizeof(shown)));
		np_err_hint(err, "set one with hostnamectl, or run nodeprep after what sets it");
		return -ENOENT;
	}
	return src->kind == NP_SOURCE_MAP ? resolve_map(src, node.nodename, out, err) :
					    resolve_hosts(src, node.nodename, out, err);
}

/* What the verbs make of it: exit 2, 3, 4, 5. */
static int outcome(int r)
{
	return r == 0 || r == -EBADMSG || r == -EINTR || r == -ENOMEM ? r : -EADDRNOTAVAIL;
}

static int resolve_source(const struct np_want_netdev *want, struct np_address_source *src,
			  const struct np_facts *facts, struct np_err *err)
{
	struct np_inet inet = { 0 };
	struct np_err why = { 0 };
	int r = ask(src, facts, &inet, &why);

	if (r == 0)
		r = check_usable(src, &inet, &why);
	if (r == 0) {
		src->inet = inet;
		src->failure[0] = '\0';
		return 0;
	}
	np_strcpy(src->failure, sizeof(src->failure), why.message);
	why.num = outcome(r);
	np_err_context(&why, "%s: [netdev %s] address = %s", src->where, want->name, src->text);
	if (err)
		*err = why;
	return why.num;
}

/* ---- a netdev ---- */

static int insert(struct np_want_netdev *want, size_t at, const struct np_inet *inet)
{
	struct np_inet *v = reallocarray(want->addrs, want->n_addrs + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	want->addrs = v;
	memmove(&v[at + 1], &v[at], (want->n_addrs - at) * sizeof(*v));
	v[at] = *inet;
	want->n_addrs++;
	return 0;
}

static int refuse_twice(const struct np_want_netdev *want, struct np_address_source *src,
			struct np_err *err)
{
	char text[NP_INET_STRLEN];

	for (size_t i = 0; i < want->n_addrs; i++) {
		if (!np_inet_same_addr(&want->addrs[i], &src->inet))
			continue;
		np_inet_addr_str(&src->inet, text);
		snprintf(src->failure, sizeof(src->failure), "%s is asked for twice", text);
		np_err_set(err, -EADDRNOTAVAIL, "netdev.asked_twice",
			   "%s: [netdev %s] address = %s gives %s, which is asked for twice",
			   src->where, want->name, src->text, text);
		np_err_hint(err, "give each address once");
		return -EADDRNOTAVAIL;
	}
	return 0;
}

/* @all: go on after a source without an answer. */
static int resolve_netdev(struct np_want_netdev *want, const struct np_facts *facts, bool all,
			  struct np_err *err)
{
	size_t before = 0;

	for (size_t i = 0; i < want->n_sources; i++) {
		struct np_address_source *src = &want->sources[i];
		int r = src->resolved ? 0 : resolve_source(want, src, facts, err);

		if (r == 0 && !src->resolved) {
			r = refuse_twice(want, src, err);
			if (r == 0 && insert(want, src->at + before, &src->inet) < 0)
				return np_err_nomem(err);
			src->resolved = r == 0;
		}
		before += src->resolved;
		if (r < 0 && (!all || r == -ENOMEM || r == -EINTR))
			return r;
	}
	return 0;
}

/* ---- all ---- */

/* --ip without a name takes the place of what the files say of one netdev; of which shows
 * when the netdevs are there. Before, nothing is asked: the plan has other worries. */
static bool is_overridden(const struct np_config *cfg, const struct np_want_netdev *want,
			  const struct np_selection *sel)
{
	bool unnamed = false;

	for (size_t i = 0; i < cfg->n_netdevs; i++)
		unnamed |= !cfg->netdevs[i].name[0] && cfg->netdevs[i].from_flags;
	if (!unnamed)
		return false;
	for (size_t i = 0; sel && i < sel->n_netdevs; i++)
		if (sel->netdevs[i].want == want)
			return sel->netdevs[i].addrs != want->addrs;
	return true;
}

static int resolve_all(struct np_config *cfg, const struct np_facts *facts, bool all,
		       struct np_err *err)
{
	np_auto_selection struct np_selection sel = { 0 };
	bool selected, any = false;
	int r = 0;

	for (size_t i = 0; i < cfg->n_netdevs; i++)
		any |= cfg->netdevs[i].n_sources > 0;
	if (!any)
		return 0;
	selected = np_select(cfg, facts, &sel, NULL) == 0;
	for (size_t i = 0; i < cfg->n_netdevs && r == 0; i++)
		if (cfg->netdevs[i].n_sources &&
		    !is_overridden(cfg, &cfg->netdevs[i], selected ? &sel : NULL))
			r = resolve_netdev(&cfg->netdevs[i], facts, all, err);
	return r;
}

int np_address_sources_resolve(struct np_config *cfg, const struct np_facts *facts,
			       struct np_err *err)
{
	return resolve_all(cfg, facts, false, err);
}

int np_address_sources_try(struct np_config *cfg, const struct np_facts *facts, struct np_err *err)
{
	return resolve_all(cfg, facts, true, err);
}
