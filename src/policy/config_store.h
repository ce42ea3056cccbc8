/*
 * config_store: what a configuration is made of, for the key table and the reader only.
 */
#pragma once
#include "base/value.h"
#include "policy/config.h"

#include <stddef.h>

struct config {
	unsigned minimum_level;
	uint64_t undo_space;     /* 0: nobody said it */
	char *resolver;          /* NULL: the machine's own */
	struct value *root;      /* all of it, checked; NULL: nothing */
	struct value *agents;    /* name -> entry, checked; NULL: none */
	struct value *roles;     /* the same from the user's role files */
	struct value *overrides; /* the same from the person's flags */
	/* Keys that no row has, of plugins: of the top level, and name -> those of its entry */
	struct value *plugin_keys, *agent_plugin_keys; /* or NULL */
	char **known;                                  /* agents that exist elsewhere */
	size_t known_count;
};
