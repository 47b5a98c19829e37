/* options_table: one row for every option and command. Parsing, environment, config file, --help,
 * completions and manual pages are generated from it, so that they cannot diverge. Constant; any
 * thread.
 *
 *     size_t n; const option_row *rows = option_rows(&n);
 *     const option_row *r = option_find(rows[0].name, strlen(rows[0].name), IN_SERVE);
 *
 * A new option is a field of `options` (options.h), a row here, and
 * `parley manual options > docs/options.md`.
 */
#ifndef PARLEY_SERVER_CLI_OPTIONS_TABLE_H
#define PARLEY_SERVER_CLI_OPTIONS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "server/cli/options.h"

typedef enum option_kind {
    OPTION_TEXT,
    OPTION_LIST, /* comma-separated; what is repeated on the command line, or in one config file, is appended */
    OPTION_CHOICE, /* one of `choices` */
    OPTION_INT,
    OPTION_NUMBER,
    OPTION_SWITCH, /* --name and --no-name; elsewhere 1, true, on, yes or their opposites */
    OPTION_SEED,
    OPTION_IMAGE,
    OPTION_VIDEO
} option_kind;

/* Which commands take an option. */
enum {
    IN_SERVE = 1,
    IN_RUN = 2,
    IN_BENCH = 4,
    IN_INSPECT = 8,
    IN_CONVERT = 16,
    IN_VERSION = 32,
    IN_MANUAL = 64,
    IN_HEALTH = 128,
    IN_DOCTOR = 256,
    IN_PULL = 512,
    IN_LIST = 1024,
    IN_REMOVE = 2048,
    IN_CHAT = 4096,
    IN_STATUS = 8192,
    IN_STOP = 16384,
    IN_LOCAL = IN_HEALTH | IN_STATUS | IN_STOP,
    IN_ANSWER = IN_SERVE | IN_RUN | IN_CHAT,
    IN_ENGINE = IN_ANSWER | IN_BENCH,
    IN_MODEL = IN_ENGINE | IN_INSPECT,
    IN_EVERY = 32767
};

typedef enum option_group {
    GROUP_MODEL,
    GROUP_SPEED,
    GROUP_ANSWER,
    GROUP_MEDIA,
    GROUP_SERVER,
    GROUP_ACCESS,
    GROUP_UPLOAD,
    GROUP_HISTORY,
    GROUP_COMMAND,
    GROUP_PROGRAM,
    OPTION_GROUPS
} option_group;

/* Where an option may be given. */
typedef enum option_place {
    PLACE_ANY,     /* command line, environment, config file */
    PLACE_NO_FILE, /* not in the config file */
    PLACE_LINE     /* on the command line only */
} option_place;

typedef struct option_row {
    const char *name;          /* without dashes */
    const char *also;          /* a second name, known from other servers; NULL: none */
    const char *letters;       /* after one dash; NULL: none */
    const char *metavar;       /* name of the value in help; NULL for switches */
    const char *help;          /* a line or two, without a full stop */
    const char *more;          /* further sentences for the manual, or NULL */
    const char *note;          /* where the default comes from, if `standard` does not say it; else NULL */
    const char *choices;       /* OPTION_CHOICE: the words, with a space between */
    const char *standard_text; /* the default of a text, or NULL */
    double standard;           /* the default of a number (or what "not given" is); 1: the switch is on */
    double min, max;           /* OPTION_INT, OPTION_SEED and OPTION_NUMBER */
    size_t at;                 /* offset into options */
    unsigned commands;         /* IN_* */
    option_group group;
    option_kind kind;
    option_place place;
    bool is_secret;   /* never shown */
    const char *idle; /* known from other servers, and why it does nothing here; NULL: it does something */
} option_row;

typedef struct command_row {
    const char *name;
    const char *usage, *help;
    size_t words[2]; /* offsets into options: where words that are not options go */
    int n_words;
    unsigned bit; /* IN_* */
    command id;
} command_row;

const option_row *option_rows(size_t *n);      /* all options */
const command_row *option_commands(size_t *n); /* all commands; "serve" is the first */

/* Walks the options of a group (OPTION_GROUPS: of all) that any of `commands` takes: the one behind
 * `after`, the first if that is NULL; NULL at the end.
 *
 *     for (const option_row *r = NULL; (r = option_next(r, GROUP_SERVER, IN_SERVE));) { ... }
 */
const option_row *option_next(const option_row *after, option_group group, unsigned commands);

/* A command by its name; NULL if there is none. */
const command_row *option_find_command(const char *name);

/* The option called name[0..len), by either of its names, for any of `commands`; NULL if there
 * is none. */
const option_row *option_find(const char *name, size_t len, unsigned commands);
/* The one with this letter after a single dash. */
const option_row *option_find_letters(const char *letters, unsigned commands);
/* The closest known name to a misspelt one; NULL if none is close. */
const option_row *option_nearest(const char *name, unsigned commands);

/* "PARLEY_CTX_SIZE" for "ctx-size". */
void option_environment_name(char *out, size_t cap, const char *name);

/* A heading: "Answers". */
const char *option_group_name(option_group group);

/* The default as shown: a number, a word or a sentence; "" if there is none. */
void option_standard_text(char *out, size_t cap, const option_row *r);

#endif
