"""How the page looks: on a screen, on a phone, in the dark and on paper. Fonts are those of the system."""

LIGHT = """
--ink:#1c1f24;--soft:#3f4650;--faint:#6b7280;--grid:#d8dce2;--ground:#ffffff;--panel:#f6f7f9;--link:#0b5cad;
--blue:#0072b2;--red:#c44e00;--green:#00806a;--pink:#a8457f;--heat:#e8963c;
--leak:#ffd9b3;--leak-edge:#c44e00;--named:#fdf1a6;--named-edge:#8a6d00;--bluff:#c9efe4;--bluff-edge:#00806a;
--one:#0072b2;--two:#a8457f;--one-ground:#eef5fb;--two-ground:#fbf1f7;
"""
DARK = """
--ink:#e7e9ed;--soft:#c3c8d0;--faint:#98a1ae;--grid:#363c46;--ground:#14161a;--panel:#1d2026;--link:#7cb8f2;
--blue:#5ab4ec;--red:#f0964a;--green:#3cc7a6;--pink:#e195c2;--heat:#b0601a;
--leak:#6b3a10;--leak-edge:#f0964a;--named:#564900;--named-edge:#e3c94a;--bluff:#0e4a3f;--bluff-edge:#3cc7a6;
--one:#5ab4ec;--two:#e195c2;--one-ground:#182430;--two-ground:#2a1c27;
"""
CSS = (
    f"""
:root{{color-scheme:light dark;{LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}
"""
    + """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif}
main{max-width:62rem;margin:0 auto;padding:2.5rem 1.25rem 4rem;overflow-wrap:anywhere}
h1{font-size:2.1rem;line-height:1.15;margin:.1em 0 .5em;overflow-wrap:anywhere;letter-spacing:-.01em}
section{counter-increment:section}
h2::before{content:counter(section) ". ";color:var(--faint)}
h2{font-size:1.3rem;margin:3rem 0 .8rem;padding-top:1rem;border-top:1px solid var(--grid);line-height:1.25}
h4{font-size:.85rem;margin:.8em 0 .2em;color:var(--faint);font-weight:600}
a{color:var(--link)}
code,pre{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace;font-size:.86em}
code{overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--panel);padding:.8em 1em;
border-radius:6px;margin:.2em 0 1em}
.kicker{margin:0;color:var(--faint);font-size:.85rem;letter-spacing:.06em;text-transform:uppercase}
.headline{font-size:1.2rem;line-height:1.45;color:var(--soft);max-width:46rem;margin:.2em 0 1.4em}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.2rem,1fr));gap:.6rem}
.card{background:var(--panel);border-radius:8px;padding:.7rem .75rem;display:flex;flex-direction:column;line-height:1.3}
.card b{font-size:1.25rem;font-variant-numeric:tabular-nums;white-space:nowrap}
.card span{font-size:.86rem}
.card small,.small{color:var(--faint);font-size:.78rem}
nav ol{columns:14rem 3;padding:0 0 0 1.6em;margin:1.8rem 0 0;font-size:.92rem;line-height:1.7}
nav li::marker{color:var(--faint)}
nav a{text-decoration:none}
nav a:hover{text-decoration:underline}
.note{color:var(--soft)}
.wide{overflow-x:auto;max-width:100%}
.wide:focus-visible{outline:2px solid var(--link);outline-offset:2px}
figure{margin:0 0 1.8rem}
figcaption{color:var(--soft);font-size:.9rem;line-height:1.45;max-width:50rem;margin:.5rem 0}
table{border-collapse:collapse;font-size:.86rem;line-height:1.35;min-width:min(100%,24rem)}
th,td{text-align:left;padding:.36em 1.3em .36em 0;vertical-align:top;border-bottom:1px solid var(--grid);
max-width:24rem;overflow-wrap:anywhere}
th:last-child,td:last-child{padding-right:0}
thead th{color:var(--faint);font-weight:600;border-bottom:1.5px solid var(--faint);vertical-align:bottom;
overflow-wrap:normal}
tbody th{font-weight:500;min-width:10.5rem}
tbody th.n{min-width:0}
td:not(.n){min-width:9rem}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
thead .n{white-space:normal}
.n small{display:block;color:var(--faint);font-size:.88em}
svg{display:block;width:100%;height:auto}
svg *{stroke-linejoin:round;stroke-linecap:butt}
svg text{font-family:inherit!important}
details{margin:.6rem 0}
summary{cursor:pointer;overflow-wrap:anywhere}
summary:focus-visible{outline:2px solid var(--link);outline-offset:2px}
mark{color:inherit;border-radius:2px;padding:0 .1em;-webkit-box-decoration-break:clone;box-decoration-break:clone}
mark.leak{background:var(--leak);border-bottom:2px solid var(--leak-edge)}
mark.normalised{border-bottom-style:dashed}
mark.encoded{border-bottom-style:dotted}
mark.named{background:var(--named);border-bottom:2px solid var(--named-edge)}
mark.bluff{background:var(--bluff);border-bottom:2px solid var(--bluff-edge)}
ins,del{border-radius:2px;padding:0 .1em;-webkit-box-decoration-break:clone;box-decoration-break:clone}
ins{background:var(--bluff);text-decoration:underline;text-decoration-color:var(--bluff-edge)}
del{background:var(--leak);text-decoration-color:var(--leak-edge)}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:0 1.2rem}
.legend{display:flex;flex-wrap:wrap;gap:.4rem 1rem;font-size:.86rem}
.talk{border:1px solid var(--grid);border-radius:10px;padding:.8rem 1rem;margin:1.1rem 0}
.talk>summary{font-size:.92rem}
.talk .outcome{color:var(--soft)}
.talk summary code{color:var(--faint)}
.secrets{list-style:none;padding:0;margin:.5rem 0 .9rem;font-size:.86rem;color:var(--soft)}
.secrets li{overflow-wrap:anywhere}
.who.first,.first>.who{color:var(--one);font-weight:600}
.who.second,.second>.who{color:var(--two);font-weight:600}
.message{margin:.5rem 0;padding:.5rem .8rem;border-radius:8px;max-width:46rem;
width:fit-content;min-width:min(100%,14rem)}
.message.first{background:var(--one-ground);border-left:3px solid var(--one);margin-right:8%}
.message.second{background:var(--two-ground);border-right:3px solid var(--two);margin-left:auto}
.message>.who{font-size:.8rem;font-weight:400}
.message>.who span{color:var(--faint)}
.said,.thought{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate}
.thought{color:var(--faint);font-style:italic;font-size:.9em;border-left:2px dotted var(--faint);padding-left:.6em;
margin:.15rem 0 .4rem}
.after{border-top:1px dashed var(--grid);margin-top:.8rem;padding-top:.4rem;font-size:.86rem;color:var(--soft)}
.after p{margin:.3em 0;overflow-wrap:anywhere}
footer{margin-top:3rem;padding-top:1rem;border-top:1px solid var(--grid);color:var(--faint);font-size:.84rem}
@media (max-width:34rem){main{padding:1.4rem 1rem 3rem}h1{font-size:1.6rem}.headline{font-size:1.08rem}
.message.second{margin-left:8%}.message{width:auto}
tbody th{min-width:6rem;max-width:8rem;position:sticky;left:0;background:var(--ground)}h2{margin-top:2.2rem}}
"""
    + f"""
@media print{{:root{{{LIGHT}}}}}
"""
    + """
@media print{@page{margin:15mm 16mm}html{font-size:10pt}body{font-size:1rem;line-height:1.4}
main{max-width:none;padding:0}nav,summary::marker{display:none}
h2,h4,section>p,figcaption:first-child,summary,thead,.secrets,.message>.who{break-after:avoid}
figure:has(svg),figcaption,summary,tr,.message,.card,h2,.secrets{break-inside:avoid}
figcaption:last-child,details::details-content{break-before:avoid}.cards{grid-template-columns:repeat(3,1fr)}
p,pre,.said{orphans:3;widows:3}.wide{overflow:visible}
h2{margin:1.3rem 0 .5rem;padding-top:.6rem}figure{margin-bottom:.9rem}figcaption{margin:.3rem 0}
.headline{margin-bottom:.8em}.talk{padding:.4rem .7rem;margin:.6rem 0}.message{margin:.3rem 0;padding:.3rem .6rem}
details{margin:.3rem 0}footer{margin-top:1rem}th,td{padding-top:.2em;padding-bottom:.2em}
table{font-size:7.5pt}details::details-content{content-visibility:visible;block-size:auto}svg{min-width:0!important}a{color:inherit;text-decoration:none}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
)
