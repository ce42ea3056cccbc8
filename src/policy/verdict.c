/* verdict: see verdict.h. */
#include "policy/verdict.h"

#include "base/text/text.h"

#include <stdio.h>
#include <string.h>

/* For a dozen roots or names with every byte escaped. */
enum { SENTENCE_MAX = 16 << 10 };

void verdict_begin(struct buf *because)
{
	buf_init(because, SENTENCE_MAX);
}

void verdict_end(struct verdict *verdict, const struct buf *because)
{
	size_t size = text_character_border(buf_str(because), sizeof(verdict->because) - 1);

	memcpy(verdict->because, because->data, size);
	verdict->because[size] = '\0';
}

void verdict_set_rule(struct verdict *verdict, const struct policy *policy, const char *key)
{
	(void)snprintf(verdict->rule, sizeof(verdict->rule), "agents.%.64s.%s",
		       policy->name ? policy->name : "", key);
}
