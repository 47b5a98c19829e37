/* What a request with images takes: the context is checked and memory reserved from the headers,
 * before anything is decoded, and all of it is given back, also by a request that fails or is never
 * submitted.
 */
#include "engine/engine.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/file.h"
#include "base/ledger.h"
#include "base/limits.h"
#include "engine/request.h"
#include "tests/check.h"
#include "tests/cpu.h"
#include "tests/folder.h"

enum { N_CTX = 1024, MAX_IMAGES = 8 };

/* What was held when the answer's first token was there, and whether it has ended. Written on the engine thread. */
static atomic_size_t held_at_token;
static atomic_bool has_ended;

static void on_event(void *ctx, gen_event *ev)
{
    if (ev->type == GEN_TOKENS && atomic_load(&held_at_token) == 0) {
        atomic_store(&held_at_token, ledger_get_status(ctx).used + 1);
    }
    if (ev->type == GEN_DONE) {
        atomic_store(&has_ended, true);
    }
    gen_event_free(ev);
}

static engine *open_engine(ledger *memory)
{
    engine_options opt = {.model_dir = PARLEY_SOURCE_DIR "/assets/seedling",
                          .n_ctx = N_CTX,
                          .n_parallel = 1,
                          .n_threads = 1,
                          .cpu_mask = test_cpu_mask(),
                          .memory = memory,
                          .on_event = on_event,
                          .on_event_ctx = memory};
    engine *e = NULL;
    err_detail d = {0};
    gen_params_init(&opt.defaults);
    CHECK_OK(engine_open(&e, &opt, &d), d);
    return e;
}

/* A PNG of that size that ends behind its header: it can be measured, not decoded. */
static void make_header(uint8_t out[33], uint32_t width, uint32_t height)
{
    static const uint8_t START[16] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    memcpy(out, START, sizeof START);
    for (int i = 0; i < 4; i++) {
        out[16 + i] = (uint8_t)(width >> (24 - 8 * i));
        out[20 + i] = (uint8_t)(height >> (24 - 8 * i));
    }
    memcpy(out + 24, "\x08\x02\0\0\0\0\0\0\0", 9);
}

/* Prepares a chat of n images of these bytes. */
static err_code prepare(engine *e, gen_request **out, const uint8_t *data, size_t len, size_t n,
                        err_detail *d)
{
    chat_input *in = chat_input_create((size_t)1 << 20);
    chat_part parts[MAX_IMAGES + 1] = {{0}};
    chat_message message = {.role = CHAT_USER, .parts = parts, .n_parts = n + 1};
    for (size_t i = 0; i < n; i++) {
        parts[i] = (chat_part){.kind = CHAT_IMAGE, .data = data, .data_bytes = len, .param = "image"};
    }
    parts[n] = (chat_part){.kind = CHAT_TEXT, .text = "What is it?", .text_len = 11};
    in->messages = &message;
    in->n_messages = 1;
    gen_params_init(&in->params);
    err_code err = engine_prepare(e, out, in, NULL, d);
    chat_input_destroy(in);
    return err;
}

/* Prepares a chat whose answer has this form. */
static err_code prepare_form(engine *e, gen_request **out, const grammar_spec *form, err_detail *d)
{
    chat_input *in = chat_input_create((size_t)1 << 20);
    chat_part part = {.kind = CHAT_TEXT, .text = "Is it?", .text_len = 6};
    chat_message message = {.role = CHAT_USER, .parts = &part, .n_parts = 1};
    in->messages = &message;
    in->n_messages = 1;
    in->form = form;
    gen_params_init(&in->params);
    err_code err = engine_prepare(e, out, in, NULL, d);
    chat_input_destroy(in);
    return err;
}

/* Without --parallel an engine computes as many answers at a time as its memory allows, and says so in
 * what it tells; what was asked for is never lowered. */
static void test_short_memory(void)
{
    engine_options opt = {.model_dir = PARLEY_SOURCE_DIR "/assets/seedling",
                          .n_ctx = N_CTX,
                          .n_threads = 1,
                          .cpu_mask = ~0u,
                          .vision_cache_mib = 1,
                          .cache_mib = 1};
    engine *e = NULL;
    err_detail d = {0};
    gen_params_init(&opt.defaults);
    CHECK_OK(engine_open(&e, &opt, &d), d);
    if (!e) {
        return;
    }
    const engine_info all = *engine_get_info(e);
    engine_close(e);
    CHECK_INT(all.n_parallel, 4);
    opt.n_parallel = 2;
    CHECK_OK(engine_open(&e, &opt, &d), d);
    const uint64_t half = engine_get_info(e)->state_bytes;
    engine_close(e);
    CHECK(half < all.state_bytes);
    /* room for three */
    const uint64_t room = (half + all.state_bytes) / 2;
    opt.mem_limit_mib = (int64_t)((all.weight_bytes + LIMIT_REQUEST_MEMORY + room) >> 20) + 1;
    opt.n_parallel = 0;
    CHECK_OK(engine_open(&e, &opt, &d), d);
    CHECK_INT(engine_get_info(e)->n_parallel, 2);
    CHECK(engine_get_info(e)->state_bytes == half);
    engine_close(e);
    opt.n_parallel = 4;
    CHECK_INT(engine_open(&e, &opt, &d), ERR_NOMEM);
    CHECK(strstr(d.text, "--parallel") != NULL);
    char want[200];
    const uint64_t left = ((uint64_t)opt.mem_limit_mib << 20) - all.weight_bytes - LIMIT_REQUEST_MEMORY;
    snprintf(want, sizeof want,
             "4 sequences of %d tokens and the cache need %zu MiB and %zu MiB are left of --mem-limit;",
             N_CTX, (size_t)all.state_bytes >> 20, (size_t)left >> 20);
    CHECK(strstr(d.text, want) == d.text);
    opt.mem_limit_mib = (int64_t)(all.weight_bytes >> 20);
    CHECK_INT(engine_open(&e, &opt, &d), ERR_NOMEM);
    snprintf(want, sizeof want,
             "--mem-limit is %zu MiB; %zu MiB of weights and %zu MiB for requests do not fit;",
             (size_t)opt.mem_limit_mib, (size_t)all.weight_bytes >> 20, (size_t)LIMIT_REQUEST_MEMORY >> 20);
    CHECK(strstr(d.text, want) == d.text);
}

int main(void)
{
    test_short_memory();
    ledger *memory = ledger_create(0);
    engine *e = open_engine(memory);
    if (!e || !engine_get_info(e)->has_vision) {
        printf("skipped: the default model is not there\n");
        return 77;
    }
    err_detail d = {0};
    gen_request *r = NULL;
    uint8_t header[33];
    CHECK(ledger_get_status(memory).limit > 0);
    ledger_set_limit(memory, (size_t)256 << 20);

    /* Five images of 256 tokens are more than the context holds; that they are damaged is not even
     * found. */
    make_header(header, 1024, 1024);
    CHECK_INT(prepare(e, &r, header, sizeof header, 5, &d), ERR_CONTEXT);
    CHECK_STR(d.name, "context_length_exceeded");
    CHECK(strstr(d.text, "1024") != NULL);
    CHECK_INT(ledger_get_status(memory).used, 0);

    /* One fits the context: then it is. What was reserved for it is given back. */
    CHECK_INT(prepare(e, &r, header, sizeof header, 1, &d), ERR_CORRUPT);
    CHECK_STR(d.name, "image_parse_error");
    CHECK_STR(d.param, "image");
    CHECK_INT(ledger_get_status(memory).used, 0);
    CHECK(ledger_get_status(memory).peak > 3 << 20); /* its pixels */
    CHECK(ledger_get_status(memory).peak < 32 << 20);

    /* An image whose pixels are more than the memory for requests is refused before it is
     * decoded. */
    make_header(header, 8000, 8000);
    ledger_set_limit(memory, (size_t)128 << 20);
    CHECK_INT(prepare(e, &r, header, sizeof header, 1, &d), ERR_LIMIT);
    CHECK_STR(d.name, "memory_limit");
    CHECK_INT(ledger_get_status(memory).used, 0);

    /* A request that waits holds its patches as bytes and its rows, and nothing when it is
     * freed. */
    bytes file;
    bytes_init(&file, 1 << 20);
    CHECK_OK(file_read(&file, PARLEY_SOURCE_DIR "/assets/samples/color.png", &d), d);
    CHECK_OK(prepare(e, &r, (const uint8_t *)file.data, file.len, 2, &d), d);
    if (r) {
        const size_t held = ledger_get_status(memory).used, one = patches_bytes(&r->media[0].patches);
        CHECK(one > 0 && r->media[0].patches.pixels && r->media[1].patches.pixels);
        CHECK(held >= 2 * one);
        gen_request_drop_media(r, 0);
        CHECK_INT(held - ledger_get_status(memory).used, one);
    }
    gen_request_free(r);
    CHECK_INT(ledger_get_status(memory).used, 0);

    /* One that is answered has given back what its images took when the answer begins, and all of it at the end. */
    CHECK_OK(prepare(e, &r, (const uint8_t *)file.data, file.len, 2, &d), d);
    const size_t one = patches_bytes(&r->media[0].patches),
                 others = ledger_get_status(memory).used - 2 * one - r->scratch_bytes;
    CHECK_OK(engine_submit(e, r, 1, &d), d);
    while (!atomic_load(&has_ended)) {
        sched_yield();
    }
    CHECK(atomic_load(&held_at_token) > 0 && atomic_load(&held_at_token) <= others + 1);
    bytes_deinit(&file);

    /* A grammar, and what following it takes, count as well. */
    const grammar_spec form = {.kind = SPEC_TEXT, .text = "yes"};
    CHECK_OK(prepare_form(e, &r, &form, &d), d);
    CHECK(ledger_get_status(memory).used > LIMIT_GRAMMAR_MASK_BYTES + LIMIT_GRAMMAR_STATE_BYTES);
    CHECK(ledger_get_status(memory).used < LIMIT_GRAMMAR_BYTES);
    gen_request_free(r);
    CHECK_INT(ledger_get_status(memory).used, 0);
    ledger_set_limit(memory, LIMIT_GRAMMAR_BYTES);
    CHECK_INT(prepare_form(e, &r, &form, &d), ERR_LIMIT);
    CHECK_STR(d.name, "memory_limit");
    CHECK_INT(ledger_get_status(memory).used, 0);
    engine_close(e);
    ledger_destroy(memory);
    CHECK_DONE();
}
