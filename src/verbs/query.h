/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* query.h: what the device and its port say of themselves. */
#ifndef NOPIN_VERBS_QUERY_H
#define NOPIN_VERBS_QUERY_H

#include "verbs/verbs.h"

enum { PORT_NUM = 1, DEFAULT_PKEY = 0xffff };

#define DEVICE_NAME "nopin0"
#define UVERBS_NAME "uverbs0"
#define FW_VERSION  "0.1.0"

enum ibv_mtu mtu_to_verbs(uint32_t bytes);
int query_port_ext(struct ibv_context *context, uint8_t port,
		   struct ibv_port_attr *attr, size_t size);
int query_device_ext(struct ibv_context *context,
		     const struct ibv_query_device_ex_input *input,
		     struct ibv_device_attr_ex *attr, size_t size);

#endif
