/*
 * ledger: the files of an audit's chain (audit/chain.h), in one folder: audit-000001.jsonl,
 * audit-000002.jsonl, …, of which only the last one grows. Any number of processes may have
 * the ledger open; a lock gives each line one writer, and each writer goes on from the line
 * that is the last one then. So a chain has no two lines with one number.
 *
 * A line is in its file, though not yet on the disk, when ledger_add returns. Each second, or
 * before ledger_add returns (`each`), the disk has it. When nothing can be written, records of
 * effects to come are refused, so that nothing happens without its record. Records of what
 * has happened already wait in memory, and are written as soon as possible.
 *
 * A writer keeps in mind the last line that it has seen. When that line is not where it was, the
 * chain was cut or changed by somebody else: it writes nothing more, so that records of effects to
 * come are refused.
 *
 * For the writers to come the file `head` of the folder keeps the last line of all (struct
 * chain_head), sealed with the same key. It is there before the first line, as the head of none, and
 * a line whose head cannot be written is taken back: a head is one line behind at most, that of a
 * writer that was killed. Only a regular file of one name is written to; anything else in its place is
 * exchanged for a new file. A writer that begins, and does not find that line in its place, says so,
 * and goes on behind a record of it (CHAIN_CUT). A program that may write to the folder can put back
 * an older head with the lines of then; only a head that was told elsewhere shows that. Each second the
 * disk takes the head behind the lines, so that a machine that loses its power loses lines and their
 * head together, or has a head that is some lines behind. A disk that took the head of its own accord,
 * and not yet its lines, is told as a cut.
 *
 * The end of the last file may be a torn line, of a process that was killed or of a full disk.
 * The next writer cuts it off and says so in the line that follows (CHAIN_CUT, too).
 */
#pragma once

#include "audit/chain.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct ledger;

enum {
	/* of one file; the next one carries the chain on */
	LEDGER_FILE_MAX = 256 << 20,
	/* of the records that wait for a disk with room; the rest is lost, and counted */
	LEDGER_WAITING_MAX = 4 << 20,
	/* the time after which a process that holds the lock is taken for stopped */
	LEDGER_LOCK_MS = 2000,
	LEDGER_STUCK_S = 30, /* so long a record that was refused is told by ledger_is_stuck */
	LEDGER_KEY_MIN = 16,
	LEDGER_KEY_MAX = 4096,
	LEDGER_PLACE_MAX = 32, /* of a file's name */
};

struct ledger_options {
	const char *folder; /* made, for its owner only, when it is missing */
	struct str key;     /* copied; empty: lines get no hmac */
	bool each;          /* the disk has each line before ledger_add returns */
	uint64_t file_max;  /* 0: LEDGER_FILE_MAX */
	/*
	 * Called each HEAD_S seconds when there are new lines, and at the end, with SENTENCE,
	 * which names the head of the chain: somebody keeps it where a program that can write to
	 * the folder cannot. Called in another thread. NULL: nobody wants to know.
	 */
	void (*head)(void *context, const char *sentence);
	double head_s;
	/* Called by ledger_open with a SENTENCE about lines that are gone. NULL: nobody hears it. */
	void (*warn)(void *context, const char *sentence);
	bool refuses_cut; /* ledger_open fails where lines are gone */
	void *context;
};

/*
 * Open the ledger. False: the folder is unsafe or cannot be written, its last line is not
 * one that a chain with this key can go on from, or lines are gone and OPTIONS refuses that.
 */
bool ledger_open(const struct ledger_options *options, struct ledger **ledger,
		 struct err *err);
/* Writes what waits, as far as that is possible, and waits for the disk. NULL is fine. */
void ledger_close(struct ledger *ledger);

/* The number of records that were lost so far, because nothing could be written for long. */
uint64_t ledger_lost(struct ledger *ledger);

/*
 * Was the last record of an effect to come refused, within LEDGER_STUCK_S? Nothing is tried until the next
 * record, so that a caller who keeps records away has to send some again after that time.
 */
bool ledger_is_stuck(struct ledger *ledger);

/* Remove the line ends behind KEY, the content of a file with a key. */
void ledger_trim_key(struct buf *key);

/*
 * Write RECORD. BEFORE: its effect has not happened yet, and must not happen when this
 * returns false; the record is forgotten then. Otherwise RECORD waits when it cannot be
 * written, and the result is true.
 */
bool ledger_add(struct ledger *ledger, const struct chain_record *record, bool before,
		struct err *err);
