/*
 * spec: everything an anchor must know to build one cell and to make its workers. The
 * front makes it from the policy (shape.h) and hands it over in memory or, across an
 * exec, as JSON in a sealed memory file. A string belongs to the arena or, in a
 * specification that was parsed, to that JSON.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/value.h"
#include "files/files.h"
#include "policy/network.h"
#include "sandbox/cgroup.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"
#include "tool/call.h"

#include <stdbool.h>
#include <stddef.h>

struct guard;

/*
 * A policy that names more paths is a mistake, and each costs a descriptor and a mount.
 */
enum { SPEC_ENTRIES_MAX = 512 };

/*
 * Maximum size as JSON. Usual specifications, with their paths and an environment, are
 * far smaller.
 */
enum { SPEC_BYTES_MAX = 4 << 20 };

/* Settings of git in the environment: with more, none are added. */
enum { SPEC_GIT_MAX = 1000 };

/*
 * The variable that tells our own program, when it runs in a command, where it may write.
 */
#define SPEC_WRITABLE "GLOVEBOX_WRITABLE"

/* A NULL-ended list of texts. */
struct spec_list {
	const char **items;
	size_t count;
};

/* A login that the cell has a copy of; see broker/login.h. */
struct spec_login {
	const char *path; /* in the view: absolute and normal */
	const char *credential;
};

struct cell_spec {
	struct arena arena;
	struct sandbox_identity identity;
	/*
	 * ID mapping for root's cells, and the workspace under that mapping until it is
	 * shown; for the front only
	 */
	struct sandbox_mapping mapping;
	int workspace_tree;
	struct view view;
	size_t view_capacity;
	struct sandbox_limits limits;
	/*
	 * for each call: its limits, the time from TERM to KILL, the agent whose policy
	 * it is
	 */
	struct call_limits call_limits;
	double grace_s;
	const char *agent;
	struct spec_list writable; /* Landlock's roots */
	struct files_root *roots;  /* for file tools */
	size_t root_count;
	struct spec_list blocked; /* real paths */
	/* for the front only: the caller's paths that no approval opens (shape.h) */
	struct spec_list closed;
	const char *callers_home;     /* NULL: unknown; for the front only */
	struct spec_list environment; /* for programs */
	/* for the proxy: the listed hosts, and the policy key that lists them */
	struct spec_list network;
	const char *network_rule;
	/* for the proxy: host:port of the credentials in use (cell/directions.h) */
	struct spec_list brokered;
	bool asks_network; /* a person is asked for other hosts (approval.h) */
	/*
	 * for the front: the published ports (network.h), the policy key that lists the
	 * first `publish_listed` of them, the others are of flags
	 */
	struct network_publish publish[NETWORK_PUBLISHED_MAX];
	size_t publish_count, publish_listed;
	const char *publish_rule;
	bool publishes; /* for the anchor: some port is published */
	bool brokers;   /* for the anchor: a credential is used (cell/vault.h) */
	/* for the front: copies of logins that the cell gets (cell/vault.h) */
	const struct spec_login *logins;
	size_t login_count;
	const char *resolver; /* NULL: the machine's own */
	/*
	 * ports of the cell's loopback that the proxy serves; 0, the last one: any free port,
	 * for requests, beside those kept for programs of the cell
	 */
	uint16_t listen[1 + NETWORK_CARRIED_MAX], kept[NETWORK_PUBLISHED_MAX];
	size_t listen_count, kept_count;
	const char *workspace; /* real */
	/*
	 * The place at which programs and the model see the workspace, absolute and normal
	 * (shape.h); NULL: its own. All other paths of this struct are those of the host
	 */
	const char *at;
	const char *home; /* in the view */
	/* the folder behind `home`, or NULL: private memory; for the front only */
	const char *home_source;
	/* write folders of a shipped role that were made; for the front only */
	struct spec_list made;
	/* folders that are removed at the end when empty, while cache_lock is held */
	struct spec_list leftovers;
	/* locked (flock) for additions to the caches; -1: another cell has it */
	int cache_lock;
	int home_lock; /* locked (flock) as long as a cell uses that folder; -1: none */
	/* the log of the layer of a review, which the workers write; -1: none */
	int review_log;
	int64_t review_ms; /* when that layer was made */
	/*
	 * the doors of the cell's control group of group_version (cgroup.h), by which the
	 * anchor enters it; 0: it has none
	 */
	int group_version;
	int doors[CGROUP_FOLDERS];
	int temp_lock; /* the same for `temp`, in the front; the anchor has one of its own */
	struct sandbox_strength strength; /* that this shape reaches */
	bool one_call; /* the cell is for one call, which waits while the cell is built */
	/* the JSON it was parsed from, which owns strings of this struct; NULL: none */
	struct value *parsed;
	/* the guard that the audit after each command compares with (guard.h) */
	struct guard *guard;
	/* how the cell is built; its strength is less when this machine makes that weaker */
	enum sandbox_level built;
	/*
	 * Without a view of its own (below L3): the session's folder for temporary files,
	 * removed by the anchor when all processes have ended, or by the front if there
	 * was no anchor. Else NULL
	 */
	const char *temp;
};

void spec_init(struct cell_spec *spec);
/* The workspace as programs and the model see it: `at`, else its own path. */
const char *spec_shown(const struct cell_spec *spec);
void spec_fini(struct cell_spec *spec); /* closes the descriptors of its entries */

/* Is the cell built with a view of its own (L3), not with rules over the host's files? */
bool spec_is_sealed(const struct cell_spec *spec);
/* Is PATH blocked, or in a blocked folder? */
bool spec_is_blocked(const struct cell_spec *spec, const char *path);

struct view_entry *spec_add_entry(struct cell_spec *spec, enum view_kind kind,
				  const char *path, const char *source);
void spec_add_root(struct cell_spec *spec, const char *path, bool writable,
		   const char *pattern);
/* Add a copy of TEXT to LIST, which is one of SPEC's. */
void spec_add(struct cell_spec *spec, struct spec_list *list, const char *text);
void spec_add_environment(struct cell_spec *spec, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Set ENTRY (NAME=value); it replaces an older value of NAME. */
void spec_set_environment(struct cell_spec *spec, const char *entry);
/* The value of the variable NAME for programs; NULL: it is unset. */
const char *spec_variable(const struct cell_spec *spec, const char *name);
/*
 * Add a setting of git, as GIT_CONFIG_COUNT and its keys hold them, behind those that are
 * there. With a wrong number git refuses to run: that is left as the policy's mistake.
 */
void spec_add_git(struct cell_spec *spec, const char *key, const char *value);

/*
 * Is PATH a layer whose files end with the cell: a folder of the host, with all writes going
 * elsewhere?
 */
bool spec_is_layer(const struct cell_spec *spec, const char *path);
/* Do all writes to the writable trees go into the layer of a review? */
bool spec_is_reviewed(const struct cell_spec *spec);
/* Is the root of the view a base, all of which may be written in memory of the cell's own? */
bool spec_has_base(const struct cell_spec *spec);
/* Is PATH in memory of the cell's own? */
bool spec_is_memory(const struct cell_spec *spec, const char *path);

/*
 * Set SPEC_WRITABLE to SPEC's roots, separated by colons; a path with a colon is left
 * out. Layers are included, because our own program in a command may write there as every
 * other program may.
 */
void spec_set_writable(struct cell_spec *spec);

/*
 * The cell of SPEC shows ADDITION from now on: give SPEC the roots, view entries and
 * guard of ADDITION; the guard moves.
 */
void spec_widen(struct cell_spec *spec, struct cell_spec *addition);

/*
 * The rights of the cell of SPEC to read and write, for rights_read. Owned by the caller.
 */
struct value *spec_rights(const struct cell_spec *spec);

/*
 * Print and parse what an anchor needs. Descriptors travel beside the text, in which each
 * stands as its place in a list of them. spec_print makes that list, *FDS with *COUNT
 * (freed by the caller; the descriptors stay those of SPEC), in which the door of a group of
 * version 2 comes first. spec_parse takes those of FDS that the text names, and sets them
 * to -1 there.
 */
bool spec_print(struct cell_spec *spec, struct buf *out, int **fds, size_t *count);
bool spec_parse(struct str text, int *fds, size_t count, struct cell_spec *spec,
		struct err *err);
