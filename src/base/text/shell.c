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

enum {
	WORDS_FIRST = 32,
	NESTED_MAX = 16, /* substitutions inside others whose end is found by their words */
	/* the ends of here-documents are looked for in so many times the bytes of the text */
	SEARCHES_MAX = 16,
	BRACES_WORDS = 32, /* words of one brace expansion; one with more stays as written */
	BRACES_BYTES = 1 << 10,   /* of a word that is expanded */
	EXPANDED_MAX = 256 << 10, /* bytes of such words in one command */
	BRACES_NODE = 64, /* bytes, for which each word on the way counts besides its own */
	BRACES_READ = 4 << 20, /* bytes that are read for all of a text */
};

void shell_scan_init(struct shell_scan *scan, struct str text)
{
	memset(scan, 0, sizeof(*scan));
	scan->values = memory_alloc(text.size + 1);
	shell_lexer_init(&scan->lexer, text, scan->values);
	scan->lexer.inners = &scan->inners;
	scan->braces_left = BRACES_READ;
}

void shell_scan_fini(struct shell_scan *scan)
{
	free(scan->values);
	free(scan->word_room);
	free(scan->value_room);
	free(scan->text_room);
	free(scan->inners.items);
	free(scan->expanded);
	memset(scan, 0, sizeof(*scan));
}

/* KNOWN: the shell gives this TEXT to the program, whatever happens. */
static void add_text(struct shell_scan *scan, struct shell_command *command,
		     struct str word, struct str text, bool known)
{
	if (command->count == scan->room) {
		scan->room = 2 * scan->room + WORDS_FIRST;
		scan->word_room =
			memory_grow(scan->word_room, scan->room, sizeof(*scan->word_room));
		scan->value_room = memory_grow(scan->value_room, scan->room,
					       sizeof(*scan->value_room));
		scan->text_room =
			memory_grow(scan->text_room, scan->room, sizeof(*scan->text_room));
	}
	scan->word_room[command->count] = word;
	scan->text_room[command->count] = text;
	scan->value_room[command->count++] = known ? text : (struct str){0};
	command->words = scan->word_room;
	command->values = scan->value_room;
	command->texts = scan->text_room;
}

/* An expansion: the words that it has made so far, each with its NUL, and its bounds. */
struct braces {
	struct buf words;
	size_t count;
	size_t *left; /* bytes of words that may still be read */
};

/*
 * The offset of the "}" or "," that ends the part of TEXT at AT; its size: there is none, or
 * too much was read.
 */
static size_t brace_part_end(const struct braces *braces, struct str text, size_t at)
{
	size_t depth = 0;

	for (; at<text.size && * braces->left> 0; at++, --*braces->left) {
		const char c = text.data[at];

		if (depth == 0 && (c == ',' || c == '}'))
			return at;
		depth += c == '{';
		depth -= c == '}' && depth > 0;
	}
	return text.size;
}

/* The first "{" in TEXT that has a "," and a "}"; the size of TEXT: there is none. */
static size_t brace_begin(const struct braces *braces, struct str text)
{
	for (size_t at = 0; at < text.size; at++) {
		size_t end = at;
		bool comma = false;

		if (text.data[at] != '{')
			continue;
		do {
			end = brace_part_end(braces, text, end + 1);
			comma |= end < text.size && text.data[end] == ',';
		} while (end < text.size && text.data[end] == ',');
		if (comma && end < text.size)
			return at;
	}
	return text.size;
}

/* Append what TEXT expands to, the first brace first. False: it is too much. */
static bool braces_expand(struct braces *braces, struct str text, unsigned depth)
{
	enum { DEPTH_MAX = 16 };
	const size_t begin = brace_begin(braces, text);
	size_t close = begin, end;
	bool fine = true;

	const size_t cost = text.size + BRACES_NODE;
	*braces->left -= cost < *braces->left ? cost : *braces->left;
	if (*braces->left == 0)
		return false;
	if (begin == text.size) {
		if (text.size == 0) /* the shell makes no word of it */
			return true;
		return braces->count++ < BRACES_WORDS &&
		       buf_addstr(&braces->words, text) && buf_addc(&braces->words, '\0');
	}
	if (depth == DEPTH_MAX)
		return false;
	do
		close = brace_part_end(braces, text, close + 1);
	while (close < text.size && text.data[close] == ',');
	if (*braces->left == 0)
		return false;
	for (size_t from = begin + 1; fine && from <= close; from = end + 1) {
		struct buf word;

		end = brace_part_end(braces, text, from);
		buf_init(&word, BRACES_BYTES);
		(void)buf_addstr(&word, str_part(text, 0, begin));
		(void)buf_addstr(&word, str_part(text, from, end - from));
		fine = buf_addstr(&word, str_part(text, close + 1, text.size)) &&
		       braces_expand(braces, buf_str(&word), depth + 1);
		buf_fini(&word);
	}
	return fine;
}

/* Add the words of the brace expansion TOKEN. False: they are too many, and none is added. */
static bool add_braces(struct shell_scan *scan, struct shell_command *command,
		       const struct shell_token *token)
{
	struct braces braces = {.left = &scan->braces_left};
	bool fine;

	buf_init(&braces.words, EXPANDED_MAX - scan->expanded_size);
	fine = token->value.size < BRACES_BYTES &&
	       braces_expand(&braces, token->value, 0) && !braces.words.overflowed;
	if (scan->braces_left == 0)
		scan->lexer.unsure = true;
	if (fine && scan->expanded == NULL)
		scan->expanded = memory_alloc(EXPANDED_MAX);
	for (size_t at = 0; fine && at < braces.words.size;) {
		char *text = scan->expanded + scan->expanded_size;
		const size_t size = strlen(braces.words.data + at);

		memcpy(text, braces.words.data + at, size + 1);
		scan->expanded_size += size + 1;
		at += size + 1;
		add_text(scan, command, token->text, (struct str){text, size}, true);
	}
	buf_fini(&braces.words);
	return fine;
}

static void add_word(struct shell_scan *scan, struct shell_command *command,
		     const struct shell_token *token)
{
	if (token->reason == SHELL_BRACES && add_braces(scan, command, token))
		return;
	add_text(scan, command, token->text, token->value,
		 token->reason == SHELL_LITERAL || token->reason == SHELL_ANSI);
}

/* "{name}" before a redirection: the variable that gets its descriptor. */
static bool is_descriptor_name(struct str word)
{
	if (word.size < 3 || word.data[0] != '{' || word.data[word.size - 1] != '}')
		return false;
	for (size_t i = 1; i + 1 < word.size; i++) {
		if (!isalnum((unsigned char)word.data[i]) && word.data[i] != '_')
			return false;
	}
	return true;
}

static bool is_number(struct str word)
{
	for (size_t i = 0; i < word.size; i++) {
		if (!isdigit((unsigned char)word.data[i]))
			return false;
	}
	return word.size > 0;
}

/* Note TEXT, which the shell runs. */
static void add_inner(struct shell_lexer *lexer, struct str text, bool in_backquotes)
{
	struct shell_inners *inners = lexer->inners;

	if (inners == NULL || text.size == 0)
		return;
	inners->items = memory_more(inners->items, inners->count, sizeof(*inners->items));
	inners->items[inners->count++] = (struct shell_inner){text, in_backquotes};
}

/*
 * Note a here-document that ends with the word END. Digits may be its end, but `x<<2` is
 * arithmetic as a rule, and so is all in "(("; in "${", "$[" and the index of an assignment no
 * here-document begins.
 */
static void begin_document(struct shell_lexer *lexer, struct shell_documents *documents,
			   struct str end, bool tabs)
{
	if (documents->count == SHELL_DOCUMENTS_MAX) {
		lexer->unsure = true;
		return;
	}
	documents->items[documents->count++] = (struct shell_document){
		.end = end,
		.tabs = tabs,
		.doubtful = lexer->arithmetic > 0 || lexer->shifts || is_number(end),
	};
}

static bool is_quoting(char c)
{
	return c == '\'' || c == '"' || c == '\\';
}

/* Does LINE end DOCUMENT? The end may be quoted in any way. */
static bool ends_document(const struct shell_document *document, struct str line)
{
	size_t at = 0;

	for (size_t i = 0; i < document->end.size; i++) {
		const char c = document->end.data[i];

		if (is_quoting(c))
			continue;
		if (at >= line.size || line.data[at++] != c)
			return false;
	}
	return at == line.size;
}

/*
 * Skip the lines of DOCUMENT, and put them without the one that ends it into *BODY. False,
 * and nothing is skipped: its end never comes. A shell takes the rest of the text for data
 * then, but a text that writes so is wrong, or is arithmetic (`((x<<y))`), and its lines are
 * commands.
 */
static bool skip_document(struct shell_lexer *lexer,
			  const struct shell_document *document, struct str *body)
{
	const size_t start = lexer->at;
	struct str line;

	*body = str_part(lexer->text, start, 0);
	if (lexer->searched / SEARCHES_MAX >= lexer->text.size) {
		lexer->unsure = true;
		return false;
	}
	while (lexer->at < lexer->text.size) {
		struct str rest = str_part(lexer->text, lexer->at, lexer->text.size);
		struct str left = rest;

		if (!str_next_line(&left, &line))
			break;
		lexer->at += rest.size - left.size;
		while (document->tabs && str_starts(line, STR("\t")))
			line = str_part(line, 1, line.size);
		if (ends_document(document, line) && !document->doubtful)
			return true;
		if (ends_document(document, line)) {
			lexer->unsure = true;
			break;
		}
		body->size += rest.size - left.size;
	}
	lexer->searched += lexer->at - start;
	lexer->at = start;
	return false;
}

static void find_in_document(struct shell_lexer *lexer, struct str body);

/*
 * Skip the here-documents that begin on the last line. They are data, except that a shell
 * runs the substitutions of an unquoted one, and all of one that is its input.
 */
static void skip_documents(struct shell_lexer *lexer, struct shell_documents *documents)
{
	for (size_t i = 0; i < documents->count; i++) {
		const struct shell_document *document = &documents->items[i];
		bool quoted = false;
		struct str body;

		if (!skip_document(lexer, document, &body))
			continue;
		for (size_t j = 0; j < document->end.size; j++)
			quoted |= is_quoting(document->end.data[j]);
		if (document->runs)
			add_inner(lexer, body, false);
		else if (!quoted)
			find_in_document(lexer, body);
	}
	documents->count = 0;
}

/*
 * Take a redirection. A number directly before it is its descriptor, not a word of the
 * command. The word behind it is no word of the command either.
 */
static void take_redirection(struct shell_scan *scan, struct str operator,
			     struct shell_command * command, struct str *here)
{
	bool input = operator.data[0] == '<';
	const size_t inners = scan->inners.count;
	struct shell_lexer before;
	struct shell_token token;
	struct str descriptor = {0};

	if (command->count && operator.data[0] != '&') {
		struct str last = command->words[command->count - 1];

		if (last.data + last.size == operator.data &&(is_number(last) ||
							      is_descriptor_name(last))) {
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
	if (token.kind != SHELL_WORD) {
		scan->lexer = before;
		scan->inners.count = inners;
	} else if (str_is(operator, "<<<")) {
		*here = token.value;
	} else if (str_is(operator, "<<") || str_is(operator, "<<-")) {
		begin_document(&scan->lexer, &scan->documents,
			       token.text, operator.size == 3);
	}
}

/*
 * Words that stand before a program's name and are not the program: with those options
 * whose value is the next word, and the number of operands before the name.
 */
static const struct before {
	const char *names, *valued;
	size_t operands;
	/* with one of these options the word is the program itself */
	const char *unless;
	bool is_syntax; /* the word is no program */
} befores[] = {
	{"if then else elif do while until ! {", "", 0, "", true},
	{"function", "", 1, "", true},
	{"time builtin nohup setsid coproc", "", 0, "", false},
	{"command", "", 0, "-v -V", false},
	{"exec", "-a", 0, "", false},
	{"env", "-u --unset -C --chdir", 0, "-S --split-string -vS", false},
	{"sudo doas", "-u -g -h -p -C -D -R -r -T -t -U --user --group --host --chdir", 0,
	 "", false},
	{"pkexec", "--user", 0, "", false},
	{"nice", "-n --adjustment", 0, "", false},
	{"ionice", "-c -n", 0, "", false},
	{"stdbuf", "-i -o -e", 0, "", false},
	{"timeout", "-s -k --signal --kill-after", 1, "", false},
	{"xargs parallel",
	 "-a -d -E -I -L -n -P -s -j --arg-file --delimiter --max-args --max-procs --jobs",
	 0, "", false},
	{"flock", "-w -E --timeout --conflict-exit-code", 1, "-c --command", false},
	{"chroot taskset faketime", "", 1, "", false},
	{"chrt", "-T -P -D", 1, "", false},
	{"busybox toybox fakeroot eatmydata unbuffer catchsegv dbus-run-session rlwrap",
	 "", 0, "", false},
	{"strace ltrace", "-e -o -p -s -u -E -a -b -O -S -P -I", 0, "-p", false},
	{"unshare nsenter", "-t -S -G -R -w --target --setuid --setgid --root --wd", 0,
	 "", false},
	{"setarch linux32 linux64", "", 0, "", false},
	{"systemd-run systemd-inhibit",
	 "-p -u -E --unit --property --setenv --what --who --why", 0, "", false},
	{"valgrind", "", 0, "", false},
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
	command->texts += count;
}

/* Is WORD one of NAMES, also with a value behind the letter or the "="? */
static bool is_option_among(const char *names, struct str word)
{
	struct str rest = str_of(names), name;

	while (str_next_word(&rest, &name)) {
		if (str_starts(word, name) && (word.size == name.size || name.size == 2 ||
					       word.data[name.size] == '='))
			return true;
	}
	return false;
}

/*
 * Skip the word at *AT, which BEFORE describes, with its options and operands, up to the
 * program's name if there is one. False: the word is a program itself.
 */
static bool skip_before(const struct shell_command *command, const struct before *before,
			size_t *at)
{
	size_t operands = before->operands, next = *at + 1;

	for (; next < command->count; next++) {
		struct str word = shell_command_value(command, next);

		if (is_option_among(before->unless, word))
			return false;
		if (str_starts(word, STR("-")))
			next += str_among(before->valued, word);
		else if (!is_assignment(word) && operands-- == 0)
			break;
	}
	*at = next < command->count ? next : command->count;
	return true;
}

/* `coproc NAME {`: the name stands only before a keyword of the shell. */
static bool is_named_coproc(const struct shell_command *command, size_t at)
{
	static const char keywords[] = "{ if while until for select case [[ ((";

	return str_is(shell_command_value(command, at), "coproc") &&
	       at + 2 < command->count &&
	       str_among(keywords, shell_command_value(command, at + 2));
}

void shell_command_strip(struct shell_command *command)
{
	size_t starters[SHELL_STARTERS_MAX], count = 0, at = 0;

	while (at < command->count) {
		struct str word = command->words[at];
		const struct before *before = before_of(shell_command_value(command, at));

		if (before != NULL) {
			const size_t name = at;

			if (is_named_coproc(command, at)) {
				at += 2;
				continue;
			}
			if (!skip_before(command, before, &at))
				break;
			/* Without a program behind it, the word is the program. */
			if (at == command->count && !before->is_syntax) {
				at = name;
				break;
			}
			if (!before->is_syntax && count < SHELL_STARTERS_MAX)
				starters[count++] = name;
		} else if (is_assignment(word)) {
			at++;
		} else {
			break;
		}
	}
	for (size_t i = 0; i < count; i++)
		command->starters[i] = at - starters[i];
	command->starter_count = count;
	drop_first(command, at);
}

static const char shells[] = "sh bash dash zsh ksh mksh ash rbash";

static struct str program_of(const struct shell_command *command)
{
	return command->count > 0 ? shell_words_program(shell_command_value(command, 0))
				  : STR("");
}

/*
 * The index of the first operand of the shell COMMAND; `count` when there is none. *TEXT:
 * that operand is a text to run, and *INPUT: the shell reads its input (-s, "-").
 */
static size_t shell_operand(const struct shell_command *command, bool *text, bool *input)
{
	size_t at = 1;

	*text = *input = false;
	for (; at < command->count; at++) {
		struct str word = shell_command_value(command, at);

		if (word.size < 2 || (word.data[0] != '-' && word.data[0] != '+'))
			break;
		if (str_starts(word, STR("--"))) {
			at += str_among("--rcfile --init-file", word);
			continue;
		}
		*text |= word.data[0] == '-' && memchr(word.data, 'c', word.size) != NULL;
		*input |= word.data[0] == '-' && memchr(word.data, 's', word.size) != NULL;
		/* "-o pipefail", also behind other letters */
		at += word.data[word.size - 1] == 'o' || word.data[word.size - 1] == 'O';
	}
	return at < command->count ? at : command->count;
}

bool shell_command_reads(const struct shell_command *command)
{
	bool text, input;
	size_t at;

	if (!str_among(shells, program_of(command)))
		return false;
	at = shell_operand(command, &text, &input);
	return !text && (input || at == command->count ||
			 str_among("- /dev/stdin /proc/self/fd/0 /dev/fd/0",
				   shell_command_value(command, at)));
}

/* Append the words from AT on, as a shell would that joins them by blanks. */
static bool add_joined(const struct shell_command *command, size_t at, struct buf *text)
{
	const bool some = at < command->count;

	for (; at < command->count; at++)
		(void)(buf_addstr(text, command->texts[at]) && buf_addc(text, ' '));
	return some;
}

/*
 * Append the value of the first option of COMMAND that is among NAMES: the next word, or
 * what stands behind the letter or the "=". *AT gets the index behind it. False: there is
 * none.
 */
static bool add_option_text(const struct shell_command *command, const char *names,
			    size_t *at, struct buf *text)
{
	for (size_t i = 1; i < command->count; i++) {
		struct str word = command->texts[i], rest = str_of(names), name;

		while (str_next_word(&rest, &name)) {
			const bool is_long = name.size > 2;
			/* "-qc": the letter is the last of several */
			const bool last = !is_long && word.size > 2 &&
					  word.data[0] == '-' && word.data[1] != '-' &&
					  word.data[word.size - 1] == name.data[1];

			if (!last && !str_starts(word, name))
				continue;
			if ((last || word.size == name.size) && i + 1 < command->count) {
				*at = i + 2;
				return buf_addstr(text, command->texts[i + 1]);
			}
			if (word.size > name.size &&
			    (!is_long || word.data[name.size] == '=')) {
				*at = i + 1;
				return buf_addstr(text, str_part(word, name.size + is_long,
								 word.size));
			}
		}
	}
	return false;
}

/*
 * Programs besides shells that have a shell run a text: the value of an option, or their
 * operands.
 */
static const struct {
	const char *names, *options;
	enum { NOT_OPERANDS, FIRST_OPERAND, ALL_OPERANDS } operands;
} runners[] = {
	{"eval", "", ALL_OPERANDS},
	{"trap", "", FIRST_OPERAND},
	{"env", "-S --split-string", NOT_OPERANDS},
	{"su runuser", "-c --command --session-command", NOT_OPERANDS},
	{"script flock", "-c --command", NOT_OPERANDS},
	{"watch", "", ALL_OPERANDS},
};

bool shell_command_inner(const struct shell_command *command, struct buf *text)
{
	const struct str name = program_of(command);
	bool is_text, input;
	size_t at;

	if (str_among(shells, name)) {
		at = shell_operand(command, &is_text, &input);
		return is_text && at < command->count &&
		       buf_addstr(text, command->texts[at]);
	}
	for (size_t i = 0; i < sizeof(runners) / sizeof(runners[0]); i++) {
		if (!str_among(runners[i].names, name))
			continue;
		if (runners[i].operands == NOT_OPERANDS) {
			if (!add_option_text(command, runners[i].options, &at, text))
				return false;
			/* `env -S TEXT WORD…` appends the words to the command. */
			if (str_is(name, "env") && at < command->count)
				return buf_addc(text, ' ') && add_joined(command, at, text);
			return true;
		}
		at = 1;
		while (at < command->count && str_starts(command->words[at], STR("-")))
			at += 1 + str_among("-n --interval", command->words[at]);
		if (runners[i].operands == ALL_OPERANDS)
			return add_joined(command, at, text);
		return at < command->count && buf_addstr(text, command->texts[at]);
	}
	return false;
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
		scan->after_line = true;
	}
	return counts;
}

/*
 * Take one command up to its separator. False when the words were no command. *HERE gets
 * the text of its here-string.
 */
static bool take_command(struct shell_scan *scan, struct shell_command *command,
			 struct str *here)
{
	struct shell_token token;

	memset(command, 0, sizeof(*command));
	scan->expanded_size = 0;
	command->input_given = command->piped = scan->after_pipe;
	command->depth = scan->open;
	for (;;) {
		shell_lexer_next(&scan->lexer, &token);
		if (token.kind == SHELL_REDIRECTION)
			take_redirection(scan, token.text, command, here);
		else if (token.kind != SHELL_WORD && token.kind != SHELL_PROCESS)
			return take_separator(scan, token.kind, command);
		else if (token.kind == SHELL_WORD)
			add_word(scan, command, &token);
	}
}

/*
 * The shell COMMAND runs its input: the here-string HERE, its here-documents, which begin
 * at FIRST, or those of the commands before it in its pipe.
 */
static void take_input(struct shell_scan *scan, struct shell_command *command,
		       struct str here, size_t first)
{
	if (here.data != NULL) {
		add_inner(&scan->lexer, here, false);
		command->input_seen = true;
	}
	for (size_t i = command->piped ? 0 : first; i < scan->documents.count; i++) {
		scan->documents.items[i].runs = true;
		command->input_seen = true;
	}
}

/*
 * Find the text of COMMAND's last here-document. Its own ones, and those of the commands before
 * it in its pipe, begin at FIRST. Each is looked for once, however many commands the line has.
 */
static void look_ahead(struct shell_scan *scan, struct shell_command *command, size_t first)
{
	struct shell_lexer ahead = scan->lexer;

	if (first >= scan->documents.count)
		return;
	if (scan->line_end < ahead.at) {
		const size_t end = str_find(ahead.text, STR("\n"), ahead.at);

		scan->line_end = scan->after_line    ? ahead.at
				 : end == (size_t)-1 ? ahead.text.size
						     : end + 1;
		scan->ahead_count = 0;
	}
	if (scan->ahead_count != scan->documents.count) {
		scan->ahead = (struct str){0};
		ahead.at = scan->line_end;
		for (size_t i = 0; i < scan->documents.count; i++) {
			struct str body;

			if (skip_document(&ahead, &scan->documents.items[i], &body))
				scan->ahead = body;
		}
		scan->lexer.searched = ahead.searched;
		scan->ahead_count = scan->documents.count;
	}
	command->here = scan->ahead;
}

bool shell_scan_next(struct shell_scan *scan, struct shell_command *command)
{
	scan->inners.count = 0;
	while (!scan->ended) {
		struct str here = {0};
		size_t first;
		bool counts;

		if (scan->after_line)
			skip_documents(&scan->lexer, &scan->documents);
		scan->after_line = false;
		first = scan->documents.count;
		counts = take_command(scan, command, &here);
		shell_command_strip(command);
		if (!command->count || !counts)
			continue;
		if (shell_command_reads(command))
			take_input(scan, command, here, first);
		command->here = here;
		look_ahead(scan, command, command->piped ? 0 : first);
		return true;
	}
	skip_documents(&scan->lexer, &scan->documents);
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

	while (at < command->count && str_starts(shell_command_value(command, at), STR("-")))
		at += str_among("-c -C --git-dir --work-tree --namespace --config-env "
				"--super-prefix",
				shell_command_value(command, at))
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
	CLOSE, /* ends what a bracket began */
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
	['}'] = CLOSE,          [']'] = CLOSE,
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
	if (word->token->reason != SHELL_LITERAL &&
	    (word->token->reason != SHELL_ANSI || reason == SHELL_ANSI))
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

/* Skip "(…)" with quotes and inner parentheses, when it is too deep for a better look. */
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

/* The state of a search for the ")" that closes a substitution. */
struct closing {
	struct shell_lexer lexer;
	struct shell_documents documents;
	size_t open, cases; /* number of "(", and of `case` without its `esac` */
	bool begins;        /* the next word begins a command */
	bool label;         /* the next ")" ends a label of a case */
	bool after_document;
};

static void closing_case_ends(struct closing *closing)
{
	closing->cases--;
	closing->label = false;
}

/* A word: those of `case` and the ends of here-documents matter. */
static void closing_word(struct closing *closing, const struct shell_token *token)
{
	const struct str word = token->text;

	if (closing->after_document)
		begin_document(&closing->lexer, &closing->documents, word, false);
	else if (closing->begins && str_is(word, "case"))
		closing->cases++;
	else if ((closing->begins || closing->label) && closing->cases &&
		 str_is(word, "esac"))
		closing_case_ends(closing);
	else if (closing->cases && str_is(word, "in"))
		closing->label = true;
	closing->begins = str_among("if then else elif do while until ! { time", word);
}

/* Take TOKEN. True when it is the ")" that is looked for. */
static bool closing_takes(struct closing *closing, const struct shell_token *token)
{
	if (token->kind == SHELL_WORD) {
		closing_word(closing, token);
		closing->after_document = false;
		return false;
	}
	closing->after_document = str_is(token->text, "<<") || str_is(token->text, "<<-");
	if (token->kind == SHELL_REDIRECTION || token->kind == SHELL_PROCESS)
		return false;
	closing->begins = true;
	if (token->kind == SHELL_CASE_END)
		closing->label = closing->cases > 0;
	else if (token->kind == SHELL_NEWLINE)
		skip_documents(&closing->lexer, &closing->documents);
	else if (token->kind == SHELL_OPEN && !closing->label)
		closing->open++;
	else if (token->kind == SHELL_CLOSE && closing->label)
		closing->label = false;
	else if (token->kind == SHELL_CLOSE)
		return closing->open-- == 0;
	return false;
}

/*
 * Skip the "(…)" of a substitution, as bash does: by its words, so that a quote in a
 * comment or a here-document, and the ")" of a case, end nothing. Note the text in it.
 */
static void skip_substitution(struct shell_lexer *lexer)
{
	const size_t from = lexer->at + 1;
	struct closing closing = {.begins = true};
	struct shell_token token;

	if (lexer->nested == NESTED_MAX) {
		lexer->unsure = true;
		skip_parentheses(lexer);
	} else {
		shell_lexer_init(&closing.lexer, lexer->text, NULL);
		closing.lexer.at = from;
		closing.lexer.nested = lexer->nested + 1;
		closing.lexer.searched = lexer->searched;
		do
			shell_lexer_next(&closing.lexer, &token);
		while (token.kind != SHELL_END && !closing_takes(&closing, &token));
		lexer->at = closing.lexer.at;
		lexer->searched = closing.lexer.searched;
		lexer->unsure |= closing.lexer.unsure;
	}
	if (lexer->at > lexer->text.size)
		lexer->at = lexer->text.size;
	add_inner(lexer,
		  str_part(lexer->text, from,
			   lexer->at > from ? lexer->at - from -
						      (lexer->text.data[lexer->at - 1] == ')')
					    : 0),
		  false);
}

/* Take up to MOST digits of BASE (8 or 16) at the lexer. */
static unsigned long take_digits(struct shell_lexer *lexer, int base, int most)
{
	unsigned long number = 0;

	for (; most > 0 && !at_end(lexer); most--, lexer->at++) {
		const int digit = text_hex_digit(peek(lexer, 0));

		if (digit < 0 || digit >= base)
			break;
		number = number * (unsigned)base + (unsigned)digit;
	}
	return number;
}

/* Set MADE to the character CODE in UTF-8, and return its size; 0: it is too large. */
static size_t write_utf8(unsigned long code, char made[4])
{
	const size_t size = code < 0x80       ? 1
			    : code < 0x800    ? 2
			    : code < 0x10000  ? 3
			    : code < 0x110000 ? 4
					      : 0;

	for (size_t i = size; i > 1; i--, code >>= 6)
		made[i - 1] = (char)(0x80 | (code & 0x3f));
	if (size > 0)
		made[0] = (char)((size > 1 ? 0xf00 >> size & 0xff : 0) | code);
	return size;
}

/* Take the escape of $'…' behind the backslash at the lexer. False: a NUL, which ends the text. */
static bool take_escape(struct word *word)
{
	static const char letters[] = "abeEfnrtv\\'\"?",
			  bytes[] = "\a\b\033\033\f\n\r\t\v\\'\"?";
	struct shell_lexer *lexer = word->lexer;
	const char c = peek(lexer, 1);
	const char *letter = c != '\0' ? strchr(letters, c) : NULL;
	char made[4] = {0};
	size_t size = 1;

	lexer->at++;
	if (c >= '0' && c <= '7') {
		made[0] = (char)take_digits(lexer, 8, 3);
	} else if (letter != NULL) {
		made[0] = bytes[letter - letters];
		lexer->at++;
	} else if (c == 'c' && peek(lexer, 2) != '\0') {
		made[0] = (char)(peek(lexer, 2) & 0x1f);
		lexer->at += 2;
	} else if ((c == 'x' || c == 'u' || c == 'U') &&
		   text_hex_digit(peek(lexer, 1)) >= 0) {
		lexer->at++;
		const unsigned long number = take_digits(lexer, 16,
							 c == 'x'   ? 2
							 : c == 'u' ? 4
								    : 8);
		made[0] = (char)number;
		if (c != 'x')
			size = write_utf8(number, made);
	} else {
		/* The backslash stands for itself. */
		add(word, "\\", 1);
		return true;
	}
	if (size == 1 && made[0] == '\0')
		return false;
	add(word, made, size);
	return true;
}

/* Take $'…', whose escapes are those of C. */
static void take_ansi_quotes(struct word *word)
{
	struct shell_lexer *lexer = word->lexer;
	const size_t from = lexer->at;
	bool ended = false;

	refuse(word, SHELL_ANSI, from);
	word->token->quoted = true;
	lexer->at += 2;
	while (!at_end(lexer) && peek(lexer, 0) != '\'') {
		const size_t before = lexer->values_size;

		if (peek(lexer, 0) == '\\')
			ended |= !take_escape(word);
		else
			take_character(word);
		/* Bash drops what stands behind a NUL. */
		if (ended)
			lexer->values_size = before;
	}
	if (at_end(lexer))
		refuse(word, SHELL_OPEN_QUOTE, from);
	lexer->at++;
}

/* Take a substitution at "$" or "`". Its result is not known. */
static void take_substitution(struct word *word, bool quoted)
{
	struct shell_lexer *lexer = word->lexer;
	const size_t from = lexer->at;

	if (peek(lexer, 0) == '`') {
		refuse(word, SHELL_COMMAND, from);
		skip_quoted(lexer, '`');
		if (lexer->at <= lexer->text.size)
			add_inner(lexer,
				  str_part(lexer->text, from + 1, lexer->at - from - 2),
				  true);
	} else if (!quoted && peek(lexer, 1) == '\'') {
		take_ansi_quotes(word);
		return;
	} else if (!quoted && peek(lexer, 1) == '"') {
		/* The quotes are the next part. A translation is not looked for. */
		refuse(word, SHELL_ANSI, from);
		lexer->at++;
		return;
	} else {
		refuse(word, peek(lexer, 1) == '(' ? SHELL_COMMAND : SHELL_EXPANSION, from);
		lexer->at++;
		if (peek(lexer, 0) == '(')
			skip_substitution(lexer);
	}
	if (lexer->at > lexer->text.size)
		lexer->at = lexer->text.size;
	add(word, lexer->text.data + from, lexer->at - from);
}

/* Find the substitutions in BODY, the lines of an unquoted here-document. */
static void find_in_document(struct shell_lexer *lexer, struct str body)
{
	struct shell_lexer inside;
	struct shell_token token = {0};
	struct word word = {.lexer = &inside, .token = &token};

	if (lexer->inners == NULL)
		return;
	shell_lexer_init(&inside, body, NULL);
	inside.inners = lexer->inners;
	inside.nested = lexer->nested;
	while (!at_end(&inside)) {
		const char c = peek(&inside, 0);

		if (c == '`' || (c == '$' && peek(&inside, 1) == '('))
			take_substitution(&word, true);
		else
			inside.at += c == '\\' ? 2 : 1;
	}
	lexer->unsure |= inside.unsure;
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

/*
 * Note the bracket at the lexer, which is QUOTED or not. As in bash, "${" ends with the next "}"
 * that no other expansion has, and "$[" with the "]" whose "[" it is; so does a "[" of a word,
 * which may begin the index of an assignment (`a[1<<y]=3`). Quotes within them begin anew, so an
 * end counts only in the quotes of its beginning.
 */
static void note_bracket(struct shell_lexer *lexer, bool quoted)
{
	enum { BRACKETS_MAX = 64 }; /* the bits of squares and of quotes */
	const char c = peek(lexer, 0);
	const bool begins = lexer->at > 0 && lexer->text.data[lexer->at - 1] == '$';
	const bool open = lexer->opened > 0;
	const bool square = open && (lexer->squares & 1) != 0;
	const bool same = open && (lexer->quotes & 1) == quoted;

	if ((c == '{' && begins) ||
	    (c == '[' && (begins || (open ? square && same : !quoted)))) {
		lexer->unsure |= lexer->opened++ == BRACKETS_MAX;
		lexer->squares = lexer->squares << 1 | (c == '[');
		lexer->quotes = lexer->quotes << 1 | quoted;
	} else if (same && c == (square ? ']' : '}')) {
		lexer->opened--;
		lexer->squares >>= 1;
		lexer->quotes >>= 1;
	}
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
			take_substitution(word, true);
		} else {
			note_bracket(lexer, true);
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
		take_substitution(word, false);
		return;
	case PATTERN:
		note_bracket(lexer, false);
		refuse(word, SHELL_PATTERN, lexer->at);
		break;
	case BRACE:
		note_bracket(lexer, false);
		word->brace = true;
		break;
	case CLOSE:
		note_bracket(lexer, false);
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
		skip_substitution(lexer);
		token->kind = SHELL_PROCESS;
		token->text = str_part(lexer->text, start, lexer->at - start);
		return;
	}
	while (!str_starts(str_part(lexer->text, start, lexer->text.size),
			   str_of(found->text)))
		found++;
	lexer->at += strlen(found->text);
	lexer->shifts = lexer->opened > 0;
	token->kind = found->kind;
	token->text = str_part(lexer->text, start, lexer->at - start);
	if (found->kind == SHELL_OPEN && lexer->arithmetic > 0)
		lexer->arithmetic++;
	else if (found->kind == SHELL_OPEN && start > 0 && lexer->text.data[start - 1] == '(')
		lexer->arithmetic = 2;
	else if (found->kind == SHELL_CLOSE)
		lexer->arithmetic -= lexer->arithmetic > 0;
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
