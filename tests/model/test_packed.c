/* Folders whose matrices other tools packed: MLX's affine groups at every width and group, mxfp4,
 * 8-bit floats. What is read is what tools/make_packed.py says that the bytes stand for, bit for
 * bit; such a model runs; what does not fit is refused. With a folder as argument, only the numbers
 * of that one are compared. */
#include "tests/model/tiny.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "compute/kernels/cpu.h"
#include "compute/kernels/ops.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/folder.h"
#include "tests/model/random_families.h"

static char root[FOLDER_NAME];
static char packed[FOLDER_NAME + 32], plain[FOLDER_NAME + 32];
static const char *original; /* the folder that is packed */

extern char **environ;

/* Runs a program with arguments up to NULL; its exit code, or -1. */
static int run(char *const *argv)
{
    pid_t pid;
    int status;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) != pid) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The original packed into `packed` and, as floats, into `plain`; options as the tool knows them,
 * with spaces between. */
static void make(const char *options)
{
    static char python[] = "python3", tool[] = PARLEY_SOURCE_DIR "/tools/make_packed.py",
                to_plain[] = "--plain";
    static int n = 0;
    char words[256], from[4096];
    n++;
    snprintf(packed, sizeof packed, "%s/packed%d", root, n);
    snprintf(plain, sizeof plain, "%s/plain%d", root, n);
    snprintf(words, sizeof words, "%s", options);
    snprintf(from, sizeof from, "%s", original);
    char *argv[16] = {python, tool, from, packed, to_plain, plain}, *rest = words;
    for (size_t i = 6; i < ARRAY_LEN(argv) - 1 && rest; i++) {
        argv[i] = strsep(&rest, " ");
    }
    CHECK_INT(run(argv), 0);
}

static float *widened(const tensor *t)
{
    const size_t n = tensor_len(t), K = t->dims[t->n_dims - 1];
    float *out = calloc(n, sizeof *out);
    if (!out) {
        exit(1);
    }
    if (t->type < DTYPE_OTHER) {
        tensor_to_f32(out, t, 0, n);
        return out;
    }
    for (size_t row = 0; row < n / K; row++) {
        const uint8_t *at = (const uint8_t *)t->data + row * ggml_row_bytes(t->type, K);
        ggml_kernels_of(ops_generic()->ggml, t->type)->widen(out + row * K, at, K);
    }
    return out;
}

/* Norms of the trunk and of the draft head that a packed folder may keep with their 1. */
static bool is_norm(const char *name)
{
    static const char *const ends[] = {"layernorm.weight", "self_attn.q_norm.weight",
                                       "self_attn.k_norm.weight", "pre_fc_norm_hidden.weight",
                                       "pre_fc_norm_embedding.weight"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const size_t n = strlen(name), n_end = strlen(ends[i]);
        if (n >= n_end && strcmp(name + n - n_end, ends[i]) == 0) {
            return true;
        }
    }
    return strcmp(name, "norm.weight") == 0 || strcmp(name, "mtp.norm.weight") == 0;
}

/* Every tensor of `plain` is in `packed` with the same shape and bits; returns how many were packed
 * in blocks. */
static size_t same_numbers(void)
{
    checkpoint *a = NULL, *b = NULL;
    err_detail d = {0};
    size_t n_packed = 0;
    CHECK_OK(checkpoint_open(&a, packed, NULL, &d), d);
    CHECK_OK(checkpoint_open(&b, plain, NULL, &d), d);
    if (!a || !b) {
        exit(1);
    }
    const checkpoint_traits *traits = checkpoint_get_traits(a);
    model *m = NULL;
    CHECK_OK(model_open(&m, plain, &(model_open_options){.weights_only = true}, &d), d);
    /* else nothing is added to norms */
    const bool zero_centred = m && model_get_config(m)->zero_centred_norms;
    model_close(m);
    CHECK_INT(checkpoint_tensors(a)->n, checkpoint_tensors(b)->n);
    for (size_t i = 0; i < checkpoint_tensors(b)->n; i++) {
        const named_tensor *expected = &checkpoint_tensors(b)->items[i],
                           *found = tensor_table_find(checkpoint_tensors(a), expected->name);
        if (!found || found->view.n_dims != expected->view.n_dims ||
            memcmp(found->view.dims, expected->view.dims, (size_t)found->view.n_dims * sizeof(size_t)) != 0) {
            fprintf(stderr, "  %s: %s\n", expected->name, found ? "another shape" : "missing");
            CHECK(!"tensor");
            continue;
        }
        float *x = widened(&found->view), *y = widened(&expected->view);
        const bool mtp = strncmp(expected->name, "mtp.", 4) == 0;
        const bool holds_one = mtp ? traits->mtp_norms_hold_one : traits->norms_hold_one;
        const float shift = zero_centred && is_norm(expected->name) && holds_one ? 1.0f : 0.0f;
        for (size_t k = 0; k < tensor_len(&expected->view); k++) {
            if (x[k] != y[k] + shift) {
                fprintf(stderr, "  %s [%zu]: %.9g, not %.9g\n", expected->name, k, (double)x[k],
                        (double)(y[k] + shift));
                CHECK(!"number");
                break;
            }
        }
        n_packed += dtype_is_quantized(found->view.type);
        free(x), free(y);
    }
    checkpoint_close(a);
    checkpoint_close(b);
    return n_packed;
}

static void logits_of(float *out, const char *dir)
{
    int32_t ids[64];
    const int32_t n = tiny_ids(ids, 64);
    tiny t = tiny_open_as(&(tiny_options){.dir = dir, .n_threads = 1, .cpu_mask = ~0u, .type = KV_F32});
    seq_state *s = tiny_seq(&t);
    memcpy(out, tiny_run(&t, s, ids, n, false, false), TINY_V * sizeof *out);
    CHECK(model_has_mtp(t.m) == (model_get_config(t.m)->n_mtp_layers > 0));
    seq_state_destroy(s);
    tiny_close(&t);
}

/* Rows of activations are rounded to 8 bits where weights are packed. */
static void same_answers(void)
{
    static float a[TINY_V], b[TINY_V];
    logits_of(a, packed);
    logits_of(b, plain);
    const double difference = tiny_difference(a, b, TINY_V);
    printf("  answers differ by %.3f\n", difference);
    CHECK(difference < 0.1);
}

static void test_affine(bool answers)
{
    static const struct {
        const char *options;
        bool runs;
    } cases[] = {
        {"--bits 2 --group 32", false},
        {"--bits 3 --group 64 --mtp side", false},
        {"--bits 4 --group 32 --mtp apart", true},
        {"--bits 4 --group 64 --scales f16", false},
        {"--bits 5 --group 128", false}, /* one matrix has rows of 128 */
        {"--bits 6 --group 64", true},
        {"--bits 8 --group 32 --scales f32", false},
        {"--mode mxfp4", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        make(cases[i].options);
        const size_t n_packed = same_numbers();
        printf("%s: %zu matrices packed\n", cases[i].options, n_packed);
        CHECK(n_packed > 0);
        if (cases[i].runs && answers) {
            same_answers();
        }
    }
}

/* A packed matrix and its numbers give the same products where 8 bits hold the activations as they are: what
 * answers of packed folders differ by is the rounding of activations alone. */
static void same_products(compute *c, const tensor *packed_weight, const tensor *numbers)
{
    const size_t K = packed_weight->dims[packed_weight->n_dims - 1], n = tensor_len(packed_weight) / K;
    float *x = malloc(K * sizeof *x), *out = malloc(2 * n * sizeof *out), *plain_out = out + n;
    const tensor a = {packed_weight->type, 2, {n, K}, packed_weight->data, packed_weight->bytes},
                 b = {numbers->type, 2, {n, K}, numbers->data, numbers->bytes};
    for (size_t k = 0; k < K; k++) {
        x[k] = k % 16 == 0 ? 127.0f : (float)((k * 2654435761u >> 13) % 255) - 127.0f;
    }
    nn_linear(c, out, x, &a, NULL, 1);
    nn_linear(c, plain_out, x, &b, NULL, 1);
    CHECK(tiny_difference(out, plain_out, n) < 1e-5);
    free(x);
    free(out);
}

static size_t all_same_products(void)
{
    checkpoint *a = NULL;
    compute *c = NULL;
    err_detail d = {0};
    size_t n = 0;
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 1, .cpu_mask = test_cpu_mask()}, &d), d);
    CHECK_OK(checkpoint_open(&a, packed, NULL, &d), d);
    for (size_t i = 0; i < checkpoint_tensors(a)->n; i++) {
        const tensor *t = &checkpoint_tensors(a)->items[i].view;
        if (dtype_is_quantized(t->type)) {
            float *numbers = widened(t);
            tensor plain_view = *t;
            plain_view.type = DTYPE_F32;
            plain_view.data = numbers;
            plain_view.bytes = tensor_len(t) * sizeof *numbers;
            same_products(c, t, &plain_view);
            free(numbers);
            n++;
        }
    }
    checkpoint_close(a);
    compute_destroy(c);
    return n;
}

/* Each family in MLX's form, in affine groups. */
static void test_families(void)
{
    const char *before = original;
    for (size_t i = 0; i < ARRAY_LEN(RANDOM_FAMILIES); i++) {
        char dir[64];
        const int failed = check_failures;
        random_checkpoint_make(dir, RANDOM_FAMILIES[i].config, RANDOM_FAMILIES[i].forms & ~RANDOM_TURNED);
        original = dir;
        make(i % 2 ? "--bits 8 --group 32" : "--bits 4 --group 32");
        CHECK(same_numbers() > 4);
        same_answers();
        if (check_failures != failed) {
            fprintf(stderr, "  in the family %s\n", RANDOM_FAMILIES[i].name);
        }
    }
    original = before;
}

/* GPT-OSS: experts and biases under MLX's names, in affine groups and in MXFP4, also beside a trunk in 8
 * bits, as published conversions have it. */
static void test_gpt_oss(void)
{
    static const char *const options[] = {"--bits 8 --group 32", "--bits 8 --group 64 --experts mxfp4"};
    const char *before = original;
    static char dir[64];
    for (size_t i = 0; i < ARRAY_LEN(RANDOM_FAMILIES); i++) {
        if (strcmp(RANDOM_FAMILIES[i].name, "gpt_oss") == 0) {
            random_checkpoint_make(dir, RANDOM_FAMILIES[i].config, RANDOM_FAMILIES[i].forms);
        }
    }
    original = dir;
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        make(options[i]);
        const size_t n_packed = same_numbers();
        printf("GPT-OSS, %s: %zu matrices packed\n", options[i], n_packed);
        CHECK(n_packed >= 3 * 4); /* the experts of four layers */
        CHECK_INT(all_same_products(), n_packed);
        same_answers();
    }
    original = before;
}

static void test_fp8(void)
{
    make("--mode fp8");
    CHECK_INT(same_numbers(), 0); /* widened when it is read */
    same_answers();
}

/* Writes packed/config.json with `from` replaced by `to` and opens it; the error must name each of
 * `named`. */
static void refused(const char *from, const char *to, err_code expected, const char *named)
{
    char path[128];
    err_detail d = {0};
    bytes before, after;
    bytes_init(&before, 1 << 20);
    bytes_init(&after, 1 << 20);
    snprintf(path, sizeof path, "%s/config.json", packed);
    CHECK_OK(file_read(&before, path, &d), d);
    for (const char *text = bytes_str(&before); *text;) { /* all of them: the words stand twice */
        const char *at = strstr(text, from);
        bytes_append(&after, text, at ? (size_t)(at - text) : strlen(text));
        if (at) {
            bytes_append_str(&after, to);
        }
        text = at ? at + strlen(from) : "";
    }
    CHECK(strcmp(bytes_str(&before), bytes_str(&after)) != 0);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(after.data, 1, after.len, f) == after.len && fclose(f) == 0);
    model *m = NULL;
    CHECK_INT(model_open(&m, packed, &(model_open_options){.weights_only = true}, &d), expected);
    if (!strstr(d.text, named)) {
        fprintf(stderr, "  \"%s\" does not name \"%s\"\n", d.text, named);
        CHECK(!"message");
    }
    model_close(m);
    f = fopen(path, "wb");
    CHECK(f && fwrite(before.data, 1, before.len, f) == before.len && fclose(f) == 0);
    bytes_deinit(&before);
    bytes_deinit(&after);
}

static void test_bad_input(void)
{
    make("--bits 4 --group 32");
    refused("\"bits\": 4", "\"bits\": 7", ERR_UNSUPPORTED, "7 bits in groups of 32");
    refused("\"group_size\": 32", "\"group_size\": 16", ERR_UNSUPPORTED, "groups of 16");
    refused("\"bits\": 4", "\"bits\": 4, \"mode\": \"nvfp4\"", ERR_UNSUPPORTED, "\"nvfp4\"");
    refused("\"bits\": 4", "\"bits\": 8", ERR_CORRUPT, "do not fit 8 bits");
    refused("\"bits\": 4", "\"bits\": 4, \"quant_method\": \"gptq\"", ERR_UNSUPPORTED, "\"gptq\"");
}

int main(int argc, char **argv)
{
    static char tiny_dir[4096];
    snprintf(tiny_dir, sizeof tiny_dir, "%s", check_data("tiny"));
    original = argc > 1 ? argv[1] : tiny_dir;
    static char python[] = "python3", version[] = "--version";
    if (run((char *[]){python, version, NULL}) != 0) {
        printf("python3, which packs the folders, is not here\n");
        return 77;
    }
    folder_make(root);
    test_affine(argc == 1);
    if (argc == 1) {
        test_families();
        test_gpt_oss();
        test_fp8();
        test_bad_input();
    }
    CHECK_DONE();
}
