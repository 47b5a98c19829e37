/* options: every bound and default of the table, values by their kinds, the command line with its mistakes, config files,
 * the environment, and which of them wins. */
#include "server/cli/options_parse.h"

#include <math.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/limits.h"
#include "server/cli/options_store.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/said.h"

static char folder[FOLDER_NAME];
static const char *of_machine; /* the config file of the machine; NULL: there is none */

ONE_FAILS(arena *, arena_create, (size_t most), (most), NULL)
ONE_FAILS(void *, arena_alloc, (arena * a, size_t n), (a, n), NULL)
ONE_FAILS(void *, arena_calloc, (arena * a, size_t n, size_t size), (a, n, size), NULL)
ONE_FAILS(char *, arena_strdup, (arena * a, const char *text, size_t len), (a, text, len), NULL)

static bool is_of_machine(const char *path)
{
    return strcmp(path, "/etc/parley/parley.conf") == 0;
}

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
    return !is_of_machine(path) ? __real_access(path, mode) : of_machine ? 0 : -1;
}

err_code __real_file_read(bytes *out, const char *path, err_detail *d);
err_code __wrap_file_read(bytes *out, const char *path, err_detail *d);
err_code __wrap_file_read(bytes *out, const char *path, err_detail *d)
{
    if (!is_of_machine(path)) {
        return __real_file_read(out, path, d);
    }
    bytes_append_str(out, of_machine);
    return ERR_OK;
}

/* Parses a line of words with a space between, `~` in a word for a space in it, `''` for an empty word. */
static int parse(options *o, const char *line)
{
    static char text[4096];
    static char *argv[64];
    int argc = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = text; *word;) {
        char *end = word + strcspn(word, " ");
        char *next = end + strspn(end, " ");
        *end = '\0';
        for (char *c = word; *c; c++) {
            *c = *c == '~' ? ' ' : *c;
        }
        argv[argc++] = strcmp(word, "''") == 0 ? word + 2 : word;
        word = next;
    }
    argv[argc] = NULL;
    said_begin();
    const int code = options_parse(o, argc, argv);
    said_end();
    return code;
}

static void refused(const char *line, const char *sentence)
{
    options o;
    CHECK_INT(parse(&o, line), 2);
    CHECK_STR(said_err, sentence);
    CHECK_STR(said_out, "");
    CHECK(o.memory == NULL);
}

/* The values of a line that is accepted in silence; freed by options_deinit. */
static options taken(const char *line)
{
    options o;
    CHECK_INT(parse(&o, line), -1);
    CHECK_STR(said_err, "");
    CHECK_STR(said_out, "");
    return o;
}

/* ---- the table ---- */

typedef struct number_row {
    const char *name;
    double standard, min, max;
} number_row;

static const double MODELS_DEFAULT = NAN;

static void test_numbers(void)
{
    const double mib = 1048576, tokens = 16777216;
    const number_row rows[] = {
        {"models-max", 1, 1, LIMIT_MODELS},
        {"idle-unload", 0, 0, 2592000},
        {"ctx-size", 0, 256, tokens},
        {"threads", 0, 1, 1024},
        {"parallel", 0, 1, 32},
        {"queue", LIMIT_QUEUE, 1, 4096},
        {"batch-size", 0, 16, 8192},
        {"mem-limit", 0, 0, tokens},
        {"cache-ram", -1, 0, mib},
        {"cache-disk-mib", 4096, 1, mib},
        {"vision-cache", -1, 0, mib},
        {"spec-prefill-threshold", LIMIT_SPARSE_THRESHOLD, 1, tokens},
        {"spec-prefill-max", 0, 0, tokens},
        {"spec-prefill-keep", LIMIT_SPARSE_KEEP, 0.001, 1},
        {"spec-prefill-backbone", 0, 0, 1},
        {"prompt-lookup", 8, 0, 31},
        {"n-predict", LIMIT_MAX_TOKENS_DEFAULT, 1, tokens},
        {"reasoning-budget", -1, -1, tokens},
        {"temp", MODELS_DEFAULT, 0, 100},
        {"top-k", -1, 0, tokens},
        {"top-p", MODELS_DEFAULT, 0, 1},
        {"min-p", MODELS_DEFAULT, 0, 1},
        {"repeat-penalty", MODELS_DEFAULT, 0.01, 10},
        {"presence-penalty", MODELS_DEFAULT, -2, 2},
        {"frequency-penalty", MODELS_DEFAULT, -2, 2},
        {"seed", 0, 0, 9e15},
        {"max-images", LIMIT_IMAGES, 1, LIMIT_IMAGES},
        {"max-image-pixels", LIMIT_IMAGE_PIXELS, 256, LIMIT_IMAGE_PIXELS},
        {"max-video-mib", 512, 1, mib},
        {"max-video-pixels", 4096 * 2304, 256, 268435456},
        {"max-video-duration", LIMIT_VIDEO_DURATION_S, 1, 360000},
        {"max-video-frames", LIMIT_VIDEO_FRAMES, 1, LIMIT_VIDEO_FRAMES_MAX},
        {"media-mem", 512, 1, mib},
        {"max-video-time", LIMIT_VIDEO_WALL_S, 1, 3600},
        {"port", 8080, 0, 65535},
        {"max-body", 64, 1, 1024},
        {"max-ws-message", 0, 0, 1024},
        {"max-ws-queue", LIMIT_UNREAD_BYTES / 1024, 64, mib},
        {"max-header", LIMIT_HEADER_BYTES / 1024, 2, 16},
        {"max-conns", LIMIT_CONNECTIONS, 1, 100000},
        {"max-conns-per-ip", LIMIT_CONNECTIONS_PER_ADDRESS, 1, 100000},
        {"header-timeout", LIMIT_HEADER_TIMEOUT_S, 1, 3600},
        {"body-timeout", LIMIT_BODY_TIMEOUT_S, 1, 3600},
        {"min-body-rate", LIMIT_MIN_BODY_RATE / 1024, 0, mib},
        {"send-timeout", LIMIT_SEND_TIMEOUT_S, 1, 86400},
        {"send-rate", LIMIT_SEND_RATE / 1024, 0, mib},
        {"queue-timeout", LIMIT_QUEUE_TIMEOUT_S, 1, 86400},
        {"request-timeout", LIMIT_REQUEST_TIMEOUT_S, 1, 864000},
        {"step-timeout", LIMIT_STEP_TIMEOUT_S, 1, 86400},
        {"keepalive", LIMIT_KEEPALIVE_S, 1, 3600},
        {"ws-ping", LIMIT_WS_PING_S, 1, 3600},
        {"drain-timeout", LIMIT_DRAIN_TIMEOUT_S, 0, 86400},
        {"upstream-timeout", LIMIT_UPSTREAM_SILENCE_S, 1, 86400},
        {"upstream-connect-timeout", LIMIT_UPSTREAM_CONNECT_S, 1, 3600},
        {"mcp-rounds", LIMIT_MCP_ROUNDS, 1, 1000},
        {"max-upload", 1024, 1, mib},
        {"upload-quota", 4096, 0, tokens},
        {"upload-expire", 60, 1, mib},
        {"history-quota", 16384, 1, tokens},
        {"prompt-tokens", 512, 1, mib},
        {"predict-tokens", 64, 1, mib},
        {"repeat", 3, 1, 1000},
    };
    size_t n, n_numbers = 0;
    const option_row *all = option_rows(&n);
    for (size_t i = 0; i < n; i++) {
        n_numbers += all[i].kind == OPTION_INT || all[i].kind == OPTION_NUMBER || all[i].kind == OPTION_SEED;
    }
    CHECK_INT(n_numbers, ARRAY_LEN(rows));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const option_row *r = option_find(rows[i].name, strlen(rows[i].name), IN_EVERY);
        const bool is_whole = r && r->kind != OPTION_NUMBER;
        if (!r || r->min != rows[i].min || r->max != rows[i].max ||
            (isnan(rows[i].standard) ? !isnan(r->standard) : r->standard != rows[i].standard)) {
            check_fail(__FILE__, __LINE__, rows[i].name);
            continue;
        }
        /* Both sides of both bounds, through the text of a value. */
        options o = {0};
        const double step = is_whole ? 1 : 0.0005;
        const double values[] = {r->min - step, r->min, r->max, r->max + step};
        for (int k = 0; k < 4; k++) {
            char text[64];
            snprintf(text, sizeof text, is_whole ? "%.0f" : "%.9g", values[k]);
            said_begin();
            const bool ok = options_store(&o, r, text, SOURCE_LINE, "--it");
            said_end();
            const bool fits = k == 1 || k == 2;
            if (ok != fits || (said_err[0] == '\0') != fits) {
                fprintf(stderr, "%s: %s\n", r->name, text);
                CHECK(ok == fits);
            }
            if (fits) {
                const void *field = (const char *)&o + r->at;
                CHECK_NEAR(is_whole ? (double)*(const int64_t *)field : *(const double *)field, values[k],
                           1e-6);
            }
        }
    }
}

static void test_table(void)
{
    CHECK(option_find_command("serv") == NULL);
    CHECK_INT(option_find_command("serve")->id, COMMAND_SERVE);
    CHECK_STR(option_find("model", 5, IN_SERVE)->name, "model");
    CHECK(option_find("mode", 4, IN_SERVE) == NULL);
    CHECK(option_find("modem", 5, IN_SERVE) == NULL);
    CHECK(option_find("model", 5, IN_HEALTH) == NULL);
    CHECK_STR(option_find("temperature", 11, IN_SERVE)->name, "temp");
    CHECK_STR(option_find_letters("np", IN_SERVE)->name, "parallel");
    CHECK(option_find_letters("n", IN_HEALTH) == NULL);
    CHECK_STR(option_find_letters("n", IN_BENCH)->name, "predict-tokens");
    CHECK_STR(option_find_letters("n", IN_RUN)->name, "n-predict");
    CHECK_STR(option_find_letters("v", IN_RUN)->name, "video");
    CHECK_STR(option_find_letters("v", IN_SERVE)->name, "verbose");
    CHECK_STR(option_nearest("prot", IN_SERVE)->name, "port");
    CHECK_STR(option_nearest("temperatur", IN_SERVE)->name, "temp");
    CHECK_STR(option_nearest("hostxyz", IN_SERVE)->name, "host"); /* 3 letters away */
    CHECK(option_nearest("qqqqqqqqqq", IN_SERVE) == NULL);
    CHECK(option_nearest("hostwxyz", IN_HEALTH) == NULL); /* 4 */
    char text[64];
    option_environment_name(text, sizeof text, "ctx-size");
    CHECK_STR(text, "PARLEY_CTX_SIZE");
    CHECK_STR(option_group_name(GROUP_MODEL), "Model");
    CHECK_STR(option_group_name(GROUP_PROGRAM), "Program");
    static const struct {
        const char *name, *shown;
    } STANDARDS[] = {{"port", "8080"},
                     {"metrics", "on"},
                     {"pull", "off"},
                     {"check", ""},
                     {"temp", "model's default"},
                     {"compute", "fast"},
                     {"alias", "folder name"},
                     {"system", ""},
                     {"spec-prefill-keep", "0.3"}};
    for (size_t i = 0; i < ARRAY_LEN(STANDARDS); i++) {
        option_standard_text(text, sizeof text,
                             option_find(STANDARDS[i].name, strlen(STANDARDS[i].name), IN_EVERY));
        CHECK_STR(text, STANDARDS[i].shown);
    }
    /* The walk through a group meets the rows of that group and those commands alone, each once. */
    int n = 0;
    for (const option_row *r = NULL; (r = option_next(r, GROUP_HISTORY, IN_SERVE)); n++) {
        CHECK_INT(r->group, GROUP_HISTORY);
    }
    CHECK_INT(n, 2);
    CHECK(option_next(NULL, GROUP_HISTORY, IN_RUN) == NULL);
}

/* What switches are, and what is a secret or the line's alone. */
static void test_flags(void)
{
    static const char ON[] = " model-switch hub prefix-cache mtp continuous-batching enable-auto-tool-choice "
                             "metrics slots ui sandbox ";
    static const char SECRET[] = " api-key admin-key connect-key ";
    static const char LINE[] = " image video print-config check completion licenses version help ";
    static const char NO_FILE[] = " connect-key config ";
    size_t n;
    const option_row *rows = option_rows(&n);
    options o = {.memory = NULL};
    options_set_standards(&o, option_find_command("run"));
    CHECK_INT(o.command, COMMAND_RUN);
    for (size_t i = 0; i < n; i++) {
        char word[64];
        snprintf(word, sizeof word, " %s ", rows[i].name);
        if (rows[i].kind == OPTION_SWITCH) {
            if ((strstr(ON, word) != NULL) != *(const bool *)((const char *)&o + rows[i].at)) {
                check_fail(__FILE__, __LINE__, rows[i].name);
            }
        }
        const option_place place = strstr(LINE, word)      ? PLACE_LINE
                                   : strstr(NO_FILE, word) ? PLACE_NO_FILE
                                                           : PLACE_ANY;
        CHECK(!rows[i].is_secret || rows[i].kind == OPTION_TEXT ||
              rows[i].kind == OPTION_LIST); /* any text will do */
        if (rows[i].is_secret != (strstr(SECRET, word) != NULL) || rows[i].place != place) {
            check_fail(__FILE__, __LINE__, rows[i].name);
        }
    }
    CHECK_STR(o.host, "127.0.0.1");
    CHECK_STR(o.compute, "fast");
    CHECK(o.alias == NULL);
    CHECK_INT(o.port, 8080);
    CHECK_INT(o.n_files, 0);
    CHECK_NEAR(o.spec_prefill_keep, 0.3, 1e-9);
}

/* ---- the command line ---- */

static void test_line(void)
{
    options o = taken("parley");
    CHECK_INT(o.command, COMMAND_SERVE);
    CHECK_INT(o.sources[0], SOURCE_STANDARD);
    options_deinit(&o);
    CHECK(o.memory == NULL);
    o = taken(
        "parley --port 8081 --host=::1 --host 127.0.0.1 -m model -np 3 -t4 --no-mtp --metrics --seed 5");
    CHECK_INT(o.command, COMMAND_SERVE);
    CHECK_INT(o.port, 8081);
    CHECK_STR(o.host, "::1,127.0.0.1");
    CHECK_STR(o.model, "model");
    CHECK_INT(o.parallel, 3);
    CHECK_INT(o.threads, 4);
    CHECK(!o.mtp && o.metrics && o.has_seed);
    CHECK_INT(o.seed, 5);
    options_deinit(&o);
    o = taken("parley run -i a.png --video b.mp4 -v c.mp4 -q What~is~it?");
    CHECK_INT(o.command, COMMAND_RUN);
    CHECK_INT(o.n_files, 3);
    CHECK_STR(o.files[0].path, "a.png");
    CHECK(!o.files[0].is_video && o.files[1].is_video && o.files[2].is_video && o.quiet);
    CHECK_STR(o.prompt, "What is it?");
    options_deinit(&o);
    o = taken("parley run -- -q");
    CHECK_STR(o.prompt, "-q");
    CHECK(!o.quiet);
    options_deinit(&o);
    o = taken("parley run -");
    CHECK_STR(o.prompt, "-");
    options_deinit(&o);
    o = taken("parley convert from to --quantize q4");
    CHECK_STR(o.convert_from, "from");
    CHECK_STR(o.convert_to, "to");
    CHECK_STR(o.quantize, "q4");
    options_deinit(&o);
    o = taken("parley -V --config /nowhere");
    CHECK_INT(o.command, COMMAND_VERSION);
    options_deinit(&o);
    o = taken("parley --metrics=off --slots=yes --ui=0 --no-hub");
    CHECK(!o.metrics && o.slots && !o.ui && !o.hub);
    options_deinit(&o);
    o = taken("parley --temp 0.5 --top-p 1 --reasoning-budget -1 --temperature 0.75");
    CHECK_NEAR(o.temperature, 0.75, 1e-9);
    CHECK_NEAR(o.top_p, 1, 1e-9);
    CHECK_INT(o.reasoning_budget, -1);
    options_deinit(&o);

    refused("parley --prot 1",
            "parley: serve has no option --prot; did you mean --port? (parley serve --help lists them)\n");
    refused("parley run --qqqqqqqqqq",
            "parley: run has no option --qqqqqqqqqq (parley run --help lists them)\n");
    refused("parley -zz",
            "parley: serve has no option -zz; did you mean --ui? (parley serve --help lists them)\n");
    refused("parley -qx",
            "parley: serve has no option -qx; did you mean --ui? (parley serve --help lists them)\n");
    refused("parley --no-qqqqqqqqqq",
            "parley: serve has no option --no-qqqqqqqqqq (parley serve --help lists them)\n");
    refused("parley --no-port",
            "parley: serve has no option --no-port; did you mean --port? (parley serve --help lists them)\n");
    refused(
        "parley --no-check",
        "parley: serve has no option --no-check; did you mean --check? (parley serve --help lists them)\n");
    refused("parley --no-mtp=on",
            "parley: serve has no option --no-mtp=on (parley serve --help lists them)\n");
    refused("parley --no-",
            "parley: serve has no option --no-; did you mean --hub? (parley serve --help lists them)\n");
    refused("parley --port", "parley: --port needs a value: N\n");
    refused("parley -m", "parley: -m needs a value: PATH\n");
    refused("parley serv", "parley: there is no command \"serv\"; parley --help lists them\n");
    refused("parley ''", "parley: \"\" is one word too many; parley [serve] [-m DIR] [options]\n");
    static const char *const ALONE[] = {"pull", "remove", "inspect",
                                        "list", "doctor", "chat"}; /* one word more than it takes */
    for (int i = 0; i < 6; i++) {
        char words[64], sentence[64];
        options taken_in;
        snprintf(words, sizeof words, i < 3 ? "parley %s one two" : "parley %s two", ALONE[i]);
        snprintf(sentence, sizeof sentence, "parley: \"two\" is one word too many; parley %s", ALONE[i]);
        CHECK_INT(parse(&taken_in, words), 2);
        CHECK(strncmp(said_err, sentence, strlen(sentence)) == 0);
    }
    refused("parley serve more",
            "parley: \"more\" is one word too many; parley [serve] [-m DIR] [options]\n");
    refused("parley run one two", "parley: \"two\" is one word too many; parley run [-m DIR] [--image FILE] "
                                  "[--video FILE] [options] [\"QUESTION\"]\n");
    refused("parley --port 65536", "parley: --port is \"65536\"; it takes a number from 0 to 65535\n");
    refused("parley --port 1x", "parley: --port is \"1x\"; it takes a number from 0 to 65535\n");
    refused("parley --port ''", "parley: --port is \"\"; it takes a number from 0 to 65535\n");
    refused("parley --port 99999999999999999999",
            "parley: --port is \"99999999999999999999\"; it takes a number from 0 to 65535\n");
    refused("parley --temp 1x", "parley: --temp is \"1x\"; it takes a number from 0 to 100\n");
    refused("parley --temp ''", "parley: --temp is \"\"; it takes a number from 0 to 100\n");
    refused("parley --temp nan", "parley: --temp is \"nan\"; it takes a number from 0 to 100\n");
    refused("parley --repeat-penalty 0",
            "parley: --repeat-penalty is \"0\"; it takes a number from 0.01 to 10\n");
    refused("parley --metrics=maybe", "parley: --metrics is \"maybe\"; it takes on or off\n");
    refused("parley --metrics=", "parley: --metrics is \"\"; it takes on or off\n");
    refused("parley --compute quick", "parley: --compute is \"quick\"; it takes fast or exact\n");
    refused("parley --quantize q", "parley: --quantize is \"q\"; it takes none, q8 or q4\n");
    refused("parley --quantize ''", "parley: --quantize is \"\"; it takes none, q8 or q4\n");
    refused("parley --seed -1", "parley: --seed is \"-1\"; it takes a number from 0 to 9000000000000000\n");
    refused("parley manual page",
            "parley: there is no page \"page\"; parley manual [parley.1 | parley.conf.5 | options]\n");

    char line[512] = "parley run";
    size_t len = strlen(line);
    for (int i = 0; i < OPTIONS_MAX_FILES; i++) {
        len += (size_t)snprintf(line + len, sizeof line - len, " -i x.png");
    }
    o = taken(line);
    CHECK_INT(o.n_files, OPTIONS_MAX_FILES);
    options_deinit(&o);
    snprintf(line + len, sizeof line - len, " -v x.mp4");
    refused(line, "parley: --video may be given 16 times at most\n");
}

/* Questions that are answered in place of a command. */
static void test_questions(void)
{
    static const struct {
        const char *line, *begins;
    } ASKED[] = {{"parley --help", "Parley "},
                 {"parley -h", "Parley "},
                 {"parley help", "Parley "},
                 {"parley run --help", "parley run ["},
                 {"parley run -h --port", "parley run ["},
                 {"parley serve -h", "parley [serve]"},
                 {"parley --completion bash", "# bash completion"},
                 {"parley manual", ".TH PARLEY 1 "},
                 {"parley manual parley.conf.5", ".TH PARLEY.CONF 5 "},
                 {"parley run --print-config", "# parley "}};
    for (size_t i = 0; i < ARRAY_LEN(ASKED); i++) {
        options o;
        CHECK_INT(parse(&o, ASKED[i].line), 0);
        CHECK(strncmp(said_out, ASKED[i].begins, strlen(ASKED[i].begins)) == 0);
        CHECK_STR(said_err, "");
        CHECK(o.memory == NULL);
    }
}

/* A secret is blanked where every user of the machine can see it, and only once the line has no mistake. */
static void test_secrets(void)
{
    char first[] = "parley", name[] = "--api-key", key[] = "abcdefgh", joined[] = "--api-key=12345678",
         port[] = "--port", number[] = "8081";
    char *argv[] = {first, name, key, joined, port, number, NULL};
    options o;
    CHECK_INT(options_parse(&o, 6, argv), -1);
    CHECK_STR(o.api_key, "abcdefgh,12345678");
    CHECK_STR(key, "xxxxxxxx");
    CHECK_STR(joined, "--api-key=xxxxxxxx");
    CHECK_STR(number, "8081");
    options_deinit(&o);
}

/* ---- config files and the environment ---- */

static const char *config_file(const char *text)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/c.conf", folder);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
    return path;
}

static options from_file(const char *text, const char *more)
{
    char line[512];
    snprintf(line, sizeof line, "parley %s --config %s", more, config_file(text));
    return taken(line);
}

/* "%s" in a sentence is the file. */
static void file_refused(const char *text, const char *sentence)
{
    char line[512], expected[512];
    const char *path = config_file(text);
    snprintf(line, sizeof line, "parley --config %s", path);
    snprintf(expected, sizeof expected, "parley: %s line %s\n", path, sentence);
    refused(line, expected);
}

static void test_files(void)
{
    static const char TEXT[] =
        "# port = 1\r\n; port = 2\n\n  alias = \"two words\"  \nhost=a\nhost = b\nquiet = on\n"
        "[run]\nsystem = S\nquiet = off\n[ serve ]\nport=3\nmodels-dir = \"\nchat-template-file = \"x";
    options o = from_file(TEXT, "");
    CHECK_STR(o.alias, "two words");
    CHECK_STR(o.host, "a,b");
    CHECK_INT(o.port, 3);
    CHECK(o.quiet);
    CHECK_STR(o.models_dir, "\"");
    CHECK_STR(o.chat_template_file, "\"x");
    CHECK(o.system == NULL);
    size_t n;
    CHECK_INT(o.sources[option_find("port", 4, IN_SERVE) - option_rows(&n)], SOURCE_CONFIG);
    CHECK_INT(o.sources[option_find("hub", 3, IN_SERVE) - option_rows(&n)], SOURCE_STANDARD);
    options_deinit(&o);
    o = from_file(TEXT, "run");
    CHECK(!o.quiet);
    CHECK_STR(o.system, "S");
    options_deinit(&o);
    o = from_file(TEXT, "--host c --port 4");
    CHECK_STR(o.host, "c");
    CHECK_INT(o.port, 4);
    options_deinit(&o);
    o = from_file("", "");
    options_deinit(&o);
    o = from_file("port = 7\nport = 8", "");
    CHECK_INT(o.port, 8);
    options_deinit(&o);
    o = from_file("alias = \"\"", "");
    CHECK_STR(o.alias, "");
    options_deinit(&o);

    file_refused("\nprot = 1\n", "2: there is no option \"prot\"; did you mean port?");
    file_refused("qqqqqqqqqqqq = 1\n", "1: there is no option \"qqqqqqqqqqqq\"");
    file_refused("port = x\n", "1: port is \"x\"; it takes a number from 0 to 65535");
    file_refused("port 1\n", "1: a line is `key = value`, not \"port 1\"");
    file_refused("[server]\n", "1: there is no command \"server\"");
    file_refused("[serve\n", "1: a section is a command's name in brackets, not \"[serve\"");
    file_refused("[serve] x\n", "1: a section is a command's name in brackets, not \"[serve] x\"");
    file_refused("print-config = on\n", "1: a config file cannot set \"print-config\"");
    file_refused("config = x\n", "1: a config file cannot set \"config\"");
    file_refused("connect-key = x\n", "1: a config file cannot set \"connect-key\"");
    file_refused("[run]\nprot = 1\n", "2: there is no option \"prot\"; did you mean port?");
    file_refused("api-key = x\nport = -1\n", "2: port is \"-1\"; it takes a number from 0 to 65535");

    char path[128], line[256], sentence[512];
    snprintf(path, sizeof path, "%s/zero.conf", folder);
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite("port = 1\n\0", 1, 10, f) == 10 && fclose(f) == 0);
    snprintf(line, sizeof line, "parley --config %s", path);
    snprintf(sentence, sizeof sentence, "parley: %s line 0: not a text file: \"%s\"\n", path, path);
    refused(line, sentence);
    options bad;
    CHECK_INT(parse(&bad, "parley --config /nowhere/x.conf"), 2);
    CHECK_HAS(said_err, "parley: the config file cannot be read: ");
    CHECK_HAS(said_err, "/nowhere/x.conf");

    /* A file of a MiB is read, a larger one is not. */
    for (int more = 0; more < 2; more++) {
        f = fopen(path, "w");
        CHECK(f != NULL);
        for (int i = 0; i < (1 << 20) + more; i++) {
            fputc(i % 64 == 63 ? '\n' : '#', f);
        }
        fclose(f);
        CHECK_INT(parse(&bad, line), more ? 2 : -1);
        if (more) {
            CHECK_HAS(said_err, "the config file cannot be read");
        } else {
            options_deinit(&bad);
        }
    }
}

static void test_environment(void)
{
    setenv("PARLEY_PORT", "9000", 1);
    setenv("PARLEY_HOST", "", 1);
    setenv("PARLEY_CHECK", "on", 1); /* of the line alone */
    setenv("PARLEY_SERVED_MODEL_NAME", "second", 1);
    options o = from_file("port = 1\nhost = file\n", "");
    CHECK_INT(o.port, 9000);
    CHECK_STR(o.host, "file");
    CHECK_STR(o.alias, "second");
    CHECK(!o.check);
    size_t n;
    CHECK_INT(o.sources[option_find("port", 4, IN_SERVE) - option_rows(&n)], SOURCE_ENVIRONMENT);
    options_deinit(&o);
    setenv("PARLEY_ALIAS", "first", 1);
    o = taken("parley --port 2");
    CHECK_STR(o.alias, "first");
    CHECK_INT(o.port, 2);
    CHECK_INT(o.sources[option_find("port", 4, IN_SERVE) - option_rows(&n)], SOURCE_LINE);
    options_deinit(&o);
    setenv("PARLEY_PORT", "x", 1);
    refused("parley", "parley: PARLEY_PORT is \"x\"; it takes a number from 0 to 65535\n");
    unsetenv("PARLEY_PORT");
    setenv("PARLEY_SERVED_MODEL_NAME", "", 1);
    unsetenv("PARLEY_ALIAS");

    /* Which files are read. */
    char config[160], text[320];
    snprintf(text, sizeof text, "%s/parley", folder);
    mkdir(text, 0700);
    snprintf(config, sizeof config, "%s/parley/parley.conf", folder);
    FILE *f = fopen(config, "w");
    CHECK(f && fputs("port = 5005\n", f) >= 0 && fclose(f) == 0);
    unsetenv("PARLEY_CONFIG");
    setenv("XDG_CONFIG_HOME", folder, 1);
    setenv("HOME", "/nowhere", 1);
    o = taken("parley");
    CHECK_INT(o.port, 5005);
    options_deinit(&o);
    o = taken("parley --config none");
    CHECK_INT(o.port, 8080);
    options_deinit(&o);
    setenv("XDG_CONFIG_HOME", "relative", 1);
    char home[160];
    snprintf(home, sizeof home, "%s/.config", folder);
    CHECK(symlink(folder, home) == 0);
    setenv("HOME", folder, 1);
    o = taken("parley");
    CHECK_INT(o.port, 5005);
    options_deinit(&o);
    setenv("HOME", "relative", 1);
    o = taken("parley");
    CHECK_INT(o.port, 8080);
    options_deinit(&o);
    setenv("PARLEY_CONFIG", config, 1);
    o = taken("parley");
    CHECK_INT(o.port, 5005);
    options_deinit(&o);
    o = taken("parley list"); /* knows no config */
    options_deinit(&o);
    setenv("PARLEY_CONFIG", "none", 1);
    setenv("XDG_CONFIG_HOME", folder, 1);
    o = taken("parley");
    CHECK_INT(o.port, 8080);
    options_deinit(&o);

    /* That of the machine, and behind it that of a user. */
    unsetenv("PARLEY_CONFIG");
    of_machine = "port = 6006\nalias = a\n";
    o = taken("parley");
    CHECK_INT(o.port, 5005);
    CHECK_STR(o.alias, "a");
    options_deinit(&o);
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("HOME");
    o = taken("parley");
    CHECK_INT(o.port, 6006);
    options_deinit(&o);
    char longest[5000];
    snprintf(longest, sizeof longest, "/%0*d", (int)sizeof longest - 20, 0);
    setenv("HOME", longest, 1); /* a place that has no name */
    o = taken("parley");
    CHECK_INT(o.port, 6006);
    options_deinit(&o);
    of_machine = "port = x\n";
    refused("parley",
            "parley: /etc/parley/parley.conf line 1: port is \"x\"; it takes a number from 0 to 65535\n");
    of_machine = NULL;
    setenv("XDG_CONFIG_HOME", folder, 1);
    f = fopen(config, "w");
    CHECK(f && fputs("port = x\n", f) >= 0 && fclose(f) == 0);
    snprintf(text, sizeof text, "parley: %s line 1: port is \"x\"; it takes a number from 0 to 65535\n",
             config);
    refused("parley", text);
    setenv("PARLEY_CONFIG", "none", 1);
    setenv("PARLEY_MAX_MODEL_LEN", "5", 1); /* another name */
    refused("parley", "parley: PARLEY_MAX_MODEL_LEN is \"5\"; it takes a number from 256 to 16777216\n");
    unsetenv("PARLEY_MAX_MODEL_LEN");
}

/* Each place where memory is taken says that there is none. */
static void test_short_memory(void)
{
    static const struct {
        const char *call, *line, *config;
        int code;
    } ROWS[] = {{"arena_create", "parley", "", 4},
                {"arena_strdup", "parley --api-key abc", "", 2},
                {"arena_alloc", "parley --host a --host b", "", 2},
                {"arena_strdup", "parley", "port = 5\n", 2},
                {"arena_alloc", "parley", "host = a\nhost = b\n", 2},
                {"arena_calloc", "parley", "port = 5\n", 2}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char line[512];
        options o;
        snprintf(line, sizeof line, "%s%s%s", ROWS[i].line, ROWS[i].config[0] ? " --config " : "",
                 ROWS[i].config[0] ? config_file(ROWS[i].config) : "");
        one_fails(ROWS[i].call, 1);
        CHECK_INT(parse(&o, line), ROWS[i].code);
        CHECK(one_fails_over());
        CHECK_STR(said_err, "parley: there is not enough memory to start\n");
        CHECK(o.memory == NULL);
    }
}

int main(void)
{
    folder_make(folder);
    setenv("PARLEY_CONFIG", "none", 1);
    test_numbers();
    test_table();
    test_flags();
    test_line();
    test_questions();
    test_secrets();
    test_files();
    test_environment();
    test_short_memory();
    CHECK_DONE();
}
