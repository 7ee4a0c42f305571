/* The jobs that wait for each other: a graph of those that can be read, a table of many. */

import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { Link } from "../router.js";
import { useApi } from "../session.js";
import { useResource } from "../resource.js";
import { number, plain, plural } from "../text.js";
import { Cell, Row, Table } from "./table.js";
import { Button } from "./button.js";
import { Panel } from "./page.js";
import { OneLine, State, Time } from "./words.js";

const MOST_DRAWN = 50;
const MOST_LISTED = 10_000;
const PAGE = 200;

const BOX = { width: 168, height: 40, gapX: 56, gapY: 14 };

const CHOICES = {
  wait: "waits",
  fail: "fails too",
  run: "runs all the same",
  remove: "is removed",
  instead: "runs then only",
};

/** The flow of a job; nothing if it belongs to none. */
export function FlowPanel({ id, version }) {
  const api = useApi();
  const [all, setAll] = useState(false);
  const most = all ? MOST_LISTED : MOST_DRAWN + 1;
  const loaded = useResource(`flow ${api.base} ${id} ${most} ${version}`, (signal) =>
    api.get("flow", { id, most }, signal),
  );
  const members = loaded.data?.members ?? [];
  if (members.length < 2) {
    return null;
  }
  const drawn = members.length <= MOST_DRAWN;
  return html`<${Panel} title="Flow" id="flow" flush=${true} note=${noteOf(members, most)}
    actions=${!drawn && !all && html`<${Button} kind="quiet" onClick=${() => setAll(true)}>Show all</${Button}>`}>
    ${drawn ? html`<${Graph} members=${members} id=${id} />` : html`<${Members} members=${members} id=${id} />`}
  </${Panel}>`;
}

/* "the nearest 51 jobs: 2 failed, 49 ready". */
function noteOf(members, most) {
  const jobs = members.length >= most ? `the nearest ${number(members.length)} jobs` : plural(members.length, "job");
  const counts = new Map();
  members.forEach(({ state }) => counts.set(state, (counts.get(state) ?? 0) + 1));
  return `${jobs}: ${[...counts].map(([state, count]) => `${number(count)} ${state}`).join(", ")}`;
}

/* A job stands to the right of all that it waits for. */
function layout(members) {
  const byId = new Map(members.map((one) => [one.id, { ...one, rank: null }]));
  const rank = (node, seen) => {
    if (node.rank === null && !seen.has(node.id)) {
      seen.add(node.id);
      node.rank = Math.max(0, ...node.predecessors.map((id) => (byId.has(id) ? rank(byId.get(id), seen) + 1 : 0)));
    }
    return node.rank ?? 0;
  };
  const columns = [];
  byId.forEach((node) => (columns[rank(node, new Set())] ??= []).push(node));
  columns.forEach((column) => {
    const wanted = new Map(column.map((node) => [node, middle(node, byId)]));
    column.sort((a, b) => wanted.get(a) - wanted.get(b) || a.id - b.id);
    column.forEach((node, row) => (node.row = row));
  });
  return { byId, columns };
}

function middle(node, byId) {
  const rows = node.predecessors.map((id) => byId.get(id)?.row).filter((row) => row !== undefined);
  return rows.length === 0 ? Number.MAX_SAFE_INTEGER : rows.reduce((sum, row) => sum + row, 0) / rows.length;
}

const xOf = (node) => 12 + node.rank * (BOX.width + BOX.gapX);
const yOf = (node) => 12 + node.row * (BOX.height + BOX.gapY);

function Graph({ members, id }) {
  const box = useRef(null);
  // The job of the page may lie beyond the edge of the graph.
  useEffect(() => {
    const own = box.current.querySelector(".current rect");
    if (own) {
      box.current.scrollLeft = own.x.baseVal.value - (box.current.clientWidth - BOX.width) / 2;
      box.current.scrollTop = own.y.baseVal.value - (box.current.clientHeight - BOX.height) / 2;
    }
  }, [id]);
  const { byId, columns } = layout(members);
  const nodes = [...byId.values()];
  const width = 24 + columns.length * (BOX.width + BOX.gapX) - BOX.gapX;
  const height = 24 + Math.max(...columns.map((column) => column.length)) * (BOX.height + BOX.gapY) - BOX.gapY;
  const edges = nodes
    .flatMap((node) => node.predecessors.map((before) => ({ from: byId.get(before), to: node })))
    .filter((edge) => edge.from);
  return html`<div class="flow-graph" ref=${box} tabindex="0" role="region" aria-label="Graph of the flow">
    <svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group">
      ${edges.map(
        (edge) => html`<path key=${edge.from.id + "-" + edge.to.id}
        class=${"flow-edge" + (edge.to.onFailure === "instead" ? " instead" : "") + (edge.from.state === "succeeded" ? " done" : "")}
        d=${pathOf(edge)} aria-hidden="true" />`,
      )}
      ${nodes.map((node) => html`<${Node} key=${node.id} node=${node} current=${node.id === Number(id)} />`)}
    </svg>
  </div>`;
}

function pathOf({ from, to }) {
  const x1 = xOf(from) + BOX.width;
  const y1 = yOf(from) + BOX.height / 2;
  const x2 = xOf(to);
  const y2 = yOf(to) + BOX.height / 2;
  // Lines to the same job share the last part, and look like one.
  const bend = x2 - BOX.gapX / 2;
  return `M${x1} ${y1}H${bend}V${y2}H${x2}`;
}

function Node({ node, current }) {
  const task = node.task ?? "job";
  return html`<${Link} to=${["jobs", String(node.id)]} class=${`flow-node is-${node.state}` + (current ? " current" : "")}
    aria-label=${`Job ${node.id}, ${plain(task, 100)}, ${node.state}`} aria-current=${current ? "true" : undefined}>
    <title>${`${plain(task, 200)} #${node.id}: ${node.state}`}</title>
    <rect x=${xOf(node)} y=${yOf(node)} width=${BOX.width} height=${BOX.height} rx="6" />
    <text x=${xOf(node) + 10} y=${yOf(node) + 17} class="flow-task">${plain(task, 22)}</text>
    <text x=${xOf(node) + 10} y=${yOf(node) + 32} class="flow-state">${`#${node.id} ${node.state}`}</text>
  </${Link}>`;
}

/* The job of the page comes first, then what needs attention. */
function byInterest(members, id) {
  const states = ["succeeded", "waiting", "scheduled", "ready", "running", "failed"];
  const rank = (one) => (one.id === Number(id) ? -states.length : -states.indexOf(one.state));
  return [...members].sort((one, other) => rank(one) - rank(other) || one.id - other.id);
}

function Members({ members: all, id }) {
  const [shown, setShown] = useState(PAGE);
  const members = useMemo(() => byInterest(all, id), [all, id]);
  return html`<${Table} label="Jobs of the flow" columns=${[
    { id: "id", label: "Job" },
    { id: "task", label: "Task" },
    { id: "state", label: "State" },
    { id: "waits", label: "Waits for" },
    { id: "choice", label: "If one fails" },
    { id: "ended", label: "Ended" },
  ]}>
      ${members.slice(0, shown).map(
        (one) => html`<${Row} key=${one.id} class=${one.id === Number(id) ? "current" : ""}>
        <${Cell} id="id" label="Job"><${Link} to=${["jobs", String(one.id)]} class="num">${one.id}</${Link}></${Cell}>
        <${Cell} id="task" label="Task"><${OneLine} text=${one.task ?? ""} /></${Cell}>
        <${Cell} id="state" label="State"><${State} state=${one.state} /></${Cell}>
        <${Cell} id="waits" label="Waits for">${waitsFor(one)}</${Cell}>
        <${Cell} id="choice" label="If one fails">${CHOICES[one.onFailure] ?? ""}</${Cell}>
        <${Cell} id="ended" label="Ended"><${Time} iso=${one.endedAt} /></${Cell}>
      </${Row}>`,
      )}
    </${Table}>
    ${
      shown < members.length &&
      html`<p class="flow-more"><${Button} kind="quiet"
      onClick=${() => setShown(shown + 5 * PAGE)}>${`Show more of ${number(members.length)}`}</${Button}></p>`
    }`;
}

function waitsFor({ predecessors }) {
  return predecessors.length <= 5 ? predecessors.join(", ") : plural(predecessors.length, "job");
}
