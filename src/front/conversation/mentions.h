/*
 * mentions: the files and folders that a person names with an `@` in a prompt. Their names are
 * completed while they are typed; when the prompt is sent, read_file and list_files read what is
 * named, as calls that are judged and recorded, and it goes with the prompt. `@SERVER:uri` is a
 * resource of an MCP server, which read_resource reads.
 *
 * The names come from the tool list_paths, which walks the workspace in the cell while the
 * person types on. They are kept, and asked for again when they are old. A worker writes them
 * into a file in memory, so that the thread of the keys can take them while the other thread waits
 * for a model: mentions_complete may be called by any thread, all else by that of the session.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>

struct mentions;
struct talk;

enum {
	MENTIONS_FILE_MAX = 16 << 10, /* bytes of one file that go with a prompt … */
	MENTIONS_ALL_MAX = 64 << 10,  /* … and of all */
	MENTIONS_MAX = 20,            /* names in one prompt */
};

/* TALK is borrowed. */
struct mentions *mentions_new(struct talk *talk);
void mentions_free(struct mentions *mentions); /* NULL is fine */

/*
 * Readable when new names have come, or as talk_interrupt_fd. mentions_settle: take the names.
 * False: there are none, so the other one is readable.
 */
int mentions_wake_fd(const struct mentions *mentions);
bool mentions_settle(struct mentions *mentions);
/* An epoll that tells once of names that have come, for another thread (console_offers); or -1. */
int mentions_news_fd(const struct mentions *mentions);

/* Have the names listed, unless they are young or on their way. Nobody waits for it. */
void mentions_refresh(struct mentions *mentions);
/* The session of the talk is about to be closed. */
void mentions_stop(struct mentions *mentions);

/*
 * For a completer: the mention that ends BEFORE. Sets *FROM to its beginning and appends the
 * names that fit to WORDS. False: BEFORE ends in none.
 */
bool mentions_complete(struct mentions *mentions, struct str before, size_t *from,
		       struct buf *words);

/*
 * Read what PROMPT names, and have it go with the next text of the person (agent_attach). MISSING (may
 * be NULL) gets the names of which there is nothing, "one, two".
 */
void mentions_attach(struct mentions *mentions, struct str prompt, struct buf *missing);

/* mentions_attach for a conversation whose prompts are not typed: it waits for the names. */
void mentions_attach_once(struct talk *talk, struct str prompt);

/*
 * The same for FILES, a list of absolute paths that an editor gives beside a prompt of TALK;
 * one that is not there is left out. UNSAVED (may be NULL) appends the text of a file that
 * counts instead of the one on disk, or nothing.
 */
void mentions_attach_files(struct talk *talk, const struct value *files,
			   void (*unsaved)(void *context, const char *path, struct buf *text),
			   void *context);
