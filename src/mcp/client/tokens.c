/* tokens: files beside each other in one folder. */
#include "mcp/client/tokens.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKENS_MAX = 256 << 10 }; /* bytes of the file */

struct tokens {
	char *url, *file, *lock_file;
	int lock; /* open and locked; -1: not */
};

static char *name_of(const char *folder, const char *hex, const char *kind)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/%s.%s", folder, hex, kind);
	return buf_take(&path);
}

struct tokens *tokens_new(const char *folder, const char *url, const char *client_id)
{
	struct tokens *tokens = memory_alloc(sizeof(*tokens));
	char hex[HASH_HEX + 1];
	struct buf key;

	buf_init(&key, TOKENS_MAX);
	(void)buf_addf(&key, "%s\n%s", url, client_id ? client_id : "");
	hash_text(buf_str(&key), hex);
	buf_fini(&key);
	tokens->url = memory_copy(url);
	tokens->file = name_of(folder, hex, "json");
	tokens->lock_file = name_of(folder, hex, "lock");
	tokens->lock = -1;
	return tokens;
}

void tokens_free(struct tokens *tokens)
{
	if (!tokens)
		return;
	fd_close(&tokens->lock);
	free(tokens->url);
	free(tokens->file);
	free(tokens->lock_file);
	free(tokens);
}

/* Is the file ours alone? Another user's tokens would log us in as somebody else. */
static bool is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

struct value *tokens_read(const struct tokens *tokens)
{
	auto_close int fd = open(tokens->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct value *content = NULL;
	struct buf text;

	if (fd < 0 || !is_ours(fd))
		return NULL;
	buf_init(&text, TOKENS_MAX);
	if (fd_read_all(fd, &text, "tokens", NULL))
		(void)value_parse(buf_str(&text), 0, &content, NULL);
	if (text.capacity > 0)
		explicit_bzero(text.data, text.size);
	buf_fini(&text);
	if (str_is(value_str(value_member(content, "url")), tokens->url))
		return content;
	value_wipe(content);
	value_free(content);
	return NULL;
}

bool tokens_lock(struct tokens *tokens, struct err *err)
{
	if (tokens->lock >= 0)
		return true;
	if (!fd_make_folders(tokens->lock_file, err))
		return false;
	tokens->lock = open(tokens->lock_file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			    S_IRUSR | S_IWUSR);
	if (tokens->lock < 0)
		return err_set(err, errno, "%s: %s", tokens->lock_file, strerror(errno));
	if (flock(tokens->lock, LOCK_EX | LOCK_NB) == 0)
		return true;
	(void)err_set(err, errno == EWOULDBLOCK ? EAGAIN : errno,
		      "%s: another process renews the tokens", tokens->lock_file);
	fd_close(&tokens->lock);
	return false;
}

void tokens_unlock(struct tokens *tokens)
{
	fd_close(&tokens->lock);
}

bool tokens_write(const struct tokens *tokens, const struct value *content, struct err *err)
{
	auto_free char *parent = memory_copy(tokens->file);
	auto_close int folder = -1;
	struct buf text;
	bool ok;

	buf_init(&text, TOKENS_MAX);
	ok = (value_print(content, VALUE_PRETTY, &text) && buf_addc(&text, '\n')) ||
	     err_set(err, EFBIG, "%s: the tokens are too long", tokens->file);
	ok = ok && fd_replace_file(tokens->file, buf_str(&text), err);
	if (text.capacity > 0)
		explicit_bzero(text.data, text.size);
	buf_fini(&text);
	/* The tokens of before are used up: the new name must be on disk as well. */
	*strrchr(parent, '/') = '\0';
	folder = ok ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (folder >= 0)
		(void)fsync(folder);
	return ok;
}

bool tokens_remove(const struct tokens *tokens, bool *was_there, struct err *err)
{
	*was_there = unlink(tokens->file) == 0;
	return *was_there || errno == ENOENT ||
	       err_set(err, errno, "%s: %s", tokens->file, strerror(errno));
}
