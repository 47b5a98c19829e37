/* config_read: the parts that a family's config reader is put together from. Each reads its fields,
 * checks them against bounds far above every released model, so that products of dimensions stay
 * inside size_t and int32_t, and names the field and the file in its error. Loading thread.
 *
 *     config_read_sizes(cfg, text, &(config_defaults){.head_dim = 256});
 *
 * The first fault of a file is kept: what is read after it gives the least number allowed, and no
 * message. So a reader asks for one field after the other, and whoever began looks at the fault at
 * the end.
 */
#ifndef PARLEY_MODEL_CONFIG_CONFIG_READ_H
#define PARLEY_MODEL_CONFIG_CONFIG_READ_H

#include "base/err.h"
#include "base/json.h"
#include "model/config/config.h"

enum {
    CONFIG_MAX_WIDTH = 1 << 20, /* hidden, intermediate */
    CONFIG_MAX_VOCAB = 1 << 24,
    CONFIG_MAX_HEADS = 4096,
    CONFIG_MAX_HEAD_DIM = 4096,
    CONFIG_MAX_EXPERTS = 4096,
    CONFIG_MAX_CONTEXT = 1 << 26,
};

/* Where fields are looked for: an object, and the file it came from, for messages. */
typedef struct config_section {
    const json *object;
    const char *path;
    err_detail *detail;
    err_code *err; /* the first fault of the file, ERR_OK before */
} config_section;

/* Keeps a fault, unless there was one before; the path is put in front of the text. */
void config_fail(const config_section *s, err_code code, const char *format, ...) PRINTF_LIKE(3, 4);

/* An integer in [min, max]; absent or null gives the fallback (INT32_MIN: the field is
 * required). */
int32_t config_int(const config_section *s, const char *name, int32_t min, int32_t max, int32_t fallback);
/* A finite number in [min, max]; absent or null gives the fallback (NAN: the field is required). */
double config_number(const config_section *s, const char *name, double min, double max, double fallback);
/* A text that, where present, must be one of the two words. */
void config_expect_word(const config_section *s, const char *name, const char *word, const char *other);
/* A flag that must not be set. */
void config_refuse_flag(const config_section *s, const char *name);

/* What a family takes for fields that its files may leave out. */
typedef struct config_defaults {
    int32_t head_dim;
    int32_t n_layers;         /* 0: num_hidden_layers is required */
    double rotary_fraction;   /* partial_rotary_factor */
    double rope_theta;        /* 0: it is required */
    int32_t mrope_section[3]; /* {0}: positions of text alone, unless the file says otherwise */
    bool mrope_split;         /* pairs of an axis stand together, where the file does not say */
} config_defaults;

/* The head size of families that derive it from hidden_size and num_attention_heads. */
int32_t config_head_dim(const config_section *text);
/* Vocabulary, widths, layers, heads, context, epsilon. */
void config_read_sizes(model_config *cfg, const config_section *text, const config_defaults *d);
/* Counts the kinds of layers; for readers that fill in `layers` themselves. */
void config_count_layers(model_config *cfg);
/* layer_types, or where it is absent: every `interval`-th layer is attention, where
 * full_attention_interval overrides the number. 1: all are, and no other kind is accepted. */
void config_read_layers(model_config *cfg, const config_section *text, int32_t interval);
/* layer_types alone, where the file has it: kinds that are accepted as bits 1 << layer_kind. */
void config_read_layer_types(model_config *cfg, const config_section *text, unsigned kinds);
/* The counts of each kind of layer, when cfg->layers is filled. */
void config_count_layers(model_config *cfg);
/* layer_types of full and of sliding attention (absent: cfg->layers as it was filled), and the window;
 * both kinds have the heads that config_read_sizes has read. */
void config_read_windows(model_config *cfg, const config_section *text);
/* The same; absent: by turns, sliding first. */
void config_read_sliding(model_config *cfg, const config_section *text);
/* Positions where each kind of layer has its own: rope_parameters.KIND, over all pairs of a head, of
 * which partial_rotary_factor says how many are turned. */
void config_read_kind_rope(model_config *cfg, const config_section *text, const char *kind,
                           attention_spec *spec);
void config_read_deltanet(model_config *cfg, const config_section *text);
void config_read_rope(model_config *cfg, const config_section *text, const config_defaults *d);
/* The dense width, which is required unless every layer has experts. After config_read_experts. */
void config_read_dense(model_config *cfg, const config_section *text);
/* All of a model of Llama's form: full attention in every layer, no norms of queries and keys, a dense
 * feed-forward part without biases. */
void config_read_llama(model_config *cfg, const config_section *text);
/* Experts of all layers but those of mlp_only_layers, every decoder_sparse_step-th (absent: all).
 * shared: there is a shared expert beside them. norm_topk_prob has no part in it. */
void config_read_experts(model_config *cfg, const config_section *text, bool shared);
/* How many experts there are, under that name, and how many a token uses; a softmax router. The
 * reader adds expert_size. */
void config_read_expert_sizes(model_config *cfg, const config_section *text, const char *count);
/* A sigmoid router: n_group, topk_group, routed_scaling_factor, norm_topk_prob. After the experts. */
void config_read_sigmoid_router(model_config *cfg, const config_section *text);
/* How many layers the draft head has, under that name; at most 1 is supported. */
void config_read_mtp(model_config *cfg, const config_section *text, const char *name, int32_t fallback);

#endif
