/*
 * front_matter: a Markdown file that begins with YAML between two lines of "---", the
 * form in which agents are written. The only file that knows the YAML library. Plain
 * data alone is taken: no anchors, aliases, tags, nor a key twice.
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
 * The YAML as an object, with the body (without blank lines around) as its member
 * `prompt` unless empty. Plain words are what YAML's core schema says: null, booleans,
 * numbers, else text. ERR names the line in the file.
 */
bool front_matter_parse(struct str text, struct value **object, struct err *err);
