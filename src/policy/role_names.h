/*
 * role_names: other names of the shipped roles. Teams that come from the agents which
 * these roles were modelled on keep their names for them. An agent that somebody defines
 * under such a name is that agent: config_role_name decides.
 */
#pragma once

struct role_name {
	const char *other; /* "VajbCoder" */
	const char *role;  /* "coder" */
};

/* Ends with {0}. */
extern const struct role_name role_names[];

/* The shipped role that NAME is another name of; NULL: of none. */
const char *role_names_role(const char *name);

/* The other name of the shipped role ROLE; NULL: it has none. */
const char *role_names_other(const char *role);
