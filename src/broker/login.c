/* login: copies of a login's file, and its renewal under a lock. */

#include "broker/login.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "process/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TRY_MS = 20, /* between two looks at the lock or at the file */
	/* After a renewal, so that other cells get the lock from one that renews for ever. */
	REST_MS = 10 * TRY_MS,
	/* of the new file, beside the size of the old one */
	MORE_ROOM = CREDENTIAL_TOKENS_MAX * REFRESH_TOKEN_MAX + 4096,
	NEW_FILE_MODE = 0600,
	/* A cell that renews again so soon gets its answer from the file. */
	FRESH_MS = 60 * 1000,
	KEEP_TRIES = 8, /* … in a row, while another program writes the file */
	/* A time in milliseconds since 1970 is larger, one in seconds smaller. */
	SECOND_MS = 1000,
};

#define MILLISECONDS_FROM INT64_C(100000000000)

enum state {
	RESTING,  /* no lock is held */
	LOCKING,  /* another cell has the lock */
	RENEWING, /* locked; the tokens are given away */
	KEEPING,  /* new tokens have come; it is locked and the file sound, or will be */
	AWAITING, /* locked; another program may write the file */
};

struct login {
	const struct refresh *refresh;
	const struct source *source;
	struct loop *loop;
	enum state state;
	struct timer step;
	int64_t until_ms, rest_until_ms;
	int64_t fresh_until_ms; /* the tokens of the last renewal are new until then */
	login_tokens *given;
	login_answer *answered;
	void *context;
	int folder; /* locked; -1: it is not */
	int made;   /* the new file; -1: there is none */
	char made_name[NAME_MAX + 1];
	struct refresh_tokens sent;  /* of the renewal under way, or of the last one */
	struct refresh_tokens spent; /* used up by the renewal before that of `sent` */
	struct refresh_tokens fresh; /* with KEEPING */
	struct buf text;             /* of the file, when the tokens were given away */
	struct refresh_tokens last;  /* came for `sent`, and stand in the file */
	int64_t last_ms;             /* … since then (since 1970) */
};

/* The texts. */

/* The seconds for which the token of ROOT lives, where its file says it. */
static int64_t expires_in(const struct credential_refresh *rules, struct value *root,
			  int64_t now_ms)
{
	const int64_t due = value_integer(value_at_pointer(root, rules->expires));

	return (due >= MILLISECONDS_FROM ? due / SECOND_MS : due) - now_ms / SECOND_MS;
}

/* The tokens of ROOT, a file of a login. */
static bool read_tokens(const struct credential *credential, struct value *root,
			struct refresh_tokens *tokens, struct err *err)
{
	const struct credential_refresh *refresh = &credential->refresh;
	auto_value struct value *object = value_new_object();
	struct buf text;
	bool fine;

	for (size_t i = 0; i < refresh->answers.count; i++) {
		const struct value *part =
			value_at_pointer(root, refresh->pointers.items[i]);

		if (value_kind(part) == VALUE_STRING)
			value_set(object, refresh->answers.items[i], value_copy(part));
	}
	buf_init(&text, REFRESH_BODY_MAX);
	fine = value_print(object, 0, &text) &&
	       refresh_tokens_parse(credential, buf_str(&text), tokens, err);
	explicit_bzero(text.data, text.size);
	buf_fini(&text);
	if (refresh->expires != NULL &&
	    value_integer(value_at_pointer(root, refresh->expires)) > 0) {
		const int64_t left = expires_in(refresh, root, clock_wall_ms());

		tokens->expires_s = left > 0 ? left : 1;
	}
	return fine;
}

static bool parse(struct str text, struct value **root, struct err *err)
{
	return (value_parse(text, 0, root, NULL) && value_kind(*root) == VALUE_OBJECT) ||
	       err_set(err, EINVAL, "the file of the login is no JSON object");
}

bool login_print_copy(const struct refresh *refresh, struct str text, struct buf *out,
		      struct err *err)
{
	const struct credential_refresh *rules = &refresh->credential->refresh;
	auto_value struct value *root = NULL;
	auto_value struct value *copy = value_new_object();
	struct buf part;
	bool fine = parse(text, &root, err);

	buf_init(&part, LOGIN_KEPT_MAX);
	for (size_t i = 0; fine && i < rules->keep.count; i++) {
		const struct value *kept = value_at_pointer(root, rules->keep.items[i]);

		buf_clear(&part);
		if (kept != NULL && value_print(kept, 0, &part))
			(void)value_set_at(copy, rules->keep.items[i], value_copy(kept));
	}
	/* After the others, so that no place of `keep` brings a token along. */
	for (size_t i = 0; fine && i < rules->pointers.count; i++) {
		const char *pointer = rules->pointers.items[i];

		if (value_kind(value_at_pointer(root, pointer)) == VALUE_STRING)
			(void)value_set_at(copy, pointer,
					   value_new_text(refresh->phantoms[i]));
	}
	buf_fini(&part);
	return fine && value_print(copy, 0, out) &&
	       refresh_check(refresh, buf_str(out), err);
}

bool login_print_renewed(const struct credential *credential, struct str text,
			 const struct refresh_tokens *fresh, int64_t now_ms,
			 struct buf *out, struct err *err)
{
	const struct credential_refresh *rules = &credential->refresh;
	auto_value struct value *root = NULL;
	bool fine = parse(text, &root, err);

	for (size_t i = 0; fine && i < rules->pointers.count; i++) {
		if (fresh->items[i] != NULL &&
		    !value_set_at(root, rules->pointers.items[i],
				  value_new_text(fresh->items[i])))
			fine = err_set(err, EINVAL, "the file of the login has no place %s",
				       rules->pointers.items[i]);
	}
	if (fine && rules->expires != NULL && fresh->expires_s > 0) {
		const int64_t old = value_integer(value_at_pointer(root, rules->expires));
		const int64_t due = now_ms + fresh->expires_s * SECOND_MS;

		(void)value_set_at(root, rules->expires,
				   value_new_integer(old >= MILLISECONDS_FROM || old <= 0
							     ? due
							     : due / SECOND_MS));
	}
	/* As it was written, for the eyes of a person. */
	const bool pretty = str_find(str_trim(text), STR("\n"), 0) != (size_t)-1;
	return fine && (value_print(root, pretty ? VALUE_PRETTY : 0, out) ||
			err_set(err, E2BIG, "the file of the login is too long"));
}

/* Append the words of SCOPE, a text or a list of texts, with blanks between them. */
static void add_scope(const struct value *scope, struct buf *out)
{
	(void)buf_addstr(out, value_str(scope));
	for (size_t i = 0; value_kind(scope) == VALUE_ARRAY && i < value_count(scope); i++)
		(void)buf_addf(out, "%s%s", i > 0 ? " " : "",
			       value_text(value_item(scope, i)) != NULL
				       ? value_text(value_item(scope, i))
				       : "");
}

bool login_print_answer(const struct refresh *refresh, struct str text, int64_t now_ms,
			struct buf *out, struct err *err)
{
	const struct credential_refresh *rules = &refresh->credential->refresh;
	auto_value struct value *root = NULL;
	auto_value struct value *answer = value_new_object();
	struct buf scope;

	if (!parse(text, &root, err))
		return false;
	value_set_text(answer, "token_type", "Bearer");
	for (size_t i = 0; i < rules->pointers.count; i++)
		if (value_kind(value_at_pointer(root, rules->pointers.items[i])) ==
		    VALUE_STRING)
			value_set_text(answer, rules->answers.items[i],
				       refresh->phantoms[i]);
	if (rules->expires != NULL) {
		const int64_t left = expires_in(rules, root, now_ms);

		value_set_integer(answer, "expires_in", left > 0 ? left : 1);
	}
	buf_init(&scope, LOGIN_KEPT_MAX);
	if (rules->scope != NULL)
		add_scope(value_at_pointer(root, rules->scope), &scope);
	if (scope.size > 0)
		value_set_text(answer, "scope", scope.data);
	buf_fini(&scope);
	return value_print(answer, 0, out) ||
	       err_set(err, E2BIG, "the file of the login is too long");
}

/* The file. */

/* Read the file, with its lock or without. */
static bool read_file(const struct login *login, struct source_login *file,
		      struct stat *st, struct buf *text, struct err *err)
{
	auto_close int fd = source_open_login(login->source, file, err);

	if (fd < 0)
		return false;
	return (fstat(fd, st) == 0 ||
		err_set(err, errno, "file %s: %s", file->shown, strerror(errno))) &&
	       fd_read_all(fd, text, file->shown, err);
}

static void text_fini(struct buf *text)
{
	explicit_bzero(text->data, text->size);
	buf_fini(text);
}

static bool same_token(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/*
 * Does NOW hold the token that is used up by a renewal of THEN? The access token, which
 * stands at the place of the source, may differ.
 */
static bool holds_same(const struct credential *credential, const char *access,
		       const struct refresh_tokens *then, const struct refresh_tokens *now)
{
	const struct credential_texts *pointers = &credential->refresh.pointers;

	for (size_t i = 0; i < pointers->count; i++)
		if (strcmp(pointers->items[i], access) != 0 &&
		    !same_token(then->items[i], now->items[i]))
			return false;
	return true;
}

/* Has the last renewal used `sent` up: did another token come than that of ACCESS? */
static bool has_used_up(const struct login *login, const char *access)
{
	const struct credential_texts *pointers =
		&login->refresh->credential->refresh.pointers;

	for (size_t i = 0; i < pointers->count; i++)
		if (strcmp(pointers->items[i], access) != 0 && login->last.items[i] != NULL &&
		    !same_token(login->last.items[i], login->sent.items[i]))
			return true;
	return false;
}

/* Does NOW hold tokens that this cell has used up, or sent just now? */
static bool holds_used(const struct login *login, const char *access,
		       const struct refresh_tokens *now)
{
	const struct credential *credential = login->refresh->credential;

	return holds_same(credential, access, &login->sent, now) ||
	       (refresh_tokens_are_any(&login->spent) &&
		holds_same(credential, access, &login->spent, now));
}

/* Read the file and its tokens. */
static bool look(const struct login *login, struct source_login *file, struct stat *st,
		 struct buf *text, struct refresh_tokens *tokens, struct err *err)
{
	auto_value struct value *root = NULL;

	return read_file(login, file, st, text, err) && parse(buf_str(text), &root, err) &&
	       read_tokens(login->refresh->credential, root, tokens, err);
}

static void unlock(struct login *login)
{
	if (login->made >= 0)
		(void)unlinkat(login->folder, login->made_name, 0);
	fd_close(&login->made);
	fd_close(&login->folder);
	refresh_tokens_fini(&login->fresh);
	explicit_bzero(login->text.data, login->text.size);
	buf_clear(&login->text);
	loop_remove_timer(&login->step);
	if (login->state != RESTING && login->state != LOCKING)
		login->rest_until_ms = clock_now_ms() + REST_MS;
	login->state = RESTING;
}

/* Lock the folder of FILE. False with EWOULDBLOCK when another cell has it. */
static bool lock(struct login *login, const struct source_login *file, struct err *err)
{
	login->folder = openat(file->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (login->folder >= 0 && flock(login->folder, LOCK_EX | LOCK_NB) == 0)
		return true;
	(void)err_set(err, errno, "the folder of %s: %s", file->shown, strerror(errno));
	fd_close(&login->folder);
	return false;
}

static bool name_new(struct login *login, const char *name, struct err *err)
{
	const int size =
		snprintf(login->made_name, sizeof(login->made_name), ".%s.glovebox", name);

	return (size > 0 && (size_t)size < sizeof(login->made_name)) ||
	       err_set(err, ENAMETOOLONG, "file %s: its name is too long", name);
}

/* Rename the new file to NAME, for good. */
static bool put_new(struct login *login, const char *name)
{
	return renameat(login->folder, login->made_name, login->folder, name) == 0 &&
	       fsync(login->folder) == 0;
}

/*
 * Locked: take up the new file that a killed front has left, when it is whole and younger
 * than the file; else remove it.
 */
static void recover(struct login *login, const struct source_login *file)
{
	auto_close int fd = openat(login->folder, login->made_name,
				   O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat left, st = {0};
	struct refresh_tokens tokens = {0};
	auto_value struct value *root = NULL;
	struct buf text;
	bool whole;

	if (fd < 0 && errno == ENOENT)
		return;
	buf_init(&text, SOURCE_FILE_MAX + MORE_ROOM);
	whole = fd >= 0 && fstat(fd, &left) == 0 && S_ISREG(left.st_mode) &&
		left.st_uid == geteuid() && (left.st_mode & (S_IRWXG | S_IRWXO)) == 0 &&
		fstatat(login->folder, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		clock_ns(&left.st_mtim) > clock_ns(&st.st_mtim) &&
		fd_read_all(fd, &text, file->shown, NULL) &&
		parse(buf_str(&text), &root, NULL) &&
		read_tokens(login->refresh->credential, root, &tokens, NULL) &&
		refresh_tokens_are_any(&tokens);
	if (!whole || !put_new(login, file->name))
		(void)unlinkat(login->folder, login->made_name, 0);
	refresh_tokens_fini(&tokens);
	text_fini(&text);
}

/* Locked: make the new file, with room for SIZE bytes and for new tokens. */
static bool make_new(struct login *login, const struct source_login *file, off_t size,
		     struct err *err)
{
	login->made = openat(login->folder, login->made_name,
			     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			     NEW_FILE_MODE);
	if (login->made >= 0) {
		errno = posix_fallocate(login->made, 0, size + MORE_ROOM);
		if (errno == 0 || errno == EOPNOTSUPP)
			return true;
	}
	return err_set(err, errno,
		       "the renewed login could not be written beside %s: %s: renew it "
		       "outside",
		       file->shown, strerror(errno));
}

static bool write_failed(struct login *login, const struct source_login *file,
			 struct err *err)
{
	/* Written or not, the next start looks at it. */
	fd_close(&login->made);
	return err_set(err, errno, "%s could not be written: %s: log in again",
		       file->shown, strerror(errno));
}

/* Write TEXT into the new file, from its beginning. */
static bool fill_new(struct login *login, const struct source_login *file,
		     struct str text, struct err *err)
{
	return (lseek(login->made, 0, SEEK_SET) == 0 &&
		fd_write_all(login->made, text.data, text.size, err) &&
		ftruncate(login->made, (off_t)text.size) == 0 && fsync(login->made) == 0) ||
	       write_failed(login, file, err);
}

/* Give the new file, which is filled, the name of FILE. */
static bool name_made(struct login *login, const struct source_login *file, struct err *err)
{
	if (!put_new(login, file->name))
		return write_failed(login, file, err);
	fd_close(&login->made);
	return true;
}

/* Is FILE as it was with THEN? A program outside may have written it meanwhile. */
static bool is_unchanged(const struct login *login, const struct source_login *file,
			 const struct stat *then)
{
	struct stat now;

	return fstatat(login->folder, file->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       now.st_dev == then->st_dev && now.st_ino == then->st_ino &&
	       now.st_size == then->st_size && now.st_mode == then->st_mode &&
	       clock_ns(&now.st_mtim) == clock_ns(&then->st_mtim);
}

/*
 * Locked, and FILE holds TOKENS, which were used up by a renewal of this cell: write those
 * that came for them again. TEXT is that of FILE.
 */
static bool heal(struct login *login, const struct source_login *file,
		 struct refresh_tokens *tokens, const struct stat *st, struct buf *text,
		 struct err *err)
{
	const struct credential *credential = login->refresh->credential;
	struct buf renewed;
	bool fine;

	if (!has_used_up(login, file->pointer) || !holds_used(login, file->pointer, tokens))
		return true;
	buf_init(&renewed, SOURCE_FILE_MAX);
	fine = login_print_renewed(credential, buf_str(text), &login->last,
				   login->last_ms, &renewed, err) &&
	       fill_new(login, file, buf_str(&renewed), err) &&
	       (is_unchanged(login, file, st) ||
		err_set(err, EAGAIN, "%s is being written: try again later", file->shown)) &&
	       name_made(login, file, err) && make_new(login, file, st->st_size, err);
	if (fine)
		buf_swap(text, &renewed);
	text_fini(&renewed);
	for (size_t i = 0; fine && i < CREDENTIAL_TOKENS_MAX; i++) {
		if (login->last.items[i] == NULL)
			continue;
		free(tokens->items[i]);
		tokens->items[i] = memory_copy(login->last.items[i]);
	}
	return fine;
}

/*
 * Locked, after a renewal of this cell: are TOKENS, of TEXT, so new that another one would
 * only use them up? Then ANSWER is made of the file.
 */
static bool is_fresh(const struct login *login, const struct refresh_tokens *tokens,
		     struct str text, struct buf *answer)
{
	const struct credential_refresh *rules = &login->refresh->credential->refresh;
	const int64_t now_ms = clock_wall_ms();
	auto_value struct value *root = NULL;

	return clock_now_ms() < login->fresh_until_ms && refresh_tokens_are_any(tokens) &&
	       parse(text, &root, NULL) &&
	       (rules->expires == NULL ||
		expires_in(rules, root, now_ms) > FRESH_MS / SECOND_MS) &&
	       login_print_answer(login->refresh, text, now_ms, answer, NULL);
}

/* Locked: read the tokens that are given away, unless there is an ANSWER without that. */
static bool begin_once(struct login *login, struct buf *answer, struct err *err)
{
	struct refresh_tokens tokens = {0};
	struct source_login file;
	struct stat st;
	struct buf *text = &login->text;
	struct buf tried;
	bool fine;

	buf_clear(text);
	buf_init(&tried, SOURCE_FILE_MAX);
	fine = look(login, &file, &st, text, &tokens, err);
	if (fine && (st.st_mode & S_IWUSR) == 0)
		fine = err_set(err, EACCES, "%s is read-only: renew it outside", file.shown);
	if (fine && st.st_size + MORE_ROOM > SOURCE_FILE_MAX)
		fine = err_set(err, EFBIG, "%s is too large to be renewed", file.shown);
	fine = fine &&
	       login_print_renewed(login->refresh->credential, buf_str(text), &tokens, 0,
				   &tried, err) &&
	       (login->made >= 0 || make_new(login, &file, st.st_size, err)) &&
	       heal(login, &file, &tokens, &st, text, err);
	text_fini(&tried);
	/* The tokens that came last are known until other tokens are given away. */
	if (!fine || is_fresh(login, &tokens, buf_str(text), answer)) {
		refresh_tokens_fini(&tokens);
		return fine;
	}
	if (has_used_up(login, file.pointer)) {
		refresh_tokens_fini(&login->spent);
		login->spent = login->sent;
		login->sent = (struct refresh_tokens){0};
	}
	refresh_tokens_fini(&login->sent);
	refresh_tokens_fini(&login->last);
	login->sent = tokens;
	return true;
}

static bool begin(struct login *login, struct buf *answer, struct err *err)
{
	bool fine = false;

	for (int i = 0; i < KEEP_TRIES && !fine; i++) {
		err->code = 0;
		fine = begin_once(login, answer, err);
		if (err->code != EAGAIN)
			break;
	}
	return fine;
}

static void try_begin(struct login *login)
{
	struct source_login file;
	struct err why = {0};
	struct buf answer;
	int fd = source_open_login(login->source, &file, &why);
	bool fine = fd >= 0 && name_new(login, file.name, &why) && lock(login, &file, &why);

	fd_close(&fd);
	if (!fine && why.code == EWOULDBLOCK && clock_now_ms() < login->until_ms) {
		login->step.due_ms = clock_now_ms() + TRY_MS;
		return;
	}
	buf_init(&answer, REFRESH_BODY_MAX);
	if (fine) {
		recover(login, &file);
		fine = begin(login, &answer, &why);
	} else if (why.code == EWOULDBLOCK) {
		(void)err_set(&why, EWOULDBLOCK,
			      "another program has locked the folder of %s: try again later",
			      file.shown);
	}
	if (fine && answer.size == 0) {
		login->state = RENEWING;
		login->step.due_ms = clock_now_ms() + LOGIN_RENEW_MS;
		login->given(login->context, &login->sent, NULL);
	} else {
		unlock(login);
		if (fine)
			login->answered(login->context, buf_str(&answer), NULL);
		else
			login->given(login->context, NULL, &why);
	}
	buf_fini(&answer);
}

/* Does the file hold other tokens than those that were sent? Then ANSWER is made of it. */
static bool has_changed(const struct login *login, struct buf *answer)
{
	struct refresh_tokens tokens = {0};
	struct source_login file;
	struct stat st;
	struct buf text;
	struct err err = {0};
	bool changed;

	buf_init(&text, SOURCE_FILE_MAX);
	changed = look(login, &file, &st, &text, &tokens, &err) &&
		  refresh_tokens_are_any(&tokens) &&
		  !holds_used(login, file.pointer, &tokens) &&
		  login_print_answer(login->refresh, buf_str(&text), clock_wall_ms(),
				     answer, NULL);
	text_fini(&text);
	refresh_tokens_fini(&tokens);
	return changed;
}

static void try_await(struct login *login)
{
	struct buf answer;

	buf_init(&answer, REFRESH_BODY_MAX);
	if (has_changed(login, &answer) || clock_now_ms() >= login->until_ms) {
		login_answer *answered = login->answered;

		unlock(login);
		answered(login->context, buf_str(&answer), NULL);
	} else {
		login->step.due_ms = clock_now_ms() + TRY_MS;
	}
	buf_fini(&answer);
}

/* Keep the new tokens in memory: a program outside may bring the used ones back. */
static void remember(struct login *login)
{
	const struct refresh_tokens *fresh = &login->fresh;

	refresh_tokens_fini(&login->last);
	for (size_t i = 0; i < CREDENTIAL_TOKENS_MAX; i++)
		login->last.items[i] = memory_copy(fresh->items[i]);
	login->last.expires_s = fresh->expires_s;
	login->last_ms = clock_wall_ms();
	login->fresh_until_ms = 0;
	if (fresh->expires_s == 0 || fresh->expires_s > FRESH_MS / SECOND_MS)
		login->fresh_until_ms = clock_now_ms() + FRESH_MS;
}

enum kept {
	KEPT,         /* in the file, or it holds other tokens */
	KEPT_LATER,   /* the file is not sound, or it changes */
	KEPT_NOWHERE, /* the new file could not be written */
};

/* Put the new tokens into the file, unless it holds other ones: then ANSWER is made of it. */
static enum kept keep_once(struct login *login, struct buf *answer, struct err *err)
{
	const struct credential *credential = login->refresh->credential;
	const int64_t now_ms = clock_wall_ms();
	struct refresh_tokens held = {0};
	struct source_login file;
	struct stat st;
	struct buf text, renewed;
	enum kept kept = KEPT_LATER;
	bool fine;

	buf_init(&text, SOURCE_FILE_MAX);
	buf_init(&renewed, SOURCE_FILE_MAX);
	fine = look(login, &file, &st, &text, &held, err) &&
	       (refresh_tokens_are_any(&held) ||
		err_set(err, ENOENT, "%s holds no tokens", file.shown));
	if (fine && !holds_used(login, file.pointer, &held)) {
		if (login_print_answer(login->refresh, buf_str(&text), now_ms, answer, err))
			kept = KEPT;
	} else if (fine && login_print_renewed(credential, buf_str(&text), &login->fresh,
					       now_ms, &renewed, err)) {
		if (!fill_new(login, &file, buf_str(&renewed), err))
			kept = KEPT_NOWHERE;
		else if (!is_unchanged(login, &file, &st))
			(void)err_set(err, EAGAIN, "%s is being written", file.shown);
		else
			kept = name_made(login, &file, err) ? KEPT : KEPT_NOWHERE;
		if (kept == KEPT)
			remember(login);
	}
	text_fini(&renewed);
	text_fini(&text);
	refresh_tokens_fini(&held);
	return kept;
}

/*
 * The file is not sound for too long: leave the new tokens in the new file, over what the
 * file held before. A file that is not there or holds no tokens was logged out of.
 */
static void leave_new(struct login *login, struct err *err)
{
	const struct source_login file = {.shown = login->made_name};
	struct err why = {0};
	struct buf renewed;

	remember(login);
	if (err->code == ENOENT || login->made < 0)
		return;
	buf_init(&renewed, SOURCE_FILE_MAX);
	if (login_print_renewed(login->refresh->credential, buf_str(&login->text),
				&login->fresh, clock_wall_ms(), &renewed, &why) &&
	    fill_new(login, &file, buf_str(&renewed), &why)) {
		fd_close(&login->made);
		(void)err_set(&why, err->code,
			      "%.300s; its new tokens are in %s beside it, and are taken from "
			      "there when it can be read",
			      err->text, login->made_name);
		*err = why;
	}
	text_fini(&renewed);
}

/*
 * The front was stopped for so long that the lock is gone: take it again, for tokens that
 * came in the meantime. False while another cell has it.
 */
static bool lock_again(struct login *login, struct err *err)
{
	struct source_login file;
	struct stat st;
	auto_close int fd = source_open_login(login->source, &file, err);

	if (fd < 0 || !lock(login, &file, err))
		return false;
	recover(login, &file);
	if (fstat(fd, &st) == 0 && make_new(login, &file, st.st_size, err))
		return true;
	if (login->made >= 0)
		(void)unlinkat(login->folder, login->made_name, 0);
	fd_close(&login->made);
	fd_close(&login->folder);
	return false;
}

static void try_keep(struct login *login)
{
	enum kept kept = KEPT_LATER;
	struct err err = {0};
	struct buf answer;

	buf_init(&answer, REFRESH_BODY_MAX);
	for (int i = 0; kept == KEPT_LATER && i < KEEP_TRIES; i++) {
		if (login->folder < 0 && !lock_again(login, &err))
			break;
		kept = keep_once(login, &answer, &err);
		if (err.code != EAGAIN)
			break;
	}
	if (kept == KEPT_LATER && clock_now_ms() < login->until_ms) {
		login->step.due_ms = clock_now_ms() + TRY_MS;
	} else {
		if (kept == KEPT_LATER)
			leave_new(login, &err);
		unlock(login);
		if (login->answered != NULL)
			login->answered(login->context, buf_str(&answer),
					kept == KEPT ? NULL : &err);
	}
	buf_fini(&answer);
}

static void step_due(struct timer *timer)
{
	struct login *login = timer->context;

	switch (login->state) {
	case LOCKING:
		try_begin(login);
		break;
	case AWAITING:
		try_await(login);
		break;
	case KEEPING:
		try_keep(login);
		break;
	case RENEWING:
		unlock(login);
		break;
	case RESTING:
		break;
	}
}

struct login *login_new(const struct refresh *refresh, const struct source *source,
			struct loop *loop)
{
	struct login *login = memory_alloc(sizeof(*login));
	struct source_login file;
	struct err err;

	login->refresh = refresh;
	login->source = source;
	login->loop = loop;
	login->folder = -1;
	login->made = -1;
	buf_init(&login->text, SOURCE_FILE_MAX);
	login->step =
		(struct timer){.due_ms = CLOCK_NEVER, .due = step_due, .context = login};
	auto_close int fd = source_open_login(source, &file, &err);
	/* With a renewal of another cell under way there is nothing to take up. */
	if (fd >= 0 && name_new(login, file.name, &err) && lock(login, &file, &err)) {
		recover(login, &file);
		unlock(login);
	}
	return login;
}

void login_free(struct login *login)
{
	if (login == NULL)
		return;
	if (login->state == KEEPING) {
		login->answered = NULL;
		login->until_ms = 0;
		try_keep(login);
	}
	unlock(login);
	text_fini(&login->text);
	refresh_tokens_fini(&login->spent);
	refresh_tokens_fini(&login->sent);
	refresh_tokens_fini(&login->last);
	free(login);
}

bool login_copy(const struct login *login, struct buf *out, struct err *err)
{
	struct source_login file;
	struct stat st;
	struct buf text;
	bool fine;

	buf_init(&text, SOURCE_FILE_MAX);
	fine = read_file(login, &file, &st, &text, err) &&
	       login_print_copy(login->refresh, buf_str(&text), out, err);
	text_fini(&text);
	return fine;
}

bool login_look(const struct login *login, struct refresh_tokens *tokens)
{
	struct source_login file;
	struct stat st;
	struct buf text;
	struct err err = {0};
	bool fine;

	buf_init(&text, SOURCE_FILE_MAX);
	fine = look(login, &file, &st, &text, tokens, &err);
	text_fini(&text);
	return fine;
}

void login_begin(struct login *login, login_tokens *done, login_answer *fresh, void *context)
{
	const struct err busy = {EBUSY, "the login is being renewed"};

	if (login->state != RESTING) {
		done(context, NULL, &busy);
		return;
	}
	login->state = LOCKING;
	login->given = done;
	login->answered = fresh;
	login->context = context;
	login->until_ms = clock_now_ms() + LOGIN_LOCK_MS;
	login->step.due_ms = login->rest_until_ms;
	loop_add_timer(login->loop, &login->step);
	if (clock_now_ms() >= login->rest_until_ms)
		try_begin(login);
}

void login_keep(struct login *login, struct refresh_tokens *take_fresh,
		login_answer *done, void *context)
{
	const bool locked = login->state == RENEWING;

	if (!locked) {
		unlock(login);
		loop_add_timer(login->loop, &login->step);
	}
	login->state = KEEPING;
	login->answered = done;
	login->context = context;
	login->fresh = *take_fresh;
	*take_fresh = (struct refresh_tokens){0};
	login->until_ms = clock_now_ms() + (locked ? LOGIN_KEEP_MS : LOGIN_LOCK_MS);
	try_keep(login);
}

void login_await(struct login *login, login_answer *done, void *context)
{
	if (login->state != RENEWING) {
		done(context, STR(""), NULL);
		return;
	}
	login->state = AWAITING;
	login->answered = done;
	login->context = context;
	login->until_ms = clock_now_ms() + LOGIN_AWAIT_MS;
	try_await(login);
}

void login_end(struct login *login)
{
	if (login->state == RENEWING)
		unlock(login);
}

bool login_go_on(struct login *login)
{
	if (login != NULL && login->state == KEEPING && clock_now_ms() >= login->step.due_ms)
		try_keep(login);
	return login != NULL && (login->state == RENEWING || login->state == KEEPING);
}
