/* config: model_config, the immutable recipe that config_load reads. Plain data; names follow
 * config.json.
 *
 *     size_t n = model_config_feature_width(&cfg);
 */
#ifndef PARLEY_MODEL_CONFIG_CONFIG_H
#define PARLEY_MODEL_CONFIG_CONFIG_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MODEL_MAX_LAYERS = 256,
    MODEL_MAX_STOP_IDS = 16,
    MODEL_MAX_EXPERTS_USED = 64,
    MODEL_MAX_ROUTER_GROUPS = 64
};

/* What a layer mixes tokens with; NONE: it is a feed-forward part alone. */
typedef enum layer_kind {
    LAYER_DELTANET,
    LAYER_ATTENTION,
    LAYER_SLIDING, /* attention to a window of the latest tokens */
    LAYER_MAMBA,
    LAYER_NONE,
    LAYER_KINDS,
} layer_kind;

/* The feed-forward part behind it; BOTH: experts beside a dense part; NONE: there is no such part. */
typedef enum feed_kind { FEED_DENSE, FEED_EXPERTS, FEED_BOTH, FEED_NONE } feed_kind;

/* What stands between the matrices of a feed-forward part: silu(gate) * up, or gelu, its tanh form, of
 * gate; where there is no gate, relu(up)^2; or (up + 1) * gate * sigmoid(1.702 * gate), both cut at swiglu_limit. */
typedef enum ffn_kind { FFN_SILU, FFN_GELU_TANH, FFN_RELU2, FFN_SWIGLU_CLAMPED } ffn_kind;

/* What queries and keys are normed over before they are rotated. */
typedef enum qk_norm { QK_NORM_HEAD, QK_NORM_NONE, QK_NORM_WIDTH } qk_norm;

/* How a router's logits become scores; SIGMOID: a bias of each expert counts for the choice, not for
 * the weight. */
typedef enum router_kind { ROUTER_SOFTMAX, ROUTER_SIGMOID } router_kind;

/* How queries and keys are turned by their positions. */
typedef struct rope_spec {
    double theta;
    int32_t pairs;   /* pair i of a head is (x[i], x[i + pairs]); 0: nothing is turned */
    int32_t n_still; /* the last pairs, which are not turned */
    /* YaRN: frequencies that turn less than `slow` times over `original` tokens are divided by the
     * factor, those that turn more than `fast` times are kept, and between the two it is shared out
     * (from and to whole pairs, with yarn_truncate); factor 0: none of this. */
    double yarn_factor, yarn_original, yarn_fast, yarn_slow;
    /* Llama 3: the same with one ramp, counted in the original context; factor 0: none of this. */
    double llama3_factor, llama3_original, llama3_fast, llama3_slow;
    double linear_factor; /* every frequency is divided by it; 0: by nothing */
    bool yarn_truncate;
    double magnitude; /* cosines and sines are multiplied by it */
} rope_spec;

/* What attention layers of one kind have of their own. */
typedef struct attention_spec {
    int32_t n_kv_heads, head_dim;
    int32_t window; /* tokens that a row sees, itself the last of them; 0: all before it */
    rope_spec rope;
    bool keys_are_values; /* values are keys as they are projected: there is no v_proj */
} attention_spec;

typedef struct model_config {
    char family[48]; /* model_type at the top level: "qwen3_5_moe" */
    int32_t vocab_size, hidden_size, n_layers;
    int32_t intermediate_size; /* of the dense feed-forward part; 0 if no layer has one */
    int32_t n_heads;
    layer_kind layers[MODEL_MAX_LAYERS];
    feed_kind feeds[MODEL_MAX_LAYERS];
    bool no_rope[MODEL_MAX_LAYERS]; /* attention layers whose heads are not rotated */
    int32_t
        state_of[MODEL_MAX_LAYERS]; /* which KV cache, or which recurrent state, a layer has: counted apart */
    attention_spec full, sliding;   /* of LAYER_ATTENTION and of LAYER_SLIDING */
    int32_t n_attention_layers;     /* of both kinds */
    int32_t n_sliding_layers, n_recurrent_layers; /* the latter GatedDeltaNet or Mamba-2 */
    /* Queries at position p are multiplied with 1 + growth * log(1 + floor(p / tokens)); 0: nothing. */
    double query_growth, query_growth_tokens;
    int32_t
        n_shared_layers; /* the last layers, which read the cache of the last one before them of their kind */
    double attention_scale;  /* of queries; 0: 1 / sqrt(head_dim) */
    bool value_norm;         /* values are normed head by head, without a weight */
    bool attention_gate;     /* q_proj holds for each head a query and the gate of its output */
    bool attention_biases;   /* of queries, keys and values; of the output where the file has one */
    bool attention_sinks;    /* each head has a weight of the softmax that goes to no value */
    bool zero_centred_norms; /* published as w and used as 1 + w */
    bool output_norms;       /* what a layer's parts give is normed before it is added */
    bool layer_scalars;      /* what a layer gives is multiplied with a number of its own */
    float residual_scale;    /* what a layer's parts give is multiplied with before it is added; 0: nothing */
    float logit_scale;       /* what logits are multiplied with; 0: nothing */
    float embed_scale;       /* what embeddings are multiplied with; 0: nothing */
    float logit_softcap;     /* logits become cap * tanh(logit / cap); 0: they stay */
    /* Inputs of their own that every layer reads, layer_input_size for each: from a table of all token
     * ids (of pad_token_id where media stand) and from the embedding; 0: none. */
    int32_t layer_input_size, layer_input_vocab, pad_token_id;
    bool shared_layers_are_wide; /* the dense part of n_shared_layers has twice the width */
    qk_norm qk_norm;
    ffn_kind ffn; /* of experts too */
    double swiglu_limit;
    /* experts; zeros if there are none */
    int32_t n_experts, n_experts_used, expert_size;
    int32_t shared_expert_size; /* 0: there is none */
    bool shared_expert_ungated; /* it is added as it is, without a gate of its own */
    int32_t expert_latent_size; /* what experts read and write, behind two projections; 0: hidden_size */
    bool norm_expert_weights;   /* the weights of the experts used are divided by their sum */
    bool router_norm;           /* the router reads the layer's input with a norm of its own */
    bool expert_scales;         /* the weight of each expert is multiplied with a number of its own */
    bool expert_biases;         /* of the router and of every expert's matrices */
    router_kind router;
    float routed_scale;                            /* what their weights are multiplied with at last */
    int32_t n_router_groups, n_router_groups_used; /* experts are chosen from the best groups alone */
    /* The recurrent layers. GatedDeltaNet: key and value heads and their sizes. Mamba-2, whose B and C
     * are keys and queries and whose x are values: groups, heads, the size of a state, that of a head. */
    int32_t delta_n_k, delta_n_v, delta_dk, delta_dv, conv_kernel;
    bool mamba_conv_bias;
    float mamba_least_dt, mamba_most_dt; /* time steps are held between these */
    bool delta_tiled; /* value head h reads key head h % n_k, not h / (n_v / n_k); a property of the file */
    int32_t mrope_section[3]; /* pairs that read T, H and W */
    bool mrope_interleaved;
    bool rope_bf16; /* frequencies rounded to bf16; see model_open_options */
    float rms_norm_eps;
    bool tie_word_embeddings;
    int32_t max_position_embeddings;
    int32_t n_mtp_layers; /* 0 or 1, from the config; model_has_mtp says whether the tensors are there */
    /* special ids, -1 if absent */
    int32_t image_token_id, video_token_id, vision_start_token_id, vision_end_token_id;
    int32_t stop_ids[MODEL_MAX_STOP_IDS]; /* generation_config eos united with the tokenizer's eos */
    int32_t n_stop_ids;
    int32_t bos_token_id; /* -1: none */
    char bos_token[64];   /* the tokenizer's bos as text, "" if it names none */
    char eos_token[64];   /* the tokenizer's eos as text, "" if unknown; model_open adds its id to stop_ids */
    bool has_vision;      /* a vision_config is present */
    /* In sliding layers the rows of an image, or of a frame, see each other, whichever comes first */
    bool media_see_both_ways;
    /* Templates give a placeholder alone: the vision_start and vision_end tokens are put around it, and
     * the time of a frame stands before them as mm:ss */
    bool bare_placeholders;
    /* A video is one run of placeholders without times in the text; its frames, in pairs, stand apart on
     * the first axis of positions: by so many positions a second, or (0) by one each */
    bool whole_videos;
    double positions_per_second;
    bool text_alone;     /* the family's vision tower is not supported */
    int32_t n_deepstack; /* first layers behind which the vision tower's inner features are added */
    /* generation_config.json; has_* false where the file is silent */
    bool do_sample;
    float temperature, top_p, min_p, repetition_penalty;
    int32_t top_k;
} model_config;

static inline bool layer_is_attention(layer_kind kind)
{
    return kind == LAYER_ATTENTION || kind == LAYER_SLIDING;
}

/* Of an attention layer's kind. */
static inline const attention_spec *model_config_attention(const model_config *cfg, layer_kind kind)
{
    return kind == LAYER_SLIDING ? &cfg->sliding : &cfg->full;
}

/* What a query is multiplied with before the softmax. */
static inline float model_config_attention_scale(const model_config *cfg, const attention_spec *spec)
{
    return cfg->attention_scale > 0 ? (float)cfg->attention_scale : 1.0f / sqrtf((float)spec->head_dim);
}

/* Whether sliding layers keep the keys and values of their window alone. Without a full layer beside
 * them they keep all. */
static inline bool model_config_has_ring(const model_config *cfg)
{
    return cfg->n_sliding_layers > 0 && cfg->n_sliding_layers < cfg->n_attention_layers;
}

/* Floats of a row that the vision encoder gives for a placeholder: its embedding, then what is
 * added behind each of the first n_deepstack layers. */
static inline size_t model_config_feature_width(const model_config *cfg)
{
    return (size_t)cfg->hidden_size * (1 + (size_t)cfg->n_deepstack);
}

/* Channels of a recurrent layer's convolution. */
static inline size_t model_config_channels(const model_config *cfg)
{
    return 2 * (size_t)cfg->delta_n_k * (size_t)cfg->delta_dk +
           (size_t)cfg->delta_n_v * (size_t)cfg->delta_dv;
}

/* Floats that an expert reads and writes for a row. */
static inline size_t model_config_expert_width(const model_config *cfg)
{
    return (size_t)(cfg->expert_latent_size ? cfg->expert_latent_size : cfg->hidden_size);
}

/* Rows of a prompt that are best computed together. With experts each gets about MOE_ROWS of them: rows of an expert come
 * in steps of 16, so that less than a tenth of the products fills these up, and its weights are read once for that many. */
static inline int32_t model_config_prompt_rows(const model_config *cfg)
{
    enum { ROWS = 512, MOST = 2048, MOE_ROWS = 96, STEP = 64 };
    const int64_t wanted = cfg->n_experts > 0 ? (int64_t)MOE_ROWS * cfg->n_experts / cfg->n_experts_used : 0;
    return wanted >= MOST ? MOST : wanted <= ROWS ? ROWS : (int32_t)((wanted + STEP - 1) / STEP * STEP);
}

/* Whether the id ends an answer. */
bool model_config_is_stop(const model_config *cfg, int32_t id);

/* Adds an id to stop_ids unless it is there, out of the vocabulary, or the list is full. */
void model_config_add_stop(model_config *cfg, int64_t id);

#endif
