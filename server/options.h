/* options: one table for every flag: parsing, environment and --help come from it. Main thread.
 *
 *     options o; int code = options_parse(&o, argc, argv);   // prints and returns an exit code, or -1: go on
 *
 * Precedence: command line, then environment (PARLEY_<FLAG>), then the model's own defaults, then built-in.
 */
#ifndef PARLEY_SERVER_OPTIONS_H
#define PARLEY_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { OPTIONS_MAX_FILES = 16, OPTIONS_EXIT_USAGE = 2 };

typedef enum command {
    COMMAND_SERVE,
    COMMAND_RUN,
    COMMAND_BENCH,
    COMMAND_INSPECT,
    COMMAND_CONVERT,
    COMMAND_VERSION
} command;

typedef struct option_file {
    const char *path;
    bool is_film;
} option_file;

/* Strings point into argv or the environment. 0, NAN or NULL: not given. */
typedef struct options {
    command command;
    /* model */
    const char *model;
    const char *alias;
    const char *chat_template_file;
    const char *tool_call_parser;
    int64_t reasoning_budget; /* -1: no limit */
    int64_t ctx_size, parallel, queue, threads, batch_size;
    const char *cpu, *compute, *quantize, *quantize_head;
    const char *cache_type;
    bool mtp;
    int64_t max_video_mib, max_video_pixels, max_video_frames; /* 0: default */
    int64_t max_video_duration, max_video_time;                /* seconds; 0: default */
    bool video_outer_pair;
    int64_t cache_ram, vision_cache; /* -1: not given */
    /* sampling */
    int64_t n_predict, top_k; /* top_k -1: not given */
    double temperature, top_p, min_p, repeat_penalty;
    bool has_seed;
    int64_t seed;
    /* server */
    const char *host;
    int64_t port;
    const char *api_key, *api_key_file;
    const char *allowed_hosts, *allowed_origins;
    int64_t max_body_mib;
    const char *upload_dir;
    int64_t max_upload_mib, upload_quota_mib; /* quota -1: not given */
    int64_t upload_expire_min;
    const char *ui_dir;
    /* run */
    option_file files[OPTIONS_MAX_FILES]; /* pictures and films in the order given */
    int n_files;
    const char *system;
    bool thinking;
    bool quiet;
    const char *prompt; /* the first word that is not a flag */
    /* convert */
    const char *convert_from, *convert_to;
    /* bench */
    int64_t bench_prompt, bench_predict, bench_repeat;
    bool json;
    /* everywhere */
    const char *log_level;
} options;

/* Parses the command line. Returns -1 to go on, else the exit code (help was printed, or a mistake was named). */
int options_parse(options *o, int argc, char **argv);

#endif
