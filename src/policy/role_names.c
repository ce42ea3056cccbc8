/* role_names: the table, and two looks at it. */
#include "policy/role_names.h"

#include <stddef.h>
#include <string.h>

const struct role_name role_names[] = {
	{"VajbCoder", "coder"},     {"TestAgent", "tester"}, {"ReviewAgent", "reviewer"},
	{"DocAgent", "documenter"}, {"KIK", "orchestrator"}, {0},
};

const char *role_names_role(const char *name)
{
	for (const struct role_name *row = role_names; row->other; row++) {
		if (strcmp(row->other, name) == 0)
			return row->role;
	}
	return NULL;
}

const char *role_names_other(const char *role)
{
	for (const struct role_name *row = role_names; row->role; row++) {
		if (strcmp(row->role, role) == 0)
			return row->other;
	}
	return NULL;
}
