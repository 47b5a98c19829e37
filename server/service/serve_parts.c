/* What a server is made of, opened in the order in which its parts need each other, and closed. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/ledger.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/media/fetch.h"
#include "server/media/remote_host.h"
#include "server/service/serve_state.h"

enum { INBOX_MESSAGES = 65536 };

/* A file is written on trial, so that a wrong folder is said at the start. */
static err_code open_files(serve *s, err_detail *d)
{
    const serve_options *opt = s->opt;
    const file_store_options files = {.dir = opt->upload_dir,
                                      .max_bytes = opt->max_upload < opt->upload_quota ? opt->max_upload
                                                                                       : opt->upload_quota,
                                      .quota = opt->upload_quota,
                                      .expire_s = opt->upload_expire_s};
    file_writer *trial = NULL;
    s->files = file_store_create(&files);
    if (!s->files || !s->writes) {
        return err_set(d, ERR_NOMEM, "no memory for the server");
    }
    uploads_init(&s->uploads, s->files, s->writes);
    if (file_writer_create(&trial, files.dir, 1, NULL) != ERR_OK) {
        if (!opt->needs_uploads) {
            log_warn("srv", "uploads cannot be stored in %s; name a folder with --upload-dir", files.dir);
            return ERR_OK;
        }
        return err_set(d, ERR_INVALID, "uploads cannot be stored in %s; name a folder with --upload-dir",
                       files.dir);
    }
    file_writer_destroy(trial);
    return ERR_OK;
}

/* Without memory for the envelope the reply waits for some: whoever asked must hear what became of
 * it. */
static void on_history(void *ctx, history_reply *r)
{
    loop_message *m;
    while (!(m = loop_message_create(LOOP_HISTORY, 0))) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    m->history = r;
    serve_post(ctx, m);
}

static err_code open_history(serve *s, err_detail *d)
{
    const history_options opt = {.dir = s->opt->history_dir, .quota = s->opt->history_quota};
    if (!opt.dir) {
        return ERR_OK;
    }
    const err_code err = history_create(&s->history, &opt, on_history, s, d);
    return err == ERR_BUSY ? ERR_INVALID
                           : err; /* that another holds the folder is a wrong option, not a taken port */
}

/* Other machines may not use the server without a key, unless that is asked for. */
static err_code check_guarded(const serve *s, err_detail *d)
{
    const serve_options *opt = s->opt;
    if (net_is_local(s->net)) {
        return ERR_OK;
    }
    if (opt->n_api_keys > 0) {
        log_warn("srv", "keys and conversations travel unencrypted; a proxy with TLS protects them");
    } else if (opt->allows_no_key) {
        log_warn("srv", "everybody who reaches this machine can use this server");
    } else {
        return err_set(d, ERR_INVALID,
                       "everybody who reaches this machine could use this server; ask for a key with "
                       "--api-key-file FILE, or say --insecure-no-key");
    }
    return ERR_OK;
}

/* What requests may name by its address. A worker that waits for another host's bytes does no work
 * of its own, so there are more of them then. */
static err_code open_remote(serve *s, err_detail *d)
{
    const serve_options *opt = s->opt;
    struct stat st;
    s->remote = (remote_media){.domains = opt->media_domains,
                               .n_domains = opt->n_media_domains,
                               .folder = opt->media_path,
                               .dir = file_store_get_options(s->files)->dir,
                               .max_video = opt->engine->videos.max_bytes > 0
                                                ? (uint64_t)opt->engine->videos.max_bytes
                                                : LIMIT_VIDEO_BYTES};
    for (size_t i = 0; i < opt->n_media_domains; i++) {
        if (!remote_rule_is_valid(opt->media_domains[i])) {
            return err_set(d, ERR_INVALID,
                           "--media-domains: \"%s\" is not a host; it takes hosts, *.hosts and addresses",
                           opt->media_domains[i]);
        }
    }
    if (opt->media_path && (stat(opt->media_path, &st) != 0 || !S_ISDIR(st.st_mode))) {
        return err_set(d, ERR_INVALID, "--media-path: there is no folder %s", opt->media_path);
    }
    const bool fetches = opt->n_media_domains > 0 || opt->upstreams.servers || opt->mcp;
    s->fetch_started = fetches && fetch_start();
    return s->fetch_started || !fetches ? ERR_OK : err_set(d, ERR_NOMEM, "no memory for fetching media");
}

static void on_upstreams_changed(void *ctx)
{
    loop_message *m = loop_message_create(LOOP_UPSTREAMS, 0);
    if (m) { /* else the next change says so */
        serve_post(ctx, m);
    }
}

/* Once the loop can be woken. */
static err_code open_upstreams(serve *s, err_detail *d)
{
    if (!s->opt->upstreams.servers) {
        return ERR_OK;
    }
    engine_options options = *s->opt->engine;
    options.memory = s->memory;
    s->media = media_copier_create(&options);
    const upstream_hooks hooks = {.on_event = serve_on_engine_event,
                                  .on_change = on_upstreams_changed,
                                  .ctx = s,
                                  .gather_ms = SERVE_FLUSH_MS,
                                  .memory = s->memory,
                                  .media = s->media};
    return s->media ? upstreams_create(&s->upstreams, &s->opt->upstreams, &hooks, d)
                    : err_set(d, ERR_NOMEM, "no memory for the server");
}

/* Once the loop can be woken. */
static err_code open_mcp(serve *s, err_detail *d)
{
    const mcp_hooks hooks = {.on_result = serve_on_mcp_result, .ctx = s};
    return s->opt->mcp ? mcp_create(&s->mcp, s->opt->mcp, s->opt->mcp_spawner, &hooks, d) : ERR_OK;
}

/* --access-log */
static void on_sent(void *ctx, const net_sent *sent)
{
    (void)ctx;
    log_info("srv", "req=%s %s %s %d %.1f ms", sent->id, sent->method, sent->path, sent->status, sent->ms);
}

/* On the writer thread. */
static void on_written(void *ctx)
{
    net_wake(((serve *)ctx)->net);
}

/* The models that may be loaded. */
static err_code open_catalog(serve *s, err_detail *d)
{
    const serve_options *opt = s->opt;
    if (!opt->models_dir && (opt->models_max > 1 || opt->n_pinned || opt->idle_unload_s)) {
        return err_set(d, ERR_INVALID,
                       "--models-max, --pin and --idle-unload are about the models of --models-dir");
    }
    const err_code err = opt->models_dir ? catalog_open(&s->catalog, opt->models_dir, d) : ERR_OK;
    if (err != ERR_OK) {
        return err == ERR_NOMEM ? err : ERR_INVALID;
    }
    for (size_t i = 0; i < opt->n_pinned; i++) {
        if (!catalog_find(s->catalog, opt->pinned[i])) {
            catalog_unknown(s->catalog, opt->pinned[i], d);
            return ERR_INVALID;
        }
    }
    return ERR_OK;
}

err_code serve_open_parts(serve *s, err_detail *d)
{
    const serve_options *opt = s->opt;
    s->memory = ledger_create(LIMIT_REQUEST_MEMORY - LIMIT_PROCESS_MEMORY); /* until the model is there */
    s->writes = s->memory ? write_queue_create(s->memory, on_written, s) : NULL;
    err_code err = open_files(s, d);
    if (err != ERR_OK) {
        return err;
    }
    err = open_catalog(s, d);
    if (err != ERR_OK) {
        return err;
    }
    s->inbox = mailbox_create(INBOX_MESSAGES);
    size_t max_bytes =
        SERVE_INFLIGHT_BODIES * (opt->max_body > opt->max_ws_message ? opt->max_body : opt->max_ws_message);
    err = open_remote(s, d);
    if (err != ERR_OK) {
        return err;
    }
    shares_init(&s->kept, SERVE_KEPT_ANSWERS, SERVE_KEPT_BYTES, s->memory);
    s->response_store = response_store_create(LIMIT_RESPONSE_STORE_BYTES, LIMIT_STORED_RESPONSES,
                                              LIMIT_STORED_RESPONSE_S, s->memory);
    s->prep = s->inbox && s->response_store
                  ? prep_create(opt->n_prep_threads, LIMIT_PREP_JOBS, (size_t)opt->n_queue, max_bytes,
                                s->files, s->response_store, &s->remote, serve_post, s)
                  : NULL;
    s->previewer = s->prep ? prep_create(1, 1, SERVE_PREVIEWS, SERVE_PREVIEWS * FILE_ID_MAX, s->files, NULL,
                                         NULL, serve_post, s)
                           : NULL;
    if (!s->previewer || !access_init(&s->access, opt->api_keys, opt->n_api_keys, opt->allowed_hosts,
                                      opt->n_allowed_hosts, opt->allowed_origins, opt->n_allowed_origins)) {
        return err_set(d, ERR_NOMEM, "no memory for the server");
    }
    access_set_admin(&s->access, opt->admin_key);
    err = open_history(s, d);
    if (err != ERR_OK) {
        return err;
    }
    s->talks = (kept_talks){.ctx = s, .read = serve_read_talk};
    prep_set_stores(s->prep, s->memory, s->history ? &s->talks : NULL);
    const net_options net_opt = {.hosts = opt->hosts,
                                 .n_hosts = opt->n_hosts,
                                 .port = opt->port,
                                 .max_body = opt->max_body,
                                 .max_message = opt->max_ws_message,
                                 .max_binary = LIMIT_UPLOAD_CHUNK + SERVE_CHUNK_HEADER,
                                 .max_inflight = max_bytes,
                                 .memory = s->memory,
                                 .max_header = opt->max_header,
                                 .origins = opt->allowed_origins,
                                 .n_origins = opt->n_allowed_origins,
                                 .max_connections = opt->max_connections,
                                 .max_connections_per_address = opt->max_connections_per_address,
                                 .header_timeout_s = opt->header_timeout_s,
                                 .body_timeout_s = opt->body_timeout_s,
                                 .min_body_rate = opt->min_body_rate,
                                 .send_timeout_s = opt->send_timeout_s,
                                 .send_rate = opt->send_rate,
                                 .ws_ping_s = opt->ws_ping_s,
                                 .ws_pong_s = opt->ws_pong_s};
    const net_callbacks callbacks = {.ctx = s,
                                     .on_head = serve_on_head,
                                     .on_body = serve_on_body,
                                     .on_request = serve_on_request,
                                     .on_open = serve_on_open,
                                     .on_message = serve_on_message,
                                     .on_binary = serve_on_binary,
                                     .on_writable = serve_on_writable,
                                     .on_half_closed = serve_on_half_closed,
                                     .on_done = serve_on_done,
                                     .on_close = serve_on_close,
                                     .on_sent = opt->access_log ? on_sent : NULL,
                                     .on_wake = serve_on_wake,
                                     .on_timer = serve_on_timer};
    err = net_open(&s->net, &net_opt, &callbacks, d);
    if (err != ERR_OK) {
        return err;
    }
    err = check_guarded(s, d);
    if (err != ERR_OK) {
        return err;
    }
    err = open_upstreams(s, d);
    err = err == ERR_OK ? open_mcp(s, d) : err;
    if (err != ERR_OK) {
        return err;
    }
    if (serve_is_remote_only(s)) {
        serve_begin_ready(s);
        return ERR_OK;
    }
    return serve_load_first(s) ? ERR_OK : err_set(d, ERR_NOMEM, "no thread to load the model");
}

void serve_close_parts(serve *s)
{
    atomic_store(&s->closing, true);
    if (s->inbox) {
        mailbox_close(s->inbox);
    }
    if (s->loader_started) {
        /* A model that is still being loaded cannot be interrupted; its message may be in the
         * mailbox already. */
        pthread_join(s->loader, NULL);
    }
    if (!prep_end(s->prep, LIMIT_PREP_END_S * 1000) && s->handles_signals) {
        log_error("srv", "a request is still being prepared: the program ends without it");
        _exit(EXIT_FAILED);
    }
    upstreams_stop(s->upstreams);
    mcp_destroy(s->mcp); /* the workers, which may wait for its servers, have ended */
    s->mcp = NULL;
    serve_close_previews(s);
    prep_destroy(s->prep);       /* the workers use the engine, so they end first */
    history_destroy(s->history); /* what is on its way is written first */
    void *message;
    while (s->inbox && mailbox_try_pop(s->inbox, &message)) {
        serve_drop_message(message); /* may hold requests, which need the engine to be freed */
    }
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (a) {
            answer_destroy(a);
        }
    }
    id_table_deinit(&s->answers);
    shares_deinit(&s->kept);
    if (s->is_stalled && s->handles_signals) {
        log_error("srv", "the computation is still stalled: the program ends without it");
        _exit(EXIT_FAILED);
    }
    upstreams_destroy(s->upstreams); /* behind the requests that name it */
    media_copier_destroy(s->media);
    engine_close(s->engine);
    s->engine = NULL;
    serve_close_residents(s);
    warm_destroy(s->warm);
    write_queue_end(s->writes); /* wakes the loop, so it ends first */
    net_close(s->net);
    if (s->inbox) {
        mailbox_destroy(s->inbox, NULL);
    }
    id_table_deinit(&s->conns);
    uploads_deinit(&s->uploads);
    write_queue_destroy(s->writes);
    file_store_destroy(s->files);
    response_store_destroy(s->response_store);
    ledger_destroy(s->memory);
    if (s->fetch_started) {
        fetch_stop();
    }
    catalog_close(s->catalog);
    access_deinit(&s->access);
}
