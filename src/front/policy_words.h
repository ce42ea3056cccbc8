/*
 * policy_words: sentences name keys as those of an agent ("agents.policy.write"). Where the
 * policy comes from a file of its own, as with `exec --policy FILE`, they are keys of that;
 * where an option of the command line said it ("--write"), it is that which is named, since no
 * other place could change it.
 */
#pragma once
#include "base/buf.h"
#include "base/value.h"

/* What sentences call the policy of a file that names no agent. */
#define POLICY_FILE_AGENT "policy"

/* Whose keys sentences name. */
struct policy_words {
	const char *file;            /* of the policy; NULL: keys stay as they are */
	const struct value *options; /* what options said, as keys of a policy; NULL: nothing */
};

/* Append TEXT in WORDS. */
void policy_words_add(const struct policy_words *words, const char *text, struct buf *out);

/* As verb_complain, in WORDS. */
int policy_words_complain(int code, const struct policy_words *words, const char *text);
