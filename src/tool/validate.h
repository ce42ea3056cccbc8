/*
 * validate: one value against one JSON Schema (2020-12, and draft-07 when it says so). The only
 * check there is: of the schemas made from a tool's rows, and of foreign ones. Unknown
 * keywords are ignored, unknown dialects refused; `format` and `content…` are remarks. Nothing
 * is ever fetched: a reference to what is not in the schema is a refusal. Work, depth and time
 * are bounded: a schema that asks for more is a refusal too.
 */
#pragma once
#include "base/value.h"

#include <stdbool.h>

enum { VALIDATE_POINTER_MAX = 256, VALIDATE_RULE_MAX = 768 };

/* One rule that does not hold, and its place. All texts are cut on character borders. */
struct validate_problem {
	/* JSON pointer in the value, "" for the whole */
	char pointer[VALIDATE_POINTER_MAX];
	const char *keyword; /* of the schema: "type", "required", … */
	/* goes on after a subject: "must be a string, not 5" */
	char rule[VALIDATE_RULE_MAX];
};

struct validate_options {
	/* schemas that references may name, by address; dialects of their own too. NULL: none */
	const struct value *documents;
	bool draft_07; /* what a schema speaks that does not say */
};

/* PROBLEM (may be NULL) is filled with the first thing wrong when the answer is false. */
bool validate_value(const struct value *schema, const struct value *value,
		    struct validate_problem *problem);
/* The same; OPTIONS may be NULL. */
bool validate_with(const struct validate_options *options, const struct value *schema,
		   const struct value *value, struct validate_problem *problem);
