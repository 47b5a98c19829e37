#include "model/checkpoint/gguf_config_job.h"

#include <stdio.h>

enum { NAME_BYTES = 64, KEY_BYTES = 160 };

/* The value PREFIX.name. */
const gguf_value *gguf_job_find(const gguf_job *j, const char *name)
{
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s", j->prefix, name);
    return gguf_find(j->f, key);
}

/* A count; for lists with a number for each layer the largest counts, as layers of another kind say
 * 0. */
bool gguf_job_count(const gguf_job *j, const char *name, uint64_t *out)
{
    const gguf_value *v = gguf_job_find(j, name);
    int64_t n = 0;
    if (!v || !v->is_array) {
        return gguf_uint(v, out);
    }
    *out = 0;
    for (uint64_t i = 0; i < v->n; i++) {
        if (!gguf_int_at(v, i, &n) || n < 0) {
            return false;
        }
        *out = (uint64_t)n > *out ? (uint64_t)n : *out;
    }
    return v->n > 0;
}

err_code gguf_job_missing(const gguf_job *j, const char *name)
{
    return err_set(j->detail, ERR_CORRUPT, "%s: metadata %s.%s is missing or out of range", j->path,
                   j->prefix, name);
}

err_code gguf_job_write_counts(const gguf_job *j, const gguf_count *counts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value = 0;
        if (gguf_job_count(j, counts[i].name, &value)) {
            bytes_printf(j->out, ",\"%s\":%llu", counts[i].field, (unsigned long long)value);
        } else if (counts[i].required) {
            return gguf_job_missing(j, counts[i].name);
        }
    }
    return ERR_OK;
}

/* A number, where the file has it. */
void gguf_job_write_number(const gguf_job *j, const char *name, const char *field)
{
    double value = 0;
    if (gguf_number(gguf_job_find(j, name), &value)) {
        bytes_printf(j->out, ",\"%s\":%.9g", field, value);
    }
}

bool gguf_job_has_tensor(const gguf_job *j, uint64_t layer, const char *name)
{
    char full[NAME_BYTES];
    snprintf(full, sizeof full, "blk.%llu.%s", (unsigned long long)layer, name);
    return tensor_table_find(j->tensors, full) != NULL;
}
