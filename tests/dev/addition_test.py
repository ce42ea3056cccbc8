#!/usr/bin/env python3
"""What an addition costs: a tool, a verb and a provider are added in a copy of the tree, each as one file
and one row, and are there: in the build, in the program, in its lists. usage: SOURCE BUILD

What the additions do not touch is taken from BUILD, where the same sources have been compiled."""
import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

import tap

SOURCE, BUILD = (os.path.realpath(path) for path in sys.argv[1:3])

TOOL = """/* letters: counts how often a letter is in a text. */
#include "tool/call.h"
#include "tools/tools.h"

static const struct row letters_params[] = {
	{"text", ROW_TEXT, true, "Text to count in"},
	{"letter", ROW_TEXT, true, "Letter that is counted", .max = 1},
	{0},
};

static enum result_status letters_execute(struct call *call, struct tool_result *result)
{
	struct str text = call_str(call, "text");
	size_t count = 0;

	for (size_t i = 0; i < text.size; i++)
		count += text.data[i] == call_text(call, "letter")[0];
	(void)buf_addf(&result->text, "%zu times", count);
	return tool_done(result);
}

const struct tool letters_tool = {
	.name = "letters",
	.description = "Count how often a letter is in a text.",
	.example = "{\\"text\\": \\"letters\\", \\"letter\\": \\"t\\"}",
	.params = letters_params,
	.effects = EFFECT_READS,
	.timeout_s = 1,
	.execute = letters_execute,
};
"""
TOOL_CASES = """# letters: how often a letter is in a text.

== a letter is counted
call letters {"text": "letters", "letter": "t"}
says 2 times
"""
VERB = """/* verb_shout: prints its words. */
#include "front/verb.h"

static int shout_run(const struct options *options, FILE *out)
{
	for (size_t i = 0; i < options->word_count; i++)
		(void)fprintf(out, "%s%s", i > 0 ? " " : "", options->words[i]);
	(void)fputc('\\n', out);
	return CODE_DONE;
}

static const struct option_row shout_options[] = {OPTION_ROW_HELP, {0}};

const struct verb verb_shout = {
	.name = "shout",
	.summary = "print words",
	.arguments = "[WORD...]",
	.help = "Print the words.",
	.example = "  glovebox shout a b",
	.options = shout_options,
	.words_most = VERB_WORDS_ANY,
	.run = shout_run,
};
"""
VERB_CASES = """# glovebox shout: prints its words.

== words
$ glovebox shout a b
out = a b\\n

== its help has its example
$ glovebox shout --help
out ~ glovebox shout a b
"""
PROVIDER = """/* parrot: a service that says one word, in a form of its own. */
#include "model/provider.h"

#include "base/value.h"
#include "model/conversation.h"

static bool parrot_request(const struct provider_settings *settings,
			   const struct model_request *request, struct buf *body, struct err *err)
{
	(void)request;
	(void)buf_adds(body, "{\\"bird\\":");
	(void)value_quote(str_of(settings->model), body);
	(void)buf_addc(body, '}');
	return conversation_fits(body, err);
}

static bool parrot_event(struct answer *answer, struct str name, struct str data, bool *end,
			 struct err *err)
{
	auto_value struct value *root = NULL;

	(void)name;
	if (!value_parse(data, 0, &root, err))
		return false;
	answer_add_text(answer, value_str(value_member(root, "says")));
	answer_set_finish(answer, MODEL_FINISH_STOP);
	*end = true;
	return true;
}

static bool parrot_whole(struct answer *answer, struct str body, struct err *err)
{
	bool end = false;

	return parrot_event(answer, STR(""), body, &end, err);
}

static bool parrot_error(struct str body, struct buf *out)
{
	return body.size > 0 && buf_addstr(out, body);
}

const struct provider parrot_provider = {
	.name = "parrot",
	.base_url = "http://127.0.0.1:9",
	.path = "/say",
	.key_name = "PARROT_API_KEY",
	.key_header = "Authorization: Bearer ",
	.streams_lines = true,
	.request = parrot_request,
	.event = parrot_event,
	.whole = parrot_whole,
	.error = parrot_error,
};
"""
# All files that the additions bring, beside their rows.
ADDED = {
    "src/tools/letters.c": TOOL, "tests/tools/letters.case": TOOL_CASES,
    "src/front/verbs/shout.c": VERB, "tests/fronts/shout.case": VERB_CASES,
    "src/model/providers/parrot.c": PROVIDER,
}
ROWS = {"src/tools/tools.def": ("TOOL(glob, search/glob)", "TOOL(letters, letters)"),
        "src/front/verbs.def": ("VERB(undo, verbs/undo)", "VERB(shout, verbs/shout)"),
        "src/model/providers.def": ("PROVIDER(ollama, providers/ollama)",
                                    "PROVIDER(parrot, providers/parrot)")}
# Where the manual page tells of the verb, and with which lines.
PAGE = ("docs/man/glovebox.1", ".Ss glovebox undo\n", ".Ss glovebox shout\nPrint words.\n")
# The reference of the tools is written by a script of ours.
REFERENCE = "docs/tools.md"
# The files that read the rows, and a neighbour of each new file, which is compiled as that one is.
READERS = ["src/tools/tools.c", "src/front/verb.c", "src/model/model.c"]
NEIGHBOURS = {"src/tools/letters.c": "src/tools/bash.c",
              "src/front/verbs/shout.c": "src/front/verbs/undo.c",
              "src/model/providers/parrot.c": "src/model/providers/ollama.c"}


def copy_tree(copy):
    """What belongs to the project, without what was built."""
    for name in ("src", "include", "presets", "models", "agents", "tests", "dev", "docs", "completions",
                 "examples", "bench", "systemd", "LICENSE", "meson.build", "meson_options.txt",
                 "ARCHITECTURE.md"):
        path = os.path.join(SOURCE, name)
        if os.path.isdir(path):
            shutil.copytree(path, os.path.join(copy, name), symlinks=True,
                            ignore=shutil.ignore_patterns("__pycache__", "node_modules", "corpus"))
        elif os.path.exists(path):
            shutil.copy2(path, os.path.join(copy, name))


def add(copy):
    """Our additions in the tree COPY."""
    for path, text in ADDED.items():
        with open(os.path.join(copy, path), "x", encoding="utf-8") as file:
            file.write(text)
    for path, (above, row) in ROWS.items():
        with open(os.path.join(copy, path), "r+", encoding="utf-8") as file:
            text = file.read()
            assert above + "\n" in text, path
            file.seek(0)
            file.write(text.replace(above + "\n", f"{above}\n{row}\n"))


def tell(copy, made):
    """The manual page of the verb, and the reference with the tool."""
    path, below, lines = PAGE
    with open(os.path.join(copy, path), "r+", encoding="utf-8") as file:
        text = file.read()
        assert below in text
        file.seek(0)
        file.write(text.replace(below, lines + below))
    done = tap.run([os.path.join(copy, "dev", "tool-docs"), made, "--write", os.path.join(copy, REFERENCE)])
    assert done.returncode == 0, done.stdout + done.stderr


def commands():
    """How BUILD compiles each file, by the file's path below SOURCE."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        rows = json.load(file)
    return {os.path.relpath(os.path.join(row["directory"], row["file"]), SOURCE): row for row in rows}


def compiled(copy, path, row):
    """The object of PATH in COPY, made as ROW makes its neighbour's."""
    own = os.path.join(copy, path.replace("/", "_") + ".o")
    above = os.path.relpath(SOURCE, BUILD)
    words = []
    for word in shlex.split(row["command"]):
        if word.startswith(f"-I{above}/"):
            word = "-I" + os.path.join(copy, word[len(above) + 3:])
        words.append(word)
    words.remove("-MD")
    for option in ("-MQ", "-MF"):
        del words[words.index(option):words.index(option) + 2]
    words[words.index("-o") + 1] = own
    words[words.index("-c") + 1] = os.path.join(copy, path)
    done = tap.run(words, cwd=BUILD)
    assert done.returncode == 0, done.stderr
    return own


def members(archive):
    """The objects of a thin archive of BUILD, by their path there."""
    return subprocess.run(["ar", "t", archive], cwd=BUILD, check=True, capture_output=True,
                          text=True).stdout.split()


def program(copy):
    """The program of the tree COPY."""
    rows = commands()
    objects = {path: compiled(copy, path, rows[NEIGHBOURS.get(path, path)])
               for path in READERS + list(NEIGHBOURS)}
    replaced = {rows[path]["output"]: objects.pop(path) for path in READERS}
    link = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "glovebox"], check=True,
                          capture_output=True, text=True).stdout.splitlines()[-1]
    made = os.path.join(copy, "glovebox")
    words = []
    for word in shlex.split(link):
        if word.endswith(("/liblayer-tools.a", "/liblayer-front.a", "/liblayer-model.a")):
            words += [replaced.get(name, name) for name in members(word)]
        else:
            words.append(word)
    words[words.index("-o") + 1] = made
    done = tap.run(words + list(objects.values()), cwd=BUILD)
    assert done.returncode == 0, done.stderr[-4000:]
    return made


class Parrot(http.server.BaseHTTPRequestHandler):
    """The service: it says the name of the model."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"says": f"{self.path} {asked['bird']}!"}).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


COPY = {}


def play(words, only=""):
    """The cases of a runner of COPY, or those of them whose names hold ONLY."""
    return tap.run(words, env={**os.environ, "TAP_ONLY": only})


def play_front(cases, only=""):
    """The same of the file CASES of the command line."""
    tests = os.path.join(COPY["folder"], "tests", "fronts")
    return play([os.path.join(tests, "run"), COPY["program"],
                 os.path.join(BUILD, "tests", "fronts", "embed"), os.path.join(tests, cases)], only)


@tap.case
def one_file_and_one_row_are_all_that_the_build_needs():
    folder = COPY["folder"]
    copy_tree(folder)
    add(folder)
    done = tap.run([os.path.join(folder, "dev", "check-layers")])
    assert done.returncode == 0, done.stdout
    build = os.path.join(folder, "build")
    done = tap.run(["meson", "setup", build, "-Dtests=false"], cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    built = tap.run(["meson", "introspect", "--targets", build]).stdout
    for path in NEIGHBOURS:
        assert os.path.join(os.path.realpath(folder), path) in built, path


@tap.case
def the_program_has_all_three():
    made = COPY["program"] = program(COPY["folder"])
    listed = json.loads(tap.run([made, "tool", "list", "--json"]).stdout)
    assert "letters" in json.dumps(listed), listed
    assert re.search(r"^  shout .*print words$", tap.run([made, "help"]).stdout, re.M)
    said = tap.run([made, "run", "--model", "parot:x", "hi"], cwd=COPY["folder"])
    assert said.returncode != 0 and "parrot" in said.stderr, said.stderr


@tap.case
def what_is_written_of_all_verbs_misses_the_new_one_until_it_is_told():
    said = play_front("help.case", "every verb and option")
    assert said.returncode != 0 and "missing: shout" in said.stdout, said.stdout
    tell(COPY["folder"], COPY["program"])
    said = play_front("help.case", "every verb and option")
    assert said.returncode == 0 and "\nok 1 - " in said.stdout, said.stdout
    with open(os.path.join(COPY["folder"], REFERENCE), encoding="utf-8") as file:
        assert "### letters\n" in file.read()


@tap.case
def the_tool_and_the_verb_pass_their_cases():
    tests = os.path.join(COPY["folder"], "tests")
    session = os.path.join(BUILD, "tests", "tools", "session")
    for done in (play([os.path.join(tests, "tools", "run"), COPY["program"], "--session", session,
                       os.path.join(tests, "tools", "letters.case")]),
                 play_front("shout.case")):
        assert done.returncode == 0 and "\nok 1 - " in done.stdout, done.stdout + done.stderr


@tap.case
def the_provider_answers():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Parrot)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with tempfile.TemporaryDirectory() as home:
            workspace = os.path.join(home, "project")
            os.mkdir(workspace)
            said = tap.run([COPY["program"], "run", "--model", "parrot:polly", "hi"], cwd=workspace,
                           env={**os.environ, "HOME": home, "PARROT_API_KEY": "seeds",
                                "GLOVEBOX_BASE_URL": f"http://127.0.0.1:{server.server_port}"})
        assert said.returncode == 0 and "/say polly!" in said.stdout, said.stdout + said.stderr
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as COPY["folder"]:
        tap.play()
