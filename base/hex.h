/* hex: hexadecimal digits. Any thread; no state.
 *
 *     int byte = hex_byte(text); // of "7e"
 */
#ifndef PARLEY_BASE_HEX_H
#define PARLEY_BASE_HEX_H

/* The value of a digit of either case, 0..15, or -1. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that two digits stand for, or -1; looks at the second only behind a digit. */
static inline int hex_byte(const char *p)
{
    const int high = hex_digit(p[0]), low = high < 0 ? -1 : hex_digit(p[1]);
    return low < 0 ? -1 : high * 16 + low;
}

#endif
