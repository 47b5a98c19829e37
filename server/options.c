#include "server/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/limits.h"

typedef enum value_kind {
    VALUE_TEXT,
    VALUE_INT,
    VALUE_NUMBER,
    VALUE_SWITCH,
    VALUE_SEED,
    VALUE_PICTURE,
    VALUE_FILM
} value_kind;

/* Which commands take a flag. */
enum {
    IN_SERVE = 1,
    IN_RUN = 2,
    IN_BENCH = 4,
    IN_INSPECT = 8,
    IN_ALL = 15,
    IN_CONVERT = 16,
    IN_ENGINE = 7,
    IN_ANSWER = 3
};

typedef struct option_row {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    value_kind kind;
    size_t offset;     /* into options */
    double min, max;   /* VALUE_INT, VALUE_SEED and VALUE_NUMBER */
    unsigned commands; /* IN_* */
    const char *value; /* shown in --help; NULL for switches */
    const char *help;
} option_row;

#define AT(field) offsetof(options, field)

static const option_row ROWS[] = {
    {"model", 'm', VALUE_TEXT, AT(model), 0, 0, IN_ALL, "DIR",
     "checkpoint folder [Seedling, the built-in demonstration model]"},
    {"alias", 0, VALUE_TEXT, AT(alias), 0, 0, IN_SERVE, "NAME", "model name shown to clients [folder name]"},
    {"chat-template-file", 0, VALUE_TEXT, AT(chat_template_file), 0, 0, IN_ANSWER, "FILE",
     "Jinja chat template instead of the checkpoint's"},
    {"tool-call-parser", 0, VALUE_TEXT, AT(tool_call_parser), 0, 0, IN_SERVE, "NAME",
     "form of the model's tool calls: auto, none, qwen3_xml, hermes [auto: as its chat template shows]"},
    {"ctx-size", 'c', VALUE_INT, AT(ctx_size), 256, 1 << 24, IN_ENGINE, "N",
     "tokens a conversation may have [what the model and memory allow, at most 32768]"},
    {"parallel", 0, VALUE_INT, AT(parallel), 1, 32, IN_SERVE, "N", "answers computed at the same time [4]"},
    {"queue", 0, VALUE_INT, AT(queue), 1, 4096, IN_SERVE, "N", "requests that may wait; more get 429 [32]"},
    {"cache-ram", 0, VALUE_INT, AT(cache_ram), 0, 1 << 20, IN_SERVE, "MIB",
     "memory for states of earlier prompts; 0 keeps none [1024, or an eighth of the free memory]"},
    {"vision-cache", 0, VALUE_INT, AT(vision_cache), 0, 1 << 20, IN_SERVE, "MIB",
     "memory for encoded pictures and films, so that a second question about them is quick; 0 keeps none "
     "[256, "
     "or a 32nd of the free memory]"},
    {"cache-type", 0, VALUE_TEXT, AT(cache_type), 0, 0, IN_ENGINE, "TYPE",
     "how keys and values are kept: f32, bf16, f16 or q8; smaller ones take less memory and time in long "
     "conversations [f16; f32 with --compute exact]"},
    {"threads", 't', VALUE_INT, AT(threads), 1, 1024, IN_ENGINE | IN_CONVERT, "N",
     "compute threads [one per core]"},
    {"batch-size", 'b', VALUE_INT, AT(batch_size), 16, 8192, IN_ENGINE, "N",
     "prompt tokens computed in one step [512]"},
    {"mtp", 0, VALUE_SWITCH, AT(mtp), 0, 0, IN_ENGINE, NULL,
     "let the model's multi-token-prediction head draft tokens; --no-mtp turns it off, answers stay the same "
     "[on]"},
    {"max-video-mib", 0, VALUE_INT, AT(max_video_mib), 1, 1 << 20, IN_ANSWER, "MIB", "largest film [512]"},
    {"max-video-pixels", 0, VALUE_INT, AT(max_video_pixels), 256, 1 << 28, IN_ANSWER, "N",
     "largest frame of a film, width times height [9437184, 4K]"},
    {"max-video-duration", 0, VALUE_INT, AT(max_video_duration), 1, 360000, IN_ANSWER, "S",
     "longest film, in seconds [3700]"},
    {"max-video-frames", 0, VALUE_INT, AT(max_video_frames), 1, LIMIT_VIDEO_FRAMES_MAX, IN_ANSWER, "N",
     "most frames of a film shown to the model, up to 768 [256]"},
    {"max-video-time", 0, VALUE_INT, AT(max_video_time), 1, 3600, IN_ANSWER, "S",
     "seconds that reading a film may take [60]"},
    {"video-outer-pair", 0, VALUE_SWITCH, AT(video_outer_pair), 0, 0, IN_ANSWER, NULL,
     "keep the vision tokens around a film as a whole, for models trained with them [off]"},
    {"cpu", 0, VALUE_TEXT, AT(cpu), 0, 0, IN_ENGINE, "LEVEL",
     "highest instruction set: generic, avx2, avx512, native [native]"},
    {"quantize", 0, VALUE_TEXT, AT(quantize), 0, 0, IN_ENGINE | IN_CONVERT, "FORMAT",
     "keep the layers' matrices in blocks of 8 or 4 bits: none, q8, q4; kept in the cache folder for the "
     "next start "
     "[none]"},
    {"quantize-head", 0, VALUE_TEXT, AT(quantize_head), 0, 0, IN_ENGINE | IN_CONVERT, "FORMAT",
     "the same for the logits head [q8 if --quantize is q8 or q4]"},
    {"compute", 0, VALUE_TEXT, AT(compute), 0, 0, IN_ENGINE, "HOW",
     "arithmetic of prompts and pictures: fast takes the processor's quickest way (activations may become "
     "bf16), "
     "exact the float32 products of the checks [fast]"},
    {"n-predict", 'n', VALUE_INT, AT(n_predict), 1, 1 << 24, IN_ANSWER, "N",
     "most tokens of an answer, if the request does not say [2048]"},
    {"reasoning-budget", 0, VALUE_INT, AT(reasoning_budget), -1, 1 << 24, IN_ANSWER, "N",
     "most tokens of a think block, if the request does not say; -1 is no limit [-1]"},
    {"temp", 0, VALUE_NUMBER, AT(temperature), 0, 100, IN_ANSWER, "X",
     "temperature; 0 takes the likeliest token [model's default]"},
    {"top-k", 0, VALUE_INT, AT(top_k), 0, 1 << 24, IN_ANSWER, "N",
     "keep the N likeliest tokens; 0 is off [model's default]"},
    {"top-p", 0, VALUE_NUMBER, AT(top_p), 0, 1, IN_ANSWER, "X",
     "keep tokens up to this probability mass [model's default]"},
    {"min-p", 0, VALUE_NUMBER, AT(min_p), 0, 1, IN_ANSWER, "X",
     "drop tokens below X times the likeliest [model's default]"},
    {"repeat-penalty", 0, VALUE_NUMBER, AT(repeat_penalty), 0.01, 10, IN_ANSWER, "X",
     "repetition penalty; 1 is off [model's default]"},
    {"seed", 0, VALUE_SEED, AT(seed), 0, 9e15, IN_ANSWER, "N", "random seed [a new one for each answer]"},
    {"host", 0, VALUE_TEXT, AT(host), 0, 0, IN_SERVE, "ADDRESS", "address to listen on [127.0.0.1]"},
    {"port", 0, VALUE_INT, AT(port), 0, 65535, IN_SERVE, "N", "port to listen on; 0 takes a free one [8080]"},
    {"api-key", 0, VALUE_TEXT, AT(api_key), 0, 0, IN_SERVE, "KEY",
     "key that clients must send; better in a file"},
    {"api-key-file", 0, VALUE_TEXT, AT(api_key_file), 0, 0, IN_SERVE, "FILE", "file with one key a line"},
    {"allowed-hosts", 0, VALUE_TEXT, AT(allowed_hosts), 0, 0, IN_SERVE, "LIST",
     "host names that browsers may use, with commas [localhost and addresses]"},
    {"allowed-origins", 0, VALUE_TEXT, AT(allowed_origins), 0, 0, IN_SERVE, "LIST",
     "web origins that may call the API, with commas [this server's own]"},
    {"max-body", 0, VALUE_INT, AT(max_body_mib), 1, 1024, IN_SERVE, "MIB", "largest request [64]"},
    {"max-upload", 0, VALUE_INT, AT(max_upload_mib), 1, 1 << 20, IN_SERVE, "MIB",
     "largest uploaded file [1024]"},
    {"upload-quota", 0, VALUE_INT, AT(upload_quota_mib), 0, 1 << 24, IN_SERVE, "MIB",
     "disk that all uploaded files may take [4096]"},
    {"upload-dir", 0, VALUE_TEXT, AT(upload_dir), 0, 0, IN_SERVE, "DIR",
     "where uploaded files are kept while the server runs [TMPDIR, or /var/tmp]"},
    {"upload-expire", 0, VALUE_INT, AT(upload_expire_min), 1, 1 << 20, IN_SERVE, "MINUTES",
     "how long an uploaded file stays after its last use [60]"},
    {"ui-dir", 0, VALUE_TEXT, AT(ui_dir), 0, 0, IN_SERVE, "DIR",
     "serve the page from a folder (for its developers)"},
    {"image", 'i', VALUE_PICTURE, AT(files), 0, 0, IN_RUN, "FILE", "a picture to ask about; may be repeated"},
    {"video", 'v', VALUE_FILM, AT(files), 0, 0, IN_RUN, "FILE", "a film to ask about; may be repeated"},
    {"system", 0, VALUE_TEXT, AT(system), 0, 0, IN_RUN, "TEXT", "system prompt"},
    {"thinking", 0, VALUE_SWITCH, AT(thinking), 0, 0, IN_RUN, NULL,
     "let the model think first; its thoughts go to standard error"},
    {"quiet", 'q', VALUE_SWITCH, AT(quiet), 0, 0, IN_RUN, NULL, "print the answer alone"},
    {"prompt-tokens", 'p', VALUE_INT, AT(bench_prompt), 1, 1 << 20, IN_BENCH, "N", "prompt length [512]"},
    {"predict-tokens", 'n', VALUE_INT, AT(bench_predict), 1, 1 << 20, IN_BENCH, "N",
     "tokens to generate [64]"},
    {"repeat", 'r', VALUE_INT, AT(bench_repeat), 1, 1000, IN_BENCH, "N", "runs; the median is printed [3]"},
    {"json", 0, VALUE_SWITCH, AT(json), 0, 0, IN_BENCH | IN_INSPECT, NULL, "print JSON instead of a table"},
    {"log-level", 0, VALUE_TEXT, AT(log_level), 0, 0, IN_ALL, "LEVEL",
     "debug, info, warn, error or off [info for serve, warn else]"},
};

typedef struct command_row {
    const char *name;
    command id;
    unsigned bit;
    const char *usage, *help;
} command_row;

static const command_row COMMANDS[] = {
    {"serve", COMMAND_SERVE, IN_SERVE, "parley [serve] [-m DIR] [options]",
     "browser chat, WebSocket and HTTP API"},
    {"run", COMMAND_RUN, IN_RUN, "parley run [-m DIR] [--image FILE] [--video FILE] [options] \"QUESTION\"",
     "one answer on the terminal"},
    {"bench", COMMAND_BENCH, IN_BENCH, "parley bench [-m DIR] [options]",
     "how fast prompts and answers are computed here"},
    {"inspect", COMMAND_INSPECT, IN_INSPECT, "parley inspect [-m DIR] [--json]",
     "what a checkpoint holds and what it needs"},
    {"convert", COMMAND_CONVERT, IN_CONVERT, "parley convert MODEL OUT --quantize q8|q4 [options]",
     "a checkpoint folder with weights in blocks"},
    {"version", COMMAND_VERSION, 0, "parley version", "version of this program"},
};

/* ---- help ---- */

static void print_overview(void)
{
    printf("Parley " PARLEY_VERSION
           ": a multimodal chat server that runs on your own machine.\n\nCommands:\n");
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++) {
        printf("  %-9s %s\n", COMMANDS[i].name, COMMANDS[i].help);
    }
    printf("\nWith no command: serve. `parley COMMAND --help` lists a command's options.\n"
           "Start now: parley        then open http://127.0.0.1:8080/\n");
}

/* Prints text in lines of at most `width` columns, later lines indented. */
static void print_wrapped(const char *text, int indent, int width)
{
    int column = indent;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (column + word > width && column > indent) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        printf("%.*s", word, text);
        column += word;
        text += word;
        if (*text == ' ') {
            text++;
            if (column < width) {
                putchar(' ');
                column++;
            }
        }
    }
    putchar('\n');
}

static void print_help(const command_row *c)
{
    enum { INDENT = 30, WIDTH = 79 };
    printf("%s\n%s\n\nOptions (the environment variable of --some-flag is PARLEY_SOME_FLAG):\n", c->usage,
           c->help);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const option_row *r = &ROWS[i];
        if (!(r->commands & c->bit)) {
            continue;
        }
        char letter[8] = "    ";
        if (r->letter) {
            snprintf(letter, sizeof letter, "-%c, ", r->letter);
        }
        int n = printf("  %s--%s %s", letter, r->name, r->value ? r->value : "");
        if (n >= INDENT) {
            printf("\n");
            n = 0;
        }
        printf("%*s", INDENT - n, "");
        print_wrapped(r->help, INDENT, WIDTH);
    }
    printf("  -h, --help                  this text\n");
}

/* ---- values ---- */

static bool parse_int(const char *text, double min, double max, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *out = v;
    return end != text && *end == '\0' && errno == 0 && (double)v >= min && (double)v <= max;
}

static bool parse_number(const char *text, double min, double max, double *out)
{
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= min && *out <= max;
}

static bool is_off(const char *text)
{
    return strcmp(text, "0") == 0 || strcmp(text, "false") == 0 || strcmp(text, "off") == 0;
}

/* Stores a value; on a wrong one prints what is allowed and returns false. `origin` names the flag or variable. */
static bool store(options *o, const option_row *r, const char *text, const char *origin)
{
    void *field = (char *)o + r->offset;
    bool ok = true;
    switch (r->kind) {
    case VALUE_TEXT:
        *(const char **)field = text;
        break;
    case VALUE_INT:
        ok = parse_int(text, r->min, r->max, field);
        break;
    case VALUE_SEED:
        ok = parse_int(text, r->min, r->max, field);
        o->has_seed = ok;
        break;
    case VALUE_NUMBER:
        ok = parse_number(text, r->min, r->max, field);
        break;
    case VALUE_SWITCH:
        *(bool *)field = !is_off(text);
        break;
    case VALUE_PICTURE:
    case VALUE_FILM:
        if (o->n_files == OPTIONS_MAX_FILES) {
            fprintf(stderr, "parley: %s may be given %d times at most\n", origin, OPTIONS_MAX_FILES);
            return false;
        }
        o->files[o->n_files++] = (option_file){.path = text, .is_film = r->kind == VALUE_FILM};
        break;
    }
    if (!ok) {
        fprintf(stderr, "parley: %s is \"%s\"; it takes a number from %g to %g\n", origin, text, r->min,
                r->max);
    }
    return ok;
}

/* PARLEY_CTX_SIZE for ctx-size, and so on. */
static bool read_environment(options *o, unsigned command_bit)
{
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const option_row *r = &ROWS[i];
        char name[64];
        int n = snprintf(name, sizeof name, "PARLEY_%s", r->name);
        for (int k = 0; k < n; k++) {
            name[k] = name[k] == '-' ? '_' : (char)toupper((unsigned char)name[k]);
        }
        const char *value = getenv(name);
        if (value && *value && (r->commands & command_bit) && r->kind != VALUE_PICTURE &&
            r->kind != VALUE_FILM && !store(o, r, value, name)) {
            return false;
        }
    }
    return true;
}

/* ---- the command line ---- */

/* How many single-character changes turn a into b, for short words. */
static int edit_distance(const char *a, const char *b)
{
    int row[64];
    int n = (int)strlen(b);
    if (n >= (int)ARRAY_LEN(row)) {
        return 99;
    }
    for (int j = 0; j <= n; j++) {
        row[j] = j;
    }
    for (int i = 1; *a; i++, a++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            int shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shorter ? change : shorter;
        }
    }
    return row[n];
}

static int unknown_option(const char *arg, const char *name, const command_row *c)
{
    const option_row *best = NULL;
    int best_distance = 4;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        int d = edit_distance(name, ROWS[i].name);
        if ((ROWS[i].commands & c->bit) && d < best_distance) {
            best_distance = d;
            best = &ROWS[i];
        }
    }
    fprintf(stderr, "parley: %s has no option %s", c->name, arg);
    if (best) {
        fprintf(stderr, "; did you mean --%s?", best->name);
    }
    fprintf(stderr, " (parley %s --help lists them)\n", c->name);
    return OPTIONS_EXIT_USAGE;
}

static const option_row *find_row(const char *name, size_t len, unsigned bit)
{
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        if ((ROWS[i].commands & bit) && strlen(ROWS[i].name) == len && memcmp(ROWS[i].name, name, len) == 0) {
            return &ROWS[i];
        }
    }
    return NULL;
}

static const option_row *find_letter(char letter, unsigned bit)
{
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        if ((ROWS[i].commands & bit) && ROWS[i].letter == letter) {
            return &ROWS[i];
        }
    }
    return NULL;
}

/* Handles argv[*at] as an option of command c, perhaps with the next word as its value. -1: go on. */
static int parse_option(options *o, const command_row *c, int argc, char **argv, int *at)
{
    const char *arg = argv[*at];
    if (strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0) {
        print_help(c);
        return 0;
    }
    const bool is_long = arg[1] == '-';
    const char *name = arg + (is_long ? 2 : 1);
    const char *equals = is_long ? strchr(name, '=') : NULL;
    const size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const option_row *r = NULL;
    bool negated = false;
    if (is_long) {
        r = find_row(name, len, c->bit);
    } else if (len == 1) {
        r = find_letter(name[0], c->bit);
    }
    if (!r && is_long && len > 3 && memcmp(name, "no-", 3) == 0) {
        r = find_row(name + 3, len - 3, c->bit);
        negated = r && r->kind == VALUE_SWITCH;
        r = negated ? r : NULL;
    }
    if (!r) {
        return unknown_option(arg, name, c);
    }
    const char *value = equals ? equals + 1 : negated ? "0" : "1";
    if (r->kind != VALUE_SWITCH && !equals) {
        if (*at + 1 >= argc) {
            fprintf(stderr, "parley: %s needs a value: %s\n", arg, r->value);
            return OPTIONS_EXIT_USAGE;
        }
        value = argv[++*at];
    }
    return store(o, r, value, arg) ? -1 : OPTIONS_EXIT_USAGE;
}

static const command_row *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++) {
        if (strcmp(COMMANDS[i].name, name) == 0) {
            return &COMMANDS[i];
        }
    }
    return NULL;
}

int options_parse(options *o, int argc, char **argv)
{
    *o = (options){.top_k = -1,
                   .temperature = NAN,
                   .top_p = NAN,
                   .min_p = NAN,
                   .repeat_penalty = NAN,
                   .host = "127.0.0.1",
                   .port = 8080,
                   .mtp = true,
                   .reasoning_budget = -1,
                   .cache_ram = -1,
                   .vision_cache = -1,
                   .upload_quota_mib = -1,
                   .bench_prompt = 512,
                   .bench_predict = 64,
                   .bench_repeat = 3};
    int at = 1;
    const char *first = argc > 1 ? argv[1] : "";
    const command_row *c = &COMMANDS[0];
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0) {
        print_overview();
        return 0;
    }
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        c = find_command("version");
        at = argc;
    } else if (argc > 1 && first[0] != '-') {
        c = find_command(first);
        at = 2;
    }
    if (!c) {
        fprintf(stderr, "parley: there is no command \"%s\"; parley --help lists them\n", first);
        return OPTIONS_EXIT_USAGE;
    }
    o->command = c->id;
    if (!read_environment(o, c->bit)) {
        return OPTIONS_EXIT_USAGE;
    }
    for (bool flags = true; at < argc; at++) {
        if (flags && strcmp(argv[at], "--") == 0) {
            flags = false;
        } else if (flags && argv[at][0] == '-' && argv[at][1]) {
            int code = parse_option(o, c, argc, argv, &at);
            if (code >= 0) {
                return code;
            }
        } else if (c->id == COMMAND_RUN && !o->prompt) {
            o->prompt = argv[at];
        } else if (c->id == COMMAND_CONVERT && !o->convert_from) {
            o->convert_from = argv[at];
        } else if (c->id == COMMAND_CONVERT && !o->convert_to) {
            o->convert_to = argv[at];
        } else {
            fprintf(stderr, "parley: \"%s\" is one word too many; %s\n", argv[at], c->usage);
            return OPTIONS_EXIT_USAGE;
        }
    }
    return -1;
}
