/*
 * plugin_packages: the first half of loading: each source is hashed, let in or refused, and
 * copied; see plugin_load_parts.h.
 */
#include "plugins/plugin_load_parts.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "plugins/plugin_copy.h"
#include "plugins/plugin_trust.h"
#include "plugins/toolbox.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLUGINS_MAX = 128, NAME_MAX_BYTES = 4096 + 256 };

bool plugin_is_source(const struct value *entry)
{
	return value_kind(entry) == VALUE_STRING ||
	       value_member(entry, "bash_tool") != NULL ||
	       value_member(entry, "toolbox") != NULL;
}

void plugin_package_free(struct plugin_package *package)
{
	if (package == NULL)
		return;
	free(package->source);
	free(package->place);
	free(package->copy);
	plugin_manifest_fini(&package->manifest);
	free(package);
}

/* May an agent of this run write there? */
static bool is_exposed(const struct plugin_host *host, const char *place)
{
	bool exposed = path_within(place, host->cell->workspace);

	for (size_t i = 0; host->writable != NULL && i < host->writable->count; i++)
		exposed = exposed || path_within(place, host->writable->items[i].path);
	return exposed;
}

/*
 * Does PLACE, which may be named by links, lie where no agent may write? The folder is
 * made first, since only a folder that exists has a real path.
 */
static bool cache_is_apart(const struct plugin_host *host, const char *place, struct err *err)
{
	char within[PATH_MAX];

	if (snprintf(within, sizeof(within), "%s/", place) >= (int)sizeof(within))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", place);
	if (!is_exposed(host, place) && !fd_make_folders(within, err))
		return false;
	auto_free char *real = realpath(place, NULL);
	const char *at = real != NULL ? real : place;
	return (!is_exposed(host, at) && !path_within(host->cell->workspace, at)) ||
	       err_set(err, EPERM,
		       "%s lies where an agent may write, or holds the workspace: an agent could "
		       "change the copies that plugins run from",
		       at);
}

bool plugin_cache_find(struct plugin_loading *loading, struct err *err)
{
	const struct plugin_host *host = loading->host;
	struct buf text, normal;
	bool ok = true;

	if (host->state == NULL)
		return err_set(err, ENOENT,
			       "plugins are kept below your state folder, and neither HOME nor "
			       "XDG_STATE_HOME is set");
	if (host->cache_dir == NULL) {
		loading->cache = memory_copy(host->state);
		return true;
	}
	buf_init(&text, PATH_MAX);
	buf_init(&normal, PATH_MAX);
	ok = plugin_expand(&host->places, str_of(host->cache_dir), &text, err) &&
	     (path_normal(host->places.config_dir, text.data, &normal) ||
	      err_set(err, EINVAL, "is no path"));
	ok = ok && cache_is_apart(host, normal.data, err);
	if (!ok)
		(void)err_while(err, "plugin_cache_dir");
	loading->cache = buf_take(&normal);
	buf_fini(&text);
	return ok;
}

/*
 * Has the user let in this content of the source? A new source that lies where no agent
 * may write is let in now, because the user has named it.
 */
static bool trust(const struct plugin_loading *loading, const struct plugin_package *package,
		  const char *place, const struct plugin_trusted *now, struct err *err)
{
	const char *source = package->source;
	const char *dialect = package->is_toolbox ? "toolbox:" : "";
	const struct plugin_host *host = loading->host;
	struct plugin_trusted before;

	if (host->named_now)
		return true;
	if (!plugin_trust_find(host->state, source, &before, err))
		return false;
	if (!host->trusts && before.hash[0] != '\0') {
		if (strcmp(before.hash, now->hash) == 0)
			return true;
		return err_set(err, EPERM,
			       "it has changed since you let it in (%.12s then, %.12s now). Look at "
			       "it, then: glovebox plugin trust %s%s",
			       before.hash, now->hash, dialect, source);
	}
	if (!host->trusts && is_exposed(host, place))
		return err_set(err, EPERM,
			       "it lies where an agent may write. Look at it, "
			       "then: glovebox plugin trust %s%s",
			       dialect, source);
	if (!plugin_trust_record(host->state, source, now, err))
		return false;
	plugin_trust_prune(host->state, loading->cache);
	return true;
}

/* The copy, and where the view shows it. */
static bool package_fill(struct plugin_loading *loading, struct plugin_package *package,
			 const char *real, struct err *err)
{
	struct buf copy;

	buf_init(&copy, PATH_MAX);
	bool ok = plugin_copy_make(real, loading->cache, package->hash, &copy, err);
	package->copy = buf_take(&copy);
	if (package->place == NULL)
		package->place = memory_copy(package->copy);
	if (ok && package->is_toolbox)
		return toolbox_list(package->copy, &package->manifest.files, err);
	if (ok && package->is_file)
		return true;
	return ok && plugin_manifest_read(package->copy, &package->manifest, err);
}

static bool local_package(struct plugin_loading *loading, const struct plugin_source *source,
			  struct plugin_package *package, struct err *err)
{
	const struct plugin_host *host = loading->host;
	auto_free char *real = realpath(source->text, NULL);
	struct plugin_trusted now = {0};
	struct stat st;

	if (real == NULL || stat(real, &st) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	package->is_file = S_ISREG(st.st_mode);
	if (source->kind == PLUGIN_FILE && !package->is_file)
		return err_set(err, EISDIR,
			       "file names a single script; a folder is named as path");
	if (source->kind == PLUGIN_FOLDER && package->is_file)
		return err_set(err, ENOTDIR,
			       "path names a folder; a single script is named as file");
	if (!package->is_file && path_within(host->cell->workspace, real))
		return err_set(err, EINVAL,
			       "this folder holds the workspace %s, and would be shown read-only "
			       "over it: work elsewhere (-C), or name the script",
			       host->cell->workspace);
	package->place = memory_copy(real);
	/* However it was named: one place has one record. */
	free(package->source);
	package->source = memory_copy(real);
	if (!plugin_copy_hash(real, package->hash, err))
		return false;
	(void)snprintf(now.hash, sizeof(now.hash), "%s", package->hash);
	return trust(loading, package, real, &now, err) &&
	       package_fill(loading, package, real, err);
}

/* Is the copy of what was let in still there? Then nothing is fetched. */
static bool copy_is_there(const struct plugin_loading *loading, const char *hash)
{
	char path[PATH_MAX];

	return hash[0] != '\0' &&
	       snprintf(path, sizeof(path), "%s/%s/files", loading->cache, hash) <
		       (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

static bool fetch_new(struct plugin_loading *loading, const struct plugin_source *source,
		      const struct plugin_trusted *before, struct plugin_package *package,
		      struct err *err)
{
	const struct plugin_host *host = loading->host;
	struct plugin_trusted now = {0};
	char files[PATH_MAX];
	struct buf folder;

	if (!host->trusts)
		(void)snprintf(now.commit, sizeof(now.commit), "%s", before->commit);
	buf_init(&folder, PATH_MAX - sizeof("/files"));
	bool ok = host->fetch(host->context, source, &folder, now.commit, err);
	(void)snprintf(files, sizeof(files), "%.4080s/files", folder.data);
	ok = ok && plugin_copy_hash(files, package->hash, err);
	(void)snprintf(now.hash, sizeof(now.hash), "%s", package->hash);
	(void)snprintf(package->commit, sizeof(package->commit), "%s", now.commit);
	ok = ok && trust(loading, package, "/", &now, err) &&
	     package_fill(loading, package, files, err);
	if (folder.size > 0)
		folder_remove(folder.data);
	buf_fini(&folder);
	return ok;
}

static bool git_package(struct plugin_loading *loading, const struct plugin_source *source,
			struct plugin_package *package, struct err *err)
{
	const struct plugin_host *host = loading->host;
	struct plugin_trusted before = {0};

	if (!host->named_now &&
	    !plugin_trust_find(host->state, package->source, &before, err))
		return false;
	if (host->trusts || !copy_is_there(loading, before.hash))
		return fetch_new(loading, source, &before, package, err);
	(void)snprintf(package->hash, sizeof(package->hash), "%s", before.hash);
	(void)snprintf(package->commit, sizeof(package->commit), "%s", before.commit);
	/* The copy exists already: it serves as its own source, and nothing is copied. */
	char files[PATH_MAX];
	(void)snprintf(files, sizeof(files), "%s/%s/files", loading->cache, before.hash);
	return package_fill(loading, package, files, err);
}

static void package_add(struct plugin_loading *loading, const struct plugin_source *source)
{
	struct plugins *plugins = loading->plugins;
	struct plugin_package *package = memory_alloc(sizeof(*package));
	struct err err = {0};
	struct buf name;

	buf_init(&name, NAME_MAX_BYTES);
	plugin_source_name(source, &name);
	package->source = buf_take(&name);
	package->is_toolbox = source->is_toolbox;
	if (source->kind == PLUGIN_GIT ? git_package(loading, source, package, &err)
				       : local_package(loading, source, package, &err)) {
		plugins->packages[plugins->package_count++] = package;
		return;
	}
	plugin_problem(loading, package->source, err.text);
	plugin_package_free(package);
}

bool plugin_packages_load(struct plugin_loading *loading, struct err *err)
{
	const struct plugin_host *host = loading->host;
	size_t count = value_count(host->sources);

	if (count > PLUGINS_MAX)
		return err_set(err, E2BIG, "plugins: at most %d are taken", PLUGINS_MAX);
	loading->plugins->packages =
		memory_array(count + 1, sizeof(*loading->plugins->packages));
	for (size_t i = 0; i < count; i++) {
		const struct value *entry = value_item(host->sources, i);
		struct plugin_source source;

		if (!plugin_is_source(entry))
			continue;
		if (!plugin_source_parse(&host->places, entry, &source, err))
			return err_while(err, "plugins/%zu", i);
		package_add(loading, &source);
		plugin_source_fini(&source);
	}
	return true;
}
