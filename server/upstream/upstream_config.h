/* upstream_config: the servers that Parley stands in front of, as the options name them. Read once,
 * at the start; then immutable, any thread.
 *
 *     upstream_config c;
 *     const upstream_settings s = {.servers = "gpu=http://10.0.0.5:8000", .keys = "gpu=GPU_KEY"};
 *     if (upstream_config_read(&c, &s, &detail) != ERR_OK) { return; }
 *     upstream_config_deinit(&c);
 */
#ifndef PARLEY_SERVER_UPSTREAM_UPSTREAM_CONFIG_H
#define PARLEY_SERVER_UPSTREAM_UPSTREAM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "server/upstream/upstream_rules.h"

enum { UPSTREAM_NAME_MAX = 32, UPSTREAM_SERVERS = 16, UPSTREAM_REPLICAS = 16, UPSTREAM_ALIASES = 64 };

/* As the options say it; NULL: not given. */
typedef struct upstream_settings {
    const char *servers; /* NAME=URL[,URL...][,NAME=URL...] */
    const char *keys;    /* NAME=VARIABLE[,...]: the variable of the environment that holds the key */
    const char *models;  /* ALIAS=NAME/ID[,...] */
    const char *videos;  /* NAME=url|frames|none[,...] */
    const char *pixels;  /* NAME=N[,...] */
    const char *rules;   /* --route: see upstream_rules.h */
    bool local_only;     /* nothing leaves this machine */
    const char *ca_file; /* certificates to trust, besides none; NULL: the system's */
    int connect_timeout_s, silence_timeout_s; /* 0: the defaults of base/limits.h */
} upstream_settings;

/* How videos go to a server: as its engine takes them, as they are, as images of their frames, not at all. */
typedef enum upstream_video {
    UPSTREAM_VIDEO_AUTO,
    UPSTREAM_VIDEO_URL,
    UPSTREAM_VIDEO_FRAMES,
    UPSTREAM_VIDEO_NONE
} upstream_video;

typedef struct upstream_server {
    char name[UPSTREAM_NAME_MAX + 1];
    char *key;                     /* NULL: none */
    char *urls[UPSTREAM_REPLICAS]; /* up to and with /v1, no slash at the end */
    size_t n_urls;
    upstream_video video;
    int64_t max_pixels; /* of an image that it gets; 0: not said */
} upstream_server;

typedef struct upstream_alias {
    char *name, *model; /* model: NAME/ID */
} upstream_alias;

typedef struct upstream_config {
    upstream_server servers[UPSTREAM_SERVERS];
    size_t n_servers;
    upstream_alias aliases[UPSTREAM_ALIASES];
    size_t n_aliases;
    upstream_rules rules;
    bool local_only;
    char *ca_file;
    int connect_timeout_s, silence_timeout_s;
} upstream_config;

/* ERR_INVALID says which option is wrong and how; ERR_NOMEM. After an error too *out is deinited by the caller. */
MUST_CHECK err_code upstream_config_read(upstream_config *out, const upstream_settings *s, err_detail *d);
/* Writes a server's URL up to and with the version, /v1 where it names none, so that paths can be added.
 * False if url is no http or https URL, holds a user, a query or a fragment, or does not fit. */
MUST_CHECK bool upstream_base_url(char *out, size_t cap, const char *url);
/* Frees what it owns; the keys are wiped. */
void upstream_config_deinit(upstream_config *c);

#endif
