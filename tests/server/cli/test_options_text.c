/* options_text: what is made of the table of options: help, the configuration in force, completions for three shells, the
 * manual pages and docs/options.md. */
#include "server/cli/options_text.h"

#include "base/arena.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "base/file.h"
#include "server/cli/options_store.h"
#include "tests/said.h"

static void print_help(const char *name)
{
    said_begin();
    options_print_help(option_find_command(name));
    said_end();
    CHECK_STR(said_err, "");
}

static void test_help(void)
{
    static const char DOCTOR[] = "parley doctor\n"
                                 "the processor's level, and what the server's sandbox holds here\n"
                                 "\n"
                                 "Program:\n"
                                 "  -V, --version             print the version and exit\n"
                                 "  -h, --help                print this text and exit\n"
                                 "\n"
                                 "In brackets: the default. The environment variable of --some-flag is\n"
                                 "PARLEY_SOME_FLAG; in a config file it is `some-flag = value`.\n";
    print_help("doctor");
    CHECK_STR(said_out, DOCTOR);
    print_help("serve");
    static const char *const BLOCKS[] = {
        /* a default behind a wrapped text; a name that leaves no room beside it; a switch that is on */
        "\nModel:\n"
        "  -m, --model PATH          checkpoint folder or GGUF file, a name below\n"
        "                            --models-dir, or the name of a model of a hub\n"
        "                            [Seedling, the built-in demonstration model]\n"
        "      --pull                fetch the model that -m names from the hub if it is\n"
        "                            not on this machine [off]\n",
        "\n      --chat-template-file FILE\n"
        "                            Jinja chat template to use instead of the\n",
        "\n      --metrics             offer /metrics; --no-metrics turns it off [on]\n",
        "\n  -np, --parallel N         answers computed at the same time [4, fewer where\n",
        "\n      --max-conns-per-ip N  the same, of one address [",
        "\n      --max-upload MIB      largest uploaded file [1024]\n",
        " prompt and the answer so far; 0 is none [8]\n",
        "\nUploaded files:\n",
        "\nKept chats:\n"};
    for (size_t i = 0; i < sizeof BLOCKS / sizeof BLOCKS[0]; i++) {
        CHECK_HAS(said_out, BLOCKS[i]);
    }
    CHECK(!strstr(said_out, "For this command")); /* no group without rows */
    /* Lines fill HELP_COLUMNS and are not longer; a word goes to the next one only where there is no room for it. */
    size_t longest = 0;
    for (const char *line = strchr(said_out, '\n') + 1; *line;) { /* behind the usage */
        const size_t len = strcspn(line, "\n");
        longest = len > longest ? len : longest;
        const char *next = line + len + (line[len] == '\n');
        if (strncmp(line, "                            ", 28) == 0 &&
            strncmp(next, "                            ", 28) == 0) {
            CHECK(len + 1 + strcspn(next + 28, " \n") > HELP_COLUMNS);
        }
        line = next;
    }
    CHECK_INT(longest, HELP_COLUMNS);

    said_begin();
    options_print_overview();
    said_end();
    CHECK_HAS(said_out,
              "Parley " PARLEY_VERSION
              ": a multimodal chat server that runs on your own machine.\n\nCommands:\n"
              "  serve     browser chat, WebSocket and HTTP API\n  run       one answer on the terminal\n");
    CHECK_HAS(said_out, "  version   version of this program\n\nWith no command: serve.");
}

/* ---- the configuration in force ---- */

static void store(options *o, const char *name, const char *text, option_source source)
{
    CHECK(options_store(o, option_find(name, strlen(name), IN_EVERY), text, source, name));
}

static void test_config(void)
{
    options o = {.memory = arena_create(1 << 16)};
    const command_row *health = option_find_command("health"), *serve = option_find_command("serve");
    options_set_standards(&o, health);
    store(&o, "port", "9000", SOURCE_LINE);
    said_begin();
    options_print_config(&o, health);
    said_end();
    CHECK_STR(said_out, "# parley " PARLEY_VERSION
                        "\n[health]\nhost = 127.0.0.1\n# command line:\nport = 9000\n# api-prefix =\n");

    options_set_standards(&o, serve);
    store(&o, "api-key", "a-secret-of-enough-letters", SOURCE_ENVIRONMENT);
    store(&o, "temp", "0.123456789", SOURCE_CONFIG);
    store(&o, "ctx-size", "4096", SOURCE_CONFIG);
    store(&o, "seed", "7", SOURCE_LINE);
    store(&o, "metrics", "off", SOURCE_LINE);
    store(&o, "alias", "x", SOURCE_ENVIRONMENT);
    said_begin();
    options_print_config(&o, serve);
    said_end();
    static const char *const LINES[] = {"[serve]\n# model = (",
                                        "\n# environment:\n# api-key = (set; not shown)\n",
                                        "\n# config file:\ntemp = 0.123456789\n",
                                        "\n# config file:\nctx-size = 4096\n",
                                        "\n# command line:\nseed = 7\n",
                                        "\n# command line:\nmetrics = off\n",
                                        "\n# environment:\nalias = x\n",
                                        "\nslots = on\n",
                                        "\n# threads = (one per core)\n",
                                        "\n# top-p = (model's default)\n",
                                        "\nquantize = none\n",
                                        "\nmax-body = 64\n",
                                        "\n# admin-key = (none: who sits at this machine may)\n",
                                        "\nspec-prefill-keep = 0.3\n",
                                        "\npull = off\n"};
    for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++) {
        CHECK_HAS(said_out, LINES[i]);
    }
    CHECK(!strstr(said_out, "a-secret") && !strstr(said_out, "\nconfig =") && !strstr(said_out, "check") &&
          !strstr(said_out, "prompt-tokens"));
    options_set_standards(&o, serve);
    said_begin();
    options_print_config(&o, serve);
    said_end();
    CHECK_HAS(said_out, "\n# seed = (a new one for each answer)\n");
    arena_destroy(o.memory);
}

/* ---- completions ---- */

static void complete(const char *shell)
{
    said_begin();
    options_print_completion(shell);
    said_end();
}

static void test_bash(void)
{
    static const char CONVERT[] =
        "    convert)\n"
        "        case $prev in\n"
        "        --models-dir) compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -d -- \"$cur\")); "
        "return ;;\n"
        "        --quantize) COMPREPLY=($(compgen -W \"none q8 q4\" -- \"$cur\")); return ;;\n"
        "        --quantize-head) COMPREPLY=($(compgen -W \"none q8 q4\" -- \"$cur\")); return ;;\n"
        "        --threads|-t) return ;;\n"
        "        --config) compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); return "
        ";;\n"
        "        esac\n"
        "        options=\"--models-dir --quantize --quantize-head --threads --config --print-config "
        "--version --help \"\n"
        "        ;;\n"
        "    health)\n"
        "        case $prev in\n"
        "        --host) return ;;\n"
        "        --port) return ;;\n"
        "        --api-prefix|--root-path) return ;;\n";
    complete("bash");
    CHECK_HAS(said_out, "# bash completion for parley");
    CHECK_HAS(said_out, CONVERT);
    CHECK_HAS(said_out,
              "    case ${COMP_WORDS[1]} in\n    run)\n"); /* serve is what stands behind no command */
    CHECK(!strstr(said_out, "    serve)\n"));
    CHECK_HAS(said_out, "--api-key --api-key-file --json --no-json --config ");
    CHECK_HAS(said_out, "    *)\n        case $prev in\n        --model|-m) return ;;\n");
    CHECK_HAS(said_out, "--max-model-len|-c) return ;;\n");
    CHECK_HAS(said_out, "        ((COMP_CWORD == 1)) && options+=\" serve run chat bench pull list remove "
                        "inspect convert health "
                        "status stop doctor manual version\"\n        ;;\n    esac\n");
}

static void test_zsh(void)
{
    complete("zsh");
    static const char *const PARTS[] = {
        "#compdef parley\n",
        "            'serve:browser chat, WebSocket and HTTP API'\n            'run:one answer on the "
        "terminal'\n",
        "            'doctor:the processor'\\''s level, and what the server'\\''s sandbox holds here'\n",
        "    convert)\n        _arguments \\\n            '--models-dir=[folder of models that -m selects "
        "from by name]:DIR:_files -/' \\\n"
        "            '--quantize=[quantize the layers'\\'' weights to 8 or 4 bits\\: none, q8, "
        "q4]:FORMAT:(none q8 q4)' \\\n"
        "            '--quantize-head=[the same for the logits head]:FORMAT:(none q8 q4)' \\\n"
        "            '--threads=[compute threads]:N:' \\\n            '-t[compute threads]:N:' \\\n"
        "            '--config=[read this config file only; none\\: read no file]:FILE:_files' \\\n"
        "            '--print-config[print the value of every option as a config file, without secrets, and "
        "exit]' \\\n"
        "            '--version[print the version and exit]' \\\n            '-V[print the version and "
        "exit]' \\\n"
        "            '--help[print this text and exit]' \\\n            '-h[print this text and exit]' \\\n"
        "            '*:file:_files'\n        ;;\n    health)\n",
        "            '--json[print JSON instead of a table]' \\\n            '--no-json[print JSON instead "
        "of a table]' \\\n",
        "    serve)\n        _arguments \\\n            '--model=["};
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        CHECK_HAS(said_out, PARTS[i]);
    }
    CHECK(!strstr(said_out, "no-check"));
}

static void test_fish(void)
{
    complete("fish");
    static const char *const PARTS[] = {
        "# fish completion for parley;",
        "complete -c parley -f -n __parley_begins -a serve -d 'browser chat, WebSocket and HTTP API'\n"
        "complete -c parley -f -n __parley_begins -a run -d 'one answer on the terminal'\n",
        "complete -c parley -n '__parley_does convert' -l models-dir -x -a '(__fish_complete_directories)' "
        "-d 'folder of models "
        "that -m selects from by name'\n"
        "complete -c parley -n '__parley_does convert' -l quantize -x -a 'none q8 q4' -d 'quantize the "
        "layers'\\'' weights to 8 or "
        "4 bits: none, q8, q4'\n"
        "complete -c parley -n '__parley_does convert' -l quantize-head -x -a 'none q8 q4' -d 'the same for "
        "the logits head'\n"
        "complete -c parley -n '__parley_does convert' -l threads -s t -x -d 'compute threads'\n"
        "complete -c parley -n '__parley_does convert' -l config -r -F -d 'read this config file only; none: "
        "read no file'\n"
        "complete -c parley -n '__parley_does convert' -l print-config -d 'print the value of every option "
        "as a config file, "
        "without secrets, and exit'\n"
        "complete -c parley -n '__parley_does convert' -l version -s V -d 'print the version and exit'\n",
        "complete -c parley -n '__parley_does serve' -l parallel -o np -x -d 'answers",
        "complete -c parley -n '__parley_does list' -l json -d 'print JSON instead of a table'\n"
        "complete -c parley -n '__parley_does list' -l no-json -d 'not: print JSON instead of a table'\n"};
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        CHECK_HAS(said_out, PARTS[i]);
    }
    CHECK(!strstr(said_out, "-l no-check"));
}

/* ---- the manual ---- */

static void print_manual(const char *page)
{
    said_begin();
    CHECK(options_print_manual(page));
    said_end();
}

/* No text needs more of roff than its dashes. */
static void test_texts(void)
{
    size_t n;
    const option_row *rows = option_rows(&n);
    for (size_t i = 0; i < n; i++) {
        const char *const texts[] = {rows[i].name, rows[i].help, rows[i].more, rows[i].note,
                                     rows[i].standard_text};
        for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
            CHECK(!texts[k] || (!strchr(texts[k], '\\') && texts[k][0] != '.' && texts[k][0] != '\''));
        }
    }
}

static void test_manual(void)
{
    print_manual("parley.1");
    static const char *const PROGRAM[] = {".TH PARLEY 1 \"\" \"Parley ",
                                          ".SH SYNOPSIS\nparley [serve] [\\-m DIR] [options]\n.br\nparley "
                                          "run [\\-m DIR]",
                                          ".SH COMMANDS\n.TP\n\\fBserve\\fR\nbrowser chat, WebSocket and "
                                          "HTTP API.\n.TP\n\\fBrun\\fR\n",
                                          ".SS Model\n.TP\n\\fB\\-m\\fR, \\fB\\-\\-model\\fR "
                                          "\\fIPATH\\fR\ncheckpoint folder or GGUF file",
                                          "\n.TP\n\\fB\\-\\-pull\\fR\nfetch the model that \\-m names from "
                                          "the hub if it is not on this machine.\n"
                                          "\\fB\\-\\-no\\-pull\\fR turns it off.\nDefault: "
                                          "off.\nEnvironment: \\fBPARLEY_PULL\\fR.\nFor: serve, run, chat, "
                                          "bench, inspect.\n",
                                          "\n.TP\n\\fB\\-\\-temp\\fR \\fIX\\fR\ntemperature; 0 is "
                                          "greedy.\nThe same: \\fB\\-\\-temperature\\fR.\n"
                                          "Default: model's default.\nEnvironment: "
                                          "\\fBPARLEY_TEMP\\fR.\nFor: serve, run, chat.\n",
                                          "\n.TP\n\\fB\\-\\-check\\fR\nload the model, compute one token and "
                                          "exit; exit code 0 on success.\nFor: serve.\n",
                                          "\n.TP\n\\fB\\-\\-connect\\-key\\fR \\fIKEY\\fR\nkey for that "
                                          "server; better in the environment.\n"
                                          "Environment: \\fBPARLEY_CONNECT_KEY\\fR.\nFor: chat.\n",
                                          "\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprint this text and exit.\n.SH "
                                          "EXIT STATUS\n", /* of every command */
                                          "\n\\fB\\-\\-api\\-prefix\\fR \\fIPATH\\fR\nserve everything below "
                                          "this path, for a proxy that does not strip it.\n"
                                          "It begins with a slash and ends without one: /parley.\nThe same: "
                                          "\\fB\\-\\-root\\-path\\fR.\n"};
    for (size_t i = 0; i < sizeof PROGRAM / sizeof PROGRAM[0]; i++) {
        CHECK_HAS(said_out, PROGRAM[i]);
    }
    int n = 0;
    for (const char *at = said_out; (at = strstr(at, "\n.SS ")); at++) {
        n++;
    }
    CHECK_INT(n, OPTION_GROUPS);

    print_manual("parley.conf.5");
    CHECK_HAS(said_out, ".TH PARLEY.CONF 5 ");
    CHECK_HAS(said_out, "\n.TP\n\\fBpull\\fR = \\fIon\\fR|\\fIoff\\fR\nfetch the model that \\-m names from "
                        "the hub if it is not on this "
                        "machine.\nDefault: off.\nFor: serve, run, chat, bench, inspect.\n");
    CHECK_HAS(said_out, "\n.TP\n\\fBtemp\\fR = \\fIX\\fR\ntemperature; 0 is greedy.\nDefault: model's "
                        "default.\nFor: serve, run, chat.\n");
    CHECK(!strstr(said_out, "fBconnect\\-key") && !strstr(said_out, "fBcheck") &&
          !strstr(said_out, "fBconfig\\fR ="));
    CHECK_HAS(said_out, "\n.SH EXAMPLE\n");

    said_begin();
    CHECK(!options_print_manual("parley.2"));
    said_end();
    CHECK_STR(said_out, "");
}

/* docs/options.md is the table as it is, row by row. */
static void test_markdown(void)
{
    err_detail d = {0};
    bytes written = bytes_empty(1 << 20);
    CHECK_OK(file_read(&written, PARLEY_SOURCE_DIR "/docs/options.md", &d), d);
    print_manual("options");
    const char *a = said_out, *e = bytes_str(&written);
    while (*a || *e) { /* line by line, so that a difference is short */
        const size_t n = strcspn(a, "\n"), m = strcspn(e, "\n");
        if (n != m || memcmp(a, e, n) != 0) {
            fprintf(stderr, "build/parley manual options > docs/options.md\n%.*s\n%.*s\n", (int)n, a, (int)m,
                    e);
            CHECK(!"docs/options.md is what the program says");
            break;
        }
        a += n + (a[n] != '\0');
        e += m + (e[m] != '\0');
    }
    bytes_deinit(&written);
}

int main(void)
{
    test_help();
    test_config();
    test_bash();
    test_zsh();
    test_fish();
    test_texts();
    test_manual();
    test_markdown();
    CHECK_DONE();
}
