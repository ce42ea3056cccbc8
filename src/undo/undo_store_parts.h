/* undo_store_parts: what undo_store*.c share and nobody else includes. */
#pragma once
#include "undo/undo_store.h"

#define UNDO_LIST_ENDING   ".list"
#define UNDO_RIGHTS_ENDING ".rights"
#define UNDO_OBJECTS_NAME  "objects"
/* The path of the workspace. Sessions hold it shared, and nobody prunes the store meanwhile. */
#define UNDO_USED_NAME "workspace"

/* Of the hash of some rights: more than anybody can make equal. */
enum { UNDO_RIGHTS_DIGITS = 32 };

struct rights;

/* Files of the store that have no name yet (undo_store_ahead.c): zeros are none. */
struct undo_blanks {
	int fds[UNDO_AHEAD_MAX];
	size_t count;
};
/* One of them, or -1. */
int undo_blanks_take(struct undo_blanks *blanks);
void undo_blanks_fini(struct undo_blanks *blanks);

struct undo_store {
	int folder;                    /* -1: in memory */
	int *memory;                   /* logs there, by number from 1; -1: dropped */
	uint32_t last;                 /* number given last */
	char list_name[UNDO_NAME_MAX]; /* of the list being written; "": none */
	int used;                      /* UNDO_USED_NAME, held; -1: by nobody here */
	bool writes;                   /* a step was begun here: there will be others */
	struct undo_blanks blank_logs, blank_steps;
	char *workspace;
	/* of who writes now; NULL and "" until they are set */
	char *rights_text;
	char rights_hash[UNDO_RIGHTS_DIGITS + 1];
	struct rights *rights;
};

bool undo_log_number(const char *name, uint32_t *number);

/* The numbers of the logs there are, ascending. `items` is freed by the caller. */
struct undo_numbers {
	uint32_t *items;
	size_t count, room;
};
bool undo_numbers_read(const struct undo_store *store, struct undo_numbers *numbers,
		       struct err *err);
/* The index of NUMBER; the count when it is not among them. */
size_t undo_numbers_find(const struct undo_numbers *numbers, uint32_t number);

/* Bytes on disk of the log FD: it may share blocks and have holes. */
uint64_t undo_store_bytes(int fd);

/*
 * Let go of steps that began before OLDEST_MS, or are over the ceilings, and of what nothing else
 * refers to. FORGETS: of the lists too, so that contents go that only they refer to.
 */
void undo_store_tidy_since(struct undo_store *store, int64_t oldest_ms, bool forgets);

/* Call TAKE with each name in the store that has ENDING. */
void undo_store_names(const struct undo_store *store, const char *ending,
		      void (*take)(void *context, const char *name), void *context);

/* What stands beside the log NUMBER (undo_store_rights.c). */
bool undo_store_write_step(struct undo_store *store, uint32_t number,
			   const struct undo_meta *meta, struct err *err);
void undo_store_drop_step(const struct undo_store *store, uint32_t number);
/* False: nothing. STEP is to be ended in either case. */
bool undo_store_read_step(const struct undo_store *store, uint32_t number,
			  struct undo_step *step);

/* False: the log NUMBER is no step, or cannot be read. STEP is to be ended in either case. */
bool undo_step_read(const struct undo_store *store, uint32_t number, struct undo_step *step);
void undo_step_fini(struct undo_step *step);
