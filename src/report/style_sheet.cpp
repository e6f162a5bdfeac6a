// SPDX-License-Identifier: Apache-2.0
#include "markup.hpp"

namespace hpcai::report {

// Lines differ in colour, dashes and lightness. The colours are Okabe and Ito's, darker on white
// and lighter on black. Lines have a contrast of 3:1 to the page, texts 4.5:1.
constinit const std::string_view kStyleSheet = R"css(
:root {
  --paper: #fffffb; --ink: #1b1b1a; --soft: #595955; --rule: #1b1b1a; --hair: #d8d6cf;
  --tint0: #c9dff0; --tint1: #f3ddb8; --tint2: #cfe6d6; --lost: #1b1b1a; --on-lost: #fffffb;
  --valid: #00664b; --invalid: #a32c00; --partial: #845200; --custom: #1f5c8c;
  --s0: #0072b2; --s1: #c24e00; --s2: #007a59; --s3: #a8478c; --s4: #8a6a00; --s5: #2a7fae;
  --s6: #1b1b1a; --s7: #7a5d4f; --band: #c9dff0;
  --p0: #e69f00; --p1: #8cc6ee; --p2: #0072b2; --p3: #c24e00; --p4: #009e73; --p5: #a9a7a0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #151514; --ink: #eceae2; --soft: #a9a79f; --rule: #eceae2; --hair: #3d3c39;
    --tint0: #1d3b52; --tint1: #4f3c17; --tint2: #204432; --lost: #eceae2; --on-lost: #151514;
    --valid: #4cc79c; --invalid: #ff8a5c; --partial: #e8b04a; --custom: #7dbce8;
    --s0: #56b4e9; --s1: #f08a4b; --s2: #35c295; --s3: #e08fc4; --s4: #e3c14a; --s5: #8fd0f5;
    --s6: #eceae2; --s7: #c7a593; --band: #23465f;
    --p0: #e69f00; --p1: #9fd2f5; --p2: #3a8fc9; --p3: #e0692a; --p4: #2ab48a; --p5: #75736d;
  }
}
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 3.5rem 1.25rem 4rem; max-width: 47rem;
  background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.55 Charter, "Bitstream Charter", "Source Serif 4", "Iowan Old Style", Cambria,
    Georgia, serif;
  font-variant-numeric: lining-nums tabular-nums; overflow-wrap: anywhere; hanging-punctuation: first;
}
body:has(.ranking) { max-width: 75rem; }
h1, h2, h3 { text-wrap: balance; }
h1 { margin: 0; font-size: 2.1rem; line-height: 1.15; font-weight: 600; }
h2 { margin: 3.2rem 0 1rem; font-size: 1.3rem; line-height: 1.2; font-weight: 600; }
h3 { margin: 1.6rem 0 .4rem; font-size: 1rem; font-weight: 600; }
p { margin: .7rem 0; }
.kicker { margin: 0 0 .5rem; letter-spacing: .08em; text-transform: uppercase; }
.kicker, .byline, .note, .reason, .legend, .axis, small, summary, footer { color: var(--soft); }
.kicker, .note, .legend, .axis, footer { font-size: .82rem; line-height: 1.45; }
.reason { font-size: .88em; }
.byline { margin: .5rem 0 0; }
code, pre { font-family: "DejaVu Sans Mono", ui-monospace, Menlo, Consolas, monospace; font-size: .8em; }

#verdict { margin-top: 2rem; padding: 1.1rem 0 1rem; border: solid var(--rule); border-width: 2px 0 1px; }
#verdict h2 { margin: 0; font-size: 2.1rem; letter-spacing: .04em; }
#verdict p { margin: .35rem 0 0; }
#verdict p.score { display: inline-block; margin: 0 1.5rem 0 0; font-size: 3.6rem; line-height: 1.1; font-weight: 600; }
.score small { font-size: 1.1rem; font-weight: 400; }
#verdict .score + h2 { display: inline-block; font-size: 1.3rem; }
.VALID h2 { color: var(--valid); } .INVALID h2 { color: var(--invalid); }
.PARTIAL h2 { color: var(--partial); } .CUSTOM h2 { color: var(--custom); }
ul.reasons { margin: .6rem 0; padding-left: 1.1rem; }
ul.reasons li { margin: .15rem 0; }
#verdict p.result-line { margin-top: .9rem; line-height: 1.4; }

dl.headline { display: flex; flex-wrap: wrap; gap: 1.2rem 2rem; margin: 1.6rem 0 1.4rem; }
dl.headline > div { flex: 1 1 8.5rem; }
dl.headline dt { font-size: .82rem; color: var(--soft); }
dl.headline dd { margin: 0; }
dl.headline dd:nth-of-type(1) { font-size: 1.45rem; line-height: 1.3; white-space: nowrap; }

.links { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; font-size: .9rem; }
a { color: inherit; text-decoration-color: var(--soft); }
.wide { overflow-x: auto; margin: .4rem 0 .6rem; }
.wide:focus-visible, pre:focus-visible, summary:focus-visible { outline: 2px solid var(--s0); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; line-height: 1.4; }
.caption, figcaption { margin: 1.4rem 0 .4rem; font-size: .9rem; line-height: 1.4; font-weight: 600; }
th, td { padding: .22rem .7rem .22rem 0; text-align: left; vertical-align: baseline; font-weight: 400;
  overflow-wrap: normal; }
th:last-child, td:last-child { padding-right: 0; }
.n { text-align: right; white-space: nowrap; }
thead { border: solid var(--rule); border-width: 1.5px 0 .75px; }
thead th { color: var(--soft); vertical-align: bottom; }
tbody { border-bottom: 1.5px solid var(--rule); }
tfoot { border-bottom: 1.5px solid var(--rule); }
tbody:has(+ tfoot) { border-bottom-width: .75px; }
table.facts { margin: 1rem 0; }
table.facts tbody { border: solid var(--hair); border-width: 1px 0; }
table.facts tr + tr { border-top: 1px solid var(--hair); }
table.facts th { width: 34%; color: var(--soft); padding-right: 1rem; }
table.facts td { overflow-wrap: anywhere; }
details { margin: .8rem 0; }
summary { cursor: pointer; font-size: .9rem; }
pre { overflow-x: auto; padding: .8rem 0; margin: .4rem 0; line-height: 1.45;
  border: solid var(--hair); border-width: 1px 0; overflow-wrap: normal; }

figure { margin: 1.6rem 0; break-inside: avoid; }
figcaption { margin: 0; }
figure .note { margin: .2rem 0 .6rem; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; list-style: none; margin: .3rem 0 .6rem; padding: 0; }
.legend svg { margin-right: .4rem; overflow: visible; }
.plot { display: grid; grid-template: 14rem 1.3rem / 4.2rem 1fr; margin-top: .8rem; }
.plot .y, .plot .x { position: relative; font-size: .78rem; line-height: 1; color: var(--soft); }
.plot .y span { position: absolute; right: .6rem; transform: translateY(50%); white-space: nowrap; }
.plot .x { grid-column: 2; }
.plot .x span { position: absolute; top: .45rem; transform: translateX(-50%); white-space: nowrap; }
.plot .x .first { transform: none; } .plot .x .last { transform: translateX(-100%); }
.plot svg { display: block; width: 100%; height: 100%; overflow: visible; }
.axis { margin: .25rem 0 0 4.2rem; }
svg path { vector-effect: non-scaling-stroke; fill: none; }
.grid { stroke: var(--hair); stroke-width: 1; }
.line { stroke-width: 1.75; stroke-linejoin: round; stroke-linecap: round; }
.raw { stroke-width: 1; opacity: .4; }
.s0 { stroke: var(--s0); } .s1 { stroke: var(--s1); stroke-dasharray: 7 3.5; }
.s2 { stroke: var(--s2); stroke-dasharray: 1.5 3.5; } .s3 { stroke: var(--s3); stroke-dasharray: 8 3 1.5 3; }
.s4 { stroke: var(--s4); stroke-dasharray: 12 4; } .s5 { stroke: var(--s5); stroke-dasharray: 4 3; }
.s6 { stroke: var(--s6); stroke-width: 1; } .s7 { stroke: var(--s7); stroke-dasharray: 1.5 6; }
svg .dot { stroke-width: 8; stroke-linecap: round; stroke-dasharray: none; }
svg .band { fill: var(--band); }
svg .p0 { fill: var(--p0); } svg .p1 { fill: var(--p1); } svg .p2 { fill: var(--p2); }
svg .p3 { fill: var(--p3); } svg .p4 { fill: var(--p4); } svg .p5 { fill: var(--p5); }
.bars table { font-size: .84rem; }
.bars th, .bars td { padding-right: .5rem; }
.bars td:nth-child(2) { width: 26%; min-width: 5.5rem; }
svg.bar { display: block; width: 100%; height: .75rem; }
.marks td:nth-child(2) { width: 62%; }
.marks thead { display: none; } .marks tbody { border-top: 1.5px solid var(--rule); }
svg.mark { display: block; width: 100%; height: 1.4rem; overflow: visible; }
.marks td, .marks th { padding-top: 0; padding-bottom: 0; vertical-align: middle; }
.target { stroke: var(--invalid); stroke-width: 1.5; stroke-dasharray: 4 2; }
.interval { stroke: var(--s0); stroke-width: 2; }
.dots { stroke: var(--s0); stroke-width: 8; stroke-linecap: round; }

.node, .band-row { display: grid; grid-template-columns: 9rem 1fr; gap: .8rem; align-items: baseline; margin: .3rem 0; }
.host { font-size: .85rem; color: var(--soft); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.node ol { display: flex; flex-wrap: wrap; gap: 2px; list-style: none; margin: 0; padding: 0; }
.node li { min-width: 3.1rem; padding: .1rem .4rem; display: flex; justify-content: space-between;
  gap: .5rem; align-items: baseline; color: var(--ink); }
.node li small { color: var(--ink); font-size: .68rem; }
.t0 { background: var(--tint0); fill: var(--s0); } .t1 { background: var(--tint1); fill: var(--p0); }
.t2 { background: var(--tint2); fill: var(--p1); }
svg path.t0 { fill: var(--s0); } svg path.t1 { fill: var(--p0); } svg path.t2 { fill: var(--p1); }
svg path.lost { fill: var(--lost); }
.node li.lost, .node li.lost small { background: var(--lost); color: var(--on-lost);
  text-decoration: line-through; }
.band-row { grid-template-columns: 6.5rem 1fr; align-items: center; }
.band-row svg { width: 100%; display: block; }
footer { margin-top: 4rem; border-top: 1px solid var(--hair); }

@media (max-width: 37rem) {
  body { padding: 1.8rem 1rem 3rem; font-size: 1rem; }
  h1, #verdict h2 { font-size: 1.7rem; }
  #verdict p.score { font-size: 2.6rem; }
  .plot { grid-template: 11rem 1.3rem / 3.4rem 1fr; }
  .axis { margin-left: 3.4rem; }
  dl.headline > div { flex-basis: 7.5rem; }
  .node, .band-row { grid-template-columns: 1fr; gap: .1rem; }
  .marks td:nth-child(2) { width: 48%; }
  table.facts th { width: 40%; }
  table { font-size: .84rem; }
  th, td { padding-right: .55rem; }
}
@media print {
  @page { margin: 18mm 16mm; }
  :root { --paper: #fff; --ink: #000; --soft: #444; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { margin-top: 1.6rem; break-after: avoid; }
  .caption, figcaption, .legend { break-after: avoid; }
  h2 + *, .legend, .wide { break-before: avoid; }
  tr, table, figure, .bars, #verdict { break-inside: avoid; }
  figure:has(.raster) { break-inside: auto; }
  .wide, pre { overflow: visible; }
  pre { white-space: pre-wrap; }
  .plot { grid-template-rows: 10rem 1.3rem; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
)css";

}  // namespace hpcai::report
