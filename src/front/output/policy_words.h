/*
 * policy_words: rewrites the names of keys in sentences. The sentences name keys of an agent
 * ("agents.policy.write"). For a policy from a file of its own (`exec --policy FILE`)
 * the rewritten sentence names the key of this file. For a key that an option set ("--
 * write") it names the option, since no other place could change it.
 */
#pragma once

#include "base/buf.h"
#include "base/value.h"

/* The agent's name in sentences about a policy file, which names no agent. */
#define POLICY_FILE_AGENT "policy"

/* Where the policy comes from. */
struct policy_words {
	const char *file;            /* of the policy; NULL: keys stay as they are */
	const struct value *options; /* values of options, as keys of a policy; or NULL */
	const char *wrapped;         /* the profile that `wrap` runs; or NULL */
};

/* Append TEXT, with its keys rewritten by WORDS. */
void policy_words_add(const struct policy_words *words, const char *text, struct buf *out);

/* Like verb_complain, with the keys of TEXT rewritten by WORDS. */
int policy_words_complain(int code, const struct policy_words *words, const char *text);
