/* SPDX-License-Identifier: MIT */
#include "agent/judge.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "agent/nccl_conf.h"
#include "agent/plan.h"

/* ---- netdevs ---- */

static void judge_carrier(const struct np_config *cfg, const struct np_facts *facts,
			  const struct np_netdev *dev, struct np_checks *out)
{
	const struct np_ca *ca = np_cas_find(&facts->cas, dev->ca);
	const struct np_port *port = np_cas_find_port(&facts->cas, dev->ca, dev->port);
	bool blamed = ca && port && np_port_role(cfg, ca, port) == NP_PORT_WANTED &&
		      port->state != NP_PORT_ACTIVE;

	/* the port's own check says why; one fault is one failure */
	np_checks_add(
		out, "netdev", dev->name, blamed ? NP_CHECK_WARN : NP_CHECK_FAIL,
		"netdev.no_carrier",
		blamed ?
			"bring the port to ACTIVE first" :
			"look at the port of this netdev, and at its pkey and multicast group in the kernel log",
		"UP, but not RUNNING%s%s%s", blamed ? ": its port " : "", blamed ? dev->ca : "",
		blamed ? " is not ACTIVE" : "");
}

static bool is_asked(const struct np_selected_netdev *sel, const struct np_netdev_addr *addr)
{
	for (size_t i = 0; i < sel->n_addrs; i++)
		if (np_inet_same_addr(&sel->addrs[i], &addr->inet))
			return true;
	return false;
}

static void judge_addresses(const struct np_selected_netdev *sel, struct np_checks *out)
{
	const struct np_netdev *dev = sel->dev;
	np_auto_buf struct np_buf list = { 0 };
	char text[NP_INET_STRLEN];
	size_t n = 0;

	for (size_t i = 0; i < dev->n_addrs; i++) {
		if (dev->addrs[i].scope == RT_SCOPE_LINK)
			continue;
		n++;
		if (sel->n_addrs > 0 && !is_asked(sel, &dev->addrs[i]))
			np_buf_printf(&list, "%s%s", list.len ? ", " : "",
				      np_inet_str(&dev->addrs[i].inet, text));
	}
	for (size_t i = 0; i < dev->n_addrs; i++)
		if (is_asked(sel, &dev->addrs[i]) && !np_broadcast_is_right(&dev->addrs[i]))
			np_checks_add(out, "netdev", dev->name, NP_CHECK_WARN, "netdev.broadcast",
				      "take the address off and run nodeprep apply, from a console",
				      "%s has not the broadcast address of its prefix",
				      np_inet_str(&dev->addrs[i].inet, text));
	if (list.len)
		np_checks_add(out, "netdev", dev->name, NP_CHECK_OK, "netdev.address_foreign", NULL,
			      "has addresses that the configuration does not name, %s: %s",
			      sel->want && sel->want->exclusive ? "to be removed (exclusive)" :
								  "left alone",
			      list.data);
	if (n == 0 && sel->n_addrs == 0)
		np_checks_add(out, "netdev", dev->name, NP_CHECK_WARN, "netdev.no_address",
			      "give one: nodeprep apply --ip ADDR/LEN, or [netdev] address",
			      "has no IP address; NCCL and UCX over tcp cannot use it");
}

/* Where addresses come from that are not written down; not those that --ip overrides. */
static void judge_sources(const struct np_selected_netdev *sel, struct np_checks *out)
{
	for (size_t i = 0; sel->want && i < sel->want->n_sources; i++) {
		const struct np_address_source *src = &sel->want->sources[i];
		char text[NP_INET_STRLEN];

		if (src->resolved && sel->addrs == sel->want->addrs)
			np_checks_add(out, "netdev", sel->dev->name, NP_CHECK_OK,
				      "address.resolved", NULL, "%s is the address by %s: %s",
				      np_inet_str(&src->inet, text), src->text, src->by);
	}
}

/* The netdev that is written into the files of NCCL and UCX. */
static void judge_consumers(const struct np_config *cfg, const struct np_selection *sel,
			    struct np_checks *out)
{
	if (cfg->nccl_scope == NP_NCCL_OFF && cfg->ucx.profile == NP_UCX_OFF)
		return;
	if (np_consumer_netdev(sel) && !np_has_ipv4(sel, sel->primary))
		np_checks_add(
			out, "netdev", sel->primary->name, NP_CHECK_WARN, "netdev.no_ipv4",
			"give it an IPv4 address too: nodeprep apply --ip ADDR/LEN, or [netdev] address",
			"has IPv6 addresses alone: Dask's --interface and UCX over tcp want an IPv4 one; NCCL alone can do without (NCCL_SOCKET_FAMILY=AF_INET6)");
}

/* A connected network of another netdev that overlaps one of this netdev's. */
static void judge_overlap(const struct np_facts *facts, const struct np_selected_netdev *sel,
			  struct np_checks *out)
{
	for (size_t i = 0; i < facts->routes.n; i++) {
		const struct np_route *route = &facts->routes.v[i];
		char mine[NP_INET_STRLEN], other[NP_INET_STRLEN];
		const struct np_inet *hit = NULL;

		if (route->is_default || route->by_source || route->ifindex == sel->dev->ifindex)
			continue;
		for (size_t k = 0; k < sel->n_addrs && !hit; k++)
			if (np_inet_overlap(&sel->addrs[k], &route->dst))
				hit = &sel->addrs[k];
		for (size_t k = 0; k < sel->dev->n_addrs && !hit; k++)
			if (sel->dev->addrs[k].scope != RT_SCOPE_LINK &&
			    np_inet_overlap(&sel->dev->addrs[k].inet, &route->dst))
				hit = &sel->dev->addrs[k].inet;
		if (!hit)
			continue;
		np_checks_add(out, "netdev", sel->dev->name, NP_CHECK_WARN, "netdev.subnet_overlap",
			      "give the InfiniBand network a prefix of its own",
			      "%s overlaps %s, which is reached over %s: traffic may leave by %s",
			      np_inet_str(hit, mine), np_inet_str(&route->dst, other),
			      route->ifname, route->ifname);
	}
}

static void judge_netdev(const struct np_config *cfg, const struct np_facts *facts,
			 const struct np_selected_netdev *sel, struct np_checks *out)
{
	const struct np_netdev *dev = sel->dev;

	if (sel->renamed)
		np_checks_add(out, "netdev", dev->name, NP_CHECK_OK, "netdev.only_ipoib", NULL,
			      "nothing is called ib0; %s is used, the only IPoIB interface",
			      dev->name);
	if (!(dev->flags & IFF_UP)) {
		np_checks_add(out, "netdev", dev->name, NP_CHECK_WARN, "netdev.down",
			      sel->want ? "run nodeprep apply" :
					  "give it an address: nodeprep apply --ip ADDR/LEN",
			      "is administratively down");
	} else if (!(dev->flags & IFF_RUNNING)) {
		judge_carrier(cfg, facts, dev, out);
	} else {
		np_checks_add(out, "netdev", dev->name, NP_CHECK_OK, "netdev.running", NULL,
			      "UP, RUNNING, mode %s, MTU %u, port %s:%d",
			      np_ipoib_mode_str(dev->mode), dev->mtu,
			      dev->ca[0] ? dev->ca : "unknown", dev->port);
	}
	if (sel->want && sel->want->mode == NP_IPOIB_CONNECTED && np_netdev_lacks_connected(dev))
		np_checks_add(
			out, "netdev", dev->name, NP_CHECK_WARN, "netdev.mode_refused",
			"take mode and mtu out of [netdev], or turn enhanced IPoIB off in the driver",
			"connected mode is wanted, but this interface has none (enhanced IPoIB): mode %s and MTU %u stay",
			np_ipoib_mode_str(dev->mode), dev->mtu);
	judge_sources(sel, out);
	judge_addresses(sel, out);
	judge_overlap(facts, sel, out);
	if (sel->n_addrs > 0 && dev->manager[0] && strcmp(dev->manager, "none") != 0)
		np_checks_add(
			out, "netdev", dev->name, NP_CHECK_WARN, "netdev.managed",
			"tell that manager to leave the interface alone, or set the address there",
			"%s manages this interface too and may take the address back",
			dev->manager);
}

/* NCCL takes names by their beginning: say so where that would take in more. */
static void judge_prefix(const struct np_config *cfg, const struct np_facts *facts,
			 const struct np_netdev *dev, struct np_checks *out)
{
	np_auto_buf struct np_buf others = { 0 };
	np_auto_strv struct np_strv longer = { 0 };

	if ((cfg->nccl_socket_ifname && !np_streq(cfg->nccl_socket_ifname, dev->name)) ||
	    np_nccl_plain_is_exact(dev->name, &facts->netdev_names))
		return;
	for (size_t i = 0; i < facts->netdev_names.n; i++)
		if (np_starts_with(facts->netdev_names.v[i], dev->name) &&
		    strcmp(facts->netdev_names.v[i], dev->name) != 0 &&
		    np_strv_add(&longer, facts->netdev_names.v[i]) < 0)
			out->failed = true;
	np_strv_sort_natural(&longer);
	for (size_t i = 0; i < longer.n; i++)
		np_buf_printf(&others, "%s%s", others.len ? ", " : "", longer.v[i]);
	np_checks_add(
		out, "netdev", dev->name, NP_CHECK_OK, "nccl.exact_name", NULL,
		"NCCL matches names by prefix: \"%s\" would also take %s, so the exact form =%s is used",
		dev->name, others.data ? others.data : "", dev->name);
}

void np_judge_netdevs(const struct np_config *cfg, const struct np_facts *facts,
		      const struct np_selection *sel, struct np_checks *out)
{
	if (sel->primary && cfg->nccl_scope != NP_NCCL_OFF)
		judge_prefix(cfg, facts, sel->primary, out);
	if (sel->primary)
		judge_consumers(cfg, sel, out);
	for (size_t i = 0; i < sel->n_netdevs; i++)
		judge_netdev(cfg, facts, &sel->netdevs[i], out);
}

/* ---- files ---- */

static void judge_nccl_lines(const struct np_target_file *f, struct np_checks *out)
{
	struct np_nccl_issues issues = { 0 };

	if (np_nccl_conf_lint(f->content.data ? f->content.data : "", f->content.len, &issues) <
	    0) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < issues.n; i++) {
		char target[128];

		snprintf(target, sizeof(target), "%s:%d", f->path, issues.v[i].line);
		np_checks_add(out, "file", target, NP_CHECK_WARN, issues.v[i].code,
			      issues.v[i].hint, "%s", issues.v[i].message);
	}
	np_nccl_issues_done(&issues);
}

/* A list of HCAs that somebody wrote may leave out ports that are wanted. */
static void judge_ib_hca(const struct np_config *cfg, const struct np_facts *facts,
			 const struct np_target_file *f, struct np_checks *out)
{
	_cleanup_free_ char *value = np_nccl_conf_get(f->content.data ? f->content.data : "",
						      f->content.len, "NCCL_IB_HCA");
	np_auto_buf struct np_buf missing = { 0 };

	for (size_t i = 0; value && !cfg->nccl_ib_hca && i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++)
			if (np_port_role(cfg, ca, &ca->ports[p]) == NP_PORT_WANTED &&
			    !np_nccl_matches(value, ca->name, ca->ports[p].num))
				np_buf_printf(&missing, "%s%s:%d", missing.len ? ", " : "",
					      ca->name, ca->ports[p].num);
	}
	if (missing.len)
		np_checks_add(out, "file", f->path, NP_CHECK_WARN, "nccl.ib_hca_leaves_out",
			      "remove the line, or say it in [nccl] ib_hca",
			      "NCCL_IB_HCA=%s leaves out %s", value, missing.data);
}

/* nodeprep has something to write there; what it leaves alone cannot refuse it. */
static bool is_written(const struct np_config *cfg, const struct np_facts *facts,
		       enum np_file_role role)
{
	if (role == NP_ROLE_LIMITS)
		return facts->limits.looked;
	if (role == NP_ROLE_NCCL_ETC)
		return cfg->nccl_scope == NP_NCCL_BOTH || cfg->nccl_scope == NP_NCCL_SYSTEM;
	if (role == NP_ROLE_MODULES_LOAD || role == NP_ROLE_MODPROBE)
		return true;
	if (role == NP_ROLE_DASK_YAML || role == NP_ROLE_DASK_ENV)
		return cfg->dask.enabled;
	if (role == NP_ROLE_MODULEFILE_OLD)
		return true;
	if (role == NP_ROLE_PROFILE_SH || role == NP_ROLE_PROFILE_CSH)
		return cfg->ucx.profile != NP_UCX_OFF && !cfg->ucx_modulefile;
	return role == NP_ROLE_NCCL_HOME || cfg->ucx.profile != NP_UCX_OFF;
}

void np_judge_files(const struct np_config *cfg, const struct np_facts *facts,
		    struct np_checks *out)
{
	for (size_t i = 0; i < cfg->unknown_users.n; i++)
		np_checks_add(out, "file", cfg->unknown_users.v[i], NP_CHECK_FAIL,
			      "file.user_unknown",
			      "correct [nccl] users, or look why `getent passwd` does not know it",
			      "[nccl] users: no such user in the password database");
	for (size_t i = 0; i < facts->n_files; i++) {
		const struct np_target_file *f = &facts->files[i].file;
		bool nccl = facts->files[i].role == NP_ROLE_NCCL_HOME ||
			    facts->files[i].role == NP_ROLE_NCCL_ETC;

		if (facts->files[i].role == NP_ROLE_NCCL_HOME &&
		    (cfg->nccl_scope == NP_NCCL_SYSTEM || cfg->nccl_scope == NP_NCCL_OFF))
			continue;
		if (f->status == NP_TARGET_REFUSED && is_written(cfg, facts, facts->files[i].role))
			np_checks_add(out, "file", f->path, NP_CHECK_FAIL,
				      f->in_home ? "file.home_refused" : "file.refused", f->hint,
				      "not touched: %s", f->reason);
		else if (f->status == NP_TARGET_UNKNOWN)
			np_checks_add(out, "file", f->path,
				      f->num == (f->in_home ? -EPERM : -EACCES) ? NP_CHECK_UNKNOWN :
										  NP_CHECK_FAIL,
				      "file.unreadable", f->hint, "%s%s",
				      np_starts_with(f->reason, "cannot") ? "" : "cannot be read: ",
				      f->reason);
		if (f->in_home && f->network_fs)
			np_checks_add(
				out, "file", f->path, NP_CHECK_WARN, "nccl.shared_home",
				"prefer /etc/nccl.conf ([nccl] scope = system) where the nodes' interfaces differ",
				"the home is on a network file system: every node that mounts it reads this file");
		if (nccl && f->status == NP_TARGET_PRESENT) {
			judge_nccl_lines(f, out);
			judge_ib_hca(cfg, facts, f, out);
		}
	}
}

static void judge_kept_file(const struct np_target_file *f, size_t len, struct np_checks *out)
{
	const char *code = f->in_home ? "file.home_refused" : "file.refused";

	if (f->reason[0])
		np_checks_add(out, "file", f->path, NP_CHECK_FAIL, code, f->hint,
			      "its content should change, but it is not touched: %s", f->reason);
	else if (len > NP_TARGET_MAX)
		np_checks_add(out, "file", f->path, NP_CHECK_FAIL, code,
			      "move it away: it cannot be a configuration file",
			      "not touched: it would become too large (%zu bytes, the limit is %d)",
			      len, NP_TARGET_MAX);
}

/* Files that can be read and must not be replaced (a symlink in /etc), or grown (they are
 * as large as one may be): no matter as long as their content is right. */
static void judge_kept_files(const struct np_config *cfg, const struct np_facts *facts,
			     const struct np_selection *sel, struct np_checks *out)
{
	for (size_t i = 0; i < facts->n_files; i++) {
		const struct np_target_file *f = &facts->files[i].file;
		np_auto_buf struct np_buf content = { 0 };
		bool wanted = false;

		if (f->status != NP_TARGET_PRESENT ||
		    (!f->reason[0] && f->content.len < NP_TARGET_MAX / 2))
			continue;
		if (np_plan_file_content(cfg, facts, sel, &facts->files[i], &wanted, &content,
					 NULL) < 0)
			out->failed = true;
		else if (wanted && !np_buf_equal(&content, &f->content))
			judge_kept_file(f, content.len, out);
	}
}

/* What a run that nobody watches goes by (packaging/hook): without an address there is
 * nothing that it has been asked for. */
static void judge_config(const struct np_config *cfg, struct np_checks *out)
{
	for (size_t i = 0; i < cfg->n_netdevs; i++)
		if (cfg->netdevs[i].n_addrs || cfg->netdevs[i].n_sources)
			return;
	np_checks_add(out, "config", "node", NP_CHECK_SKIP, "config.no_address",
		      "set [netdev NAME] address, or give --ip ADDR/LEN",
		      "no address is configured: interfaces keep those that they have");
}

void np_judge(const struct np_config *cfg, const struct np_facts *facts,
	      const struct np_selection *sel, struct np_checks *out)
{
	judge_config(cfg, out);
	np_judge_ports(cfg, facts, out);
	np_judge_netdevs(cfg, facts, sel, out);
	np_judge_modules(cfg, facts, out);
	np_judge_pci(cfg, facts, out);
	np_judge_libraries(cfg, facts, sel, out);
	np_judge_census(cfg, &facts->census, out);
	np_judge_files(cfg, facts, out);
	judge_kept_files(cfg, facts, sel, out);
	np_judge_consumers(cfg, facts, sel, out);
	np_judge_limits(cfg, facts, out);
	np_judge_dask(cfg, facts, sel, out);
}
