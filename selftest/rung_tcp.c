/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "selftest/netif.h"
#include "selftest/rung.h"
#include "selftest/ucp_engine.h"

/*
 * UCX's tcp over the address of an IPoIB netdev. Both ends are this node, and the
 * kernel delivers a node's own address through lo: the address and UCX's TCP are
 * proven, the wire is not.
 */

static const char *const carriers[] = { "tcp", NULL };

/* What is wrong with the netdev, as 0 (nothing), 1 (skip) or a negative errno. */
static int check_netdev(const struct np_rung_options *options, const struct np_netif *netif,
			const char *wanted, struct np_err *err)
{
	const char *name = options->netdev;

	if (!netif->exists) {
		np_err_set(err, -ENODEV, "selftest.tcp.no_netdev", "there is no netdev %s", name);
		np_err_hint(err, "load ib_ipoib, or name the IPoIB netdev that is there");
		return -ENODEV;
	}
	if (!netif->up) {
		np_err_set(err, -ENETDOWN, "selftest.tcp.netdev_down", "%s is down", name);
		np_err_hint(err, "bring it up: ip link set %s up", name);
		return -ENETDOWN;
	}
	if (!netif->running) {
		np_err_set(err, -ENETDOWN, "selftest.tcp.no_carrier",
			   "%s is up but not RUNNING: no carrier", name);
		np_err_hint(err,
			    "bring its port to ACTIVE: check the cable and the subnet manager");
		return -ENETDOWN;
	}
	if (netif->addresses.n == 0 && !*wanted) {
		np_err_set(err, -EADDRNOTAVAIL, "selftest.tcp.no_address", "%s has no address",
			   name);
		np_err_hint(err, "give it one: nodeprep apply --ip %s=ADDR/LEN", name);
		return 1;
	}
	if (*wanted && !np_strv_has(&netif->addresses, wanted)) {
		np_err_set(err, -EADDRNOTAVAIL, "selftest.tcp.address_missing",
			   "%s does not have the address %s%s%s", name, wanted,
			   netif->addresses.n ? ", it has " : "",
			   netif->addresses.n ? netif->addresses.v[0] : "");
		np_err_hint(err, "add it: nodeprep apply --ip %s=%s/LEN", name, wanted);
		return -EADDRNOTAVAIL;
	}
	return 0;
}

static int check_loopback(struct np_err *err)
{
	np_auto_netif struct np_netif lo = { 0 };
	int ret = np_netif_observe("lo", &lo, err);

	if (ret < 0 || lo.up)
		return ret;
	np_err_set(err, -ENETDOWN, "selftest.tcp.lo_down",
		   "lo is down: the kernel delivers a node's own addresses through it");
	np_err_hint(err, "bring it up: ip link set lo up");
	return -ENETDOWN;
}

/* UCX looks for netdevs in sysfs. */
static int check_sysfs(const char *name, struct np_err *err)
{
	char path[64 + IFNAMSIZ];

	snprintf(path, sizeof(path), "/sys/class/net/%s", name);
	if (access(path, F_OK) == 0)
		return 0;
	np_err_set(err, -ENOENT, "selftest.tcp.no_sysfs",
		   "%s is missing, where UCX looks for it: this sysfs is not of this network "
		   "namespace",
		   path);
	np_err_hint(err, "mount sysfs inside the network namespace (ip netns exec does)");
	return -ENOENT;
}

static int check(const struct np_rung_options *options, const char *wanted, char address[64],
		 struct np_err *err)
{
	np_auto_netif struct np_netif netif = { 0 };
	int ret;

	if (!options->netdev) {
		np_err_set(err, -ENODEV, "selftest.tcp.no_address",
			   "no IPoIB netdev with an address was named");
		np_err_hint(err, "name one: --netdev ib0");
		return 1;
	}
	ret = np_netif_observe(options->netdev, &netif, err);
	if (ret < 0)
		return ret;
	ret = check_netdev(options, &netif, wanted, err);
	if (ret != 0)
		return ret;
	np_strcpy(address, 64, *wanted ? wanted : netif.addresses.v[0]);
	ret = check_loopback(err);
	return ret < 0 ? ret : check_sysfs(options->netdev, err);
}

int np_rung_tcp(const struct np_rung_options *options, struct np_rung_report *report,
		struct np_err *err)
{
	const struct np_ucp_spec spec = {
		.rung = "tcp",
		.tls = "tcp",
		.net_devices = options->netdev,
		.carriers = carriers,
		.device = options->netdev,
		.mem = &np_ucp_mem_host,
		.full = options->full,
		.deadline_ms = options->deadline_ms,
	};
	char wanted[64] = "", address[64] = "", first[32], last[32];
	struct np_rung_result *result;
	struct np_err why;
	int ret;

	if (options->address && np_netif_address(options->address, wanted, err) < 0)
		return -EINVAL;
	result = np_rung_add(report, "tcp", options->netdev);
	if (!result)
		return np_err_nomem(err);
	ret = check(options, wanted, address, &why);
	if (ret > 0) {
		np_rung_skip(result, &why);
		return 0;
	}
	if (ret == 0)
		ret = np_ucp_prove(&spec, result, &why);
	if (ret < 0) {
		np_rung_fail(result, &why);
		return 0;
	}
	np_rung_ok(
		result,
		"%s to %s verified both ways over UCX %s tcp on %s (%s); the kernel delivers "
		"a node's own address through lo: this proves the address and UCX's TCP, not the "
		"wire",
		np_size_str(result->sizes[0].size_bytes, first),
		np_size_str(result->sizes[result->n_sizes - 1].size_bytes, last),
		ucp_get_version_string(), options->netdev, address);
	return 0;
}
