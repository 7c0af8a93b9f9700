/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* null.c: opens the device. A NIC that refuses its environment says what it
 * would have accepted.
 */
#include <infiniband/verbs.h>
#include <stdlib.h>

int main(void)
{
	struct ibv_device **list;

	setenv("NOPIN_ADDR", "lo", 0);
	list = ibv_get_device_list(NULL);
	return list && list[0] && ibv_open_device(list[0]) ? 0 : 1;
}
