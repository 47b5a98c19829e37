/* options: the values of command line, environment and config files as one struct. Main thread.
 * Plain data; options_parse.h fills it.
 *
 * Precedence: command line, then environment (PARLEY_<FLAG>), then config files, then the model's
 * own defaults, then built-in. Config files are the one that --config names, or else
 * /etc/parley/parley.conf and $XDG_CONFIG_HOME/parley/parley.conf (the latter wins). All options
 * stand in one table, options_table.c.
 */
#ifndef PARLEY_SERVER_CLI_OPTIONS_H
#define PARLEY_SERVER_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { OPTIONS_MAX_FILES = 16, OPTIONS_MAX_ROWS = 160, OPTIONS_EXIT_USAGE = 2 };

typedef enum command {
    COMMAND_SERVE,
    COMMAND_RUN,
    COMMAND_BENCH,
    COMMAND_INSPECT,
    COMMAND_CONVERT,
    COMMAND_VERSION,
    COMMAND_HEALTH,
    COMMAND_MANUAL,
    COMMAND_DOCTOR,
    COMMAND_PULL,
    COMMAND_LIST,
    COMMAND_REMOVE,
    COMMAND_CHAT,
    COMMAND_STATUS,
    COMMAND_STOP
} command;

typedef struct option_file {
    const char *path;
    bool is_video;
} option_file;

/* Where a value came from. */
typedef enum option_source { SOURCE_STANDARD, SOURCE_CONFIG, SOURCE_ENVIRONMENT, SOURCE_LINE } option_source;

/* Strings point into argv, the environment or `memory`. 0, -1, NAN or NULL (the table says
 * which): not given. */
typedef struct options {
    command command;
    /* model */
    const char *model;
    const char *models_dir;
    bool pull;
    const char *mmproj;
    const char *alias;
    const char *chat_template_file;
    const char *template_history, *late_system;
    const char *tool_call_parser;
    const char *reasoning_field;
    bool strict_model, model_switch;
    int64_t models_max, idle_unload_s;
    const char *pin;          /* with commas */
    int64_t reasoning_budget; /* -1: no limit */
    int64_t ctx_size, parallel, queue, threads, batch_size;
    const char *cpu, *numa, *compute, *quantize, *quantize_head, *quantize_vision;
    const char *cache_type, *cache_scope;
    bool mtp, prefix_cache, huge_pages, mlock;
    bool continuous_batching, auto_tool_choice; /* without effect, as are these: */
    const char *mem_fraction, *reasoning_parser;
    const char *draft_model;
    bool spec_prefill;
    int64_t spec_prefill_threshold, spec_prefill_max;
    double spec_prefill_keep, spec_prefill_backbone;
    int64_t prompt_lookup; /* tokens; 0: none */
    int64_t max_images, max_image_pixels;
    const char *media_domains, *media_path;
    int64_t max_video_mib, max_video_pixels, max_video_frames;
    int64_t max_video_duration, max_video_time; /* seconds */
    bool video_outer_pair;
    int64_t cache_ram, vision_cache; /* -1: not given */
    const char *cache_disk;
    int64_t cache_disk_mib;
    const char *warm_prompts;
    int64_t mem_limit, media_mem; /* MiB; mem_limit 0: none */
    /* sampling */
    int64_t n_predict, top_k; /* top_k -1: not given */
    double temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    bool has_seed;
    int64_t seed;
    /* server */
    const char *host;
    int64_t port;
    int64_t max_header_kib, max_ws_message_mib, max_conns, max_conns_per_ip;
    int64_t header_timeout, body_timeout, queue_timeout, request_timeout, step_timeout, keepalive, ws_ping,
        drain_timeout; /* seconds */
    int64_t min_body_rate_kib, send_timeout, send_rate_kib, max_ws_queue_kib;
    const char *on_disconnect;
    const char *api_key, *api_key_file;
    const char *admin_key;
    bool hub;
    bool insecure_no_key, sandbox;
    const char *api_prefix;
    bool metrics, slots;
    const char *reasoning, *chat_template_kwargs;
    const char *upstream, *upstream_key, *upstream_model, *upstream_video, *upstream_pixels, *upstream_ca,
        *route;
    bool local_only;
    int64_t upstream_timeout, upstream_connect_timeout; /* seconds */
    const char *mcp_config, *tools;
    int64_t mcp_rounds;
    const char *allowed_hosts, *allowed_origins;
    int64_t max_body_mib;
    const char *upload_dir;
    int64_t max_upload_mib, upload_quota_mib;
    int64_t upload_expire_min;
    const char *history;
    int64_t history_quota_mib;
    const char *ui_dir;
    bool ui;
    /* run */
    option_file files[OPTIONS_MAX_FILES]; /* images and videos in the order given */
    int n_files;
    const char *system;
    bool thinking;
    const char *prompt; /* the first word that is not an option */
    /* chat */
    const char *connect, *connect_key, *input_history;
    /* convert */
    const char *convert_from, *convert_to;
    /* bench */
    int64_t bench_prompt, bench_predict, bench_repeat;
    bool bench_full, csv;
    bool json;
    /* manual */
    const char *page;
    /* everywhere */
    const char *log_level, *log_format, *log_file;
    bool access_log;
    bool quiet, verbose;
    const char *config;
    const char *completion;
    bool check, print_config, licenses, help, version;
    /* where the values came from */
    arena *memory;
    uint8_t sources[OPTIONS_MAX_ROWS]; /* option_source of each row of the table */
} options;

#endif
