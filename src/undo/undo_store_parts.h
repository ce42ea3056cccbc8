/* undo_store_parts: shared by undo_store*.c and undo_projects.c only. */
#pragma once
#include "undo/undo_store.h"

#define UNDO_LIST_ENDING   ".list"
#define UNDO_RIGHTS_ENDING ".rights"
#define UNDO_OBJECTS_NAME  "objects"
/*
 * The path of the workspace. Each session holds a shared lock on it, so that nobody
 * prunes the store meanwhile.
 */
#define UNDO_USED_NAME "workspace"

/* Digits of the hash of rights. So many digits make a deliberate collision infeasible. */
enum { UNDO_RIGHTS_DIGITS = 32 };

struct rights;

/* Files of the store that have no name yet (undo_store_ahead.c). Zeroed, it is empty. */
struct undo_blanks {
	int fds[UNDO_AHEAD_MAX];
	size_t count;
};
/* Take one of the files, or -1. */
int undo_blanks_take(struct undo_blanks *blanks);
void undo_blanks_fini(struct undo_blanks *blanks);

struct undo_store {
	int folder;                    /* -1: in memory */
	int *memory;                   /* logs in memory, by number from 1; -1: dropped */
	uint32_t last;                 /* the number that was given last */
	char list_name[UNDO_NAME_MAX]; /* of the list being written; "": none */
	int used;                      /* UNDO_USED_NAME, locked; -1: not locked */
	/* this store has begun a step, so more will follow */
	bool writes;
	struct undo_blanks blank_logs, blank_steps;
	char *workspace;
	/* rights of the present session; NULL and "" until they are set */
	char *rights_text;
	char rights_hash[UNDO_RIGHTS_DIGITS + 1];
	struct rights *rights;
};

bool undo_log_number(const char *name, uint32_t *number);

/* The numbers of the existing logs, ascending. `items` is freed by the caller. */
struct undo_numbers {
	uint32_t *items;
	size_t count, room;
};
bool undo_numbers_read(const struct undo_store *store, struct undo_numbers *numbers,
		       struct err *err);
/* The index of NUMBER; the count when it is not among them. */
size_t undo_numbers_find(const struct undo_numbers *numbers, uint32_t number);

/*
 * The size of the log FD in bytes, 0 when unknown. Shared blocks and holes count in full.
 */
uint64_t undo_store_bytes(int fd);

/*
 * Remove steps that began before OLDEST_MS or are over the ceilings, and contents that
 * nothing else refers to. FORGETS: remove the lists too, so that contents go to which
 * only a list refers.
 */
void undo_store_tidy_since(struct undo_store *store, int64_t oldest_ms, bool forgets);

/* Call TAKE with each name in the store that has ENDING. */
void undo_store_names(const struct undo_store *store, const char *ending,
		      void (*take)(void *context, const char *name), void *context);

/* Write the description beside the log NUMBER (undo_store_rights.c). */
bool undo_store_write_step(struct undo_store *store, uint32_t number,
			   const struct undo_meta *meta, struct err *err);
void undo_store_drop_step(const struct undo_store *store, uint32_t number);
/*
 * False: there is no complete description. The caller calls undo_step_fini in either
 * case.
 */
bool undo_store_read_step(const struct undo_store *store, uint32_t number,
			  struct undo_step *step);

/*
 * False: the log NUMBER is no step, or cannot be read. The caller calls undo_step_fini in
 * either case.
 */
bool undo_step_read(const struct undo_store *store, uint32_t number, struct undo_step *step);
void undo_step_fini(struct undo_step *step);
