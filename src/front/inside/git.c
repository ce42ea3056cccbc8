/*
 * git: answers git's question for a credential, and asks the door of the cell for the signature of a
 * commit.
 */

#include "front/inside/git.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "front/verb.h"
#include "ssh/commit.h"
#include "ssh/message.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* A credential. */

enum {
	ARGUMENTS = 5,
	QUESTION_MAX = 64 << 10, /* git's lines are of 8 KiB, and some ten of them */
};

/* The value of NAME in QUESTION, lines "name=value"; the last one counts. */
static struct str value_of(struct str question, const char *name)
{
	struct str line, value = {0};

	while (str_next_line(&question, &line) && line.size > 0) {
		const size_t end = str_find(line, STR("="), 0);

		if (end != (size_t)-1 && str_is(str_part(line, 0, end), name))
			value = str_part(line, end + 1, line.size);
	}
	return value;
}

/* Does QUESTION ask for SERVER, "protocol://host" with the port where it is unusual? */
static bool is_for(struct str question, const char *server)
{
	const struct str protocol = value_of(question, "protocol");
	const struct str host = value_of(question, "host");
	struct buf asked;
	bool same;

	buf_init(&asked, QUESTION_MAX);
	(void)buf_addstr(&asked, protocol);
	(void)buf_adds(&asked, "://");
	(void)buf_addstr(&asked, host);
	same = asked.size == strlen(asked.data) && strcasecmp(asked.data, server) == 0;
	buf_fini(&asked);
	return same;
}

static int answer(char **argv)
{
	struct buf question;
	int code = CODE_DONE;

	buf_init(&question, QUESTION_MAX);
	if (!fd_read_all(STDIN_FILENO, &question, "git's question", NULL))
		code = CODE_FAILED;
	else if (is_for(buf_str(&question), argv[1]))
		(void)printf("username=%s\npassword=%s\n", argv[2], argv[3]);
	buf_fini(&question);
	return code;
}

bool git_credential_program(int argc, char **argv, int *code)
{
	if (argc == 0 || strcmp(path_base_name(argv[0]), SHAPE_GIT_CREDENTIAL_NAME) != 0)
		return false;
	if (argc != ARGUMENTS) {
		(void)fprintf(stderr,
			      SHAPE_GIT_CREDENTIAL_NAME ": git starts it in a cell\n");
		*code = CODE_USAGE;
	} else {
		*code = strcmp(argv[ARGUMENTS - 1], "get") == 0 ? answer(argv) : CODE_DONE;
	}
	return true;
}

/* A signature. */

enum {
	KEY_FILE_MAX = 64 << 10,
	/* The person is asked meanwhile, after those who asked before. */
	ANSWER_S = 6 * 60,
	PIECE = 4 << 10, /* of one read */
	MESSAGE_ROOM = SSH_MESSAGE_HEAD + SSH_MESSAGE_MAX,
};

#define SIGNATURE_END ".sig"

/* The words of git: -Y sign -n git -f KEY [-U] FILE. */
struct wanted {
	const char *action, *namespace, *key, *file;
};

static void read_words(int argc, char **argv, struct wanted *wanted)
{
	for (int i = 1; i < argc; i++) {
		const char **value = strcmp(argv[i], "-Y") == 0   ? &wanted->action
				     : strcmp(argv[i], "-n") == 0 ? &wanted->namespace
				     : strcmp(argv[i], "-f") == 0 ? &wanted->key
								  : NULL;

		if (value != NULL && i + 1 < argc)
			*value = argv[++i];
		else if (value == NULL && argv[i][0] != '-')
			wanted->file = argv[i];
	}
}

/* Append the public key in TEXT, "KIND BASE64 …". */
static bool key_parse(struct str text, struct buf *key)
{
	struct str line, kind, digits;

	return str_next_line(&text, &line) && str_next_word(&line, &kind) &&
	       str_next_word(&line, &digits) && buf_base64_read(str_trim(digits), key) &&
	       str_equal(ssh_message_key_kind(buf_str(key)), kind);
}

/* Append the public key of PATH, which may be the name of the private one. */
static bool key_read(const char *path, struct buf *key, struct err *err)
{
	char public[PATH_MAX];
	struct buf text;
	bool found;

	buf_init(&text, KEY_FILE_MAX);
	found = fd_read_file(path, KEY_FILE_MAX, &text, NULL) &&
		key_parse(buf_str(&text), key);
	if (!found &&
	    snprintf(public, sizeof(public), "%s.pub", path) < (int)sizeof(public)) {
		buf_clear(&text);
		buf_clear(key);
		found = fd_read_file(public, KEY_FILE_MAX, &text, NULL) &&
			key_parse(buf_str(&text), key);
	}
	buf_fini(&text);
	return found ||
	       err_set(err, ENOENT,
		       "%s is no public key that the cell can read. Set user.signingkey to "
		       "\"key::\" and a line of ssh-add -L",
		       path);
}

/* The door. */

static bool door_connect(int *fd, struct err *err)
{
	const struct timeval limit = {.tv_sec = ANSWER_S};
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SHAPE_SSH};
	auto_close int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (made < 0 ||
	    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	    connect(made, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return err_set(err, errno,
			       "this cell has no ssh agent: start it with --ssh");
	*fd = fd_take(&made);
	return true;
}

/* Send REQUEST, and read the answer into ANSWER. *BODY is its body. */
static bool door_ask(int fd, const struct buf *request, struct buf *answer,
		     struct str *body, struct err *err)
{
	enum ssh_frame found;

	buf_clear(answer);
	if (request->overflowed)
		return err_set(err, E2BIG, "the commit is over %d bytes", SSH_TEXT_MAX);
	if (!fd_write_all(fd, request->data, request->size, err))
		return false;
	while ((found = ssh_message_first(buf_str(answer), body)) == SSH_FRAME_CUT) {
		char *at = buf_reserve(answer, PIECE);
		const ssize_t n = at != NULL ? recv(fd, at, PIECE, 0) : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		buf_commit(answer, (size_t)n);
	}
	return found == SSH_FRAME_WHOLE ||
	       err_set(err, ECONNRESET, "the ssh agent gives no answer");
}

static bool check_key(int fd, struct str key, struct buf *answer, struct err *err)
{
	struct buf request, keys;
	struct str body;
	bool fine;

	buf_init(&request, MESSAGE_ROOM);
	buf_init(&keys, MESSAGE_ROOM);
	ssh_message_ask_keys(&request);
	fine = door_ask(fd, &request, answer, &body, err) &&
	       ((ssh_message_read_keys(body, &keys) &&
		 ssh_message_has_key(buf_str(&keys), key)) ||
		err_set(err, ENOENT,
			"your ssh agent outside has no such key (ssh-add -L lists them)"));
	buf_fini(&keys);
	buf_fini(&request);
	return fine;
}

/* Append the armoured signature of TEXT by KEY. */
static bool sign(struct str key, struct str text, struct buf *out, struct err *err)
{
	auto_close int fd = -1;
	struct str body, whole;
	struct buf request, answer;
	bool fine;

	buf_init(&request, MESSAGE_ROOM);
	buf_init(&answer, MESSAGE_ROOM + PIECE);
	ssh_message_add_git(&request, key, text);
	fine = door_connect(&fd, err) && check_key(fd, key, &answer, err) &&
	       door_ask(fd, &request, &answer, &body, err);
	if (fine && !ssh_message_read_git(body, &whole))
		fine = err_set(err, EPERM, "not signed: %.*s", (int)whole.size,
			       whole.size > 0 ? whole.data : "");
	if (fine)
		ssh_commit_add_armour(whole, out);
	buf_fini(&answer);
	buf_fini(&request);
	return fine;
}

static bool write_signature(const char *file, const struct buf *text, struct err *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s" SIGNATURE_END, file) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "%s: the name is too long", file);
	auto_close int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd >= 0 ? fd_write_all(fd, text->data, text->size, err)
		       : err_set(err, errno, "%s: %s", path, strerror(errno));
}

static bool carry_out(const struct wanted *wanted, struct err *err)
{
	struct buf key, text, signature;
	bool fine;

	if (wanted->namespace == NULL || strcmp(wanted->namespace, "git") != 0 ||
	    wanted->key == NULL || wanted->file == NULL)
		return err_set(err, EINVAL, "only commits and tags of git are signed");
	buf_init(&key, SSH_KEY_MAX);
	buf_init(&text, SSH_TEXT_MAX);
	buf_init(&signature, MESSAGE_ROOM);
	fine = key_read(wanted->key, &key, err) &&
	       fd_read_file(wanted->file, SSH_TEXT_MAX, &text, err) &&
	       sign(buf_str(&key), buf_str(&text), &signature, err) &&
	       write_signature(wanted->file, &signature, err);
	buf_fini(&signature);
	buf_fini(&text);
	buf_fini(&key);
	return fine;
}

bool git_sign_program(int argc, char **argv, int *code)
{
	static char real[] = "ssh-keygen";
	struct wanted wanted = {.action = ""};
	struct err err = {0};

	if (argc == 0 || strcmp(path_base_name(argv[0]), SHAPE_GIT_SIGN_NAME) != 0)
		return false;
	read_words(argc, argv, &wanted);
	if (strcmp(wanted.action, "sign") != 0) {
		argv[0] = real;
		(void)execvp(real, argv);
		(void)err_set(&err, errno, "%s: %s", real, strerror(errno));
	} else if (carry_out(&wanted, &err)) {
		*code = 0;
		return true;
	}
	(void)fprintf(stderr, "glovebox: %s\n", err.text);
	*code = 1;
	return true;
}
