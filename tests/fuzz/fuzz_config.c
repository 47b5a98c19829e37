/* config: what model_config_load accepts may be multiplied without fear, whatever config.json
 * says. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "model/config/config_load.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"
#include "tests/fuzz/say_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bounds that no checkpoint comes near and whose products of three stay far below 2^63. */
enum { LARGEST = 1 << 24 };

static char folder[] = "/tmp/parley_config_XXXXXX";

static void remove_folder(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/config.json", folder);
    unlink(path);
    rmdir(folder);
}

static bool sane(int32_t n)
{
    return n > 0 && n <= LARGEST;
}

static void check(const model_config *c)
{
    must(c->n_layers > 0 && c->n_layers <= MODEL_MAX_LAYERS);
    must(sane(c->vocab_size) && sane(c->hidden_size));
    int32_t n_mixers = 0;
    for (int32_t i = 0; i < c->n_layers; i++) {
        must(c->feeds[i] != FEED_EXPERTS || (sane(c->n_experts) && sane(c->expert_size)));
        must(c->feeds[i] != FEED_DENSE || sane(c->intermediate_size));
        must(c->layers[i] != LAYER_NONE || c->feeds[i] != FEED_NONE);
        n_mixers += c->layers[i] != LAYER_NONE;
    }
    must(c->n_experts_used >= 0 && c->n_experts_used <= c->n_experts &&
         c->n_experts_used <= MODEL_MAX_EXPERTS_USED);
    must(c->shared_expert_size >= 0 && c->n_deepstack >= 0 && c->n_deepstack <= c->n_layers);
    must(c->n_attention_layers + c->n_recurrent_layers == n_mixers - c->n_shared_layers);
    must(c->n_router_groups <= MODEL_MAX_ROUTER_GROUPS && c->n_router_groups_used <= c->n_router_groups);
    must(c->n_router_groups == 0 || c->n_experts % c->n_router_groups == 0);
    must(sane(c->n_heads) && sane(c->full.n_kv_heads) && c->n_heads % c->full.n_kv_heads == 0 &&
         sane(c->full.head_dim));
    if (c->n_recurrent_layers > 0) {
        must(sane(c->delta_n_k) && sane(c->delta_n_v) && c->delta_n_v % c->delta_n_k == 0);
        must(sane(c->delta_dk) && sane(c->delta_dv) && sane(c->conv_kernel));
    }
    must(c->full.rope.pairs >= 0 && 2 * c->full.rope.pairs <= c->full.head_dim && c->full.rope.theta > 0);
    must(c->rms_norm_eps >= 0 && c->rms_norm_eps <= 1 && sane(c->max_position_embeddings));
    must(c->n_mtp_layers == 0 || c->n_mtp_layers == 1);
    must(c->n_stop_ids >= 0 && c->n_stop_ids <= MODEL_MAX_STOP_IDS);
    for (int32_t i = 0; i < c->n_stop_ids; i++) {
        must(c->stop_ids[i] >= 0 && c->stop_ids[i] < c->vocab_size);
    }
    must(strnlen(c->family, sizeof c->family) < sizeof c->family);
    must(strnlen(c->eos_token, sizeof c->eos_token) < sizeof c->eos_token);
}

size_t fuzz_each(uint8_t *data, size_t size, size_t max, unsigned number)
{
    return mutate_json_each(data, size, max, number);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_json(data, size, max, seed, "config");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    if (!ready) {
        char path[64];
        must(mkdtemp(folder) != NULL);
        snprintf(path, sizeof path, "%s/config.json", folder);
        must(symlink(memory_file("", 0), path) == 0);
        atexit(remove_folder);
        ready = true;
    }
    memory_file(data, size);
    model_config cfg;
    err_detail detail = {0};
    say_hide(folder);
    const err_code err = model_config_load(&cfg, json_folder(folder), &detail);
    if (err != ERR_OK) {
        say_error(err, &detail);
        must(detail.text[0] != '\0' && utf8_valid(detail.text, strlen(detail.text)));
        return 0;
    }
    check(&cfg);
    say_config(&cfg);
    return 0;
}
