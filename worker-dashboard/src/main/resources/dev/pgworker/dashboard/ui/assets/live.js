/*
 * Server-sent events: one stream for the page, closed while the tab is hidden. It names the jobs on the page, so that
 * the server tells when they change.
 *
 * A browser has six connections to a server without HTTP/2, for all of its windows together, and streams that stay open
 * would leave none for requests. So only the window that is worked with keeps its stream; the other visible ones
 * connect for a moment every few seconds, and show what is new with the first events, which tell the whole state.
 */

import { getMe } from "./api.js";
import { createStore, useStore } from "./store.js";
import { useEffect, useState } from "./lib.js";
import { setClock, useApi } from "./session.js";

const MOST_IDS = 200;
const WAIT_FOR_IDS_MS = 250;
const RETRY_MS = 10_000;
const UNFOCUSED_MS = 5000;
const GLANCE_MS = 500;
/* The server ends each stream after a while, to check again who reads; that is no outage. */
const SHORT_GAP_MS = 4000;

/** state: "connecting", "live", "reconnecting", "paused" or "down"; error: what the server said about "down". */
export const connection = createStore({ state: "connecting", error: null });
/** The last overview; null until the first one. */
export const overview = createStore(null);

const listeners = { jobs: new Set(), bulk: new Set() };
const wanted = new Map();
let base = null;
let source = null;
let opened = "";
let timer = 0;
let gap = 0;
let glance = 0;
let focusedAt = Date.now();

function ids() {
  return [...new Set([...wanted.values()].flat())].slice(0, MOST_IDS).join(",");
}

function close() {
  clearTimeout(timer);
  clearTimeout(glance);
  glance = 0;
  endGap();
  source?.close();
  source = null;
}

function endGap() {
  clearTimeout(gap);
  gap = 0;
}

function open() {
  close();
  if (base === null) {
    return;
  }
  if (document.hidden) {
    connection.set({ state: "paused", error: null });
    return;
  }
  opened = ids();
  source = new EventSource(base + "live" + (opened ? "?ids=" + opened : ""));
  on("overview", (data) => {
    setClock(data.time);
    endGap();
    connection.set({ state: "live", error: null });
    overview.set(data);
    restWithoutFocus();
  });
  on("down", (data) => {
    endGap();
    connection.set({ state: "down", error: data.error });
    restWithoutFocus();
  });
  on("jobs", (data) => tell("jobs", data));
  on("bulk", (data) => tell("bulk", data));
  source.onerror = lost;
}

/* Gives the connection back for a while; what the server sends besides the overview follows it at once. */
function restWithoutFocus() {
  if (document.hasFocus()) {
    focusedAt = Date.now();
  } else if (glance === 0 && Date.now() - focusedAt >= UNFOCUSED_MS) {
    glance = setTimeout(() => {
      close();
      timer = setTimeout(open, UNFOCUSED_MS);
    }, GLANCE_MS);
  }
}

function focused() {
  focusedAt = Date.now();
  clearTimeout(glance);
  glance = 0;
  if (source === null) {
    open();
  }
}

/* EventSource reconnects by itself after a broken stream, but gives up after an answer that is none. */
function lost() {
  if (source?.readyState === EventSource.CLOSED) {
    reconnecting(null);
    close();
    timer = setTimeout(open, RETRY_MS);
    askWhy();
  } else if (gap === 0) {
    gap = setTimeout(() => reconnecting(null), SHORT_GAP_MS);
  }
}

function reconnecting(error) {
  if (!document.hidden) {
    connection.set({ state: "reconnecting", error });
  }
}

/* The events do not say why they were refused; another request does. */
async function askWhy() {
  try {
    await getMe();
  } catch (error) {
    reconnecting(error.message);
  }
}

function on(name, receive) {
  const mine = source;
  mine.addEventListener(name, (event) => {
    if (source === mine) {
      receive(JSON.parse(event.data));
    }
  });
}

function tell(name, data) {
  for (const listener of [...listeners[name]]) {
    listener(data);
  }
}

function idsChanged() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (source === null || ids() !== opened) {
      open();
    }
  }, WAIT_FOR_IDS_MS);
}

document.addEventListener("visibilitychange", open);
addEventListener("focus", focused);

/** Connects to the worker instance of the page. */
export function useConnection() {
  const api = useApi();
  useEffect(() => {
    overview.set(null);
    base = api.base;
    connection.set({ state: "connecting", error: null });
    open();
    return () => {
      base = null;
      close();
    };
  }, [api]);
}

/** Watches jobs by id; the listener gets {jobs, gone, running} with what changed. */
export function useLiveJobs(jobIds, listener) {
  const key = jobIds.join(",");
  const [owner] = useState(() => Symbol("page"));
  useEffect(() => {
    wanted.set(owner, jobIds);
    idsChanged();
    return () => {
      wanted.delete(owner);
      idsChanged();
    };
  }, [key]);
  useEffect(() => {
    listeners.jobs.add(listener);
    return () => listeners.jobs.delete(listener);
  });
}

/** Hears of the progress of bulk changes. */
export function onBulk(listener) {
  listeners.bulk.add(listener);
}

export function useOverview() {
  return useStore(overview);
}
