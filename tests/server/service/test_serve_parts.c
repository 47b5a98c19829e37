/* serve_parts: what a server is made of, opened one behind the other, each with what it gets; which of it can fail, and with what;
 * and how it is closed. All parts are the test's. */
#include <setjmp.h>
#include <unistd.h>

#include "tests/server/service/told.h"

/* ---- parts ---- */

static serve *server;
static const char *failing; /* the part that cannot be had */
static err_code fails_with;
static int n_messages, n_failures; /* in the mailbox; of messages that find no memory */
static bool is_local, prep_ends;
static jmp_buf ended;
static char answers[3];

/* A part is a place in here, known by its name. */
static const char *parts[32];

static void *part(const char *name)
{
    size_t i = 0;
    if (failing && strcmp(failing, name) == 0) {
        return NULL;
    }
    while (parts[i] && strcmp(parts[i], name) != 0) {
        i++;
        CHECK(i < ARRAY_LEN(parts));
    }
    parts[i] = name;
    return &parts[i];
}

static const char *which(const void *p)
{
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (p == &parts[i]) {
            return parts[i];
        }
    }
    return !p                     ? "-"
           : p == server          ? "server"
           : p == &server->remote ? "remote"
           : p == &server->talks  ? "talks"
                                  : "?";
}

static err_code open_part(const char *name, void *out, err_detail *d)
{
    void *made = part(name);
    memcpy(out, &made, sizeof made);
    return made ? ERR_OK : err_set(d, fails_with, "no %s", name);
}

#define END(name, type) WRAP(void, name, (type * x), tell(#name " %s", which(x));)

WRAP(ledger *, ledger_create, (size_t limit), tell("ledger %zu MiB", limit >> 20); return part("ledger");)
WRAP(write_queue *, write_queue_create, (struct ledger * l, void (*wake)(void *ctx), void *ctx),
     tell("write queue %s", which(l));
     wake(ctx); return part("writes");)
WRAP(file_store *, file_store_create, (const file_store_options *o),
     tell("file store %s, a file %llu, quota %llu, %lld s", o->dir, (unsigned long long)o->max_bytes,
          (unsigned long long)o->quota, (long long)o->expire_s);
     return part("files");)
WRAP(const file_store_options *, file_store_get_options, (const file_store *fs),
     CHECK_STR(which(fs), "files");
     static const file_store_options OPTIONS = {.dir = "the store's folder"}; return &OPTIONS;)
WRAP(void, uploads_init, (uploads * u, file_store *f, write_queue *w), CHECK(u == &server->uploads);
     tell("uploads %s %s", which(f), which(w));)
WRAP(err_code, file_writer_create, (file_writer * *out, const char *dir, uint64_t n, err_detail *d),
     tell("trial %s %d", dir, (int)n);
     return open_part("trial", out, d);)
END(file_writer_destroy, file_writer)
WRAP(err_code, catalog_open, (catalog * *out, const char *dir, err_detail *d), tell("catalog %s", dir);
     return open_part("catalog", out, d);)
WRAP(const catalog_model *, catalog_find, (const catalog *c, const char *name),
     tell("find %s in %s", name, which(c));
     return part(name);)
WRAP(err_code, catalog_unknown, (const catalog *c, const char *name, err_detail *d),
     return err_set(d, ERR_NOT_FOUND, "no model %s in %s", name, which(c));)
WRAP(mailbox *, mailbox_create, (size_t cap), tell("mailbox of %zu", cap); return part("mailbox");)
WRAP(bool, fetch_start, (void), tell("fetch starts"); return part("fetch") != NULL;)
WRAP(void, fetch_stop, (void), tell("fetch stops");)
WRAP(void, shares_init, (shares * x, size_t n, size_t n_bytes, ledger *l), CHECK(x == &server->kept);
     tell("shares %zu, %zu MiB, %s", n, n_bytes >> 20, which(l));)
WRAP(response_store *, response_store_create, (size_t max_bytes, size_t n, int ttl_s, ledger *l),
     tell("response store %zu MiB, %zu, %d s, %s", max_bytes >> 20, n, ttl_s, which(l));
     return part("responses");)
WRAP(prep *, prep_create,
     (int n_turns, int n_threads, size_t n_queue, size_t max_bytes, file_store *files, response_store *store,
      const remote_media *remote, void (*post)(void *ctx, loop_message *m), void *ctx),
     CHECK(post == serve_post && ctx == server);
     tell("prep %d of %d, queue %zu, %zu bytes, %s %s %s", n_turns, n_threads, n_queue, max_bytes,
          which(files), which(store), which(remote));
     return part(store ? "prep" : "previewer");)
WRAP(bool, access_init,
     (access_rules * a, const char *const *keys, size_t n_keys, const char *const *hosts, size_t n_hosts,
      const char *const *origins, size_t n_origins),
     CHECK(a == &server->access);
     tell("access %zu %s, %zu %s, %zu %s", n_keys, keys ? keys[0] : "-", n_hosts, hosts ? hosts[0] : "-",
          n_origins, origins ? origins[0] : "-");
     return part("access") != NULL;)
WRAP(void, access_set_admin, (access_rules * a, const char *key), CHECK(a == &server->access);
     tell("admin %s", key ? key : "-");)
WRAP(err_code, history_create,
     (history * *out, const history_options *o, void (*post)(void *ctx, history_reply *r), void *ctx,
      err_detail *d),
     tell("history %s, quota %d", o->dir, (int)o->quota);
     static history_reply reply; post(ctx, &reply); return open_part("history", out, d);)
WRAP(void, prep_set_stores, (prep * p, struct ledger *l, const kept_talks *talks),
     CHECK(!talks || (talks->ctx == server && talks->read == serve_read_talk));
     tell("stores of %s: %s %s", which(p), which(l), which(talks));)
WRAP(bool, net_is_local, (const net *n), CHECK_STR(which(n), "net"); return is_local;)
WRAP(void, net_wake, (net * n), tell("wake %s", which(n));)
WRAP(media_copier *, media_copier_create, (const engine_options *o), tell("media %s", which(o->memory));
     return part("media");)
WRAP(err_code, upstreams_create,
     (upstreams * *out, const upstream_settings *x, const upstream_hooks *h, err_detail *d),
     CHECK(x == &made_options.upstreams && h->on_event == serve_on_engine_event);
     tell("upstreams for %s, gather %d ms, %s %s", which(h->ctx), h->gather_ms, which(h->memory),
          which(h->media));
     h->on_change(h->ctx); return open_part("upstreams", out, d);)
WRAP(err_code, mcp_create,
     (mcp * *out, const mcp_config *x, mcp_spawner *spawner, const mcp_hooks *h, err_detail *d),
     CHECK(x == made_options.mcp && h->on_result == serve_on_mcp_result && !h->on_change);
     tell("mcp for %s, spawner %s", which(h->ctx), which(spawner)); return open_part("mcp", out, d);)
WRAP(void, serve_begin_ready, (serve * s), CHECK(s == server); tell("ready");)
WRAP(bool, serve_load_first, (serve * s), CHECK(s == server); tell("load"); return part("loader") != NULL;)
loop_message *__real_loop_message_create(loop_message_type type, uint64_t id);
WRAP(loop_message *, loop_message_create, (loop_message_type type, uint64_t id),
     return n_failures-- > 0 ? NULL : __real_loop_message_create(type, id);)
WRAP(void, serve_post, (void *ctx, loop_message *m), CHECK(ctx == server);
     tell("post %d%s", m->type, m->history ? " of the history" : ""); m->history = NULL;
     loop_message_free(m);)
WRAP(int, nanosleep, (const struct timespec *t, struct timespec *left), (void)left;
     tell("sleep %d s %ld ns", (int)t->tv_sec, t->tv_nsec); return 0;)

WRAP(
    err_code, net_open, (net * *out, const net_options *o, const net_callbacks *c, err_detail *d),
    tell("net %s of %zu, port %d, body %zu, message %zu, binary %zu, head %zu, in flight %zu, %s",
         o->hosts[0], o->n_hosts, o->port, o->max_body, o->max_message, o->max_binary, o->max_header,
         o->max_inflight, which(o->memory));
    tell("net %zu %s, connections %d %d, s %d %d %d %d %d, rates %zu %zu", o->n_origins,
         o->origins ? o->origins[0] : "-", o->max_connections, o->max_connections_per_address,
         o->header_timeout_s, o->body_timeout_s, o->send_timeout_s, o->ws_ping_s, o->ws_pong_s,
         o->min_body_rate, o->send_rate);
    CHECK(c->ctx == server && c->on_head == serve_on_head && c->on_body == serve_on_body &&
          c->on_request == serve_on_request && c->on_open == serve_on_open &&
          c->on_message == serve_on_message && c->on_binary == serve_on_binary &&
          c->on_writable == serve_on_writable && c->on_half_closed == serve_on_half_closed &&
          c->on_done == serve_on_done && c->on_close == serve_on_close && c->on_wake == serve_on_wake &&
          c->on_timer == serve_on_timer);
    if (c->on_sent) {
        const net_sent sent = {.id = "req_1", .method = "GET", .path = "/x", .status = 207, .ms = 12.34};
        c->on_sent(c->ctx, &sent);
    } return open_part("net", out, d);)

WRAP(void, mailbox_close, (mailbox * m),
     tell("close %s, %s", which(m), atomic_load(&server->closing) ? "closing" : "open");)
WRAP(int, pthread_join, (pthread_t t, void **out), CHECK(!out); tell("join %d", (int)t); return 0;)
WRAP(bool, prep_end, (prep * p, int ms), tell("end %s within %d ms", which(p), ms); return prep_ends;)
_Noreturn void __wrap__exit(int code);
_Noreturn void __wrap__exit(int code)
{
    tell("exit %d", code);
    longjmp(ended, 1);
}
WRAP(bool, mailbox_try_pop, (mailbox * m, void **message), (void)m; *message = &n_messages;
     return n_messages-- > 0;)
WRAP(void, serve_drop_message, (void *message), CHECK(message == &n_messages); tell("drop a message");)
WRAP(void, answer_destroy, (answer * a), tell("destroy answer %d", (int)((char *)a - answers));)
WRAP(void, id_table_deinit, (id_table * t),
     tell("deinit %s", t == &server->answers ? "answers"
                       : t == &server->conns ? "connections"
                                             : "?");
     free(t->entries); memset(t, 0, sizeof *t);)
WRAP(void, shares_deinit, (shares * x), CHECK(x == &server->kept); tell("deinit shares");)
WRAP(void, serve_close_previews, (serve * s), CHECK(s == server); tell("close previews");)
WRAP(void, serve_close_residents, (serve * s), CHECK(s == server);
     tell("close residents, engine %s", which(s->engine));)
WRAP(void, uploads_deinit, (uploads * u), CHECK(u == &server->uploads); tell("deinit uploads");)
WRAP(void, access_deinit, (access_rules * a), CHECK(a == &server->access); tell("deinit access");)
WRAP(void, mailbox_destroy, (mailbox * m, void (*drop)(void *message)), CHECK(!drop);
     tell("destroy %s", which(m));)
END(upstreams_stop, upstreams)
END(mcp_destroy, mcp)
END(prep_destroy, prep)
END(history_destroy, history)
END(upstreams_destroy, upstreams)
END(media_copier_destroy, media_copier)
END(engine_close, engine)
END(warm_destroy, warm)
END(write_queue_end, write_queue)
END(net_close, net)
END(write_queue_destroy, write_queue)
END(file_store_destroy, file_store)
END(response_store_destroy, response_store)
END(ledger_destroy, ledger)
END(catalog_close, catalog)

/* ---- cases ---- */

static serve *begin(void)
{
    static const char *const HOSTS[] = {"host"};
    static engine_options options;
    static serve s;
    memset(&s, 0, sizeof s);
    server = &s;
    serve_options_init(&made_options);
    made_options.hosts = HOSTS;
    made_options.n_hosts = 1;
    made_options.engine = &options;
    made_options.upload_dir = "/uploads";
    s.opt = &made_options;
    memset(&options, 0, sizeof options);
    failing = NULL;
    fails_with = ERR_IO;
    n_messages = n_failures = 0;
    is_local = prep_ends = true;
    return &s;
}

static void open_all(serve *s)
{
    err_detail d = {0};
    const err_code err = serve_open_parts(s, &d);
    tell("opened: %d %s", err, d.text);
    tell("has %s %s %s %s %s %s %s %s %s %s %s %s %s", which(s->memory), which(s->writes), which(s->files),
         which(s->catalog), which(s->inbox), which(s->response_store), which(s->prep), which(s->previewer),
         which(s->history), which(s->net), which(s->media), which(s->upstreams), which(s->mcp));
    tell("remote %zu %s, %s, %s, %llu%s", s->remote.n_domains, s->remote.domains ? s->remote.domains[0] : "-",
         s->remote.folder ? s->remote.folder : "-", s->remote.dir ? s->remote.dir : "-",
         (unsigned long long)s->remote.max_video, s->fetch_started ? ", fetches" : "");
}

/* All that there may be. */
static void want_all(void)
{
    static const char *const WORDS[] = {"one", "two", "three"}, *const DOMAINS[] = {"example.org",
                                                                                    "*.example.com"};
    static engine_options options;
    made_options.api_keys = made_options.allowed_hosts = made_options.allowed_origins = WORDS;
    made_options.n_api_keys = 1;
    made_options.n_allowed_hosts = 2;
    made_options.n_allowed_origins = 3;
    made_options.admin_key = "admin";
    made_options.media_domains = DOMAINS;
    made_options.n_media_domains = 2;
    made_options.media_path = "/";
    made_options.models_dir = "/models";
    made_options.pinned = WORDS;
    made_options.n_pinned = 2;
    made_options.history_dir = "/chats";
    made_options.history_quota = 99;
    made_options.upstreams.servers = "far";
    made_options.mcp = part("mcp config");
    made_options.mcp_spawner = part("spawner");
    made_options.access_log = true;
    options.videos.max_bytes = 12345;
    made_options.engine = &options;
    /* numbers that are each their own */
    made_options.port = 81;
    made_options.max_body = 82;
    made_options.max_ws_message = 83;
    made_options.max_header = 84;
    made_options.max_connections = 85;
    made_options.max_connections_per_address = 86;
    made_options.header_timeout_s = 87;
    made_options.body_timeout_s = 88;
    made_options.min_body_rate = 89;
    made_options.send_timeout_s = 90;
    made_options.send_rate = 91;
    made_options.ws_ping_s = 92;
    made_options.ws_pong_s = 93;
    made_options.n_prep_threads = 94;
    made_options.n_queue = 95;
    made_options.max_upload = 96;
    made_options.upload_quota = 97;
    made_options.upload_expire_s = 98;
    is_local = false;
}

static void test_open(void)
{
    serve *s = begin();
    told_case("as little as there may be");
    open_all(s);
    s = begin();
    told_case("all");
    want_all();
    open_all(s);
    s = begin();
    told_case("all, other sizes, a history that finds no memory at first, nothing loaded");
    want_all();
    made_options.max_body = 83;
    made_options.max_ws_message = 82;
    made_options.max_upload = 97;
    made_options.upload_quota = 96;
    made_options.has_no_model = true;
    n_failures = 3;
    open_all(s);
    s = begin();
    told_case("a change of other servers that finds no memory");
    made_options.upstreams.servers = "far";
    n_failures = 1;
    open_all(s);
    s = begin();
    told_case("tools alone fetch");
    made_options.mcp = part("mcp config");
    open_all(s);
}

/* Each part fails, with each kind of error. */
static void test_fails(void)
{
    static const char *const NAMES[] = {"ledger", "writes",    "files",   "trial",   "catalog",
                                        "one",    "two",       "mailbox", "fetch",   "responses",
                                        "prep",   "previewer", "access",  "history", "net",
                                        "media",  "upstreams", "mcp",     "loader"};
    static const err_code CODES[] = {ERR_IO, ERR_NOMEM, ERR_BUSY};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        for (size_t k = 0; k < ARRAY_LEN(CODES); k++) {
            serve *s = begin();
            want_all();
            const bool has_code = strcmp(NAMES[i], "catalog") == 0 || strcmp(NAMES[i], "history") == 0 ||
                                  strcmp(NAMES[i], "net") == 0;
            if (k > 0 && !has_code) {
                continue;
            }
            failing = NAMES[i];
            fails_with = CODES[k];
            told_case("without %s, %d", NAMES[i], CODES[k]);
            open_all(s);
        }
    }
    serve *s = begin();
    told_case("without a folder that is needed");
    made_options.needs_uploads = true;
    failing = "trial";
    open_all(s);
}

/* Options that are wrong, or not safe. */
static void test_refused(void)
{
    static const char *const WORDS[] = {"one"}, *const DOMAINS[] = {"example.org", "http://x", "example.org"};
    for (int with = 0; with < 13; with++) {
        serve *s = begin();
        is_local = with < 9 || with == 12;
        made_options.models_max = with == 0 ? 2 : with == 3 ? 1 : made_options.models_max;
        made_options.pinned = WORDS;
        made_options.n_pinned = with == 1;
        made_options.idle_unload_s = with == 2;
        made_options.media_domains = DOMAINS + (with == 12);
        made_options.n_media_domains = with == 4 || with == 12 ? 2 : with == 5 ? 1 : 0;
        made_options.media_path = with == 6   ? "/dev/null"
                                  : with == 7 ? "/there/is/none"
                                  : with == 8 ? "/"
                                              : NULL;
        made_options.api_keys = WORDS;
        made_options.n_api_keys = with == 10;
        made_options.allows_no_key = with == 11;
        told_case("options %d", with);
        open_all(s);
    }
}

static void close_all(serve *s)
{
    if (setjmp(ended) == 0) {
        serve_close_parts(s);
        CHECK(!s->engine && !s->mcp);
    } else { /* what the end of the program frees */
        free(server->answers.entries);
        free(server->conns.entries);
    }
}

/* Both ways to close: what was never opened, and all; with what does not come to its end, where signals are the program's. */
static void test_close(void)
{
    for (int with = 0; with < 10; with++) {
        serve *s = begin();
        const bool has_all = with & 1;
        told_case("close %d", with);
        if (has_all) {
            want_all();
            const size_t len = told.len;
            open_all(s);
            told.len = len;
            told.data[len] = '\0';
            s->engine = part("engine");
            s->warm = part("warm");
            s->loader_started = true;
            s->loader = (pthread_t)7;
            n_messages = 2;
            CHECK(id_table_put(&s->answers, FIRST_PLACE, answers) &&
                  id_table_put(&s->answers, LAST_PLACE, answers + 1) &&
                  id_table_put(&s->answers, 3, answers + 2));
            CHECK(id_table_put(&s->conns, 3, answers));
        }
        prep_ends = with < 2 || with >= 6;
        s->handles_signals = with == 4 || with == 5 || with >= 8;
        s->is_stalled = with >= 6;
        close_all(s);
    }
}

int main(void)
{
    test_open();
    test_fails();
    test_refused();
    test_close();
    recorded_check("server/service/recorded/parts.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
