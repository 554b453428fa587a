/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CONFIG_H
#define NP_AGENT_CONFIG_H

#include <net/if.h>

#include "agent/address_source.h"
#include "agent/ucx_env.h"
#include "base/inet.h"
#include "base/memlock.h"
#include "base/str.h"
#include "netlink/netdev.h"

/* What the admin wants: nodeprep.conf and conf.d, then the flags. */

enum np_match_kind { NP_MATCH_NAME, NP_MATCH_AUTO, NP_MATCH_PORT, NP_MATCH_GUID };

struct np_want_netdev {
	char name[IFNAMSIZ];   /* "" = the default netdev: ib0, else the only IPoIB one */
	struct np_inet *addrs; /* in order; those of the sources once they are resolved */
	size_t n_addrs;
	struct np_address_source *sources;
	size_t n_sources;
	enum np_match_kind match;
	char match_ca[64];
	int match_port;
	uint64_t match_guid;
	enum np_ipoib_mode mode; /* UNKNOWN = keep */
	uint32_t mtu;		 /* bytes; 0 = keep */
	bool exclusive;		 /* foreign addresses are removed */
	bool from_flags;	 /* addrs come from --ip and replace those of the files */
};

enum np_require { NP_REQUIRE_AUTO, NP_REQUIRE_YES, NP_REQUIRE_NO };

struct np_want_module {
	char name[64];
	enum np_require require;
	char options[160]; /* "a=1 b=2" */
	bool ignore_blacklist;
	/* of the device node; gdrdrv alone */
	bool has_mode;
	mode_t mode;
	char group[33]; /* "" = not given */
};

/* [selftest] min_bandwidth_MBps.RUNG */
struct np_floor {
	char key[48];	 /* all of it */
	double min_MBps; /* 10^6 bytes a second; 0 = none */
};

enum np_nccl_scope { NP_NCCL_BOTH, NP_NCCL_HOME, NP_NCCL_SYSTEM, NP_NCCL_OFF };

enum np_choice { NP_CHOICE_AUTO, NP_CHOICE_YES, NP_CHOICE_NO };
extern const char *const np_choice_names[]; /* auto, yes, no; NULL ends */

#define NP_DASK_PORT 8786 /* where a scheduler of Dask listens by default */

/* [dask] */
struct np_want_dask {
	bool enabled;
	bool tcp;		  /* protocol tcp, without UCX; else ucx */
	char scheduler[128];	  /* HOST[:PORT]; "" = none */
	char interface[IFNAMSIZ]; /* "" = the primary netdev */
	char prefix[160];	  /* of the environment that has Dask; "" = the system's */
	uint64_t pool_bytes;	  /* of RMM; 0 = none */
	int connect_timeout_s;	  /* 0 = Dask's own */
	enum np_choice nvlink, cuda_context;
	bool find_forks; /* UCX_IB_FORK_INIT=n */
	bool per_gpu;	 /* a worker for each GPU, with the ports nearest to it */
};

struct np_config {
	struct np_strv files; /* the files read, in order */

	struct np_want_netdev *netdevs;
	size_t n_netdevs;
	char ifname[IFNAMSIZ]; /* --ifname */

	struct np_strv port_devices; /* "mlx5_0:1" or "mlx5_0" (every port); empty = all */
	struct np_strv port_ignore;
	double min_rate_gbps; /* 0 = none */
	int wait_s;	      /* for ports ACTIVE and netdevs RUNNING */

	struct np_want_module *modules;
	size_t n_modules;

	struct np_floor *floors;
	size_t n_floors;

	enum np_nccl_scope nccl_scope;
	char *nccl_socket_ifname; /* NULL = by node */
	char *nccl_ib_hca;
	char nccl_version_min[16];
	struct np_strv library_prefixes; /* installations that the census looks into */
	struct np_strv unknown_users;	 /* [nccl] users that the password database lacks */
	struct np_strv users;		 /* --user and [nccl] users: owners of homes */
	char implied_user[33];		 /* the invoking user, where neither names it; or "" */

	struct np_ucx_input ucx; /* profile, tls and net_devices only */
	char *ucx_tls, *ucx_net_devices;
	char *ucx_modulefile; /* written in the place of the profile scripts; NULL = none */

	bool memlock_keep;     /* nothing is written for memlock, nor judged */
	uint64_t memlock;      /* bytes, or NP_UNLIMITED: for logins, and asked of services */
	char limits_group[33]; /* "" = all users */

	struct np_want_dask dask;

	bool force;
	struct np_strv warnings; /* accepted, but without effect in this version */
};

/* The defaults of nodeprep.conf(5). */
void np_config_init(struct np_config *cfg);
void np_config_done(struct np_config *cfg);

/*
 * Reads one INI file into @cfg; an unknown section or key, a bad value or a line
 * longer than 198 bytes (what inih takes) is an error with file:line, what is wrong and the
 * nearest name (code "config.*"). Returns 0, -EINVAL, or a negative errno when
 * the file cannot be read.
 */
int np_config_read(struct np_config *cfg, const char *path, struct np_err *err) np_must_check;

/* /etc/nodeprep/nodeprep.conf and conf.d/<name>.conf in name order; absent is fine.
 * With @path (--config) that file alone, which must exist. */
int np_config_load(struct np_config *cfg, const char *path, struct np_err *err) np_must_check;

/* --ip "ADDR/LEN" or "IFNAME=ADDR/LEN". The first --ip of a netdev replaces what
 * the files say of its addresses. -EINVAL with code "usage.address". */
int np_config_add_ip(struct np_config *cfg, const char *text, struct np_err *err) np_must_check;

/* What only shows when all is read: one address on two netdevs, and the like. */
int np_config_finish(struct np_config *cfg, struct np_err *err) np_must_check;

/* One key of one section, as the reader calls it; for the reader and its tests.
 * @where is "file:line". */
int np_config_set(struct np_config *cfg, const char *section, const char *key, const char *value,
		  const char *where, struct np_err *err) np_must_check;

/* The name between [ and ], whether keys follow or not. As np_config_set. */
int np_config_section(struct np_config *cfg, const char *section, const char *where,
		      struct np_err *err) np_must_check;

/* The least bandwidth of @rung, in 10^6 bytes a second; 0 = none is configured. */
double np_config_floor(const struct np_config *cfg, const char *rung);

/* For show config: every key in force, one "section.key = value" a row. */
struct np_config_row {
	char section[64], key[32];
	char *value;
	const struct np_want_netdev *want; /* of an address with sources; NULL else */
};
int np_config_rows(const struct np_config *cfg, struct np_config_row **out,
		   size_t *n) np_must_check;
void np_config_rows_free(struct np_config_row *rows, size_t n);

/* The netdev entry named @name, made when absent. NULL when out of memory. */
struct np_want_netdev *np_config_netdev(struct np_config *cfg, const char *name);

#endif
