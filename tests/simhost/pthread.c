/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pthread.c: the calls of pthreads that block, for virtual threads: they are
 * all one real thread, which must not block. These definitions take the place of
 * the C library's in a program that links the simulated host.
 *
 * A wait on a condition ends after a moment, whether it was signalled or not, as
 * POSIX allows; its callers look again.
 */
#include "simhost/impl.h"

#include <pthread.h>

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int err = pthread_mutex_trylock(mutex);

	if (err == 0 || !sim_world)
		return err;
	sim_world->stats.lock_waits++;
	do {
		os_relax();
		err = pthread_mutex_trylock(mutex);
	} while (err != 0);
	return 0;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	(void)cond;
	pthread_mutex_unlock(mutex);
	os_relax();
	return pthread_mutex_lock(mutex);
}
