/* serve_models: the shelf of models that stay in memory: who is on it in which order, who leaves for another one, what memory
 * that one gets, and who leaves by itself; recorded. Engines are names, and nothing is loaded. */
#include "tests/recorded.h"
#include "tests/server/service/made_models.h"

enum { MIB = 1 << 20 };

/* ---- what is asked of others ---- */

static bool starts;
static const err_code *opened; /* what comes of opening, one a call */
static size_t limit;

WRAP(void, serve_status_changed, (serve * s), (void)s; made_say("  the status changed\n");)
WRAP(bool, serve_start_loader, (serve * s), made_say("  begins a thread\n"); s->loader_started = starts;
     return starts;)
WRAP(err_code, engine_open, (engine * *out, const engine_options *o, err_detail *d),
     const err_code err = *opened++;
     made_say("  opens %s in %d MiB: %s\n", o->model_dir, (int)o->mem_limit_mib, err_name(err));
     *out = err ? NULL : made_engine(1); return err ? err_set(d, err, "no good") : ERR_OK;)
WRAP(ledger_status, ledger_get_status, (ledger * l), (void)l; return ((ledger_status){.limit = limit});)
WRAP(void, ledger_set_limit, (ledger * l, size_t n), (void)l; limit = n;
     made_say("  requests may have %zu\n", n);)

/* ---- the state ---- */

static void write_all(bytes *out, const resident *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bytes_printf(out, "%s %s %.0f %zu, ", made_who(all[i].engine), all[i].ref.path, all[i].used_ms,
                     all[i].n_bytes);
    }
}

static void tell(const serve *s)
{
    bytes text = bytes_empty(2000);
    write_all(&text, s->shelf, s->n_shelf);
    made_field("shelf", "%s", bytes_str(&text));
    bytes_clear(&text);
    write_all(&text, s->load.lent, s->load.n_lent);
    made_field("lent", "%s", bytes_str(&text));
    made_field("job", "must %zu, closed %zu, kept %zu, all %zu, only closes %d", s->load.n_must,
               s->load.n_closed, s->load.kept_bytes, s->load.memory_bytes, s->load.only_closes);
    made_field("loader", "%d", s->loader_started);
    bytes_deinit(&text);
}

/* ash answers. */
static serve *begin(const char *what)
{
    serve *s = made_serve();
    made_models();
    made_now_ms = 5000.0;
    made_options.models_max = 3;
    starts = true;
    opened = NULL;
    s->engine = made_engine(0);
    s->info = &made_infos[0];
    s->phase = SERVE_READY;
    s->current = made_ref(0);
    made_is_silent = true;
    tell(s);
    made_is_silent = false;
    if (what) {
        made_say("\n# %s\n", what);
    }
    return s;
}

static void shelve(serve *s, size_t i, double used_ms)
{
    const model_ref ref = made_ref(i);
    serve_shelve(s, made_engine(i), &ref, used_ms);
}

static void fill(serve *s)
{
    shelve(s, 1, 1000.0);
    shelve(s, 2, 2000.0);
    shelve(s, 3, 3000.0);
    made_is_silent = true;
    tell(s);
    made_is_silent = false;
}

static void pin(const char *const *names, size_t n)
{
    made_options.pinned = names;
    made_options.n_pinned = n;
}

static const char *const PINNED[] = {"birch", "elm", "ash", "cedar"};

/* ---- the shelf ---- */

static void test_shelf(void)
{
    static const double USED[] = {3000.0, 1000.0, 2000.0, 2000.0};
    serve *s = begin("those that were used longest ago first, of equals the later one last");
    for (size_t i = 0; i < ARRAY_LEN(USED); i++) {
        shelve(s, i, USED[i]);
        tell(s);
    }
    for (size_t i = 0; i < MADE_MODELS; i++) {
        const resident *r = serve_find_resident(s, made_paths[i]);
        made_say("%s: %s\n", made_paths[i], r ? made_who(r->engine) : "none");
    }
    static const char *const TAKEN[] = {"/m/cedar", "/m/away", "cedar", "/m/birch",
                                        "/m/ash",   "/m/elm",  "/m/elm"};
    for (size_t i = 0; i < ARRAY_LEN(TAKEN); i++) {
        const engine *e = serve_take_resident(s, TAKEN[i]);
        made_say("takes %s: %s\n", TAKEN[i], made_who(e));
        tell(s);
    }
    made_end(s);

    s = begin(NULL); /* the last one of a full shelf: what stands behind it stays */
    s->memory_bytes = 777;
    for (size_t i = 0; i < LIMIT_MODELS; i++) {
        shelve(s, i + 1 < LIMIT_MODELS ? 1 : 3, (double)i);
    }
    CHECK(serve_take_resident(s, "/m/elm") == made_engine(3));
    CHECK(s->n_shelf == LIMIT_MODELS - 1 && s->memory_bytes == 777);
    made_end(s);

    for (size_t n_closed = 0; n_closed <= 2; n_closed++) {
        s = begin("all are closed at the end");
        fill(s);
        s->load.lent[0] = s->shelf[0];
        s->load.lent[1] = s->shelf[1];
        s->load.n_lent = 2;
        s->load.n_closed = n_closed;
        s->shelf[0] = s->shelf[2];
        s->n_shelf = 1;
        serve_close_residents(s);
        tell(s);
        made_end(s);
    }
}

static void test_pins(void)
{
    made_say("\n# pinned, and whether there is room\n");
    for (size_t n = 0; n <= ARRAY_LEN(PINNED); n++) {
        serve *s = begin(NULL);
        fill(s);
        s->shelf[s->n_shelf].ref = made_ref(1); /* one that has left */
        pin(PINNED, n);
        made_say("%zu:", n);
        for (size_t i = 0; i < MADE_MODELS; i++) {
            const model_ref ref = made_ref(i);
            made_say(" %s %d", ref.name, serve_is_pinned(s, &ref));
        }
        for (int with = 0; with < 2; with++) {
            s->engine = with ? s->engine : NULL;
            for (int max = 1; max <= 5; max++) {
                made_options.models_max = max;
                made_say("%s%d", max > 1 ? "" : ", ", serve_has_model_room(s));
            }
            s->engine = made_engine(0);
        }
        made_say("\n");
        made_end(s);
    }
}

/* Who may have to go, and who comes back. */
static void test_lend(void)
{
    for (size_t n_pinned = 0; n_pinned <= 2; n_pinned++) {
        for (int max = 1; max <= 5; max++) {
            serve *s = begin("lent");
            fill(s);
            pin(PINNED, n_pinned);
            made_options.models_max = max;
            s->memory_bytes = 777;
            made_say("%zu pinned, at most %d\n", n_pinned, max);
            serve_lend_residents(s);
            tell(s);
            s->load.n_closed = max < 3 ? (size_t)max - 1 : 0;
            shelve(s, 0, 2500.0);
            serve_take_back(s);
            tell(s);
            made_end(s);
        }
    }
}

/* ---- opening one beside others ---- */

static void test_open(void)
{
    enum { WANTED_BITS = 4 };
    static const struct {
        size_t each, kept, memory, wanted, n_must;
        int bits;
        err_code codes[5];
    } CASES[] = {
        {0, 0, 0, 99, 0, 0, {ERR_OK}}, /* what is taken by none leaves all */
        {0, 0, 0, 99, 0, 0, {ERR_NOMEM, ERR_NOMEM, ERR_NOMEM, ERR_NOMEM}},
        {0, 0, 0, 99, 1, 0, {ERR_IO}},
        {0, 0, 0, 99, 2, 0, {ERR_NOMEM, ERR_OK}},
        {0, 0, 0, 99, 3, 0, {ERR_NOMEM}},
        {0, 0, 0, 99, 4, 0, {ERR_OK}},
        {MIB, 0, 4 * MIB, MIB, 0, 0, {ERR_OK}},
        {MIB, 0, 4 * MIB, MIB + 1, 0, 0, {ERR_OK}}, /* two are left */
        {MIB, 0, 4 * MIB, MIB + 1, 0, WANTED_BITS, {ERR_OK}},
        {MIB, 0, 4 * MIB - 1, 0, 0, 0, {ERR_OK}},
        {MIB, 0, 3 * MIB, 0, 0, 0, {ERR_OK}},
        {MIB, 0, 3 * MIB - 1, 0, 0, 0, {ERR_OK}},
        {MIB, 0, 2 * MIB, 0, 0, WANTED_BITS, {ERR_NOMEM, ERR_OK}},
        {MIB, 0, 0, 0, 0, 0, {ERR_OK}},
        {MIB, 2 * MIB, 7 * MIB, 5, 0, 0, {ERR_NOMEM, ERR_NOMEM, ERR_CORRUPT}},
        {MIB, 2 * MIB, 7 * MIB, 5, 1, 0, {ERR_NOMEM, ERR_NOMEM, ERR_NOMEM}},
        {MIB, 2 * MIB, 2 * MIB, 5, 0, 0, {ERR_OK}},
        {0, 1, 2 * MIB + 1, 2 * MIB, 3, 0, {ERR_OK}},
        {0, 1, 2 * MIB + 1, 2 * MIB + 1, 3, 0, {ERR_OK}},
        {0, 1, 2 * MIB, 5, 3, 0, {ERR_OK}},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin("opened beside others");
        fill(s);
        load_job job = {
            .wanted = {.model_dir = "/m/wanted", .mem_limit_mib = 77, .layer_bits = CASES[i].bits},
            .n_lent = 3,
            .n_must = CASES[i].n_must,
            .memory_bytes = CASES[i].memory,
            .kept_bytes = CASES[i].kept,
            .wanted_bytes = CASES[i].wanted};
        for (size_t k = 0; k < 3; k++) {
            job.lent[k] = s->shelf[k];
            job.lent[k].n_bytes = CASES[i].each;
        }
        job.lent[3].n_bytes = 5 * MIB; /* of a job before */
        engine *e = NULL;
        err_detail d = {0};
        opened = CASES[i].codes;
        const err_code err = serve_open_beside(&job, &e, &d);
        made_say("= %s, %s, %zu closed, %s\n", err_name(err), made_who(e), job.n_closed, d.text);
        made_end(s);
    }
    serve *s = begin("only closed");
    fill(s);
    memcpy(s->load.lent, s->shelf, sizeof s->shelf);
    s->load.n_lent = 3;
    s->load.n_closed = 1;
    serve_close_lent(&s->load);
    tell(s);
    made_end(s);
}

/* ---- leaving ---- */

/* What has left gives its memory to requests, up to what the model was loaded with. */
static void test_memory(void)
{
    static const struct {
        size_t limit, request;
        size_t n_closed;
    } CASES[] = {{5, 0, 2},      {5, 1, 2},      {5, 205311, 1}, {5, 200211, 1}, {5, 200212, 1},
                 {5, 200213, 1}, {5, 900000, 0}, {5, 900000, 2}, {1000, 10, 1}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin("memory of those that have left");
        fill(s);
        memcpy(s->load.lent, s->shelf, sizeof s->shelf);
        s->load.n_lent = 2;
        s->load.n_closed = CASES[i].n_closed;
        limit = LIMIT_PROCESS_MEMORY + CASES[i].limit;
        made_infos[0].request_bytes = 2 * LIMIT_PROCESS_MEMORY + CASES[i].request;
        tell(s);
        serve_on_unloaded(s);
        tell(s);
        made_end(s);
    }
    for (int i = 0; i < 4; i++) {
        serve *s = begin("nothing to give");
        limit = 7;
        s->info = i ? s->info : NULL;
        made_infos[0].request_bytes = LIMIT_PROCESS_MEMORY + (size_t)i - 1;
        serve_on_unloaded(s);
        tell(s);
        made_end(s);
    }
}

/* Who was idle for too long leaves, unless it is pinned. */
static void test_idle(void)
{
    static const struct {
        int after_s;
        bool is_loading;
        switch_state switching;
        double now;
        size_t n_pinned;
        bool starts;
    } CASES[] = {
        {0, false, SWITCH_NONE, 99999, 0, true},    {-1, false, SWITCH_NONE, 99999, 0, true},
        {2, true, SWITCH_NONE, 99999, 0, true},     {2, false, SWITCH_FINISHING, 99999, 0, true},
        {2, false, SWITCH_LOADING, 99999, 0, true}, {2, false, SWITCH_NONE, 3000, 0, true},
        {2, false, SWITCH_NONE, 3000.5, 0, true},   {2, false, SWITCH_NONE, 4000.5, 0, true},
        {2, false, SWITCH_NONE, 4000.5, 1, true},   {2, false, SWITCH_NONE, 99999, 0, true},
        {2, false, SWITCH_NONE, 99999, 2, true},    {2, false, SWITCH_NONE, 99999, 4, true},
        {2, false, SWITCH_NONE, 99999, 1, false},   {1, false, SWITCH_NONE, 2001, 0, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin("idle");
        fill(s);
        s->load.kept_bytes = 5; /* of the job before */
        s->load.n_closed = 1;
        made_options.idle_unload_s = CASES[i].after_s;
        s->loader_started = CASES[i].is_loading;
        s->switching = CASES[i].switching;
        pin(PINNED, CASES[i].n_pinned);
        starts = CASES[i].starts;
        serve_tick_residents(s, CASES[i].now);
        tell(s);
        made_end(s);
    }
}

static void test_unload(void)
{
    for (int with = 0; with < 4; with++) {
        for (size_t i = 0; i < MADE_MODELS; i++) {
            serve *s = begin("unloaded");
            fill(s);
            serve_take_resident(s, "/m/cedar");
            s->load.n_closed = s->load.n_lent = 2; /* of the job before */
            s->loader_started = with == 1;
            starts = with != 2;
            s->engine = with == 3 ? NULL : s->engine;
            tell(s);
            model_ref ref = made_ref(i);
            api_error e = {0};
            made_say("> %s\n", ref.name);
            made_say("= %d", serve_unload(s, &ref, &e));
            made_say(", %d %s %s: %s\n", e.status, e.code, e.param, e.message);
            tell(s);
            made_end(s);
        }
    }
}

static void test_write(void)
{
    serve *s = begin("what the status says");
    pin(PINNED, 1);
    for (size_t i = 0; i <= 3; i++) {
        bytes out = bytes_empty(2000);
        made_now_ms = 5000.0 + 999.0 * (double)i;
        if (i) {
            shelve(s, i, 1000.0 * (double)i);
        }
        serve_write_residents(s, &out);
        made_say("[%s]\n", bytes_str(&out));
        bytes_deinit(&out);
    }
    made_end(s);
}

int main(void)
{
    made_said = bytes_empty(1 << 24);
    test_shelf();
    test_pins();
    test_lend();
    test_open();
    test_memory();
    test_idle();
    test_unload();
    test_write();
    recorded_check("server/service/recorded/residents.txt", bytes_str(&made_said));
    bytes_deinit(&made_said);
    CHECK_DONE();
}
