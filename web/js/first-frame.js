/* Puts the chosen theme and text size on the document before its first frame: a classic script,
 * which that frame waits for. js/state/settings.js keeps them from then on. */
try {
    const { theme, textSize } = JSON.parse(localStorage.getItem('parley.settings') ?? '{}');
    if (theme) document.documentElement.dataset.theme = theme;
    if (textSize) document.documentElement.dataset.text = textSize;
} catch {
    // Damaged or forbidden storage: the defaults do.
}
