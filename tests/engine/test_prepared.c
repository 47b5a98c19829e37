/* Each file of tests/engine/prepared/ has requests and what is made of them on prep threads, whole: tokens, places,
 * media, boundaries, parameters, memory; or the error.
 *
 *     ! {"model":"tests/data/tiny","template":"FILE","ctx":1024}        of the engine
 *     > {"messages":[{"role":"user","content":"Hello"}],"params":{"seed":7}}
 *     > {"text":"Hello"} {"ids":[1,2]} {"inputs":["a",[1,2]],"pool":"mean"}
 *     > {"preview":"FILE","is_video":true}
 *
 * "renders" tells the text of a prompt alone, line by line, "cancels" lets a request be cancelled at its first look, then at
 * its second, and so on; what comes of each is told. "fails" tells what is said where its form fails. "runs" lets the engine
 * answer it. "asks" tells what readers of images and videos are asked for. PARLEY_WRITE=1 writes what is said anew; the
 * difference is then to be read.
 */
#include <dirent.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/constrain.h"
#include "engine/engine_private.h"
#include "tests/engine/answers.h"
#include "tests/engine/chats.h"
#include "tests/engine/previews.h"
#include "tests/engine/readers.h"
#include "tests/folder.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/said.h"
#include "text/tokenizer/guard.h"

/* Under TSan, where the plain kernels take long, one file is enough: preparing is of one thread. */
#ifdef __SANITIZE_THREAD__
static const char ONLY[] = "chats.txt";
#else
static const char ONLY[] = "";
#endif

enum { TEXT_BYTES = 1 << 20, MEMORY = 256 << 20, MOST_POLLS = 2000, HEX = 8 };

typedef struct maker {
    engine *e;
    ledger *memory;
    bytes out;
    int32_t n_polls, stops_at; /* 0: never */
    bytes progress;
    size_t peak; /* that was told */
    uint64_t last_id;
} maker;

/* ---- parameters ---- */

static float part_of(const json *of, const char *key)
{
    return (float)json_num(json_get(of, key), (double)NAN);
}

static void make_params(gen_params *p, const json *v, gen_bias *biases)
{
    gen_params_init(p);
    p->temperature = part_of(v, "temperature");
    p->top_p = part_of(v, "top_p");
    p->min_p = part_of(v, "min_p");
    p->top_k = (int32_t)chats_number(v, "top_k", -1);
    p->repetition_penalty = part_of(v, "repetition");
    p->presence_penalty = (float)json_num(json_get(v, "presence"), 0);
    p->frequency_penalty = (float)json_num(json_get(v, "frequency"), 0);
    p->has_seed = json_get(v, "seed") != NULL;
    p->seed = (uint64_t)chats_number(v, "seed", 0);
    p->max_tokens = (int32_t)chats_number(v, "answer", p->max_tokens);
    p->n_choices = (int32_t)chats_number(v, "choices", 0);
    p->n_top_logprobs = (int32_t)chats_number(v, "top", p->n_top_logprobs);
    p->scores_prompt = json_is_true(json_get(v, "scored"));
    p->think_tokens = (int32_t)chats_number(v, "think", p->think_tokens);
    p->spec_prefill = (int32_t)chats_number(v, "sparse", p->spec_prefill);
    p->spec_keep = part_of(v, "keep");
    p->spec_backbone = part_of(v, "backbone");
    p->no_cache = json_is_true(json_get(v, "uncached"));
    p->ignore_eos = true;
    for (const json *one = json_child(json_get(v, "biases")); one; one = json_next(one)) {
        biases[p->n_biases++] = (gen_bias){(int32_t)json_num(one, 0), 1.0f};
    }
    p->biases = p->n_biases ? biases : NULL;
}

static chat_input *make_chat(const json *v, gen_bias *biases, grammar_spec *form)
{
    chat_input *in = chats_make(v);
    const json *schema = json_get(v, "schema");
    in->form_is_calls = json_is_true(json_get(v, "calls"));
    if (chats_text(v, "marker")) {
        *form = (grammar_spec){.kind = SPEC_MARKER, .text = chats_text(v, "marker")};
        in->form = form;
    }
    if (schema) {
        *form = (grammar_spec){.kind = SPEC_SCHEMA, .schema = schema, .path = "response_format"};
        in->form = form;
    }
    make_params(&in->params, json_get(v, "params"), biases);
    return in;
}

/* Time passes in readers alone. */
double __wrap_clock_ms(void);
double __wrap_clock_ms(void)
{
    return 1000 + readers_ms;
}

/* ---- what is told ---- */

static void tell_tokens(maker *m, const int32_t *ids, size_t n)
{
    for (size_t i = 0, same; i < n; i += same) {
        size_t len = 0;
        const char *said = engine_token_bytes(m->e, ids[i], &len, NULL);
        for (same = 1; i + same < n && ids[i + same] == ids[i]; same++) {
        }
        for (size_t k = 0; k < (same > 3 ? 1 : same) && said; k++) {
            for (size_t c = 0; c < len; c++) {
                const unsigned char at = (unsigned char)said[c];
                bytes_printf(&m->out, at < ' ' || at > '~' ? "\\%02x" : "%c", at);
            }
        }
        if (same > 3 || !said) {
            bytes_printf(&m->out, "{%d x %zu}", ids[i], same);
        }
    }
    bytes_append_char(&m->out, '\n');
}

static void tell_hash(bytes *out, const void *data, size_t n)
{
    uint8_t hash[HASH_BYTES];
    char hex[2 * HASH_BYTES + 1];
    hash_sha256(hash, data, n);
    hash_hex(hex, hash, HASH_BYTES);
    bytes_append(out, hex, HEX);
}

static void tell_media(maker *m, const gen_request *r)
{
    bytes *out = &m->out;
    for (size_t i = 0; i < r->n_media; i++) {
        const gen_media *one = &r->media[i];
        const patches *p = &one->patches;
        bytes_printf(out, "< %s %dx%dx%d: rows %d+%d units %d tokens %d slices %d bytes %zu pixels %zu",
                     one->is_video ? "video" : "image", p->t, p->h, p->w, one->first_row, one->n_rows,
                     one->n_units, p->n_tokens, p->slices, p->pixels ? patches_bytes(p) : 0, one->pixels);
        if (one->n_rows && r->n_embed_rows) {
            const int32_t last = r->embed_rows[one->first_row + one->n_rows - 1];
            bytes_printf(out, " at %d-%d", r->embed_rows[one->first_row], last);
        }
        bytes_append_str(out, one->features ? " known " : " key ");
        tell_hash(out, one->key, HASH_BYTES);
        for (int32_t k = 0; p->timestamps && k < p->t; k++) {
            bytes_printf(out, "%s%.2f", k ? " " : ", at ", p->timestamps[k]);
        }
        bytes_append_char(out, '\n');
    }
}

static void tell_params(bytes *out, const gen_params *p)
{
    bytes_printf(out, "< temperature %g top_p %g min_p %g top_k %d penalties %g %g %g seed %d:%llu",
                 p->temperature, p->top_p, p->min_p, p->top_k, p->repetition_penalty, p->presence_penalty,
                 p->frequency_penalty, p->has_seed, (unsigned long long)p->seed);
    bytes_printf(out, " answer %d top %d think %d sparse %d %g %g biases %zu%s%s\n", p->max_tokens,
                 p->n_top_logprobs, p->think_tokens, p->spec_prefill, p->spec_keep, p->spec_backbone,
                 p->n_biases, p->no_cache ? " uncached" : "", p->scores_prompt ? " scored" : "");
}

static void tell_request(maker *m, gen_request *r)
{
    bytes *out = &m->out;
    const gen_request_info info = gen_request_get_info(r);
    CHECK_INT(info.n_prompt_tokens, r->pool ? r->n_all : (int32_t)r->prompt.len);
    CHECK_INT(info.max_tokens, r->max_tokens);
    bytes_printf(out, "< %zu tokens, route %s: ", r->prompt.len, gen_route_name(r->route));
    tell_tokens(m, r->prompt.ids, r->prompt.len);
    for (size_t i = 0; i < r->n_inputs; i++) {
        bytes_printf(out, "< input %zu of %zu: ", i, r->inputs[i].len);
        tell_tokens(m, r->inputs[i].ids, r->inputs[i].len);
    }
    tell_media(m, r);
    bytes_printf(out, "< places ");
    tell_hash(out, r->positions, r->prompt.len * sizeof *r->positions);
    bytes_printf(out, " %+d, boundaries", r->rope_delta);
    for (size_t i = 0; i < r->n_boundaries; i++) {
        bytes_printf(out, " %d%s", r->boundaries[i].len, r->boundaries[i].keeps ? "+" : "");
    }
    bytes_printf(out, "%s, asks %d, scope %llu, answer %d, all %d, pool %d, memory %zu, scratch %zu\n",
                 r->has_whole_blocks ? " whole" : "", r->n_invitation, (unsigned long long)r->scope,
                 r->max_tokens, r->n_all, (int)r->pool, r->memory.bytes, r->scratch_bytes);
    bytes_printf(out, "< images %d videos %d in %g ms%s%s%s%s, closes with ", r->n_images, r->n_videos,
                 r->media_ms, r->starts_in_thinking ? " thinking" : "", r->may_think ? " may think" : "",
                 r->continues ? " continues" : "", r->grammar ? " formed" : "");
    tell_tokens(m, r->think_close.ids, r->think_close.len);
    tell_params(out, &r->params);
    for (gen_request *q = gen_request_next(r); q; q = gen_request_next(q)) {
        bytes_printf(out, "< and one with seed %llu of %d\n", (unsigned long long)q->params.seed,
                     q->of ? q->of->n_others : 0);
    }
}

static void tell_error(maker *m, err_code err, const err_detail *d)
{
    const char *at = strstr(d->text, PARLEY_SOURCE_DIR); /* which is another on each machine */
    const size_t n_before = at ? (size_t)(at - d->text) : 0;
    bytes_printf(&m->out, "< error %d %s [%s] %s: %.*s%s (%lld, %lld)\n", (int)err, err_name(err), d->param,
                 d->name, (int)n_before, d->text, at ? at + strlen(PARLEY_SOURCE_DIR) : d->text,
                 (long long)d->amount, (long long)d->limit);
}

/* How far the form of an answer goes along with a text. */
static void tell_accepted(maker *m, const gen_request *r, const char *said)
{
    grammar_cursor *cursor = NULL;
    err_detail d = {0};
    token_ids ids;
    size_t n = 0;
    token_ids_init(&ids);
    CHECK_OK(constrain_start(m->e, &cursor, r, &d), d);
    CHECK_OK(tokenizer_encode(model_tokenizer(m->e->model), &ids, said, strlen(said), TOKENIZER_SPECIALS, &d),
             d);
    while (n < ids.len && grammar_cursor_accept(cursor, ids.ids[n])) {
        n++;
    }
    (void)grammar_cursor_mask(cursor, grammar_cursor_state(cursor)); /* fails where no token may come */
    const bool is_whole = n == ids.len && grammar_cursor_is_complete(cursor, grammar_cursor_state(cursor));
    const err_code err = constrain_check(cursor, &d);
    bytes_printf(&m->out, "< takes %zu of %zu%s%s%s\n", n, ids.len, is_whole ? ", the whole" : "",
                 err == ERR_OK ? "" : ", ", err == ERR_OK ? "" : d.text);
    token_ids_deinit(&ids);
    grammar_cursor_destroy(cursor);
}

/* What is said of a form that can be followed no further. */
static err_code following; /* what comes of it; ERR_OK: what does */
err_code __real_grammar_cursor_failure(const grammar_cursor *cursor);
err_code __wrap_grammar_cursor_failure(const grammar_cursor *cursor);
err_code __wrap_grammar_cursor_failure(const grammar_cursor *cursor)
{
    return following ? following : __real_grammar_cursor_failure(cursor);
}

static void tell_failures(maker *m, const gen_request *r)
{
    static const err_code codes[] = {ERR_OK, ERR_LIMIT, ERR_UNSUPPORTED, ERR_NOMEM};
    grammar_cursor *cursor = NULL;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        err_detail d = {0};
        CHECK_OK(constrain_start(m->e, &cursor, r, &d), d);
        following = codes[i];
        const err_code err = constrain_check(cursor, &d);
        following = ERR_OK;
        bytes_printf(&m->out, "< %s: %s, %s\n", err_name(codes[i]), err_name(err), d.text);
        grammar_cursor_destroy(cursor);
    }
}

/* ---- a case ---- */

static bool is_cancelled(void *ctx)
{
    maker *m = ctx;
    m->n_polls++;
    return m->stops_at && m->n_polls >= m->stops_at;
}

static void on_progress(void *ctx, gen_phase phase, int32_t done, int32_t total)
{
    maker *m = ctx;
    bytes_printf(&m->progress, " %s %d/%d", gen_phase_name(phase), done, total);
}

static err_code prepare_inputs(maker *m, gen_request **r, const json *v, err_detail *d)
{
    enum { MOST = 8, MOST_TOKENS = 64 };
    static const char *const POOLS[] = {"none", "last", "mean", "yes"};
    static int32_t ids[MOST][MOST_TOKENS];
    gen_input inputs[MOST] = {0};
    size_t n = 0;
    gen_pool pool = 0;
    while (strcmp(POOLS[pool], chats_text(v, "pool")) != 0) {
        pool++;
    }
    for (const json *one = json_child(json_get(v, "inputs")); one; one = json_next(one), n++) {
        inputs[n].text = json_str(one, NULL);
        inputs[n].len = inputs[n].text ? strlen(inputs[n].text) : 0;
        inputs[n].before = inputs[n].text ? chats_text(v, "before") : NULL;
        inputs[n].behind = inputs[n].before ? chats_text(v, "behind") : NULL;
        inputs[n].ids = ids[n];
        for (const json *id = inputs[n].text ? NULL : json_child(one); id; id = json_next(id)) {
            ids[n][inputs[n].n_ids++] = (int32_t)json_num(id, 0);
        }
    }
    return engine_prepare_inputs(m->e, r, inputs, n, pool, (uint64_t)chats_number(v, "scope", 0), d);
}

static err_code prepare(maker *m, gen_request **r, const json *v, err_detail *d)
{
    const prepare_hooks hooks = {on_progress, is_cancelled, m};
    const uint64_t scope = (uint64_t)chats_number(v, "scope", 0);
    gen_bias biases[8];
    gen_params p;
    grammar_spec form;
    *d = (err_detail){0};
    m->n_polls = 0;
    bytes_clear(&m->progress);
    make_params(&p, json_get(v, "params"), biases);
    if (json_get(v, "messages")) {
        chat_input *in = make_chat(v, biases, &form);
        const err_code err = engine_prepare(m->e, r, in, json_get(v, "unhooked") ? NULL : &hooks, d);
        chat_input_destroy(in);
        return err;
    }
    if (json_get(v, "inputs")) {
        return prepare_inputs(m, r, v, d);
    }
    if (json_get(v, "ids")) {
        int32_t ids[1024] = {0};
        size_t n = 0;
        for (const json *id = json_child(json_get(v, "ids")); id; id = json_next(id)) {
            ids[n++] = (int32_t)json_num(id, 0);
        }
        n += (size_t)chats_number(v, "more", 0);
        return engine_prepare_tokens(m->e, r, ids, n, scope, &p, d);
    }
    const char *raw = chats_text(v, "text");
    return engine_prepare_text(m->e, r, raw, strlen(raw), json_is_true(json_get(v, "special")), scope, &p, d);
}

/* At each look once; what comes of it is told where it is something else than before. */
static void cancel_each(maker *m, const json *v)
{
    bytes last = bytes_empty(TEXT_BYTES), is = bytes_empty(TEXT_BYTES);
    for (m->stops_at = 1; m->stops_at < MOST_POLLS; m->stops_at++) {
        gen_request *r = NULL;
        err_detail d = {0};
        const err_code err = prepare(m, &r, v, &d);
        CHECK((r != NULL) == (err == ERR_OK));
        gen_request_free(r);
        CHECK_INT(ledger_get_status(m->memory).used, 0);
        if (err == ERR_OK) {
            break;
        }
        bytes_clear(&is);
        bytes_printf(&is, "%s:%s", d.text, m->progress.len ? bytes_str(&m->progress) : "");
        if (strcmp(bytes_str(&is), bytes_str(&last)) != 0) {
            bytes_printf(&m->out, "< cancelled at %d, %s\n", m->stops_at, bytes_str(&is));
        }
        bytes_clear(&last);
        bytes_append(&last, is.data, is.len);
    }
    bytes_deinit(&is);
    bytes_deinit(&last);
    bytes_printf(&m->out, "< looks %d\n", m->stops_at - 1);
    m->stops_at = 0;
}

/* The engine's own thread. */
static void on_event(void *ctx, gen_event *ev)
{
    maker *m = ctx;
    if (ev->type == GEN_VECTOR) { /* nobody else writes while it runs */
        bytes_printf(&m->out, "< vector of %d:", ev->n_vector);
        for (int32_t i = 0; i < ev->n_vector && i < 4; i++) {
            bytes_printf(&m->out, " %.3g", ev->vector[i]);
        }
        bytes_append_char(&m->out, '\n');
    }
    answers_on_event(NULL, ev);
}

static void run_request(maker *m, gen_request *r)
{
    answer a = {0};
    const uint64_t id = ++m->last_id;
    answers_submit(m->e, r, id);
    answers_collect(&a, id, 1);
    bytes_printf(&m->out, "< ran: prompt %d cached %d answer %d media cached %d images %d videos %d\n",
                 a.timings.prompt_n, a.timings.cache_n, a.n, a.timings.n_media_cached, a.timings.n_images,
                 a.timings.n_videos);
}

/* What is shown of a file; with "cancels" at each look once, too. */
static void preview(maker *m, const json *v)
{
    const int fd = open(chats_path(chats_text(v, "preview")), O_RDONLY | O_CLOEXEC);
    const off_t whole = lseek(fd, 0, SEEK_END);
    const size_t n = (size_t)chats_number(v, "bytes", whole);
    const bool is_video = json_is_true(json_get(v, "is_video")), cancels = json_get(v, "cancels");
    CHECK(fd > 0 && whole > 0);
    for (int32_t stops_at = cancels ? 1 : 0; stops_at < MOST_POLLS; stops_at++) {
        preview_teller t = {.out = &m->out, .stops_at = stops_at};
        preview_hooks hooks = previews_hooks(&t);
        preview_tokens tokens = {-1, -1};
        err_detail d = {0};
        hooks.cancelled = json_get(v, "unhooked") ? NULL : hooks.cancelled;
        const err_code err = engine_preview(m->e, &tokens, fd, n, is_video, &hooks, &d);
        previews_tell(&t, err, &tokens, &d);
        CHECK_INT(ledger_get_status(m->memory).used, 0);
        if (stops_at == 0 || err == ERR_OK) {
            break;
        }
    }
    CHECK_INT(close(fd), 0); /* it stays ours */
}

/* The prompt as text alone. */
static void tell_rendered(maker *m, const json *v)
{
    gen_bias biases[8];
    grammar_spec form;
    chat_input *in = make_chat(v, biases, &form);
    bytes prompt = bytes_empty(TEXT_BYTES);
    err_detail d = {0};
    const err_code err = engine_render(m->e, &prompt, in, &d);
    if (err != ERR_OK) {
        tell_error(m, err, &d);
    }
    for (const char *at = bytes_str(&prompt); *at;) {
        bytes_append_str(&m->out, "< | ");
        for (; *at && *at != '\n'; at++) { /* a guard is told as ^ */
            const bool is_guard = strncmp(at, GUARD_CHAR, GUARD_LEN) == 0;
            bytes_append_char(&m->out, is_guard ? '^' : *at);
            at += is_guard ? GUARD_LEN - 1 : 0;
        }
        bytes_append_char(&m->out, '\n');
        at += *at == '\n';
    }
    bytes_deinit(&prompt);
    chat_input_destroy(in);
}

static void do_case(maker *m, const char *line, size_t len)
{
    json_doc *doc = NULL;
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(json_parse(&doc, line + 2, len - 2, LIMIT_JSON_DEPTH, &d), d);
    const json *v = json_root(doc);
    readers_told = json_get(v, "asks") ? &m->out : NULL;
    ledger_hold held = {.ledger = m->memory}; /* by another request */
    ledger_set_limit(m->memory, (size_t)chats_number(v, "memory", MEMORY));
    if (json_get(v, "preview") || json_get(v, "renders")) {
        (json_get(v, "preview") ? preview : tell_rendered)(m, v);
        json_free(doc);
        return;
    }
    CHECK(ledger_try(&held, (size_t)chats_number(v, "held", 0)));
    m->stops_at = (int32_t)chats_number(v, "stop", 0);
    if (json_get(v, "cancels")) {
        cancel_each(m, v);
    }
    const err_code err = prepare(m, &r, v, &d);
    const ledger_status st = ledger_get_status(m->memory);
    CHECK((r != NULL) == (err == ERR_OK));
    if (err == ERR_OK) {
        CHECK_INT(st.used, r->memory.bytes + held.bytes);
        tell_request(m, r);
    } else {
        CHECK_INT(st.used, held.bytes);
        tell_error(m, err, &d);
    }
    ledger_give_all(&held);
    if (st.peak != m->peak) {
        bytes_printf(&m->out, "< peak %zu\n", st.peak);
        m->peak = st.peak;
    }
    if (m->progress.len) {
        bytes_printf(&m->out, "<%s", bytes_str(&m->progress));
        bytes_printf(&m->out, json_get(v, "unlooked") ? "\n" : ", looks %d\n", m->n_polls);
    }
    for (const json *one = r ? json_child(json_get(v, "accepts")) : NULL; one; one = json_next(one)) {
        tell_accepted(m, r, json_str(one, ""));
    }
    if (r && json_get(v, "fails")) {
        tell_failures(m, r);
    }
    if (r && json_get(v, "runs")) {
        run_request(m, r);
    } else {
        gen_request_free(r);
    }
    CHECK_INT(ledger_get_status(m->memory).used, 0);
    json_free(doc);
}

/* A file of the model with one text in the place of another, "edit": [FILE, WAS, IS]. */
static void copy_edited(const char *from, const char *to, const char *was, const char *is)
{
    bytes file = bytes_empty(TEXT_BYTES);
    err_detail d = {0};
    CHECK_OK(file_read(&file, from, &d), d);
    const char *all = bytes_str(&file), *at = strstr(all, was);
    FILE *copy = fopen(to, "w");
    CHECK(at && copy);
    if (at && copy) {
        CHECK(fprintf(copy, "%.*s%s%s", (int)(at - all), all, is, at + strlen(was)) > 0 && fclose(copy) == 0);
    }
    bytes_deinit(&file);
}

/* A folder of another name, in one that is made, with the files of the model in dir; dir becomes its path. */
static void show_as(char *dir, size_t cap, char *place, const char *as, const json *edit)
{
    const json *was = json_next(json_child(edit));
    char from[4096], to[8192];
    struct dirent **found = NULL;
    folder_make(place);
    snprintf(from, sizeof from, "%s", dir);
    snprintf(dir, cap, "%s/%s", place, as);
    CHECK_INT(mkdir(dir, 0700), 0);
    const int n = scandir(from, &found, NULL, NULL);
    for (int i = 0; i < n; i++) {
        char file[8192];
        snprintf(file, sizeof file, "%s/%s", from, found[i]->d_name);
        snprintf(to, sizeof to, "%s/%s", dir, found[i]->d_name);
        if (was && strcmp(found[i]->d_name, json_str(json_child(edit), "")) == 0) {
            copy_edited(file, to, json_str(was, ""), json_str(json_next(was), ""));
        } else {
            CHECK(found[i]->d_name[0] == '.' || symlink(file, to) == 0);
        }
        free(found[i]);
    }
    free(found);
}

/* What the engine has logged since it was opened, but for what depends on the machine. */
static void tell_log(maker *m)
{
    for (char *line = said_err, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        char *at = strstr(line, PARLEY_SOURCE_DIR);
        if (at) {
            memmove(at, at + strlen(PARLEY_SOURCE_DIR), strlen(at + strlen(PARLEY_SOURCE_DIR)) + 1);
        }
        if (strncmp(line + 3, "eng ", 4) == 0 && !strstr(line, "compute threads") &&
            !strstr(line, "plain C kernels")) {
            bytes_printf(&m->out, "< log %.3s %s\n", line, line + 7);
        }
    }
}

/* What there is when it is open. bounded: its memory is bounded, so that it does not depend on the machine's. */
static void tell_engine(maker *m, bool bounded)
{
    const engine *e = m->e;
    const engine_info *info = engine_get_info(e);
    const gen_params *p = &info->defaults;
    const video_limits *l = &e->media.video_limits;
    bytes *out = &m->out;
    bytes_printf(
        out, "< %s %s: images %d video %d head %d template %d thinking %d tools %d embeds %d:%d ranks %d\n",
        info->family, info->model_name, info->has_vision, info->has_video, info->has_mtp, info->has_template,
        info->has_thinking, info->writes_tools, info->is_embedder, (int)info->pool, info->is_reranker);
    bytes_printf(out,
                 "< context %d of %d, %d answers, chunk %d, drafts %d copied %d, thinks as %s, behind a text "
                 "%d, yes %d no %d\n",
                 info->n_ctx, info->n_ctx_train, info->n_parallel, e->prefill_chunk, e->drafting,
                 e->max_copied, e->prompts.think->name, e->n_behind, e->yes_id, e->no_id);
    bytes_printf(
        out, "< tokens %d wide %d params %llu weights %llu keys in %s, begins with %s ends with %s\n",
        info->n_vocab, info->n_embd, (unsigned long long)info->n_params,
        (unsigned long long)info->weight_bytes, info->cache_type, e->prompts.bos_token, e->prompts.eos_token);
    bytes_printf(out, "< work %g %g %g %g %g %g %g\n", info->step_bytes, info->slot_bytes, info->layer_flops,
                 info->head_flops, info->slot_flops, info->patch_flops, info->patch_pair_flops);
    bytes_printf(out,
                 "< images %d of %zu, patches %dx%dx%d, video %g a second %d-%d (%d) pixels %lld-%lld %d\n",
                 info->max_images, e->media.max_image_pixels, info->patch_size, info->merge_size,
                 info->temporal_patch_size, info->video_fps, info->video_min_frames, info->video_max_frames,
                 info->video_fixed_frames, (long long)info->video_min_pixels,
                 (long long)info->video_max_pixels, info->video_fills_budget);
    bytes_printf(out,
                 "< videos of %zu bytes, frames of %zu, %g s in %g s, memory %zu, %d threads, shown %d\n",
                 l->max_bytes, l->max_pixels, l->max_duration_s, l->max_wall_s, l->max_memory,
                 (int)l->n_threads, e->media.max_video_frames);
    bytes_printf(out, "< blocks %zu windows %zu spares %zu cache %zu images %zu prefixes %d\n",
                 kv_pool_n_blocks(e->pool, KV_ALL), kv_pool_n_blocks(e->pool, KV_WINDOW), e->n_spares,
                 e->cache_bytes, e->vision_cache_bytes, e->cache != NULL);
    tell_params(out, p);
    if (bounded) {
        bytes_printf(out, "< states %llu requests %llu, of them for media and text %zu\n",
                     (unsigned long long)info->state_bytes, (unsigned long long)info->request_bytes,
                     ledger_get_status(m->memory).limit);
    }
}

/* Opens the engine of a line, or tells why not. */
static void open_engine(maker *m, const char *line, size_t len)
{
    static char dir[4096], template[4096];
    json_doc *doc = NULL;
    err_detail d = {0};
    CHECK_OK(json_parse(&doc, line + 2, len - 2, LIMIT_JSON_DEPTH, &d), d);
    const json *v = json_root(doc);
    snprintf(dir, sizeof dir, "%s", chats_path(chats_text(v, "model")));
    char place[FOLDER_NAME];
    const char *as = chats_text(v, "as");
    if (as) {
        show_as(dir, sizeof dir, place, as, json_get(v, "edit"));
    }
    snprintf(template, sizeof template, "%s", chats_path(json_str(json_get(v, "template"), "")));
    engine_options opt = {.model_dir = dir,
                          .template_file = chats_text(v, "template") ? template : NULL,
                          .n_ctx = (int32_t)chats_number(v, "ctx", 1024),
                          .n_parallel = (int32_t)chats_number(v, "parallel", 1),
                          .n_queue = (int32_t)chats_number(v, "queue", 0),
                          .n_threads = 1,
                          .cache_mib = chats_number(v, "cache", 16),
                          .cache_type = chats_text(v, "type"),
                          .mem_limit_mib = chats_number(v, "limit", 0),
                          .vision_cache_mib = chats_number(v, "images", 0),
                          .no_draft = json_is_true(json_get(v, "undrafted")),
                          .prompt_lookup = (int32_t)chats_number(v, "lookup", 0),
                          .reasoning_form = chats_text(v, "reasoning"),
                          .sparse = {.keep = (float)chats_number(v, "keep", 0) / 8,
                                     .backbone = (float)chats_number(v, "backbone", 0) / 8,
                                     .most = (int32_t)chats_number(v, "sparse_most", 0)},
                          .layer_bits = (int)chats_number(v, "bits", 0),
                          .vision_bits = (int)chats_number(v, "vision_bits", 0),
                          .published_history = json_is_true(json_get(v, "published")),
                          .hoist_system = json_is_true(json_get(v, "hoist")),
                          .max_images = (int32_t)chats_number(v, "max_images", 0),
                          .max_image_pixels = chats_number(v, "max_pixels", 0),
                          .videos = {.max_bytes = chats_number(v, "video_bytes", 0),
                                     .max_pixels = chats_number(v, "video_pixels", 0),
                                     .max_frames = (int32_t)chats_number(v, "video_frames", 0),
                                     .max_duration_s = json_num(json_get(v, "video_seconds"), 0),
                                     .max_time_s = json_num(json_get(v, "video_time"), 0),
                                     .max_memory = chats_number(v, "video_memory", 0)},
                          .video_outer_pair = json_is_true(json_get(v, "outer_pair")),
                          .share_cache = json_is_true(json_get(v, "shared")),
                          .prefill_chunk = (int32_t)chats_number(v, "chunk", 0),
                          .default_max_tokens = (int32_t)chats_number(v, "default", 0),
                          .memory = m->memory,
                          .exact = true,
                          .on_event = on_event,
                          .on_event_ctx = m};
    CHECK(engine_parse_cpu("generic", &opt.cpu_mask));
    gen_params_init(&opt.defaults);
    opt.defaults.temperature = part_of(v, "temperature");
    opt.defaults.top_k = (int32_t)chats_number(v, "top_k", -1);
    log_set_level(opt.mem_limit_mib ? LOG_INFO
                                    : LOG_WARN); /* what it tells of its memory, where that is bounded */
    said_begin();
    const err_code err = engine_open(&m->e, &opt, &d);
    said_end();
    log_set_level(LOG_OFF);
    CHECK((m->e == NULL) == (err != ERR_OK));
    tell_log(m);
    if (err == ERR_OK) {
        tell_engine(m, opt.mem_limit_mib != 0);
    } else {
        tell_error(m, err, &d);
    }
    json_free(doc);
}

static void tell_answer(void *ctx, bytes *out, const char *line, size_t len)
{
    maker *m = ctx;
    bytes_clear(&m->out);
    if (*line == '!') {
        engine_close(m->e);
        m->e = NULL;
        open_engine(m, line, len);
    } else if (*line == '>') {
        do_case(m, line, len);
    }
    bytes_append(out, m->out.data, m->out.len);
}

static void run(const char *path)
{
    maker m = {
        .memory = ledger_create(MEMORY), .out = bytes_empty(TEXT_BYTES), .progress = bytes_empty(TEXT_BYTES)};
    CHECK(m.memory != NULL);
    recorded_answers(path, tell_answer, &m);
    engine_close(m.e);
    bytes_deinit(&m.out);
    bytes_deinit(&m.progress);
    ledger_destroy(m.memory);
}

int main(int argc, char **argv)
{
    static const char PLACE[] = PARLEY_SOURCE_DIR "/tests/engine/prepared";
    struct dirent **found = NULL;
    log_set_level(LOG_OFF);
    log_set_format(LOG_JOURNAL);
    answers_begin();
    const int n = scandir(PLACE, &found, NULL, alphasort);
    int n_run = 0;
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", PLACE, found[i]->d_name);
        if (strstr(path, ".txt") && strstr(path, argc > 1 ? argv[1] : ONLY)) {
            run(path);
            n_run++;
        }
        free(found[i]);
    }
    free(found);
    CHECK(n_run > 0);
    answers_end();
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
