/* hex: hexadecimal digits. Any thread; no state.
 *
 *     int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);
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

#endif
