/* dns: prints one question and reads one answer. Each read checks its offset first. */
#include "proxy/dns.h"

#include <string.h>
#include <strings.h>

enum {
	HEADER = 12,
	CLASS_IN = 1,
	TYPE_CNAME = 5,
	FLAG_ANSWER = 0x8000,
	FLAG_OPCODE = 0x7800,
	FLAG_CUT = 0x0200,
	FLAG_WANTED = 0x0100, /* recursion */
	CODE = 0x000f,
	CODE_NO_NAME = 3,
	POINTER = 0xc0,
	HOPS_MAX = 64,     /* pointers in one name */
	RECORDS_MAX = 128, /* looked at */
	ALIASES_MAX = 16,
	NAME_TEXT = 256,
};

static void put(unsigned char *out, size_t *at, unsigned value)
{
	out[(*at)++] = (unsigned char)(value >> 8);
	out[(*at)++] = (unsigned char)value;
}

size_t dns_print_question(const char *name, enum dns_type type, uint16_t id,
			  unsigned char out[DNS_QUESTION_MAX])
{
	size_t at = 0;

	put(out, &at, id);
	put(out, &at, FLAG_WANTED);
	put(out, &at, 1);
	put(out, &at, 0);
	put(out, &at, 0);
	put(out, &at, 0);
	while (*name != '\0') {
		size_t length = strcspn(name, ".");

		out[at++] = (unsigned char)length;
		memcpy(out + at, name, length);
		at += length;
		name += length + (name[length] == '.');
	}
	out[at++] = 0;
	put(out, &at, type);
	put(out, &at, CLASS_IN);
	return at;
}

struct reader {
	struct str message;
	size_t at;
	bool broken;
};

static unsigned take(struct reader *reader, size_t bytes)
{
	unsigned value = 0;

	if (reader->broken || reader->message.size - reader->at < bytes) {
		reader->broken = true;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | (unsigned char)reader->message.data[reader->at++];
	return value;
}

static void skip(struct reader *reader, size_t bytes)
{
	if (reader->broken || reader->message.size - reader->at < bytes)
		reader->broken = true;
	else
		reader->at += bytes;
}

/* Read a name as text with dots. Pointers must lead strictly backwards. */
static void take_name(struct reader *reader, char text[NAME_TEXT])
{
	struct reader here = *reader;
	size_t used = 0, behind = 0, lowest = reader->at;

	for (int hops = 0; !here.broken;) {
		unsigned length = take(&here, 1);

		if (length == 0)
			break;
		if ((length & POINTER) == POINTER) {
			size_t to = (length & ~(unsigned)POINTER) << 8 | take(&here, 1);
			if (behind == 0)
				behind = here.at;
			here.broken = here.broken || to >= lowest || ++hops > HOPS_MAX;
			lowest = to;
			here.at = to;
			continue;
		}
		if (length > 63 || used + length + 2 > NAME_TEXT ||
		    here.message.size - here.at < length) {
			here.broken = true;
			break;
		}
		if (used > 0)
			text[used++] = '.';
		memcpy(text + used, here.message.data + here.at, length);
		/*
		 * Replace a dot or NUL inside a label by a byte that no host name has. So
		 * one label "a.b" is never taken for two.
		 */
		for (size_t i = used; i < used + length; i++)
			text[i] = text[i] == '.' || text[i] == '\0' ? '?' : text[i];
		used += length;
		here.at += length;
	}
	text[used] = '\0';
	reader->broken = here.broken;
	if (!here.broken)
		reader->at = behind != 0 ? behind : here.at;
}

struct record {
	char owner[NAME_TEXT];
	unsigned type, class;
	size_t size;
	size_t at; /* of its data */
};

static bool take_record(struct reader *reader, struct record *record)
{
	take_name(reader, record->owner);
	record->type = take(reader, 2);
	record->class = take(reader, 2);
	skip(reader, 4); /* time to live */
	record->size = take(reader, 2);
	record->at = reader->at;
	skip(reader, record->size);
	return !reader->broken;
}

/*
 * Follow the aliases that begin at NAME and replace NAME by the last one. False when an
 * alias is malformed or there are too many.
 */
static bool follow_aliases(const struct reader *answers, size_t count, char name[NAME_TEXT])
{
	for (int hops = 0; hops < ALIASES_MAX; hops++) {
		struct reader reader = *answers;
		struct record record;
		bool moved = false;

		for (size_t i = 0; i < count && !moved && take_record(&reader, &record);
		     i++) {
			if (record.type != TYPE_CNAME || record.class != CLASS_IN ||
			    strcasecmp(record.owner, name) != 0)
				continue;
			struct reader data = reader;
			data.at = record.at;
			take_name(&data, name);
			moved = !data.broken;
			if (data.broken)
				return false;
		}
		if (!moved)
			return true;
	}
	return false;
}

bool dns_read_question(struct str message, struct network_host *host)
{
	struct reader reader = {.message = message, .at = 2};
	char asked[NAME_TEXT];
	unsigned type;

	if (message.size < HEADER ||
	    (take(&reader, 2) & (FLAG_ANSWER | FLAG_OPCODE)) != 0 || take(&reader, 2) != 1)
		return false;
	skip(&reader, HEADER - 6);
	take_name(&reader, asked);
	type = take(&reader, 2);
	return take(&reader, 2) == CLASS_IN && !reader.broken &&
	       (type == DNS_A || type == DNS_AAAA) &&
	       network_parse_host(str_of(asked), host, NULL) && host->kind == NETWORK_NAME;
}

static bool check_question(struct reader *reader, const char *name, enum dns_type type,
			   uint16_t id, unsigned *flags, size_t *answers)
{
	char asked[NAME_TEXT];

	if (take(reader, 2) != id)
		return false;
	*flags = take(reader, 2);
	if ((*flags & FLAG_ANSWER) == 0 || (*flags & FLAG_OPCODE) != 0 ||
	    take(reader, 2) != 1)
		return false;
	*answers = take(reader, 2);
	skip(reader, 4);
	take_name(reader, asked);
	return take(reader, 2) == (unsigned)type && take(reader, 2) == CLASS_IN &&
	       !reader->broken && strcasecmp(asked, name) == 0;
}

enum dns_answer dns_read_answer(struct str message, const char *name, enum dns_type type,
				uint16_t id, struct dns_addresses *addresses)
{
	const size_t size = type == DNS_A ? 4 : NETWORK_ADDRESS;
	struct reader reader = {.message = message};
	struct dns_addresses found = {0};
	char end[NAME_TEXT];
	unsigned flags = 0;
	size_t count = 0;

	if (message.size < HEADER ||
	    !check_question(&reader, name, type, id, &flags, &count))
		return DNS_STRANGE;
	if ((flags & FLAG_CUT) != 0)
		return DNS_CUT;
	if ((flags & CODE) != 0 && (flags & CODE) != CODE_NO_NAME)
		return DNS_FAILED;
	if (count > RECORDS_MAX)
		count = RECORDS_MAX;
	memcpy(end, name, strlen(name) + 1);
	if ((flags & CODE) == CODE_NO_NAME || !follow_aliases(&reader, count, end))
		count = 0;
	for (size_t i = 0; i < count && found.count < DNS_ADDRESSES_MAX; i++) {
		struct record record;

		if (!take_record(&reader, &record))
			return DNS_STRANGE;
		if (record.type == (unsigned)type && record.class == CLASS_IN &&
		    record.size == size && strcasecmp(record.owner, end) == 0)
			memcpy(found.bytes[found.count++], message.data + record.at, size);
	}
	*addresses = found;
	return DNS_FOUND;
}
