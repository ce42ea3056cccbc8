/*
 * rules: keeps rules.json (policy/rules.h), which stands beside the person's configuration and
 * has its rules of owner and mode: who can write it decides what agents may do.
 */
#pragma once

#include "base/err.h"
#include "policy/policy.h"
#include "policy/rules.h"

#include <stdbool.h>

/* Read the rules. Without the file, and without a home, there are none. Call rules_fini. */
bool front_rules_read(struct rules *rules, struct err *err);

/*
 * Change the file: CHANGE changes RULES as the file has them now, while no other process can
 * write it. False (nothing is written): CHANGE has refused, or the file cannot be written.
 */
bool front_rules_change(bool (*change)(void *context, struct rules *rules, struct err *err),
			void *context, struct err *err);

/* Add a rule of today. */
bool front_rules_keep(const char *agent, const char *folder, enum rule_kind kind,
		      const char *rule, struct err *err);

/*
 * Add the rules for AGENT in FOLDER to POLICY. A host that the ceiling forbids or that hands
 * over the machine, and a folder that is gone, are left out.
 */
bool front_rules_apply(struct policy *policy, const char *agent, const char *folder,
		       struct err *err);
