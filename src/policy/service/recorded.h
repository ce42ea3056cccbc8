/*
 * recorded: the parts `audit` and `otlp` of the configuration's key `service` (docs/audit.md):
 * what is recorded of sessions, as a struct. Each is an object, or a text that is its folder or its
 * collector (`audit_key` beside it names the key then). The rows check it before it is read, so that reading
 * cannot fail.
 */
#pragma once

#include "base/text/rows.h"
#include "base/value.h"

#include <stdbool.h>

struct recorded {
	char *folder;     /* of the audit; NULL: there is none */
	char *key_file;   /* or NULL */
	bool each;        /* the disk has each line before its call goes on */
	bool refuses_cut; /* nothing is opened where lines of the audit are gone */
	bool arguments;   /* lines have them in full */
	bool spans;       /* a collector gets spans */
	char *endpoint;   /* of the collector; NULL: that of the environment */
	bool content;     /* spans have what was said and done */
};

extern const struct row recorded_audit_rows[];
extern const struct row recorded_otlp_rows[];

/* The checks of these texts as rows: an absolute path; an address of HTTP. An object passes. */
bool recorded_is_folder(const struct row *row, const struct value *value,
			struct rows_problem *problem);
bool recorded_is_collector(const struct row *row, const struct value *value,
			   struct rows_problem *problem);

/* Fill RECORDED from SERVICE, the value of the key (NULL: nothing is recorded). */
void recorded_read(const struct value *service, struct recorded *recorded);
void recorded_fini(struct recorded *recorded);
/* Is anything recorded? */
bool recorded_is_wanted(const struct recorded *recorded);
