#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/inspect.h"
#include "server/cli/command.h"
#include "server/cli/commands.h"
#include "server/cli/options_table.h"
#include "server/cli/serve_sandbox.h"
#include "server/cli/upload_folder.h"
#include "server/service/serve.h"
#include "server/protocol/output/tool_scanner.h"

enum { LIST_MAX = 64, KEY_MIN_CHARS = 16, SECRETS_MAX = 1 << 16, PATH_BYTES = 4096, PREFIX_MAX = 256 };

/* A list of words cut out of a text that the list owns. */
typedef struct word_list {
    char *text;
    const char *words[LIST_MAX];
    size_t n;
} word_list;

/* Adds the words of text[0..len) between separators; false if out of memory or with too many
 * words. */
static bool add_words(word_list *list, const char *text, size_t len, const char *separators)
{
    list->text = malloc(len + 1);
    if (!list->text) {
        return false;
    }
    memcpy(list->text, text, len);
    list->text[len] = '\0';
    char *rest = NULL;
    for (char *word = strtok_r(list->text, separators, &rest); word;
         word = strtok_r(NULL, separators, &rest)) {
        if (list->n == LIST_MAX) {
            return false;
        }
        list->words[list->n++] = word;
    }
    return true;
}

static bool add_option(word_list *list, const char *text)
{
    return !text || add_words(list, text, strlen(text), ", ");
}

/* Where --api-key-file is, or what systemd's LoadCredential=api-key brought; NULL: neither. */
static const char *key_file(const options *o, char *path, size_t cap)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    if (o->api_key || o->api_key_file || !folder) {
        return o->api_key_file;
    }
    return file_join(path, cap, folder, "api-key") && file_exists(path) ? path : NULL;
}

static void warn_of_readers(const char *file)
{
    struct stat st;
    if (stat(file, &st) == 0 && (st.st_mode & S_IROTH)) {
        log_warn("srv", "%s holds API keys, and every user of this machine can read it: chmod 600 %s", file,
                 file);
    }
}

/* Keys from --api-key, or one a line from a file. */
static err_code read_keys(word_list *keys, const options *o, err_detail *detail)
{
    char path[PATH_BYTES];
    bytes text = bytes_empty(SECRETS_MAX);
    const char *file = key_file(o, path, sizeof path);
    err_code err = ERR_OK;
    if (o->api_key && o->api_key_file) {
        err = err_set(detail, ERR_INVALID, "--api-key and --api-key-file are both given; keep one of them");
    } else if (file) {
        err = file_read(&text, file, detail);
        warn_of_readers(file);
    } else if (o->api_key) {
        bytes_append_str(&text, o->api_key);
    }
    if (err == ERR_OK && text.len && !add_words(keys, bytes_str(&text), text.len, "\r\n, ")) {
        err = err_set(detail, ERR_INVALID, "there are too many API keys; %d are possible", LIST_MAX);
    }
    if (err == ERR_OK && file && keys->n == 0) {
        err = err_set(detail, ERR_INVALID, "%s holds no API key", file);
    }
    for (size_t i = 0; err == ERR_OK && i < keys->n; i++) {
        if (strlen(keys->words[i]) < KEY_MIN_CHARS) {
            err = err_set(detail, ERR_INVALID,
                          "API key number %zu is shorter than %d characters; use a longer one", i + 1,
                          KEY_MIN_CHARS);
        }
    }
    bytes_deinit(&text);
    return err;
}

/* The keys while the server runs, and where they come from. */
typedef struct key_ring {
    const options *o;
    word_list keys;
} key_ring;

/* Writes the origins as browsers do: in small letters, without a slash at the end. Says so and
 * returns false if one is none. */
static bool tidy_origins(word_list *origins)
{
    for (size_t i = 0; i < origins->n; i++) {
        char *word = origins->text + (origins->words[i] - origins->text);
        for (char *p = word; *p; p++) {
            *p = (char)tolower((unsigned char)*p);
        }
        const char *name = strstr(word, "://");
        const size_t n = strlen(word);
        if (name && name[3] && word[n - 1] == '/') {
            word[n - 1] = '\0';
        }
        if (strcmp(word, "null") != 0 && (!name || name[3 + strcspn(name + 3, "/?#*")] || !name[3])) {
            fprintf(
                stderr,
                "parley: --allowed-origins is \"%s\"; it takes origins such as https://chat.example:8443\n",
                word);
            return false;
        }
    }
    return true;
}

/* serve_options.read_keys */
static err_code read_keys_again(void *ctx, const char *const **keys, size_t *n, err_detail *detail)
{
    key_ring *ring = ctx;
    word_list fresh = {0};
    err_code err = read_keys(&fresh, ring->o, detail);
    if (err == ERR_OK && fresh.n == 0 && ring->keys.n > 0) {
        err = err_set(detail, ERR_INVALID, "there is no key any more");
    }
    if (err != ERR_OK) {
        free(fresh.text);
        return err;
    }
    free(ring->keys.text);
    ring->keys = fresh;
    *keys = ring->keys.words;
    *n = ring->keys.n;
    return ERR_OK;
}

static bool is_tool_scanner(const char *name)
{
    return !name || strcmp(name, "auto") == 0 || strcmp(name, "none") == 0 || tool_form_find(name);
}

/* --chat-template-kwargs with --reasoning in it, as an object; *out is NULL if neither says
 * anything. */
static err_code read_template_kwargs(json_doc **out, const options *o, err_detail *detail)
{
    const char *given = o->chat_template_kwargs ? o->chat_template_kwargs : "{}";
    const bool decides = strcmp(o->reasoning, "auto") != 0;
    json_doc *doc = NULL;
    *out = NULL;
    if (!o->chat_template_kwargs && !decides) {
        return ERR_OK;
    }
    err_code err = json_parse(&doc, given, strlen(given), LIMIT_JSON_DEPTH, NULL);
    if (err != ERR_OK || !json_is(json_root(doc), JSON_OBJECT)) {
        json_free(doc);
        return err_set(detail, ERR_INVALID, "--chat-template-kwargs is not a JSON object: {\"name\": value}");
    }
    if (!decides || json_get(json_root(doc), "enable_thinking")) {
        *out = doc;
        return ERR_OK;
    }
    bytes text = bytes_empty(SECRETS_MAX);
    bytes_printf(&text, "{\"enable_thinking\":%s", strcmp(o->reasoning, "on") == 0 ? "true" : "false");
    for (const json *v = json_child(json_root(doc)); v; v = json_next(v)) {
        bytes_json(&text, ",%s:", json_key(v));
        json_write(&text, v);
    }
    bytes_append_char(&text, '}');
    json_free(doc);
    err = text.failed ? err_set(detail, ERR_INVALID, "--chat-template-kwargs is too long")
                      : json_parse(out, text.data, text.len, LIMIT_JSON_DEPTH, detail);
    bytes_deinit(&text);
    return err;
}

/* Says why options of other servers do nothing. */
static void log_idle_options(const options *o)
{
    size_t n;
    const option_row *rows = option_rows(&n);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].idle && o->sources[i] != SOURCE_STANDARD) {
            log_info("srv", "--%s does nothing here: %s", rows[i].name, rows[i].idle);
        }
    }
}

static bool is_prefix(const char *path)
{
    return !path || (path[0] == '/' && path[1] && path[strlen(path) - 1] != '/' &&
                     strlen(path) < PREFIX_MAX && !path[strcspn(path, "?#% \r\n")]);
}

static void on_listening(void *ctx, int port)
{
    (void)port;
    serve_sandbox_listening(ctx);
}

static upstream_settings upstreams_of(const options *o)
{
    return (upstream_settings){.servers = o->upstream,
                               .keys = o->upstream_key,
                               .models = o->upstream_model,
                               .videos = o->upstream_video,
                               .pixels = o->upstream_pixels,
                               .rules = o->route,
                               .local_only = o->local_only,
                               .ca_file = o->upstream_ca,
                               .connect_timeout_s = (int)o->upstream_connect_timeout,
                               .silence_timeout_s = (int)o->upstream_timeout};
}

/* Before the sandbox closes: what starts programs keeps what it needs for that. */
static err_code open_tools(serve_options *so, mcp_config **config, mcp_spawner **spawner, const options *o,
                           err_detail *d)
{
    if (!o->mcp_config && !o->tools) {
        return ERR_OK;
    }
    err_code err = mcp_config_read(config, o->mcp_config, o->tools, d);
    err = err == ERR_OK && mcp_config_spawns(*config) ? mcp_spawner_create(spawner, *config, d) : err;
    so->mcp = *config;
    so->mcp_spawner = *spawner;
    so->tool_rounds = (int)o->mcp_rounds;
    return err;
}

static void close_tools(mcp_config *config, mcp_spawner *spawner)
{
    mcp_spawner_destroy(spawner);
    mcp_config_destroy(config);
}

/* Before the sandbox closes, as tools are: what fetches models connects, and writes to their cache. */
static void open_hub(serve_options *so, const options *o)
{
    const hub_jobs_hooks hooks = {
        .check_config = inspect_config, .check_gguf = inspect_gguf_head, .inspect = inspect_model};
    err_detail d = {0};
    if (o->hub && o->ui && hub_jobs_create(&so->hub, &hooks, &d) != ERR_OK) {
        log_warn("hub", "the page offers no models of a hub: %s", d.text);
    }
}

/* What serving takes as it was given: limits, times, folders, what is on. */
static void take_plain_options(serve_options *so, const options *o)
{
    so->alias = o->alias;
    so->ui_dir = o->ui_dir;
    so->media_path = o->media_path;
    so->max_body = (size_t)o->max_body_mib << 20;
    so->max_ws_message = o->max_ws_message_mib ? (size_t)o->max_ws_message_mib << 20 : so->max_body;
    so->max_header = (size_t)o->max_header_kib << 10;
    so->max_connections = (int)o->max_conns;
    so->max_connections_per_address = (int)o->max_conns_per_ip;
    so->header_timeout_s = (int)o->header_timeout;
    so->body_timeout_s = (int)o->body_timeout;
    so->queue_timeout_s = (int)o->queue_timeout;
    so->request_timeout_s = (int)o->request_timeout;
    so->step_timeout_s = (int)o->step_timeout;
    so->access_log = o->access_log;
    so->keepalive_s = (int)o->keepalive;
    so->ws_ping_s = (int)o->ws_ping;
    so->min_body_rate = (size_t)o->min_body_rate_kib << 10;
    so->send_timeout_s = (int)o->send_timeout;
    so->send_rate = (size_t)o->send_rate_kib << 10;
    so->max_unread = (size_t)o->max_ws_queue_kib << 10;
    so->finish_on_disconnect = strcmp(o->on_disconnect, "finish") == 0;
    so->needs_uploads = o->upload_dir != NULL;
    so->max_upload = (uint64_t)o->max_upload_mib << 20;
    so->upload_quota = (uint64_t)o->upload_quota_mib << 20;
    so->upload_expire_s = o->upload_expire_min * 60;
    so->history_dir = o->history;
    so->history_quota = (uint64_t)o->history_quota_mib << 20;
    so->drain_timeout_s = (int)o->drain_timeout;
    so->no_ui = !o->ui;
    so->no_metrics = !o->metrics;
    so->no_slots = !o->slots;
    so->strict_model = o->strict_model;
    so->models_dir = o->models_dir;
    so->warm_prompts = o->warm_prompts;
    so->switches_model = o->model_switch;
    so->models_max = (int)o->models_max;
    so->idle_unload_s = (int)o->idle_unload_s;
    so->quiet = o->quiet;
}

int command_serve(const options *o)
{
    serve_sandbox box;
    mcp_config *tools = NULL;
    mcp_spawner *spawner = NULL;
    json_doc *kwargs = NULL;
    key_ring ring = {.o = o};
    word_list listening = {0}, hosts = {0}, origins = {0}, domains = {0}, pinned = {0};
    engine_options eo;
    serve_options so;
    char uploads[PATH_MAX];
    err_detail detail = {0};
    int code = OPTIONS_EXIT_USAGE;
    if (!command_engine_options(&eo, o)) {
        return code;
    }
    serve_options_init(&so);
    if (!is_tool_scanner(o->tool_call_parser)) {
        fprintf(stderr, "parley: --tool-call-parser %s is unknown; it may be auto, none, %s\n",
                o->tool_call_parser, tool_form_names());
        return code;
    }
    if (!is_prefix(o->api_prefix)) {
        fprintf(stderr, "parley: --api-prefix is \"%s\"; it takes a path such as /parley\n", o->api_prefix);
        return code;
    }
    so.path_prefix = o->api_prefix;
    so.tool_scanner = o->tool_call_parser;
    so.reasoning_field = o->reasoning_field;
    err_code err = read_keys(&ring.keys, o, &detail);
    err = err == ERR_OK ? read_template_kwargs(&kwargs, o, &detail) : err;
    err = err == ERR_OK ? open_tools(&so, &tools, &spawner, o, &detail) : err;
    if (err != ERR_OK) {
        code = command_fail(err, &detail);
        goto out;
    }
    if (!add_option(&listening, o->host) || !add_option(&hosts, o->allowed_hosts) ||
        !add_option(&origins, o->allowed_origins) || !add_option(&domains, o->media_domains) ||
        !add_option(&pinned, o->pin)) {
        fprintf(stderr,
                "parley: --host, --allowed-hosts, --allowed-origins, --media-domains and --pin take at most "
                "%d names\n",
                LIST_MAX);
        goto out;
    }
    if (!tidy_origins(&origins)) {
        goto out;
    }
    if (o->admin_key && strlen(o->admin_key) < KEY_MIN_CHARS) {
        fprintf(stderr, "parley: --admin-key is shorter than %d characters; use a longer one\n",
                KEY_MIN_CHARS);
        goto out;
    }
    if (o->check) {
        code = o->model ? command_check(&eo) : 0;
        goto out;
    }
    open_hub(&so, o);
    so.admin_key = o->admin_key;
    so.hosts = listening.words;
    so.n_hosts = listening.n;
    so.allows_no_key = o->insecure_no_key;
    so.port = (int)o->port;
    so.engine = &eo;
    so.n_queue =
        eo.n_queue > so.n_queue ? eo.n_queue : so.n_queue; /* bodies wait before the engine's queue */
    so.api_keys = ring.keys.words;
    so.n_api_keys = ring.keys.n;
    so.read_keys = read_keys_again;
    so.read_keys_ctx = &ring;
    so.allowed_hosts = hosts.words;
    so.n_allowed_hosts = hosts.n;
    so.allowed_origins = origins.words;
    so.n_allowed_origins = origins.n;
    so.media_domains = domains.words;
    so.n_media_domains = domains.n;
    so.pinned = pinned.words;
    so.n_pinned = pinned.n;
    so.upload_dir = o->upload_dir ? o->upload_dir : upload_folder(uploads);
    so.template_kwargs = kwargs ? json_root(kwargs) : NULL;
    so.upstreams = upstreams_of(o);
    so.has_no_model = o->upstream && !o->model && !o->models_dir;
    take_plain_options(&so, o);
    log_idle_options(o);
    serve_sandbox_begin(&box, o, so.upload_dir, tools, so.hub ? hub_jobs_place(so.hub)->cache : NULL);
    so.on_listening = on_listening;
    so.on_listening_ctx = &box;
    code = serve_run(&so);
out:
    hub_jobs_destroy(so.hub);
    close_tools(tools, spawner);
    json_free(kwargs);
    free(ring.keys.text);
    free(listening.text);
    free(hosts.text);
    free(origins.text);
    free(domains.text);
    free(pinned.text);
    return code;
}
