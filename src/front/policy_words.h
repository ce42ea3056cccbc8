/*
 * policy_words: sentences name keys as those of an agent ("agents.policy.write"). Where the
 * policy comes from a file of its own, as with `exec --policy FILE`, they are keys of that.
 */
#pragma once
#include "base/buf.h"

/* What sentences call the policy of a file that names no agent. */
#define POLICY_FILE_AGENT "policy"

/* Append TEXT, keys named as those of FILE; NULL: as they are. */
void policy_words_add(const char *file, const char *text, struct buf *out);

/* As verb_complain, with the words of FILE. */
int policy_words_complain(int code, const char *file, const char *text);
