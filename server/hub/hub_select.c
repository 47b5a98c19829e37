#include "server/hub/hub_select.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"

static const char WEIGHTS[] = "model.safetensors";

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcasecmp(text + n - n_end, end) == 0;
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- names of quantizations ---- */

/* "-00002-of-00003" in front of ".gguf": its beginning, and which part it is; NULL if there is none. */
static const char *part_of(const char *name, size_t n_stem, unsigned *no)
{
    enum { CHARS = 15 };
    unsigned of = 0;
    int end = 0;
    if (n_stem <= CHARS || sscanf(name + n_stem - CHARS, "-%5u-of-%5u%n", no, &of, &end) != 2 ||
        end != CHARS) {
        return NULL;
    }
    return name + n_stem - CHARS;
}

static size_t stem_length(const char *name, unsigned *no)
{
    const size_t n = strlen(name) - strlen(".gguf");
    const char *part = part_of(name, n, no);
    return part ? (size_t)(part - name) : n;
}

/* Whether a word is a quantization: Q4_K_M, IQ4_XS, BF16, F16, MXFP4_MOE, TQ1_0. */
static bool is_quant(const char *word, size_t n)
{
    static const char *const STARTS[] = {"IQ", "TQ", "Q", "BF16", "F16", "F32", "MXFP", "NVFP"};
    for (size_t i = 0; i < ARRAY_LEN(STARTS); i++) {
        const size_t n_start = strlen(STARTS[i]);
        if (n >= n_start && strncasecmp(word, STARTS[i], n_start) == 0) {
            const bool ends_in_digit = isdigit((unsigned char)STARTS[i][n_start - 1]);
            return ends_in_digit ? n == n_start || word[n_start] == '_'
                                 : n > n_start && isdigit((unsigned char)word[n_start]);
        }
    }
    return false;
}

/* The last words of a name, from the one that is a quantization on: "UD-Q4_K_XL" of
 * "Qwen3-8B-UD-Q4_K_XL"; all of it if none is. */
static void quant_of(char out[HUB_QUANT_MAX], const char *name, size_t n)
{
    size_t from = 0;
    for (size_t i = 0, end; i < n; i = end + 1) {
        for (end = i; end < n && !strchr("-.", name[end]);) {
            end++;
        }
        from = is_quant(name + i, end - i) ? i : from;
    }
    if (from >= 3 && strncasecmp(name + from - 3, "UD-", 3) == 0) {
        from -= 3;
    }
    snprintf(out, HUB_QUANT_MAX, "%.*s", (int)(n - from), name + from);
}

static bool is_vision_name(const char *path)
{
    return strstr(last_name(path), "mmproj") != NULL;
}

static bool is_model_name(const char *path)
{
    return ends_with(path, ".gguf") && !is_vision_name(path) && strncmp(last_name(path), "imatrix", 7) != 0;
}

/* Whether two files are parts of one model. */
static bool same_model(const char *a, const char *b)
{
    unsigned no;
    const size_t n = (size_t)(last_name(a) - a) + stem_length(last_name(a), &no);
    return n == (size_t)(last_name(b) - b) + stem_length(last_name(b), &no) && strncmp(a, b, n) == 0;
}

size_t hub_quants(hub_quant **out, const hub_listing *l)
{
    size_t n = 0;
    *out = calloc(l->n + 1, sizeof **out);
    for (size_t i = 0; *out && i < l->n; i++) {
        const hub_file *f = &l->files[i];
        unsigned no = 1;
        if (!is_model_name(f->path)) {
            continue;
        }
        const size_t n_stem = stem_length(last_name(f->path), &no);
        if (n > 0 && no > 1 && same_model((*out)[n - 1].first->path, f->path)) {
            (*out)[n - 1].size += f->size; /* paths are in order, so parts follow each other */
        } else {
            (*out)[n] = (hub_quant){.first = f, .size = f->size};
            quant_of((*out)[n++].name, last_name(f->path), n_stem);
        }
    }
    return n;
}

/* ---- GGUF ---- */

/* The quantization that is meant: of the whole name, or else the only one that ends so ("Q4_K_XL" for
 * "UD-Q4_K_XL"). */
static const hub_quant *find_quant(const hub_quant *all, size_t n, const char *name)
{
    const hub_quant *found = NULL;
    size_t n_found = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcasecmp(all[i].name, name) == 0) {
            return &all[i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        const size_t n_name = strlen(name), n_all = strlen(all[i].name);
        if (n_all > n_name && strchr("-.", all[i].name[n_all - n_name - 1]) && ends_with(all[i].name, name)) {
            found = &all[i];
            n_found++;
        }
    }
    return n_found == 1 ? found : NULL;
}

static err_code unknown_quant(const hub_quant *all, size_t n, const char *name, err_detail *detail)
{
    bytes list = bytes_empty(ERR_TEXT_MAX);
    for (size_t i = 0; i < n; i++) {
        bytes_printf(&list, "%s%s (%.1f GB)", i ? ", " : "", all[i].name, (double)all[i].size / 1e9);
    }
    const err_code err = name[0]
                             ? err_set(detail, ERR_NOT_FOUND, "there is no quantization %s; there are: %s",
                                       name, bytes_str(&list))
                             : err_set(detail, ERR_NOT_FOUND,
                                       "name one of its quantizations, as in ORG/NAME:%s; there are: %s",
                                       all[0].name, bytes_str(&list));
    bytes_deinit(&list);
    return err;
}

/* The vision tower that goes with a model: of 16 bits if there is one, rather from its own folder. */
static const hub_file *find_vision(const hub_listing *l, const hub_file *model)
{
    static const char *const ORDER[] = {"bf16", "f16", "f32", ""};
    const size_t n_folder = (size_t)(last_name(model->path) - model->path);
    for (int own = 1; own >= 0; own--) {
        for (size_t k = 0; k < ARRAY_LEN(ORDER); k++) {
            for (size_t i = 0; i < l->n; i++) {
                const char *path = l->files[i].path, *name = last_name(path);
                const size_t n = (size_t)(name - path);
                const bool is_near = own ? n == n_folder && strncmp(path, model->path, n) == 0 : n == 0;
                char small[HUB_PATH_MAX];
                size_t at = 0;
                for (; name[at]; at++) {
                    small[at] = (char)tolower((unsigned char)name[at]);
                }
                small[at] = '\0';
                if (is_near && ends_with(name, ".gguf") && is_vision_name(path) && strstr(small, ORDER[k])) {
                    return &l->files[i];
                }
            }
        }
    }
    return NULL;
}

static err_code select_gguf(hub_selection *out, const hub_listing *l, const char *quant, err_detail *detail)
{
    static const char *const USUAL[] = {"Q4_K_M", "Q8_0"};
    hub_quant *all = NULL;
    const size_t n = hub_quants(&all, l);
    const hub_quant *chosen = quant[0] ? find_quant(all, n, quant) : n == 1 ? &all[0] : NULL;
    err_code err = ERR_OK;
    for (size_t i = 0; !quant[0] && !chosen && i < ARRAY_LEN(USUAL); i++) {
        chosen = find_quant(all, n, USUAL[i]);
    }
    if (!all) {
        err = err_set(detail, ERR_NOMEM, "there is not enough memory for the list of files");
    } else if (!chosen && n > 0) {
        err = unknown_quant(all, n, quant, detail);
    } else if (!chosen) {
        err = err_set(detail, ERR_NOT_FOUND,
                      quant[0]
                          ? "there are no GGUF files in it, so there is no quantization to choose"
                          : "there is no model in it that Parley reads: neither config.json with safetensors "
                            "files nor a GGUF file");
    }
    for (size_t i = 0; chosen && i < l->n; i++) {
        if (is_model_name(l->files[i].path) && same_model(l->files[i].path, chosen->first->path)) {
            out->files[out->n++] = &l->files[i];
        }
    }
    if (chosen) {
        snprintf(out->quant, sizeof out->quant, "%s", chosen->name);
        out->is_gguf = true;
        out->vision = find_vision(l, chosen->first);
        if (out->vision) {
            out->files[out->n++] = out->vision;
        }
    }
    free(all);
    return err;
}

/* ---- safetensors ---- */

bool hub_wants_folder(const hub_listing *l, const char *quant)
{
    return !quant[0] && hub_listing_find(l, "config.json") &&
           (hub_listing_find(l, HUB_INDEX) || hub_listing_find(l, WEIGHTS));
}

static bool has_file(const hub_selection *s, const hub_file *f)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->files[i] == f) {
            return true;
        }
    }
    return false;
}

static void take(hub_selection *s, const hub_file *f)
{
    if (f && !has_file(s, f)) {
        s->files[s->n++] = f;
    }
}

static err_code select_folder(hub_selection *out, const hub_listing *l, const json *index, err_detail *detail)
{
    static const char *const DOCUMENTS[] = {"config.json",
                                            "generation_config.json",
                                            "tokenizer.json",
                                            "tokenizer_config.json",
                                            "chat_template.jinja",
                                            "chat_template.json",
                                            "preprocessor_config.json",
                                            "video_preprocessor_config.json",
                                            "processor_config.json",
                                            HUB_INDEX};
    static const char *const SIDES[] = {"model-mtp.safetensors", "mtp/config.json", "mtp/weights.safetensors",
                                        "mtp/model.safetensors"};
    if (!hub_listing_find(l, "tokenizer.json")) {
        return err_set(detail, ERR_NOT_FOUND, "it has no tokenizer.json, which Parley needs");
    }
    for (size_t i = 0; i < ARRAY_LEN(DOCUMENTS); i++) {
        take(out, hub_listing_find(l, DOCUMENTS[i]));
    }
    for (const json *v = json_child(json_get(index, "weight_map")); v; v = json_next(v)) {
        const hub_file *f = hub_listing_find(l, json_str(v, ""));
        if (!f) {
            return err_set(detail, ERR_NOT_FOUND, "its index names %.100s, which is not there",
                           json_str(v, ""));
        }
        take(out, f);
    }
    if (!index) {
        take(out, hub_listing_find(l, WEIGHTS));
    }
    for (size_t i = 0; i < ARRAY_LEN(SIDES); i++) {
        take(out, hub_listing_find(l, SIDES[i]));
    }
    return ERR_OK;
}

err_code hub_select(hub_selection *out, const hub_listing *l, const char *quant, const json *index,
                    err_detail *detail)
{
    *out = (hub_selection){.files = calloc(l->n + 1, sizeof *out->files)};
    if (!out->files) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for the list of files");
    }
    return hub_wants_folder(l, quant) ? select_folder(out, l, index, detail)
                                      : select_gguf(out, l, quant, detail);
}

void hub_selection_deinit(hub_selection *s)
{
    free(s->files);
    *s = (hub_selection){0};
}
