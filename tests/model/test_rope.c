/* rope: positions of the specification's worked example, placeholders that do not fit, the rotation
 * tables. */
#include "tests/check.h"

#include "base/compiler.h"
#include "model/rope.h"

enum { TEXT = 1, START = 2, END = 3, IMAGE = 8, VIDEO = 9 };

static model_config config(void)
{
    model_config cfg = {.image_token_id = IMAGE,
                        .video_token_id = VIDEO,
                        .full.rope.theta = 10000.0,
                        .full.rope.pairs = 8,
                        .full.rope.magnitude = 1.0,
                        .mrope_section = {3, 3, 2},
                        .mrope_interleaved = true};
    return cfg;
}

static size_t fill(int32_t *ids, size_t at, int32_t id, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ids[at + i] = id;
    }
    return at + n;
}

/* docs/model.md C.4: an image of 2 x 3 merged rows and a video of two frames of 2 x 2. outer adds
 * the pair of vision tokens that the newer layout keeps around a video. */
static size_t worked_example(int32_t *ids, bool outer)
{
    size_t n = fill(ids, 0, TEXT, 3);
    n = fill(ids, n, START, 1);
    n = fill(ids, n, IMAGE, 6);
    n = fill(ids, n, END, 1);
    n = fill(ids, n, START, outer);
    for (int frame = 0; frame < 2; frame++) {
        n = fill(ids, n, TEXT, 6);
        n = fill(ids, n, START, 1);
        n = fill(ids, n, VIDEO, 4);
        n = fill(ids, n, END, 1);
    }
    n = fill(ids, n, END, outer);
    return fill(ids, n, TEXT, 1);
}

static void check_position(const position *p, int32_t t, int32_t h, int32_t w)
{
    CHECK_INT(p->t, t);
    CHECK_INT(p->h, h);
    CHECK_INT(p->w, w);
}

static void test_worked_example(void)
{
    int32_t ids[64], delta = 0;
    position p[64];
    err_detail d = {0};
    model_config cfg = config();
    media_grid image = {1, 4, 6, 0}, video = {2, 4, 4, 0};
    size_t n = worked_example(ids, false);
    CHECK_INT(n, 36);
    CHECK_OK(positions_assign(p, &delta, &cfg, ids, n, &image, 1, &video, 1, 2, &d), d);
    CHECK_INT(delta, -7);
    check_position(&p[3], 3, 3, 3);
    check_position(&p[4], 4, 4, 4);
    check_position(&p[6], 4, 4, 6);
    check_position(&p[7], 4, 5, 4);
    check_position(&p[9], 4, 5, 6);
    check_position(&p[10], 7, 7, 7);
    check_position(&p[17], 14, 14, 14);
    check_position(&p[18], 15, 15, 15);
    check_position(&p[21], 15, 16, 16);
    check_position(&p[22], 17, 17, 17);
    check_position(&p[30], 25, 25, 25);
    check_position(&p[33], 25, 26, 26);
    check_position(&p[34], 27, 27, 27);
    check_position(&p[35], 28, 28, 28);

    n = worked_example(ids, true);
    CHECK_INT(n, 38);
    CHECK_OK(positions_assign(p, &delta, &cfg, ids, n, &image, 1, &video, 1, 2, &d), d);
    CHECK_INT(delta, -7);
    check_position(&p[11], 8, 8, 8);
    check_position(&p[37], 30, 30, 30);
}

static void test_mismatches(void)
{
    int32_t ids[64], delta = 0;
    position p[64];
    model_config cfg = config();
    media_grid image = {1, 4, 6, 0}, video = {2, 4, 4, 0}, wider = {1, 4, 8, 0}, odd = {1, 3, 6, 0};
    size_t n = worked_example(ids, false);
    err_detail d = {0};
    CHECK_INT(positions_assign(p, &delta, &cfg, ids, n, NULL, 0, &video, 1, 2, &d), ERR_INVALID);
    CHECK_INT(positions_assign(p, &delta, &cfg, ids, n, &image, 1, NULL, 0, 2, &d), ERR_INVALID);
    CHECK_INT(positions_assign(p, &delta, &cfg, ids, n, &wider, 1, &video, 1, 2, &d), ERR_INVALID);
    CHECK_INT(positions_assign(p, &delta, &cfg, ids, n, &odd, 1, &video, 1, 2, &d), ERR_INVALID);
    CHECK_INT(positions_assign(p, &delta, &cfg, ids, 8, &image, 1, NULL, 0, 2, &d),
              ERR_INVALID); /* cut short */
    CHECK_INT(positions_assign(p, &delta, &cfg, ids, 3, &image, 1, NULL, 0, 2, &d),
              ERR_INVALID); /* no pads at all */
    CHECK_OK(positions_assign(p, &delta, &cfg, ids, 3, NULL, 0, NULL, 0, 2, &d), d);
    CHECK_INT(delta, 0);
}

/* Each bound of a grid, on both of its sides, and which image or video is the one that does not fit. */
static void test_grids(void)
{
    static const struct {
        media_grid images[2], videos[1];
        size_t n_images, n_videos;
        int32_t n_pads[4]; /* runs of placeholders, in turn of images and of videos */
        const char *text;
    } CASES[] = {
        {{{1, 2, 2, 0}}, {{0}}, 1, 0, {1}, ""},
        {{{1, 2, 2, 0}, {1, 2, 4, 0}}, {{0}}, 2, 0, {1, 0, 2}, ""},
        {{{0, 2, 2, 0}}, {{0}}, 1, 0, {1}, "image 1 has the impossible grid 0 x 2 x 2"},
        {{{-1, 2, 2, 0}}, {{0}}, 1, 0, {1}, "image 1 has the impossible grid -1 x 2 x 2"},
        {{{1, 0, 2, 0}}, {{0}}, 1, 0, {1}, "image 1 has the impossible grid 1 x 0 x 2"},
        {{{1, 2, 0, 0}}, {{0}}, 1, 0, {1}, "image 1 has the impossible grid 1 x 2 x 0"},
        {{{1, 1, 2, 0}}, {{0}}, 1, 0, {1}, "image 1 has the impossible grid 1 x 1 x 2"},
        {{{1, 2, 1, 0}}, {{0}}, 1, 0, {1}, "image 1 has the impossible grid 1 x 2 x 1"},
        {{{1, 3, 2, 0}}, {{0}}, 1, 0, {1}, "image 1 has the impossible grid 1 x 3 x 2"},
        {{{1, 2, 3, 0}}, {{0}}, 1, 0, {1}, "image 1 has the impossible grid 1 x 2 x 3"},
        {{{1, -2, -2, 0}}, {{0}}, 1, 0, {1}, "image 1 has the impossible grid 1 x -2 x -2"},
        {{{1, 2, 2, 0}, {1, 2, 5, 0}}, {{0}}, 2, 0, {1, 0, 2}, "image 2 has the impossible grid 1 x 2 x 5"},
        {{{1, 2, 2, 0}}, {{2, 3, 2, 0}}, 1, 1, {1, 1}, "video 1 has the impossible grid 2 x 3 x 2"},
        {{{1, 2, 2, 0}}, {{2, 2, 2, 0}}, 1, 1, {1, 1, 0, 1}, ""},
        {{{1, 2, 2, 0}},
         {{2, 2, 2, 0}},
         1,
         1,
         {1, 1},
         "the prompt has too few placeholders for 1 images and 1 videos"},
        {{{1, 2, 2, 0}},
         {{2, 2, 2, 0}},
         1,
         1,
         {0, 1, 0, 1},
         "the prompt has too few placeholders for 1 images and 1 videos"},
        {{{1, 2, 2, 0}}, {{0}}, 1, 0, {1, 0, 1}, "the prompt has more image placeholders than image"},
        {{{1, 2, 2, 0}},
         {{1, 2, 2, 0}},
         1,
         1,
         {1, 1, 0, 1},
         "the prompt has more video placeholders than video"},
        {{{1, 4, 4, 0}}, {{0}}, 1, 0, {3}, "image: 3 placeholders stand where 4 are needed"},
        {{{1, 2, 2, 0}}, {{1, 2, 4, 0}}, 1, 1, {1, 1}, "video: 1 placeholders stand where 2 are needed"},
    };
    model_config cfg = config();
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        int32_t ids[32], delta = 0;
        position p[32];
        err_detail d = {0};
        size_t n = 0;
        for (int run = 0; run < 4; run++) {
            n = fill(ids, n, run % 2 ? VIDEO : IMAGE, (size_t)CASES[i].n_pads[run]);
            n = fill(ids, n, TEXT, CASES[i].n_pads[run] > 0);
        }
        CHECK_INT(positions_assign(p, &delta, &cfg, ids, n, CASES[i].images, CASES[i].n_images,
                                   CASES[i].videos, CASES[i].n_videos, 2, &d),
                  CASES[i].text[0] ? ERR_INVALID : ERR_OK);
        CHECK_STR(d.text, CASES[i].text);
    }
}

/* A model without media has no ids for them: what is below zero in a prompt stands for none. */
static void test_no_media(void)
{
    model_config cfg = config();
    const int32_t ids[] = {TEXT, -1, TEXT};
    int32_t delta = 7;
    position p[3];
    err_detail d = {0};
    cfg.image_token_id = cfg.video_token_id = -1;
    CHECK_OK(positions_assign(p, &delta, &cfg, ids, 3, NULL, 0, NULL, 0, 2, &d), d);
    CHECK_INT(delta, 0);
    check_position(&p[2], 2, 2, 2);
}

/* Where no pair reads height and width, the rows of an image are counted like text; one that reads either is enough. */
static void test_one_axis(void)
{
    static const struct {
        int32_t sections[3];
        bool one_axis;
    } CASES[] = {{{8, 0, 0}, true}, {{4, 4, 0}, false}, {{4, 0, 4}, false}, {{0, 0, 0}, true}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        model_config cfg = config();
        const media_grid image = {1, 4, 6, 0};
        int32_t ids[16], delta = 0;
        position p[16];
        err_detail d = {0};
        size_t n = fill(ids, 0, TEXT, 2);
        n = fill(ids, n, IMAGE, 6);
        n = fill(ids, n, TEXT, 1);
        memcpy(cfg.mrope_section, CASES[i].sections, sizeof cfg.mrope_section);
        CHECK_OK(positions_assign(p, &delta, &cfg, ids, n, &image, 1, NULL, 0, 2, &d), d);
        if (CASES[i].one_axis) {
            check_position(&p[6], 6, 6, 6);
            check_position(&p[8], 8, 8, 8);
        } else {
            check_position(&p[6], 2, 3, 3);
            check_position(&p[8], 5, 5, 5);
        }
        CHECK_INT(delta, CASES[i].one_axis ? 0 : -3);
    }
}

/* Frequencies of contexts that were made longer, computed as transformers does. */
static void test_longer_contexts(void)
{
    static const struct {
        rope_spec rope;
        double frequencies[8];
    } cases[] = {
        {{.theta = 150000, .yarn_factor = 32, .yarn_original = 4096, .yarn_fast = 32, .yarn_slow = 1},
         {1, 0.225418, 0.050813275, 0.0067949595, 0.00045648392, 1.8188337e-05, 4.0999785e-06,
          9.2420895e-07}},
        {{.theta = 150000,
          .yarn_factor = 32,
          .yarn_original = 4096,
          .yarn_fast = 32,
          .yarn_slow = 1,
          .yarn_truncate = true},
         {1, 0.225418, 0.050813275, 0.0077554661, 0.0009144544, 1.8188337e-05, 4.0999785e-06, 9.2420895e-07}},
        /* the slowest turns more than is wanted: the ramp ends behind the last pair */
        {{.theta = 10,
          .yarn_factor = 4,
          .yarn_original = 4096,
          .yarn_fast = 32,
          .yarn_slow = 1,
          .yarn_truncate = true},
         {1, 0.74989421, 0.56234133, 0.4216965, 0.31622777, 0.23713737, 0.17782794, 0.13335214}},
        /* even the fastest turns less: it begins at the first */
        {{.theta = 10000,
          .yarn_factor = 4,
          .yarn_original = 64,
          .yarn_fast = 32,
          .yarn_slow = 8,
          .yarn_truncate = true},
         {1, 0.079056942, 0.025, 0.0079056942, 0.0025, 0.00079056942, 0.00025, 7.9056942e-05}},
        /* both ends of the ramp are the first pair: all others are behind it */
        {{.theta = 10000,
          .yarn_factor = 4,
          .yarn_original = 64,
          .yarn_fast = 32,
          .yarn_slow = 10.5,
          .yarn_truncate = true},
         {1, 0.079056942, 0.025, 0.0079056942, 0.0025, 0.00079056942, 0.00025, 7.9056942e-05}},
        {{.theta = 500000, .llama3_factor = 8, .llama3_original = 8192, .llama3_fast = 4, .llama3_slow = 1},
         {1, 0.19392274, 0.037606031, 0.0072926647, 0.00052484616, 3.4281022e-05, 6.6478699e-06,
          1.2891732e-06}},
        {{.theta = 5000, .llama3_factor = 4, .llama3_original = 2048, .llama3_fast = 32, .llama3_slow = 2},
         {1, 0.34484882, 0.11892071, 0.021906414, 0.0044581737, 0.0012192247, 0.00042044821, 0.00014499107}},
        {{.theta = 10000, .linear_factor = 4},
         {0.25, 0.079056942, 0.025, 0.0079056942, 0.0025, 0.00079056942, 0.00025, 7.9056942e-05}},
        {{.theta = 10000, .n_still = 3}, {1, 0.31622777, 0.1, 0.031622777, 0.01, 0, 0, 0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        float cos_table[8], sin_table[8];
        model_config cfg = config();
        const position p = {1, 1, 1};
        rope_spec rope = cases[i].rope;
        rope.pairs = 8;
        rope.magnitude = 1.25;
        rope_tables(cos_table, sin_table, &cfg, &rope, &p, 1);
        for (int k = 0; k < 8; k++) {
            const double want = cases[i].frequencies[k];
            CHECK_NEAR(cos_table[k], 1.25 * cos(want), 1e-6);
            CHECK_NEAR(sin_table[k], 1.25 * sin(want), 2e-6 * want + 1e-12);
        }
    }
}

static void test_tables(void)
{
    float cos_table[8], sin_table[8];
    model_config cfg = config();
    position p = {100, 10, 1};
    /* sections [3, 3, 2] of 8 pairs: height at 1, 4, 7; width at 2, 5; time elsewhere */
    static const int32_t axis[8] = {100, 10, 1, 100, 10, 1, 100, 10};
    rope_tables(cos_table, sin_table, &cfg, &cfg.full.rope, &p, 1);
    for (int i = 0; i < 8; i++) {
        double angle = axis[i] * pow(10000.0, -i / 8.0);
        CHECK_NEAR(cos_table[i], cos(angle), 2e-5);
        CHECK_NEAR(sin_table[i], sin(angle), 2e-5);
    }
}

/* The example of the reference's documentation: three pairs of frames of 2 x 2 merged rows, 50 positions
 * apart. Behind it comes the largest position and one. */
static void test_whole_videos(void)
{
    int32_t ids[16], delta = 0;
    position p[16];
    err_detail d = {0};
    model_config cfg = config();
    cfg.whole_videos = true;
    cfg.positions_per_second = 25;
    media_grid video = {3, 4, 4, 2.0};
    size_t n = fill(ids, 0, START, 1);
    n = fill(ids, n, VIDEO, 12);
    n = fill(ids, n, END, 1);
    CHECK_OK(positions_assign(p, &delta, &cfg, ids, n, NULL, 0, &video, 1, 2, &d), d);
    check_position(&p[1], 1, 1, 1);
    check_position(&p[4], 1, 2, 2);
    check_position(&p[5], 51, 1, 1);
    check_position(&p[10], 101, 1, 2);
    check_position(&p[13], 102, 102, 102);
    CHECK_INT(delta, 103 - 14);
    video.seconds = 1.019999; /* as sampled frames are apart: 25.5 positions, of which whole ones count */
    CHECK_OK(positions_assign(p, &delta, &cfg, ids, n, NULL, 0, &video, 1, 2, &d), d);
    check_position(&p[5], 26, 1, 1);
    check_position(&p[9], 52, 1, 1); /* a hair below 51 */
    video.seconds = 0;               /* nothing is known of its times */
    CHECK_OK(positions_assign(p, &delta, &cfg, ids, n, NULL, 0, &video, 1, 2, &d), d);
    check_position(&p[9], 3, 1, 1);
    video.seconds = 2;
    cfg.positions_per_second = 0;
    CHECK_OK(positions_assign(p, &delta, &cfg, ids, n, NULL, 0, &video, 1, 2, &d), d);
    check_position(&p[9], 3, 1, 1);
    check_position(&p[13], 4, 4, 4);
    CHECK_INT(positions_assign(p, &delta, &cfg, ids, 9, NULL, 0, &video, 1, 2, &d),
              ERR_INVALID); /* cut short */
}

static void test_split_tables(void)
{
    float cos_table[8], sin_table[8];
    model_config cfg = config();
    cfg.mrope_interleaved = false;
    position p = {100, 10, 1};
    static const int32_t axis[8] = {100, 100, 100, 10, 10, 10, 1, 1};
    rope_tables(cos_table, sin_table, &cfg, &cfg.full.rope, &p, 1);
    for (int i = 0; i < 8; i++) {
        CHECK_NEAR(cos_table[i], cos(axis[i] * pow(10000.0, -i / 8.0)), 2e-5);
    }
}

int main(void)
{
    test_whole_videos();
    test_split_tables();
    test_worked_example();
    test_mismatches();
    test_grids();
    test_no_media();
    test_one_axis();
    test_longer_contexts();
    test_tables();
    CHECK_DONE();
}
