/* The overview: what needs attention, the backlog, what happened lately, who works. */

import { html, useEffect, useMemo } from "../lib.js";
import { Link, setQuery, suggested, useRoute } from "../router.js";
import { useApi } from "../session.js";
import { useOverview } from "../live.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { number, percent, plural } from "../text.js";
import { coarse, duration } from "../time.js";
import { Chart } from "../components/chart.js";
import { Icon } from "../components/icons.js";
import { Empty, Loaded, Notice, Page, Panel } from "../components/page.js";
import { RunningTable } from "../components/running.js";
import { currentWorkers, WorkersTable } from "../components/workers-table.js";
import { AddJobButton } from "../components/add-job.js";
import { Foreign } from "../components/words.js";
import { WindowSwitch } from "../components/window-switch.js";

const WINDOWS = { "15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h" };
/* Whole minutes, because that is how often figures are taken. */
const POINTS = { "15m": 15, "1h": 60, "6h": 72, "24h": 96 };

export function OverviewPage() {
  const route = useRoute();
  const api = useApi();
  const chosen = route.query.get("window");
  const window = Object.hasOwn(WINDOWS, chosen ?? "") ? chosen : "1h";
  const first = useResource("overview " + api.base, (signal) => api.get("overview", {}, signal));
  const live = useOverview();
  const overview = live ?? first.data;

  return html`<${Page} title="Overview" actions=${html`
    <${WindowSwitch} windows=${WINDOWS} value=${window} onChange=${(value) => setQuery({ window: value }, { replace: true })} />
    <${AddJobButton} />`}>
    <${Loaded} resource=${{ ...first, data: overview }} lines=${12}>
      ${(data) => html`
        <${Attention} items=${data.attention} />
        <${Tiles} backlog=${data.backlog} />
        <${Charts} window=${window} point=${data.point} recorded=${data.statistics.recorded} />
        <div class="columns wide-left">
          <${Panel} title="Running now" id="running" flush=${true}
            note=${
              data.backlog.running > data.running.length
                ? `${number(data.running.length)} of ${number(data.backlog.running)}`
                : number(data.running.length)
            }
            actions=${html`<${Link} to=${["jobs"]} query=${{ state: "running" }}>All</${Link}>`}>
            ${
              data.running.length === 0
                ? html`<${Empty} icon="running" title="No job runs at the moment" />`
                : html`<${RunningTable} running=${data.running} />`
            }
          </${Panel}>
          <${Panel} title="Workers" id="workers" flush=${true} note=${`${number(data.backlog.workers)} alive`}
            actions=${html`<${Link} to=${["workers"]}>All</${Link}>`}>
            ${
              data.workers.length === 0
                ? html`<${Empty} icon="workers" title="No worker is registered">
                <p>Jobs wait until a worker starts. Set <code>pgworker.enabled=true</code> in an application that has handlers.</p></${Empty}>`
                : html`<${WorkersTable} workers=${currentWorkers(data.workers, data)} />`
            }
          </${Panel}>
        </div>
      `}
    </${Loaded}>
  </${Page}>`;
}

function Attention({ items }) {
  if (items.length === 0) {
    return html`<p class="all-well"><${Icon} name="check" />Nothing needs attention.</p>`;
  }
  const icons = { error: "failed", warning: "warning", info: "info" };
  return html`<section class="attention" aria-label="Needs attention">
    <h2 class="reader">Needs attention</h2>
    <ul>
      ${items.map((item) => {
        const address = item.link ? suggested(item.link) : null;
        const text = html`<${Icon} name=${icons[item.level] ?? "info"} /><span class="reader">${item.level}: </span>
          <span class="attention-text"><${Foreign} text=${item.text} most=${1000} /></span>`;
        return html`<li class=${item.level} key=${item.text}>
          ${
            address
              ? html`<${Link} to=${address}>${text}<${Icon} name="chevron" size=${12} /></${Link}>`
              : html`<div>${text}</div>`
          }
        </li>`;
      })}
    </ul>
  </section>`;
}

function Tiles({ backlog }) {
  const about = backlog.estimated ? "numbers above 10,000 are estimates" : null;
  const tiles = [
    ["ready", backlog.oldestDueMs === null ? "none is due" : `oldest due for ${coarse(backlog.oldestDueMs)}`],
    ["running", `on ${plural(backlog.workers, "worker")}`],
    ["scheduled", "due later"],
    ["retrying", "wait for the next attempt"],
    ...(backlog.limited > 0 ? [["limited", "wait for a limit"]] : []),
    ["failed", "failed permanently"],
  ];
  return html`<section aria-label="Jobs by state" class="tiles">
    ${tiles.map(
      ([state, note]) => html`<${Link} to=${["jobs"]} query=${{ state }} class=${"tile is-" + state} key=${state}
        data-tip=${about}>
        <span class="tile-label"><${Icon} name=${state} />${state}</span>
        <span class="tile-number num">${number(backlog[state])}</span>
        <span class="tile-note">${note}</span>
      </${Link}>`,
    )}
  </section>`;
}

function Charts({ window, point, recorded }) {
  const api = useApi();
  const resource = useResource(`series ${api.base} ${window}`, (signal) =>
    api.get("series", { window, points: POINTS[window] }, signal),
  );
  useKeys({ r: resource.reload });
  const points = useMemo(() => withCurrent(resource.data?.points ?? [], point), [resource.data, point]);
  const last = points[points.length - 1];
  const width = last?.widthMs ?? 0;

  // A point that has ended is in the series; the live event only tells the current one.
  useEffect(() => {
    if (width === 0) {
      return undefined;
    }
    const timer = setInterval(() => document.hidden || resource.reload(), Math.max(width, 15_000));
    return () => clearInterval(timer);
  }, [width, resource.reload]);

  if (!recorded) {
    return html`<${Notice}><p>The past is not recorded, so there are no charts. Set <code>pgworker.statistics.enabled=true</code> in one application of this schema.</p>
    </${Notice}>`;
  }
  return html`<${Loaded} resource=${resource} lines=${4}>
    ${() => html`<div class="charts"><${Throughput} points=${points} /><${Waiting} points=${points} />
      <${Backlog} points=${points} /></div>`}
  </${Loaded}>`;
}

/* The live point replaces the last one of the series while it belongs to the same interval. */
function withCurrent(points, point) {
  const last = points[points.length - 1];
  if (!point || !last || last.widthMs !== point.widthMs) {
    return points;
  }
  if (last.from === point.from) {
    return [...points.slice(0, -1), point];
  }
  return Date.parse(point.from) > Date.parse(last.from) ? [...points.slice(1), point] : points;
}

function column(points, name) {
  return points.map((point) => point[name] ?? null);
}

function sum(values) {
  return values.reduce((total, value) => total + (value ?? 0), 0);
}

function useTimes(points) {
  return useMemo(() => points.map((point) => Date.parse(point.from)), [points]);
}

function Throughput({ points }) {
  const times = useTimes(points);
  const series = useMemo(
    () => [
      { label: "Failed", colour: "chart-failed", kind: "bar", values: column(points, "failed") },
      { label: "Retried", colour: "chart-retried", kind: "bar", values: column(points, "retried") },
      { label: "Succeeded", colour: "chart", kind: "bar", values: column(points, "succeeded") },
    ],
    [points],
  );
  const [failed, retried, succeeded] = series.map((one) => sum(one.values));
  const all = failed + retried + succeeded;
  return html`<${Chart} title="Throughput" id="throughput" series=${series} times=${times}
    figure=${all ? `${plural(all, "run")}, failure rate ${percent(failed + retried, all)}` : "no runs"}
    summary=${`Runs over time: ${number(succeeded)} succeeded, ${number(retried)} retried, ${number(failed)} failed.`} />`;
}

function Waiting({ points }) {
  const times = useTimes(points);
  const series = useMemo(
    () => [
      { label: "p95", colour: "text-3", kind: "line", dash: true, values: column(points, "wait95Ms") },
      { label: "Median", colour: "chart", kind: "line", values: column(points, "waitMedianMs") },
    ],
    [points],
  );
  const medians = series[1].values.filter((value) => value !== null);
  const current = medians.length ? medians[medians.length - 1] : null;
  return html`<${Chart} title="Waiting time" id="waiting" series=${series} times=${times} format=${duration} axis=${axisDuration}
    figure=${current === null ? "no starts" : `median ${duration(current)}`}
    summary=${
      current === null
        ? "No job started in this time."
        : `How long jobs waited beyond their time. The last median is ${duration(current)}.`
    } />`;
}

function axisDuration(ms) {
  return ms === 0
    ? "0"
    : duration(ms)
        .replace(/\.00? | 00 [smh]$/, " ")
        .replace(/(\.\d)0 /, "$1 ")
        .trim();
}

function Backlog({ points }) {
  const times = useTimes(points);
  const series = useMemo(
    () => [
      { label: "Ready", colour: "chart", kind: "area", values: column(points, "ready") },
      { label: "Retrying", colour: "chart-retried", kind: "line", values: column(points, "retrying") },
      { label: "Failed", colour: "chart-failed", kind: "line", dash: true, values: column(points, "failedTotal") },
    ],
    [points],
  );
  const ready = series[0].values.filter((value) => value !== null);
  const most = ready.length ? Math.max(...ready) : null;
  return html`<${Chart} title="Backlog" id="backlog" series=${series} times=${times}
    figure=${most === null ? "not sampled" : `at most ${number(most)} ready`}
    summary=${
      most === null
        ? "The backlog was not sampled in this time."
        : `Jobs that are ready, retrying and failed over time; at most ${number(most)} were ready.`
    } />`;
}
