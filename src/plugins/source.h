/*
 * source: the entries of `plugins` in a configuration, in all their forms, and the
 * placeholders of its texts.
 *
 * The values of keys that a plugin declares stand in `plugin_config`, because unknown
 * keys at the top of a configuration are refused. A new form of source also needs its
 * keys in policy/config.c, in docs/plugins.md and in
 * tests/unit/plugins/plugin_source_test.c.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/value.h"
#include "plugins/describe.h"

#include <stdbool.h>

/* The values of placeholders. */
struct plugin_places {
	const char *config_dir;         /* CONFIG_DIR, and where relative paths begin */
	const char *working_dir;        /* WORKING_DIR */
	const char *const *environment; /* of the caller, NULL-ended: ${env:NAME} */
};
/*
 * Append TEXT with ${env:NAME}, ${CONFIG_DIR} and ${WORKING_DIR} replaced ("$${" stands for
 * "${"). False: a variable that is not set, or no such placeholder; ERR names it.
 */
bool source_expand(const struct plugin_places *places, struct str text, struct buf *out,
		   struct err *err);
/*
 * Replace the placeholders in all texts of VALUE, at any depth. The result is a new
 * value.
 */
bool source_expand_value(const struct plugin_places *places, const struct value *value,
			 struct value **expanded, struct err *err);

enum plugin_source_kind { PLUGIN_FILE = 1, PLUGIN_FOLDER, PLUGIN_EITHER, PLUGIN_GIT };

struct plugin_source {
	enum plugin_dialect dialect;
	enum plugin_source_kind kind;
	char *text; /* the absolute path, or the URL */
	char *ref;  /* of git; NULL: its default branch */
};

/* One entry of `plugins`. plugin_source_fini SOURCE when true. */
bool plugin_source_parse(const struct plugin_places *places, const struct value *entry,
			 struct plugin_source *source, struct err *err);
/* The dialect of the scripts that ENTRY names, also when ENTRY has errors. */
static inline enum plugin_dialect plugin_source_dialect(const struct value *entry)
{
	return value_member(entry, "toolbox") != NULL ||
			       str_starts(value_str(entry), STR("toolbox:"))
		       ? PLUGIN_TOOLBOX
		       : PLUGIN_SCRIPT;
}
void plugin_source_fini(struct plugin_source *source);
/* Append the name of SOURCE for people: the path, or URL#REF. */
void plugin_source_name(const struct plugin_source *source, struct buf *name);

/*
 * A plugin's folder, or its single file, is hashed as a whole and copied to a place where
 * only the user writes, so that the code that was checked is the code that runs. `.git`
 * is no part of it. A link that leads out, and an entry that is neither file nor folder,
 * is refused.
 */

enum {
	PLUGIN_COPY_MAX = 16 << 20,
	PLUGIN_COPY_FILES = 4096,
	PLUGIN_COPY_DEPTH = 32,
};

/* The hash of SOURCE (absolute): of names, modes and contents. */
bool source_copy_hash(const char *source, char hex[HASH_HEX + 1], struct err *err);

/*
 * Copy SOURCE, whose hash is HEX, to FOLDER/HEX/files if this copy does not exist. Append
 * the path of the copy, or, when SOURCE is a file, of the file in it. False also when
 * SOURCE has changed meanwhile.
 */
bool source_copy_make(const char *source, const char *folder, const char *hex,
		      struct buf *copy, struct err *err);

/*
 * The record of the sources that the user has let in: for each source its hash at that
 * time, and for a git source the commit. It is one file of the user's state, which no
 * cell shows.
 */

struct plugin_trusted {
	char hash[HASH_HEX + 1];   /* "" when the source is in no record */
	char commit[HASH_HEX + 1]; /* of git; "" else */
};

/*
 * Set TRUSTED to the entry of SOURCE in FOLDER's record. A record that cannot be read is an
 * error.
 */
bool source_trust_find(const char *folder, const char *source,
		       struct plugin_trusted *trusted, struct err *err);
/*
 * Write TRUSTED as the entry of SOURCE in FOLDER's record. Then remove the copies below
 * CACHE (NULL: there are none) that the record does not name and that are older than
 * thirty days.
 */
bool source_trust_record(const char *folder, const char *cache, const char *source,
			 const struct plugin_trusted *trusted, struct err *err);

/*
 * The manifest of a source lists its scripts. A folder with an agent_plugin.json brings
 * prompts and resources along as well; a toolbox is a folder of executables. The manifest
 * is read from the copy that will be run.
 */

#define PLUGIN_PACKAGE_FILE "agent_plugin.json"

enum { PLUGIN_PACKAGE_BYTES_MAX = 256 << 10, PLUGIN_PACKAGE_ENTRIES_MAX = 64 };

struct plugin_manifest {
	enum plugin_source_kind kind; /* PLUGIN_FILE or PLUGIN_FOLDER */
	/* texts: the scripts of a folder, relative, inside it; NULL for a file */
	struct value *files;
	/* Lists as they were written, each entry an object whose `file`, if any, lies inside. */
	struct value *prompts, *resources, *resource_templates;
};

/*
 * Read the manifest of COPY, a file or a folder. Call plugin_manifest_fini in either
 * case.
 */
bool plugin_manifest_read(const char *copy, enum plugin_dialect dialect,
			  struct plugin_manifest *manifest, struct err *err);

/* Parse the TEXT of an agent_plugin.json. Call plugin_manifest_fini when true. */
bool plugin_manifest_parse(struct str text, struct plugin_manifest *manifest,
			   struct err *err);

/* Free the members of MANIFEST. */
void plugin_manifest_fini(struct plugin_manifest *manifest);
