/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* refused.c: which limit of the program is in the way. */
#include "nic/refused.h"
#include "base/log.h"
#include "os/run.h"

#include <errno.h>

int nic_refused(int err)
{
	char limit[128];

	if (err == -EMFILE) {
		log_error("no RDMA: all %llu descriptors of %s are in use",
			  (unsigned long long)os_descriptor_limit(),
			  "RLIMIT_NOFILE");
	} else if (err == -ENOMEM || err == -EAGAIN) {
		os_memory_limit(limit, sizeof(limit));
		log_error("no RDMA: no memory for the NIC: %s", limit);
		err = -ENOMEM;
	}
	return err;
}
