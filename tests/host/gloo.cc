// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* gloo.cc: sums over ranks by Gloo, whose ibverbs transport ends the program where it
 * finds a request that is not complete as it destroys the request's buffer. Each sum
 * is destroyed as soon as its ranks have met twice: what a rank says in the second
 * meeting it says after it received all that was said before the first one, so by then
 * each request of the sum has completed, in this order, however slow the host is.
 *
 *   gloo RANKS DIRECTORY (empty, where they find each other)
 *
 * One meeting is not enough, and run() itself is none: its last message to a peer is
 * not what the peer's last message answers. (Later Gloos only warn of such a buffer.)
 */
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using Context = std::shared_ptr<gloo::rendezvous::Context>;

static gloo::BarrierAllToAll *meeting;

/* Return: how many of @count sums are wrong. */
template <class Algorithm> static long sum_of(const Context &c, size_t count)
{
	const int ranks = c->size * (c->size + 1) / 2;
	std::vector<float> v(count);
	long bad = 0;

	for (size_t i = 0; i < count; i++)
		v[i] = float(i % 1000) * float(c->rank + 1);
	{
		Algorithm all(c, std::vector<float *>{v.data()}, int(count));

		all.run();
		meeting->run();
		meeting->run();
	}
	for (size_t i = 0; i < count; i++)
		bad += v[i] != float(i % 1000) * float(ranks);
	return bad;
}

static bool rank_run(const char *dir, int rank, int ranks)
{
	auto c = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
	gloo::rendezvous::FileStore store(dir);
	auto device = gloo::transport::ibverbs::CreateDevice({"nopin0", 1, 0});
	long bad = 0;

	c->connectFullMesh(store, device);
	meeting = new gloo::BarrierAllToAll(c);
	for (size_t n = 1; n <= 4 << 20; n *= 4) { /* 4 bytes to 16 MiB */
		bad += sum_of<gloo::AllreduceRing<float>>(c, n);
		bad += sum_of<gloo::AllreduceRingChunked<float>>(c, n);
		bad += sum_of<gloo::AllreduceHalvingDoubling<float>>(c, n);
	}
	if (bad)
		fprintf(stderr, "rank %d of %d: %ld wrong\n", rank, ranks, bad);
	return bad == 0;
}

int main(int argc, char **argv)
{
	const int ranks = argc > 2 ? atoi(argv[1]) : 0;
	int status;
	bool bad = ranks < 2;

	for (int i = 0; i < ranks; i++)
		if (fork() == 0)
			_exit(!rank_run(argv[2], i, ranks)); /* the last meeting is not met */
	while (wait(&status) > 0)
		bad |= status != 0;
	return bad;
}
