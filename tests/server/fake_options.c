/* fake_options: the options of the server with the double of the engine, from words as on a command line. */
#include "tests/server/fake_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"

/* Options about other servers; false for another one. */
static bool read_upstream(serve_options *opt, const char *name, char *value)
{
    if (strcmp(name, "--upstream") == 0) {
        opt->upstreams.servers = value;
    } else if (strcmp(name, "--upstream-key") == 0) {
        opt->upstreams.keys = value;
    } else if (strcmp(name, "--upstream-model") == 0) {
        opt->upstreams.models = value;
    } else if (strcmp(name, "--route") == 0) {
        for (char *c = value; (c = strchr(c, '+'));) { /* words hold no spaces */
            *c = ' ';
        }
        opt->upstreams.rules = value;
    } else if (strcmp(name, "--local-only") == 0) {
        opt->upstreams.local_only = strcmp(value, "on") == 0;
    } else if (strcmp(name, "--upstream-video") == 0) {
        opt->upstreams.videos = value;
    } else if (strcmp(name, "--upstream-pixels") == 0) {
        opt->upstreams.pixels = value;
    } else if (strcmp(name, "--upstream-ca") == 0) {
        opt->upstreams.ca_file = value;
    } else if (strcmp(name, "--upstream-timeout") == 0) {
        opt->upstreams.silence_timeout_s = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--no-model") == 0) {
        opt->has_no_model = strcmp(value, "on") == 0;
    } else {
        return false;
    }
    return true;
}

static err_code inspect(bytes *out, const char *path, const char *mmproj, bool as_json, err_detail *detail)
{
    (void)path, (void)mmproj, (void)as_json, (void)detail;
    for (const char *until = getenv("FAKE_STUCK_UNTIL"); until && access(until, F_OK) != 0;) {
        usleep(5000);
    }
    bytes_append_str(out, "a table");
    return ERR_OK;
}

/* Models of a hub at which nobody listens, with this cache. */
static hub_jobs *open_hub(const char *cache)
{
    hub_jobs *jobs = NULL;
    err_detail detail;
    unsetenv("HF_TOKEN");
    if (setenv("HF_HUB_CACHE", cache, 1) != 0 || setenv("HF_ENDPOINT", "http://127.0.0.1:1", 1) != 0 ||
        hub_jobs_create(&jobs, &(hub_jobs_hooks){.inspect = inspect}, &detail) != ERR_OK) {
        fprintf(stderr, "fake_main: no hub\n");
    }
    return jobs;
}

/* MCP servers: of a file, or built-in ones. */
static bool read_tools(fake_options *f, const char *file, const char *tools)
{
    err_detail detail;
    err_code err = mcp_config_read(&f->tools, file, tools, &detail);
    err = err == ERR_OK && mcp_config_spawns(f->tools) ? mcp_spawner_create(&f->spawner, f->tools, &detail)
                                                       : err;
    if (err != ERR_OK) {
        fprintf(stderr, "fake_main: %s\n", detail.text);
        return false;
    }
    f->serve.mcp = f->tools;
    f->serve.mcp_spawner = f->spawner;
    f->serve.tool_rounds = 3;
    return true;
}

/* Options about several models; false for another one. */
static bool read_models(fake_options *f, const char *name, const char *value)
{
    serve_options *opt = &f->serve;
    if (strcmp(name, "--models-dir") == 0) {
        opt->models_dir = value;
    } else if (strcmp(name, "--model-switch") == 0) {
        opt->switches_model = strcmp(value, "on") == 0;
    } else if (strcmp(name, "--models-max") == 0) {
        opt->models_max = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--pin") == 0) {
        f->pinned[opt->n_pinned++] = value;
        opt->pinned = f->pinned;
    } else if (strcmp(name, "--mem-limit") == 0) {
        f->engine.mem_limit_mib = (int64_t)strtoll(value, NULL, 10);
    } else if (strcmp(name, "--idle-unload") == 0) {
        opt->idle_unload_s = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--hub") == 0) {
        opt->hub = open_hub(value);
    } else {
        return false;
    }
    return true;
}

/* Options about times and rates; false for another one. */
static bool read_time(serve_options *opt, const char *name, const char *value)
{
    if (strcmp(name, "--queue-timeout") == 0) {
        opt->queue_timeout_s = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--request-timeout") == 0) {
        opt->request_timeout_s = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--header-timeout") == 0) {
        opt->header_timeout_s = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--body-timeout") == 0) {
        opt->body_timeout_s = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--step-timeout") == 0) {
        opt->step_timeout_s = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--min-body-rate") == 0) {
        opt->min_body_rate = (size_t)strtoull(value, NULL, 10);
    } else if (strcmp(name, "--send-timeout") == 0) {
        opt->send_timeout_s = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--send-rate") == 0) {
        opt->send_rate = (size_t)strtoull(value, NULL, 10);
    } else if (strcmp(name, "--ws-ping") == 0) {
        opt->ws_ping_s = opt->ws_pong_s = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--keepalive") == 0) {
        opt->keepalive_s = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--drain") == 0) {
        opt->drain_timeout_s = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--max-ws-queue") == 0) {
        opt->max_unread = (size_t)strtoull(value, NULL, 10);
    } else {
        return false;
    }
    return true;
}

bool fake_options_read(fake_options *f, int argc, char **argv)
{
    serve_options *opt = &f->serve;
    engine_options *engine_opt = &f->engine;
    size_t n_listening = 0;
    *f = (fake_options){0};
    serve_options_init(opt);
    opt->port = 0;
    opt->engine = engine_opt;
    opt->api_keys = f->keys;
    opt->allowed_hosts = f->hosts;
    opt->allowed_origins = f->origins;
    opt->media_domains = f->domains;
    for (int i = 0; i + 1 < argc; i += 2) {
        const char *name = argv[i];
        char *value = argv[i + 1];
        if (strcmp(name, "--port") == 0) {
            opt->port = (int)strtol(value, NULL, 10);
        } else if (strcmp(name, "--host") == 0) {
            f->listening[n_listening++] = value;
            opt->hosts = f->listening;
            opt->n_hosts = n_listening;
        } else if (strcmp(name, "--key") == 0) {
            f->keys[opt->n_api_keys++] = value;
        } else if (strcmp(name, "--allow-origin") == 0) {
            f->origins[opt->n_allowed_origins++] = value;
        } else if (strcmp(name, "--allow-host") == 0) {
            f->hosts[opt->n_allowed_hosts++] = value;
        } else if (strcmp(name, "--admin-key") == 0) {
            opt->admin_key = value;
        } else if (strcmp(name, "--ui-dir") == 0) {
            opt->ui_dir = value;
        } else if (strcmp(name, "--max-body") == 0) {
            opt->max_body = (size_t)strtoull(value, NULL, 10);
        } else if (strcmp(name, "--max-message") == 0) {
            opt->max_ws_message = (size_t)strtoull(value, NULL, 10);
        } else if (strcmp(name, "--event-log") == 0) {
            opt->event_log_bytes = (size_t)strtoull(value, NULL, 10);
        } else if (strcmp(name, "--upload-dir") == 0) {
            opt->upload_dir = value;
        } else if (strcmp(name, "--needs-uploads") == 0) {
            opt->needs_uploads = strcmp(value, "on") == 0;
        } else if (strcmp(name, "--access-log") == 0) {
            opt->access_log = strcmp(value, "on") == 0;
        } else if (strcmp(name, "--media-domain") == 0) {
            f->domains[opt->n_media_domains++] = value;
        } else if (strcmp(name, "--media-path") == 0) {
            opt->media_path = value;
        } else if (strcmp(name, "--max-video") == 0) {
            engine_opt->videos.max_bytes = (int64_t)strtoll(value, NULL, 10);
        } else if (strcmp(name, "--max-upload") == 0) {
            opt->max_upload = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--upload-quota") == 0) {
            opt->upload_quota = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--max-images") == 0) {
            engine_opt->max_images = (int32_t)strtol(value, NULL, 10);
        } else if (strcmp(name, "--max-header") == 0) {
            opt->max_header = (size_t)strtoull(value, NULL, 10);
        } else if (strcmp(name, "--max-conns") == 0) {
            opt->max_connections = (int)strtol(value, NULL, 10);
        } else if (strcmp(name, "--max-conns-per-ip") == 0) {
            opt->max_connections_per_address = (int)strtol(value, NULL, 10);
        } else if (strcmp(name, "--history") == 0) {
            opt->history_dir = value;
        } else if (strcmp(name, "--history-quota") == 0) {
            opt->history_quota = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--on-disconnect") == 0) {
            opt->finish_on_disconnect = strcmp(value, "finish") == 0;
        } else if (strcmp(name, "--tool-call-parser") == 0) {
            opt->tool_scanner = value;
        } else if (strcmp(name, "--reasoning-parser") == 0) {
            engine_opt->reasoning_form = value;
        } else if (strcmp(name, "--reasoning-field") == 0) {
            opt->reasoning_field = value;
        } else if (strcmp(name, "--strict-model") == 0) {
            opt->strict_model = strcmp(value, "on") == 0;
        } else if (strcmp(name, "--model") == 0) {
            engine_opt->model_dir = value;
        } else if (strcmp(name, "--alias") == 0) {
            opt->alias = value;
        } else if (strcmp(name, "--tools") == 0 || strcmp(name, "--mcp-config") == 0) {
            if (!read_tools(f, name[2] == 'm' ? value : NULL, name[2] == 't' ? value : NULL)) {
                return false;
            }
        } else if (strcmp(name, "--tool-rounds") == 0) {
            opt->tool_rounds = (int)strtol(value, NULL, 10);
        } else if (strcmp(name, "--warm-prompts") == 0) {
            opt->warm_prompts = value;
        } else if (strcmp(name, "--chat-template-kwargs") == 0) {
            if (json_parse(&f->kwargs, value, strlen(value), LIMIT_JSON_DEPTH, NULL) != ERR_OK) {
                return false;
            }
            opt->template_kwargs = json_root(f->kwargs);
        } else if (strcmp(name, "--api-prefix") == 0) {
            opt->path_prefix = value;
        } else if (strcmp(name, "--insecure-no-key") == 0) {
            opt->allows_no_key = strcmp(value, "on") == 0;
        } else if (strcmp(name, "--metrics") == 0) {
            opt->no_metrics = strcmp(value, "off") == 0;
        } else if (strcmp(name, "--slots") == 0) {
            opt->no_slots = strcmp(value, "off") == 0;
        } else if (strcmp(name, "--ui") == 0) {
            opt->no_ui = strcmp(value, "off") == 0;
        } else if (read_upstream(opt, name, value) || read_time(opt, name, value) ||
                   read_models(f, name, value)) {
            continue;
        } else if (strcmp(name, "--queue") == 0) {
            opt->n_queue = engine_opt->n_queue = (int)strtol(value, NULL, 10);
        } else {
            fprintf(stderr, "fake_main: unknown option %s\n", name);
            return false;
        }
    }
    return true;
}

void fake_options_end(fake_options *f)
{
    hub_jobs_destroy(f->serve.hub);
    f->serve.hub = NULL;
    mcp_spawner_destroy(f->spawner);
    f->spawner = NULL;
    mcp_config_destroy(f->tools);
    f->tools = NULL;
    json_free(f->kwargs);
    f->kwargs = NULL;
}
