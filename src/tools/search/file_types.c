/* file_types: the table; see file_types.h. */
#include "tools/search/file_types.h"

#include "base/text/pattern.h"
#include "base/text/text.h"

#include <stddef.h>
#include <string.h>

static const struct file_type file_types[] = {
	{"c h", "*.c *.h *.h.in *.cats"},
	{"cpp c++ cc cxx hpp",
	 "*.cpp *.cc *.cxx *.c++ *.hpp *.hh *.hxx *.h *.inl *.ipp *.tpp"},
	{"objc", "*.m *.h"},
	{"cs csharp", "*.cs *.csx"},
	{"java", "*.java"},
	{"kotlin kt", "*.kt *.kts"},
	{"scala", "*.scala *.sc *.sbt"},
	{"swift", "*.swift"},
	{"go", "*.go"},
	{"rust rs", "*.rs"},
	{"zig", "*.zig *.zon"},
	{"py python", "*.py *.pyi *.pyw"},
	{"rb ruby", "*.rb *.rake *.gemspec Gemfile Rakefile"},
	{"php", "*.php *.phtml *.php3 *.php4 *.php5 *.php7 *.php8 *.phps"},
	{"perl pl", "*.pl *.pm *.t *.psgi *.PL"},
	{"lua", "*.lua"},
	{"r", "*.R *.r *.Rmd *.rmd"},
	{"julia jl", "*.jl"},
	{"haskell hs", "*.hs *.lhs *.hsc"},
	{"ocaml ml", "*.ml *.mli *.mll *.mly"},
	{"elixir ex", "*.ex *.exs *.heex *.eex"},
	{"erlang erl", "*.erl *.hrl"},
	{"clojure clj", "*.clj *.cljs *.cljc *.edn"},
	{"lisp", "*.el *.lisp *.lsp *.scm *.ss *.cl"},
	{"dart", "*.dart"},
	{"js javascript", "*.js *.mjs *.cjs *.jsx *.vue"},
	{"ts typescript", "*.ts *.tsx *.mts *.cts"},
	{"vue", "*.vue"},
	{"svelte", "*.svelte"},
	{"html htm", "*.html *.htm *.xhtml *.ejs"},
	{"css", "*.css"},
	{"scss sass less", "*.scss *.sass *.less"},
	{"json", "*.json *.jsonc *.json5 *.jsonl *.sarif composer.lock"},
	{"yaml yml", "*.yaml *.yml"},
	{"toml", "*.toml Cargo.lock"},
	{"xml", "*.xml *.xsd *.xsl *.xslt *.svg *.rng *.dtd"},
	{"ini config conf", "*.ini *.cfg *.conf *.config"},
	{"md markdown", "*.md *.markdown *.mdx *.mdown"},
	{"rst", "*.rst"},
	{"txt text", "*.txt"},
	{"tex", "*.tex *.sty *.cls *.bib *.ltx"},
	{"sh shell bash zsh", "*.sh *.bash *.zsh *.ksh *.csh .bashrc .profile .zshrc"},
	{"fish", "*.fish"},
	{"ps powershell", "*.ps1 *.psm1 *.psd1"},
	{"sql", "*.sql *.psql"},
	{"proto protobuf", "*.proto"},
	{"graphql gql", "*.graphql *.graphqls *.gql"},
	{"tf terraform hcl", "*.tf *.tfvars *.hcl"},
	{"docker dockerfile", "Dockerfile Dockerfile.* *.dockerfile Containerfile"},
	{"make makefile mk", "Makefile makefile GNUmakefile *.mk *.mak Makefile.* *.am"},
	{"cmake", "CMakeLists.txt *.cmake"},
	{"meson", "meson.build meson_options.txt meson.options"},
	{"ninja", "*.ninja"},
	{"gradle", "*.gradle *.gradle.kts"},
	{"asm", "*.s *.S *.asm"},
	{"nix", "*.nix"},
	{"vim", "*.vim .vimrc vimrc"},
	{"diff patch", "*.diff *.patch"},
	{"log", "*.log"},
	{"csv tsv", "*.csv *.tsv"},
};

enum { FILE_TYPES = sizeof(file_types) / sizeof(file_types[0]) };

/* Edits between two names that may still be a slip. */
enum { TYPE_SLIP_MAX = 2 };

static bool next_word(const char **at, struct str *word)
{
	*at += strspn(*at, " ");
	*word = (struct str){*at, strcspn(*at, " ")};
	*at += word->size;
	return word->size > 0;
}

const struct file_type *file_type_find(const char *name)
{
	name += *name == '.';
	for (size_t i = 0; i < FILE_TYPES; i++) {
		const char *at = file_types[i].names;
		struct str word;

		while (next_word(&at, &word)) {
			if (str_is(word, name))
				return &file_types[i];
		}
	}
	return NULL;
}

bool file_type_fits(const struct file_type *type, struct str file_name)
{
	const char *at = type->patterns;
	struct str pattern;

	while (next_word(&at, &pattern)) {
		/* Most are "*.x": no need of the matcher. */
		if (pattern.data[0] == '*' &&
				    !memchr(pattern.data + 1, '*', pattern.size - 1)
			    ? str_ends(file_name, str_part(pattern, 1, pattern.size))
			    : pattern_match(pattern, file_name, 0))
			return true;
	}
	return false;
}

const struct file_type *file_type_nearest(const char *name)
{
	const struct file_type *nearest = NULL;
	size_t best = TYPE_SLIP_MAX + 1;

	for (size_t i = 0; i < FILE_TYPES; i++) {
		const char *at = file_types[i].names;
		struct str word;

		while (next_word(&at, &word)) {
			size_t distance = text_distance(str_of(name), word, TYPE_SLIP_MAX);

			/* A slip leaves some of a word: "x" is not one of "go". */
			if (distance < best && distance < word.size) {
				best = distance;
				nearest = &file_types[i];
			}
		}
	}
	return nearest;
}

void file_type_add_name(const struct file_type *type, struct buf *out)
{
	const char *at = type->names;
	struct str word;

	if (next_word(&at, &word))
		(void)buf_addstr(out, word);
}

void file_type_add_all(struct buf *out)
{
	for (size_t i = 0; i < FILE_TYPES; i++) {
		(void)buf_adds(out, i > 0 ? ", " : "");
		file_type_add_name(&file_types[i], out);
	}
}
