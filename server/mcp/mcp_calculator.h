/* mcp_calculator: the value of an arithmetic expression: + - * / % ^, brackets, names of functions and
 * constants, in double precision. Any thread; no state.
 *
 *     double v; char why[80];
 *     if (mcp_calculate(&v, "2 * (3 + 4)", why, sizeof why)) { printf("%.15g\n", v); }   // 14
 *
 * A digit group may be written with ' or _ or, before three digits, a comma; x, * and the signs of
 * multiplication and division mean what they say. Depth and length are bounded.
 */
#ifndef PARLEY_SERVER_MCP_MCP_CALCULATOR_H
#define PARLEY_SERVER_MCP_MCP_CALCULATOR_H

#include <stdbool.h>
#include <stddef.h>

/* False for what is no expression, or has no value: why is a sentence for it. */
bool mcp_calculate(double *out, const char *text, char *why, size_t cap);

#endif
