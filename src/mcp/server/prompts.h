/*
 * prompts: a prompt as a Markdown file. Front matter with `title`, `description` and
 * `arguments` may stand above the text. A row of `arguments` has name, description,
 * required and values; the values are proposed while somebody types. {{name}} in the text
 * is the argument's place. A line that is only an image, ![words](target), is replaced by
 * the whole target: a file beside the prompt, or a resource of the server by its URI.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

/*
 * TEXT as an object: name (NAME unless the front matter has one), title, description,
 * arguments, prompt. The caller frees it. ERR names what is wrong with TEXT.
 */
bool prompts_read(struct str text, const char *name, struct value **prompt, struct err *err);

/* The row of `prompts/list`. The caller frees it. */
struct value *prompts_row(const struct value *prompt);

/*
 * The required arguments that ARGUMENTS does not have, as the schema of a form; NULL:
 * none.
 */
struct value *prompts_missing(const struct value *prompt, const struct value *arguments);

/*
 * The messages, with ARGUMENTS in their places. EMBED returns the content of TARGET, or
 * NULL. MADE: TARGET was made of an argument, so it may only be a URI. False: ERR says
 * what is missing.
 */
struct prompt_embed {
	struct value *(*content)(void *context, const char *target, bool made);
	void *context;
};
bool prompts_messages(const struct value *prompt, const struct value *arguments,
		      const struct prompt_embed *embed, struct value **messages,
		      struct err *err);

/* An array of values for the argument NAME that begin with TEXT. The caller frees it. */
struct value *prompts_proposals(const struct value *arguments, const char *name,
				struct str text);
