/* SPDX-License-Identifier: MIT */
#include "modules/use.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

static bool read_holders(int at, struct np_strv *out)
{
	_cleanup_closedir_ DIR *dir = open_below(at, "holders");
	struct dirent *entry;

	if (!dir)
		return false;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && np_strv_add(out, entry->d_name) < 0)
			return false;
	return true;
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
	out->refcnt = -1;
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
	out->holders_known = read_holders(fd, &out->holders);
	out->has_devices = is_bound(fd);
}

void np_kmod_use_done(struct np_kmod_use *use)
{
	if (!use)
		return;
	np_strv_done(&use->holders);
	memset(use, 0, sizeof(*use));
}

static const char *say(char why[NP_KMOD_WHY_SIZE], const char *who, const char *what)
{
	snprintf(why, NP_KMOD_WHY_SIZE, "%s%s", who, what);
	return why;
}

const char *np_kmod_kept(const struct np_kmod_use *use, const struct np_strv *going,
			 char why[NP_KMOD_WHY_SIZE])
{
	static const char *const counted[] = { "ib_umad", "ib_uverbs", "rdma_cm", "rdma_ucm",
					       "gdrdrv",  "ib_cm",     "iw_cm",	  "configfs" };
	int left = use->refcnt;
	size_t i = 0;

	while (i < NP_ARRAY_SIZE(counted) && !np_streq(use->name, counted[i]))
		i++;
	if (i == NP_ARRAY_SIZE(counted))
		return say(why, "", "its use count does not tell of all who use it");
	if (use->state != NP_KMOD_LIVE)
		return say(why, "", "it is not in a state in which it can be taken away");
	for (i = 0; i < use->holders.n; i++) {
		if (!going || !np_strv_has(going, use->holders.v[i]))
			return say(why, use->holders.v[i], " uses it");
		left--;
	}
	if (use->refcnt < 0 || !use->holders_known || left < 0)
		return say(why, "", "whether it is in use cannot be told");
	/* a holder may have more of it than the one use (a file system that it pins) */
	if (left > 0 && left < use->refcnt)
		return say(why, "it is in use, perhaps only by what goes before it", "");
	if (left > 0)
		return say(why, "", "it is in use");
	return use->has_devices ? say(why, "", "it drives a device") : NULL;
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
