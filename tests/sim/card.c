/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* card.c: standard peers behind a card that numbers the packets of a GSO send
 * in its own way, so that of each burst only the first has the ICRC that we
 * computed (D3). GSO has to be switched off for such a peer, or everything
 * takes one loss a packet.
 */
#include "base/counters.h"
#include "scenarios.h"

#include <inttypes.h>

enum { OPS = 60 };

static void run(struct world *w)
{
	w->cfg.backing = SIM_CHEAP;
	w->cfg.standard = true;
	w->cfg.no_gso = false;
	w->cfg.link.renumber = true;
	w->cfg.ops = OPS;
	w->cfg.big = SIM_PPM / 2;
	world_build(w);
	world_finish(w);
	world_close(w);
	EXPECT(w, w->total.v[CNT_gso_off] <= w->cfg.nodes * w->cfg.nodes,
	       "GSO was switched off %" PRIu64 " times",
	       w->total.v[CNT_gso_off]);
}

const struct scenario scenario_card = {
	.name = "card",
	.run = run,
	.musts = 2,
	.must = {CNT_gso_off, CNT_replays},
};
