/* status and stop: the server of this machine that the same options would start: what it does, and its
 * end. */
#define _GNU_SOURCE /* pidfd */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "server/cli/commands.h"
#include "server/local_server.h"

enum { KEYS_BYTES = 65536, KEY_BYTES = 512, SOON_MS = 2000 };

static int fail(const local_reply *r, const char *text)
{
    fprintf(stderr, "parley: %s: %s\n", r->where, text);
    return 1;
}

/* The first of the server's own keys, "" if it has none; false after saying why. */
static bool first_key(char key[KEY_BYTES], const options *o)
{
    bytes text = bytes_empty(KEYS_BYTES);
    err_detail detail = {0};
    err_code err = ERR_OK;
    if (o->api_key_file && !o->api_key) {
        err = file_read(&text, o->api_key_file, &detail);
    } else {
        bytes_append_str(&text, o->api_key ? o->api_key : "");
    }
    const char *from = bytes_str(&text) + strspn(bytes_str(&text), " \r\n,");
    snprintf(key, KEY_BYTES, "%.*s", (int)strcspn(from, " \r\n,"), from);
    bytes_deinit(&text);
    if (err) {
        fprintf(stderr, "parley: --api-key-file: %s\n", detail.text);
    }
    return !err;
}

/* /v1/status as a document; NULL after saying why. */
static json_doc *ask(local_reply *r, const options *o)
{
    const local_address at = {.hosts = o->host, .port = o->port, .prefix = o->api_prefix};
    char key[KEY_BYTES];
    json_doc *doc = NULL;
    if (!first_key(key, o)) {
        *r = (local_reply){.fd = -1};
        return NULL;
    }
    if (!local_server_get(r, &at, "/v1/status", key[0] ? key : NULL)) {
        fail(r, r->why);
    } else if (r->status == 401 || r->status == 403) {
        fail(r, "the server wants a key: --api-key-file FILE, or PARLEY_API_KEY");
    } else if (r->status != 200 ||
               json_parse(&doc, bytes_str(&r->body), r->body.len, LIMIT_JSON_DEPTH, NULL) != ERR_OK) {
        fail(r, "no Parley server answers there");
    }
    return doc;
}

static double number(const json *in, const char *name)
{
    return json_num(json_get(in, name), 0.0);
}

static void print_time(double seconds)
{
    const long s = (long)seconds;
    if (s < 120) {
        printf("%ld s", s);
    } else if (s < 7200) {
        printf("%ld min", s / 60);
    } else {
        printf("%ld h %ld min", s / 3600, s % 3600 / 60);
    }
}

static void print_status(const local_reply *r, const json *s)
{
    const json *model = json_get(s, "model"), *memory = json_get(s, "memory"), *queue = json_get(s, "queue");
    const json *totals = json_get(s, "totals"), *cache = json_get(s, "cache");
    printf("%s: %s, Parley %s, up ", r->where, json_str(json_get(s, "state"), "?"),
           json_str(json_get(s, "version"), "?"));
    print_time(number(s, "uptime_s"));
    const pid_t process = local_server_process(r);
    if (process) {
        printf(", process %d", (int)process);
    }
    printf("\n");
    if (json_is(model, JSON_OBJECT)) {
        printf("model     %s, context %.0f, %s\n", json_str(json_get(model, "id"), "?"),
               number(model, "n_ctx"), json_str(json_get(model, "compute"), "?"));
    }
    printf("memory    %.0f MiB, of it weights %.0f\n", number(memory, "rss_bytes") / 0x1p20,
           number(memory, "weight_bytes") / 0x1p20);
    printf("requests  %.0f running on %.0f slots, %.0f waiting, %.0f since the start\n",
           number(queue, "running"), number(queue, "slots"), number(queue, "waiting"),
           number(totals, "requests"));
    printf("tokens    %.0f of prompts (%.0f more from the cache), %.0f of answers at %.1f a second\n",
           number(totals, "prompt_tokens"), number(totals, "cached_tokens"),
           number(totals, "generated_tokens"), number(totals, "predicted_per_second"));
    printf("cache     %.0f prompts, %.0f MiB\n", number(cache, "entries"), number(cache, "bytes") / 0x1p20);
}

int command_status(const options *o)
{
    local_reply r;
    json_doc *doc = ask(&r, o);
    const bool is_ready = doc && strcmp(json_str(json_get(json_root(doc), "state"), ""), "loading") != 0;
    if (doc && o->json) {
        printf("%s\n", bytes_str(&r.body));
    } else if (doc) {
        print_status(&r, json_root(doc));
    }
    json_free(doc);
    local_reply_deinit(&r);
    return is_ready ? 0 : 1;
}

/* ---- stop ---- */

/* Whether the process is a parley, whatever file it was started from. */
static bool is_parley(pid_t process)
{
    char path[64];
    bytes name = bytes_empty(64);
    snprintf(path, sizeof path, "/proc/%d/comm", (int)process);
    const bool is = file_read(&name, path, NULL) == ERR_OK && strncmp(bytes_str(&name), "parley", 6) == 0;
    bytes_deinit(&name);
    return is;
}

/* Tells the process to stop and waits for its end. */
static int end_process(const local_reply *r, int process)
{
    struct pollfd end = {.fd = process, .events = POLLIN};
    if (pidfd_send_signal(process, SIGTERM, NULL, 0) != 0) {
        return fail(r, strerror(errno));
    }
    if (poll(&end, 1, SOON_MS) == 0) {
        fprintf(stderr, "waiting for its running answers; another `parley stop` cuts them\n");
        while (poll(&end, 1, -1) < 0 && errno == EINTR) {
        }
    }
    printf("stopped\n");
    return 0;
}

int command_stop(const options *o)
{
    const local_address at = {.hosts = o->host, .port = o->port, .prefix = o->api_prefix};
    local_reply r;
    int code = 1, process = -1;
    if (!local_server_get(&r, &at, "/health", NULL)) {
        fail(&r, r.why);
        goto out;
    }
    const pid_t id = local_server_process(&r);
    process = id > 0 ? pidfd_open(id, 0) : -1;
    if (process < 0) {
        fail(&r, "the server runs as another user or in a container; stop it there (systemctl stop parley)");
    } else if (local_server_process(&r) != id || !is_parley(id)) {
        fail(&r,
             "what answers there is no Parley server that can be stopped from here (systemctl stop parley)");
    } else {
        code = end_process(&r, process);
    }
out:
    local_reply_deinit(&r);
    file_close(process);
    return code;
}
