/* made_models: models that are only names, for tests of who loads, keeps and lists them. What is asked of the engine, the
 * list and the clock is answered here, and all that is said and done goes to one text (made_said), which a program
 * compares with a file.
 *
 *     made_models();                          // ash and birch are in the list, cedar is damaged
 *     engine *e = made_engine(0);             // the one of ash
 *     made_say("> begin\n");
 *     made_field("engine", "%p", (void *)e);   // said where it is another one than before
 *
 * To be wrapped by the linker: clock_ms, log_write, engine_get_info, engine_close, catalog_count, catalog_at, catalog_find,
 * catalog_refresh.
 */
#ifndef PARLEY_TESTS_SERVER_SERVICE_MADE_MODELS_H
#define PARLEY_TESTS_SERVER_SERVICE_MADE_MODELS_H

#include <stdarg.h>

#include "base/log.h"
#include "tests/server/service/made_serve.h"
#include "tests/wrap.h"

enum { MADE_MODELS = 4, MADE_FIELDS = 40 };

static bytes made_said;
static double made_now_ms;
static char made_some[MADE_MODELS];
static bool made_is_silent;

static inline void made_say_list(const char *format, va_list args)
{
    char text[8192];
    vsnprintf(text, sizeof text, format, args);
    bytes_append_str(&made_said, text);
}

/* A line that a call writes. */
PRINTF_LIKE(1, 2) static inline void made_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!made_is_silent) {
        made_say_list(format, args);
    }
    va_end(args);
}

/* ---- a state, of which what has changed is said ---- */

static struct {
    const char *name; /* a literal */
    char text[2048];
} made_fields[MADE_FIELDS];

PRINTF_LIKE(2, 3) static inline void made_field(const char *name, const char *format, ...)
{
    char text[sizeof made_fields->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t i = 0;
    while (made_fields[i].name && strcmp(made_fields[i].name, name) != 0) {
        i++;
    }
    CHECK(i < MADE_FIELDS - 1);
    if (!made_fields[i].name || strcmp(made_fields[i].text, text) != 0) {
        made_fields[i].name = name;
        memcpy(made_fields[i].text, text, sizeof text);
        made_say("    %s: %s\n", name, text);
    }
}

/* ---- models ---- */

static const char *const MADE_NAMES[MADE_MODELS] = {"ash", "birch", "cedar", "elm"};
/* What the engine calls them. */
static const char *const MADE_FOLDERS[MADE_MODELS] = {"ash-1", "birch-1", "cedar-1", "elm-1"};

static engine_info made_infos[MADE_MODELS];
static catalog_model made_list[MADE_MODELS];
static char made_paths[MADE_MODELS][32];
static size_t made_listed; /* so many are in the list now; above MADE_MODELS the same ones again */
static size_t made_found;  /* so many when it is read again */

static inline engine *made_engine(size_t i)
{
    return (engine *)(void *)&made_some[i];
}

static inline const char *made_who(const engine *e)
{
    return e ? MADE_NAMES[(const char *)(const void *)e - made_some] : "none";
}

/* elm is in no list. */
static inline void made_models(void)
{
    made_listed = made_found = MADE_MODELS - 1;
    for (size_t i = 0; i < MADE_MODELS; i++) {
        const int n = 100 * (int)(i + 1);
        snprintf(made_paths[i], sizeof made_paths[i], "/m/%s", MADE_NAMES[i]);
        made_infos[i] = (engine_info){.model_name = MADE_FOLDERS[i],
                                      .model_dir = made_paths[i],
                                      .family = "tree",
                                      .compute = "fast",
                                      .n_ctx = n + 1,
                                      .n_ctx_train = n + 2,
                                      .n_vocab = n + 3,
                                      .n_embd = n + 4,
                                      .n_params = (uint64_t)n + 5,
                                      .weight_bytes = (uint64_t)n + 6,
                                      .state_bytes = (uint64_t)n * 1000};
        made_list[i] = (catalog_model){
            .path = made_paths[i], .family = "shrub", .context = n + 7, .n_bytes = (uint64_t)n + 8};
        snprintf(made_list[i].name, sizeof made_list[i].name, "%s", MADE_NAMES[i]);
    }
    made_list[2].error = ERR_CORRUPT;
    snprintf(made_list[2].reason, sizeof made_list[2].reason, "it is \"damaged\"");
}

static inline model_ref made_ref(size_t i)
{
    model_ref ref;
    memset(&ref, 0, sizeof ref);
    snprintf(ref.name, sizeof ref.name, "%s", MADE_NAMES[i]);
    snprintf(ref.path, sizeof ref.path, "/m/%s", MADE_NAMES[i]);
    return ref;
}

/* ash answers, as oak; elm is on the shelf. */
static inline void made_loaded(serve *s)
{
    s->catalog = (catalog *)(void *)made_some;
    s->engine = made_engine(0);
    s->info = &made_infos[0];
    s->phase = SERVE_READY;
    s->home = made_ref(0);
    snprintf(s->home.name, sizeof s->home.name, "oak");
    s->current = s->home;
    snprintf(s->model_name, sizeof s->model_name, "oak");
    const model_ref elm = made_ref(3);
    serve_shelve(s, made_engine(3), &elm, 1000.0);
}

WRAP(double, clock_ms, (void), return made_now_ms;)
WRAP(const engine_info *, engine_get_info, (const engine *e),
     return &made_infos[(const char *)(const void *)e - made_some];)
WRAP(void, engine_close, (engine * e), made_say("  closes %s\n", made_who(e));)
WRAP(size_t, catalog_count, (const catalog *c), CHECK(c != NULL); return made_listed;)
WRAP(const catalog_model *, catalog_at, (const catalog *c, size_t index), CHECK(c &&index < made_listed);
     return &made_list[index % MADE_MODELS];)
WRAP(void, catalog_refresh, (catalog * c), CHECK(c != NULL); made_say("  reads the list\n");
     made_listed = made_found;)

const catalog_model *__wrap_catalog_find(const catalog *c, const char *name);
const catalog_model *__wrap_catalog_find(const catalog *c, const char *name)
{
    CHECK(c != NULL);
    for (size_t i = 0; i < made_listed; i++) {
        if (strcmp(made_list[i].name, name) == 0) {
            return &made_list[i];
        }
    }
    return NULL;
}

void __wrap_log_write(log_level level, const char *area, const char *format, ...);
void __wrap_log_write(log_level level, const char *area, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!made_is_silent) {
        made_say("  log %d %s: ", level, area);
        made_say_list(format, args);
        made_say("\n");
    }
    va_end(args);
}

#endif
