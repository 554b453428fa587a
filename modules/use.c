/* SPDX-License-Identifier: MIT */
#include "modules/use.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "modules/private.h"

static DIR *open_below(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* Entries but "." and ".."; -1 when it cannot be read. */
static int count_entries(int at, const char *name)
{
	_cleanup_closedir_ DIR *dir = open_below(at, name);
	struct dirent *entry;
	int n = 0;

	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	return n;
}

/* /sys/module/NAME/drivers/BUS:DRIVER is a link to the driver's folder, in which each
 * device that it has is a link; "module" is one too. */
static bool is_bound(int at)
{
	_cleanup_closedir_ DIR *drivers = open_below(at, "drivers");
	struct dirent *entry, *device;

	if (!drivers)
		return errno != ENOENT;
	while ((entry = readdir(drivers))) {
		_cleanup_closedir_ DIR *driver = NULL;

		if (entry->d_name[0] == '.')
			continue;
		driver = open_below(dirfd(drivers), entry->d_name);
		if (!driver)
			return true;
		while ((device = readdir(driver)))
			if (device->d_type == DT_LNK && !np_streq(device->d_name, "module"))
				return true;
	}
	return false;
}

void np_kmod_use_observe(const char *name, struct np_kmod_use *out)
{
	_cleanup_close_ int modules = -1;
	_cleanup_close_ int fd = -1;
	char text[32];
	uint64_t refcnt;
	struct np_kmod mod;

	np_kmod_observe(name, &mod);
	memset(out, 0, sizeof(*out));
	np_strcpy(out->name, sizeof(out->name), mod.name);
	out->state = mod.state;
	out->refcnt = out->n_holders = -1;
	out->has_devices = true;
	modules = open("/sys/module", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = modules >= 0 && mod.name[0] ?
		     openat(modules, mod.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) :
		     -1;
	if (fd < 0)
		return;
	if (np_file_read_line_at(fd, "refcnt", text, sizeof(text)) > 0 &&
	    np_parse_u64(text, 10, INT32_MAX, &refcnt) == 0)
		out->refcnt = (int)refcnt;
	out->n_holders = count_entries(fd, "holders");
	out->has_devices = is_bound(fd);
}

const char *np_kmod_kept(const struct np_kmod_use *use)
{
	static const char *const counted[] = { "ib_umad", "ib_uverbs", "rdma_cm", "rdma_ucm",
					       "gdrdrv" };

	for (size_t i = 0; i < NP_ARRAY_SIZE(counted); i++) {
		if (!np_streq(use->name, counted[i]))
			continue;
		if (use->state != NP_KMOD_LIVE)
			return "it is not in a state in which it can be taken away";
		if (use->n_holders > 0)
			return "another module uses it";
		if (use->refcnt > 0)
			return "it is in use";
		if (use->refcnt < 0 || use->n_holders < 0)
			return "whether it is in use cannot be told";
		return use->has_devices ? "it drives a device" : NULL;
	}
	return "its use count does not tell of all who use it";
}

int np_kmod_unload(const char *name, struct np_err *err)
{
	char plain[64];

	if (!np_kmod_normal_name(name, plain, sizeof(plain)))
		return np_err_set(err, -EINVAL, "module.unload", "not the name of a module");
	if (syscall(SYS_delete_module, plain, O_NONBLOCK) == 0 || errno == ENOENT)
		return 0;
	return np_err_set(err, -errno, "module.unload", "module %s cannot be taken away: %s", plain,
			  strerror(errno));
}
