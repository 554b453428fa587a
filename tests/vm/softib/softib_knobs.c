// SPDX-License-Identifier: GPL-2.0
/* What a test can turn while the HCA runs, in /sys/kernel/debug/softib/DEVICE/:
 *   state       DOWN INIT ARMED ACTIVE
 *   phys_state  Polling Disabled LinkUp ...; until the state changes next
 *   lid sm_lid  numbers
 *   width       1X 2X 4X 8X 12X
 *   speed       SDR DDR QDR FDR10 FDR EDR HDR NDR
 *   corrupt     number: each so many large packets lose a bit
 * Also: netdevs that refuse connected mode, as Enhanced IPoIB does. */
#include <linux/debugfs.h>
#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <linux/string_helpers.h>

#include "rxe.h"
#include "rxe_loc.h"

static bool connected = true;
module_param(connected, bool, 0644);
MODULE_PARM_DESC(connected, "new IPoIB netdevs take connected mode (default: yes)");

static struct dentry *top;

struct word {
	const char *name;
	u16 value;
};

static const struct word state_words[] = { { "DOWN", IB_PORT_DOWN },
					   { "INIT", IB_PORT_INIT },
					   { "ARMED", IB_PORT_ARMED },
					   { "ACTIVE", IB_PORT_ACTIVE },
					   {} };
/* spelled as in sysfs */
static const struct word phys_words[] = {
	{ "Sleep", IB_PORT_PHYS_STATE_SLEEP },
	{ "Polling", IB_PORT_PHYS_STATE_POLLING },
	{ "Disabled", IB_PORT_PHYS_STATE_DISABLED },
	{ "PortConfigurationTraining", IB_PORT_PHYS_STATE_PORT_CONFIGURATION_TRAINING },
	{ "LinkUp", IB_PORT_PHYS_STATE_LINK_UP },
	{ "LinkErrorRecovery", IB_PORT_PHYS_STATE_LINK_ERROR_RECOVERY },
	{}
};
static const struct word width_words[] = { { "1X", IB_WIDTH_1X },   { "2X", IB_WIDTH_2X },
					   { "4X", IB_WIDTH_4X },   { "8X", IB_WIDTH_8X },
					   { "12X", IB_WIDTH_12X }, {} };
static const struct word speed_words[] = {
	{ "SDR", IB_SPEED_SDR },     { "DDR", IB_SPEED_DDR }, { "QDR", IB_SPEED_QDR },
	{ "FDR10", IB_SPEED_FDR10 }, { "FDR", IB_SPEED_FDR }, { "EDR", IB_SPEED_EDR },
	{ "HDR", IB_SPEED_HDR },     { "NDR", IB_SPEED_NDR }, {}
};

static u16 get_state(struct rxe_dev *rxe)
{
	return rxe->port.attr.state;
}

static void set_state(struct rxe_dev *rxe, u16 value)
{
	softib_set_state(rxe, value);
}

static u16 get_phys(struct rxe_dev *rxe)
{
	return softib_phys_state(rxe);
}

static void set_phys(struct rxe_dev *rxe, u16 value)
{
	rxe->softib.phys_state = value;
}

static u16 get_lid(struct rxe_dev *rxe)
{
	return rxe->softib.lid;
}

static void set_lid(struct rxe_dev *rxe, u16 value)
{
	rxe->softib.lid = value;
	softib_event(rxe, IB_EVENT_LID_CHANGE);
}

static u16 get_sm_lid(struct rxe_dev *rxe)
{
	return rxe->softib.sm_lid;
}

static void set_sm_lid(struct rxe_dev *rxe, u16 value)
{
	rxe->softib.sm_lid = value;
	softib_event(rxe, IB_EVENT_SM_CHANGE);
}

static u16 get_width(struct rxe_dev *rxe)
{
	return rxe->softib.width;
}

static void set_width(struct rxe_dev *rxe, u16 value)
{
	rxe->softib.width = value;
	softib_retrain(rxe);
}

static u16 get_speed(struct rxe_dev *rxe)
{
	return rxe->softib.speed;
}

static void set_speed(struct rxe_dev *rxe, u16 value)
{
	rxe->softib.speed = value;
	softib_retrain(rxe);
}

static u16 get_corrupt(struct rxe_dev *rxe)
{
	return rxe->softib.corrupt;
}

static void set_corrupt(struct rxe_dev *rxe, u16 value)
{
	atomic_set(&rxe->softib.large_packets, 0);
	WRITE_ONCE(rxe->softib.corrupt, value);
}

static const struct knob {
	const char *name;
	const struct word *words; /* NULL: a number */
	u16 (*get)(struct rxe_dev *rxe);
	void (*set)(struct rxe_dev *rxe, u16 value);
} knobs[] = {
	{ "state", state_words, get_state, set_state },
	{ "phys_state", phys_words, get_phys, set_phys },
	{ "lid", NULL, get_lid, set_lid },
	{ "sm_lid", NULL, get_sm_lid, set_sm_lid },
	{ "width", width_words, get_width, set_width },
	{ "speed", speed_words, get_speed, set_speed },
	{ "corrupt", NULL, get_corrupt, set_corrupt },
};

static const struct knob *knob_of(struct file *file)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		if (!strcmp(knobs[i].name, file->f_path.dentry->d_name.name))
			return &knobs[i];
	return NULL;
}

static ssize_t knob_read(struct file *file, char __user *to, size_t len, loff_t *at)
{
	const struct knob *knob = knob_of(file);
	u16 value = knob->get(file->private_data);
	const struct word *word = knob->words;
	char text[40];

	while (word && word->name && word->value != value)
		word++;
	if (word && word->name)
		scnprintf(text, sizeof(text), "%s\n", word->name);
	else
		scnprintf(text, sizeof(text), "%u\n", value);
	return simple_read_from_buffer(to, len, at, text, strlen(text));
}

static ssize_t knob_write(struct file *file, const char __user *from, size_t len, loff_t *at)
{
	const struct knob *knob = knob_of(file);
	const struct word *word = knob->words;
	char text[40] = "";
	u16 value;

	if (len >= sizeof(text) || copy_from_user(text, from, len))
		return -EINVAL;
	strim(text);
	if (word) {
		while (word->name && strcmp(word->name, text))
			word++;
		if (!word->name)
			return -EINVAL;
		value = word->value;
	} else if (kstrtou16(text, 0, &value)) {
		return -EINVAL;
	}
	knob->set(file->private_data, value);
	return len;
}

static const struct file_operations knob_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = knob_read,
	.write = knob_write,
	.llseek = default_llseek,
};

void softib_knobs_add(struct rxe_dev *rxe, const char *name)
{
	unsigned int i;

	rxe->softib.dir = debugfs_create_dir(name, top);
	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		debugfs_create_file(knobs[i].name, 0600, rxe->softib.dir, rxe, &knob_fops);
}

void softib_knobs_remove(struct rxe_dev *rxe)
{
	debugfs_remove_recursive(rxe->softib.dir);
	rxe->softib.dir = NULL;
}

/* ipoib takes connected mode where the first byte of the netdev's address has the RC flag
 * (RFC 4755 section 3); an Enhanced IPoIB netdev has it clear. */
static int netdev_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	struct net_device *dev = netdev_notifier_info_to_dev(arg);
	u8 flags = 0;

	if (event != NETDEV_REGISTER || dev->type != ARPHRD_INFINIBAND || connected)
		return NOTIFY_DONE;
	dev_addr_mod(dev, 0, &flags, sizeof(flags));
	return NOTIFY_OK;
}

static struct notifier_block netdev_notifier = { .notifier_call = netdev_event };

void softib_knobs_init(void)
{
	top = debugfs_create_dir("softib", NULL);
	register_netdevice_notifier(&netdev_notifier);
}

void softib_knobs_exit(void)
{
	unregister_netdevice_notifier(&netdev_notifier);
	debugfs_remove_recursive(top);
}
