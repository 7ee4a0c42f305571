/* What stands around every page: navigation, state of the connection, dialogs and messages. */

import { html, classes, useEffect, useRef, useState } from "./lib.js";
import { useStore } from "./store.js";
import { href, Link, navigate, useRoute } from "./router.js";
import { loadSession, session, useInstance } from "./session.js";
import { connection, useConnection, useOverview } from "./live.js";
import { toggleTimes } from "./clock.js";
import { useKeys } from "./keys.js";
import { nextTheme, themeChoice } from "./theme-choice.js";
import { compact, plain, plural } from "./text.js";
import { Icon } from "./components/icons.js";
import { DialogHost, showDialog } from "./components/dialog.js";
import { Toasts } from "./components/toast.js";
import { Empty, Notice, Page, Skeleton } from "./components/page.js";
import { Foreign, OneLine } from "./components/words.js";
import { Button } from "./components/button.js";
import { PauseNotice } from "./components/pauses.js";
import { BulkActivity } from "./components/bulk.js";
import { openAddJob } from "./components/add-job.js";
import { ShortcutsDialog } from "./components/shortcuts.js";
import { OverviewPage } from "./pages/overview.js";
import { JobsPage } from "./pages/jobs.js";
import { JobPage } from "./pages/job.js";
import { HistoryPage } from "./pages/history.js";
import { QueuesPage } from "./pages/queues.js";
import { TasksPage } from "./pages/tasks.js";
import { RecurringPage } from "./pages/recurring.js";
import { SchedulePage } from "./pages/schedule.js";
import { LimitsPage, LimitPage } from "./pages/limits.js";
import { WorkersPage } from "./pages/workers.js";
import { MaintenancePage } from "./pages/maintenance.js";
import { NotFoundPage } from "./pages/not-found.js";

const PAGES = [
  { path: "", name: "Overview", icon: "overview", page: OverviewPage },
  { path: "jobs", name: "Jobs", icon: "jobs", page: JobsPage },
  { path: "history", name: "History", icon: "history", page: HistoryPage },
  { path: "queues", name: "Queues", icon: "queues", page: QueuesPage },
  { path: "tasks", name: "Tasks", icon: "tasks", page: TasksPage },
  { path: "recurring", name: "Recurring jobs", icon: "recurring", page: RecurringPage },
  { path: "limits", name: "Limits", icon: "limits", page: LimitsPage },
  { path: "workers", name: "Workers", icon: "workers", page: WorkersPage },
  { path: "maintenance", name: "Maintenance", icon: "maintenance", page: MaintenancePage },
];

/* A job, a schedule and a limit have a page of their own each, so that nothing of another one is shown while it is loaded. */
function pageFor({ path, query }) {
  const job = /^jobs\/(\d{1,16})$/.exec(path);
  if (job) {
    return { page: JobPage, section: "jobs", props: { id: job[1] } };
  }
  if (path === "recurring/schedule") {
    return { page: SchedulePage, section: "recurring", props: { name: query.get("name") ?? "" } };
  }
  if (path === "limits/limit") {
    return { page: LimitPage, section: "limits", props: { name: query.get("name") ?? "" } };
  }
  const found = PAGES.find((one) => one.path === path);
  return found ? { page: found.page, section: path, props: {} } : { page: NotFoundPage, section: null, props: {} };
}

export function Shell() {
  const { me, error } = useStore(session);
  const route = useRoute();
  const { page, section, props } = pageFor(route);
  const [menuOpen, setMenuOpen] = useState(false);
  const instance = useInstance();
  const known = !me || me.instances.includes(instance);
  useShortcuts();
  usePageFocus(route.path, () => setMenuOpen(false));

  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <div class=${classes("app", menuOpen && "menu-open")}>
      <header class="topbar">
        <button type="button" class="button quiet icon-only" aria-label="Navigation" aria-expanded=${menuOpen ? "true" : "false"}
          aria-controls="sidebar" onClick=${() => setMenuOpen(!menuOpen)}><${Icon} name=${menuOpen ? "close" : "menu"} /></button>
        <${Brand} />
        ${known && html`<${ConnectionMark} short=${true} />`}
      </header>
      <section class="sidebar" id="sidebar" aria-label="Sidebar">
        <${Brand} />
        ${me && me.instances.length > 1 && known && html`<${InstanceSwitcher} me=${me} instance=${instance} />`}
        <${Navigation} section=${section} />
        <${SidebarFoot} me=${me} known=${known} />
      </section>
      <main id="main" tabindex="-1">
        ${known && html`<${ConnectionNotice} />`}
        ${known && me && html`<${PauseNotice} />`}
        ${
          !known
            ? html`<${NoInstance} me=${me} instance=${instance} />`
            : me
              ? html`<${Live} /><${page} key=${JSON.stringify([instance, props])} ...${props} />`
              : error
                ? html`<${NoSession} error=${error} />`
                : html`<div class="page"><${Skeleton} lines=${8} /></div>`
        }
      </main>
    </div>
    <div class="corner">
      <${BulkActivity} />
      <${Toasts} />
    </div>
    <${DialogHost} />
  `;
}

/* Connects once the session is known, and shows nothing. */
function Live() {
  useConnection();
  return null;
}

function Brand() {
  return html`<${Link} to=${[]} class="brand">
    <img src="assets/icon.svg" width="20" height="20" alt="" /><span>PgWorker</span>
  </${Link}>`;
}

function Navigation({ section }) {
  const overview = useOverview();
  const failed = overview?.backlog.failed ?? 0;
  return html`<nav aria-label="Pages">
    <ul>
      ${PAGES.map(
        (one) => html`<li key=${one.path}>
          <${Link} to=${one.path ? [one.path] : []} class="nav-item" aria-current=${one.path === section ? "page" : undefined}>
            <${Icon} name=${one.icon} /><span>${one.name}</span>
            ${
              one.path === "jobs" &&
              failed > 0 &&
              html`<span class="nav-count" aria-label=${plural(failed, "failed job")} role="img">${compact(failed)}</span>`
            }
          </${Link}>
        </li>`,
      )}
    </ul>
  </nav>`;
}

function InstanceSwitcher({ me, instance }) {
  const route = useRoute();
  const change = (event) => navigate(href(route.path ? [route.path.split("/")[0]] : [], {}, event.target.value));
  return html`<label class="select-box switcher">
    <span class="reader">Worker</span>
    <select value=${instance} onChange=${change}>
      ${me.instances.map((name) => html`<option value=${name} key=${name}>${plain(name, 60)}</option>`)}
    </select>
    <${Icon} name="down" size=${12} />
  </label>`;
}

function SidebarFoot({ me, known }) {
  const choice = useStore(themeChoice);
  const icons = { system: "system", light: "sun", dark: "moon" };
  return html`<div class="sidebar-foot">
    ${known && html`<${ConnectionMark} />`}
    ${
      me &&
      html`<p class="user">
      ${me.user && html`<${OneLine} text=${me.user} />`}
      ${
        me.readOnly &&
        html`<span class="read-only" data-tip=${me.readOnlyReason} tabindex="0">
        <${Icon} name="lock" size=${12} />Read-only</span>`
      }
    </p>`
    }
    <div class="foot-tools">
      <${Button} kind="quiet" icon=${icons[choice] ?? "system"} aria-label=${`Colours: ${choice}`}
        data-tip=${`Colours: ${choice}`} onClick=${nextTheme} />
      <${Button} kind="quiet" icon="help" aria-label="Keyboard shortcuts" data-tip="Keyboard shortcuts (?)"
        onClick=${() => showDialog(ShortcutsDialog)} />
      ${me && html`<span class="version">${me.version}</span>`}
    </div>
  </div>`;
}

const CONNECTION_WORDS = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting",
  paused: "Paused",
  down: "Database down",
};

function ConnectionMark({ short = false }) {
  const { state } = useStore(connection);
  return html`<p class=${classes("connection", "is-" + state)} role=${short ? undefined : "status"}>
    <span class="dot" aria-hidden="true"></span>${CONNECTION_WORDS[state]}
  </p>`;
}

function ConnectionNotice() {
  const { state, error } = useStore(connection);
  if (state === "down") {
    return html`<div class="page-notice" role="alert"><${Notice} level="error">
      <p><strong>The database cannot be reached.</strong> <${Foreign} text=${error} most=${1000} /></p>
      <p>What is shown is the last known state. Jobs continue by themselves when the database is back.</p>
    </${Notice}></div>`;
  }
  if (state === "reconnecting") {
    return html`<div class="page-notice"><${Notice} level="warning">
      <p><${Foreign} text=${error ?? "The application sends no news."}
        most=${1000} /> What is shown is the last known state; it is tried again every few seconds.</p>
    </${Notice}></div>`;
  }
  return null;
}

function NoSession({ error }) {
  return html`<div class="page narrow">
    <h1 tabindex="-1" id="page-title">The dashboard cannot be shown</h1>
    <${Notice} level="error" actions=${html`<${Button} onClick=${loadSession}>Try again</${Button}>`}>
      <p><${Foreign} text=${error.message} most=${1000} /></p></${Notice}>
  </div>`;
}

function NoInstance({ me, instance }) {
  return html`<${Page} title="No such worker">
    <${Empty} icon="search" title=${html`There is no worker instance <${Foreign} text=${instance} most=${100} />`}>
      <p>This application has: ${me.instances.map(
        (name, at) => html`${at > 0 && ", "}<${Link} key=${name}
        to=${href([], {}, name)}><${Foreign} text=${name} /></${Link}>`,
      )}.</p>
    </${Empty}>
  </${Page}>`;
}

/* The address of the link would be resolved against the base of the page, so it only moves the focus. */
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

/* A reader hears the heading of the page that a link led to; the first page keeps the browser's own focus. */
function usePageFocus(path, closeMenu) {
  const shown = useRef(path);
  useEffect(() => {
    if (shown.current !== path) {
      shown.current = path;
      closeMenu();
      scrollTo(0, 0);
      document.getElementById("page-title")?.focus({ preventScroll: true });
    }
  }, [path]);
}

function useShortcuts() {
  const go = (path) => () => navigate(href(path ? [path] : []));
  useKeys({
    "g o": go(""),
    "g j": go("jobs"),
    "g h": go("history"),
    "g q": go("queues"),
    "g t": go("tasks"),
    "g r": go("recurring"),
    "g l": go("limits"),
    "g w": go("workers"),
    "g m": go("maintenance"),
    c: () => openAddJob(),
    t: toggleTimes,
    "?": () => showDialog(ShortcutsDialog),
    "/": () => {
      const search = /** @type {HTMLElement | null} */ (document.querySelector("input[type=search]"));
      search?.focus();
      return search !== null;
    },
    Escape: () => {
      const focused = /** @type {HTMLElement | null} */ (document.activeElement);
      const search = focused?.matches("input[type=search]") === true;
      if (search) {
        focused.blur();
      }
      return search;
    },
  });
}
