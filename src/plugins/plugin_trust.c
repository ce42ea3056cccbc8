/* plugin_trust: the record; see plugin_trust.h. */
#include "plugins/plugin_trust.h"

#include "base/fd.h"
#include "base/value.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_MAX = 4 << 20 };

static bool record_read(const char *folder, struct value **root, struct err *err)
{
	char path[PATH_MAX];
	struct buf text;
	struct err why = {0};

	(void)snprintf(path, sizeof(path), "%s/trusted.json", folder);
	buf_init(&text, RECORD_MAX);
	bool ok = fd_read_file(path, RECORD_MAX, &text, &why);
	if (!ok && (why.code == ENOENT || why.code == ENOTDIR)) {
		*root = value_new_object();
		ok = true;
	} else {
		ok = ok && value_parse(buf_str(&text), 0, root, &why);
		if (!ok)
			(void)err_set(err, why.code,
				      "%s: %s; remove it to trust your plugins anew",
				      path, why.text);
	}
	buf_fini(&text);
	return ok;
}

static void take_hex(const struct value *value, char hex[HASH_HEX + 1])
{
	struct str text = value_str(value);

	hex[0] = '\0';
	if (text.size > 0 && text.size <= HASH_HEX)
		(void)snprintf(hex, HASH_HEX + 1, "%.*s", (int)text.size, text.data);
}

bool plugin_trust_find(const char *folder, const char *source,
		       struct plugin_trusted *trusted, struct err *err)
{
	auto_value struct value *root = NULL;

	*trusted = (struct plugin_trusted){0};
	if (!record_read(folder, &root, err))
		return false;
	const struct value *entry = value_member(root, source);
	take_hex(value_member(entry, "hash"), trusted->hash);
	take_hex(value_member(entry, "commit"), trusted->commit);
	return true;
}

static bool record_write(const char *folder, const struct value *root, struct err *err)
{
	char path[PATH_MAX], temp[PATH_MAX];
	struct buf text;

	(void)snprintf(path, sizeof(path), "%s/trusted.json", folder);
	(void)snprintf(temp, sizeof(temp), "%s/trusted.json.new", folder);
	auto_close int fd =
		open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	buf_init(&text, RECORD_MAX);
	bool ok = value_print(root, VALUE_PRETTY | VALUE_SORTED, &text) &&
		  buf_addc(&text, '\n');
	ok = (ok && fd >= 0 && fd_write_all(fd, text.data, text.size, NULL) &&
	      fsync(fd) == 0 && rename(temp, path) == 0) ||
	     err_set(err, ok ? errno : EFBIG, "%s: %s", path, strerror(ok ? errno : EFBIG));
	buf_fini(&text);
	return ok;
}

bool plugin_trust_record(const char *folder, const char *source,
			 const struct plugin_trusted *trusted, struct err *err)
{
	auto_value struct value *root = NULL;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/trusted.lock", folder) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", folder);
	if (!fd_make_folders(path, err))
		return false;
	/* Two sessions may let something in at the same moment. */
	auto_close int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0 || flock(lock, LOCK_EX) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!record_read(folder, &root, err))
		return false;
	struct value *entry = value_new_object();
	value_set_text(entry, "hash", trusted->hash);
	if (trusted->commit[0] != '\0')
		value_set_text(entry, "commit", trusted->commit);
	value_set(root, source, entry);
	return record_write(folder, root, err);
}

static bool is_named(const struct value *root, const char *hash)
{
	for (void *at = value_first(root); at != NULL; at = value_next(root, at)) {
		if (str_is(value_str(value_member(value_at(at), "hash")), hash))
			return true;
	}
	return false;
}

/* A copy, or the beginning of one whose maker died. */
static bool is_copy(const char *name)
{
	return (strlen(name) == HASH_HEX && hash_is_valid(name)) ||
	       strncmp(name, "new-", 4) == 0;
}

void plugin_trust_prune(const char *folder, const char *cache)
{
	const time_t oldest = time(NULL) - (time_t)PLUGIN_KEPT_DAYS * 24 * 3600;
	auto_value struct value *root = NULL;
	DIR *copies = record_read(folder, &root, NULL) ? opendir(cache) : NULL;
	char path[PATH_MAX];
	struct stat st;

	for (const struct dirent *at = copies != NULL ? readdir(copies) : NULL;
	     at != NULL; at = readdir(copies)) {
		if (is_copy(at->d_name) && !is_named(root, at->d_name) &&
		    snprintf(path, sizeof(path), "%s/%s", cache, at->d_name) <
			    (int)sizeof(path) &&
		    lstat(path, &st) == 0 && st.st_mtime < oldest)
			folder_remove(path);
	}
	if (copies != NULL)
		(void)closedir(copies);
}
