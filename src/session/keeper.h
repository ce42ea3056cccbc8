/*
 * keeper: the work of a session that makes its steps undoable (for session/ only). A
 * keeper holds the project's store and opens it when it is first needed. It makes
 * checkpoints before and after commands; these are calls of the session's own, of
 * which no event tells. It also gives file tools the logs that they write to.
 *
 * A checkpoint after a command tells the command's changes apart from others'. The
 * command's result waits for that checkpoint when the last look took no longer than
 * KEEPER_WAIT_US, or in a session of one call. Otherwise the checkpoint is made while the
 * model thinks.
 *
 * What others have changed between two commands is kept by a checkpoint before the second
 * one. The keeper makes it when it can poll that the watching worker was told of something.
 *
 * A checkpoint is the internal tool in tools/checkpoint.c: it looks, compares with the
 * list made last, and copies. One worker makes all of them and keeps that list; the
 * keeper counts the checkpoints that it has taken, by which the worker knows whether the
 * last one stands. A long list is written to the disk while the session rests.
 * files/place.c writes to the log of a call before it replaces anything. The hand-over
 * (generate_patch) is the plan of all steps of the session.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct keeper;
struct running;
struct session;
struct session_writes;
struct tool_result;
struct undo_store;
struct value;

/*
 * FOLDER holds the stores of all projects, which may take SPACE bytes together. When
 * FOLDER is NULL or cannot be used, the files that file tools replace are kept in memory
 * for the session's patch, and commands are not looked at. All functions accept a keeper
 * that is NULL (the session closes).
 */
struct keeper *keeper_new(struct session *session, const char *folder, uint64_t space);
/* Make the looks that are owed, within KEEPER_CLOSE_MS; then free KEEPER. */
void keeper_close(struct keeper *keeper);

/* The store, which is opened and made when that was not done yet. */
struct undo_store *keeper_store(struct keeper *keeper);
/* Is the store one from which steps can be undone? */
bool keeper_keeps(const struct keeper *keeper);

/*
 * Start the checkpoint or the patch that waiting calls need first. Called before each
 * look at the queue.
 */
void keeper_begin(struct keeper *keeper);
/* Must the queued call RUNNING wait for a checkpoint or a patch? */
bool keeper_holds(const struct keeper *keeper, const struct running *running);
/* RUNNING goes to a worker: give it its log. False with the sentence in ERR. */
bool keeper_give(struct keeper *keeper, struct running *running, struct err *err);
/*
 * RUNNING is with its worker: make meanwhile the file for which the next call would wait.
 */
void keeper_sent(struct keeper *keeper, const struct running *running);
/* Is a checkpoint made between the result of RUNNING and its end? */
bool keeper_will_look(const struct keeper *keeper, const struct running *running);
/* The result of RUNNING stands. True: the keeper finishes RUNNING, a little later. */
bool keeper_waits(struct keeper *keeper, struct running *running);
/*
 * RUNNING is finished with RESULT, which is its own; or it goes on as a job, and RESULT is
 * the answer for its caller.
 */
void keeper_finish(struct keeper *keeper, struct running *running,
		   struct tool_result *result);
/* RUNNING was cancelled while it waits for the keeper. */
void keeper_cancel(struct keeper *keeper);

/*
 * keeper_nested: the known repositories deep in the workspace, for the audit of a call
 * (guard.h); NULL: none. keeper_nested_begin: when the cell exists, report the folders
 * that its guard leaves out.
 */
const struct value *keeper_nested(const struct keeper *keeper);
void keeper_nested_begin(struct keeper *keeper);
/*
 * Are there repositories deep in the workspace that the keeper's list does not hold, or
 * that checkpoints no longer find?
 */
bool keeper_misses_nested(const struct keeper *keeper);

/* As session_run, session_adopt, session_checkpoint and session_has_news. */
const char *keeper_run(const struct keeper *keeper);
void keeper_adopt(struct keeper *keeper, const char *run, bool handed);
void keeper_checkpoint(struct keeper *keeper, bool begins_turn);
bool keeper_has_news(const struct keeper *keeper);
/* The paths of session_changed, NULL-ended; the caller frees each of them and the list. */
char **keeper_changed(struct keeper *keeper);
/* Fill WRITES, except whether a job writes (session_writes). */
void keeper_writes(const struct keeper *keeper, struct session_writes *writes);
