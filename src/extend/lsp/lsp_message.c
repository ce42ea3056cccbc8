/* lsp_message: reads what language servers write. */

#include "extend/lsp/lsp_message.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	MESSAGE_MAX = 300,    /* bytes of what is told of one finding */
	NAME_MAX_BYTES = 200, /* bytes of the name of a symbol */
	SYMBOLS_DEPTH = 8,
	UTF16_PAIR_LENGTH = 4, /* bytes in UTF-8 of a character with two units of UTF-16 */
};

/* Messages and their headers. */

void lsp_reader_init(struct lsp_reader *reader)
{
	*reader = (struct lsp_reader){0};
	buf_init(&reader->head, LSP_HEAD_MAX);
	buf_init(&reader->body, LSP_BODY_MAX);
}

void lsp_reader_clear(struct lsp_reader *reader)
{
	buf_clear(&reader->head);
	buf_clear(&reader->body);
	reader->in_body = false;
}

void lsp_reader_fini(struct lsp_reader *reader)
{
	buf_fini(&reader->head);
	buf_fini(&reader->body);
}

/* Read the length in the header TEXT. */
static bool read_length(struct str text, size_t *length, struct err *err)
{
	static const char name[] = "content-length:";
	struct str line;
	bool found = false;

	while (str_next_line(&text, &line)) {
		uint64_t number;
		struct err unused;

		if (!str_starts_caseless(line, name))
			continue;
		auto_free char *digits = memory_copy_str(
			str_trim(str_part(line, sizeof(name) - 1, SIZE_MAX)));
		if (found || !text_parse_count(digits, LSP_BODY_MAX, &number, &unused))
			return err_set(err, EPROTO,
				       "sends a message whose length is no number up to "
				       "16 MiB");
		*length = (size_t)number;
		found = true;
	}
	return found || err_set(err, EPROTO, "sends a message without its length");
}

/* Take bytes of a header. MORE: it goes on. */
static enum lsp_read take_head(struct lsp_reader *reader, struct str *bytes, struct err *err)
{
	size_t at = 0;
	bool ends = false;

	while (at < bytes->size && !ends) {
		const char c = bytes->data[at++];

		if (!buf_addc(&reader->head, c)) {
			(void)err_set(err, EPROTO, "sends what is no message");
			return LSP_READ_WRONG;
		}
		ends = c == '\n' && (str_ends(buf_str(&reader->head), STR("\r\n\r\n")) ||
				     str_ends(buf_str(&reader->head), STR("\n\n")));
	}
	*bytes = str_part(*bytes, at, SIZE_MAX);
	if (!ends)
		return LSP_READ_MORE;
	if (!read_length(buf_str(&reader->head), &reader->wanted, err))
		return LSP_READ_WRONG;
	buf_clear(&reader->head);
	buf_clear(&reader->body);
	reader->in_body = true;
	return LSP_READ_WHOLE;
}

enum lsp_read lsp_reader_take(struct lsp_reader *reader, struct str *bytes, struct err *err)
{
	size_t size;

	if (!reader->in_body) {
		enum lsp_read read = take_head(reader, bytes, err);

		if (read != LSP_READ_WHOLE)
			return read;
	}
	size = reader->wanted - reader->body.size;
	if (size > bytes->size)
		size = bytes->size;
	(void)buf_add(&reader->body, bytes->data, size);
	*bytes = str_part(*bytes, size, SIZE_MAX);
	if (reader->body.size < reader->wanted)
		return LSP_READ_MORE;
	reader->in_body = false;
	return LSP_READ_WHOLE;
}

bool lsp_message_add(struct str text, struct buf *out)
{
	const size_t before = out->size;

	if (buf_addf(out, "Content-Length: %zu\r\n\r\n", text.size) && buf_addstr(out, text))
		return true;
	buf_truncate(out, before);
	return false;
}

const char *lsp_message_language(const char *path)
{
	static const struct {
		const char *suffixes, *language;
	} rows[] = {
		{"c h", "c"},
		{"cc cpp cxx c++ hh hpp hxx", "cpp"},
		{"cs", "csharp"},
		{"go", "go"},
		{"java", "java"},
		{"js mjs cjs", "javascript"},
		{"jsx", "javascriptreact"},
		{"json", "json"},
		{"kt kts", "kotlin"},
		{"lua", "lua"},
		{"md", "markdown"},
		{"php", "php"},
		{"py pyi", "python"},
		{"rb", "ruby"},
		{"rs", "rust"},
		{"sh bash", "shellscript"},
		{"swift", "swift"},
		{"ts mts cts", "typescript"},
		{"tsx", "typescriptreact"},
		{"yaml yml", "yaml"},
		{"zig", "zig"},
	};
	const char *dot = strrchr(path_base_name(path), '.');

	for (size_t i = 0; dot && i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (str_among(rows[i].suffixes, str_of(dot + 1)))
			return rows[i].language;
	}
	return "plaintext";
}

/* Places in a text. */

static struct str line_of(struct str text, uint32_t number)
{
	struct str line = {0};

	for (uint32_t i = 0; i <= number; i++) {
		if (!str_next_line(&text, &line))
			return STR("");
	}
	if (str_ends(line, STR("\r")))
		line.size--;
	return line;
}

/* The units of the first character of LINE, which has BYTES bytes. */
static uint32_t units_of(struct str line, bool in_bytes, size_t *bytes)
{
	*bytes = 1;
	while (*bytes < line.size && (line.data[*bytes] & 0xc0) == 0x80)
		(*bytes)++;
	if (in_bytes)
		return (uint32_t)*bytes;
	return *bytes == UTF16_PAIR_LENGTH ? 2 : 1;
}

uint32_t lsp_message_column(struct str text, uint32_t line, uint32_t units, bool in_bytes)
{
	struct str rest = line_of(text, line);
	uint32_t column = 1, passed = 0;

	while (rest.size > 0 && passed < units) {
		size_t bytes;

		passed += units_of(rest, in_bytes, &bytes);
		rest = str_part(rest, bytes, SIZE_MAX);
		column++;
	}
	return column;
}

uint32_t lsp_message_units(struct str text, uint32_t line, uint32_t column, bool in_bytes)
{
	struct str rest = line_of(text, line);
	uint32_t units = 0;

	while (rest.size > 0 && column > 1) {
		size_t bytes;

		units += units_of(rest, in_bytes, &bytes);
		rest = str_part(rest, bytes, SIZE_MAX);
		column--;
	}
	return units;
}

/* A number of the protocol, which may be anything. */
static uint32_t number_of(const struct value *value)
{
	const int64_t number = value_integer(value);

	return number < 0 ? 0 : number > INT32_MAX ? INT32_MAX : (uint32_t)number;
}

/* Findings. */

void lsp_findings_fini(struct lsp_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		free(findings->items[i].message);
	free(findings->items);
	*findings = (struct lsp_findings){0};
}

void lsp_findings_move(struct lsp_findings *to, struct lsp_findings *from)
{
	lsp_findings_fini(to);
	*to = *from;
	*from = (struct lsp_findings){0};
}

void lsp_findings_copy(struct lsp_findings *to, const struct lsp_findings *from)
{
	struct lsp_findings made = {
		.items = memory_array(from->count + 1, sizeof(made.items[0])),
		.count = from->count,
	};

	for (size_t i = 0; i < from->count; i++) {
		made.items[i] = from->items[i];
		made.items[i].message = memory_copy(from->items[i].message);
	}
	lsp_findings_move(to, &made);
}

/* Append the first line of TEXT, clean, at most MOST bytes of it. */
static void add_line(struct str text, size_t most, struct buf *out)
{
	struct str rest = str_trim(text), line = {0};
	struct buf clean;

	(void)str_next_line(&rest, &line);
	line = str_trim(line);
	if (line.size > most)
		line.size = text_character_border(line, most);
	/* A control byte may become several visible ones. */
	buf_init(&clean, 8 * most);
	(void)text_clean(line, &clean);
	(void)buf_addstr(out, buf_str(&clean));
	buf_fini(&clean);
}

static char *message_of(const struct value *item)
{
	struct buf text;

	buf_init(&text, 8 * MESSAGE_MAX);
	add_line(value_str(value_member(item, "message")), MESSAGE_MAX, &text);
	return buf_take(&text);
}

static enum lsp_severity severity_of(const struct value *item)
{
	const int64_t number = value_integer(value_member(item, "severity"));

	/* The protocol leaves a finding without one to us. */
	return number >= LSP_ERROR && number <= LSP_HINT ? (enum lsp_severity)number
							 : LSP_ERROR;
}

bool lsp_findings_read(const struct value *params, struct str *uri, int64_t *version,
		       struct lsp_findings *findings)
{
	const struct value *list = value_member(params, "diagnostics");
	const struct value *number = value_member(params, "version");
	size_t count = value_count(list);

	*uri = value_str(value_member(params, "uri"));
	*version = value_kind(number) == VALUE_INTEGER ? value_integer(number) : -1;
	*findings = (struct lsp_findings){0};
	if (uri->size == 0 || value_kind(list) != VALUE_ARRAY)
		return false;
	if (count > LSP_FINDINGS_MAX)
		count = LSP_FINDINGS_MAX;
	findings->items = memory_array(count + 1, sizeof(findings->items[0]));
	for (size_t i = 0; i < count; i++) {
		const struct value *item = value_item(list, i);
		const struct value *start =
			value_member(value_member(item, "range"), "start");

		if (value_kind(value_member(item, "message")) != VALUE_STRING)
			continue;
		findings->items[findings->count++] = (struct lsp_finding){
			.severity = severity_of(item),
			.line = number_of(value_member(start, "line")),
			.units = number_of(value_member(start, "character")),
			.message = message_of(item),
		};
	}
	return true;
}

/* Is A the same error as B, in a line with the same text when SAME_LINE? */
static bool is_same(const struct lsp_finding *a, struct str a_text,
		    const struct lsp_finding *b, struct str b_text, bool same_line)
{
	return b->severity == LSP_ERROR && strcmp(a->message, b->message) == 0 &&
	       (!same_line || str_equal(str_trim(line_of(a_text, a->line)),
					str_trim(line_of(b_text, b->line))));
}

void lsp_findings_compare(const struct lsp_findings *before, struct str before_text,
			  const struct lsp_findings *after, struct str after_text,
			  bool *is_new)
{
	auto_free bool *used = memory_array(before->count + 1, sizeof(*used));

	for (size_t i = 0; i < after->count; i++)
		is_new[i] = after->items[i].severity == LSP_ERROR;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < after->count; i++) {
			for (size_t j = 0; j < before->count && is_new[i]; j++) {
				if (used[j] ||
				    !is_same(&after->items[i], after_text,
					     &before->items[j], before_text, pass == 0))
					continue;
				used[j] = true;
				is_new[i] = false;
			}
		}
	}
}

const char *lsp_severity_name(enum lsp_severity severity)
{
	static const char *const names[] = {
		[LSP_ERROR] = "error",
		[LSP_WARNING] = "warning",
		[LSP_INFORMATION] = "information",
		[LSP_HINT] = "hint",
	};

	return names[severity];
}

/* Answers. */

/* Append the place in ITEM, a Location or a LocationLink. False: it is none. */
static bool add_place(const struct value *item, const char *workspace, struct buf *out)
{
	const struct value *link = value_member(item, "targetUri");
	const struct value *range =
		value_member(item, link ? "targetSelectionRange" : "range");
	const struct value *start = value_member(range, "start");
	struct buf path;
	bool fine;

	buf_init(&path, PATH_MAX);
	fine = path_of_uri(value_str(link ? link : value_member(item, "uri")), &path);
	if (fine) {
		text_add_name(out, str_of(path_relative(path.data, workspace)));
		(void)buf_addf(out, ":%u:%u\n", number_of(value_member(start, "line")) + 1,
			       number_of(value_member(start, "character")) + 1);
	}
	buf_fini(&path);
	return fine;
}

void lsp_message_places(const struct value *result, const char *workspace, struct buf *out)
{
	const size_t count = value_count(result);
	size_t told = 0;

	if (value_kind(result) == VALUE_OBJECT) {
		(void)add_place(result, workspace, out);
		return;
	}
	if (value_kind(result) != VALUE_ARRAY)
		return;
	for (size_t i = 0; i < count && told < LSP_LIST_MAX; i++)
		told += add_place(value_item(result, i), workspace, out);
	if (count > LSP_LIST_MAX)
		(void)buf_addf(out, "… and %zu more\n", count - LSP_LIST_MAX);
}

static const char *kind_of(const struct value *symbol)
{
	static const char *const names[] = {
		"symbol",   "file",           "module",      "namespace", "package",
		"class",    "method",         "property",    "field",     "constructor",
		"enum",     "interface",      "function",    "variable",  "constant",
		"string",   "number",         "boolean",     "array",     "object",
		"key",      "null",           "enum member", "struct",    "event",
		"operator", "type parameter",
	};
	const uint32_t kind = number_of(value_member(symbol, "kind"));

	return names[kind < sizeof(names) / sizeof(names[0]) ? kind : 0];
}

struct symbols {
	struct buf *out;
	size_t told, left_out;
};

static void add_symbols(struct symbols *symbols, const struct value *list, int depth)
{
	for (size_t i = 0; value_kind(list) == VALUE_ARRAY && i < value_count(list); i++) {
		const struct value *item = value_item(list, i);
		const struct value *range = value_member(item, "selectionRange");
		const struct value *children = value_member(item, "children");

		if (!range)
			range = value_member(value_member(item, "location"), "range");
		if (symbols->told == LSP_LIST_MAX) {
			symbols->left_out++;
			continue;
		}
		symbols->told++;
		(void)buf_addf(symbols->out, "%u: %*s%s ",
			       number_of(value_member(value_member(range, "start"), "line")) +
				       1,
			       2 * depth, "", kind_of(item));
		add_line(value_str(value_member(item, "name")), NAME_MAX_BYTES,
			 symbols->out);
		(void)buf_addc(symbols->out, '\n');
		if (depth < SYMBOLS_DEPTH)
			add_symbols(symbols, children, depth + 1);
	}
}

void lsp_message_symbols(const struct value *result, struct buf *out)
{
	struct symbols symbols = {.out = out};

	add_symbols(&symbols, result, 0);
	if (symbols.left_out > 0)
		(void)buf_addf(out, "… and %zu more\n", symbols.left_out);
}
