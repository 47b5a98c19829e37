/* Puts language, theme and text size on the document before its first frame: a classic script, which
 * that frame waits for. js/state/settings.js keeps them, js/language.js finds the texts. */
{
    const root = document.documentElement;
    let chosen = {};
    try {
        chosen = JSON.parse(localStorage.getItem('parley.settings') ?? '{}');
    } catch {
        // Damaged or forbidden storage: the defaults do.
    }
    const { theme, textSize, language } = chosen;
    if (theme) root.dataset.theme = theme;
    if (textSize) root.dataset.text = textSize;
    const known = ['en', 'de', 'fr', 'es', 'zh', 'ja', 'ar'];
    const wanted = [language, ...navigator.languages].map((one) => `${one ?? ''}`.split('-')[0]);
    root.lang = wanted.find((one) => known.includes(one)) ?? 'en';
    root.dir = root.lang === 'ar' ? 'rtl' : 'ltr';
    if (root.lang !== 'en') {
        const ahead = { rel: 'preload', as: 'fetch', crossOrigin: 'anonymous', href: `languages/${root.lang}.json` };
        document.head.append(Object.assign(document.createElement('link'), ahead));
    }
}
