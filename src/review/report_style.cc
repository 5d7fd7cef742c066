// How a report looks. What a manifest says is shown in the order of its characters: two parts of a
// path must not change places because they are written from right to left.
// Colours are chosen for a contrast of at least 4.5 in both schemes; the
// picture uses no custom properties, so that programs that draw SVG without a browser draw it, too.
#include "review/report_page.h"
#include "review/report_picture.h"

namespace capgate::review {
namespace {

constexpr std::string_view of_picture = R"css(
.picture text{fill:#1c2128;white-space:pre;direction:ltr;unicode-bidi:isolate-override;
font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
.picture .g-verb,.picture .g-title,.picture .g-over,.picture .g-tag{
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif}
.picture .g-verb{fill:#57606a}
.picture .g-title{font-size:13.5px;font-weight:600}
.picture .g-soft{fill:#57606a;font-weight:500}
.picture .g-name{font-size:15px;font-weight:700}
.picture .g-over{font-size:11px;letter-spacing:.04em;fill:#1d5596}
.picture .g-tag{font-size:12px;font-weight:600}
.picture .g-tag.g-wide{fill:#a81b13}
.picture .g-tag.g-open{fill:#7a4a00}
.picture .g-end{text-anchor:end}
.picture .g-back{fill:#fff}
.picture .g-card{fill:#fff;stroke:#c4ccd4;stroke-width:1}
.picture .g-shut{fill:none;stroke-dasharray:3 4}
.picture .g-box{fill:#f3f7fc;stroke:#1d5596;stroke-width:3}
.picture .g-way{fill:none;stroke:#1d5596;stroke-width:2}
.picture .g-none{stroke:#aab4be;stroke-width:1.5;stroke-dasharray:2 5}
.picture .g-door{fill:#1d5596;stroke:none}
.picture .g-band.g-wide{fill:#fdeceb}
.picture .g-band.g-open{fill:#fff3d4}
.picture .g-bar.g-wide,.picture .g-door.g-wide{fill:#c4271e}
.picture .g-bar.g-open,.picture .g-door.g-open{fill:#b26a00}
.picture .g-way.g-wide{stroke:#c4271e}
.picture .g-way.g-open{stroke:#b26a00}
@media screen and (prefers-color-scheme:dark){
.picture text{fill:#e6eaef}
.picture .g-verb,.picture .g-soft{fill:#a3adb8}
.picture .g-over{fill:#8fbdf0}
.picture .g-tag.g-wide{fill:#ffa69d}
.picture .g-tag.g-open{fill:#f3c663}
.picture .g-back{fill:#12161b}
.picture .g-card{fill:#181d24;stroke:#3b4550}
.picture .g-shut{fill:none}
.picture .g-box{fill:#15202d;stroke:#6ea5e2}
.picture .g-way{stroke:#6ea5e2}
.picture .g-none{stroke:#56616d}
.picture .g-door{fill:#6ea5e2}
.picture .g-band.g-wide{fill:#3d1a18}
.picture .g-band.g-open{fill:#362a0d}
.picture .g-bar.g-wide,.picture .g-door.g-wide{fill:#ff7b6f}
.picture .g-bar.g-open,.picture .g-door.g-open{fill:#e0a63a}
.picture .g-way.g-wide{stroke:#ff7b6f}
.picture .g-way.g-open{stroke:#e0a63a}
}
@media (forced-colors:active){
.picture text,.picture .g-verb,.picture .g-tag,.picture .g-over{fill:CanvasText}
.picture .g-card,.picture .g-box,.picture .g-band,.picture .g-back{fill:Canvas;stroke:CanvasText}
.picture .g-way{stroke:CanvasText}
.picture .g-door,.picture .g-bar{fill:CanvasText}
}
)css";

constexpr std::string_view of_page = R"css(
:root{color-scheme:light dark;--ink:#1c2128;--soft:#57606a;--back:#fff;--panel:#f6f8fa;
--rule:#d5dbe1;--accent:#1d5596;--wide:#a81b13;--wide-back:#fdeceb;--open:#7a4a00;
--open-back:#fff3d4;--good:#1a6334}
@media screen and (prefers-color-scheme:dark){
:root{--ink:#e6eaef;--soft:#a3adb8;--back:#12161b;--panel:#181d24;--rule:#353e48;
--accent:#8fbdf0;--wide:#ffa69d;--wide-back:#3d1a18;--open:#f3c663;--open-back:#362a0d;
--good:#7fd39b}
}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-padding-top:1rem}
body{margin:0;background:var(--back);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif}
header,main,footer{max-width:70rem;margin:0 auto;padding:0 1.5rem}
header{padding-top:2.25rem}
main:focus{outline:none}
a{color:var(--accent);text-underline-offset:.18em}
a:focus-visible,summary:focus-visible{outline:3px solid var(--accent);outline-offset:3px;
border-radius:2px}
.skip{position:absolute;left:-100vw;top:0;background:var(--back);padding:.6rem 1rem;z-index:1}
.skip:focus{left:0}
.over{margin:0;color:var(--soft);font-size:.875rem}
h1{margin:.15rem 0 0;font-size:1.9rem;line-height:1.2;letter-spacing:-.015em;font-weight:680}
h1 .version{color:var(--soft);font-weight:400;font-size:1.15rem;letter-spacing:0}
h2{margin:0 0 .35rem;font-size:1.3rem;line-height:1.3;letter-spacing:-.01em;font-weight:650}
h1,h2,p,li,th,td,dd,dt,caption,code,summary{overflow-wrap:anywhere}
code{font:.875em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;
white-space:pre-wrap}
.say,code{direction:ltr;unicode-bidi:isolate-override}
.verdict{max-width:46rem;margin:1rem 0 0;padding-left:1rem;border-left:4px solid var(--accent);
font-size:1.2rem;line-height:1.45}
.verdict.wide{border-color:var(--wide)}
.verdict.open{border-color:var(--open)}
.chips{display:flex;flex-wrap:wrap;gap:.5rem;list-style:none;margin:1.1rem 0 0;padding:0;
font-size:.875rem}
.chips li{padding:.15rem .65rem;border:1px solid var(--rule);border-radius:1rem}
.tag{display:inline-block;padding:.05rem .45rem;border-radius:.25rem;font-size:.8125rem;
font-weight:600;line-height:1.45}
.wide:is(li,.tag){color:var(--wide);background:var(--wide-back);border-color:currentColor}
.open:is(li,.tag){color:var(--open);background:var(--open-back);border-color:currentColor}
.less{background:var(--panel)}
.good:is(li){color:var(--good);border-color:currentColor}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;margin:1.4rem 0 0;
padding:.7rem 0;border-block:1px solid var(--rule);font-size:.9375rem}
section{margin-top:2.6rem}
.lead{max-width:46rem;margin:0 0 1rem;color:var(--soft)}
figure{margin:0}
figcaption{margin-top:.75rem;color:var(--soft);font-size:.875rem}
.picture{display:block;width:100%;height:auto}
.picture-narrow{display:none}
table{width:100%;border-collapse:collapse;font-size:.9375rem;margin-bottom:2rem}
caption{text-align:left;font-weight:650;padding:0 0 .4rem}
.group th{padding-top:1.5rem;font-size:1rem;font-weight:650}
.number{color:var(--soft);font-weight:400;font-size:.875rem}
th,td{text-align:left;vertical-align:top;padding:.6rem .9rem .6rem 0;
border-bottom:1px solid var(--rule)}
th:last-child,td:last-child{padding-right:0}
thead th{padding-block:.3rem;color:var(--soft);font-size:.8125rem;font-weight:500;
border-bottom:1px solid var(--soft)}
tbody th{font-weight:400}
.tools tbody th{font-weight:600}
.lines th:first-child{width:48%}
.lines thead th:nth-child(2){width:27%}
.tools thead th:first-child{width:17%}
tr.wide>*:first-child{box-shadow:inset 3px 0 var(--wide);padding-left:.8rem}
tr.open>*:first-child{box-shadow:inset 3px 0 var(--open);padding-left:.8rem}
.say{display:block}
.say+code,.cap{color:var(--soft);display:block}
.tags{display:flex;flex-wrap:wrap;gap:.35rem;margin-top:.3rem}
ul.plain{list-style:none;margin:0;padding:0}
ul.plain li+li{margin-top:.25rem}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.place{font-weight:400;color:var(--soft);font-size:.875em;white-space:normal}
.none{color:var(--soft)}
summary{cursor:pointer;color:var(--accent)}
.prose{max-width:46rem;padding-left:1.2rem}
.prose li+li{margin-top:.45rem}
.box{max-width:46rem;margin-bottom:1.25rem;padding:.75rem 1rem;border-radius:.4rem;background:var(--open-back);
color:var(--open)}
.box p{margin:0}
footer{margin-top:3rem;padding-block:1.2rem 2.5rem;color:var(--soft);font-size:.875rem}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.25rem 1.25rem;margin:0;
padding-top:1.2rem;border-top:1px solid var(--rule)}
dd{margin:0}
@media screen and (max-width:60rem){
.picture-wide{display:none}
.picture-narrow{display:block;max-width:32rem}
}
@media screen and (max-width:48rem){
header,main,footer{padding-inline:1rem}
h1{font-size:1.5rem}
.verdict{font-size:1.0625rem}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
table,caption,tbody,tr,th,td{display:block;width:auto}
.lines th:first-child,.tools thead th:first-child,.lines thead th:nth-child(2){width:auto}
.group th{padding:1rem 0 0}
tbody tr{padding:.7rem 0;border-bottom:1px solid var(--rule)}
tbody th,tbody td{border:0;padding:.15rem 0}
td[data-label]::before{content:attr(data-label);display:block;margin-top:.35rem;
color:var(--soft);font-size:.8125rem}
td.empty{display:none}
tr.wide,tr.open{padding-left:.8rem}
tr.wide{box-shadow:inset 3px 0 var(--wide)}
tr.open{box-shadow:inset 3px 0 var(--open)}
tr.wide>*:first-child,tr.open>*:first-child{box-shadow:none;padding-left:0}
dl{grid-template-columns:minmax(0,1fr);gap:0}
dd{margin-bottom:.5rem}
}
@media print{
@page{margin:14mm}
body{font-size:10pt}
header,main,footer{max-width:none;padding-inline:0}
header{padding-top:0}
nav,.skip{display:none}
section{margin-top:1.6rem}
h2,caption{break-after:avoid}
tr,figure,.box{break-inside:avoid}
details::details-content{content-visibility:visible;display:block;height:auto}
summary{color:inherit;list-style:none}
.tag,.chips li,.box,.picture{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
)css";

}  // namespace

std::string_view picture_style() { return of_picture; }
std::string_view page_style() { return of_page; }

}  // namespace capgate::review
