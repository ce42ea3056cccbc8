/* probe_parts: what probe's files share; see probe.h. */
#pragma once
#include "sandbox/probe.h"

/* A sysctl is one number, a list of controllers a line. */
enum { SYSCTL_MAX = 256 };

/*
 * The text of a small file without its line end; false when this kernel has none of that
 * name.
 */
bool probe_read(const char *path, char text[SYSCTL_MAX]);

/* SPACES_UNTRIED: there is no room for the try itself, which says nothing of the machine. */
enum spaces_lacking {
	SPACES_NOTHING,
	SPACES_UNTRIED,
	SPACES_USER,
	SPACES_OTHERS,
	SPACES_PROC,
	SPACES_VIEW
};

/* The result of making namespaces as the anchor makes them. */
struct probe_spaces {
	enum spaces_lacking lacking; /* the first that is missing */
	char because[PROBE_VALUE_MAX];
	char remedy[PROBE_REMEDY_MAX];
};
void probe_namespaces(struct probe_spaces *spaces);

/* A sysctl that may keep namespaces away. */
struct probe_switch {
	const char *path;   /* NULL ends the rows */
	const char *closed; /* its values that do, with blanks between */
	bool holds_for_root;
	const char *remedy;
};
extern const struct probe_switch probe_switches[];
/* Does VALUE, which ROW has, keep them away from this user? */
bool probe_switch_closes(const struct probe_switch *row, const char *value);

/* CODE: what the kernel said when it was asked for its ABI. */
const char *probe_landlock_remedy(int code);

bool probe_seccomp(void);
const char *probe_seccomp_remedy(int code);
