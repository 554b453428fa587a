# SPDX-License-Identifier: MIT
"""Every section and key of a node file, with the type of its value.

README.md explains them; test_simnode.py checks that it names them all.
Types: str (as it stands), list (comma or newline separated), int, bool, text
(backslash escapes are decoded), or a tuple of the words that are accepted.
"""

NAMED = {
    "ca": {
        "pci": "str", "pci_path": "str", "node_guid": "str",
        "sys_image_guid": "str", "node_type": "str", "node_desc": "str",
        "fw_ver": "str", "hw_rev": "str", "hca_type": "str",
        "board_id": "str", "vendor": "str", "device": "str", "class": "str",
        "subsystem_vendor": "str", "subsystem_device": "str",
        "numa_node": "int", "local_cpulist": "str", "driver": "str",
        "current_link_speed": "str", "current_link_width": "str",
        "max_link_speed": "str", "max_link_width": "str",
        "slot_max_link_speed": "str", "slot_max_link_width": "str",
        "vpd": "text", "umad": "bool", "uverbs": "bool",
        "unreadable": "list", "missing": "list",
    },
    "port": {
        "state": "str", "phys_state": "str", "rate": "str",
        "link_layer": "str", "lid": "str", "sm_lid": "str",
        "lid_mask_count": "str", "sm_sl": "str", "cap_mask": "str",
        "gid": "str", "gids": "list", "gid_types": "list",
        "gid_ndevs": "list", "pkeys": "list",
        "unreadable": "list", "missing": "list",
    },
    "netdev": {
        "type": ("ipoib", "ethernet"), "ca": "str", "port": "int",
        "up": "bool", "carrier": "bool", "mtu": "int", "mac": "str",
        "addresses": "list", "routes": "list", "altname": "list",
        "mode": "str", "pkey": "str", "umcast": "str", "parent": "str",
        "hwaddress": "str", "broadcast": "str", "dev_id": "str",
        "dev_port": "str", "speed": "str",
        "unreadable": "list", "missing": "list",
        "count": "int", "addresses_per": "int", "base": "str",
    },
    "route": {
        "dst": "str", "via": "str", "dev": "str", "metric": "int",
        "src": "str",
    },
    "module": {
        "loaded": "bool", "builtin": "bool", "initstate": "str",
        "refcnt": "str", "version": "str", "srcversion": "str",
        "coresize": "str", "taint": "str", "holders": "list",
        "parameters": "list", "license": ("open", "proprietary"),
    },
    "user": {
        "uid": "int", "gid": "int", "group": "str", "groups": "list",
        "home": "str", "home_mode": "str", "shell": "str", "gecos": "str",
        "create_home": "bool",
    },
    "gpu": {
        "pci_path": "str", "vendor": "str", "device": "str", "class": "str",
        "subsystem_vendor": "str", "subsystem_device": "str",
        "numa_node": "int", "local_cpulist": "str", "driver": "str",
        "model": "str", "uuid": "str", "minor": "int",
        "current_link_speed": "str", "current_link_width": "str",
        "max_link_speed": "str", "max_link_width": "str",
        "slot_max_link_speed": "str", "slot_max_link_width": "str",
    },
    "service": {
        "running": "bool",
    },
    "file": {
        "type": ("regular", "symlink", "hardlink", "fifo", "dir", "char",
                 "absent"),
        "text": "text", "from": "str", "append": "bool",
        "final_newline": "bool", "mode": "str",
        "owner": "str", "target": "str", "major": "int", "minor": "int",
    },
}

PLAIN = {
    "node": {
        "include": "list", "without": "list", "hostname": "str",
        "machine_id": "str", "umad": "bool", "uverbs": "bool",
        "private": "list", "infiniband_class": "bool",
    },
    # Any key: "char.NAME = MAJOR" and "node.NAME = MODE".
    "devices": None,
    # Any key: "NAME = ADDRESS", lines of /etc/hosts.
    "hosts": None,
}

# [port X] also takes "counters/NAME" and "hw_counters/NAME"; [ca X], [port X]
# and [netdev X] take "file/RELATIVE/PATH" for what has no key of its own.
PREFIXED = {
    "ca": ("file/",),
    "port": ("counters/", "hw_counters/", "file/"),
    "netdev": ("file/",),
    "gpu": ("file/",),
    "module": ("file/",),
}


def kinds():
    return sorted(NAMED) + sorted(PLAIN)


def key_type(kind, key):
    """The type of a key, or None when the section has no such key."""
    if kind in PLAIN:
        if PLAIN[kind] is None:
            if kind == "devices":
                head = key.partition(".")[0]
                return "str" if head in ("char", "node") else None
            return "str"
        return PLAIN[kind].get(key)
    if key in NAMED[kind]:
        return NAMED[kind][key]
    for prefix in PREFIXED.get(kind, ()):
        if key.startswith(prefix) and len(key) > len(prefix):
            return "text"
    return None


def known_keys(kind):
    if kind in PLAIN:
        if PLAIN[kind] is None:
            return ["char.NAME", "node.NAME"] if kind == "devices" else []
        return sorted(PLAIN[kind])
    return sorted(NAMED[kind]) + [p + "NAME" for p in PREFIXED.get(kind, ())]
