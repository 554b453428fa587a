#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""transform.py DIR: turns the pristine rxe sources in DIR into those of softib.

Three files of rxe go (what is on the wire, addresses, checksums: softib_wire.c has ours);
the rest keeps rxe's queue pairs, memory regions and transport, and calls softib where an
InfiniBand port differs from a RoCE one. Each change asserts how often its text stands
in the source, so a kernel whose rxe has moved stops the build instead of bending it."""

import os
import re
import sys

TOP = sys.argv[1]


def fail(name, text):
    sys.exit(f"softib: drivers/infiniband/sw/rxe/{name} of linux-source-6.1 has moved; adapt "
             f"tests/vm/softib/transform.py, which looks there for:\n{text}")


def read(name):
    try:
        with open(os.path.join(TOP, name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return fail(name, "(the file itself)")


def write(name, text):
    with open(os.path.join(TOP, name), "w", encoding="utf-8") as file:
        file.write(text)


def change(name, *rules):
    """Each rule: (old, new) or (old, new, how often old must be there)."""
    text = read(name)
    for old, new, *count in rules:
        if text.count(old) != (count or [1])[0]:
            fail(name, old)
        text = text.replace(old, new)
    write(name, text)


def change_span(name, start, end, new):
    """Replaces from @start up to, not including, @end."""
    text = read(name)
    if text.count(start) != 1 or end not in text.split(start)[1]:
        fail(name, start)
    at = text.index(start)
    write(name, text[:at] + new + text[text.index(end, at + len(start)):])


def guids(name, count):
    """rxe makes GUIDs of its netdev's address; ours has none."""
    text, found = re.subn(r"addrconf_addr_eui48\(\(unsigned char \*\)&([\w>.-]+),\s*"
                          r"rxe->ndev->dev_addr\);", r"\1 = rxe->softib.guid;", read(name))
    if found != count:
        fail(name, "addrconf_addr_eui48(...)")
    write(name, text)


def main():
    # the device: its place on the fabric, and its life
    change("rxe_verbs.h", ("struct rxe_dev {\n", '#include "softib.h"\n\nstruct rxe_dev {\n'),
           ("	struct crypto_shash	*tfm;\n", "	struct crypto_shash	*tfm;\n	struct softib		softib;\n"))
    change("rxe.c", ("	if (rxe->tfm)\n", "	softib_leave(rxe);\n	if (rxe->tfm)\n"),
           ('	.type = "rxe",', '	.type = "softib",'), ('RDMA_LINK("rxe")', 'RDMA_LINK("softib")'),
           # the stock rdma_rxe may be loaded beside: leave its devices alone
           ("exists = rxe_get_dev_from_net(ndev);", "exists = NULL;"),
           ("ib_unregister_driver(RDMA_DRIVER_RXE);", "softib_unregister_all();"))
    guids("rxe.c", 2)
    guids("rxe_verbs.c", 1)

    # addresses without a netdev behind them
    change_span("rxe_loc.h", "void rxe_init_av(", "int rxe_av_chk_attr", "")
    change("rxe_qp.c", ("rxe_init_av(&attr->", "softib_init_av(to_rdev(qp->ibqp.device), &attr->", 2),
           # rxe never clears the index, so a device that moves to another
           # network namespace could not get its second GSI queue pair
           ("if (init->qp_type == IB_QPT_GSI && port->qp_gsi_index) {", "if (0) {"))
    change("rxe_verbs.c", ("rxe_init_av(init_attr->", "softib_init_av(rxe, init_attr->"),
           ("rxe_init_av(attr,", "softib_init_av(rxe, attr,"))
    change("rxe_mcast.c", ("return dev_mc_add(rxe->ndev, ll_addr);", "return 0;"),
           ("return dev_mc_del(rxe->ndev, ll_addr);", "return 0;"))

    # the port
    change("rxe_verbs.c", ("return IB_LINK_LAYER_ETHERNET;", "return IB_LINK_LAYER_INFINIBAND;"),
           ("RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP", "softib_core_caps()"),
           ("err = ib_device_set_netdev(&rxe->ib_dev, rxe->ndev, 1);", "err = 0;"),
           ('node_desc, "rxe",', 'node_desc, "node01 softib",'),
           ("	&dev_attr_parent.attr,\n", "	&dev_attr_parent.attr,\n	SOFTIB_ATTRS,\n"),
           ("	.query_pkey = rxe_query_pkey,\n", "	SOFTIB_OPS,\n"),
           ("	.query_port = rxe_query_port,\n", ""))
    change_span("rxe_verbs.c", "static int rxe_query_port(", "static int rxe_query_pkey(", "")
    change_span("rxe_verbs.c", "static int rxe_query_pkey(", "static int rxe_modify_device(", "")

    # queue pair 0: one more for datagrams, as queue pair 1 is
    for name in ("rxe_recv.c", "rxe_req.c", "rxe_resp.c"):
        change(name, ("	case IB_QPT_GSI:\n", "	case IB_QPT_SMI:\n	case IB_QPT_GSI:\n"))
    for name in ("rxe_resp.c", "rxe_verbs.c"):
        text = read(name)
        text, found = re.subn(r"if \(qp_type\(qp\) == IB_QPT_UD \|\|\n(\s*)qp_type\(qp\) == IB_QPT_GSI\)",
                              r"if (qp_type(qp) == IB_QPT_UD || qp_type(qp) == IB_QPT_SMI ||\n"
                              r"\1qp_type(qp) == IB_QPT_GSI)", text)
        if found != 1:
            fail(name, "if (qp_type(qp) == IB_QPT_UD || qp_type(qp) == IB_QPT_GSI)")
        write(name, text)
    change("rxe_opcode.c", ("			[IB_QPT_GSI]	= WR_INLINE_MASK | WR_SEND_MASK,\n",
                            "			[IB_QPT_SMI]	= WR_INLINE_MASK | WR_SEND_MASK,\n"
                            "			[IB_QPT_GSI]	= WR_INLINE_MASK | WR_SEND_MASK,\n", 2))
    change("rxe_qp.c", ("	case IB_QPT_GSI:\n	case IB_QPT_RC:\n",
                        "	case IB_QPT_SMI:\n	case IB_QPT_GSI:\n	case IB_QPT_RC:\n"),
           ("	case IB_QPT_GSI:\n		qp->ibqp.qp_num		= 1;\n",
            "	case IB_QPT_SMI:\n		qp->ibqp.qp_num		= 0;\n"
            "		rxe->softib.smi_index	= qpn;\n		qp->attr.port_num	= init->port_num;\n"
            "		break;\n\n"
            "	case IB_QPT_GSI:\n		qp->ibqp.qp_num		= 1;\n"))
    change("rxe_recv.c", ("	if (unlikely(qpn == 0))\n		goto err1;\n\n", ""),
           ("index = (qpn == 1) ? port->qp_gsi_index : qpn;",
            "index = qpn == 0 ? rxe->softib.smi_index : qpn == 1 ? port->qp_gsi_index : qpn;"))

    # a received message: a GRH only where the sender used one, and the source LID
    change("rxe_resp.c",
           ("			uwc->wc_flags = IB_WC_GRH;\n", "			uwc->wc_flags = softib_wc_flags(PKT_TO_SKB(pkt));\n"
            "			uwc->slid = softib_slid(PKT_TO_SKB(pkt));\n"))
    change_span("rxe_resp.c", "			wc->wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE;",
                "			if (pkt->mask & RXE_IMMDT_MASK)",
                "			wc->wc_flags = softib_wc_flags(skb);\n			wc->slid = softib_slid(skb);\n\n")
    for name in ("rxe_net.c", "rxe_av.c", "rxe_icrc.c", "Makefile"):
        read(name)
        os.remove(os.path.join(TOP, name))


main()
