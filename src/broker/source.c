/* source: looks for a value in its places, and runs the commands that print one. */

#include "broker/source.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "process/loop.h"
#include "process/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PATH_ROOM = 4096 + 256,
	WHY_MAX = ERR_TEXT_MAX,
	LINKS_MAX = 40,      /* as the kernel follows */
	LINE_MAX_READ = 256, /* of the first line of a script, as the kernel reads it */
	PATH_LIST_MAX = 64 << 10,
	INTERPRETERS_MAX = 5, /* the kernel follows no more of them */
};

/* The result of a look at one place. */
enum outcome {
	ABSENT, /* the next place is tried */
	WRONG,  /* the search ends with a sentence */
	FOUND,
	PENDING, /* a program runs */
};

/* A text that is wiped when it goes. Its memory never moves. */
struct secret {
	char *data;
	size_t size, room;
};

struct waiting {
	source_done *done;
	void *context;
	struct waiting *next;
};

/* The state of a place when the session began. It is empty for a variable. */
struct held {
	/* 0: it may be used; ENOENT: it was not there; else it must not be used */
	struct err why;
	char *path; /* of a file its real path, of a program its name in a folder of PATH */
	int folder; /* of the file, held; -1: none */
	struct stat program;
};

struct source {
	const struct credential *credential;
	const struct source_terms *terms;
	struct held *held; /* one for each place */
	size_t held_count;
	struct waiting *waiting; /* in their order */
	size_t at;               /* the place that is looked at */
	struct secret value;
	struct buf missing; /* why the places before it gave none */
	/* the output of a command, while it is kept */
	struct secret kept;
	size_t kept_at;
	struct timer forget;
	/* the place whose command failed, why, and until when it is not started again */
	struct err failure;
	size_t failed_at;
	int64_t failed_until_ms;
	/* the program that runs */
	pid_t pid; /* 0: none */
	int pidfd, output;
	struct watch end, more;
	struct timer late;
	struct secret text;
	unsigned answering; /* depth of answers: one may ask again, or free the source */
	bool gone;          /* it was freed in an answer; the outermost one ends it */
};

static void secret_fini(struct secret *secret)
{
	if (secret->data != NULL)
		explicit_bzero(secret->data, secret->room);
	free(secret->data);
	*secret = (struct secret){0};
}

static void secret_init(struct secret *secret, size_t room)
{
	secret_fini(secret);
	secret->data = memory_alloc(room + 1);
	secret->room = room + 1;
}

static void secret_set(struct secret *secret, struct str text)
{
	secret_init(secret, text.size);
	memcpy(secret->data, text.data, text.size);
	secret->size = text.size;
}

/* Checks a value. */

/* TEXT is a value, perhaps with a line end. PLACE names it in sentences. */
static bool take_value(struct str text, const char *place, struct secret *value,
		       struct err *err)
{
	if (str_ends(text, STR("\n")))
		text.size--;
	if (str_ends(text, STR("\r")))
		text.size--;
	if (text.size < SOURCE_VALUE_MIN || text.size > SOURCE_VALUE_MAX)
		return err_set(err, EINVAL, "%s: a key has %d to %d bytes, this has %zu",
			       place, SOURCE_VALUE_MIN, SOURCE_VALUE_MAX, text.size);
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] <= 0x20 || text.data[i] >= 0x7f)
			return err_set(err, EINVAL,
				       "%s: a key is one line of visible ASCII, without blanks",
				       place);
	}
	secret_set(value, text);
	return true;
}

/* Variables. */

static const char *variable(const struct source_terms *terms, const char *name)
{
	const size_t size = strlen(name);

	for (const char *const *at = terms->environment; *at != NULL; at++) {
		if (strncmp(*at, name, size) == 0 && (*at)[size] == '=')
			return *at + size + 1;
	}
	return NULL;
}

static enum outcome look_env(const struct source_terms *terms,
			     const struct credential_source *place, struct secret *value,
			     struct err *err)
{
	const char *text = variable(terms, place->text);

	if (text == NULL || text[0] == '\0') {
		(void)err_set(err, ENOENT, "%s is not set", place->text);
		return ABSENT;
	}
	return take_value(str_of(text), place->shown, value, err) ? FOUND : WRONG;
}

/* Finds files and programs, before anything of the cell runs. */

/* The folder of the cell's view that holds PATH, which is real; NULL: none does. */
static const char *in_view(const struct source_terms *terms, const char *path, bool writable)
{
	return terms->shown != NULL ? terms->shown(terms->context, path, writable) : NULL;
}

/*
 * Resolve PATH, which is absolute, to REAL, which has no links. Each folder on the way must
 * be one that the cell cannot write: there it could put a link to another place. False with
 * ERR; ENOENT: a folder of it is missing. The last name may be missing when MAY_MISS.
 */
static bool walk(const struct source_terms *terms, const char *path, bool may_miss,
		 char real[PATH_ROOM], struct err *err)
{
	char rest[PATH_ROOM], more[PATH_ROOM], target[PATH_ROOM];
	size_t used = 0;
	unsigned links = 0;
	const char *at = rest;
	int size = snprintf(rest, sizeof(rest), "%s", path);

	while (size >= 0 && (size_t)size < sizeof(rest)) {
		struct stat st;

		at += strspn(at, "/");
		real[used] = '\0';
		if (*at == '\0')
			break;
		const char *folder = in_view(terms, used > 0 ? real : "/", true);
		if (folder != NULL)
			return err_set(err, EPERM,
				       "it goes through %s, which the cell may write",
				       folder);
		const size_t name = strcspn(at, "/"), before = used;
		const char *next = at + name;

		if (name == 2 && at[0] == '.' && at[1] == '.') {
			while (used > 0 && real[--used] != '/')
				;
		} else if (name != 1 || at[0] != '.') {
			if (used + 1 + name >= PATH_ROOM)
				return err_set(err, ENAMETOOLONG, "its name is too long");
			real[used++] = '/';
			memcpy(real + used, at, name);
			used += name;
		}
		real[used] = '\0';
		at = next;
		if (used <= before)
			continue;
		if (lstat(real, &st) < 0) {
			if (errno == ENOENT && may_miss && next[strspn(next, "/")] == '\0')
				break;
			return err_set(err, errno == ENOTDIR ? ENOENT : errno, "%s",
				       strerror(errno));
		}
		if (!S_ISLNK(st.st_mode))
			continue;
		const ssize_t got = readlink(real, target, sizeof(target) - 1);

		if (got < 0 || ++links > LINKS_MAX)
			return err_set(err, ELOOP, "%s", strerror(ELOOP));
		target[got] = '\0';
		used = target[0] == '/' ? 0 : before;
		memcpy(more, at, strlen(at) + 1);
		at = rest;
		size = snprintf(rest, sizeof(rest), "%s%s", target, more);
	}
	if (size < 0 || (size_t)size >= sizeof(rest))
		return err_set(err, ENAMETOOLONG, "its name is too long");
	if (used == 0)
		memcpy(real, "/", 2);
	const char *folder = in_view(terms, real, true);
	return folder == NULL ||
	       err_set(err, EPERM, "it lies in %s, which the cell may write", folder);
}

static void held_fini(struct held *held)
{
	free(held->path);
	fd_close(&held->folder);
}

/* Find the folder of the file of PLACE and hold it. */
static bool hold_file(const struct source_terms *terms,
		      const struct credential_source *place, struct held *held)
{
	static const char remedy[] = "keep the key in a folder that the cell does not see";
	const bool in_home = place->text[0] == '~';
	char path[PATH_ROOM], real[PATH_ROOM];
	struct err why = {0};
	int size;

	if (in_home && terms->home == NULL)
		return err_set(&held->why, ENOENT, "%s is not there", place->text);
	size = snprintf(path, sizeof(path), "%s%s", in_home ? terms->home : "",
			place->text + in_home);
	if (size < 0 || (size_t)size >= sizeof(path))
		return err_set(&held->why, ENAMETOOLONG,
			       "file %.64s…: its name is too long", place->text);
	if (!walk(terms, path, true, real, &why))
		return err_set(&held->why, why.code,
			       why.code == ENOENT  ? "%s is not there"
			       : why.code == EPERM ? "file %s: %s: %s"
						   : "file %s: %s",
			       place->text, why.text, remedy);
	const char *folder = in_view(terms, real, false);
	if (folder != NULL)
		return err_set(&held->why, EPERM,
			       "file %s: it lies in %s, which the cell sees: %s",
			       place->text, folder, remedy);
	held->path = memory_copy(real);
	char *name = strrchr(real, '/');
	name[name == real] = '\0';
	held->folder = open(real, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (held->folder < 0)
		return err_set(&held->why, errno, "file %s: %s", place->text,
			       strerror(errno));
	return true;
}

/* May the program at PATH, and the interpreters that its first line names, be trusted? */
static bool check_program(const struct source_terms *terms, const char *path, struct err *err)
{
	char real[PATH_ROOM], line[LINE_MAX_READ + 1], name[LINE_MAX_READ + 1];

	for (int i = 0; i < INTERPRETERS_MAX; i++) {
		if (!walk(terms, path, false, real, err))
			return false;
		auto_close int fd =
			open(real, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		const ssize_t got = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

		/* A program that may be run and not read is no script that runs. */
		line[got > 0 ? got : 0] = '\0';
		if (got < 3 || line[0] != '#' || line[1] != '!')
			return true;
		const char *at = line + 2 + strspn(line + 2, " \t");
		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, " \t\r\n"), at);
		if (name[0] != '/')
			return err_set(err, EPERM,
				       "its first line names no absolute interpreter");
		path = name;
	}
	return true;
}

/* May the program of PLACE, which is at PATH, be started with its arguments? */
static bool check_command(const struct source_terms *terms,
			  const struct credential_source *place, const char *path,
			  struct err *err)
{
	char real[PATH_ROOM];
	struct err why = {0};

	if (!check_program(terms, path, &why))
		return err_set(err, EPERM,
			       "%s: %s: %s: name the program by its absolute path, in a folder "
			       "that the cell cannot write",
			       place->shown, path, why.text);
	for (size_t i = 1; place->from == FROM_COMMAND && place->argv[i] != NULL; i++) {
		if (place->argv[i][0] == '/' &&
		    !walk(terms, place->argv[i], true, real, &why) && why.code == EPERM)
			return err_set(err, EPERM, "%s: %s: %s: keep it in another folder",
				       place->shown, place->argv[i], why.text);
	}
	return true;
}

static bool is_program(const char *path, struct stat *st)
{
	return stat(path, st) == 0 && S_ISREG(st->st_mode) && access(path, X_OK) == 0;
}

/* Find NAME in PATH, of which relative folders do not count. */
static bool find_program(const struct source_terms *terms, const char *name,
			 char path[PATH_ROOM], struct stat *st)
{
	const char *list = variable(terms, "PATH");
	struct str rest = str_of(list != NULL ? list : "/usr/local/bin:/usr/bin:/bin");
	struct str folder;

	if (name[0] == '/') {
		(void)snprintf(path, PATH_ROOM, "%s", name);
		return is_program(path, st);
	}
	while (path_next_folder(&rest, &folder)) {
		int size = snprintf(path, PATH_ROOM, "%.*s/%s", (int)folder.size,
				    folder.data, name);

		if (folder.data[0] == '/' && size > 0 && size < PATH_ROOM &&
		    is_program(path, st))
			return true;
	}
	return false;
}

static bool hold_program(const struct source_terms *terms,
			 const struct credential_source *place, struct held *held)
{
	const char *name = place->from == FROM_COMMAND ? place->argv[0] : "secret-tool";
	char path[PATH_ROOM];

	if (name[0] != '/' && strchr(name, '/') != NULL)
		return err_set(&held->why, EPERM,
			       "%s: name the program by its absolute path, in a "
			       "folder that the cell cannot write",
			       place->shown);
	if (!find_program(terms, name, path, &held->program))
		return err_set(&held->why, ENOENT, "there is no program %s", name);
	if (!check_command(terms, place, path, &held->why))
		return false;
	held->path = memory_copy(path);
	return true;
}

static void hold(const struct source_terms *terms, const struct credential_source *place,
		 struct held *held)
{
	held->folder = -1;
	if (place->from == FROM_FILE)
		(void)hold_file(terms, place, held);
	else if (place->from != FROM_ENV)
		(void)hold_program(terms, place, held);
}

/* Files. */

/*
 * Open the file of HELD, whose name is SHOWN. No link is followed: the name was resolved
 * when the session began. -1 with ERR; ENOENT: it is not there.
 */
static int open_file(const struct held *held, const char *shown, struct stat *st,
		     struct err *err)
{
	auto_close int fd =
		openat(held->folder, path_base_name(held->path),
		       O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	const char *wrong = NULL;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		(void)err_set(err, ENOENT, "%s is not there", shown);
		return -1;
	}
	if (fd < 0 && errno == ELOOP) {
		(void)err_set(err, EPERM,
			      "file %s has become a link since the session began", shown);
		return -1;
	}
	if (fd < 0 || fstat(fd, st) < 0) {
		(void)err_set(err, EIO, "file %s: %s", shown, strerror(errno));
		return -1;
	}
	if (!S_ISREG(st->st_mode))
		wrong = "is no regular file";
	else if (st->st_uid != geteuid())
		wrong = "belongs to another user";
	else if (st->st_size > SOURCE_FILE_MAX)
		wrong = "is larger than 1 MiB";
	if (wrong != NULL) {
		(void)err_set(err, EPERM, "file %s %s", shown, wrong);
		return -1;
	}
	if ((st->st_mode & (S_IRWXG | S_IRWXO)) != 0) {
		(void)err_set(err, EPERM, "file %s may be read by others: chmod 600 %s",
			      shown, shown);
		return -1;
	}
	return fd_take(&fd);
}

/* Read FD into TEXT, which has room for the size that the file had. */
static bool read_text(int fd, struct secret *text)
{
	while (text->size + 1 < text->room) {
		ssize_t got =
			read(fd, text->data + text->size, text->room - 1 - text->size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0;
		text->size += (size_t)got;
	}
	return true;
}

static enum outcome take_member(struct str text, const struct credential_source *place,
				struct secret *value, struct err *err)
{
	auto_value struct value *root = NULL;
	enum outcome outcome = ABSENT;

	if (!value_parse(text, 0, &root, NULL)) {
		(void)err_set(err, EINVAL, "file %s is no JSON", place->text);
		return WRONG;
	}
	const struct value *part = value_at_pointer(root, place->more);
	if (value_str(part).size == 0)
		(void)err_set(err, ENOENT, "%s has no text at %s", place->text, place->more);
	else
		outcome = take_value(value_str(part), place->shown, value, err) ? FOUND
										: WRONG;
	value_wipe(root);
	return outcome;
}

/* The value behind NAME and its sign in LINE, without quotes; empty: LINE is another one. */
static struct str value_in_line(struct str line, const char *name)
{
	struct str rest;

	if (!str_starts(line, str_of(name)))
		return (struct str){0};
	rest = str_trim(str_part(line, strlen(name), line.size));
	if (!str_starts(rest, STR("=")) && !str_starts(rest, STR(":")))
		return (struct str){0};
	rest = str_trim(str_part(rest, 1, rest.size));
	if (str_starts(rest, STR("\"")) || str_starts(rest, STR("'")))
		rest = str_part(rest, 1, str_find(rest, (struct str){rest.data, 1}, 1) - 1);
	/* npm puts a variable in, which is a source of its own. */
	return str_find(rest, STR("${"), 0) == (size_t)-1 ? rest : (struct str){0};
}

/* Take the value of a line in TEXT, as `more` of PLACE names it. */
static enum outcome take_line(struct str text, const struct credential_source *place,
			      struct secret *value, struct err *err)
{
	const bool has_section = place->more[0] == '[';
	const char *name = has_section ? strchr(place->more, ']') + 1 : place->more + 1;
	const struct str section = {place->more, (size_t)(name - place->more)};
	struct str line, found = {0};
	bool inside = !has_section;

	while (found.size == 0 && str_next_line(&text, &line)) {
		line = str_trim(line);
		if (str_starts(line, STR("[")))
			inside = has_section && str_equal(line, section);
		else if (inside)
			found = value_in_line(line, name);
	}
	if (found.size > 0)
		return take_value(found, place->shown, value, err) ? FOUND : WRONG;
	(void)err_set(err, ENOENT, "%s has no value of %s", place->text, name);
	return ABSENT;
}

static enum outcome look_file(const struct held *held, const struct credential_source *place,
			      struct secret *value, struct err *err)
{
	struct secret text = {0};
	enum outcome outcome = WRONG;
	struct stat st;
	auto_close int fd = open_file(held, place->text, &st, err);

	if (fd < 0)
		return err->code == ENOENT ? ABSENT : WRONG;
	secret_init(&text, (size_t)st.st_size);
	if (!read_text(fd, &text))
		(void)err_set(err, EIO, "file %s: %s", place->text, strerror(errno));
	else if (place->more != NULL)
		outcome = (place->more[0] == '/' ? take_member : take_line)(
			(struct str){text.data, text.size}, place, value, err);
	else if (take_value((struct str){text.data, text.size}, place->shown, value, err))
		outcome = FOUND;
	secret_fini(&text);
	return outcome;
}

/* Commands. */

enum { ARGUMENTS_MAX = CREDENTIAL_COMMAND_MAX + 1 };

/* The arguments of PLACE, whose program is at PATH. */
static void set_arguments(const struct credential_source *place, const char *path,
			  const char *argv[ARGUMENTS_MAX])
{
	const char *const keyring[] = {"secret-tool", "lookup",    "service", place->text,
				       "username",    place->more, NULL};
	const char *const *from = place->from == FROM_COMMAND ? place->argv : keyring;
	size_t count = 0;

	for (; from[count] != NULL && count + 1 < ARGUMENTS_MAX; count++)
		argv[count] = from[count];
	argv[count] = NULL;
	argv[0] = path;
}

/*
 * Is the program of HELD the file that it was when the session began? An approval may have
 * given the cell more since, so that the way to it is looked at again.
 */
static bool check_start(const struct source_terms *terms, const struct held *held,
			const struct credential_source *place, struct err *err)
{
	const struct stat *then = &held->program;
	struct stat now;

	if (!check_command(terms, place, held->path, err))
		return false;
	if (stat(held->path, &now) < 0 || now.st_dev != then->st_dev ||
	    now.st_ino != then->st_ino || now.st_ctim.tv_sec != then->st_ctim.tv_sec ||
	    now.st_ctim.tv_nsec != then->st_ctim.tv_nsec)
		return err_set(err, EPERM,
			       "%s: %s has changed since the session began: start a new one",
			       place->shown, held->path);
	return true;
}

/* Append PATH without the folders that are relative, missing or the cell's to write. */
static void add_path(const struct source_terms *terms, struct buf *path)
{
	struct str rest = str_of(variable(terms, "PATH")), folder;
	char name[PATH_ROOM], real[PATH_ROOM];
	struct err why;

	(void)buf_adds(path, "PATH=");
	for (const char *gap = ""; path_next_folder(&rest, &folder);) {
		int size = snprintf(name, sizeof(name), "%.*s", (int)folder.size,
				    folder.data);

		if (name[0] != '/' || size < 0 || (size_t)size >= sizeof(name) ||
		    !walk(terms, name, false, real, &why))
			continue;
		(void)buf_addf(path, "%s%s", gap, name);
		gap = ":";
	}
}

/*
 * The variables of a command: PATH, and nothing that names another key or a folder that the
 * cell may write. NULL-ended; free() it.
 */
static const char **small_environment(const struct source_terms *terms, const char *path)
{
	static const char *const names[] = {"HOME",
					    "USER",
					    "LOGNAME",
					    "LANG",
					    "LC_ALL",
					    "TERM",
					    "XDG_CONFIG_HOME",
					    "XDG_DATA_HOME",
					    "XDG_STATE_HOME",
					    "XDG_CACHE_HOME",
					    "XDG_RUNTIME_DIR",
					    "DBUS_SESSION_BUS_ADDRESS",
					    "GNUPGHOME",
					    "GPG_TTY",
					    "PASSWORD_STORE_DIR",
					    "SSH_AUTH_SOCK",
					    "DISPLAY",
					    "WAYLAND_DISPLAY"};
	const size_t count = sizeof(names) / sizeof(names[0]);
	const char **small = memory_array(count + 2, sizeof(*small));
	char real[PATH_ROOM];
	size_t used = 0;

	small[used++] = path;
	for (size_t i = 0; i < count; i++) {
		const char *value = variable(terms, names[i]);
		struct err why = {0};

		/* A program of the keyring or of gpg runs what its settings name. */
		if (value != NULL &&
		    (i == 0 || value[0] != '/' || walk(terms, value, true, real, &why) ||
		     why.code != EPERM))
			small[used++] = value - strlen(names[i]) - 1;
	}
	return small;
}

static void source_go(struct source *source);

/* Close all that belongs to the program, which has ended or is killed here. */
static void program_over(struct source *source, int *status)
{
	*status = 0;
	if (source->pid > 0) {
		/* The program, unless it was reaped, and all that it has left behind. */
		(void)kill(-source->pid, SIGKILL);
		(void)kill(source->pid, SIGKILL);
		while (waitpid(source->pid, status, 0) < 0 && errno == EINTR)
			;
	}
	source->pid = 0;
	loop_remove(&source->end);
	loop_remove(&source->more);
	loop_remove_timer(&source->late);
	fd_close(&source->pidfd);
	fd_close(&source->output);
}

/* Read what has come. False when it is too much. */
static bool read_output(struct source *source)
{
	struct secret *text = &source->text;

	for (;;) {
		size_t room = text->room - text->size;
		ssize_t got = read(source->output, text->data + text->size, room);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return true;
		if (got == 0) {
			loop_remove(&source->more);
			return true;
		}
		text->size += (size_t)got;
		if (text->size == text->room)
			return false;
	}
}

/* Answers. */

/* Free SOURCE, in which nothing runs any more. */
static void source_end(struct source *source)
{
	secret_fini(&source->value);
	secret_fini(&source->kept);
	secret_fini(&source->text);
	buf_fini(&source->missing);
	for (size_t i = 0; i < source->held_count; i++)
		held_fini(&source->held[i]);
	free(source->held);
	free(source);
}

/* Answer all questions with VALUE, or, where it has no data, with WHY. */
static void answer(struct source *source, const struct secret *value, const struct err *why)
{
	struct waiting *waiting = source->waiting;
	struct secret own = {0};

	/* An answer may lead to another value in the place of VALUE. */
	if (value->data != NULL)
		secret_set(&own, (struct str){value->data, value->size});
	source->waiting = NULL;
	source->answering++;
	while (waiting != NULL) {
		struct waiting *next = waiting->next;

		if (!source->gone)
			waiting->done(waiting->context, (struct str){own.data, own.size},
				      own.data == NULL ? why : NULL);
		free(waiting);
		waiting = next;
	}
	secret_fini(&own);
	if (--source->answering == 0 && source->gone)
		source_end(source);
}

/* The program has ended with STATUS, or was ended because of BAD (or NULL). */
static void program_ended(struct source *source, int status, const char *bad)
{
	const struct credential_source *place = &source->credential->sources[source->at];
	const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	struct secret value = {0};
	struct err err = {0};

	if (bad == NULL && place->from == FROM_KEYRING && source->text.size == 0) {
		/* The keyring says so, and does not tell it from being closed. */
		(void)buf_addf(&source->missing, "%sthe keyring has no %s",
			       source->missing.size > 0 ? ", " : "",
			       place->shown + strlen("keyring:"));
		secret_fini(&source->text);
		source->at++;
		source_go(source);
		return;
	}
	if (bad != NULL)
		(void)err_set(&err, ECHILD, "%s: %s", place->shown, bad);
	else if (failed && WIFEXITED(status))
		(void)err_set(&err, ECHILD, "%s: it ended with exit code %d",
			      place->shown, WEXITSTATUS(status));
	else if (failed)
		(void)err_set(&err, ECHILD, "%s: signal %d ended it", place->shown,
			      WTERMSIG(status));
	else
		(void)take_value((struct str){source->text.data, source->text.size},
				 place->shown, &value, &err);
	secret_fini(&source->text);
	if (value.data == NULL) {
		source->failure = err;
		source->failed_at = source->at;
		source->failed_until_ms = clock_deadline(SOURCE_RETRY_S);
	}
	if (value.data != NULL && place->from == FROM_COMMAND && place->keep_s > 0) {
		secret_set(&source->kept, (struct str){value.data, value.size});
		source->kept_at = source->at;
		source->forget.due_ms = clock_deadline(place->keep_s);
		loop_add_timer(source->terms->loop, &source->forget);
	}
	answer(source, &value, &err);
	secret_fini(&value);
}

static void output_ready(struct watch *watch, short events)
{
	struct source *source = watch->context;
	int status;

	(void)events;
	if (read_output(source))
		return;
	program_over(source, &status);
	program_ended(source, status, "it printed more than 64 KiB");
}

static void end_ready(struct watch *watch, short events)
{
	struct source *source = watch->context;
	const char *bad = NULL;
	int status;

	(void)events;
	if (!read_output(source))
		bad = "it printed more than 64 KiB";
	program_over(source, &status);
	program_ended(source, status, bad);
}

static void command_late(struct timer *timer)
{
	struct source *source = timer->context;
	int status;

	program_over(source, &status);
	program_ended(source, status, "it took longer than 10 s, and was ended");
}

static void forget_due(struct timer *timer)
{
	struct source *source = timer->context;

	loop_remove_timer(timer);
	secret_fini(&source->kept);
}

/* Watch the program that was started, with its output. */
static void command_watch(struct source *source)
{
	struct loop *loop = source->terms->loop;

	secret_init(&source->text, SOURCE_TEXT_MAX);
	source->more = (struct watch){.fd = source->output,
				      .events = POLLIN,
				      .ready = output_ready,
				      .context = source};
	source->end = (struct watch){.fd = source->pidfd,
				     .events = POLLIN,
				     .ready = end_ready,
				     .context = source};
	source->late = (struct timer){.due_ms = clock_deadline(SOURCE_COMMAND_S),
				      .due = command_late,
				      .context = source};
	loop_add(loop, &source->more);
	loop_add(loop, &source->end);
	loop_add_timer(loop, &source->late);
}

static enum outcome start_command(struct source *source,
				  const struct credential_source *place, struct err *err)
{
	const struct held *held = &source->held[source->at];
	const char *argv[ARGUMENTS_MAX];
	struct buf path;
	bool fine;
	int ends[2];

	set_arguments(place, held->path, argv);
	if (!check_start(source->terms, held, place, err) || !fd_pipe(ends, err))
		return WRONG;
	buf_init(&path, PATH_LIST_MAX);
	add_path(source->terms, &path);
	auto_free const char **environment = small_environment(source->terms, path.data);
	const struct program_start start = {.argv = argv,
					    .environment = environment,
					    .folder = "/",
					    .fds = {-1, ends[1], -1},
					    .ends_with_us = true};
	fine = program_start(&start, &source->pid, err);
	buf_fini(&path);
	fd_close(&ends[1]);
	source->output = ends[0];
	if (!fine) {
		fd_close(&source->output);
		source->pid = 0;
		if (err->code != ENOENT)
			return WRONG;
		(void)err_set(err, ENOENT, "there is no program %s", argv[0]);
		return ABSENT;
	}
	source->pidfd = kernel_pidfd_open(source->pid);
	if (source->pidfd < 0 || !fd_set_blocking(source->output, false, err)) {
		int status;

		(void)err_set(err, errno, "%s: it cannot be watched", place->shown);
		program_over(source, &status);
		return WRONG;
	}
	command_watch(source);
	return PENDING;
}

/* Looks at the places in their order. */

static enum outcome look_at(struct source *source, const struct credential_source *place,
			    struct err *err)
{
	const struct held *held = &source->held[source->at];

	if (held->why.code != 0) {
		*err = held->why;
		return err->code == ENOENT ? ABSENT : WRONG;
	}
	switch (place->from) {
	case FROM_ENV:
		return look_env(source->terms, place, &source->value, err);
	case FROM_FILE:
		return look_file(held, place, &source->value, err);
	case FROM_COMMAND:
	case FROM_KEYRING:
		break;
	}
	if (source->failed_at == source->at && clock_now_ms() < source->failed_until_ms) {
		*err = source->failure;
		return WRONG;
	}
	if (source->kept.data == NULL || source->kept_at != source->at)
		return start_command(source, place, err);
	secret_set(&source->value, (struct str){source->kept.data, source->kept.size});
	return FOUND;
}

static void source_go(struct source *source)
{
	const struct credential *credential = source->credential;
	struct err err = {0};

	for (; source->at < credential->source_count; source->at++) {
		enum outcome outcome =
			look_at(source, &credential->sources[source->at], &err);

		if (outcome == PENDING)
			return;
		if (outcome != ABSENT) {
			struct secret value = source->value;

			source->value = (struct secret){0};
			answer(source, &value, &err);
			secret_fini(&value);
			return;
		}
		(void)buf_addf(&source->missing, "%s%s",
			       source->missing.size > 0 ? ", " : "", err.text);
	}
	(void)err_set(&err, ENOENT, "%s", source->missing.data);
	answer(source, &(struct secret){0}, &err);
}

bool source_look(const struct credential *credential, const struct source_terms *terms,
		 struct buf *shown, struct err *err)
{
	struct buf missing;
	enum outcome outcome = ABSENT;

	buf_init(&missing, WHY_MAX);
	for (size_t i = 0; i < credential->source_count && outcome == ABSENT; i++) {
		const struct credential_source *place = &credential->sources[i];
		struct secret value = {0};
		struct held held = {0};
		struct err why = {0};

		hold(terms, place, &held);
		why = held.why;
		if (why.code != 0)
			outcome = why.code == ENOENT ? ABSENT : WRONG;
		else if (place->from == FROM_ENV)
			outcome = look_env(terms, place, &value, &why);
		else if (place->from == FROM_FILE)
			outcome = look_file(&held, place, &value, &why);
		else
			outcome = FOUND;
		held_fini(&held);
		secret_fini(&value);
		if (outcome == FOUND)
			(void)buf_adds(shown, place->shown);
		else if (outcome == WRONG)
			(void)err_set(err, EINVAL, "%s", why.text);
		else
			(void)buf_addf(&missing, "%s%s", i > 0 ? ", " : "", why.text);
	}
	if (outcome == ABSENT)
		(void)err_set(err, ENOENT, "%s", missing.data);
	buf_fini(&missing);
	return outcome == FOUND;
}

struct source *source_new(const struct credential *credential,
			  const struct source_terms *terms)
{
	struct source *source = memory_alloc(sizeof(*source));

	source->credential = credential;
	source->terms = terms;
	source->pidfd = -1;
	source->output = -1;
	source->forget = (struct timer){.due = forget_due, .context = source};
	buf_init(&source->missing, WHY_MAX);
	source->held = memory_array(credential->source_count + 1, sizeof(*source->held));
	for (size_t i = 0; i < credential->source_count; i++) {
		hold(terms, &credential->sources[i], &source->held[source->held_count++]);
		if (source->held[i].folder >= 0 && terms->keep_hidden != NULL)
			terms->keep_hidden(terms->context, source->held[i].path);
	}
	return source;
}

void source_ask(struct source *source, source_done *done, void *context)
{
	struct waiting *waiting = memory_alloc(sizeof(*waiting));
	struct waiting **end = &source->waiting;

	*waiting = (struct waiting){.done = done, .context = context};
	while (*end != NULL)
		end = &(*end)->next;
	*end = waiting;
	if (source->pid != 0)
		return;
	source->at = 0;
	buf_clear(&source->missing);
	source_go(source);
}

int source_open_login(const struct source *source, struct source_login *login,
		      struct err *err)
{
	const struct credential *credential = source->credential;

	for (size_t i = 0; i < credential->source_count; i++) {
		const struct credential_source *place = &credential->sources[i];
		const struct held *held = &source->held[i];
		struct stat st;

		if (place->from == FROM_ENV) {
			const char *text = variable(source->terms, place->text);

			if (text == NULL || text[0] == '\0')
				continue;
		}
		if (place->from != FROM_FILE || place->more == NULL) {
			(void)err_set(err, EINVAL,
				      "its token comes from %s, and is no login in a file",
				      place->shown);
			return -1;
		}
		if (held->why.code == ENOENT)
			continue;
		if (held->why.code != 0) {
			*err = held->why;
			return -1;
		}
		*login = (struct source_login){held->folder, path_base_name(held->path),
					       place->text, place->more};
		int fd = open_file(held, place->text, &st, err);

		if (fd >= 0 || err->code != ENOENT)
			return fd;
	}
	(void)err_set(err, ENOENT, "the file of the login is not there");
	return -1;
}

void source_free(struct source *source)
{
	int status;

	if (source == NULL)
		return;
	program_over(source, &status);
	loop_remove_timer(&source->forget);
	for (struct waiting *next; source->waiting != NULL; source->waiting = next) {
		next = source->waiting->next;
		free(source->waiting);
	}
	source->gone = true;
	if (source->answering == 0)
		source_end(source);
}
