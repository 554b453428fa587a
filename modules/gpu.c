/* SPDX-License-Identifier: MIT */
#include "modules/gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "modules/private.h"

#define PCI_DIR	      "/sys/bus/pci/devices"
#define VENDOR_NVIDIA 0x10de
#define CLASS_VGA     0x0300 /* PCI Code and ID Assignment: VGA and 3D controller */
#define CLASS_3D      0x0302
#define CLASS_BRIDGE  0x0680 /* other bridge: NVSwitch */

/* Every PCI function: its sysfs name, and what is known of it without a read. */
struct function {
	char address[16];
	struct np_pci_id id;
};

struct functions {
	struct function *v;
	size_t n;
};

static int take_hex(const char *s, size_t len, uint64_t max, uint64_t *out)
{
	char text[16];

	if (len >= sizeof(text) || strnlen(s, len) < len)
		return -EINVAL;
	memcpy(text, s, len);
	text[len] = '\0';
	return np_parse_u64(text, 16, max, out);
}

int np_pci_address_parse(const char *address, uint16_t *bus_devfn)
{
	const char *at = strchr(address, ':'); /* domains may have more than 4 digits */
	uint64_t bus, dev, fn;

	if (!at || strlen(at) != strlen(":17:00.0") || at[3] != ':' || at[6] != '.' ||
	    take_hex(at + 1, 2, 0xff, &bus) < 0 || take_hex(at + 4, 2, 0x1f, &dev) < 0 ||
	    take_hex(at + 7, 1, 7, &fn) < 0)
		return -EINVAL;
	*bus_devfn = (uint16_t)(bus << 8 | dev << 3 | fn);
	return 0;
}

int np_pci_line_parse(const char *line, struct np_pci_id *out)
{
	uint64_t place, vendor;

	if (take_hex(line, 4, UINT16_MAX, &place) < 0 || line[4] != '\t' ||
	    take_hex(line + 5, 4, UINT16_MAX, &vendor) < 0)
		return -EINVAL;
	out->bus_devfn = (uint16_t)place;
	out->vendor = (uint16_t)vendor;
	return 0;
}

static int add_function(const char *name, unsigned char type, void *arg)
{
	struct functions *out = arg;
	struct function new = { 0 };

	(void)type;
	if (np_pci_address_parse(name, &new.id.bus_devfn) < 0 ||
	    !np_strcpy(new.address, sizeof(new.address), name))
		return 0;
	if ((out->n & (out->n - 1)) == 0) { /* full at each power of two */
		size_t size = out->n ? out->n * 2 : 1;
		struct function *v = reallocarray(out->v, size, sizeof(*v));

		if (!v)
			return -ENOMEM;
		out->v = v;
	}
	out->v[out->n++] = new;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->id.bus_devfn != y->id.bus_devfn)
		return x->id.bus_devfn < y->id.bus_devfn ? -1 : 1;
	return strcmp(x->address, y->address);
}

static int by_place_id(const void *a, const void *b)
{
	const struct np_pci_id *x = a, *y = b;

	return (int)x->bus_devfn - (int)y->bus_devfn;
}

/* All PCI vendors in one file, where a `vendor` a function costs milliseconds on a
 * machine with hundreds of them. It names no domain, and it need not show the same
 * bus as sysfs (containers), so it is believed only when both list the very same
 * places; of a place in several domains only that it is one of them is known. */
static void add_vendors(struct functions *list)
{
	np_auto_buf struct np_buf text = { 0 };
	_cleanup_free_ struct np_pci_id *ids = NULL;
	size_t n = 0;
	char *rest, *line;

	if (list->n == 0 || np_file_read_at(AT_FDCWD, "/proc/bus/pci/devices", 4 << 20, &text) < 0)
		return;
	ids = calloc(list->n, sizeof(*ids));
	if (!ids)
		return;
	rest = text.data;
	while ((line = strsep(&rest, "\n")) && *line)
		if (n == list->n || np_pci_line_parse(line, &ids[n++]) < 0)
			return;
	if (n != list->n)
		return;
	qsort(ids, n, sizeof(*ids), by_place_id);
	for (size_t i = 0; i < n; i++)
		if (ids[i].bus_devfn != list->v[i].id.bus_devfn)
			return;
	for (size_t i = 0; i < n; i++) {
		bool twice = (i > 0 && ids[i - 1].bus_devfn == ids[i].bus_devfn) ||
			     (i + 1 < n && ids[i + 1].bus_devfn == ids[i].bus_devfn);

		list->v[i].id.vendor = twice ? 0 : ids[i].vendor;
	}
}

/* "0x10de" */
static bool read_hex(int pci_fd, const char *address, const char *attr, uint64_t *out)
{
	char path[64], text[32];

	snprintf(path, sizeof(path), "%s/%s", address, attr);
	return np_file_read_line_at(pci_fd, path, text, sizeof(text)) >= 0 &&
	       np_parse_u64(text, 0, UINT32_MAX, out) == 0;
}

/* The class without its programming interface; 0 = not NVIDIA's, or unknown. */
static unsigned int nvidia_class(int pci_fd, const struct function *f)
{
	uint64_t vendor = f->id.vendor, class;

	if (vendor == 0 && !read_hex(pci_fd, f->address, "vendor", &vendor))
		return 0;
	if (vendor != VENDOR_NVIDIA || !read_hex(pci_fd, f->address, "class", &class))
		return 0;
	return (unsigned int)(class >> 8);
}

static void read_gpu(int pci_fd, const struct function *f, struct np_gpu *gpu)
{
	char path[64], target[512];
	const char *slash;
	uint64_t value;
	ssize_t len;

	np_strcpy(gpu->pci_address, sizeof(gpu->pci_address), f->address);
	if (read_hex(pci_fd, f->address, "device", &value))
		gpu->device_id = (uint16_t)value;
	snprintf(path, sizeof(path), "%s/numa_node", f->address);
	gpu->numa_node = np_pci_numa_node(pci_fd, path);
	snprintf(path, sizeof(path), "%s/driver", f->address);
	len = readlinkat(pci_fd, path, target, sizeof(target) - 1);
	if (len < 0)
		return;
	target[len] = '\0';
	slash = strrchr(target, '/');
	np_strcpy(gpu->driver, sizeof(gpu->driver), slash ? slash + 1 : target);
}

static int by_address(const void *a, const void *b)
{
	return strcmp(((const struct np_gpu *)a)->pci_address,
		      ((const struct np_gpu *)b)->pci_address);
}

static int find_gpus(int pci_fd, const struct functions *list, struct np_gpus *out)
{
	for (size_t i = 0; i < list->n; i++) {
		unsigned int class = nvidia_class(pci_fd, &list->v[i]);
		struct np_gpu *v;

		out->n_nvswitches += class == CLASS_BRIDGE;
		if (class != CLASS_VGA && class != CLASS_3D)
			continue;
		v = reallocarray(out->v, out->n + 1, sizeof(*v));
		if (!v)
			return -ENOMEM;
		out->v = v;
		memset(&v[out->n], 0, sizeof(*v));
		read_gpu(pci_fd, &list->v[i], &v[out->n++]);
	}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_address);
	return 0;
}

int np_gpus_observe(struct np_gpus *out, struct np_err *err)
{
	_cleanup_close_ int pci_fd = open(PCI_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct functions list = { 0 };
	struct np_gpus gpus = { 0 };
	int r = pci_fd < 0 ? -errno : np_dir_each(pci_fd, ".", add_function, &list);

	if (r == 0 && list.n) {
		qsort(list.v, list.n, sizeof(*list.v), by_place);
		add_vendors(&list);
		r = find_gpus(pci_fd, &list, &gpus);
	}
	free(list.v);
	if (r == 0 || r == -ENOENT) { /* no PCI bus */
		*out = gpus;
		return 0;
	}
	np_gpus_done(&gpus);
	if (r == -ENOMEM)
		return np_err_nomem(err);
	return np_err_set(err, r, "gpu.unreadable", "cannot list %s: %s", PCI_DIR, strerror(-r));
}

void np_gpus_read_pci(struct np_gpus *list)
{
	for (size_t i = 0; i < list->n; i++) {
		char dir[sizeof(PCI_DIR) + sizeof(list->v[i].pci_address) + 1];

		snprintf(dir, sizeof(dir), "%s/%s", PCI_DIR, list->v[i].pci_address);
		np_pci_read(dir, &list->v[i].pci);
	}
}

bool np_gpu_is_given_away(const struct np_gpu *gpu)
{
	return strcmp(gpu->driver, "vfio-pci") == 0 || strcmp(gpu->driver, "pci-stub") == 0;
}

void np_gpus_done(struct np_gpus *list)
{
	if (!list)
		return;
	free(list->v);
	memset(list, 0, sizeof(*list));
}
