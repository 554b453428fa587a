/* SPDX-License-Identifier: MIT */
#ifndef NP_IBMAD_PRIVATE_H
#define NP_IBMAD_PRIVATE_H

#include "ibmad/ca.h"

/* ---- sysfs.c: attribute by attribute ---- */

/* One port being read. */
struct np_port_reader {
	int fd; /* its directory, O_PATH */
	struct np_port *port;
	int err; /* -ENOMEM once memory ran out; sticky */
};

/* Each reads one attribute (np_port_read_sysfs all of them) into the port; one
 * without a value is unknown and listed in port->unreadable. */
void np_port_read_state(struct np_port_reader *reader);
void np_port_read_phys_state(struct np_port_reader *reader);
void np_port_read_link_layer(struct np_port_reader *reader);
void np_port_read_lid(struct np_port_reader *reader);
void np_port_read_sm_lid(struct np_port_reader *reader);
void np_port_read_rate(struct np_port_reader *reader);
void np_port_read_gid(struct np_port_reader *reader);
void np_port_read_counters(struct np_port_reader *reader);
/* Entry @name of the pkey table to the end of port->pkeys, unless it is 0. */
void np_port_read_pkey(struct np_port_reader *reader, const char *name);
void np_port_read_sysfs(struct np_port_reader *reader, unsigned int detail);

/* Files of the CA's own directory @ca_fd that libibumad reads too. */
void np_ca_read_sysfs(int ca_fd, struct np_ca *ca, unsigned int detail);
/* ca->fw_ver and its like: unknown when unreadable or cut short by libibumad. */
void np_ca_read_text(int ca_fd, const char *attr, char *out, size_t size);

/* Names in a directory but those that start with a dot, natural order. Returns
 * 0 or a negative errno. */
int np_dir_list(int dirfd, const char *path, struct np_strv *out) np_must_check;

enum np_link_layer np_link_layer_parse(const char *raw);

/* ---- umad.c: the same through libibumad ---- */

/* Fills @ca and its ports. Returns 0, -ENOMEM, or another negative errno when
 * libibumad failed; @ca then has its name only. @ca_fd is for what must be read
 * again because libibumad's value may be a guess. */
int np_ca_read_umad(int ca_fd, struct np_ca *ca, unsigned int detail) np_must_check;

/* ---- vpd.c ---- */

/* Whether VPD is worth reading on a machine with @n_cas adapters. */
bool np_vpd_wanted(size_t n_cas);
/* The vital product data of the CA's PCI function says that it manages NVSwitches. */
bool np_vpd_is_management(int ca_fd);

/* Frees contents, keeps nothing. */
void np_ca_done(struct np_ca *ca);

#endif
