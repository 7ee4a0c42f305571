/* One timer for all relative times of the page; it rests while the tab is hidden. */

import { createStore, useStore } from "./store.js";
import { serverNow } from "./session.js";

const now = createStore(serverNow());

function tick() {
  if (!document.hidden) {
    now.set(serverNow());
  }
}

setInterval(tick, 1000);
document.addEventListener("visibilitychange", tick);

const KEY = "pgworker.times";

function stored() {
  try {
    return localStorage.getItem(KEY) === "absolute";
  } catch {
    return false;
  }
}

/** Whether lists show times of the clock instead of distances from now. */
export const absoluteTimes = createStore(stored());

export function toggleTimes() {
  absoluteTimes.set(!absoluteTimes.get());
  try {
    localStorage.setItem(KEY, absoluteTimes.get() ? "absolute" : "relative");
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

/** The application's time in milliseconds; renders again every second. */
export function useNow() {
  return useStore(now);
}
