/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* token.pml: the receive token (src/nic/token.c), as a model for spin. Names
 * are those of the code; each statement is one access to shared memory.
 *
 * Modelled: THREADS threads that receive until the sockets are empty. A burst
 * takes two plans. Whoever holds the token may be overtaken at any time while
 * it moves; that it is overtaken before, after 200 ms, is left out.
 *
 * Claim: the engine learns of the packets in the order they left the sockets.
 *
 * Each BREAK_* takes away one thing that this rests on; spin must find an error
 * in each of these (models.sh).
 */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef BURSTS
#define BURSTS 3
#endif
#define PARTS 2
#define MOVES 1
#define MINE(me) ((me + 1) << 1)	/* the time stands for who took it */

bool locked;
byte token;
bool two_words_moving;		/* BREAK_TWO_WORDS */
byte sockets, planned;		/* bursts received, parts planned; ghost: order */
byte rest;			/* 1 + the thread of nic.rx.rest, or 0 */
byte at[THREADS], end[THREADS];	/* parts: step.at, step.rx.len */

inline take_lock() { atomic { !locked; locked = true } }

inline drop_lock() { locked = false }

inline token_take(mine, held, ok)
{
	held = token;
#ifdef BREAK_TWO_WORDS
	ok = !held || two_words_moving;
#else
	ok = !held || (held & MOVES);
#endif
	atomic {
		if
		:: ok && token == held -> token = mine
		:: else -> ok = false
		fi
	}
#ifdef BREAK_TWO_WORDS
	if
	:: ok -> two_words_moving = false
	:: else
	fi
#endif
}

inline token_moves(mine, moves)
{
#ifdef BREAK_TWO_WORDS
	if
	:: token == mine -> two_words_moving = moves
	:: else
	fi
#else
	atomic {
		if
		:: moves && token == mine -> token = mine | MOVES
		:: !moves && token == (mine | MOVES) -> token = mine
		:: else
		fi
	}
#endif
}

inline token_give(mine)
{
	atomic {
		if
		:: token == mine -> token = 0
		:: else
		fi
	}
}

/* inlet_inherit() */
inline inherit(me, from)
{
	take_lock();
	from = rest;
	if
	:: from ->
		at[me] = at[from - 1];
		end[me] = end[from - 1];
		at[from - 1] = end[from - 1];
		rest = 0
	:: else
	fi;
	drop_lock()
}

inline receive(me)
{
	atomic {
		if
		:: sockets < BURSTS ->
			at[me] = sockets * PARTS;
			sockets++;
			end[me] = sockets * PARTS
		:: else
		fi
	}
}

/* engine_rx_plan(): lock held */
inline rx_plan(me, more)
{
	more = at[me] < end[me];
	if
	:: more ->
		assert(at[me] == planned);
		planned++;
		at[me]++
	:: else
	fi;
	if
	:: at[me] < end[me] -> rest = me + 1
	:: at[me] == end[me] && rest == me + 1 -> rest = 0
	:: else
	fi
}

proctype receiver(byte me)
{
	byte mine = MINE(me), held, from;
	bool ok, more;

	do
	:: sockets == BURSTS && !rest -> break
	:: else ->
		token_take(mine, held, ok);
		if
		:: ok ->
			from = 0;
#ifndef BREAK_NO_REST
			if
			:: rest -> inherit(me, from)
			:: else
			fi;
#endif
			if
			:: !from -> receive(me)
			:: else
			fi;
#ifdef BREAK_MOVES_EARLY
			token_moves(mine, true);
#endif
			take_lock();
			do
			:: rx_plan(me, more);
				if
				:: !more -> break
				:: else
				fi;
				token_moves(mine, true);
				drop_lock();
				/* moving */
				take_lock();
				token_moves(mine, false)
			od;
			drop_lock();
			token_give(mine)
		:: else
		fi
	od
}

init {
	byte i;

	atomic {
		for (i : 0 .. THREADS - 1) {
			run receiver(i)
		}
	}
}
