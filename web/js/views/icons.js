/** The page's icons: line drawings on a 24-unit grid, coloured by the text around them. */
import { html, svg } from '../../vendor/lit.js';

const PATHS = {
    menu: svg`<path d="M4 7h16M4 12h10M4 17h16" />`,
    clip: svg`<path d="m19 11.500-7.300 7.300a4.6 4.6 0 0 1-6.500-6.500l7.800-7.800a3.1 3.1 0 0 1 4.400 4.400l-7.700 7.700a1.55 1.55 0 0 1-2.200-2.200l6.900-6.900" />`,
    leaves: svg`<path d="M13.5 4.5h6v6M19 5l-8.500 8.500M17.500 14v4.500a1.500 1.500 0 0 1-1.500 1.500H6a1.500 1.500 0 0 1-1.500-1.500v-10A1.500 1.500 0 0 1 6 7h4.500" />`,
    more: svg`<circle cx="6" cy="12" r="1" fill="currentColor" /><circle cx="12" cy="12" r="1" fill="currentColor" /><circle cx="18" cy="12" r="1" fill="currentColor" />`,
    pin: svg`<path d="M12 16v5M8 4h8l-1 6 3 3.500V16H6v-2.500L9 10Z" />`,
    folder: svg`<path d="M3.5 7A2 2 0 0 1 5.500 5h4l2 2.500h7a2 2 0 0 1 2 2V17a2 2 0 0 1-2 2h-13a2 2 0 0 1-2-2Z" />`,
    archive: svg`<rect x="3.5" y="5" width="17" height="4" rx="1" /><path d="M5 9v9a1 1 0 0 0 1 1h12a1 1 0 0 0 1-1V9M10 13h4" />`,
    branch: svg`<circle cx="7" cy="6" r="2" /><circle cx="7" cy="18" r="2" /><circle cx="17" cy="8" r="2" /><path d="M7 8v8M17 10c0 4-10 2-10 6" />`,
    quote: svg`<path d="M10 7H5v6h4c0 2-1 3-3 4M19 7h-5v6h4c0 2-1 3-3 4" />`,
    hidden: svg`<path d="M5 12a7 7 0 0 1 14 0v8l-2.500-2-2.200 2-2.300-2-2.300 2-2.200-2L5 20ZM10 11.500h.1M14 11.500h.1" />`,
    minus: svg`<path d="M5 12h14" />`,
    pause: svg`<path d="M9 6v12M15 6v12" />`,
    expand: svg`<path d="M9 4H4v5M15 4h5v5M9 20H4v-5M15 20h5v-5" />`,
    plus: svg`<path d="M12 5v14M5 12h14" />`,
    send: svg`<path d="M12 19V5M5.5 11.5 12 5l6.5 6.5" />`,
    stop: svg`<rect x="7" y="7" width="10" height="10" rx="2" fill="currentColor" />`,
    image: svg`<rect x="3.5" y="4.5" width="17" height="15" rx="3" /><circle cx="9" cy="10" r="1.6" /><path d="m4 17 4.6-4.2a1.5 1.5 0 0 1 2 0L15 17m-1.5-1.5 1.8-1.7a1.5 1.5 0 0 1 2 0L20.5 16.5" />`,
    camera: svg`<path d="M4.500 8h3l1.500-2.500h6L16.500 8h3a1.500 1.500 0 0 1 1.500 1.500v8a1.500 1.500 0 0 1-1.500 1.500h-15A1.500 1.500 0 0 1 3 17.500v-8A1.500 1.500 0 0 1 4.500 8Z" /><circle cx="12" cy="13" r="3.400" />`,
    copy: svg`<rect x="9" y="9" width="11" height="11" rx="2.5" /><path d="M15 5.500A2.5 2.5 0 0 0 12.5 4h-6A2.5 2.5 0 0 0 4 6.500v6A2.5 2.5 0 0 0 5.5 15" />`,
    check: svg`<path d="m5 12.5 4.5 4.500L19 7.5" />`,
    again: svg`<path d="M19 12a7 7 0 1 1-2.050-4.950L19.5 9.500M19.5 4.500v5h-5" />`,
    edit: svg`<path d="M4 20h4L19.5 8.500a2.1 2.1 0 0 0-3-3L5 17v3M14.5 7.500l3 3" />`,
    trash: svg`<path d="M4.5 7h15M9.5 7V5a1 1 0 0 1 1-1h3a1 1 0 0 1 1 1v2M6.5 7l.8 11a2 2 0 0 0 2 2h5.400a2 2 0 0 0 2-2l.8-11M10 11v5M14 11v5" />`,
    sun: svg`<circle cx="12" cy="12" r="4" /><path d="M12 3v1.500M12 19.500V21M3 12h1.500M19.5 12H21M5.6 5.600l1.1 1.100M17.3 17.300l1.1 1.100M18.4 5.600l-1.1 1.100M6.7 17.300l-1.1 1.1" />`,
    moon: svg`<path d="M19.5 14.500A8 8 0 0 1 9.5 4.500a8 8 0 1 0 10 10Z" />`,
    screen: svg`<rect x="3.5" y="5" width="17" height="11.5" rx="2" /><path d="M9 20h6M12 16.500V20" />`,
    close: svg`<path d="m6.5 6.5 11 11M17.5 6.500l-11 11" />`,
    search: svg`<circle cx="10.5" cy="10.5" r="6" /><path d="m15 15 5 5" />`,
    play: svg`<path d="M8 5.500v13l10.500-6.500z" />`,
    pulse: svg`<path d="M3.5 12.500h4l2.500-7 4 13 2.500-6h4" />`,
    left: svg`<path d="m14.5 6-6 6 6 6" />`,
    right: svg`<path d="m9.5 6 6 6-6 6" />`,
    down: svg`<path d="m6 9.5 6 6 6-6" />`,
    toBottom: svg`<path d="M12 5v13M6 12.5 12 18.500l6-6" />`,
    thought: svg`<path d="M9.5 18.500h5M10 21h4M8.5 15.500a6.5 6.5 0 1 1 7 0c-.7.5-1 1-1 1.700v.3h-5v-.3c0-.7-.3-1.2-1-1.700Z" />`,
    sliders: svg`<path d="M4 8h9M17 8h3M4 16h3M11 16h9" /><circle cx="15" cy="8" r="2" /><circle cx="9" cy="16" r="2" />`,
    download: svg`<path d="M12 4v11M6.5 10.5 12 16l5.5-5.500M5 20h14" />`,
    warning: svg`<path d="M12 9v4.500M12 17v.1M10.7 4.7 3.2 17.500A1.5 1.5 0 0 0 4.5 19.800h15a1.5 1.5 0 0 0 1.3-2.300L13.3 4.700a1.5 1.5 0 0 0-2.6 0Z" />`,
    file: svg`<path d="M13.5 3.5H8A2.5 2.5 0 0 0 5.5 6v12A2.5 2.5 0 0 0 8 20.5h8a2.5 2.5 0 0 0 2.5-2.5V8.5l-5-5v5h5M9 12.5h6M9 16h4" />`,
    keyboard: svg`<rect x="2.5" y="6.5" width="19" height="11" rx="2.5" /><path d="M6.5 10h.1M10 10h.1M13.5 10h.1M17 10h.1M8.5 14h7" />`,
    info: svg`<circle cx="12" cy="12" r="8.5" /><path d="M12 11v5M12 8v.1" />`,
    mic: svg`<rect x="9" y="3.5" width="6" height="11" rx="3" /><path d="M5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3" />`,
    speaker: svg`<path d="M4 9.5v5h3.5L12 18.5v-13L7.5 9.5zM15.500 9.500a3.500 3.500 0 0 1 0 5M18 7a7 7 0 0 1 0 10" />`,
    sum: svg`<rect x="5" y="3.5" width="14" height="17" rx="2.5" /><path d="M8.5 7.500h7M8.5 12h.1M12 12h.1M15.5 12h.1M8.5 16h.1M12 16h.1M15.5 16h.1" />`,
    tool: svg`<path d="M14.5 6.500a4 4 0 0 1 5-1l-3 3 .5 2 2 .5 3-3a4.5 4.5 0 0 1-6 5.500L9 20.500A2 2 0 0 1 5.5 17L13 10a4 4 0 0 1 1.5-3.500Z" />`,
};

/** Those that point forward or back: turned where text runs from right to left. */
const DIRECTED = new Set(['left', 'right', 'menu', 'quote', 'leaves']);

/** @param {keyof typeof PATHS} name */
export function icon(name) {
    return html`<svg class=${DIRECTED.has(name) ? 'icon directed' : 'icon'} viewBox="0 0 24 24" aria-hidden="true" focusable="false">${PATHS[name]}</svg>`;
}

/** Two speech shapes that meet: the mark of Parley. */
export function logo() {
    return html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
        <path
            class="logo-back"
            d="M13 4h8a8 8 0 0 1 8 8v3a8 8 0 0 1-3 6.200V26l-4.5-3H17a8 8 0 0 1-8-8v-3"
        />
        <path
            class="logo-front"
            d="M10 7h6a7 7 0 0 1 7 7v.5a7 7 0 0 1-7 7h-5L6.5 25v-4.400A7 7 0 0 1 3 14.500V14a7 7 0 0 1 7-7Z"
        />
    </svg>`;
}
