/*
 * session_undo: what a session does so that its steps can be undone (shared by session*.c and
 * running*.c only). A keeper holds the project's store, opened when it is first wanted, makes
 * checkpoints (calls of the session's own, of which no event tells) before and after commands,
 * and gives file tools the log that they write to.
 *
 * A checkpoint after a command tells its changes apart from others'; it is waited for when
 * looking took less than KEEPER_WAIT_US the last time, or where nothing comes after, else made
 * while the model thinks.
 */
#pragma once
#include "base/err.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keeper;
struct running;
struct session;
struct session_writes;
struct undo_store;

enum { KEEPER_WAIT_US = 20000 };

/*
 * FOLDER: of all projects' stores, which may take SPACE bytes together. NULL, or one that cannot be used: what file tools replace is
 * kept in memory for the session's patch, and commands are not looked at. A keeper that is NULL
 * (the session closes) is fine everywhere.
 */
struct keeper *keeper_new(struct session *session, const char *folder, uint64_t space);
/* Finish what is owed to the last command, within KEEPER_CLOSE_MS; then let go. */
void keeper_close(struct keeper *keeper);

/* The store, opened and made when it is not yet. */
struct undo_store *keeper_store(struct keeper *keeper);
/* Is it one from which steps can be undone? */
bool keeper_keeps(const struct keeper *keeper);
/* May something have been changed since a patch was made last? */
bool keeper_has_news(const struct keeper *keeper);

/* What is known of the session's writing, but for whether a job runs (session_writes). */
void keeper_writes(const struct keeper *keeper, struct session_writes *writes);

/* Start what the calls that wait want first. Called before each look at the queue. */
void keeper_begin(struct keeper *keeper);
/* Has the queued call RUNNING to wait for it? */
bool keeper_holds(const struct keeper *keeper, const struct running *running);
/* RUNNING goes to a worker: give it its log. False with the sentence in ERR. */
bool keeper_give(struct keeper *keeper, struct running *running, struct err *err);
/* RUNNING is with its worker: what the next one would wait for is made beside it. */
void keeper_sent(struct keeper *keeper, const struct running *running);
/* Is a checkpoint made between the result of RUNNING and its end? */
bool keeper_will_look(const struct keeper *keeper, const struct running *running);
/* The result of RUNNING stands. True: it is to be finished by us, a little later. */
bool keeper_waits(struct keeper *keeper, struct running *running);
/* RUNNING is finished. */
void keeper_finish(struct keeper *keeper, struct running *running);
/* RUNNING, which waits for us, was cancelled. */
void keeper_cancel(struct keeper *keeper);

/*
 * For the audit of a call: what is known of repositories deep in the workspace (audit.h);
 * NULL: nothing. And, with the cell there: tell what its guard leaves out.
 */
const struct value *keeper_nested(const struct keeper *keeper);
void keeper_nested_begin(struct keeper *keeper);
/* Are there some that no list of it holds, or none that checkpoints still find? */
bool keeper_misses_nested(const struct keeper *keeper);

const char *keeper_run(const struct keeper *keeper);
