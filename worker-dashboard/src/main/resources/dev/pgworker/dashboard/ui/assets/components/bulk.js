/* Changing all jobs that match a filter: the number first, then progress that can be stopped. */

import { html, useEffect, useState } from "../lib.js";
import { createStore, useStore } from "../store.js";
import { onBulk } from "../live.js";
import { headline, number, plural } from "../text.js";
import { inWords } from "../filters.js";
import { ActionFields, consequence, dismissal, isDangerous, kindOf, parameters, phrase } from "./job-actions.js";
import { Dialog, FormError, showDialog } from "./dialog.js";
import { Button } from "./button.js";
import { Foreign, OneLine, State } from "./words.js";
import { Notice, Skeleton } from "./page.js";
import { toast } from "./toast.js";

const POLL_MS = 2000;

/* Changes that were started from this tab: {id, api, action, words, selected, done, changed, state, error}. */
const changes = createStore([]);

/** Counts the changes that have ended; lists load again when it rises. */
export const ended = createStore(0);

function update(progress) {
  const before = changes.get().find((one) => one.id === progress.id);
  changes.set((all) => all.map((one) => (one.id === progress.id ? { ...one, ...progress } : one)));
  if (before?.state === "running" && progress.state !== "running") {
    ended.set((count) => count + 1);
  }
}

onBulk(update);

/** Shows the preview of a change of all jobs that match the filter. */
export function openBulk(api, action, filter) {
  showDialog(({ close }) => html`<${BulkDialog} api=${api} action=${action} filter=${filter} close=${close} />`);
}

function BulkDialog({ api, action, filter, close }) {
  const [preview, setPreview] = useState(null);
  const [values, setValues] = useState({});
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);

  useEffect(() => {
    let shown = true;
    api.post("bulk/preview", { action, filter }).then(
      (answer) => shown && setPreview(answer),
      (failure) => shown && setError(failure.message),
    );
    return () => {
      shown = false;
    };
  }, []);

  const start = async () => {
    setBusy(true);
    setError(null);
    try {
      const { bulk } = await api.post("bulk", { selection: preview.selection, action, ...parameters(action, values) });
      follow(api, {
        id: bulk,
        action,
        kind: kindOf([filter.state]),
        words: inWords(filter, preview.selected),
        selected: preview.selected,
        done: 0,
        changed: 0,
        state: "running",
        error: null,
      });
      close();
    } catch (failure) {
      setError(failure.message);
      setBusy(false);
    }
  };

  const kind = kindOf([filter.state]);
  const selected = preview?.selected ?? 0;
  return html`<${Dialog} title=${phrase(action, "all matching jobs", kind) + "?"} close=${close} locked=${busy} wide=${true}
    buttons=${html`
    <${Button} onClick=${close} disabled=${busy}>${dismissal(action)}</${Button}>
    ${
      selected > 0 &&
      html`<${Button} kind=${isDangerous(action) ? "danger" : "primary"} disabled=${busy}
      onClick=${start}>${busy ? "Starting…" : phrase(action, plural(selected, "job"), kind)}</${Button}>`
    }
  `}>
    <p class="muted">Filter: <span class="strong">${inWords(filter)}</span></p>
    ${preview === null && error === null && html`<${Skeleton} lines=${4} />`}
    ${preview && selected === 0 && html`<${Notice}><p>No job matches any more.</p></${Notice}>`}
    ${
      selected > 0 &&
      html`
      <p>${consequence(action, selected, kind)} Jobs that are added from now on are not changed.</p>
      ${
        !preview.complete &&
        html`<${Notice} level="warning">
        <p>More jobs match. These are the first ${number(selected)}; repeat the action for the rest.</p></${Notice}>`
      }
      <${ActionFields} action=${action} values=${values} setValues=${setValues} />
      <${Sample} jobs=${preview.sample} selected=${selected} />
    `
    }
    <${FormError} text=${error} />
  </${Dialog}>`;
}

function Sample({ jobs, selected }) {
  return html`<h3 class="sample-head">${jobs.length < selected ? `${jobs.length} of them` : "The jobs"}</h3>
    <ul class="sample">
      ${jobs.map(
        (job) => html`<li key=${job.id}><${State} state=${job.state} compact=${true} />
        <span class="muted num">#${job.id}</span><${OneLine} text=${job.task} />
          ${job.error && html`<${OneLine} text=${headline(job.error)} class="muted" />`}</li>`,
      )}
    </ul>`;
}

function follow(api, change) {
  changes.set((all) => [...all, { ...change, api }]);
  const timer = setInterval(async () => {
    const current = changes.get().find((one) => one.id === change.id);
    if (!current || current.state !== "running") {
      clearInterval(timer);
      return;
    }
    try {
      update(await api.get("bulk/" + encodeURIComponent(change.id)));
    } catch (failure) {
      if (failure.status === 404) {
        update({
          id: change.id,
          state: "failed",
          error: "The application no longer knows of this change. It may have been restarted; look at the list.",
        });
      }
    }
  }, POLL_MS);
}

async function stop(change) {
  try {
    await change.api.post(`bulk/${encodeURIComponent(change.id)}/stop`);
  } catch (failure) {
    toast({ text: failure.message, level: "error" });
  }
}

const ENDS = {
  done: (change) => `Done: ${plural(change.changed, "job")} changed` + skippedText(change),
  stopped: (change) =>
    `Stopped: ${plural(change.changed, "job")} changed, ${number(change.selected - change.done)} left`,
  failed: (change) => `Broken off after ${plural(change.changed, "job")}: ${change.error ?? "unknown error"}`,
};

function skippedText(change) {
  const skipped = change.done - change.changed;
  return skipped > 0 ? `, ${number(skipped)} skipped because they had changed or run` : "";
}

/** Changes under way, wherever in the dashboard one looks. */
export function BulkActivity() {
  const all = useStore(changes);
  return html`<section class="activity" aria-label="Changes under way" hidden=${all.length === 0}>
    ${all.map(
      (change) => html`<div class=${"activity-item is-" + change.state} key=${change.id}>
      <div class="activity-head">
        <strong>${phrase(change.action, plural(change.selected, "job"), change.kind)}</strong>
        ${
          change.state === "running"
            ? html`<${Button} onClick=${() => stop(change)}>Stop</${Button}>`
            : html`<${Button} kind="quiet" icon="close" aria-label="Dismiss"
            onClick=${() => changes.set((list) => list.filter((one) => one.id !== change.id))} />`
        }
      </div>
      ${
        change.state === "running"
          ? html`<progress class="bar" aria-label="Progress of the change" value=${change.done}
          max=${Math.max(1, change.selected)}></progress>
            <p class="muted num">${number(change.done)} of ${number(change.selected)}, ${number(change.changed)} changed</p>`
          : html`<p role="status"><${Foreign} text=${ENDS[change.state](change)} most=${1000} /></p>`
      }
    </div>`,
    )}
  </section>`;
}
