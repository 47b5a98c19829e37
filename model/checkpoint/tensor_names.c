#include "model/checkpoint/tensor_names.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

typedef struct renaming {
    const char *stored, *canonical;
} renaming;

/* What precedes canonical names: in official exports, text-only ones, and those of MLX tools. The
 * first that fits counts. */
static const renaming PREFIXES[] = {
    {"model.language_model.", ""},
    {"language_model.model.", ""},
    {"language_model.lm_head.", "lm_head."},
    {"language_model.mtp.", "mtp."},
    {"model.visual.", "visual."},
    {"model.vision_tower.", "visual."},
    {"vision_tower.", "visual."},
    {"model.embed_vision.", "visual."},
    {"embed_vision.", "visual."},
    {"model.", ""},
    /* Nemotron-H */
    {"backbone.embeddings.", "embed_tokens."},
    {"backbone.norm_f.", "norm."},
    {"backbone.", ""},
};

/* What follows "layers.N.", or a part of it: each that fits is replaced, in this order. */
static const renaming PARTS[] = {
    /* Nemotron-H: a layer has one part, whose matrices tell which */
    {"norm.", "input_layernorm."},
    {"mixer.in_proj.", "mamba.in_proj."},
    {"mixer.out_proj.", "mamba.out_proj."},
    {"mixer.conv1d.", "mamba.conv1d."},
    {"mixer.A_log", "mamba.A_log"},
    {"mixer.D", "mamba.D"},
    {"mixer.dt_bias", "mamba.dt_bias"},
    {"mixer.norm.", "mamba.norm."},
    {"mixer.q_proj.", "self_attn.q_proj."},
    {"mixer.k_proj.", "self_attn.k_proj."},
    {"mixer.v_proj.", "self_attn.v_proj."},
    {"mixer.o_proj.", "self_attn.o_proj."},
    {"mixer.", "mlp."},
    /* GPT-OSS, Gemma 4 */
    {"mlp.router.", "mlp.gate."},
    {"router.proj.", "mlp.gate."},
    {"router.", "mlp.gate."},
    {"experts.switch_glu.", "mlp.experts."}, /* as MLX tools name those of Gemma 4 */
    {"experts.", "mlp.experts."},
    /* all experts' matrices in one, as MLX tools name those of GPT-OSS */
    {"mlp.experts.gate_proj.weight", "mlp.experts.gate_proj"},
    {"mlp.experts.up_proj.weight", "mlp.experts.up_proj"},
    {"mlp.experts.down_proj.weight", "mlp.experts.down_proj"},
    {"mlp.experts.gate_proj.bias", "mlp.experts.gate_proj_bias"},
    {"mlp.experts.up_proj.bias", "mlp.experts.up_proj_bias"},
    {"mlp.experts.down_proj.bias", "mlp.experts.down_proj_bias"},
    /* MiniMax-M2 */
    {"block_sparse_moe.e_score_correction_bias", "mlp.gate.e_score_correction_bias"},
    {"block_sparse_moe.", "mlp."},
    /* shared experts that are one matrix */
    {"mlp.shared_experts.", "mlp.shared_expert."},
};

/* The matrices of an expert, behind "mlp.experts.E.". */
static const renaming EXPERTS[] = {{"w1.", "gate_proj."}, {"w2.", "down_proj."}, {"w3.", "up_proj."}};

/* The same of all experts in one tensor, behind "mlp.switch_mlp.": MLX's names where there is no gate. */
static const renaming SWITCH[] = {{"fc1.", "up_proj."}, {"fc2.", "down_proj."}};

/* Where a name goes on behind `begin` and a number; NULL if it does not begin so. */
static char *behind_number(char *name, const char *begin)
{
    const size_t n = strlen(begin);
    if (strncmp(name, begin, n) != 0) {
        return NULL;
    }
    const size_t digits = strspn(name + n, "0123456789");
    return digits > 0 && name[n + digits] == '.' ? name + n + digits + 1 : NULL;
}

/* Replaces the beginning of `at` by what the table says; `room` bytes are there. */
static void replace(char *at, size_t room, const renaming *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t old = strlen(table[i].stored), new = strlen(table[i].canonical);
        const size_t rest = strlen(at) + 1;
        if (strncmp(at, table[i].stored, old) == 0 && rest - old + new <= room) {
            memmove(at + new, at + old, rest - old);
            memcpy(at, table[i].canonical, new);
        }
    }
}

char *tensor_name_make(arena *memory, const char *stored)
{
    enum { LONGER = 32 }; /* by how much a renaming may grow a name */
    const size_t cap = strlen(stored) + LONGER + 1;
    char *name = arena_calloc(memory, cap, 1);
    if (!name) {
        return NULL;
    }
    snprintf(name, cap, "%s", stored);
    for (size_t i = 0; i < ARRAY_LEN(PREFIXES); i++) {
        if (strncmp(stored, PREFIXES[i].stored, strlen(PREFIXES[i].stored)) == 0) {
            replace(name, cap, &PREFIXES[i], 1);
            break;
        }
    }
    char *inner = strncmp(name, "visual.", strlen("visual.")) == 0 ? strstr(name, ".linear.") : NULL;
    if (inner) { /* Gemma 4: a product inside what holds it between bounds */
        replace(inner, cap - (size_t)(inner - name), &(renaming){".linear.", "."}, 1);
    }
    char *part = behind_number(name, "layers.");
    if (part) {
        replace(part, cap - (size_t)(part - name), PARTS, ARRAY_LEN(PARTS));
        char *matrix = behind_number(part, "mlp.experts.");
        if (matrix) {
            replace(matrix, cap - (size_t)(matrix - name), EXPERTS, ARRAY_LEN(EXPERTS));
        }
        static const char all[] = "mlp.switch_mlp.";
        if (strncmp(part, all, sizeof all - 1) == 0) {
            char *which = part + sizeof all - 1;
            replace(which, cap - (size_t)(which - name), SWITCH, ARRAY_LEN(SWITCH));
        }
    }
    return name;
}
