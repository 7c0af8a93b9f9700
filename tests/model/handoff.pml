/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handoff.pml: who runs the engine (src/nic/handoff.h, progress.c, posted.c), as
 * a model for spin. Names are those of the code; each statement is one access
 * to shared memory (all of them are sequentially consistent there, or protected
 * by the lock).
 *
 * Modelled: POSTERS threads, of which each posts POSTS requests to a queue of
 * its own and is gone (it spins on its memory and never calls again); a thread
 * that takes the lock for something else (nic_lock); one that polls once, with
 * or without a packet being there; the background thread, which sleeps until it
 * is kicked and knows no timer. There is one step besides the background
 * thread's own, so that threads find none.
 *
 * Claims:
 *  - the lock is never held by two;
 *  - when nothing moves any more, no request is left, nobody holds anything, and
 *    the background thread does not sleep beyond the deadline.
 *
 * Each BREAK_* takes away one thing that the hand-off rests on; spin must find
 * an error in each of these (models.sh).
 */
#ifndef POSTERS
#define POSTERS 2
#endif
#ifndef POSTS
#define POSTS 1
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

#define NEVER 1
#define SOON  0

bool locked, pending;
byte holders;			/* of the lock; ghost */
byte queued[POSTERS];		/* requests published and not taken */
bool flagged[POSTERS];		/* nic_qp.posted */
byte stacked;			/* bit per poster: nic.posted */
byte steps = 1;
bool kicked, asleep;
byte deadline = NEVER, bg_until = NEVER;

inline lock_taken() { holders++; assert(holders == 1) }

inline take_lock() { atomic { !locked; locked = true; lock_taken() } }

inline drop_lock() { atomic { holders--; locked = false } }

/* due_set(): lock held; one of the requests needs a timer */
inline set_deadline()
{
	deadline = SOON;
	if
	:: bg_until > SOON -> bg_until = SOON; kicked = true
	:: else
	fi
}

/* posted_take(): lock held. Each queue looked at is emptied, and @found set. */
inline posted_take(i, took, found)
{
	atomic { took = stacked; stacked = 0; i = 0 }
	do
	:: i < POSTERS && (took & (1 << i)) ->
#ifdef BREAK_FLAG_AFTER_LOOK
		if
		:: queued[i] > 0 -> queued[i] = 0; found = true
		:: else
		fi;
		flagged[i] = false;
#else
		flagged[i] = false;
		if
		:: queued[i] > 0 -> queued[i] = 0; found = true
		:: else
		fi;
#endif
		i++
	:: i < POSTERS && !(took & (1 << i)) -> i++
	:: i == POSTERS -> break
	od;
	atomic { took = 0; i = 0 }
}

/* work_in(): the loop of progress_work(), with a step */
inline work_in(i, took, found, round, more)
{
	do
	:: atomic { !pending -> break }
	:: atomic { pending -> skip };
		if
		:: atomic { !locked -> locked = true; lock_taken() }
		:: atomic { locked -> break }	/* handoff_try() failed */
		fi;
#ifndef BREAK_TAKE_AFTER_LOOK
		pending = false;		/* handoff_take() */
#endif
		round = 0;
		do
		:: round == ROUNDS -> more = true; break
		:: else ->
			posted_take(i, took, found);
			if
			:: found ->
#ifdef DEADLINE
				if
				:: set_deadline()
				:: skip
				fi;
#endif
				drop_lock();	/* the move */
				atomic {
					!locked;
					locked = true;
					lock_taken();
					found = false;
					round++
				}
			:: else -> break
			fi
		od;
		round = 0;
#ifdef BREAK_TAKE_AFTER_LOOK
		pending = false;
#endif
		if
		:: more -> pending = true
		:: else
		fi;
		drop_lock();			/* handoff_unlock() */
#ifdef BREAK_NO_LOOK_AFTER_UNLOCK
		break;
#endif
		if
		:: more -> break
		:: else
		fi
	od;
}

inline progress_work(i, took, found, round, more)
{
	pending = true;				/* handoff_leave() */
	if
	:: atomic { steps > 0 -> steps-- };
		work_in(i, took, found, round, more);
		steps++;
		if
		:: more -> kicked = true
		:: else
		fi;
		more = false
	:: steps == 0 ->
#ifndef BREAK_NO_KICK_WITHOUT_STEP
		kicked = true;
#endif
		skip
	fi
}

#define LOCALS byte i, took, round; bool found, more

proctype poster(byte me)
{
	LOCALS;
	byte n;

	do
	:: n < POSTS ->
		n++;
		queued[me]++;			/* wq_publish() */
		if				/* posted_push() */
		:: atomic { flagged[me] -> skip }
		:: atomic { !flagged[me] -> flagged[me] = true };
			stacked = stacked | (1 << me)
		fi;
		progress_work(i, took, found, round, more)
	:: else -> break
	od
}

/* nic_lock(), nic_unlock() */
proctype other()
{
	LOCALS;

	take_lock();
	pending = true;
	drop_lock();
	progress_work(i, took, found, round, more)
}

/* attend_poll(), once */
proctype poller()
{
	LOCALS;

	if
	:: atomic { steps > 0 -> steps-- };	/* a packet: progress_receive() */
		take_lock();
		drop_lock();			/* the move */
		take_lock();
		pending = true;
		drop_lock();
		steps++;
		progress_work(i, took, found, round, more)
	:: pending ->
		progress_work(i, took, found, round, more)
	:: skip
	fi
}

/* background() and turn(); somebody polled lately, or not */
proctype background_thread()
{
	LOCALS;
	byte until;
	bool polled;

	do
	:: if
	   :: polled = true
	   :: polled = false
	   fi;
	   if
	   :: polled && !pending -> skip
	   :: else ->
		pending = true;
		work_in(i, took, found, round, more);
		if
		:: more -> kicked = true
		:: else
		fi;
		more = false
	   fi;
	   until = deadline;
	   if
	   :: !polled && pending -> until = SOON; goto again
	   :: else
	   fi;
	   bg_until = until;
#ifndef BREAK_NO_LOOK_AT_DEADLINE
	   if
	   :: deadline < until -> goto again
	   :: else
	   fi;
#endif
	   /* os_wait(): a kick, or the deadline, which comes once */
	   asleep = true;
end_wait:  if
	   :: atomic { kicked -> kicked = false }
	   :: atomic { until == SOON && deadline == SOON -> deadline = NEVER }
	   fi;
	   asleep = false;
again:	   skip
	od
}

init
{
	byte k;

	atomic {
		k = 0;
		do
		:: k < POSTERS -> run poster(k); k++
		:: else -> break
		od;
#ifdef OTHER
		run other();
#endif
#ifdef POLLER
		run poller();
#endif
		run background_thread()
	}
	timeout;
	assert(asleep && !locked && steps == 1);
	assert(deadline == NEVER || bg_until == SOON);
	k = 0;
	do
	:: k < POSTERS -> assert(queued[k] == 0); k++
	:: else -> break
	od
}
