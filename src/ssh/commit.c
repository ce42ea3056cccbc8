/* commit: reads commits and tags, and makes the signatures that git keeps. */

#include "ssh/commit.h"

#include "base/hash.h"
#include "ssh/wire.h"

#include <ctype.h>
#include <stdint.h>

#define SIGNED_MAGIC "SSHSIG"
#define NAMESPACE    STR("git")
#define HASHED_BY    STR("sha256")

enum {
	SIGNATURE_VERSION = 1,
	SHA1_DIGITS = 40,
	SHA256_DIGITS = 64,
	ARMOUR_LINE = 70, /* as ssh-keygen writes it */
};

static bool take_line(struct str *rest, struct str head, struct str *value)
{
	struct str after = *rest, line;

	if (!str_next_line(&after, &line) || !str_starts(line, head))
		return false;
	*value = str_part(line, head.size, line.size);
	*rest = after;
	return true;
}

static bool is_name(struct str digits)
{
	for (size_t i = 0; i < digits.size; i++) {
		if (!isdigit((unsigned char)digits.data[i]) &&
		    (digits.data[i] < 'a' || digits.data[i] > 'f'))
			return false;
	}
	return digits.size == SHA1_DIGITS || digits.size == SHA256_DIGITS;
}

/* Keep of "Name <address> time zone" the person. False: it is written otherwise. */
static bool take_person(struct str line, struct str *person)
{
	const size_t end = str_find(line, STR("> "), 0);

	if (end == (size_t)-1 || str_find(line, STR("<"), 0) > end)
		return false;
	*person = str_part(line, 0, end + 1);
	return true;
}

static bool read_commit(struct str *rest, struct ssh_commit *commit)
{
	struct str value;

	if (!take_line(rest, STR("tree "), &value) || !is_name(value))
		return false;
	while (take_line(rest, STR("parent "), &value)) {
		if (!is_name(value))
			return false;
	}
	return take_line(rest, STR("author "), &value) &&
	       take_person(value, &commit->author) &&
	       take_line(rest, STR("committer "), &value) &&
	       take_person(value, &commit->committer);
}

static bool read_tag(struct str *rest, struct ssh_commit *commit)
{
	struct str value;

	commit->tag = true;
	return take_line(rest, STR("object "), &commit->object) &&
	       is_name(commit->object) && take_line(rest, STR("type "), &commit->type) &&
	       take_line(rest, STR("tag "), &commit->name) &&
	       take_line(rest, STR("tagger "), &value) &&
	       take_person(value, &commit->author);
}

/*
 * May LINE stand in the head of a commit behind its committer? Of two authors git takes the
 * second, and by another encoding it reads another text than a person is shown.
 */
static bool is_further(struct str line)
{
	return str_is(line, "encoding UTF-8") || str_is(line, "encoding utf-8") ||
	       str_starts(line, STR("mergetag ")) || str_starts(line, STR("HG:")) ||
	       str_starts(line, STR(" "));
}

static bool is_blank(struct str line)
{
	size_t at = 0;

	while (at < line.size && isspace((unsigned char)line.data[at]))
		at++;
	return at == line.size;
}

/* The lines of TEXT that git takes for the subject: the first ones that are not empty. */
static struct str subject_of(struct str text)
{
	struct str line, subject = STR("");

	while (str_next_line(&text, &line)) {
		if (!is_blank(line)) {
			if (subject.size == 0)
				subject.data = line.data;
			subject.size = (size_t)(line.data - subject.data) + line.size;
		} else if (subject.size > 0) {
			break;
		}
	}
	return subject;
}

bool ssh_commit_read(struct str text, struct ssh_commit *commit)
{
	struct str line = STR("none");

	*commit = (struct ssh_commit){.subject = STR("")};
	if (str_find(text, (struct str){"", 1}, 0) != (size_t)-1)
		return false;
	if (!(str_starts(text, STR("tree ")) ? read_commit(&text, commit)
					     : read_tag(&text, commit)))
		return false;
	while (str_next_line(&text, &line) && line.size > 0) {
		if (commit->tag || !is_further(line))
			return false;
	}
	/* An empty line ends the head. */
	commit->subject = subject_of(text);
	return line.size == 0;
}

void ssh_commit_add_signed(struct str text, struct buf *out)
{
	uint8_t digest[HASH_BYTES];

	hash_bytes(text, digest);
	(void)buf_adds(out, SIGNED_MAGIC);
	wire_add_string(out, NAMESPACE);
	wire_add_string(out, STR("")); /* reserved */
	wire_add_string(out, HASHED_BY);
	wire_add_string(out, (struct str){(const char *)digest, sizeof(digest)});
}

void ssh_commit_add_signature(struct str key, struct str signature, struct buf *out)
{
	(void)buf_adds(out, SIGNED_MAGIC);
	wire_add_number(out, SIGNATURE_VERSION);
	wire_add_string(out, key);
	wire_add_string(out, NAMESPACE);
	wire_add_string(out, STR(""));
	wire_add_string(out, HASHED_BY);
	wire_add_string(out, signature);
}

void ssh_commit_add_armour(struct str whole, struct buf *out)
{
	struct buf digits;

	buf_init(&digits, out->max);
	(void)buf_base64_add(whole, &digits);
	(void)buf_adds(out, "-----BEGIN SSH SIGNATURE-----\n");
	for (size_t at = 0; at < digits.size; at += ARMOUR_LINE) {
		(void)buf_addstr(out, str_part(buf_str(&digits), at, ARMOUR_LINE));
		(void)buf_addc(out, '\n');
	}
	(void)buf_adds(out, "-----END SSH SIGNATURE-----\n");
	buf_fini(&digits);
}
