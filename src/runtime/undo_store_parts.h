/* undo_store_parts: what undo_store*.c share and nobody else includes. */
#pragma once
#include "runtime/undo_store.h"

#define UNDO_LIST_NAME    "list"
#define UNDO_OBJECTS_NAME "objects"

struct undo_store {
	int folder;
	uint32_t last;                 /* number given last */
	char list_name[UNDO_NAME_MAX]; /* of the list being written; "": none */
};

bool undo_log_number(const char *name, uint32_t *number);
