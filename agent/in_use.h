/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_IN_USE_H
#define NP_AGENT_IN_USE_H

#include "agent/action.h"
#include "agent/result.h"
#include "netlink/rdma.h"
#include "netlink/tcp.h"

/*
 * Never under a running job: what a plan would cut, who uses that, and the refusal. Nothing
 * is read for a plan that cuts nothing, so that a run with nothing to do stays as cheap as
 * it is.
 */

/* ---- what a plan touches ---- */

/* One address whose users could be cut. */
struct np_touched_addr {
	struct np_inet inet;
	int ifindex; /* of the netdev that has it */
};

struct np_touched_port {
	char ca[64];
	int port; /* 0 = unknown: any of that CA */
};

/* One netdev that the plan changes in a way that can cut, or the device node of gdrdrv. */
struct np_touched {
	const struct np_action *action; /* the first that does */
	bool is_node;
	bool whole; /* all that runs over it and over what stands on it; else @addrs alone */
	struct np_touched_addr *addrs;
	size_t n_addrs;
	struct np_touched_port *ports; /* below it */
	size_t n_ports;
};

struct np_touched_list {
	struct np_touched *v;
	size_t n;
};

/* Can the plan cut anything? An address that is added, a netdev that is brought up, a module
 * that is loaded and a file that is written cut nothing. Pure. */
bool np_any_may_cut(const struct np_actions *actions);

/* @netdevs: all of the node. Entries point into @actions. Returns 0 or -ENOMEM;
 * np_touched_done frees. Pure. */
int np_touched_make(const struct np_actions *actions, const struct np_netdevs *netdevs,
		    struct np_touched_list *out) np_must_check;
void np_touched_done(struct np_touched_list *list);
#define np_auto_touched np_auto(np_touched_done)

/* "ib0", or "gdrdrv" for its device node. */
const char *np_touched_name(const struct np_touched *t);
bool np_touches_addr(const struct np_touched *t, const struct np_inet *addr, int ifindex);

/* ---- who uses it ---- */

struct np_lnet {
	bool driver;	     /* a driver of LNET that uses netdevs is loaded: ksocklnd, ko2iblnd */
	bool known;	     /* its NIDs could be read */
	char reason[64];     /* why not */
	struct np_strv nids; /* "10.0.0.50@o2ib"; the loopback's is left out */
};

struct np_nfs_mount {
	char where[256], source[128]; /* as text for people: cleaned */
	bool rdma;
	struct np_inet server, client; /* family 0 = not told */
	struct np_inet src;	       /* which the way to the server is left with */
	int ifindex;		       /* of that way, 0 = none */
};

struct np_nfs_mounts {
	struct np_nfs_mount *v;
	size_t n;
};

/* Who has a socket or a device open; entries that nobody has do not exist. */
struct np_holder {
	uint64_t inode; /* of a socket; 0: a device */
	char device[32];
	pid_t pid;
	char command[NP_COMM_SIZE];
};

struct np_usage {
	struct np_rdma_users rdma;
	struct np_tcp_list tcp; /* those over touched addresses alone */
	struct np_lnet lnet;
	struct np_nfs_mounts nfs;
	struct np_holder *holders;
	size_t n_holders;
};

/* Reads who uses what is touched. Returns 0 or a negative errno with message;
 * np_usage_done frees. */
int np_usage_observe(const struct np_touched_list *touched, struct np_usage *out,
		     struct np_err *err) np_must_check;
void np_usage_done(struct np_usage *usage);
#define np_auto_usage np_auto(np_usage_done)

/* The text of LNET's "nis": a header, then "NID STATUS ALIVE REFS ..." a line. Returns 0 or
 * -ENOMEM. Pure. */
int np_lnet_parse(const char *text, struct np_strv *nids) np_must_check;

/* The address of a NID "10.0.0.50@o2ib1". False for others ("0@lo"). Pure. */
bool np_lnet_nid_addr(const char *nid, struct np_inet *out);

/* NFS mounts of the text of /proc/self/mountinfo (proc_pid_mountinfo(5)). Returns 0 or
 * -ENOMEM. Pure. */
int np_nfs_mounts_parse(const char *mountinfo, struct np_nfs_mounts *out) np_must_check;

/* ---- the judgement ---- */

/* Adds a warning for each user of what is touched (id "netdev" or "module"), and an unknown
 * one (plan.in_use_unknown) where the kernel does not list TCP connections. Pure. */
void np_in_use_judge(const struct np_touched_list *touched, const struct np_usage *usage,
		     struct np_checks *out);

/* All of the above for the plan @actions. With @force users become warnings in @checks, each
 * once. Returns 0, -EBUSY with message (netdev.in_use, netdev.in_use_by_lnet,
 * netdev.in_use_by_nfs, gdrcopy.in_use) for the first user, or another negative errno with
 * message (plan.in_use_unknown, netlink.query), which @force makes a check of, too. */
int np_in_use_check(const struct np_actions *actions, bool force, struct np_checks *checks,
		    struct np_err *err) np_must_check;

#endif
