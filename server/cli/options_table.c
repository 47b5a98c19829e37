#include "server/cli/options_table.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/edit_distance.h"

const command_row *option_find_command(const char *name)
{
    size_t n;
    const command_row *commands = option_commands(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

const option_row *option_next(const option_row *after, option_group group, unsigned commands)
{
    size_t n;
    const option_row *rows = option_rows(&n);
    for (const option_row *r = after ? after + 1 : rows; r < rows + n; r++) {
        if ((r->commands & commands) && (group == OPTION_GROUPS || r->group == group)) {
            return r;
        }
    }
    return NULL;
}

static bool is_name(const char *row_name, const char *name, size_t len)
{
    return row_name && strlen(row_name) == len && memcmp(row_name, name, len) == 0;
}

const option_row *option_find(const char *name, size_t len, unsigned commands)
{
    const option_row *r = NULL;
    while ((r = option_next(r, OPTION_GROUPS, commands)) && !is_name(r->name, name, len) &&
           !is_name(r->also, name, len)) {
    }
    return r;
}

const option_row *option_find_letters(const char *letters, unsigned commands)
{
    const option_row *r = NULL;
    while ((r = option_next(r, OPTION_GROUPS, commands)) && !is_name(r->letters, letters, strlen(letters))) {
    }
    return r;
}

const option_row *option_nearest(const char *name, unsigned commands)
{
    const option_row *best = NULL;
    int best_distance = 4;
    for (const option_row *r = NULL; (r = option_next(r, OPTION_GROUPS, commands));) {
        const int d = edit_distance_between(name, r->name), e = edit_distance_between(name, r->also);
        const int nearest = d < e ? d : e;
        if (nearest < best_distance) {
            best_distance = nearest;
            best = r;
        }
    }
    return best;
}

void option_environment_name(char *out, size_t cap, const char *name)
{
    snprintf(out, cap, "PARLEY_%s", name);
    for (char *c = out; *c; c++) {
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    }
}

const char *option_group_name(option_group group)
{
    static const char *const NAMES[] = {
        "Model",  "Memory and speed", "Answers",    "Videos",           "Server",
        "Access", "Uploaded files",   "Kept chats", "For this command", "Program"};
    _Static_assert(ARRAY_LEN(NAMES) == OPTION_GROUPS, "a group without a name");
    return NAMES[group];
}

void option_standard_text(char *out, size_t cap, const option_row *r)
{
    out[0] = '\0';
    if (r->note || r->standard_text) {
        snprintf(out, cap, "%s", r->note ? r->note : r->standard_text);
    } else if (r->kind == OPTION_SWITCH) {
        snprintf(out, cap, "%s", r->place == PLACE_LINE ? "" : r->standard != 0.0 ? "on" : "off");
    } else if (r->kind == OPTION_INT) {
        snprintf(out, cap, "%.0f", r->standard);
    } else if (r->kind == OPTION_NUMBER) {
        snprintf(out, cap, "%g", r->standard);
    }
}
