/* verdict: how those who judge fill one in; the struct itself is in policy.h. */
#pragma once
#include "base/buf.h"
#include "policy/policy.h"

/* An empty sentence with room for everything a verdict may quote. */
void verdict_begin(struct buf *because);
/* BECAUSE, cut to what fits, is what VERDICT says. */
void verdict_end(struct verdict *verdict, const struct buf *because);
/* KEY of the agent's policy decided. */
void verdict_set_rule(struct verdict *verdict, const struct policy *policy, const char *key);
