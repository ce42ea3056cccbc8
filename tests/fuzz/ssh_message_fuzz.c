/*
 * ssh_message_fuzz: any bytes as those of a socket, as a message to an agent, as its answers, as what signs a
 * user in, and as a commit. All that is read lies in the bytes; what is read as a list of
 * keys is read again in the same way; and no bytes are both a commit and what signs in.
 */
#include "base/memory.h"
#include "ssh/commit.h"
#include "ssh/message.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct str part, const char *data, size_t size)
{
	assert(part.size == 0 ||
	       (part.data >= data && part.data + part.size <= data + size));
}

/* The first message of TEXT lies behind its length, and in TEXT. */
static void check_first(struct str text)
{
	struct str body = {NULL, 0};

	if (ssh_message_first(text, &body) != SSH_FRAME_WHOLE)
		return;
	assert(body.data == text.data + SSH_MESSAGE_HEAD);
	assert(body.size > 0 && body.size <= text.size - SSH_MESSAGE_HEAD);
}

static void check_keys(struct str text)
{
	struct buf first, second;

	buf_init(&first, SSH_MESSAGE_MAX);
	buf_init(&second, SSH_MESSAGE_MAX);
	if (ssh_message_read_keys(text, &first)) {
		assert(first.size <= SSH_KEYS_BYTES + 5);
		assert(ssh_message_read_keys(buf_str(&first), &second));
		assert(str_equal(buf_str(&first), buf_str(&second)));
		assert(!ssh_message_has_key(buf_str(&first), STR("")));
	}
	buf_fini(&second);
	buf_fini(&first);
}

/* A subject is lines in a row, none of which is empty; the line behind it has no part in it. */
static void check_subject(struct str subject)
{
	struct str line;

	assert(subject.size == 0 || subject.data[subject.size - 1] != '\n');
	while (str_next_line(&subject, &line))
		assert(line.size > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = memory_alloc(size + 1);
	const struct str text = {copy, size};
	struct ssh_message message;
	struct ssh_userauth userauth;
	struct ssh_commit commit;
	struct str answer;

	memcpy(copy, data, size);
	ssh_message_read(text, &message);
	check_inside(message.key, copy, size);
	check_inside(message.data, copy, size);
	check_inside(message.host_key, copy, size);
	check_inside(message.session, copy, size);
	check_inside(message.signature, copy, size);
	check_first(text);
	check_keys(text);
	(void)ssh_message_read_git(text, &answer);
	check_inside(answer, copy, size);
	const bool signs_in = ssh_message_read_userauth(text, &userauth);
	if (signs_in) {
		assert(userauth.user.size > 0 && userauth.key.size > 0);
		check_inside(userauth.host_key, copy, size);
	}
	if (ssh_commit_read(text, &commit)) {
		assert(!signs_in);
		check_inside(commit.author, copy, size);
		check_inside(commit.subject, copy, size);
		check_subject(commit.subject);
	}
	return 0;
}
