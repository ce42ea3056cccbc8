/* undo_store_parts: what undo_store*.c share and nobody else includes. */
#pragma once
#include "runtime/undo_store.h"

#define UNDO_LIST_NAME    "list"
#define UNDO_OBJECTS_NAME "objects"

struct undo_store {
	int folder;                    /* -1: in memory */
	int *memory;                   /* logs there, by number from 1; -1: dropped */
	uint32_t last;                 /* number given last */
	char list_name[UNDO_NAME_MAX]; /* of the list being written; "": none */
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

/* False: the log NUMBER is no step, or cannot be read. STEP is to be ended in either case. */
bool undo_step_read(const struct undo_store *store, uint32_t number, struct undo_step *step);
void undo_step_fini(struct undo_step *step);
