/*
 * shell_token: one pass over the bytes. The rules are those of bash; where bash has many,
 * only the few safe ones. The words that are literal here were compared with bash on
 * random texts (tests/gate).
 */
#include "base/text/shell_token.h"

#include "base/text/text.h"

#include <ctype.h>
#include <string.h>

/* The meaning of a byte outside of quotes. */
enum class {
	PLAIN,
	BLANK,
	META, /* ends a word */
	QUOTE,
	BACKSLASH,
	DOLLAR,
	BACKQUOTE,
	PATTERN,
	BRACE,
	TILDE,
	EQUALS,
	HIGH, /* of a character beyond ASCII */
	CONTROL,
};

static const unsigned char classes[256] = {
	[0 ... 0x08] = CONTROL, [0x0b ... 0x1f] = CONTROL,
	['\t'] = BLANK,         ['\n'] = META,
	[' '] = BLANK,          ['|'] = META,
	['&'] = META,           [';'] = META,
	['('] = META,           [')'] = META,
	['<'] = META,           ['>'] = META,
	['\''] = QUOTE,         ['"'] = QUOTE,
	['\\'] = BACKSLASH,     ['$'] = DOLLAR,
	['`'] = BACKQUOTE,      ['*'] = PATTERN,
	['?'] = PATTERN,        ['['] = PATTERN,
	['{'] = BRACE,          ['~'] = TILDE,
	['='] = EQUALS,         [0x7f] = CONTROL,
	[0x80 ... 0xff] = HIGH,
};

static enum class class_of(char c) { return (enum class)classes[(unsigned char)c]; }

void shell_lexer_init(struct shell_lexer *lexer, struct str text, char *values)
{
	*lexer = (struct shell_lexer){.text = text, .values = values};
}

/* The byte AHEAD of where LEXER stands; NUL behind the end. */
static char peek(const struct shell_lexer *lexer, size_t ahead)
{
	size_t at = lexer->at + ahead;

	return at < lexer->text.size ? lexer->text.data[at] : '\0';
}

static bool at_end(const struct shell_lexer *lexer)
{
	return lexer->at >= lexer->text.size;
}

/* A word while it is read. */
struct word {
	struct shell_lexer *lexer;
	struct shell_token *token;
	size_t value_at; /* of LEXER's values */
	bool brace;      /* an open one, unquoted */
	bool equals;     /* likewise */
};

static void refuse(struct word *word, enum shell_reason reason, size_t at)
{
	if (word->token->reason != SHELL_LITERAL)
		return;
	word->token->reason = reason;
	word->token->at = at;
}

static void add(struct word *word, const char *bytes, size_t size)
{
	struct shell_lexer *lexer = word->lexer;

	if (lexer->values == NULL)
		return;
	memcpy(lexer->values + lexer->values_size, bytes, size);
	lexer->values_size += size;
}

/* One byte or one whole character of the text; refused when it is none. */
static void take_character(struct word *word)
{
	struct shell_lexer *lexer = word->lexer;
	struct str rest = str_part(lexer->text, lexer->at, lexer->text.size);
	enum class class = class_of(*rest.data);
	size_t length = 1;

	if (class == HIGH) {
		length = text_utf8_length(rest);
		if (length == 0) {
			refuse(word, SHELL_BYTE, lexer->at);
			length = 1;
		}
	} else if (class == CONTROL) {
		refuse(word, SHELL_BYTE, lexer->at);
	}
	add(word, rest.data, length);
	lexer->at += length;
}

/* To after the closing QUOTE, whatever is between; the lexer is at the opening one. */
static void skip_quoted(struct shell_lexer *lexer, char quote)
{
	lexer->at++;
	while (!at_end(lexer) && peek(lexer, 0) != quote) {
		if (peek(lexer, 0) == '\\' && quote != '\'')
			lexer->at++;
		lexer->at++;
	}
	lexer->at++;
}

/* "(…)" of a substitution, quotes and inner parentheses included. */
static void skip_parentheses(struct shell_lexer *lexer)
{
	size_t depth = 0;

	do {
		char c = peek(lexer, 0);

		if (c == '\'' || c == '"' || c == '`') {
			skip_quoted(lexer, c);
			continue;
		}
		if (c == '\\')
			lexer->at++;
		else if (c == '(')
			depth++;
		else if (c == ')')
			depth--;
		lexer->at++;
	} while (depth > 0 && !at_end(lexer));
}

/* At "$" or "`": what the shell would put there is not known. */
static void take_substitution(struct word *word)
{
	struct shell_lexer *lexer = word->lexer;

	if (peek(lexer, 0) == '`') {
		refuse(word, SHELL_COMMAND, lexer->at);
		skip_quoted(lexer, '`');
		return;
	}
	refuse(word, peek(lexer, 1) == '(' ? SHELL_COMMAND : SHELL_EXPANSION, lexer->at);
	lexer->at++;
	if (peek(lexer, 0) == '(')
		skip_parentheses(lexer);
}

static void take_single_quotes(struct word *word)
{
	struct shell_lexer *lexer = word->lexer;
	size_t open = lexer->at++;

	while (!at_end(lexer) && peek(lexer, 0) != '\'')
		take_character(word);
	if (at_end(lexer))
		refuse(word, SHELL_OPEN_QUOTE, open);
	lexer->at++;
}

static void take_double_quotes(struct word *word)
{
	struct shell_lexer *lexer = word->lexer;
	size_t open = lexer->at++;

	while (!at_end(lexer) && peek(lexer, 0) != '"') {
		char c = peek(lexer, 0);
		char next = peek(lexer, 1);

		if (c == '\\' && next == '\n') {
			lexer->at += 2;
		} else if (c == '\\' && next != '\0' && strchr("$`\"\\", next) != NULL) {
			lexer->at++;
			take_character(word);
		} else if (c == '`' ||
			   /* before these the sign stands for itself: "end$", "a$|b$" */
			   (c == '$' && (next == '\0' || strchr("\" |)", next) == NULL))) {
			take_substitution(word);
		} else {
			take_character(word);
		}
	}
	if (at_end(lexer))
		refuse(word, SHELL_OPEN_QUOTE, open);
	lexer->at++;
}

static void take_backslash(struct word *word)
{
	struct shell_lexer *lexer = word->lexer;
	size_t at = lexer->at++;

	if (at_end(lexer)) {
		refuse(word, SHELL_LAST_BACKSLASH, at);
		return;
	}
	if (peek(lexer, 0) == '\n') {
		lexer->at++;
		return;
	}
	word->token->quoted = true;
	take_character(word);
}

/* Before "=": is all that was read so far a name, and nothing of it quoted? */
static bool is_name_before(const struct word *word)
{
	const struct shell_token *token = word->token;
	const struct shell_lexer *lexer = word->lexer;
	size_t size = 0;
	char last = '\0';

	if (token->quoted)
		return false;
	for (const char *at = token->text.data; at < lexer->text.data + lexer->at; at++) {
		if (*at == '\\') { /* with the line end behind it: neither is there for bash */
			at++;
			continue;
		}
		if (last == '+' || (size == 0 && isdigit((unsigned char)*at)) ||
		    (!isalnum((unsigned char)*at) && *at != '_' && (*at != '+' || size == 0)))
			return false;
		last = *at;
		size++;
	}
	return size > 0;
}

/*
 * Bash looks for a home at the beginning of a word, and behind "=" and ":" in what looks
 * like an assignment. "HEAD~2" and "file.txt~" are safe.
 */
static bool is_safe_tilde(const struct word *word)
{
	const char *at = word->lexer->text.data + word->lexer->at;

	return at > word->token->text.data &&
	       (isalnum((unsigned char)at[-1]) || at[-1] == '^' || at[-1] == '.');
}

/* Plain bytes in one piece: most of every text. */
static void take_plain(struct word *word)
{
	struct shell_lexer *lexer = word->lexer;
	size_t from = lexer->at;

	while (!at_end(lexer) && class_of(peek(lexer, 0)) == PLAIN)
		lexer->at++;
	add(word, lexer->text.data + from, lexer->at - from);
}

/* Take the next part of WORD, which begins at the lexer outside of quotes. */
static void take_part(struct word *word)
{
	struct shell_lexer *lexer = word->lexer;

	switch (class_of(peek(lexer, 0))) {
	case QUOTE:
		word->token->quoted = true;
		if (peek(lexer, 0) == '\'')
			take_single_quotes(word);
		else
			take_double_quotes(word);
		return;
	case BACKSLASH:
		take_backslash(word);
		return;
	case DOLLAR:
	case BACKQUOTE:
		take_substitution(word);
		return;
	case PATTERN:
		refuse(word, SHELL_PATTERN, lexer->at);
		break;
	case BRACE:
		word->brace = true;
		break;
	case TILDE:
		if (!is_safe_tilde(word))
			refuse(word, SHELL_TILDE, lexer->at);
		break;
	case EQUALS:
		word->token->is_assignment |= !word->equals && is_name_before(word);
		word->equals = true;
		break;
	default:
		break;
	}
	if (class_of(peek(lexer, 0)) == PLAIN)
		take_plain(word);
	else
		take_character(word);
}

static void take_word(struct shell_lexer *lexer, struct shell_token *token)
{
	struct word word = {lexer, token, lexer->values_size, false, false};
	size_t start = lexer->at;

	token->kind = SHELL_WORD;
	token->text = str_part(lexer->text, start, 0);
	while (!at_end(lexer) && class_of(peek(lexer, 0)) != BLANK &&
	       class_of(peek(lexer, 0)) != META)
		take_part(&word);
	if (lexer->at > lexer->text.size)
		lexer->at = lexer->text.size;
	token->text.size = lexer->at - start;
	/* Only these two make braces expand; "@{1}" and "{}" stay as they are. */
	if (word.brace && (memchr(token->text.data, ',', token->text.size) != NULL ||
			   str_find(token->text, STR(".."), 0) != (size_t)-1))
		refuse(&word, SHELL_BRACES, start);
	if (lexer->values != NULL) {
		token->value = (struct str){lexer->values + word.value_at,
					    lexer->values_size - word.value_at};
		lexer->values[lexer->values_size++] = '\0';
	}
}

/* Blanks, lines that are joined, and comments, which end before their line does. */
static void skip_between(struct shell_lexer *lexer)
{
	while (!at_end(lexer)) {
		char c = peek(lexer, 0);

		if (class_of(c) == BLANK) {
			lexer->at++;
		} else if (c == '\\' && peek(lexer, 1) == '\n') {
			lexer->at += 2;
		} else if (c == '#') {
			while (!at_end(lexer) && peek(lexer, 0) != '\n') {
				if (peek(lexer, 0) == '\0' &&
				    lexer->outside == SHELL_LITERAL) {
					lexer->outside = SHELL_BYTE;
					lexer->outside_at = lexer->at;
				}
				lexer->at++;
			}
		} else {
			return;
		}
	}
}

/* The longest first. */
static const struct operator
{
	const char text[4];
	enum shell_kind kind;
}
operators[] = {
	{";;&", SHELL_CASE_END},    {"&>>", SHELL_REDIRECTION},
	{"<<-", SHELL_REDIRECTION}, {"<<<", SHELL_REDIRECTION},
	{"&&", SHELL_AND},          {"||", SHELL_OR},
	{"|&", SHELL_PIPE_BOTH},    {";;", SHELL_CASE_END},
	{";&", SHELL_CASE_END},     {"&>", SHELL_REDIRECTION},
	{"<<", SHELL_REDIRECTION},  {"<&", SHELL_REDIRECTION},
	{"<>", SHELL_REDIRECTION},  {">>", SHELL_REDIRECTION},
	{">&", SHELL_REDIRECTION},  {">|", SHELL_REDIRECTION},
	{"<", SHELL_REDIRECTION},   {">", SHELL_REDIRECTION},
	{"\n", SHELL_NEWLINE},      {";", SHELL_SEMICOLON},
	{"|", SHELL_PIPE},          {"&", SHELL_BACKGROUND},
	{"(", SHELL_OPEN},          {")", SHELL_CLOSE},
};

static void take_operator(struct shell_lexer *lexer, struct shell_token *token)
{
	const struct operator* found = operators;
	size_t start = lexer->at;

	if (strchr("<>", peek(lexer, 0)) != NULL && peek(lexer, 1) == '(') {
		lexer->at++;
		skip_parentheses(lexer);
		if (at_end(lexer))
			lexer->at = lexer->text.size;
		token->kind = SHELL_PROCESS;
		token->text = str_part(lexer->text, start, lexer->at - start);
		return;
	}
	while (!str_starts(str_part(lexer->text, start, lexer->text.size),
			   str_of(found->text)))
		found++;
	lexer->at += strlen(found->text);
	token->kind = found->kind;
	token->text = str_part(lexer->text, start, lexer->at - start);
}

void shell_lexer_next(struct shell_lexer *lexer, struct shell_token *token)
{
	skip_between(lexer);
	*token = (struct shell_token){.text = str_part(lexer->text, lexer->at, 0)};
	if (at_end(lexer))
		return;
	if (class_of(peek(lexer, 0)) == META)
		take_operator(lexer, token);
	else
		take_word(lexer, token);
}

static bool needs_quotes(const char *word)
{
	static const char plain[] = "%+,-./:=@^_";

	for (const char *at = word; *at; at++) {
		if (!isalnum((unsigned char)*at) && !strchr(plain, *at))
			return true;
	}
	return *word == '\0';
}

void shell_token_add_word(const char *word, struct buf *out)
{
	if (!needs_quotes(word)) {
		(void)buf_adds(out, word);
		return;
	}
	(void)buf_addc(out, '\'');
	for (; *word != '\0'; word++) {
		if (*word == '\'')
			(void)buf_adds(out, "'\\''");
		else
			(void)buf_addc(out, *word);
	}
	(void)buf_addc(out, '\'');
}
