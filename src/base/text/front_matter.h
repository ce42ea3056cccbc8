/*
 * front_matter: a Markdown file that begins with YAML between two lines of "---", the
 * form in which agents are written. Only front_matter.c knows the YAML library. Only
 * plain data is accepted: anchors, aliases, tags and repeated keys are refused.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

enum {
	FRONT_MATTER_TEXT_MAX = 1 << 20, /* the whole file: a prompt is a few KiB */
	FRONT_MATTER_MAX = 64 << 10,     /* its YAML part */
	FRONT_MATTER_DEPTH_MAX = 16,
};

/*
 * Parse the YAML into an object. The body, without blank lines around it, becomes its
 * member `prompt` unless it is empty. Plain words are read by YAML's core schema: null,
 * booleans, numbers, else text. ERR names the line in the file.
 */
bool front_matter_parse(struct str text, struct value **object, struct err *err);
