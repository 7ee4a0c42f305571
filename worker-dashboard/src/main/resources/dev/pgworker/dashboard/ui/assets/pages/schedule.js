/* One schedule: when it is due, what it did, what it adds; or one recurring job of a crontab. */

import { html } from "../lib.js";
import { href, Link, navigate } from "../router.js";
import { useApi, whyNot } from "../session.js";
import { useResource } from "../resource.js";
import { useKeys } from "../keys.js";
import { MISFIRES, OVERLAPS } from "../schedules.js";
import { number, plain } from "../text.js";
import { ActionButton, CopyButton, Menu } from "../components/button.js";
import { CrontabActions, CrontabDetails, Upcoming } from "../components/crontab-items.js";
import { Facts } from "../components/facts.js";
import { Icon } from "../components/icons.js";
import { HiddenJson, JsonView } from "../components/json-view.js";
import { Empty, Loaded, Notice, Page, Panel, RefreshButton } from "../components/page.js";
import { useScheduleActions, whyNotWithPayload } from "../components/schedule-actions.js";
import { openScheduleForm } from "../components/schedule-form.js";
import { Flags, Foreign, FullTime, OneLine, State } from "../components/words.js";
import { ScheduleState } from "./recurring.js";

export function SchedulePage({ name }) {
  const api = useApi();
  const loaded = useResource(JSON.stringify([api.base, "schedule", name]), (signal) =>
    api.get("schedules/one", { name }, signal),
  );
  useKeys({ r: loaded.reload });
  // What is gone has no page.
  const changed = (action) =>
    action === "delete" || action === "forget" ? navigate(href(["recurring"])) : loaded.reload();
  const act = useScheduleActions(changed);
  const { schedule, item } = loaded.data ?? {};
  const missing = loaded.error?.status === 404 && loaded.data === null;
  return html`<${Page}
    title=${name === "" ? "Schedule" : plain(name, 60)}
    above=${html`<p class="crumbs"><${Link} to=${["recurring"]}>Recurring jobs</${Link}><${Icon} name="chevron" size=${12} />
      <span>${item ? "In a crontab" : "Schedule"}</span><${CopyButton} text=${name} label="Copy name" /></p>`}
    heading=${html`<${Foreign} text=${name} most=${128} /> ${schedule && html`<${ScheduleState} state=${schedule.state} />`}`}
    actions=${html`<${RefreshButton} resource=${loaded} />
      ${schedule && html`<${Actions} schedule=${schedule} act=${act} reload=${loaded.reload} />`}
      ${item && html`<${CrontabActions} item=${item} api=${api} reload=${changed} />`}`}
  >
    ${
      missing
        ? html`<${Empty} icon="search" title="There is no such schedule">
        <p>It has been deleted, or it never existed. Look at all <${Link} to=${["recurring"]}>recurring jobs</${Link}>.</p></${Empty}>`
        : html`<${Loaded} resource=${loaded} lines=${10}>${(data) =>
            data.schedule
              ? html`<${Body} schedule=${data.schedule} act=${act} reload=${loaded.reload} />`
              : html`<${CrontabBody} item=${data.item} />`}</${Loaded}>`
    }
  </${Page}>`;
}

/* Why the form is of no use; null if it is. */
function whyNoForm(schedule) {
  if (schedule.declared) {
    return "An application declares it at its start. Change it there.";
  }
  return schedule.task === null ? "It cannot be read." : null;
}

function Actions({ schedule, act, reload }) {
  const unread = schedule.task === null ? "It cannot be read." : null;
  const menu = [
    {
      label: "Run with another payload",
      icon: "play",
      whyOff: whyNotWithPayload() ?? unread,
      onSelect: () => act.triggerWith(schedule),
    },
    {
      label: "Change",
      icon: "calendar",
      whyOff: whyNot("schedule") ?? whyNoForm(schedule),
      onSelect: () => openScheduleForm(schedule, reload),
    },
    {
      label: "Delete …",
      icon: "trash",
      danger: true,
      whyOff: whyNot("schedule"),
      onSelect: () => act.remove(schedule),
    },
  ];
  return html`
    <${ActionButton} action="cron" icon="play" kind="primary" whyOff=${unread} onClick=${() => act.trigger(schedule)}>Run now</${ActionButton}>
    ${
      schedule.pausedSince
        ? html`<${ActionButton} action="cron" icon="refresh" onClick=${() => act.resume(schedule)}>Resume</${ActionButton}>`
        : html`<${ActionButton} action="cron" icon="pause" onClick=${() => act.pause(schedule)}>Pause</${ActionButton}>`
    }
    <${Menu} label="More actions" items=${menu} />`;
}

function Body({ schedule, act, reload }) {
  return html`<div class="columns job-columns">
    <div class="stack">
      ${schedule.problem && html`<${Problem} schedule=${schedule} act=${act} reload=${reload} />`}
      ${schedule.pausedSince && html`<${Paused} schedule=${schedule} />`}
      ${schedule.state === "waiting" && html`<${Notice}><p>The previous job has not ended. The next one follows its end.</p></${Notice}>`}
      ${schedule.state === "ended" && html`<${Notice}><p>It is not due any more: its end has passed, or its times lie in the past.</p></${Notice}>`}
      ${
        schedule.task !== null &&
        html`
        <${Panel} title="Next runs" id="next" note=${schedule.jitter && `each up to ${schedule.jitter} later`}>
          <${Upcoming} times=${schedule.upcoming} /></${Panel}>
        <${Panel} title="Last run" id="last"><${LastRun} schedule=${schedule} /></${Panel}>
        <${PayloadPanel} schedule=${schedule} />`
      }
    </div>
    <aside aria-label="Facts"><${Panel} title="Details" id="details"><${ScheduleFacts} schedule=${schedule} /></${Panel}></aside>
  </div>`;
}

function Problem({ schedule, act, reload }) {
  const changeable = whyNoForm(schedule) === null;
  const remedy = schedule.next
    ? "It is tried again by itself, and at once when it is changed."
    : changeable
      ? "Change it accordingly, and it continues by itself."
      : schedule.declared
        ? "Change it where it is declared, and start that application again."
        : "Write it again by SQL or RecurringJobs, or delete it.";
  return html`<${Notice} level="error" actions=${
    changeable
      ? html`<${ActionButton} action="schedule" onClick=${() => openScheduleForm(schedule, reload)}>Change</${ActionButton}>`
      : html`<${ActionButton} action="schedule" onClick=${() => act.remove(schedule)}>Delete …</${ActionButton}>`
  }>
    <p><strong>It is not executed.</strong> <${Foreign} text=${schedule.problem} most=${2000} /></p>
    <p>${remedy}</p>
  </${Notice}>`;
}

function Paused({ schedule }) {
  return html`<section class="situation is-paused" aria-label="Why it does not run">
    <${Icon} name="pause" />
    <div>
      <p>Paused${schedule.pausedBy && html` by <${Foreign} text=${schedule.pausedBy} />`}. Nothing is added until it is resumed.</p>
      <p class="muted"><${FullTime} iso=${schedule.pausedSince} /></p>
    </div>
  </section>`;
}

function LastRun({ schedule }) {
  const { lastRun, lastJob, task } = schedule;
  if (!lastRun && !lastJob) {
    return html`<p class="muted">It has not run yet.</p>`;
  }
  return html`<ul class="lines">
    <li>${
      lastJob &&
      html`${lastJob.state ? html`<${State} state=${lastJob.state} />` : html`<span class="muted">ended</span>`}
      <${Link} to=${["jobs", lastJob.id]}>#${lastJob.id}</${Link}>`
    } <${FullTime} iso=${lastRun} /></li>
    <li class="muted"><span>All of the task: <${Link} to=${["jobs"]} query=${{ task }}>jobs</${Link}>, <${Link}
      to=${["history"]} query=${{ task }}>history</${Link}></span></li>
  </ul>`;
}

function PayloadPanel({ schedule }) {
  return html`<${Panel} title="Payload" id="payload">
    ${
      schedule.payloadHidden
        ? html`<${HiddenJson} what="Payloads" />`
        : html`<${JsonView} text=${schedule.payload} cut=${schedule.payloadCut} />`
    }
  </${Panel}>`;
}

function ScheduleFacts({ schedule }) {
  const named = (text, query) =>
    text && html`<${Link} to=${["jobs"]} query=${query}><${OneLine} text=${text} /></${Link}>`;
  return html`<${Facts} items=${[
    ["Due", schedule.words],
    ["Pattern", schedule.expression && html`<code><${Foreign} text=${schedule.expression} /></code>`],
    ["Time zone", schedule.zone && html`<${Foreign} text=${schedule.zone} />`],
    ["Counted from", schedule.origin && html`<${FullTime} iso=${schedule.origin} />`],
    ["Starts", schedule.startsAt && html`<${FullTime} iso=${schedule.startsAt} />`],
    ["Ends", schedule.endsAt && html`<${FullTime} iso=${schedule.endsAt} />`],
    ["Overlap", OVERLAPS[schedule.overlap]],
    [
      "Missed runs",
      schedule.misfire && MISFIRES[schedule.misfire] + (schedule.backfill ? `, of the last ${schedule.backfill}` : ""),
    ],
    ["Jitter", schedule.jitter && `up to ${schedule.jitter}`],
    ["Task", named(schedule.task, { task: schedule.task })],
    ["Queue", named(schedule.queue, { queue: schedule.queue })],
    ["Key", schedule.key && html`<${OneLine} text=${schedule.key} class="mono" />`],
    ["Flags", schedule.flags?.length > 0 && html`<span class="flags"><${Flags} flags=${schedule.flags} /></span>`],
    ["Priority", schedule.priority !== null && schedule.priority !== undefined && number(schedule.priority)],
    ["Attempts", schedule.maxAttempts && `at most ${number(schedule.maxAttempts)}`],
    ["Created by", schedule.declared ? "an application, at startup" : "a user or program, at run time"],
    ["Created", html`<${FullTime} iso=${schedule.createdAt} />`],
    ["Changed", html`<${FullTime} iso=${schedule.updatedAt} />`],
  ]} />`;
}

function CrontabBody({ item }) {
  return html`<${Panel} title=${item.words ?? "Unknown to this instance"} id="item"
    note=${item.pattern && html`<code><${Foreign} text=${item.pattern} /></code>`}><${CrontabDetails} item=${item} /></${Panel}>`;
}
