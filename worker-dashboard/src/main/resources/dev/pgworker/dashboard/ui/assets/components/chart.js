/*
 * Charts over time. The canvas is for eyes; a sentence tells readers what it shows, and a table has every number.
 */

import { html, useEffect, useRef, useState } from "../lib.js";
import { useStore } from "../store.js";
import { theme } from "../theme-choice.js";
import { compact, number } from "../text.js";
import { clock, local } from "../time.js";
import UPlot from "../vendor/uplot.js";

const HEIGHT = 168;
const LONG_WINDOW_MS = 2 * 3600_000;

function colour(name) {
  return getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name)
    .trim();
}

/**
 * One chart.
 *
 * @param series [{label, colour: name of a colour variable, values, kind: "bar"|"line"|"area", dash}]; bars are stacked
 * @param times milliseconds, ascending
 * @param format function that makes text of a value
 * @param axis the same for the axis
 * @param summary what the chart shows, in a sentence
 */
export function Chart({ title, id, figure, series, times, format = number, axis = compact, summary }) {
  const [asTable, setAsTable] = useState(false);
  return html`<section class="panel chart-panel" aria-labelledby=${id}>
    <div class="panel-head">
      <h2 id=${id}>${title}</h2>
      <span class="panel-note num">${figure}</span>
      <div class="panel-actions">
        <button type="button" class="link quiet-link" aria-pressed=${asTable ? "true" : "false"}
          onClick=${() => setAsTable(!asTable)}>${asTable ? "Chart" : "Table"}</button>
      </div>
    </div>
    <${Legend} series=${series} />
    ${
      asTable
        ? html`<${ValueTable} title=${title} series=${series} times=${times} format=${format} />`
        : html`<${Canvas} series=${series} times=${times} format=${format} axis=${axis} summary=${summary} />`
    }
  </section>`;
}

function Legend({ series }) {
  return html`<ul class="legend">
    ${series.map(
      (one) => html`<li key=${one.label}>
      <span class=${`key ${one.kind} ${one.colour} ${one.dash ? "dashed" : ""}`} aria-hidden="true"></span>${one.label}</li>`,
    )}
  </ul>`;
}

function ValueTable({ title, series, times, format }) {
  const rows = times
    .map((time, at) => at)
    .filter((at) => series.some((one) => one.values[at]))
    .reverse();
  return html`<div class="chart-table" tabindex="0" role="region" aria-label=${title + ", table"}>
    <table>
      <thead><tr><th scope="col">From</th>
        ${series.map((one) => html`<th scope="col" class="num" key=${one.label}>${one.label}</th>`)}</tr></thead>
      <tbody>
        ${rows.map(
          (at) => html`<tr key=${times[at]}><th scope="row">${local(times[at])}</th>
          ${series.map((one) => html`<td class="num" key=${one.label}>${format(one.values[at])}</td>`)}</tr>`,
        )}
        ${rows.length === 0 && html`<tr><td colspan=${series.length + 1} class="muted">Nothing happened in this time.</td></tr>`}
      </tbody>
    </table>
  </div>`;
}

function Canvas({ series, times, format, axis, summary }) {
  const box = useRef(null);
  const plot = useRef(null);
  const hover = useRef({ format, series });
  hover.current = { format, series };
  const shownTheme = useStore(theme);
  const shape = series.map((one) => one.label + one.kind).join();

  useEffect(() => {
    const element = box.current;
    plot.current = new UPlot(options(element.clientWidth, series, times, axis, hover), data(series, times), element);
    const resized = new ResizeObserver(() => {
      if (element.clientWidth > 0) {
        plot.current.setSize({ width: element.clientWidth, height: HEIGHT });
      }
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.current.destroy();
    };
  }, [shape, shownTheme]);

  useEffect(() => plot.current.setData(data(series, times)), [series, times]);

  return html`<div class="chart" ref=${box} role="img" aria-label=${summary}></div>`;
}

/* uPlot counts in seconds. Bars are drawn from the top of the stack down, so that each covers the sum below it. */
function data(series, times) {
  const columns = series.map((one) => one.values);
  const bars = series.filter((one) => one.kind === "bar").length;
  for (let at = bars - 2; at >= 0; at--) {
    columns[at] = columns[at].map((value, row) => (value === null ? null : value + (columns[at + 1][row] ?? 0)));
  }
  return [times.map((time) => time / 1000), ...columns];
}

/** @returns {UPlot.Options} */
function options(width, series, times, axis, hover) {
  const muted = colour("text-3");
  const grid = colour("line-soft");
  const font = "11px " + getComputedStyle(document.body).fontFamily;
  const long = times.length > 1 && times[times.length - 1] - times[0] > LONG_WINDOW_MS;
  const common = { stroke: muted, font, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { setScale: false, x: false, y: false },
      sync: { key: "overview" },
    },
    scales: { x: { range: wholeSteps }, y: { range: (_, least, most) => [0, Math.max(most * 1.08, 1)] } },
    series: [{}, ...series.map(line)],
    axes: [
      {
        ...common,
        grid: { show: false },
        size: 24,
        gap: 6,
        space: 70,
        values: (_, ticks) => ticks.map((tick) => clock(tick * 1000, false)),
      },
      {
        ...common,
        grid: { stroke: grid, width: 1 },
        size: widest,
        gap: 8,
        space: 34,
        values: (_, ticks) => ticks.map((tick) => axis(tick)),
      },
    ],
    plugins: [tooltip(hover, long)],
  };
}

/**
 * Bars are as wide as their step, so the first and the last one need half a step more.
 *
 * @returns {[number, number]}
 */
function wholeSteps(plot, least, most) {
  const times = plot.data[0];
  const half = times.length > 1 ? (times[1] - times[0]) / 2 : 30;
  return [least - half, most + half];
}

/* As wide as its longest number, each character of which takes up to 7 pixels. */
function widest(_, values) {
  return Math.max(48, 16 + 7 * Math.max(0, ...(values ?? []).map((text) => text.length)));
}

/* A value without neighbours would be a line of no length. */
function isAlone(plot, series) {
  return plot.data[series].filter((value) => value !== null).length === 1;
}

function line({ colour: name, kind, dash }) {
  const stroke = colour(name);
  if (kind === "bar") {
    return {
      fill: stroke,
      stroke,
      width: 0,
      paths: UPlot.paths.bars({ size: [0.72, 12], gap: 0 }),
      points: { show: false },
    };
  }
  return {
    stroke,
    width: 1.5,
    dash: dash ? [4, 3] : undefined,
    fill: kind === "area" ? stroke + "1f" : undefined,
    points: { show: isAlone, size: 5, fill: stroke },
  };
}

/* What happened at the time under the pointer, in every chart of the page. */
function tooltip(hover, long) {
  const box = document.createElement("div");
  box.className = "chart-tip";
  box.hidden = true;
  const set = (plot) => {
    const { idx, left } = plot.cursor;
    const { series, format } = hover.current;
    if (idx === null || idx === undefined || left < 0) {
      box.hidden = true;
      return;
    }
    const time = document.createElement("p");
    time.textContent = clock(plot.data[0][idx] * 1000, !long);
    box.replaceChildren(time, ...series.map((one) => tipLine(one, format(one.values[idx]))));
    box.hidden = false;
    const right = left > plot.over.clientWidth / 2;
    box.style.left = right ? "" : left + 12 + "px";
    box.style.right = right ? plot.over.clientWidth - left + 12 + "px" : "";
  };
  return { hooks: { init: (plot) => plot.over.append(box), setCursor: set } };
}

function tipLine(one, value) {
  const row = document.createElement("p");
  const key = document.createElement("span");
  key.className = `key ${one.kind} ${one.colour} ${one.dash ? "dashed" : ""}`;
  const label = document.createElement("span");
  label.textContent = one.label;
  const figure = document.createElement("b");
  figure.textContent = value;
  row.append(key, label, figure);
  return row;
}
