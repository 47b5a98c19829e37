/* gen, request: what is not said is taken from the defaults, field by field; words; choices that share a prompt; the
 * engine's small questions: processors, formats, kinds of files. */
#include "engine/gen.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/file.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "tests/check.h"

static const gen_params ALL = {.temperature = 0.5f,
                               .top_p = 0.25f,
                               .min_p = 0.125f,
                               .top_k = 7,
                               .repetition_penalty = 1.5f,
                               .has_seed = true,
                               .seed = 99,
                               .think_tokens = 11,
                               .spec_prefill = 1,
                               .spec_keep = 0.75f,
                               .spec_backbone = 0.0625f,
                               .max_tokens = 13};

static void check_all(const gen_params *p, const gen_params *want)
{
    CHECK(p->temperature == want->temperature && p->top_p == want->top_p && p->min_p == want->min_p);
    CHECK(p->top_k == want->top_k && p->repetition_penalty == want->repetition_penalty);
    CHECK(p->has_seed == want->has_seed && p->seed == want->seed);
    CHECK(p->think_tokens == want->think_tokens && p->spec_prefill == want->spec_prefill);
    CHECK(p->spec_keep == want->spec_keep && p->spec_backbone == want->spec_backbone);
    CHECK(p->max_tokens == want->max_tokens);
}

static void test_params(void)
{
    gen_params p, none;
    gen_params_init(&none);
    CHECK(isnan(none.temperature) && isnan(none.top_p) && isnan(none.min_p) &&
          isnan(none.repetition_penalty));
    CHECK(none.presence_penalty == 0 && none.frequency_penalty == 0 && none.n_top_logprobs == -1);
    CHECK(!none.has_seed && none.top_k == -1 && none.max_tokens == -1 && none.think_tokens == -1);
    p = none;
    gen_params_fill(&p, &ALL); /* nothing was said */
    check_all(&p, &ALL);
    gen_params_fill(&p, &none); /* all was said, to defaults that say nothing */
    check_all(&p, &ALL);
    const gen_params zeros = {.temperature = 0,
                              .top_p = 0,
                              .min_p = 0,
                              .top_k = 0,
                              .repetition_penalty = 0,
                              .has_seed = true,
                              .seed = 0,
                              .think_tokens = 0,
                              .spec_prefill = 0,
                              .spec_keep = 0,
                              .spec_backbone = 0,
                              .max_tokens = 0};
    p = zeros;
    gen_params_fill(&p, &ALL); /* zeros were said */
    check_all(&p, &zeros);
}

static void test_words(void)
{
    CHECK_STR(gen_phase_name(GEN_PHASE_QUEUED), "queued");
    CHECK_STR(gen_phase_name(GEN_PHASE_MEDIA), "media_decode");
    CHECK_STR(gen_phase_name(GEN_PHASE_VISION), "vision_encode");
    CHECK_STR(gen_phase_name(GEN_PHASE_PREFILL), "prefill");
    CHECK_STR(gen_phase_name(GEN_PHASE_DECODE), "decode");
    CHECK_STR(gen_route_name(GEN_ROUTE_TEXT), "text");
    CHECK_STR(gen_route_name(GEN_ROUTE_MEDIA), "media");
    unsigned mask = 0, all = 0;
    CHECK(engine_parse_cpu("generic", &mask) && mask == 0);
    CHECK(engine_parse_cpu("native", &all) && all != 0 && engine_parse_cpu(engine_cpu(), &mask));
    CHECK(!engine_parse_cpu("", &mask) && !engine_parse_cpu("avx3", &mask) &&
          !engine_parse_cpu("Generic", &mask));
    int n_bits = 7;
    CHECK(engine_parse_quantize("none", &n_bits) && n_bits == 0);
    CHECK(engine_parse_quantize("q8", &n_bits) && n_bits == 8);
    CHECK(engine_parse_quantize("q4", &n_bits) && n_bits == 4);
    CHECK(!engine_parse_quantize("", &n_bits) && !engine_parse_quantize("q", &n_bits) &&
          !engine_parse_quantize("q80", &n_bits) && n_bits == 4);
}

static void test_files(void)
{
    static const struct {
        const char *name, *type;
    } cases[] = {
        {"assets/samples/color.png", "image/png"},
        {"assets/samples/where.jpg", "image/jpeg"},
        {"tests/data/images/alpha.webp", "image/webp"},
        {"tests/data/images/animated.gif", "image/gif"},
        {"tests/data/images/bilevel.bmp", "image/bmp"},
        {"tests/data/images/deflate.tif", "image/tiff"},
        {"tests/fuzz/seeds/still/a.avif", "image/avif"},
        {"assets/samples/ball-moves.mp4", "video/mp4"},
        {"tests/data/videos/mjpeg.mov", "video/mp4"},
        {"assets/samples/star-appears.mkv", "video/x-matroska"},
        {"tests/data/videos/vp8.webm", "video/x-matroska"},
        {"assets/samples/counting.avi", "video/x-msvideo"},
        {"README.md", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char path[4096];
        file_map map;
        err_detail d = {0};
        CHECK(file_join(path, sizeof path, PARLEY_SOURCE_DIR, cases[i].name));
        CHECK_OK(file_map_open(&map, path, &d), d);
        const char *type = engine_media_type(map.data, map.bytes < 256 ? map.bytes : 256);
        if (!type || !cases[i].type) {
            CHECK(type == cases[i].type);
        } else {
            CHECK_STR(type, cases[i].type);
        }
        CHECK(engine_media_type(map.data, 0) == NULL && engine_media_type(map.data, 1) == NULL);
        file_map_close(&map);
    }
}

/* Three choices share a prompt; each has its seed and its place, and the last to end frees what they share. */
static void test_choices(void)
{
    for (int first_ends = 0; first_ends < 2; first_ends++) {
        gen_request *r = gen_request_create(), *more = gen_request_create();
        CHECK(r != NULL && more != NULL);
        r->params.seed = 40;
        r->memory.bytes = 0;
        CHECK(gen_request_share(r, 2));
        gen_request_append(r, more);
        gen_request *a = gen_request_next(r), *b = gen_request_next(a);
        CHECK(a && b && gen_request_next(b) == more && gen_request_next(more) == NULL);
        CHECK(a->params.seed == 41 && b->params.seed == 42 && a->of == r && b->of == r);
        CHECK_INT(r->n_others, 2);
        gen_request_set_id(a, 7);
        CHECK(a->id == 7 && r->id == 0);
        gen_request_set_name(r, "a name of more than forty-seven bytes, which is cut behind them");
        CHECK(strlen(r->name) == 47 && strcmp(r->name, more->name) == 0 && strcmp(r->name, b->name) == 0);
        r->next = a->next = b->next = NULL; /* each is on its own way */
        if (first_ends) {
            gen_request_free(r);
            gen_request_free(a);
            gen_request_free(b);
        } else {
            gen_request_free(b);
            gen_request_free(a);
            CHECK_INT(r->n_others, 0);
            gen_request_free(r);
        }
        gen_request_free(more);
    }
    gen_request_free(NULL);
    gen_request *never = gen_request_create();
    CHECK(gen_request_share(never, 3));
    gen_request_free(never); /* never submitted: all of them */
}

int main(void)
{
    test_params();
    test_words();
    test_files();
    test_choices();
    CHECK_DONE();
}
