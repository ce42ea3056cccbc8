/*
 * shell: splits a shell text in one pass over its bytes. The rules are those of bash;
 * where bash has many, only the few safe ones. The words that are literal here were
 * compared with bash on random texts (tests/gate).
 */

#include "base/text/shell.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Gathers the simple commands from the tokens of a text. */

enum { WORDS_FIRST = 32 };

void shell_scan_init(struct shell_scan *scan, struct str text)
{
	memset(scan, 0, sizeof(*scan));
	scan->values = memory_alloc(text.size + 1);
	shell_lexer_init(&scan->lexer, text, scan->values);
}

void shell_scan_fini(struct shell_scan *scan)
{
	free(scan->values);
	free(scan->word_room);
	free(scan->value_room);
	memset(scan, 0, sizeof(*scan));
}

static void add_word(struct shell_scan *scan, struct shell_command *command,
		     const struct shell_token *token)
{
	if (command->count == scan->room) {
		scan->room = 2 * scan->room + WORDS_FIRST;
		scan->word_room =
			memory_grow(scan->word_room, scan->room, sizeof(*scan->word_room));
		scan->value_room = memory_grow(scan->value_room, scan->room,
					       sizeof(*scan->value_room));
	}
	scan->word_room[command->count] = token->text;
	scan->value_room[command->count++] =
		token->kind == SHELL_WORD && token->reason == SHELL_LITERAL
			? token->value
			: (struct str){0};
	command->words = scan->word_room;
	command->values = scan->value_room;
}

static bool is_number(struct str word)
{
	for (size_t i = 0; i < word.size; i++) {
		if (!isdigit((unsigned char)word.data[i]))
			return false;
	}
	return word.size > 0;
}

static void begin_document(struct shell_scan *scan, const struct shell_token *token,
			   bool tabs)
{
	if (scan->document_count == SHELL_DOCUMENTS_MAX) {
		scan->ended = true;
		return;
	}
	scan->documents[scan->document_count++] = (struct shell_document){
		.end = token->reason == SHELL_LITERAL ? token->value : token->text,
		.tabs = tabs,
	};
}

/* Skip the lines of a here-document, which are data of the command before them. */
static void skip_documents(struct shell_scan *scan)
{
	struct shell_lexer *lexer = &scan->lexer;

	for (size_t i = 0; i < scan->document_count; i++) {
		const struct shell_document *document = &scan->documents[i];
		bool found = false;

		while (!found && lexer->at < lexer->text.size) {
			struct str rest =
				str_part(lexer->text, lexer->at, lexer->text.size);
			struct str left = rest, line;

			if (!str_next_line(&left, &line))
				break;
			lexer->at += rest.size - left.size;
			while (document->tabs && str_starts(line, STR("\t")))
				line = str_part(line, 1, line.size);
			found = str_equal(line, document->end);
		}
	}
	scan->document_count = 0;
}

/*
 * Take a redirection. A number directly before it is its descriptor, not a word of the
 * command. The word behind it is no word of the command either.
 */
static void take_redirection(struct shell_scan *scan, struct str operator,
			     struct shell_command * command)
{
	bool input = operator.data[0] == '<';
	struct shell_lexer before;
	struct shell_token token;
	struct str descriptor = {0};

	if (command->count && operator.data[0] != '&') {
		struct str last = command->words[command->count - 1];

		if (last.data + last.size == operator.data && is_number(last)) {
			descriptor = last;
			command->count--;
		}
	}
	if (input)
		command->input_given = true;
	else if (!descriptor.size || str_is(descriptor, "1"))
		command->output_taken = true;
	before = scan->lexer;
	shell_lexer_next(&scan->lexer, &token);
	if (token.kind != SHELL_WORD)
		scan->lexer = before;
	else if (str_is(operator, "<<") || str_is(operator, "<<-"))
		begin_document(scan, &token, operator.size == 3);
}

/*
 * Words that stand before a program's name and are not the program: with those options
 * whose value is the next word, and the number of operands before the name.
 */
static const struct before {
	const char *names, *valued;
	size_t operands;
} befores[] = {
	{"if then else elif do while until ! { time builtin nohup setsid", "", 0},
	{"exec", "-a", 0},
	{"env", "-u --unset -C --chdir", 0},
	{"sudo doas", "-u -g -h -p -C -D -R -r -T -t -U --user --group --host --chdir", 0},
	{"nice", "-n --adjustment", 0},
	{"ionice", "-c -n", 0},
	{"stdbuf", "-i -o -e", 0},
	{"timeout", "-s -k --signal --kill-after", 1},
	{"xargs", "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs", 0},
};

static const struct before *before_of(struct str word)
{
	for (size_t i = 0; i < sizeof(befores) / sizeof(befores[0]); i++) {
		if (str_among(befores[i].names, shell_words_program(word)))
			return &befores[i];
	}
	return NULL;
}

static bool is_assignment(struct str word)
{
	size_t at = 0;

	while (at < word.size &&
	       (isalnum((unsigned char)word.data[at]) || word.data[at] == '_'))
		at++;
	if (at < word.size && word.data[at] == '+')
		at++;
	return at > 0 && at < word.size && word.data[at] == '=' &&
	       !isdigit((unsigned char)word.data[0]);
}

static void drop_first(struct shell_command *command, size_t count)
{
	if (count == 0)
		return;
	command->count -= count;
	command->words += count;
	command->values += count;
}

/*
 * Skip the word at AT, which BEFORE describes, with its options and operands, up to the
 * program's name if there is one.
 */
static size_t skip_before(const struct shell_command *command,
			  const struct before *before, size_t at)
{
	size_t operands = before->operands;

	for (at++; at < command->count; at++) {
		struct str word = command->words[at];

		if (str_starts(word, STR("-")))
			at += str_among(before->valued, word);
		else if (!is_assignment(word) && operands-- == 0)
			break;
	}
	return at < command->count ? at : command->count;
}

void shell_command_strip(struct shell_command *command)
{
	size_t at = 0;

	while (at < command->count) {
		struct str word = command->words[at];
		const struct before *before = before_of(shell_command_value(command, at));

		if (before != NULL)
			at = skip_before(command, before, at);
		else if (is_assignment(word))
			at++;
		else
			break;
	}
	drop_first(command, at);
	/* `command vim` runs vim, `command -v vim` only looks for it. */
	if (command->count > 1 && str_is(command->words[0], "command") &&
	    !str_starts(command->words[1], STR("-")))
		drop_first(command, 1);
}

/*
 * The index behind the option -c of a shell, alone or among letters ("-lc"); `count`
 * when there is none.
 */
static size_t behind_c(const struct shell_command *command)
{
	for (size_t at = 1; at < command->count; at++) {
		struct str word = command->words[at];

		if (!str_starts(word, STR("-")))
			break;
		if (!str_starts(word, STR("--")) && memchr(word.data, 'c', word.size) != NULL)
			return at + 1;
	}
	return command->count;
}

bool shell_command_inner(const struct shell_command *command, struct str *text)
{
	struct str name =
		command->count > 0 ? shell_words_program(command->words[0]) : STR("");
	size_t at = command->count;

	if (str_is(name, "eval") && command->count == 2)
		at = 1;
	else if (str_among("sh bash dash zsh ksh ash", name))
		at = behind_c(command);
	if (at >= command->count || command->values[at].data == NULL)
		return false;
	*text = command->values[at];
	return true;
}

/*
 * Take a separator, which ends the command. False when the words were no command (a
 * case label, a function's name).
 */
static bool take_separator(struct shell_scan *scan, enum shell_kind kind,
			   struct shell_command *command)
{
	bool counts = true;

	scan->after_pipe = kind == SHELL_PIPE || kind == SHELL_PIPE_BOTH;
	if (scan->after_pipe)
		command->output_taken = true;
	if (kind == SHELL_OPEN) {
		counts = false;
		scan->open++;
	} else if (kind == SHELL_CLOSE) {
		counts = scan->open > 0;
		scan->open -= counts;
	} else if (kind == SHELL_END) {
		scan->ended = true;
	} else if (kind == SHELL_NEWLINE) {
		skip_documents(scan);
	}
	return counts;
}

/* Take one command up to its separator. False when the words were no command. */
static bool take_command(struct shell_scan *scan, struct shell_command *command)
{
	struct shell_token token;

	memset(command, 0, sizeof(*command));
	command->input_given = scan->after_pipe;
	command->depth = scan->open;
	for (;;) {
		shell_lexer_next(&scan->lexer, &token);
		if (token.kind == SHELL_REDIRECTION)
			take_redirection(scan, token.text, command);
		else if (token.kind != SHELL_WORD && token.kind != SHELL_PROCESS)
			return take_separator(scan, token.kind, command);
		else if (token.kind == SHELL_WORD)
			add_word(scan, command, &token);
	}
}

bool shell_scan_next(struct shell_scan *scan, struct shell_command *command)
{
	while (!scan->ended) {
		bool counts = take_command(scan, command);

		shell_command_strip(command);
		if (command->count && counts)
			return true;
	}
	return false;
}

struct str shell_words_program(struct str word)
{
	for (size_t i = word.size; i > 0; i--) {
		if (word.data[i - 1] == '/')
			return str_part(word, i, word.size);
	}
	if (str_starts(word, STR("\\")))
		return str_part(word, 1, word.size);
	return word;
}

size_t shell_command_git(const struct shell_command *command)
{
	size_t at = 1;

	while (at < command->count && str_starts(command->words[at], STR("-")))
		at += str_among("-c -C --git-dir --work-tree --namespace --config-env "
				"--super-prefix",
				command->words[at])
			      ? 2
			      : 1;
	return at < command->count ? at : command->count;
}

struct str shell_command_value(const struct shell_command *command, size_t at)
{
	return command->values[at].data != NULL ? command->values[at] : command->words[at];
}

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
	HIGH, /* part of a character beyond ASCII */
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

/* The byte AHEAD of LEXER's position; NUL behind the end. */
static char peek(const struct shell_lexer *lexer, size_t ahead)
{
	size_t at = lexer->at + ahead;

	return at < lexer->text.size ? lexer->text.data[at] : '\0';
}

static bool at_end(const struct shell_lexer *lexer)
{
	return lexer->at >= lexer->text.size;
}

/* The state while a word is read. */
struct word {
	struct shell_lexer *lexer;
	struct shell_token *token;
	size_t value_at; /* beginning in LEXER's values */
	bool brace;      /* has an unquoted opening brace */
	bool equals;     /* has an unquoted "=" */
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

/* Take one byte or one whole character of the text. A byte that is neither is refused. */
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

/*
 * Skip to behind the closing QUOTE, with anything in between. The lexer is at the
 * opening one.
 */
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

/* Skip the "(…)" of a substitution, with quotes and inner parentheses. */
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

/* Take a substitution at "$" or "`". Its result is not known. */
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
			   /* before these a "$" stands for itself: "end$", "a$|b$" */
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

/* Is everything read before the "=" a name, with no part quoted? */
static bool is_name_before(const struct word *word)
{
	const struct shell_token *token = word->token;
	const struct shell_lexer *lexer = word->lexer;
	size_t size = 0;
	char last = '\0';

	if (token->quoted)
		return false;
	for (const char *at = token->text.data; at < lexer->text.data + lexer->at; at++) {
		if (*at == '\\') { /* a line continuation, which bash removes */
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
 * Is a "~" here literal? Bash expands it at the beginning of a word, and behind "=" and
 * ":" in words like assignments. "HEAD~2" and "file.txt~" are safe.
 */
static bool is_safe_tilde(const struct word *word)
{
	const char *at = word->lexer->text.data + word->lexer->at;

	return at > word->token->text.data &&
	       (isalnum((unsigned char)at[-1]) || at[-1] == '^' || at[-1] == '.');
}

/* Take a run of plain bytes, which make up most of a text. */
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

/* Skip blanks, joined lines, and comments, which end before their line end. */
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

/* Sorted: longer operators first. */
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
