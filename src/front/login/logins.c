/* logins: reads login.json, and replaces it. */

#include "front/login/logins.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "front/config_file.h"
#include "front/verb.h"
#include "model/http.h"
#include "model/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char keys_member[] = "keys";
static const char model_member[] = "model";

bool logins_path(struct buf *path)
{
	return config_file_beside("login.json", path);
}

static void wipe(struct buf *text)
{
	if (text->size > 0)
		explicit_bzero(text->data, text->size);
	buf_fini(text);
}

static void forget_value(struct value *logins)
{
	value_wipe(logins);
	value_free(logins);
}

/* Read the open file FD, PATH for messages. */
static bool read_file(int fd, const char *path, struct value **logins, struct err *err)
{
	struct value *found = NULL;
	struct stat st;
	struct buf text;
	bool fine;

	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return err_set(err, EPERM,
			       "%s: it holds keys, so it must be a file of your own that nobody "
			       "else reads: chmod 600 %s; its keys are not used",
			       path, path);
	buf_init(&text, LOGINS_FILE_MAX);
	fine = fd_read_looked(fd, st.st_size, &text, path, err);
	if (fine && (!value_parse(buf_str(&text), 0, &found, NULL) ||
		     value_kind(found) != VALUE_OBJECT))
		fine = err_set(err, EINVAL,
			       "%s: it is no JSON object, so its keys are not used: remove it, and "
			       "log in again",
			       path);
	wipe(&text);
	if (fine)
		*logins = found;
	else
		forget_value(found);
	return fine;
}

/* The kept keys, an object that the caller frees by forget_value. False: ERR says why not. */
static bool read_logins(struct value **logins, struct err *err)
{
	auto_close int fd = -1;
	struct buf path;
	bool fine;

	*logins = NULL;
	buf_init(&path, PATH_MAX);
	if (logins_path(&path))
		fd = open(path.data,
			  O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	else
		errno = ENOENT;
	if (fd >= 0)
		fine = read_file(fd, path.data, logins, err);
	else
		fine = errno == ENOENT || errno == ENOTDIR ||
		       err_set(err, errno, "%s: %s", path.data, strerror(errno));
	if (fine && *logins == NULL)
		*logins = value_new_object();
	buf_fini(&path);
	return fine;
}

/* As read_logins, with a complaint instead of an error. NULL: nothing can be used. */
static struct value *logins_now(void)
{
	struct value *logins;
	struct err err = {0};

	if (!read_logins(&logins, &err))
		(void)verb_complain(CODE_FAILED, "%s", err.text);
	return logins;
}

bool logins_wants(const struct provider *provider)
{
	return provider->key_name != NULL && !http_is_here(provider->base_url);
}

bool logins_have(const char *base_url)
{
	struct value *logins = logins_now();
	const struct value *keys = value_member(logins, keys_member);
	auto_free char *origin = NULL;
	bool have;

	if (base_url == NULL)
		have = value_count(keys) > 0;
	else
		have = http_url_origin(base_url, &origin, NULL) &&
		       value_text(value_member(keys, origin)) != NULL;
	forget_value(logins);
	return have;
}

void logins_find(const char *origin, struct buf *key)
{
	struct value *logins;

	/* logins_have has complained about a file that cannot be used. */
	if (!read_logins(&logins, NULL))
		return;
	(void)buf_addstr(key, value_str(value_member(value_member(logins, keys_member),
						     origin)));
	forget_value(logins);
}

char *logins_model(void)
{
	struct value *logins;
	char *model;

	if (!read_logins(&logins, NULL))
		return NULL;
	model = memory_copy(value_text(value_member(logins, model_member)));
	forget_value(logins);
	return model;
}

/* Replace what is kept by LOGINS. */
static bool write_logins(const struct value *logins, const char *path, struct err *err)
{
	struct buf text;
	bool fine;

	buf_init(&text, LOGINS_FILE_MAX);
	(void)buf_reserve(&text, LOGINS_FILE_MAX / 2);
	fine = value_print(logins, VALUE_PRETTY, &text) && buf_addc(&text, '\n')
		       ? fd_replace_file(path, buf_str(&text), err)
		       : err_set(err, EFBIG, "%s: it would be too large", path);
	wipe(&text);
	return fine;
}

/* Lock what is kept, and read it. The caller closes LOCK and frees LOGINS in either case. */
static bool begin_change(struct buf *path, int *lock, struct value **logins, struct err *err)
{
	*lock = -1;
	*logins = NULL;
	if (!logins_path(path))
		return err_set(
			err, ENOENT,
			"there is no home: set HOME or XDG_CONFIG_HOME, where the key is kept");
	*lock = fd_lock_beside(path->data, err);
	return *lock >= 0 && read_logins(logins, err);
}

bool logins_keep(const char *base_url, struct str key, const char *model, struct err *err)
{
	auto_free char *origin = NULL;
	auto_close int lock = -1;
	struct value *logins = NULL, *keys;
	struct buf path;
	bool fine;

	buf_init(&path, PATH_MAX);
	fine = http_url_origin(base_url, &origin, err) &&
	       begin_change(&path, &lock, &logins, err);
	if (fine) {
		keys = value_member(logins, keys_member);
		if (value_kind(keys) != VALUE_OBJECT) {
			keys = value_new_object();
			value_set(logins, keys_member, keys);
		}
		value_set_str(keys, origin, key);
		if (model != NULL)
			value_set_text(logins, model_member, model);
		fine = value_count(keys) <= LOGINS_MAX
			       ? write_logins(logins, path.data, err)
			       : err_set(err, E2BIG, "%s: it has %d keys already",
					 path.data, LOGINS_MAX);
	}
	forget_value(logins);
	buf_fini(&path);
	return fine;
}

bool logins_forget(const char *base_url, size_t *count, struct err *err)
{
	auto_free char *origin = NULL;
	auto_close int lock = -1;
	struct value *logins = NULL, *keys;
	struct buf path;
	bool fine, changed;

	*count = 0;
	buf_init(&path, PATH_MAX);
	fine = (base_url == NULL || http_url_origin(base_url, &origin, err)) &&
	       begin_change(&path, &lock, &logins, err);
	keys = value_member(logins, keys_member);
	changed = origin != NULL ? value_member(keys, origin) != NULL
				 : value_count(logins) > 0;
	if (fine && changed) {
		*count = origin != NULL ? 1 : value_count(keys);
		if (origin != NULL)
			value_remove(keys, origin);
		if (origin == NULL || value_count(keys) == 0)
			fine = unlink(path.data) == 0 ||
			       err_set(err, errno, "%s: %s", path.data, strerror(errno));
		else
			fine = write_logins(logins, path.data, err);
	}
	forget_value(logins);
	buf_fini(&path);
	return fine;
}
