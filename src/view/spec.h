/*
 * spec: everything an anchor must know to build one cell and to make its workers: made by
 * the front from the policy (shape.h), handed over in memory or, across an exec, as JSON
 * in a sealed memory file. All strings live in the spec's arena.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/value.h"
#include "files/files.h"
#include "policy/network.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"
#include "tool/call.h"

#include <stdbool.h>
#include <stddef.h>

/* A policy that names more paths is a mistake, and each costs a descriptor and a mount. */
enum { SPEC_ENTRIES_MAX = 512 };

/* As JSON: its paths and an environment; far below this. */
enum { SPEC_BYTES_MAX = 4 << 20 };

/* The variable by which our own program knows, in a command, where it may write. */
#define SPEC_WRITABLE "GLOVEBOX_WRITABLE"

struct cell_spec {
	struct arena arena;
	struct sandbox_identity identity;
	/* of root's owners, and the workspace under it until it is shown; the front's own */
	struct sandbox_mapping mapping;
	int workspace_tree;
	struct view view;
	size_t view_capacity;
	struct sandbox_limits limits;
	/* what holds for each call: its limits, from TERM to KILL, whose policy it is */
	struct call_limits call_limits;
	double grace_s;
	const char *agent;
	const char **writable; /* NULL-ended: Landlock's roots */
	size_t writable_count;
	struct files_root *roots; /* for file tools */
	size_t root_count;
	const char **blocked; /* NULL-ended, real paths */
	size_t blocked_count;
	/* NULL-ended, the front's own: what of the caller's no approval opens (shape_extra.h) */
	const char **closed;
	size_t closed_count;
	const char *callers_home; /* NULL: unknown; the front's own */
	const char **environment; /* NULL-ended, for programs */
	size_t environment_count;
	/* the listed hosts and the key they stand under, for the proxy; NULL-ended */
	const char **network;
	size_t network_count;
	const char *network_rule;
	bool asks_network;    /* what is not listed is asked for (approval.h) */
	const char *resolver; /* NULL: the machine's own */
	/* ports of the cell's loopback that the proxy serves; 0: any one, for requests */
	uint16_t listen[1 + NETWORK_CARRIED_MAX];
	size_t listen_count;
	const char *workspace; /* real */
	const char *home;      /* in the view */
	/* the folder behind it, or NULL: private memory; the front's own */
	const char *home_source;
	/* write folders of a shipped role that were made; the front's own */
	const char **made;
	size_t made_count;
	/* folders that are removed at the end when empty, while cache_lock is held */
	const char **leftovers;
	size_t leftover_count;
	int cache_lock; /* held (flock) for the additions to the caches; -1: not ours */
	int home_lock;  /* held (flock) as long as some cell uses that folder; -1: none */
	int level;      /* enum sandbox_level that this shape reaches */
	bool one_call; /* its first call is its last, and waits while the cell is built */
	struct value *parsed; /* what it was read from: freed it would leave the heap in pieces */
	struct value *guard; /* what the audit after each command starts from (audit.h) */
	/* how it is built; `level` is lower where that is worth less here */
	enum sandbox_level built;
	/*
	 * Without a view of its own (below L3): the session's folder for temporary files,
	 * removed by the anchor when all has ended, or by the front if there was none; NULL
	 */
	const char *temp;
};

void spec_init(struct cell_spec *spec);
void spec_fini(struct cell_spec *spec); /* closes the descriptors of its entries */

/* Is the cell built with a view of its own (L3), or are there rules over the host's files? */
bool spec_is_sealed(const struct cell_spec *spec);

struct view_entry *spec_add_entry(struct cell_spec *spec, enum view_kind kind,
				  const char *path, const char *source);
void spec_add_root(struct cell_spec *spec, const char *path, bool writable,
		   const char *pattern);
void spec_add_writable(struct cell_spec *spec, const char *path);
void spec_add_blocked(struct cell_spec *spec, const char *path);
void spec_add_closed(struct cell_spec *spec, const char *path);
void spec_add_network(struct cell_spec *spec, const char *entry);
void spec_add_made(struct cell_spec *spec, const char *path);
void spec_add_leftover(struct cell_spec *spec, const char *path);
void spec_add_environment(struct cell_spec *spec, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ENTRY (NAME=value) takes the place of what NAME was. */
void spec_set_environment(struct cell_spec *spec, const char *entry);

/* Is what lies at PATH a layer: a folder of the host below, and what is written elsewhere? */
bool spec_is_layer(const struct cell_spec *spec, const char *path);
/* Is what lies at PATH memory of the cell's own? */
bool spec_is_memory(const struct cell_spec *spec, const char *path);

/*
 * SPEC_WRITABLE is made anew of SPEC's roots, between colons; a path that holds one is left out.
 * Layers are among them: our own program in a command writes as every other does.
 */
void spec_set_writable(struct cell_spec *spec);

/* SPEC, whose cell shows ADDITION from now on, has its roots, its view and its guard. */
void spec_widen(struct cell_spec *spec, const struct cell_spec *addition);

/* What the cell of SPEC may read and write, for rights_read; the caller's. */
struct value *spec_rights(const struct cell_spec *spec);

bool spec_print(const struct cell_spec *spec, struct buf *out);
bool spec_parse(struct str text, struct cell_spec *spec, struct err *err);
